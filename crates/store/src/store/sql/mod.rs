//! What the stores that speak SQL share, being the same by meaning: small functions and types that the
//! drivers call. This module knows no driver, and sends nothing.
//!
//! - A [`Query`] becomes text with bound values, never with pasted ones; a [`Dialect`] says how a database
//!   reaches into a document and quotes a name. `exact.rs` has comparisons that a column can answer.
//! - What a table is: its names ([`Lazy`]), what it must be like to be made ([`Rules`]), the columns that
//!   are there ([`Fields`]), records as rows of them (`row.rs`), values that a column's type or a trigger may change (`kept.rs`),
//!   indexes (`index.rs`), what keys can be in a table of another program ([`Promise`]).
//! - What a conditional write asks of the row ([`Guard`]).
//! - Pages of a scan, and parts of a table (`ranges.rs`); joins; a table as a store of bytes
//!   ([`BlobTable`]).
//!
//! A driver keeps what differs: opening, the dialect, cells, errors, bulk load, transactions.

mod blobs;
mod columns;
mod conditional;
mod create;
pub(super) mod exact;
mod existing;
pub(super) mod index;
mod join;
mod kept;
mod keys;
pub(super) mod ranges;
pub(super) mod row;
mod table;

pub(super) use blobs::BlobTable;
pub(super) use columns::column;
pub(super) use conditional::{BlobColumn, Guard};
pub(super) use create::Rules;
pub(super) use existing::{Described, Existing, Fields, holds};
pub(super) use join::{OTHER, OWN, Others, Side, join};
pub(super) use kept::{Changer, another, changed_record, kept, left_out};
pub(super) use keys::{NO_INDEX, Promise, no_key, not_a_key, only_read, taken};
pub(super) use table::{Lazy, Names, not_prepared};

use std::borrow::Cow;

use super::{
    Column, Filter, Query,
    query::{Order, Path, Test, narrowed},
};
use crate::{
    Error, Result,
    record::{Kind, Value},
};

/// A statement, and the values bound to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sql {
    pub text: String,
    pub values: Vec<Value>,
    numbered: bool,
    /// How many values are bound before these.
    before: usize,
}

impl Sql {
    /// A statement that begins so.
    pub(super) fn new(dialect: &dyn Dialect, text: impl Into<String>) -> Sql {
        Sql::after(dialect, text, 0)
    }

    /// What follows in a statement in which so many values are bound already.
    pub(super) fn after(dialect: &dyn Dialect, text: impl Into<String>, before: usize) -> Sql {
        let (text, values, numbered) = (text.into(), Vec::new(), dialect.numbered());
        Sql { text, values, numbered, before }
    }

    /// Appends text.
    pub(super) fn push(&mut self, text: &str) -> &mut Sql {
        self.text.push_str(text);
        self
    }

    /// Appends a value's place, and binds the value.
    pub(super) fn bind(&mut self, value: Value) -> &mut Sql {
        self.values.push(value);
        match self.numbered {
            true => self.text += &format!("${}", self.before + self.values.len()),
            false => self.text.push('?'),
        }
        self
    }
}

/// A name, quoted as in standard SQL.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// How one database says what queries mean.
pub(super) trait Dialect: Send + Sync {
    /// Bound values are `$1`, `$2`; else `?`.
    fn numbered(&self) -> bool {
        false
    }

    /// A name, quoted.
    fn quote(&self, name: &str) -> String {
        quote(name)
    }

    /// Appends a test of what lies under `path` in the document in this column, already quoted.
    /// [`Test::Ne`] and [`Test::In`] do not come here. Unknown (`NULL`) counts as false.
    ///
    /// # Errors
    /// Where the path cannot be said.
    fn test(&self, column: &str, path: &Path, test: &Test, sql: &mut Sql) -> Result<()>;

    /// What to sort by for a path in the document, the most significant first. `NULL`, or what sorts
    /// like it, where the value is null or missing. Where an index is on the path, its own expressions
    /// come first and in its order, so that the index can answer.
    ///
    /// # Errors
    /// Where the path cannot be expressed.
    fn sort_by(&self, column: &str, path: &Path, how: Sorting) -> Result<Vec<By>>;

    /// What a column of the table is compared and sorted as.
    fn compared(&self, column: &Column) -> String {
        let name = self.quote(&column.name);
        match column.kind {
            Kind::Text => self.by_bytes(&name),
            _ => name,
        }
    }

    /// What to sort a column of the table by.
    fn sort_by_column(&self, column: &Column, _how: Sorting) -> Vec<By> {
        vec![By::nullable(self.compared(column))]
    }

    /// An expression to sort a table by, as it stands after `ORDER BY`.
    fn ordered<'t>(&self, _table: &str, by: &'t str) -> Cow<'t, str> {
        Cow::Borrowed(by)
    }

    /// What follows the order of an expression that can be `NULL`, so that nulls come first ascending
    /// and last descending.
    fn nulls(&self, _order: Order) -> &'static str {
        ""
    }

    /// A column of text, compared by its bytes whatever the collation of the table.
    fn by_bytes(&self, column: &str) -> String {
        self.by_bytes_of("", column)
    }

    /// The same of a table that has another name in the statement: `of` stands before the column.
    fn by_bytes_of(&self, of: &str, column: &str) -> String {
        format!("{of}{column}")
    }

    /// The text under `path` of the document in this column; `NULL` where there is none.
    ///
    /// # Errors
    /// Where the path cannot be said.
    fn text(&self, column: &str, path: &Path) -> Result<String>;

    /// The condition that the text under `path`, of the document in this column of the table that
    /// is called `of`, is that of another expression; an index on the path can answer it.
    ///
    /// # Errors
    /// Where the path cannot be said.
    fn equals(&self, of: &str, column: &str, path: &Path, text: &str) -> Result<String>;

    /// Appends a test of a column in words of its own: by something else that has an index, or by what each
    /// value is. False where there is nothing of the kind.
    fn test_column(&self, _column: &Column, _test: &Test, _sql: &mut Sql) -> bool {
        false
    }

    /// The condition that a column of text of the table that is called `of` is this text, where
    /// something else than the column has the index.
    fn equals_column(&self, _of: &str, _column: &Column, _text: &str) -> Option<String> {
        None
    }

    /// Whether comparisons with numbers of any number of digits come here. Elsewhere they come as comparisons with whole numbers of 64 bits and floats,
    /// which mean the same where there is nothing else.
    fn any_digits(&self) -> bool {
        false
    }

    /// Of a column of times in which there can be what is no moment to us (`infinity`, `0000-00-00`, the year 10000)
    /// and is read as text: the condition that it is one, and the text.
    fn moment(&self, _column: &Column) -> Option<(String, String)> {
        None
    }

    /// Appends the place of a value that a column is compared with, and binds the value.
    fn bind_compared(&self, value: Value, sql: &mut Sql) {
        sql.bind(value);
    }

    /// An expression that a column is compared with, so that the column's own index answers.
    fn plain(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// An expression to sort by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct By {
    pub text: String,
    /// It can be `NULL`. Where it cannot, the order has no `NULLS` clause, with which an index could
    /// not answer.
    pub nullable: bool,
}

impl By {
    /// An expression that can be `NULL`.
    pub(super) fn nullable(text: impl Into<String>) -> By {
        By { text: text.into(), nullable: true }
    }

    /// An expression that is never `NULL`.
    pub(super) fn never_null(text: impl Into<String>) -> By {
        By { text: text.into(), nullable: false }
    }
}

/// How exactly a statement sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sorting {
    /// As [`Query`] defines it, whatever the values are.
    Exact,
    /// By what the index on the path holds and nothing more. The driver checks that the answer has no
    /// value for which that is not enough.
    ByIndex,
}

/// A table as queries see it. Names are as they are, not quoted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub name: String,
    /// The column of the key.
    pub key: String,
    pub body: Body,
}

/// What a table holds beside the key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    /// Documents in this column.
    Document(String),
    /// A column for each field.
    Columns(Vec<Column>),
}

impl Table {
    /// Its typed columns, where it has them.
    pub(super) fn columns(&self) -> Option<&[Column]> {
        match &self.body {
            Body::Columns(columns) => Some(columns),
            Body::Document(_) => None,
        }
    }

    /// `SELECT what FROM table`, and all the query says.
    ///
    /// # Errors
    /// For queries that make no sense, or paths that cannot be said.
    pub(super) fn select(&self, dialect: &dyn Dialect, what: &str, query: &Query) -> Result<Sql> {
        self.select_sorted(dialect, what, query, Sorting::Exact)
    }

    /// The same, sorted this exactly.
    ///
    /// # Errors
    /// As [`select`](Table::select).
    pub(super) fn select_sorted(
        &self,
        dialect: &dyn Dialect,
        what: &str,
        query: &Query,
        how: Sorting,
    ) -> Result<Sql> {
        query.check()?;
        let mut sql =
            Sql::new(dialect, format!("SELECT {what} FROM {}", dialect.quote(&self.name)));
        self.filter(dialect, &query.filter, &mut sql)?;
        self.order(dialect, query, how, &mut sql)?;
        if let Some(limit) = query.limit {
            sql.push(&format!(" LIMIT {}", limit.min(i64::MAX as u64)));
        }
        Ok(sql)
    }

    /// Appends ` ORDER BY`, unless any order will do. The key comes last, in the direction of the last
    /// path, so that an index on value and key can be walked either way.
    fn order(
        &self,
        dialect: &dyn Dialect,
        query: &Query,
        how: Sorting,
        sql: &mut Sql,
    ) -> Result<()> {
        let Some((_, last)) = query.sort.last() else { return Ok(()) };
        let mut word = " ORDER BY ";
        let mut push = |by: &By, order: Order| {
            let direction = match order {
                Order::Ascending => "",
                Order::Descending => " DESC",
            };
            let nulls = if by.nullable { dialect.nulls(order) } else { "" };
            let text = dialect.ordered(&self.name, &by.text);
            sql.push(word).push(&text).push(direction).push(nulls);
            word = ", ";
        };
        let key = By::never_null(dialect.by_bytes(&dialect.quote(&self.key)));
        for (path, order) in &query.sort {
            if path.is_key() {
                // No two records have the same: nothing after it decides anything.
                push(&key, *order);
                return Ok(());
            }
            for by in self.sort_by(dialect, path, how)? {
                push(&by, *order);
            }
        }
        push(&key, *last);
        Ok(())
    }

    /// `DELETE FROM table` where the filter fits.
    ///
    /// # Errors
    /// As [`select`](Table::select).
    pub(super) fn delete(&self, dialect: &dyn Dialect, filter: &Filter) -> Result<Sql> {
        Query::new(filter.clone()).check()?;
        let mut sql = Sql::new(dialect, format!("DELETE FROM {}", dialect.quote(&self.name)));
        self.filter(dialect, filter, &mut sql)?;
        Ok(sql)
    }

    /// What to sort by for a path that is not the key's; nothing for a column that is not there.
    fn sort_by(&self, dialect: &dyn Dialect, path: &Path, how: Sorting) -> Result<Vec<By>> {
        match &self.body {
            Body::Document(column) => dialect.sort_by(&dialect.quote(column), path, how),
            Body::Columns(columns) => Ok(columns::column(columns, path)
                .map_or_else(Vec::new, |column| dialect.sort_by_column(column, how))),
        }
    }

    /// Appends ` WHERE`, unless every record fits.
    fn filter(&self, dialect: &dyn Dialect, filter: &Filter, sql: &mut Sql) -> Result<()> {
        if *filter == Filter::All {
            return Ok(());
        }
        sql.push(" WHERE ");
        self.condition(dialect, filter, sql)
    }

    /// Appends a condition. It may come out unknown only where that counts as false.
    pub(super) fn condition(
        &self,
        dialect: &dyn Dialect,
        filter: &Filter,
        sql: &mut Sql,
    ) -> Result<()> {
        match filter {
            Filter::All => {
                sql.push("1=1");
            }
            Filter::And(all) => self.list(dialect, all, " AND ", "1=1", sql)?,
            Filter::Or(any) => self.list(dialect, any, " OR ", "1=0", sql)?,
            Filter::Not(one) => {
                sql.push("((");
                self.condition(dialect, one, sql)?;
                sql.push(") IS NOT TRUE)");
            }
            Filter::Field(path, test) => self.field(dialect, path, test, sql)?,
            Filter::Look(look) => {
                return Err(Error::unsupported(format!("a statement of SQL for {look}")));
            }
        }
        Ok(())
    }

    fn list(
        &self,
        dialect: &dyn Dialect,
        filters: &[Filter],
        between: &str,
        none: &str,
        sql: &mut Sql,
    ) -> Result<()> {
        if filters.is_empty() {
            sql.push(none);
            return Ok(());
        }
        // A long list is a deep tree to a parser that puts one after the other; halves are not.
        if filters.len() > 64 {
            let (left, right) = filters.split_at(filters.len() / 2);
            sql.push("(");
            self.list(dialect, left, between, none, sql)?;
            sql.push(between);
            self.list(dialect, right, between, none, sql)?;
            sql.push(")");
            return Ok(());
        }
        for (i, filter) in filters.iter().enumerate() {
            sql.push(if i == 0 { "(" } else { between });
            self.condition(dialect, filter, sql)?;
        }
        sql.push(")");
        Ok(())
    }

    fn field(&self, dialect: &dyn Dialect, path: &Path, test: &Test, sql: &mut Sql) -> Result<()> {
        let field = |test: &Test| Filter::Field(path.clone(), test.clone());
        match test {
            Test::Ne(value) => {
                let equal = Filter::Not(Box::new(field(&Test::Eq(value.clone()))));
                self.condition(dialect, &equal, sql)
            }
            Test::In(values) => {
                let each: Vec<_> = values.iter().map(|v| field(&Test::Eq(v.clone()))).collect();
                self.list(dialect, &each, " OR ", "1=0", sql)
            }
            test if path.is_key() => {
                key_test(&dialect.by_bytes(&dialect.quote(&self.key)), test, sql);
                Ok(())
            }
            test => match dialect.any_digits() {
                true => self.value(dialect, path, test, sql),
                false => match narrowed(test) {
                    Some(test) => self.value(dialect, path, &test, sql),
                    None => {
                        sql.push("1=0");
                        Ok(())
                    }
                },
            },
        }
    }

    fn value(&self, dialect: &dyn Dialect, path: &Path, test: &Test, sql: &mut Sql) -> Result<()> {
        match &self.body {
            Body::Document(column) => dialect.test(&dialect.quote(column), path, test, sql),
            Body::Columns(columns) => {
                columns::test(dialect, columns, path, test, sql);
                Ok(())
            }
        }
    }
}

/// A test of the key, which is text and always there.
pub(super) fn key_test(key: &str, test: &Test, sql: &mut Sql) {
    let (operator, value) = match test {
        Test::Exists(wanted) => {
            sql.push(if *wanted { "1=1" } else { "1=0" });
            return;
        }
        Test::Prefix(start) => return prefix(key, start, sql),
        test => comparison(test).expect("exists and prefix are dealt with"),
    };
    match value {
        Value::Text(text) => {
            sql.push(key).push(operator).bind(Value::from(text.as_str()));
        }
        _ => {
            sql.push("1=0");
        }
    }
}

/// The operator of a comparison, and what it compares with.
pub(super) fn comparison(test: &Test) -> Option<(&'static str, &Value)> {
    Some(match test {
        Test::Eq(value) => (" = ", value),
        Test::Ne(value) => (" <> ", value),
        Test::Lt(value) => (" < ", value),
        Test::Le(value) => (" <= ", value),
        Test::Gt(value) => (" > ", value),
        Test::Ge(value) => (" >= ", value),
        Test::In(_) | Test::Exists(_) | Test::Prefix(_) => return None,
    })
}

/// Appends that a text begins so, as a range, which an index can answer.
pub(super) fn prefix(text: &str, start: &str, sql: &mut Sql) {
    sql.push("(").push(text).push(" >= ").bind(Value::from(start));
    if let Some(end) = after_prefix(start) {
        sql.push(" AND ").push(text).push(" < ").bind(Value::from(end));
    }
    sql.push(")");
}

/// The least text that is greater than all that begin so; none where there is no greater one.
fn after_prefix(start: &str) -> Option<String> {
    let mut chars: Vec<char> = start.chars().collect();
    while let Some(last) = chars.pop() {
        // The next character; those for surrogates are none.
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(last as u32 + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// A column that is made has to be of a kind that the database has: decimals and whole numbers beyond 64
/// bits it would round.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) where it is of such a kind.
pub(super) fn numbers_of_64_bits(driver: &str, name: &str, kind: Kind) -> Result<()> {
    match kind {
        Kind::Decimal | Kind::BigInt => Err(Error::unsupported(format!(
            "field {name:?} is {}, for which {driver} has no exact column; use \
             ?layout=blob&format=json, or text",
            kind.one()
        ))),
        _ => Ok(()),
    }
}

/// A name of a table or column, of a length the database takes.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid), saying what is wrong with it.
pub(super) fn check_name(driver: &str, what: &str, name: &str, longest: usize) -> Result<()> {
    let wrong = if name.is_empty() {
        "it is empty".into()
    } else if name.contains('\0') {
        "it has a NUL".into()
    } else if name.len() > longest {
        format!("it has {} bytes; the limit is {longest}", name.len())
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(60).collect();
    Err(Error::invalid(format!("{shown:?} is not a valid {what} in {driver}: {wrong}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_before_the_next_text() {
        assert_eq!(after_prefix("ab").as_deref(), Some("ac"));
        assert_eq!(after_prefix("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(after_prefix("\u{10ffff}"), None);
        assert_eq!(after_prefix("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(after_prefix(""), None);
    }
}
