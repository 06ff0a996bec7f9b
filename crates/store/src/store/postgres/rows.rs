//! Records as rows, and back.

use tokio_postgres::{
    Row as PgRow,
    types::{FromSql, Type},
};

use super::{
    BLOB, DOCUMENT, jsonb, numeric,
    table::Schema,
    wire::{self, Bound, Raw, Wire},
};
use crate::{
    Error, ErrorKind, Result,
    record::{Document, Kind, Value, number},
    store::{
        Blob, Key, Row, Shape, blobs, same,
        sql::{
            Described, changed_record, kept, not_a_key, only_read,
            row::{about, of_field, of_key, whole},
        },
    },
};

/// The version of the binary format of `jsonb`.
const JSONB: u8 = 1;

/// What texts are to a column that goes as text: whether the database takes two for one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    /// Each for itself.
    Apart,
    /// Spaces at the end do not count, and do not come back.
    Padded,
    /// As numbers, or whatever the type makes of them.
    Alike,
}

/// A column, and how values go into it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub name: String,
    pub kind: Kind,
    pub wire: Wire,
    /// It is of the wire's own type; else values go as text, and are cast.
    pub direct: bool,
    /// Its type, without modifiers.
    pub type_name: String,
    /// Its type is a domain: another type, with rules.
    pub domain: bool,
    /// It is declared `NOT NULL`.
    pub not_null: bool,
    /// What its texts are to the database.
    pub texts: Texts,
    /// How long, or how exact: the type's modifier, -1 for none.
    typmod: i32,
}

impl Field {
    /// A column of a table that is made here.
    pub(super) fn new(name: &str, wire: Wire) -> Field {
        Field::of(name.to_owned(), wire.types().0.oid(), -1, String::new())
    }

    /// A column as the database describes it.
    pub(super) fn of(name: String, oid: u32, typmod: i32, type_name: String) -> Field {
        let known = Wire::of(oid);
        let wire = known.unwrap_or(Wire::Text);
        let kind = match wire {
            Wire::Bool => Kind::Bool,
            Wire::Int2 | Wire::Int4 | Wire::Int8 => Kind::Int,
            Wire::Float4 | Wire::Float8 => Kind::Float,
            Wire::Text | Wire::Uuid | Wire::Jsonb => Kind::Text,
            Wire::Bytea => Kind::Bytes,
            Wire::Timestamptz | Wire::Timestamp => Kind::Time,
            Wire::Numeric if typmod >= 4 && scale(typmod) == 0 => Kind::BigInt,
            Wire::Numeric => Kind::Decimal,
        };
        let (direct, texts) = (known.is_some(), Texts::Apart);
        let (domain, not_null) = (false, false);
        Field { name, kind, wire, direct, type_name, domain, not_null, texts, typmod }
    }

    /// The same as the key's column: what is no text, whole number or uuid is read as text.
    pub(super) fn into_key(mut self) -> Field {
        match self.wire {
            Wire::Text | Wire::Uuid | Wire::Int2 | Wire::Int4 | Wire::Int8 => {}
            Wire::Numeric if self.kind == Kind::BigInt => {
                (self.wire, self.direct) = (Wire::Text, false);
            }
            _ => {
                (self.wire, self.direct, self.kind) = (Wire::Text, false, Kind::Text);
                self.texts = Texts::Alike;
            }
        }
        self
    }

    /// The same as one of several columns, where JSON is a text as any other type's that has no counterpart.
    pub(super) fn into_column(mut self) -> Field {
        if self.wire == Wire::Jsonb {
            (self.wire, self.direct) = (Wire::Text, false);
        }
        self
    }

    /// Why no key can be written into the column, if none can.
    pub(super) fn only_read(&self) -> Option<String> {
        (self.texts == Texts::Alike)
            .then(|| format!("is of type {}, for which different texts are equal", self.type_name))
    }

    /// Appends the bytes of a key.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) where the key's column cannot hold it.
    pub(super) fn write_key(&self, key: &Key, out: &mut Vec<u8>) -> Result<()> {
        match self.wire {
            Wire::Text if memchr::memchr(0, key.as_bytes()).is_some() => {
                Err(Error::invalid("has a NUL, which PostgreSQL's text cannot hold"))
            }
            Wire::Text if self.texts == Texts::Padded && key.ends_with(' ') => Err(Error::invalid(
                "ends in a space, which its column of type character would lose",
            )),
            Wire::Text => {
                if self.kind == Kind::BigInt {
                    whole(key)?;
                }
                self.fits(&Value::Null, Some(key.as_str()))?;
                out.extend(key.as_bytes());
                Ok(())
            }
            Wire::Uuid => self.wire.write(&Value::from(key.as_str()), out),
            Wire::Int2 | Wire::Int4 | Wire::Int8 => match i64::try_from(whole(key)?) {
                Ok(number) => self.wire.write(&Value::Int(number), out),
                Err(_) => Err(Error::invalid("has more digits than the key's column holds")),
            },
            _ => Err(Error::invalid(format!(
                "cannot be in the key's column, which is of type {}",
                self.type_name
            ))),
        }
    }

    /// Appends a value as a field.
    ///
    /// # Errors
    /// Where the column cannot hold it as it is.
    fn write(&self, value: &Value, out: &mut Vec<u8>) -> Result<()> {
        if *value == Value::Null {
            wire::null(out);
            return Ok(());
        }
        self.fits(value, value.as_str())?;
        wire::field(out, |out| match self.wire {
            Wire::Jsonb => Err(Error::invalid("is in a column of documents; use ?layout=document")),
            wire => wire.write(value, out),
        })
    }

    /// The type's modifier: PostgreSQL would round, or cut spaces, without a word.
    fn fits(&self, value: &Value, text: Option<&str>) -> Result<()> {
        let modifier = match self.typmod {
            -1 => return Ok(()),
            modifier => modifier,
        };
        let too_large = |what: String| Err(Error::new(ErrorKind::TooLarge, what));
        match (self.wire, value, text) {
            (Wire::Text, _, Some(text)) => {
                let most = (modifier - 4).max(0) as usize;
                // Fewer bytes are fewer characters.
                let is_text = self.direct || self.texts == Texts::Padded;
                if is_text && text.len() > most && text.chars().count() > most {
                    return too_large(format!("is longer than its column, of {most} characters"));
                }
            }
            (Wire::Numeric, value, _) => {
                let Some(digits) = number::digits(value) else { return Ok(()) };
                let number = numeric::Digits::read(&digits)?;
                let (precision, scale) = ((modifier - 4) >> 16 & 0xffff, scale(modifier));
                // Of a negative scale, the last digits before the point are zeros.
                let is_kept = match u32::try_from(scale) {
                    Ok(scale) => number.fraction() as u32 <= scale,
                    Err(_) => {
                        number.fraction() == 0 && number.zeros() >= scale.unsigned_abs() as usize
                    }
                };
                if number.whole() as i32 > precision - scale {
                    return too_large(format!("has more than {} digits", precision - scale));
                }
                if !is_kept {
                    let what =
                        format!("is {digits}, which its column would round to {scale} digits");
                    return Err(Error::invalid(what));
                }
            }
            (Wire::Timestamptz | Wire::Timestamp, Value::Time(time), _) => {
                let unit = 10i64.pow(6 - modifier.clamp(0, 6) as u32);
                if wire::since_2000(*time).0 % unit != 0 {
                    let what = format!("is {time}, which its column would round");
                    return Err(Error::invalid(what));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Described for Field {
    fn name(&self) -> &str {
        &self.name
    }
    fn is_primary(&self) -> bool {
        false
    }
    fn kind(&self) -> Kind {
        self.kind
    }
    /// What becomes of a text, the cast says.
    fn changes(&self) -> Option<&str> {
        (!self.direct).then_some(&self.type_name)
    }
    fn refuses(&self) -> Option<&str> {
        (!self.direct || self.domain).then_some(&self.type_name)
    }
}

/// How many digits after the point a `numeric` has by its modifier: a number of 11 bits.
fn scale(modifier: i32) -> i32 {
    (((modifier - 4) & 0x7ff) ^ 1024) - 1024
}

/// What is written: a record or bytes, with a key.
pub(super) trait Entry: Sync {
    fn key(&self) -> &Key;

    /// Appends the fields of the body, each where `to` says.
    ///
    /// # Errors
    /// Where the table cannot hold it; the key is for the caller to add.
    fn write(&self, known: &Schema, to: &mut impl Target) -> Result<()>;

    /// Whether it has to be looked at after it was written: a column may change it.
    fn may_change(&self, known: &Schema) -> bool;

    /// Whether it is what a row has that was read after it was written.
    ///
    /// # Errors
    /// Where it is another; the key is for the caller to add.
    fn kept(&self, known: &Schema, row: &dyn Cells) -> Result<()>;

    /// Whether it is all that a row has which was read at the end of the transaction, where a trigger may have
    /// changed any of it.
    ///
    /// # Errors
    /// Where it is another; the key is for the caller to add.
    fn all_kept(&self, known: &Schema, row: &dyn Cells) -> Result<()>;

    /// What the server did not take of it, with the fields that may be meant.
    fn not_taken(&self, _known: &Schema, e: Error) -> Error {
        e
    }
}

/// Where fields go, by their number: the key is 0.
pub(super) trait Target {
    fn field(&mut self, i: usize) -> &mut Vec<u8>;
}

/// All in one: rows of `COPY`.
impl Target for Vec<u8> {
    fn field(&mut self, _: usize) -> &mut Vec<u8> {
        self
    }
}

/// Each column for itself: arrays.
impl Target for [Vec<u8>] {
    fn field(&mut self, i: usize) -> &mut Vec<u8> {
        &mut self[i]
    }
}

impl<T: Target + ?Sized> Target for &mut T {
    fn field(&mut self, i: usize) -> &mut Vec<u8> {
        (**self).field(i)
    }
}

impl Entry for Row {
    fn key(&self) -> &Key {
        &self.key
    }

    fn write(&self, known: &Schema, to: &mut impl Target) -> Result<()> {
        if known.fields.shape == Shape::Columns {
            return known.fields.write(&self.key, &self.record, |i, column, value| {
                column.write(value, to.field(i))
            });
        }
        let body = &known.fields.body[0];
        let mut length = 0;
        wire::field(to.field(1), |out| {
            if body.wire == Wire::Jsonb {
                out.push(JSONB);
            }
            let before = out.len();
            jsonb::write(&self.record, out)?;
            length = out.len() - before;
            Ok(())
        })?;
        blobs::fits(&DOCUMENT, &self.key, length)
    }

    fn may_change(&self, known: &Schema) -> bool {
        known.fields.shape == Shape::Columns && known.fields.may_change(&self.record)
    }

    fn kept(&self, known: &Schema, row: &dyn Cells) -> Result<()> {
        known.fields.kept(&self.record, &record(known, row)?)
    }

    fn all_kept(&self, known: &Schema, row: &dyn Cells) -> Result<()> {
        let got = record(known, row)?;
        match known.fields.shape {
            Shape::Columns => known.fields.all_kept(&self.record, &got),
            _ if same(&self.record, &got, DOCUMENT.keeps) => Ok(()),
            _ => Err(of_field(changed_record(), &known.fields.body[0].name)),
        }
    }

    fn not_taken(&self, known: &Schema, e: Error) -> Error {
        known.fields.not_taken(e, &self.record)
    }
}

impl Entry for Blob {
    fn key(&self) -> &Key {
        &self.key
    }

    fn write(&self, known: &Schema, to: &mut impl Target) -> Result<()> {
        blobs::fits(&BLOB, &self.key, self.bytes.len())?;
        let out = to.field(1);
        let body = &known.fields.body[0];
        match body.wire {
            Wire::Bytea => wire::field(out, |out| {
                out.extend(&self.bytes);
                Ok(())
            }),
            // A column of text, which bytes in Base64 and the like fit into.
            _ => match std::str::from_utf8(&self.bytes) {
                Ok(text) => body.write(&text.into(), out).map_err(|e| of_field(e, &body.name)),
                Err(_) => Err(Error::invalid(format!(
                    "column {:?} is text, but these bytes are not; use a text format, such as \
                     +base64",
                    body.name
                ))),
            },
        }
    }

    fn may_change(&self, known: &Schema) -> bool {
        known.fields.changing().next().is_some()
    }

    fn kept(&self, known: &Schema, row: &dyn Cells) -> Result<()> {
        let text = |bytes: &[u8]| Value::Text(String::from_utf8_lossy(bytes).into_owned());
        let (body, got) = (&known.fields.body[0], bytes(known, row)?);
        kept(body, &text(&self.bytes), Some(&text(&got))).map_err(|e| of_field(e, &body.name))
    }

    fn all_kept(&self, known: &Schema, row: &dyn Cells) -> Result<()> {
        match bytes(known, row)? == self.bytes {
            true => Ok(()),
            false => Err(of_field(changed_record(), &known.fields.body[0].name)),
        }
    }
}

/// Appends all fields of an entry, the key first.
///
/// # Errors
/// Where the table cannot hold it, naming the key.
pub(super) fn write(known: &Schema, entry: &impl Entry, mut to: impl Target) -> Result<()> {
    let key = entry.key();
    if let Some(why) = &known.only_read {
        return Err(only_read(&known.table, why));
    }
    blobs::fits(&DOCUMENT, key, 0)?;
    wire::field(to.field(0), |out| known.fields.key.write_key(key, out))
        .map_err(|e| of_key(e, key))?;
    entry.write(known, &mut to).map_err(|e| about(e, key))
}

/// How many bytes a field has room for before anything is known of it: a small document.
const ROOM: usize = 256;

/// Rows as arrays, a column each.
pub(super) struct Columns {
    pub rows: usize,
    fields: Vec<Vec<u8>>,
}

impl Columns {
    pub(super) fn new(known: &Schema) -> Columns {
        Columns {
            rows: 0,
            fields: (0..=known.fields.body.len()).map(|_| Vec::with_capacity(ROOM)).collect(),
        }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// As [`write`]; what was appended is then of no use.
    pub(super) fn push(&mut self, known: &Schema, entry: &impl Entry) -> Result<()> {
        self.rows += 1;
        write(known, entry, &mut self.fields[..])
    }

    /// How many bytes it has.
    pub(super) fn size(&self) -> usize {
        self.fields.iter().map(Vec::len).sum()
    }

    /// As bound values: arrays, or, of one row, its fields.
    pub(super) fn bound(self, known: &Schema) -> Vec<(Type, Bound)> {
        let wires = known.fields.all().map(|field| field.wire);
        let bound = |(wire, fields): (Wire, Vec<u8>)| {
            let (one, many) = wire.types();
            match self.rows {
                1 => (one, Bound::One(fields)),
                rows => (many, Bound::Many(one, rows, fields)),
            }
        };
        wires.zip(self.fields).map(bound).collect()
    }
}

/// A value that a query compares with, bound.
///
/// # Errors
/// None for what [`LIMITS`](super::dialect::LIMITS) leaves.
pub(super) fn compared(value: &Value, in_document: bool) -> Result<(Type, Bound)> {
    if let Value::Map(part) = value {
        let mut field = Vec::new();
        wire::field(&mut field, |out| {
            out.push(JSONB);
            jsonb::write(part, out)
        })?;
        return Ok((Type::JSONB, Bound::One(field)));
    }
    let wire = match value {
        Value::Int(_) | Value::Float(_) if in_document => Wire::Numeric,
        Value::BigInt(_) | Value::Decimal(_) => Wire::Numeric,
        Value::Int(_) => Wire::Int8,
        Value::Float(_) => Wire::Float8,
        Value::Bool(_) => Wire::Bool,
        Value::Bytes(_) => Wire::Bytea,
        Value::Time(_) => Wire::Timestamptz,
        _ => Wire::Text,
    };
    let mut field = Vec::new();
    wire::field(&mut field, |out| wire.write(value, out))?;
    Ok((wire.types().0, Bound::One(field)))
}

/// A row, whoever read it.
pub(super) trait Cells {
    /// The bytes of a cell, by its number; none for NULL.
    ///
    /// # Errors
    /// Where there is no such cell.
    fn cell(&self, i: usize) -> Result<Option<&[u8]>>;

    /// How many cells there are.
    fn width(&self) -> usize;

    /// How many bytes its cells have.
    fn size(&self) -> usize {
        let cell = |i| self.cell(i).ok().flatten().map_or(0, <[u8]>::len);
        (0..self.width()).map(cell).sum()
    }
}

/// A row that outlives the answer it came in: for what is asked about the server and its tables.
#[derive(Debug)]
pub(super) struct Held(Vec<Option<Vec<u8>>>);

impl Held {
    /// A copy of a row.
    ///
    /// # Errors
    /// Where it is no row.
    pub(super) fn of(row: &dyn Cells) -> Result<Held> {
        let cell = |i| Ok(row.cell(i)?.map(<[u8]>::to_vec));
        (0..row.width()).map(cell).collect::<Result<_>>().map(Held)
    }

    /// A cell as a value of Rust's.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed) where it is no such value.
    pub(super) fn try_get<T: for<'a> FromSql<'a>>(&self, i: usize) -> Result<T> {
        let wrong = |e| Error::malformed(format!("column {i} of the server's answer: {e}"));
        T::from_sql_nullable(&Type::TEXT, self.cell(i)?).map_err(wrong)
    }

    /// The same, for tests.
    #[cfg(test)]
    pub(super) fn get<T: for<'a> FromSql<'a>>(&self, i: usize) -> T {
        self.try_get(i).unwrap()
    }
}

impl Cells for Held {
    fn cell(&self, i: usize) -> Result<Option<&[u8]>> {
        match self.0.get(i) {
            Some(cell) => Ok(cell.as_deref()),
            None => Err(Error::malformed("a row with fewer columns than requested")),
        }
    }

    fn width(&self) -> usize {
        self.0.len()
    }
}

impl Cells for PgRow {
    fn width(&self) -> usize {
        self.len()
    }

    fn cell(&self, i: usize) -> Result<Option<&[u8]>> {
        let Raw(bytes) = self.try_get(i).map_err(super::error::error)?;
        Ok(bytes)
    }
}

/// The key of a row that was read by [`what`](super::table::Statements::what).
pub(super) fn key_of(known: &Schema, row: &dyn Cells) -> Result<Key> {
    let no = |is| not_a_key(&known.table.key, is);
    let bytes = row.cell(0)?.ok_or_else(|| no("NULL"))?;
    match simdutf8::basic::from_utf8(bytes) {
        Ok("") => Err(no("an empty text")),
        Ok(text) => Key::new(text),
        Err(_) => Err(no("text that is not UTF-8")),
    }
}

/// The bytes of a row of layout blob.
pub(super) fn bytes(known: &Schema, row: &dyn Cells) -> Result<Vec<u8>> {
    match row.cell(1)? {
        Some(bytes) => Ok(bytes.to_vec()),
        None => Err(Error::malformed(format!(
            "key {}: NULL instead of bytes",
            key_of(known, row)?.shown()
        ))),
    }
}

/// The record of a row.
pub(super) fn record(known: &Schema, row: &dyn Cells) -> Result<Document> {
    let named = |e: Error| match key_of(known, row) {
        Ok(key) => about(e, &key),
        Err(_) => e,
    };
    if known.fields.shape != Shape::Columns {
        let Some(bytes) = row.cell(1)? else {
            return Err(named(Error::malformed("NULL instead of a document")));
        };
        let json = match known.fields.body[0].wire {
            Wire::Jsonb => bytes.get(1..).unwrap_or_default(),
            _ => bytes,
        };
        return jsonb::read(json).map_err(named);
    }
    known.fields.read(
        || key_of(known, row),
        |i, field| {
            let Some(bytes) = row.cell(i + 1)? else { return Ok(None) };
            let bytes = match field.wire {
                Wire::Jsonb => bytes.get(1..).unwrap_or_default(),
                _ => bytes,
            };
            field.wire.read(field.kind, bytes).map(Some).map_err(named)
        },
    )
}

/// The row of a record.
pub(super) fn row(known: &Schema, row: &dyn Cells) -> Result<Row> {
    Ok(Row { key: key_of(known, row)?, record: record(known, row)? })
}
