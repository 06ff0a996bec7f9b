//! SQL for tests of typed columns, where the kind of the values is known beforehand.

use super::{Column, Dialect, Path, Sql, Test, comparison, prefix};
use crate::record::{Kind, Value};

/// The column that a path leads to, if it leads to one.
pub(crate) fn column<'c>(columns: &'c [Column], path: &Path) -> Option<&'c Column> {
    let [name] = path.names() else { return None };
    columns.iter().find(|column| column.name == *name)
}

/// Appends a test of a column.
pub(super) fn test(
    dialect: &dyn Dialect,
    columns: &[Column],
    path: &Path,
    test: &Test,
    sql: &mut Sql,
) {
    let Some(column) = column(columns, path) else {
        // Not there: as null as can be.
        let fits = matches!(test, Test::Eq(Value::Null) | Test::Exists(false));
        sql.push(if fits { "1=1" } else { "1=0" });
        return;
    };
    if dialect.test_column(column, test, sql) {
        return;
    }
    if column.kind == Kind::Time
        && let Some((is_moment, text)) = dialect.moment(column)
    {
        match (test, comparison(test)) {
            (Test::Prefix(start), _) => {
                sql.push(&format!("(NOT {is_moment} AND "));
                prefix(&text, start, sql);
                sql.push(")");
                return;
            }
            (_, Some((operator, with @ Value::Text(_)))) => {
                sql.push(&format!("(NOT {is_moment} AND {text}{operator}"));
                sql.bind(with.clone()).push(")");
                return;
            }
            // To the database, what is no moment is less or greater than all.
            (
                Test::Lt(_) | Test::Le(_) | Test::Gt(_) | Test::Ge(_),
                Some((operator, with @ Value::Time(_))),
            ) => {
                sql.push("(").push(&dialect.compared(column)).push(operator);
                dialect.bind_compared(with.clone(), sql);
                sql.push(&format!(" AND {is_moment})"));
                return;
            }
            _ => {}
        }
    }
    let name = dialect.compared(column);
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
    let number = |kind| matches!(kind, Kind::Int | Kind::BigInt | Kind::Float | Kind::Decimal);
    let kind = value.kind();
    if column.kind == kind || number(column.kind) && number(kind) {
        sql.push(&name).push(operator);
        dialect.bind_compared(value.clone(), sql);
    } else {
        sql.push("1=0");
    }
}
