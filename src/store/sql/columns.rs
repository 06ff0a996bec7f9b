//! Tests of typed columns: what kind of value is there is known beforehand.

use super::{Column, Dialect, Path, Sql, Test, comparison, prefix};
use crate::record::{Kind, Value};

/// The column that a path leads to, if it leads to one.
pub fn column<'c>(columns: &'c [Column], path: &Path) -> Option<&'c Column> {
    let [name] = path.names() else { return None };
    columns.iter().find(|column| column.name == *name)
}

/// Appends a test of a column.
pub fn test(dialect: &dyn Dialect, columns: &[Column], path: &Path, test: &Test, sql: &mut Sql) {
    let Some(column) = column(columns, path) else {
        // Not there: as null as can be.
        let fits = matches!(test, Test::Eq(Value::Null) | Test::Exists(false));
        sql.push(if fits { "1=1" } else { "1=0" });
        return;
    };
    if column.kind == Kind::Text && dialect.test_text(column, test, sql) {
        return;
    }
    let mut name = dialect.quote(&column.name);
    if column.kind == Kind::Text {
        name = dialect.by_bytes(&name);
    }
    let null = |sql: &mut Sql, is: bool| {
        sql.push(&name).push(if is { " IS NULL" } else { " IS NOT NULL" });
    };
    let (operator, value) = match (test, comparison(test)) {
        (Test::Exists(wanted), _) => return null(sql, !wanted),
        (Test::Eq(Value::Null), _) => return null(sql, true),
        (Test::Prefix(start), _) if column.kind == Kind::Text => {
            return prefix(&name, start, sql);
        }
        (_, Some(comparison)) => comparison,
        _ => {
            sql.push("1=0");
            return;
        }
    };
    let number = |kind| matches!(kind, Kind::Int | Kind::Float);
    let kind = value.kind();
    match column.kind == kind || (number(column.kind) && number(kind)) {
        true => sql.push(&name).push(operator).bind(value.clone()),
        false => sql.push("1=0"),
    };
}
