//! Queries as SQLite understands them.

use crate::{
    Result,
    record::Value,
    store::{
        query::{Path, Test},
        sql::{By, Dialect, Sorting, Sql, comparison, prefix},
    },
};

pub struct Sqlite;

/// The path as SQLite writes it, as a literal of SQL: indexes are used only where the text of a
/// query is that of the index. Names in it are strings of JSON: with escapes they are compared with
/// what the escapes stand for.
pub fn path_literal(path: &Path) -> String {
    let names = path.names().iter().map(|name| format!(".{}", serde_json::Value::from(&**name)));
    format!("'${}'", names.collect::<String>().replace('\'', "''"))
}

/// What an index on a path is made on, and queries ask for.
pub fn extract(column: &str, path: &Path) -> String {
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
                    // Times are text there.
                    Value::Time(time) => (Value::Text(time.to_string()), " = 'text'"),
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

    /// Without the column's affinity: with it the other side would be made text first, and an index
    /// of that side could not answer.
    fn plain(&self, text: &str) -> String {
        format!("+({text})")
    }
}
