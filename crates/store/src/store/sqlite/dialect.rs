//! Queries as SQLite understands them.

use super::{
    column::{Affinity, Found, KeyColumn},
    times::{IS_TIME, in_order_of_time},
};
use crate::{
    Result,
    record::{Kind, Value},
    store::{
        Column,
        query::{Path, Test},
        sql::{By, Dialect, Sorting, Sql, comparison, key_test, prefix},
    },
};

/// How one table is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sqlite {
    /// The column of keys, where the table is known.
    pub key: Option<KeyColumn>,
    /// All columns, where the table has typed ones.
    pub columns: Vec<Found>,
}

impl Sqlite {
    fn found(&self, name: &str) -> Option<&Found> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// The path as SQLite writes it, as a literal of SQL: indexes are used only where the text of a
/// query is that of the index. Names in it are strings of JSON: with escapes they are compared with
/// what the escapes stand for.
pub(super) fn path_literal(path: &Path) -> String {
    let names = path.names().iter().map(|name| format!(".{}", serde_json::Value::from(&**name)));
    format!("'${}'", names.collect::<String>().replace('\'', "''"))
}

/// What an index on a path is made on, and queries ask for.
pub(super) fn extract(column: &str, path: &Path) -> String {
    format!("json_extract({column}, {})", path_literal(path))
}

impl Dialect for Sqlite {
    fn test(&self, column: &str, path: &Path, test: &Test, sql: &mut Sql) -> Result<()> {
        let value = extract(column, path);
        let kind = format!("json_type({column}, {})", path_literal(path));
        match test {
            Test::Exists(true) => sql.push(&kind).push(" IS NOT NULL"),
            Test::Exists(false) => sql.push(&kind).push(" IS NULL"),
            Test::Eq(Value::Null) => sql.push("coalesce(").push(&kind).push(", 'null') = 'null'"),
            Test::Eq(Value::Bool(true)) => sql.push(&kind).push(" = 'true'"),
            Test::Eq(Value::Bool(false)) => sql.push(&kind).push(" = 'false'"),
            Test::Prefix(start) => {
                sql.push("(");
                prefix(&value, start, sql);
                sql.push(" AND ").push(&kind).push(" = 'text')")
            }
            test => {
                let Some((operator, with)) = comparison(test) else { return Ok(()) };
                let (with, kinds) = match with {
                    Value::Int(_) | Value::Float(_) => (with.clone(), " IN ('integer','real')"),
                    Value::Text(_) => (with.clone(), " = 'text'"),
                    _ => {
                        sql.push("1=0");
                        return Ok(());
                    }
                };
                sql.push("(").push(&value).push(operator).bind(with);
                sql.push(" AND ").push(&kind).push(kinds).push(")")
            }
        };
        Ok(())
    }

    /// SQLite's own order of values puts `NULL` first and compares texts by their bytes.
    fn sort_by(&self, column: &str, path: &Path, _: Sorting) -> Result<Vec<By>> {
        Ok(vec![By::nullable(extract(column, path))])
    }

    fn text(&self, column: &str, path: &Path) -> Result<String> {
        let kind = format!("json_type({column}, {})", path_literal(path));
        Ok(format!("CASE {kind} WHEN 'text' THEN {} END", extract(column, path)))
    }

    fn equals(&self, of: &str, column: &str, path: &Path, text: &str) -> Result<String> {
        let (value, text) = (extract(&format!("{of}{column}"), path), self.plain(text));
        let kind = format!("json_type({of}{column}, {})", path_literal(path));
        Ok(format!("({value} = {text} AND {kind} = 'text')"))
    }

    fn compared(&self, column: &Column) -> String {
        let name = self.quote(&column.name);
        match (self.found(&column.name), column.kind) {
            (_, Kind::Time) => in_order_of_time(&name),
            (Some(found), _) if !found.binary => format!("{name} COLLATE BINARY"),
            _ => name,
        }
    }

    /// By the type of each value: a column's own says little.
    fn test_column(&self, column: &Column, test: &Test, sql: &mut Sql) -> bool {
        let Some(found) = self.found(&column.name) else { return false };
        let name = self.quote(&column.name);
        let key = self.key.as_ref().filter(|key| key.name == name);
        match key {
            Some(key) if key.is_any() => key_test(&key.as_text(""), test, sql),
            _ => Tested { found, name, test }.push(sql),
        }
        true
    }

    fn by_bytes_of(&self, of: &str, column: &str) -> String {
        if let Some(key) = self.key.as_ref().filter(|key| key.name == column) {
            return key.as_text(of);
        }
        let is_binary = |found: &&Found| found.binary && self.quote(&found.name) == column;
        match self.columns.is_empty() || self.columns.iter().any(|found| is_binary(&found)) {
            true => format!("{of}{column}"),
            false => format!("{of}{column} COLLATE BINARY"),
        }
    }

    /// Without the column's affinity: with it the other side would be made text first, and an index
    /// of that side could not answer.
    fn plain(&self, text: &str) -> String {
        format!("+({text})")
    }
}

/// A test of a column in which anything can be.
struct Tested<'t> {
    found: &'t Found,
    name: String,
    test: &'t Test,
}

impl Tested<'_> {
    /// Appends the test. Where it stands alone, an index on the column can answer.
    fn push(&self, sql: &mut Sql) {
        let Tested { name, test, .. } = self;
        match (test, comparison(test)) {
            (Test::Exists(true), _) => drop(sql.push(name).push(" IS NOT NULL")),
            (Test::Exists(false), _) | (Test::Eq(Value::Null), _) => {
                sql.push(name).push(" IS NULL");
            }
            (Test::Prefix(start), _) => {
                sql.push("(");
                prefix(&self.text(), start, sql);
                self.is_text(sql);
                sql.push(")");
            }
            (_, Some((operator, value))) => match value {
                Value::Int(_) | Value::Float(_) => self.number(operator, value, sql),
                Value::Text(text) => {
                    sql.push("(").push(&self.text()).push(operator).bind(text.as_str().into());
                    self.is_text(sql);
                    sql.push(")");
                }
                Value::Time(time) if self.found.kind == Kind::Time => {
                    let text = time.to_string();
                    let text = text.trim_end_matches('Z');
                    sql.push("(").push(&in_order_of_time(name)).push(operator).bind(text.into());
                    sql.push(&format!(" AND {IS_TIME}({name}))"));
                }
                Value::Bool(value) if self.found.kind == Kind::Bool => {
                    let value = i64::from(*value);
                    sql.push(&format!("({name} = {value} AND typeof({name}) = 'integer')"));
                }
                Value::Bytes(_) => drop(sql.push(name).push(operator).bind(value.clone())),
                _ => drop(sql.push("1=0")),
            },
            _ => drop(sql.push("1=0")),
        }
    }

    /// Numbers come before texts and blobs.
    fn number(&self, operator: &str, value: &Value, sql: &mut Sql) {
        let Tested { name, found, .. } = self;
        if found.affinity == Affinity::Text {
            sql.push("1=0");
            return;
        }
        sql.push("(").push(name).push(operator).bind(value.clone());
        if operator.contains('>') {
            sql.push(&format!(" AND typeof({name}) IN ('integer', 'real')"));
        }
        if found.kind == Kind::Bool {
            sql.push(&format!(" AND {name} NOT IN (0, 1)"));
        }
        sql.push(")");
    }

    /// The column as what texts are compared with: by bytes, and without what its affinity would make of them.
    fn text(&self) -> String {
        let plus = if self.found.affinity.makes_numbers() { "+" } else { "" };
        let by = if self.found.binary { "" } else { " COLLATE BINARY" };
        format!("{plus}{}{by}", self.name)
    }

    /// Appends that it is a text, where the comparison alone does not say so.
    fn is_text(&self, sql: &mut Sql) {
        let name = &self.name;
        if !matches!(self.test, Test::Eq(_)) {
            sql.push(&format!(" AND typeof({name}) = 'text'"));
        }
        if self.found.kind == Kind::Time {
            sql.push(&format!(" AND NOT {IS_TIME}({name})"));
        }
    }
}
