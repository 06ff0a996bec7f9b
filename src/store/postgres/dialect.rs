//! Queries as PostgreSQL understands them.
//!
//! What lies under a path of a document is looked at as a number, a text or a boolean, by an
//! expression that is NULL for anything else: `CASE jsonb_typeof(x) WHEN 'number' THEN …`. Indexes
//! are made on the same expressions, so queries find them. Texts are compared by their bytes.

use crate::{
    Result,
    record::{Kind, Value},
    store::{
        query::{Order, Path, Test},
        sql::{Dialect, Sql, comparison, prefix},
    },
};

/// How queries are said to one table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Postgres {
    /// Columns, quoted, that are no text but compared as such.
    pub as_text: Vec<String>,
    /// The column of documents is JSON, but not of type `jsonb`.
    pub as_jsonb: bool,
}

/// A name, quoted.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a literal; `standard_conforming_strings` is on.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Postgres {
    /// What lies under a path. It does not reach into lists; no name has a NUL.
    fn under(&self, column: &str, path: &Path) -> String {
        if path.names().iter().any(|name| name.contains('\0')) {
            return "(NULL::jsonb)".into();
        }
        let mut text = match self.as_jsonb {
            true => format!("(CAST({column} AS jsonb)"),
            false => format!("({column}"),
        };
        for name in path.names() {
            text += " -> ";
            text += &literal(name);
        }
        text + ")"
    }

    /// What an index on a path is made on: the same that tests of such values ask for.
    pub fn indexed(&self, column: &str, path: &Path, kind: Kind) -> String {
        let under = self.under(column, path);
        match kind {
            Kind::Int | Kind::Float => number(&under),
            Kind::Bool => boolean(&under),
            _ => text(&under),
        }
    }
}

fn number(under: &str) -> String {
    format!("(CASE jsonb_typeof{under} WHEN 'number' THEN CAST({under} AS numeric) END)")
}

fn boolean(under: &str) -> String {
    format!("(CASE jsonb_typeof{under} WHEN 'boolean' THEN CAST({under} AS boolean) END)")
}

fn text(under: &str) -> String {
    format!("((CASE jsonb_typeof{under} WHEN 'string' THEN {under} #>> '{{}}' END) COLLATE \"C\")")
}

impl Dialect for Postgres {
    fn numbered(&self) -> bool {
        true
    }

    fn test(&self, column: &str, path: &Path, test: &Test, sql: &mut Sql) -> Result<()> {
        let under = self.under(column, path);
        match test {
            Test::Exists(true) => sql.push(&under).push(" IS NOT NULL"),
            Test::Exists(false) => sql.push(&under).push(" IS NULL"),
            Test::Eq(Value::Null) => sql.push(&format!("({under} IS NULL OR {under} = 'null')")),
            Test::Prefix(start) => {
                prefix(&text(&under), start, sql);
                sql
            }
            test => match comparison(test) {
                Some((operator, value)) => match value {
                    Value::Bool(_) => sql.push(&boolean(&under)).push(operator).bind(value.clone()),
                    Value::Int(_) | Value::Float(_) => {
                        sql.push(&number(&under)).push(operator).bind(value.clone())
                    }
                    Value::Text(_) => sql.push(&text(&under)).push(operator).bind(value.clone()),
                    // Times are text there.
                    Value::Time(time) => {
                        sql.push(&text(&under)).push(operator).bind(time.to_string().into())
                    }
                    _ => sql.push("1=0"),
                },
                None => sql,
            },
        };
        Ok(())
    }

    /// The order of `jsonb`, but that texts are compared by their bytes, whatever the collation of
    /// the database: as hexadecimal digits.
    fn sort_by(&self, column: &str, path: &Path) -> Result<String> {
        let under = self.under(column, path);
        Ok(format!(
            "CASE jsonb_typeof{under} WHEN 'null' THEN NULL WHEN 'string' THEN \
             to_jsonb(encode(convert_to({under} #>> '{{}}', 'UTF8'), 'hex')) ELSE {under} END"
        ))
    }

    fn nulls(&self, order: Order) -> &'static str {
        match order {
            Order::Ascending => " NULLS FIRST",
            Order::Descending => " NULLS LAST",
        }
    }

    fn by_bytes_of(&self, of: &str, column: &str) -> String {
        match self.as_text.iter().any(|name| name == column) {
            true => format!("CAST({of}{column} AS text) COLLATE \"C\""),
            false => format!("{of}{column} COLLATE \"C\""),
        }
    }

    fn text(&self, column: &str, path: &Path) -> Result<String> {
        Ok(text(&self.under(column, path)))
    }

    fn equals(&self, of: &str, column: &str, path: &Path, with: &str) -> Result<String> {
        Ok(format!("{} = {with}", text(&self.under(&format!("{of}{column}"), path))))
    }
}
