//! Queries as MySQL and MariaDB understand them.
//!
//! What a JSON value is, `JSON_TYPE` tells; its text, `JSON_VALUE` (MariaDB) or `JSON_UNQUOTE`.
//! Traps, each met by what is done here:
//!
//! - Text from JSON compares in a collation that ignores spaces at the end, so each comparison names
//!   one that does not.
//! - A cast of text that is no number is an error in `DELETE` and a warning in `SELECT`, so casts
//!   stand behind a `CASE`.
//! - MariaDB's `JSON_EXTRACT` knows no two ways to write a name: one with odd characters is found as
//!   usual writers of JSON write it (`\n`, `\u0001`, all beyond ASCII as it is).
//! - MariaDB calls `1e2` an integer, and casts it to 1; only digits count as a whole number.

use crate::{
    Error, Result,
    record::{Kind, Value, number},
    store::{
        Column, Index, Query,
        query::{Path, Test},
        sql::{
            self, By, Sorting, Sql, comparison,
            exact::{Bound, Limits, Operator},
            index::column_name,
            prefix,
        },
    },
};

/// What columns and documents can hold, as far as it matters to comparisons: whole numbers with a sign and
/// without, finite floats, times from the year 1 on.
pub(super) const LIMITS: Limits = Limits {
    whole: i64::MIN as i128..=u64::MAX as i128,
    infinite: false,
    digits: Some((65, 30)),
    first: -62_135_596_800_000_000,
    nul: true,
};

/// Whether comparing anything with this number as two floats is exact: all whole numbers up to here
/// are floats, and those beyond stay beyond when they are rounded.
fn is_small(value: &Value) -> bool {
    const SMALL: f64 = (1u64 << 53) as f64;
    match value {
        Value::Int(n) => n.unsigned_abs() < 1 << 53,
        Value::Float(v) => v.abs() < SMALL,
        _ => false,
    }
}

/// How one table is asked.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    pub maria: bool,
    /// The collation that compares by bytes.
    pub collation: &'static str,
    /// Columns, quoted, that do not compare by bytes themselves.
    pub inexact: Vec<String>,
    /// Columns, quoted, that are numbers only in a sum.
    pub summed: Vec<String>,
    /// The names of the generated columns that are there, with indexes on them.
    pub indexed: Vec<String>,
}

/// What of a value an index is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// The number, as a float.
    Number,
    /// The beginning of the text.
    Text,
}

/// What the names of columns for indexes begin with.
pub(super) const GENERATED: [&str; 2] = ["_number:", "_text:"];

impl On {
    /// The name of the column for an index on a path.
    pub(super) fn column(self, path: &Path) -> String {
        column_name(GENERATED[self as usize], path)
    }

    /// Both.
    pub(super) const ALL: [On; 2] = [On::Number, On::Text];

    /// Whether an index holds all of a value that its order needs: not the end of a long text, not a
    /// whole number beyond those that are floats, and nothing of a value of another kind, all of which
    /// it has among those that are missing.
    pub(super) fn holds(self, value: Option<&Value>) -> bool {
        match (self, value) {
            (_, None | Some(Value::Null)) => true,
            (On::Number, Some(value)) => is_small(value),
            (On::Text, Some(Value::Text(text))) => is_short(text),
            (On::Text, Some(_)) => false,
        }
    }

    /// What an index for values of a kind is on.
    pub(super) fn kind(kind: Kind) -> On {
        match kind {
            Kind::Int | Kind::Float => On::Number,
            _ => On::Text,
        }
    }
}

/// How many characters of a text an index holds: all engines can have that many.
pub(super) const INDEXED_CHARS: usize = 191;

/// A name in backquotes.
pub(super) fn quote(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Text as a literal of SQL.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' => out += "''",
            '\\' => out += "\\\\",
            '\0' => out += "\\0",
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Whether the server finds what lies under a path: MariaDB takes a name that begins with `-` for
/// something else, quotes or not.
fn check_path(path: &Path) -> Result<()> {
    match path.names().iter().find(|name| name.starts_with('-')) {
        None => Ok(()),
        Some(name) => {
            Err(Error::unsupported(format!("MariaDB cannot look under the name {name:?}")))
        }
    }
}

fn path_literal(path: &Path) -> String {
    let mut text = String::from("$");
    for name in path.names() {
        text.push('.');
        text += &serde_json::to_string(name).expect("text is always JSON");
    }
    literal(&text)
}

/// What of a document lies under a path, as expressions.
struct Json {
    /// The value as JSON; `NULL` where it is not there.
    value: String,
    /// What it is, in a word of the server's.
    kind: String,
    /// Its text, without quotes.
    text: String,
}

const NUMBERS: &str = "('INTEGER', 'DOUBLE', 'UNSIGNED INTEGER', 'DECIMAL')";
const WHOLE: &str = "('INTEGER', 'UNSIGNED INTEGER')";

impl Json {
    fn new(maria: bool, column: &str, path: &Path) -> Json {
        let path = path_literal(path);
        let value = format!("JSON_EXTRACT({column}, {path})");
        let text = match maria {
            true => format!("JSON_VALUE({column}, {path})"),
            false => format!("JSON_UNQUOTE({value})"),
        };
        Json { kind: format!("JSON_TYPE({value})"), text, value }
    }

    /// The number as a float; `NULL` where it is none.
    fn number(&self) -> String {
        let Json { kind, text, .. } = self;
        format!("CASE WHEN {kind} IN {NUMBERS} THEN CAST({text} AS DOUBLE) END")
    }

    /// The condition that it is a whole number written in digits.
    fn is_whole(&self) -> String {
        let Json { kind, text, .. } = self;
        format!("{kind} IN {WHOLE} AND {text} REGEXP '^-?[0-9]{{1,30}}$'")
    }
}

impl Dialect {
    /// A test of a column of booleans with a number: there may be others than 0 and 1, which booleans are.
    fn test_boolean(&self, column: &Column, test: &Test, sql: &mut Sql) -> bool {
        let Some((operator, value)) = comparison(test).filter(|of| number::is_number(of.1)) else {
            return false;
        };
        let name = quote(&column.name);
        sql.push(&format!("({name} NOT IN (0, 1) AND {name}{operator}"));
        sql::Dialect::bind_compared(self, value.clone(), sql);
        sql.push(")");
        true
    }

    fn is_summed(&self, column: &str) -> bool {
        self.summed.iter().any(|summed| summed == column)
    }

    /// The definition of the column that an index on a path of a document needs.
    pub(super) fn generated(&self, column: &str, index: &Index) -> String {
        let json = Json::new(self.maria, column, &index.path);
        match On::kind(index.kind) {
            On::Number => format!("DOUBLE AS ({})", json.number()),
            On::Text => {
                let (kind, text, collation) = (json.kind, json.text, self.collation);
                format!(
                    "VARCHAR({INDEXED_CHARS}) CHARACTER SET utf8mb4 COLLATE {collation} AS (CASE \
                     WHEN {kind} = 'STRING' THEN LEFT({text}, {INDEXED_CHARS}) END)"
                )
            }
        }
    }

    /// The same for a column of text, quoted, whose own index could hold only beginnings and so has not
    /// the order of the texts.
    pub(super) fn generated_of(&self, column: &str) -> String {
        let (text, collation) = (sql::Dialect::by_bytes(self, column), self.collation);
        format!(
            "VARCHAR({INDEXED_CHARS}) CHARACTER SET utf8mb4 COLLATE {collation} AS (LEFT({text}, \
             {INDEXED_CHARS}))"
        )
    }

    /// The column, quoted, whose index is on this.
    fn index(&self, path: &Path, on: On) -> Option<String> {
        let name = on.column(path);
        self.indexed.contains(&name).then(|| quote(&name))
    }

    /// The path that a query is sorted by, if it is a single one of documents that has an index, and
    /// what the index is on.
    pub(super) fn sorted_by_index<'q>(&self, query: &'q Query) -> Option<(&'q Path, On)> {
        let [(path, _)] = &*query.sort else { return None };
        let on = On::ALL.into_iter().find(|on| self.index(path, *on).is_some())?;
        Some((path, on))
    }

    fn number(&self, json: &Json, path: &Path, operator: Operator, with: &Value, sql: &mut Sql) {
        let index = self.index(path, On::Number);
        let push = |sql: &mut Sql, bound: Bound<Value>| match bound {
            Bound::All => drop(sql.push("1=1")),
            Bound::None => drop(sql.push("1=0")),
            Bound::Is(operator, value) => drop(sql.push(operator.sql()).bind(value)),
        };
        let floats = LIMITS.for_floats(operator, with);
        if is_small(with)
            && let Bound::Is(operator, value) = floats
        {
            sql.push("(").push(&index.unwrap_or_else(|| json.number()));
            push(sql, Bound::Is(operator, Value::Float(value)));
            sql.push(")");
            return;
        }
        sql.push("(");
        if let (Some(index), Bound::Is(operator, value)) = (index, near(operator, with)) {
            sql.push(&index);
            push(sql, Bound::Is(operator, Value::Float(value)));
            sql.push(" AND ");
        }
        let Json { kind, text, .. } = json;
        sql.push("CASE WHEN ").push(&json.is_whole()).push(" THEN ");
        let ints = match LIMITS.for_ints(operator, with) {
            Bound::All => Bound::All,
            Bound::None => Bound::None,
            Bound::Is(operator, n) => {
                sql.push(&format!("CAST({text} AS DECIMAL(30,0))"));
                Bound::Is(operator, Value::from_integer(n))
            }
        };
        push(sql, ints);
        sql.push(&format!(" WHEN {kind} IN {NUMBERS} THEN "));
        let floats = match floats {
            Bound::All => Bound::All,
            Bound::None => Bound::None,
            Bound::Is(operator, v) => {
                sql.push(&format!("CAST({text} AS DOUBLE)"));
                Bound::Is(operator, Value::Float(v))
            }
        };
        push(sql, floats);
        sql.push(" END)");
    }

    /// A comparison of the text under a path; `whole` is the condition that it is one, and the text.
    fn text(&self, path: &Path, whole: &str, operator: Operator, with: &str, sql: &mut Sql) {
        let start: String = with.chars().take(INDEXED_CHARS).collect();
        if let Some(index) = self.index(path, On::Text) {
            // The index holds whole texts if they are shorter, and those that are not compare the
            // same by their beginnings.
            if is_short(with) {
                sql.push(&index).push(operator.sql()).bind(Value::from(with));
                return;
            }
            sql.push("(").push(&index).push(operator.or_equal().sql()).bind(Value::from(start));
            sql.push(" AND ");
        } else {
            sql.push("(");
        }
        sql.push(whole).push(operator.sql()).bind(Value::from(with)).push(")");
    }

    /// The condition that the text of `b` under a path is this one, by the index on it.
    fn equals_by(&self, index: &str, text: &str, with: &str) -> String {
        format!(
            "({index} = LEFT({with}, {INDEXED_CHARS}) AND (CHAR_LENGTH({with}) < {INDEXED_CHARS} OR \
             {text} = {with}))"
        )
    }

    /// What to sort by after the number.
    fn sort_then(&self, json: &Json) -> [String; 2] {
        let (kind, text) = (&json.kind, self.by_bytes_in(&json.text));
        // What is neither comes after what is null.
        let texts = format!(
            "CASE WHEN {kind} IN ('STRING', 'BOOLEAN') THEN {text} WHEN {kind} IN ('OBJECT', \
             'ARRAY') THEN '' END"
        );
        // Whole numbers that are equal only as floats.
        let (text, whole) = (&json.text, json.is_whole());
        let float = format!("CAST({text} AS DOUBLE)");
        let exact = format!(
            "CASE WHEN {kind} NOT IN {NUMBERS} THEN NULL WHEN ABS({float}) < 9007199254740992 THEN \
             NULL WHEN {whole} THEN CAST({text} AS DECIMAL(30,0)) WHEN {float} >= \
             9223372036854775808 THEN 9223372036854775808 ELSE CAST({float} AS SIGNED) END"
        );
        [texts, exact]
    }

    fn is_text(&self, json: &Json) -> String {
        format!("{} = 'STRING'", json.kind)
    }

    fn by_bytes_in(&self, text: &str) -> String {
        match self.maria {
            true => format!("{text} COLLATE {}", self.collation),
            // What comes out of JSON is utf8mb4 there, too, but not known to be.
            false => format!("CONVERT({text} USING utf8mb4) COLLATE {}", self.collation),
        }
    }
}

/// Whether an index holds the whole of a text.
fn is_short(text: &str) -> bool {
    text.chars().nth(INDEXED_CHARS - 1).is_none()
}

/// What is true of the rounded numbers wherever the comparison is true.
fn near(operator: Operator, with: &Value) -> Bound<f64> {
    let float = match with {
        Value::Int(n) => *n as f64,
        Value::Float(v) => *v,
        Value::BigInt(text) | Value::Decimal(text) => text.parse().unwrap_or(f64::NAN),
        _ => return Bound::All,
    };
    match float.is_finite() {
        true => Bound::Is(operator.or_equal(), float),
        false => Bound::All,
    }
}

impl sql::Dialect for Dialect {
    fn quote(&self, name: &str) -> String {
        quote(name)
    }

    fn any_digits(&self) -> bool {
        true
    }

    /// A decimal as one: compared with text, the column would be a float.
    fn bind_compared(&self, value: Value, sql: &mut Sql) {
        match &value {
            Value::Decimal(text) => {
                let places = text.split_once('.').map_or(0, |(_, after)| after.len());
                sql.push("CAST(").bind(value).push(&format!(" AS DECIMAL(65,{places}))"));
            }
            _ => drop(sql.bind(value)),
        }
    }

    fn test(&self, column: &str, path: &Path, test: &Test, sql: &mut Sql) -> Result<()> {
        check_path(path)?;
        let json = Json::new(self.maria, column, path);
        match test {
            Test::Exists(true) => sql.push(&json.value).push(" IS NOT NULL"),
            Test::Exists(false) => sql.push(&json.value).push(" IS NULL"),
            Test::Eq(Value::Null) => {
                sql.push("COALESCE(").push(&json.kind).push(", 'NULL') = 'NULL'")
            }
            Test::Eq(Value::Bool(wanted)) => {
                let word = if *wanted { "'true'" } else { "'false'" };
                sql.push("(").push(&json.kind).push(" = 'BOOLEAN' AND JSON_UNQUOTE(");
                sql.push(&json.value).push(") = ").push(word).push(")")
            }
            Test::Prefix(start) => {
                if let (Some(index), true) = (self.index(path, On::Text), is_short(start)) {
                    prefix(&index, start, sql);
                    return Ok(());
                }
                sql.push("(").push(&self.is_text(&json)).push(" AND ");
                prefix(&self.by_bytes_in(&json.text), start, sql);
                sql.push(")")
            }
            test => {
                let Some((operator, with)) = Operator::of(test) else {
                    debug_assert!(comparison(test).is_none());
                    return Err(Error::unsupported("a test that MySQL is not taught yet"));
                };
                match with {
                    Value::Int(_) | Value::BigInt(_) | Value::Float(_) | Value::Decimal(_) => {
                        self.number(&json, path, operator, with, sql);
                    }
                    Value::Text(with) => {
                        let is = self.is_text(&json);
                        let whole = format!("{is} AND {}", self.by_bytes_in(&json.text));
                        self.text(path, &whole, operator, with, sql);
                    }
                    _ => drop(sql.push("1=0")),
                }
                return Ok(());
            }
        };
        Ok(())
    }

    /// Where there is an index on the path, its column comes first: what the rest then decides are
    /// values that the index does not hold whole (see [`On::holds`]).
    fn sort_by(&self, column: &str, path: &Path, how: Sorting) -> Result<Vec<By>> {
        check_path(path)?;
        let index = On::ALL.into_iter().find_map(|on| Some((on, self.index(path, on)?)));
        let json = Json::new(self.maria, column, path);
        let mut by = match (index, how) {
            (Some((_, index)), Sorting::ByIndex) => return Ok(vec![By::nullable(index)]),
            (Some((On::Number, index)), Sorting::Exact) => vec![index],
            (Some((On::Text, index)), Sorting::Exact) => vec![index, json.number()],
            (None, _) => vec![json.number()],
        };
        by.extend(self.sort_then(&json));
        Ok(by.into_iter().map(By::nullable).collect())
    }

    fn sort_by_column(&self, column: &Column, how: Sorting) -> Vec<By> {
        let name = quote(&column.name);
        let index = self.index(&Path::new([&*column.name]), On::Text);
        let by = match (index, how, column.kind) {
            (Some(index), Sorting::ByIndex, _) => vec![index],
            (Some(index), Sorting::Exact, _) => vec![index, self.by_bytes(&name)],
            (None, _, Kind::Text) => vec![self.by_bytes(&name)],
            (None, ..) => vec![name],
        };
        by.into_iter().map(By::nullable).collect()
    }

    fn test_column(&self, column: &Column, test: &Test, sql: &mut Sql) -> bool {
        if column.kind == Kind::Bool {
            return self.test_boolean(column, test, sql);
        }
        if column.kind != Kind::Text {
            return false;
        }
        let path = Path::new([&*column.name]);
        let Some(index) = self.index(&path, On::Text) else { return false };
        match (test, Operator::of(test)) {
            (Test::Prefix(start), _) if is_short(start) => prefix(&index, start, sql),
            (_, Some((operator, Value::Text(with)))) => {
                let whole = self.by_bytes(&quote(&column.name));
                self.text(&path, &whole, operator, with, sql);
            }
            _ => return false,
        }
        true
    }

    fn moment(&self, column: &Column) -> Option<(String, String)> {
        let name = quote(&column.name);
        let is = format!(
            "({name} >= '0001-01-01' AND {name} < '9999-12-30 22:00:01' AND MONTH({name}) > 0 AND \
             DAYOFMONTH({name}) > 0)"
        );
        let text =
            format!("CONVERT(CAST({name} AS CHAR) USING utf8mb4) COLLATE {}", self.collation);
        Some((is, text))
    }

    fn equals_column(&self, of: &str, column: &Column, with: &str) -> Option<String> {
        let index = self.index(&Path::new([&*column.name]), On::Text)?;
        let text = self.by_bytes_of(of, &quote(&column.name));
        Some(self.equals_by(&format!("{of}{index}"), &text, with))
    }

    fn by_bytes_of(&self, of: &str, column: &str) -> String {
        let plus = if self.is_summed(column) { " + 0" } else { "" };
        match self.inexact.iter().any(|inexact| inexact == column) {
            true => format!("CONVERT({of}{column}{plus} USING utf8mb4) COLLATE {}", self.collation),
            false => format!("{of}{column}"),
        }
    }

    fn compared(&self, column: &Column) -> String {
        let name = quote(&column.name);
        match column.kind {
            Kind::Text => self.by_bytes(&name),
            _ if self.is_summed(&name) => format!("({name} + 0)"),
            _ => name,
        }
    }

    fn text(&self, column: &str, path: &Path) -> Result<String> {
        check_path(path)?;
        let json = Json::new(self.maria, column, path);
        let (is, text) = (self.is_text(&json), self.by_bytes_in(&json.text));
        Ok(format!("CASE WHEN {is} THEN {text} END"))
    }

    fn equals(&self, of: &str, column: &str, path: &Path, with: &str) -> Result<String> {
        check_path(path)?;
        let json = Json::new(self.maria, &format!("{of}{column}"), path);
        let (is, text) = (self.is_text(&json), self.by_bytes_in(&json.text));
        Ok(match self.index(path, On::Text) {
            // The index holds the beginnings of texts, and whole ones that are shorter.
            Some(index) => self.equals_by(&format!("{of}{index}"), &text, with),
            None => format!("({is} AND {text} = {with})"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::query::compare;

    proptest! {
        #[test]
        fn a_small_number_compares_the_same_as_a_float(
            n in prop_oneof![any::<i64>(), -3i64..3, (1i64 << 53) - 3..(1i64 << 53) + 3],
            with in prop_oneof![any::<i64>().prop_map(|n| n >> 8), (1i64 << 53) - 3..(1i64 << 53) + 3],
            part in prop_oneof![Just(0.0), Just(0.5)],
        ) {
            for with in [Value::Int(with), Value::Float(with as f64 + part)] {
                let as_float = compare(&Value::Float(n as f64), &with);
                prop_assert!(!is_small(&with) || as_float == compare(&Value::Int(n), &with));
            }
        }
    }
}
