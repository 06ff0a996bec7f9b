//! Queries as PostgreSQL understands them.
//!
//! What lies under a path of a document is looked at in three ways ([`Ways`]): as a number, as a text,
//! and as anything else. Each is an expression that is NULL for values that are not of that kind.
//! Sorted by all three, values of any kind are in order, and an index on the three and the key answers
//! every comparison and every order of the path:
//!
//! ```sql
//! CREATE INDEX ON t (number NULLS FIRST, text NULLS FIRST, other NULLS FIRST, "_key")
//! SELECT ... WHERE number >= 90
//! SELECT ... WHERE number IS NULL AND text = 'x'
//! SELECT ... ORDER BY number NULLS FIRST, text NULLS FIRST, other NULLS FIRST, "_key" LIMIT 20
//! ```
//!
//! Texts are compared by their bytes.
//!
//! Of these expressions the planner knows how many values fit only where an index is made on them: then
//! `ANALYZE` looks at them. Without one it supposes that one in 200 fits each, one in 40,000 both. So a
//! test of a path without an index is said in one condition, and equality by what the column's own
//! statistics can answer: `record @> '{"status": "open"}'`, which is tried on the documents that `ANALYZE`
//! kept. (It keeps none of more than 1 KB; of those the planner supposes that one in 100 fits.)

use std::borrow::Cow;

use super::wire::{AFTER_ALL, EPOCH, FIRST};
use crate::{
    Result,
    record::{Document, Kind, Value, number},
    store::{
        Column,
        query::{Order, Path, Test},
        sql::{
            By, Dialect, Sorting, Sql, comparison,
            exact::Limits,
            index::{SHARED, index_name, shared_index_name, tenant},
            prefix, quote,
        },
    },
};

/// What columns can hold, as far as it matters to comparisons. There is no NUL in any text, also of documents.
pub(super) const LIMITS: Limits = Limits {
    whole: i64::MIN as i128..=i64::MAX as i128,
    infinite: true,
    digits: None,
    first: FIRST + EPOCH,
    nul: false,
};

/// How queries are said to one table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Postgres {
    /// Columns, quoted, that are no text but compared as such.
    pub as_text: Vec<String>,
    /// The column of documents is JSON, but not of type `jsonb`.
    pub as_jsonb: bool,
    /// Columns, as they are called, that cannot be NULL.
    pub not_null: Vec<String>,
    /// The table, and the column of documents, quoted.
    pub table: String,
    pub body: String,
    /// The key as text, in whose order keys are.
    pub key: String,
    /// The names of the table's indexes.
    pub indexes: Vec<String>,
}

/// A text as a literal; `standard_conforming_strings` is on.
pub(super) fn literal(text: &str) -> String {
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

    /// The ways in which what lies under a path is looked at.
    fn ways(&self, column: &str, path: &Path) -> Ways {
        let under = self.under(column, path);
        Ways {
            number: format!(
                "(CASE jsonb_typeof{under} WHEN 'number' THEN CAST({under} AS numeric) END)"
            ),
            text: text(&under),
            other: format!(
                "(CASE jsonb_typeof{under} WHEN 'object' THEN 1 WHEN 'array' THEN 2 WHEN 'boolean' \
                 THEN CASE WHEN {under} = 'true' THEN {TRUE} ELSE {FALSE} END END)"
            ),
        }
    }

    /// The columns of an index on a path of documents, without the key.
    pub(super) fn indexed(&self, column: &str, path: &Path) -> Vec<By> {
        let Ways { number, text, other } = self.ways(column, path);
        vec![By::nullable(number), By::nullable(text), By::nullable(other)]
    }

    /// Whether documents have an index of steelyard's making on a path.
    fn has_index(&self, path: &Path) -> bool {
        if self.indexes.is_empty() {
            return false;
        }
        let mut by = self.indexed(&self.body, path);
        by.push(By::never_null(self.key.clone()));
        let on = on(&by);
        self.indexes.contains(&index_name(&self.table, path, &on))
            || self.indexes.contains(&shared_index_name(&self.table, path, &on))
    }

    /// Whether indexes begin with what is under this path, as a text alone.
    fn is_first(&self, path: &Path) -> bool {
        *path == tenant() && self.indexes.iter().any(|name| name.starts_with(SHARED))
    }

    /// The tenant in documents of this column, as an index on it has it.
    pub(super) fn tenant(&self, column: &str) -> String {
        self.ways(column, &tenant()).text
    }

    /// A test of a path that no index is on, so that the planner can tell how many records fit; false
    /// where there is no other way to say it.
    fn test_unindexed(&self, column: &str, path: &Path, test: &Test, sql: &mut Sql) -> bool {
        if path.names().iter().any(|name| name.contains('\0')) {
            return false;
        }
        let text = || self.ways(column, path).text;
        match test {
            Test::Eq(Value::Null) => {
                let under = self.under(column, path);
                sql.push(&format!("({under} IS NULL OR {under} = 'null')"));
            }
            Test::Eq(Value::Text(text)) if text.contains('\0') => return false,
            Test::Eq(value @ (Value::Bool(_) | Value::Int(_) | Value::Text(_))) => {
                let inside = path.names().iter().rev().fold(value.clone(), |inside, name| {
                    Value::Map(Document::from_iter([(&**name, inside)]))
                });
                let column = match self.as_jsonb {
                    true => format!("CAST({column} AS jsonb)"),
                    false => column.to_owned(),
                };
                sql.push(&column).push(" @> ").bind(inside);
            }
            Test::Prefix(start) => prefix(&text(), start, sql),
            test => {
                let (operator, value) = match comparison(test) {
                    Some((operator, value @ Value::Text(_))) => (operator, value.clone()),
                    _ => return false,
                };
                sql.push(&text()).push(operator).bind(value);
            }
        }
        true
    }
}

/// What an index is on, in words of SQL.
pub(super) fn on(by: &[By]) -> String {
    let each: Vec<_> = by
        .iter()
        .map(|by| match by.nullable {
            true => format!("({}) NULLS FIRST", by.text),
            false => format!("({})", by.text),
        })
        .collect();
    each.join(", ")
}

/// A value of a document as a number, as a text and, if it is neither, as a number for its kind.
struct Ways {
    number: String,
    text: String,
    other: String,
}

/// What booleans are as [`Ways::other`].
const FALSE: i32 = 3;
const TRUE: i32 = 4;

fn text(under: &str) -> String {
    format!("((CASE jsonb_typeof{under} WHEN 'string' THEN {under} #>> '{{}}' END) COLLATE \"C\")")
}

impl Dialect for Postgres {
    fn numbered(&self) -> bool {
        true
    }

    fn any_digits(&self) -> bool {
        true
    }

    fn test(&self, column: &str, path: &Path, test: &Test, sql: &mut Sql) -> Result<()> {
        // A condition more, and the planner supposes that few of the tenant's rows fit.
        if let (Test::Eq(Value::Text(text)), true) = (test, self.is_first(path))
            && !text.contains('\0')
        {
            sql.push(&self.tenant(column)).push(" = ").bind(Value::from(text.as_str()));
            return Ok(());
        }
        if !self.has_index(path) && self.test_unindexed(column, path, test, sql) {
            return Ok(());
        }
        match test {
            Test::Exists(true) => sql.push(&self.under(column, path)).push(" IS NOT NULL"),
            Test::Exists(false) => sql.push(&self.under(column, path)).push(" IS NULL"),
            Test::Eq(Value::Null) => {
                let Ways { number, text, other } = self.ways(column, path);
                sql.push(&format!("({number} IS NULL AND {text} IS NULL AND {other} IS NULL)"))
            }
            Test::Eq(Value::Bool(value)) => {
                let Ways { number, text, other } = self.ways(column, path);
                let value = if *value { TRUE } else { FALSE };
                sql.push(&format!("({number} IS NULL AND {text} IS NULL AND {other} = {value})"))
            }
            Test::Prefix(start) => {
                let Ways { number, text, .. } = self.ways(column, path);
                sql.push(&format!("({number} IS NULL AND "));
                prefix(&text, start, sql);
                sql.push(")")
            }
            test => match comparison(test) {
                Some((operator, value)) => {
                    let Ways { number, text, .. } = self.ways(column, path);
                    let value = match value {
                        Value::Int(_) | Value::BigInt(_) | Value::Float(_) | Value::Decimal(_) => {
                            sql.push(&number).push(operator).bind(value.clone());
                            return Ok(());
                        }
                        Value::Text(text) => Value::from(text.as_str()),
                        _ => {
                            sql.push("1=0");
                            return Ok(());
                        }
                    };
                    sql.push(&format!("({number} IS NULL AND {text}{operator}"));
                    sql.bind(value).push(")")
                }
                None => sql,
            },
        };
        Ok(())
    }

    /// What is null or missing, then maps, lists and booleans, then texts, then numbers.
    fn sort_by(&self, column: &str, path: &Path, _: Sorting) -> Result<Vec<By>> {
        Ok(self.indexed(column, path))
    }

    /// To PostgreSQL, what is not a number (`NaN`) is greater than all numbers.
    fn test_column(&self, column: &Column, test: &Test, sql: &mut Sql) -> bool {
        let (Test::Gt(value) | Test::Ge(value)) = test else { return false };
        let has_nan = matches!(column.kind, Kind::Float | Kind::Decimal | Kind::BigInt);
        if !has_nan || !number::is_number(value) {
            return false;
        }
        let (name, operator) = (self.compared(column), comparison(test).map_or("", |of| of.0));
        sql.push("(").push(&name).push(operator).bind(value.clone());
        sql.push(&format!(" AND {name} <> 'NaN')"));
        true
    }

    fn moment(&self, column: &Column) -> Option<(String, String)> {
        let name = self.quote(&column.name);
        let is = format!("({name} > '-infinity' AND {name} < '{AFTER_ALL}+00')");
        Some((is, format!("CAST({name} AS text) COLLATE \"C\"")))
    }

    fn sort_by_column(&self, column: &Column, _: Sorting) -> Vec<By> {
        let nullable = !self.not_null.contains(&column.name);
        vec![By { text: self.compared(column), nullable }]
    }

    /// A name alone is, to PostgreSQL, that of what is selected before it is that of a column of the table: the key is
    /// selected as text, by the name of its column.
    fn ordered<'t>(&self, table: &str, by: &'t str) -> Cow<'t, str> {
        let name = by.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        match name.is_some_and(|name| !name.replace("\"\"", "").contains('"')) {
            true => Cow::Owned(format!("{}.{by}", quote(table))),
            false => Cow::Borrowed(by),
        }
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
        let Ways { number, text, .. } = self.ways(&format!("{of}{column}"), path);
        Ok(format!("({number} IS NULL AND {text} = {with})"))
    }
}
