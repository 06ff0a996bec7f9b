//! Values as columns of MySQL hold them.
//!
//! A column is known by what the database says of it, so what it cannot hold is refused before
//! anything is sent, and nothing is rounded, cut or padded.

use jiff::{Timestamp, civil, tz::Offset};
use mysql_async::Value as Cell;

use super::dialect::quote;
use crate::{
    Error, ErrorKind, Result,
    record::{Kind, Time, Value},
    store::sql::{Described, Promise, holds},
};

/// What a column can hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Bool,
    /// Whole numbers from one to another.
    Int(i128, i128),
    /// 0 and 1901 to 2155: numbers below 100 are made years of our time.
    Year,
    Float,
    Double,
    /// Exact decimals with so many digits after the point.
    Decimal(u64),
    /// Text of so many characters; shorter text may be padded.
    Chars(u64, bool),
    /// Text of so many bytes.
    Text(u64),
    /// So many bytes; fewer may be padded.
    Bytes(u64, bool),
    /// Moments, with so many digits of a second.
    Time(u32),
    /// Places and shapes, or vectors: read as the bytes in which the database has them, and not written.
    ReadOnly,
    /// Anything else, written and read as text.
    Other,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub name: String,
    pub holds: Type,
    /// For text: it is in UTF-8 and compares by bytes.
    pub exact: bool,
    /// For text: it is in UTF-8.
    pub unicode: bool,
    /// For text: the collation it is declared with.
    pub collation: String,
    /// What the database puts where NULL is written: a number or a time of its own.
    pub fills: Option<&'static str>,
    pub primary: bool,
    /// The database computes it.
    pub generated: bool,
    /// Read as it is, it is no number, or not as numbers are written: `bit`, `year`, `zerofill`. In a sum it is.
    pub summed: bool,
    /// What it is declared as, where it may change what is put into it.
    pub changes: Option<String>,
    pub promise: Promise,
}

impl Column {
    /// The same as the key's column: what is no whole number, text or bytes is read as text.
    pub(super) fn into_key(self) -> Column {
        let holds = match self.holds {
            Type::Bool | Type::Float | Type::Double | Type::Decimal(_) | Type::Time(_) => {
                Type::Other
            }
            holds => holds,
        };
        Column { holds, ..self }
    }

    /// What is read of it; `of` stands before its name.
    pub(super) fn read(&self, of: &str) -> String {
        let name = quote(&self.name);
        match self.summed {
            true => format!("{of}{name} + 0"),
            false => format!("{of}{name}"),
        }
    }
}

/// The type that a column for values of a kind is given.
pub(super) fn declared(kind: Kind, collation: &str) -> String {
    match kind {
        Kind::Bool => "BOOLEAN".into(),
        Kind::Int => "BIGINT".into(),
        Kind::Float => "DOUBLE".into(),
        Kind::Bytes => "LONGBLOB".into(),
        Kind::Time => "DATETIME(6)".into(),
        _ => format!("LONGTEXT CHARACTER SET utf8mb4 COLLATE {collation}"),
    }
}

impl Type {
    /// From what the database calls it: `varchar(20)`, `bigint(20) unsigned`, `decimal(9,2)`.
    pub(super) fn found(declared: &str) -> Type {
        let declared = declared.to_ascii_lowercase();
        let name = declared.split(['(', ' ']).next().unwrap_or_default();
        let mut numbers = declared
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'))
            .map_or("", |(numbers, _)| numbers)
            .split(',')
            .map_while(|number| number.parse::<u64>().ok());
        let mut number = || numbers.next().unwrap_or(0);
        let int = |bits: u32| match declared.contains("unsigned") {
            true => Type::Int(0, (1 << bits) - 1),
            false => Type::Int(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        };
        match name {
            "tinyint" if declared == "tinyint(1)" => Type::Bool,
            "tinyint" => int(8),
            "smallint" => int(16),
            "mediumint" => int(24),
            "int" => int(32),
            "bigint" => int(64),
            "year" => Type::Year,
            "bit" => Type::Int(0, (1i128 << number()) - 1),
            "float" => Type::Float,
            "double" => Type::Double,
            "decimal" => {
                number();
                Type::Decimal(number())
            }
            "char" => Type::Chars(number(), true),
            "varchar" => Type::Chars(number(), false),
            "tinytext" => Type::Text(0xff),
            "text" => Type::Text(0xffff),
            "mediumtext" => Type::Text(0xff_ffff),
            "longtext" => Type::Text(0xffff_ffff),
            "binary" => Type::Bytes(number(), true),
            "varbinary" => Type::Bytes(number(), false),
            "tinyblob" => Type::Bytes(0xff, false),
            "blob" => Type::Bytes(0xffff, false),
            "mediumblob" => Type::Bytes(0xff_ffff, false),
            "longblob" => Type::Bytes(0xffff_ffff, false),
            "datetime" | "timestamp" => Type::Time(number() as u32),
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
            | "multipolygon" | "geometrycollection" | "geomcollection" | "vector" => Type::ReadOnly,
            _ => Type::Other,
        }
    }

    /// The kind of value that comes out.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Type::Bool => Kind::Bool,
            Type::Int(..) | Type::Year => Kind::Int,
            Type::Float | Type::Double => Kind::Float,
            Type::Decimal(_) => Kind::Decimal,
            Type::Chars(..) | Type::Text(_) | Type::Other => Kind::Text,
            Type::Bytes(..) | Type::ReadOnly => Kind::Bytes,
            Type::Time(_) => Kind::Time,
        }
    }
}

impl Described for Column {
    fn name(&self) -> &str {
        &self.name
    }
    fn is_primary(&self) -> bool {
        self.primary
    }
    fn kind(&self) -> Kind {
        self.holds.kind()
    }
    fn is_computed(&self) -> bool {
        self.generated
    }
    fn changes(&self) -> Option<&str> {
        self.changes.as_deref()
    }
    /// Numbers of 64 bits without a sign are whole ones, too.
    fn holds(&self, kind: Kind) -> bool {
        holds(self.kind(), kind)
            || (self.kind() == Kind::Int && kind == Kind::BigInt)
            || (self.kind() == Kind::Bool && kind == Kind::Int)
    }
}

/// Whether a text is a date of the calendar as the database writes it, from the first year that it supports.
fn is_date(text: &[u8]) -> bool {
    let date = str::from_utf8(text).ok().and_then(|text| text.parse::<civil::Date>().ok());
    date.is_some_and(|date| date.year() >= 1000 && date.to_string().as_bytes() == text)
}

impl Column {
    /// Whether a column of a type that may change what it is given keeps this as it is: a date in the form in which
    /// dates are read, a whole number where digits after the point are rounded.
    pub(super) fn keeps(&self, cell: &Cell) -> bool {
        let is_float = matches!(self.holds, Type::Float | Type::Double);
        match cell {
            Cell::NULL => true,
            Cell::Int(_) => is_float,
            Cell::Double(v) => is_float && v.fract() == 0.0,
            Cell::Bytes(text) => self.changes.as_deref() == Some("date") && is_date(text),
            _ => false,
        }
    }

    /// A value as what is bound.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) or [`TooLarge`](ErrorKind::TooLarge) where the column cannot
    /// hold it as it is.
    pub(super) fn cell(&self, value: &Value) -> Result<Cell> {
        match value {
            Value::Null if self.fills.is_some() => {
                let fills = self.fills.unwrap_or_default();
                let what = format!(
                    "is missing, and its column ({fills}) would be given a value by the database"
                );
                Err(refuse(ErrorKind::Invalid, &what))
            }
            Value::Null | Value::List(_) | Value::Map(_) => Ok(Cell::NULL),
            Value::Bool(v) => Ok(Cell::Int(i64::from(*v))),
            Value::Int(n) => self.int(*n),
            Value::Float(v) => self.float(*v),
            Value::BigInt(digits) if matches!(self.holds, Type::Int(..)) => self.big(digits),
            Value::BigInt(text) | Value::Decimal(text) => self.text(text),
            Value::Text(text) => self.text(text),
            Value::Bytes(bytes) => {
                self.bytes(bytes.len())?;
                Ok(Cell::Bytes(bytes.clone()))
            }
            Value::Time(time) => self.time(*time),
        }
    }

    fn int(&self, n: i64) -> Result<Cell> {
        match self.holds {
            Type::Bool if matches!(n, 0 | 1) || i8::try_from(n).is_err() => {
                let what = match n {
                    0 | 1 => format!("is {n}, which its column would turn into a boolean"),
                    _ => format!("is {n}, but its column holds -128 to 127"),
                };
                Err(refuse(ErrorKind::Invalid, &what))
            }
            Type::Int(least, most) if !(least..=most).contains(&i128::from(n)) => {
                let what = format!("is {n}, but its column holds {least} to {most}");
                Err(refuse(ErrorKind::Invalid, &what))
            }
            Type::Year if n != 0 && !(1901..=2155).contains(&n) => {
                let what = format!("is {n}, but its column holds 0 and the years 1901 to 2155");
                Err(refuse(ErrorKind::Invalid, &what))
            }
            Type::Float if (n as f32) as i128 != i128::from(n) => {
                Err(refuse(ErrorKind::Invalid, &format!("is {n}, which no float equals exactly")))
            }
            Type::Double if (n as f64) as i128 != i128::from(n) => {
                Err(refuse(ErrorKind::Invalid, &format!("is {n}, which no float equals exactly")))
            }
            _ => Ok(Cell::Int(n)),
        }
    }

    fn big(&self, digits: &str) -> Result<Cell> {
        match digits.parse::<u64>() {
            Ok(n) if matches!(self.holds, Type::Int(_, most) if i128::from(n) <= most) => {
                Ok(Cell::UInt(n))
            }
            _ => {
                let what = format!("is {digits}, which is out of its column's range");
                Err(refuse(ErrorKind::Invalid, &what))
            }
        }
    }

    fn float(&self, v: f64) -> Result<Cell> {
        if !v.is_finite() {
            return Err(refuse(ErrorKind::Invalid, &format!("is {v}, which MySQL cannot hold")));
        }
        if v == 0.0 && v.is_sign_negative() {
            let what = "is -0.0, which MySQL stores as 0; use that, or ?layout=document";
            return Err(refuse(ErrorKind::Invalid, what));
        }
        if self.holds == Type::Float && f64::from(v as f32) != v {
            let what = format!("is {v}, which a FLOAT would round");
            return Err(refuse(ErrorKind::Invalid, &what));
        }
        Ok(Cell::Double(v))
    }

    /// A text as what is bound.
    ///
    /// # Errors
    /// As [`cell`](Column::cell).
    pub(super) fn text(&self, text: &str) -> Result<Cell> {
        let too_long = |most: u64, of: &str| {
            let what = format!("is too long for its column of {most} {of}");
            Err(refuse(ErrorKind::TooLarge, &what))
        };
        match self.holds {
            // Bytes first: most texts need no counting.
            Type::Chars(most, _)
                if text.len() as u64 > most && text.chars().count() as u64 > most =>
            {
                return too_long(most, "characters");
            }
            Type::Chars(_, true) if text.ends_with(' ') => {
                let what = "ends in a space, which its column of type CHAR would lose";
                return Err(refuse(ErrorKind::Invalid, what));
            }
            Type::Text(most) if text.len() as u64 > most => return too_long(most, "bytes"),
            Type::Decimal(digits) => {
                let after = text.split_once('.').map_or("", |(_, after)| after);
                if text.contains(['e', 'E']) || after.len() as u64 > digits {
                    let what = format!("is {text}, but its column has {digits} decimal places");
                    return Err(refuse(ErrorKind::Invalid, &what));
                }
            }
            _ => {}
        }
        Ok(Cell::Bytes(text.as_bytes().to_vec()))
    }

    /// Whether so many bytes fit, for bytes and for what is written as such.
    ///
    /// # Errors
    /// [`TooLarge`](ErrorKind::TooLarge) or [`Invalid`](ErrorKind::Invalid).
    pub(super) fn bytes(&self, len: usize) -> Result<()> {
        match self.holds {
            Type::Bytes(most, false) | Type::Text(most) | Type::Chars(most, _)
                if len as u64 > most =>
            {
                let what = format!("has {len} bytes, but its column holds {most}");
                Err(refuse(ErrorKind::TooLarge, &what))
            }
            Type::Bytes(most, true) if len as u64 != most => {
                let what = format!("has {len} bytes, but its column of type BINARY holds {most}");
                Err(refuse(ErrorKind::Invalid, &what))
            }
            Type::ReadOnly => {
                let what = "is in a column of geometry or vectors, which is read, and not written";
                Err(refuse(ErrorKind::Unsupported, what))
            }
            _ => Ok(()),
        }
    }

    fn time(&self, time: Time) -> Result<Cell> {
        let (_, nanos) = time.to_unix();
        let digits = match self.holds {
            Type::Time(digits) => digits.min(6),
            _ => 6,
        };
        if nanos % 10u32.pow(9 - digits) != 0 {
            let what = format!("is {time}, but its column has {digits} digits of a second");
            return Err(refuse(ErrorKind::Invalid, &what));
        }
        match moment(time) {
            cell @ Cell::Date(1000.., ..) => Ok(cell),
            _ => {
                let what = format!("is {time}, but MySQL's times begin with the year 1000");
                Err(refuse(ErrorKind::Invalid, &what))
            }
        }
    }

    /// How many digits of a second a column of type `time` has.
    fn digits(&self) -> u32 {
        let digits = self.changes.as_deref().and_then(|declared| declared.strip_prefix("time("));
        digits.and_then(|rest| rest.strip_suffix(')')?.parse().ok()).unwrap_or(0)
    }

    /// What a cell holds; nothing where it is empty. A date that is none, or lies after our times, is text.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed) for what no value is: bytes that are no text.
    pub(super) fn value(&self, cell: Cell) -> Result<Option<Value>> {
        Ok(Some(match cell {
            Cell::NULL => return Ok(None),
            // Other numbers are what they are: to the server a boolean is a number of eight bits.
            Cell::Int(n @ (0 | 1)) if self.holds == Type::Bool => Value::Bool(n == 1),
            Cell::Int(n) => Value::Int(n),
            Cell::UInt(n) => Value::from_integer(i128::from(n)),
            Cell::Float(v) => Value::Float(f64::from(v)),
            Cell::Double(v) => Value::Float(v),
            Cell::Bytes(bytes) if self.holds.kind() == Kind::Bytes => Value::Bytes(bytes),
            Cell::Bytes(bytes) => {
                let text = String::from_utf8(bytes)
                    .map_err(|_| refuse(ErrorKind::Malformed, "holds text that is not UTF-8"))?;
                match self.holds {
                    Type::Decimal(_) => Value::Decimal(text.into()),
                    _ => Value::Text(text),
                }
            }
            Cell::Date(year, month, day, hour, minute, second, micros) => {
                let date = format!("{year:04}-{month:02}-{day:02}");
                let Type::Time(digits) = self.holds else {
                    return Ok(Some(Value::Text(date)));
                };
                let parts = (year as i16, month as i8, day as i8);
                let clock = (hour as i8, minute as i8, second as i8, micros as i32 * 1000);
                let time = civil::DateTime::new(
                    parts.0, parts.1, parts.2, clock.0, clock.1, clock.2, clock.3,
                );
                let stamp = time.ok().filter(|time| time.year() > 0);
                let Some(stamp) = stamp.and_then(|time| Offset::UTC.to_timestamp(time).ok()) else {
                    // No moment of ours: what the server writes.
                    let fraction = fraction(micros, digits);
                    let text = format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}");
                    return Ok(Some(Value::Text(text)));
                };
                let nanos = stamp.as_nanosecond();
                let billion = 1_000_000_000;
                let seconds = nanos.div_euclid(billion) as i64;
                Value::Time(Time::from_unix(seconds, nanos.rem_euclid(billion) as u32)?)
            }
            Cell::Time(negative, days, hours, minutes, seconds, micros) => {
                let sign = if negative { "-" } else { "" };
                let hours = u32::from(hours) + days * 24;
                let fraction = fraction(micros, self.digits());
                Value::Text(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}"))
            }
        }))
    }
}

/// Microseconds as the server writes them, in so many digits.
fn fraction(micros: u32, digits: u32) -> String {
    match format!(".{micros:06}").get(..=digits as usize) {
        None | Some(".") => String::new(),
        Some(fraction) => fraction.to_owned(),
    }
}

fn refuse(kind: ErrorKind, what: &str) -> Error {
    Error::new(kind, what)
}

/// A moment as the server's, in whole microseconds; years before it began are the last before that.
fn moment(time: Time) -> Cell {
    let (seconds, nanos) = time.to_unix();
    let Ok(stamp) = Timestamp::new(seconds, nanos as i32) else { return Cell::NULL };
    let at = Offset::UTC.to_datetime(stamp);
    if at.year() < 1 {
        return Cell::Date(1, 1, 1, 0, 0, 0, 0);
    }
    let [month, day, hour, minute, second] =
        [at.month(), at.day(), at.hour(), at.minute(), at.second()].map(|part| part as u8);
    Cell::Date(at.year() as u16, month, day, hour, minute, second, nanos / 1000)
}

/// A value as one to compare with.
pub(super) fn compared(value: &Value) -> Cell {
    match value {
        Value::Null | Value::List(_) | Value::Map(_) => Cell::NULL,
        Value::Bool(v) => Cell::Int(i64::from(*v)),
        Value::Int(n) => Cell::Int(*n),
        Value::Float(v) => Cell::Double(*v),
        Value::BigInt(text) | Value::Decimal(text) => match text.parse() {
            Ok(n) => Cell::UInt(n),
            Err(_) => Cell::Bytes(text.as_bytes().to_vec()),
        },
        Value::Text(text) => Cell::Bytes(text.as_bytes().to_vec()),
        Value::Bytes(bytes) => Cell::Bytes(bytes.clone()),
        Value::Time(time) => moment(*time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(declared: &str) -> Column {
        Column {
            name: "f".into(),
            holds: Type::found(declared),
            exact: true,
            unicode: true,
            collation: "utf8mb4_bin".into(),
            fills: None,
            primary: false,
            generated: false,
            summed: false,
            changes: None,
            promise: Promise { unique: false, not_null: false },
        }
    }

    #[test]
    fn what_would_be_changed_is_refused() {
        let time = |text: &str| Value::Time(text.parse().unwrap());
        for (column, value, want) in [
            (column("tinyint(4)"), Value::Int(128), "holds -128 to 127"),
            (column("int unsigned"), Value::Int(-1), "holds 0 to 4294967295"),
            (column("float"), Value::Float(0.1), "a FLOAT would round"),
            (column("double"), Value::Float(f64::NAN), "NaN, which MySQL"),
            (column("double"), Value::Int(i64::MAX), "no float equals exactly"),
            (column("varchar(2)"), Value::from("äöü"), "2 characters"),
            (column("char(9)"), Value::from("a "), "ends in a space"),
            (column("tinytext"), Value::from("ä".repeat(128)), "column of 255 bytes"),
            (column("binary(3)"), Value::Bytes(vec![1]), "BINARY holds 3"),
            (column("decimal(9,2)"), Value::Decimal("1.005".into()), "2 decimal"),
            (column("datetime(3)"), time("2020-01-01T00:00:00.0001Z"), "3 digits"),
            (column("datetime(6)"), time("0999-12-31T00:00:00Z"), "the year 1000"),
        ] {
            let error = column.cell(&value).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
        }
    }

    #[test]
    fn what_fits_comes_back() {
        let time = |text: &str| Value::Time(text.parse().unwrap());
        for (column, value) in [
            (column("tinyint(1)"), Value::Bool(true)),
            (column("bigint(20)"), Value::Int(i64::MIN)),
            (column("bigint(20) unsigned"), Value::BigInt(u64::MAX.to_string().into())),
            (column("varchar(3)"), Value::from("äöü")),
            (column("decimal(9,2)"), Value::Decimal("1.50".into())),
            (column("datetime(6)"), time("1000-01-01T00:00:00.000001Z")),
            (column("datetime(6)"), time("9999-12-30T21:59:59.999999Z")),
        ] {
            let cell = column.cell(&value).unwrap();
            assert_eq!(column.value(cell).unwrap(), Some(value));
        }
    }
}
