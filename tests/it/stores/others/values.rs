//! Conditions on columns of any type, and their order.

use steelyard::{
    record::{Kind, Time, Value},
    store::{
        Filter, Query, Row,
        query::{Order, Path, Test},
    },
};

use super::{Desk, Faults, each, found, keys_of, scanned, types};
use crate::stores::places::{self, Outcome, ensure};

/// What a column is compared with: what is in it, what lies beside that, and values of every other kind.
fn compared(rows: &[Row]) -> Vec<Value> {
    let time = |seconds, nanos| Value::Time(Time::from_unix(seconds, nanos).expect("a time"));
    let mut values = vec![
        Value::Null,
        Value::Bool(true),
        Value::Bool(false),
        Value::Int(0),
        Value::Int(1),
        Value::Int(5),
        Value::Int(9_007_199_254_740_992),
        Value::Float(1.5),
        Value::Float(1e18),
        Value::Decimal("99999999999999999999".into()),
        Value::from("5"),
        Value::from("a"),
        Value::from("ABC"),
        Value::from("true"),
        Value::from("2020-01-01"),
        Value::Bytes(b"abc".to_vec()),
        time(1_577_872_800, 0),
        time(1_577_872_800, 500_000_000),
    ];
    for row in rows {
        let Some(value) = row.record.get("v") else { continue };
        // What is no number is compared with nothing: no query asks for it.
        if matches!(value, Value::Float(v) if v.is_nan()) {
            continue;
        }
        values.push(value.clone());
        match value {
            Value::Int(n) => {
                values.extend([Value::Int(n.saturating_add(1)), Value::from(n.to_string())]);
            }
            Value::Float(v) => values.push(Value::Float(v.next_up())),
            Value::Text(text) => {
                let start: String = text.chars().take(1).collect();
                values.extend(
                    [start, text.to_uppercase(), text.to_lowercase(), format!("{text} ")]
                        .map(Value::from),
                );
            }
            _ => {}
        }
    }
    values
}

fn tests(value: &Value) -> Vec<Test> {
    let mut tests = vec![
        Test::Eq(value.clone()),
        Test::Ne(value.clone()),
        Test::In(vec![value.clone(), Value::Int(1)]),
    ];
    // Of other kinds none is less than another.
    if !matches!(value.kind(), Kind::Null | Kind::Bool | Kind::Bytes) {
        let orders = [Test::Lt, Test::Le, Test::Gt, Test::Ge];
        tests.extend(orders.into_iter().map(|test| test(value.clone())));
    }
    if let Value::Text(text) = value {
        tests.push(Test::Prefix(text.clone()));
    }
    tests
}

fn shown<'r>(rows: impl IntoIterator<Item = &'r Row>) -> String {
    let all: Vec<_> = rows.into_iter().map(|row| row.record.get("v")).collect();
    format!("{all:?}")
}

async fn conditions(desk: &Desk) -> Outcome {
    let (types, first) = types::of(desk.subject.driver());
    desk.program.once(first).await?;
    let mut faults = Faults::default();
    for (declared, literals) in types {
        let table = places::name("others");
        desk.program
            .run(&format!("CREATE TABLE {table} (id varchar(20) PRIMARY KEY, v {declared})"))
            .await?;
        let rows: Vec<_> = literals
            .iter()
            .enumerate()
            .map(|(i, literal)| format!("('r{i}', {literal})"))
            .collect();
        let insert = format!("INSERT INTO {table} VALUES ('null', NULL), {}", rows.join(", "));
        desk.program.run(&insert).await?;
        let store = match desk.open(&table, "&key=id").await {
            Ok(store) => store,
            Err(e) => {
                faults.push(format!("{declared}: {e}"));
                continue;
            }
        };
        let rows = match scanned(&*store).await {
            Ok(rows) => rows,
            Err(e) => {
                faults.push(format!("{declared}: {e}"));
                continue;
            }
        };
        ensure!(rows.len() == literals.len() + 1, "{declared}: {} rows", rows.len());
        let all: Vec<Test> = compared(&rows).iter().flat_map(tests).collect();
        let mut wrong = 0;
        for test in all {
            let query = Query::new(Filter::Field(Path::new(["v"]), test));
            let mut want: Vec<&Row> = rows.iter().collect();
            want.retain(|row| query.matches(&row.key, &row.record));
            let said = match found(&*store, &query).await {
                Err(e) => e.to_string(),
                Ok(mut got) => {
                    got.sort_by(|a, b| a.key.cmp(&b.key));
                    if got.iter().eq(want.iter().copied()) {
                        continue;
                    }
                    format!("found {}, not {}", shown(&got), shown(want))
                }
            };
            wrong += 1;
            if wrong <= 3 {
                faults.push(format!("{declared}: {:?} {said}", query.filter));
            }
        }
        if wrong > 3 {
            faults.push(format!("{declared}: {wrong} in all"));
        }
        sorted(desk, declared, &table, &rows, &mut faults).await?;
        desk.program.run(&format!("DROP TABLE {table}")).await?;
    }
    faults.done()
}

/// Rows whose values are of one kind are in its order.
async fn sorted(
    desk: &Desk,
    declared: &str,
    table: &str,
    rows: &[Row],
    faults: &mut Faults,
) -> Outcome {
    let kinds: Vec<_> =
        rows.iter().filter_map(|row| row.record.get("v")).map(|value| value.kind()).collect();
    // What is no number stands at one end or the other.
    let is_nan = |row: &Row| matches!(row.record.get("v"), Some(Value::Float(v)) if v.is_nan());
    if kinds.iter().any(|kind| *kind != kinds[0]) || rows.iter().any(is_nan) {
        return Ok(());
    }
    let store = desk.open(table, "&key=id").await?;
    for order in [Order::Ascending, Order::Descending] {
        let query = Query::new(Filter::All).sorted(Path::new(["v"]), order);
        let mut want = rows.to_vec();
        want.sort_by(|a, b| query.order(a, b));
        match found(&*store, &query).await {
            Ok(got) if keys_of(&got) == keys_of(&want) => {}
            Ok(got) => faults.push(format!(
                "{declared}: {order:?} {:?}, not {:?}",
                keys_of(&got),
                keys_of(&want)
            )),
            Err(e) => faults.push(format!("{declared}: {order:?}: {e}")),
        }
    }
    Ok(())
}

#[test]
fn conditions_find_what_they_find_among_the_records_of_a_scan() {
    each(|desk| async move { conditions(&desk).await });
}
