//! Every kind of value: what is kept comes back equal, what is not comes back as declared or is
//! refused.

use steelyard::{
    ErrorKind,
    record::{Document, Kind, Time, Value},
    store::{Row, Store, difference},
};

use super::{Fault, Outcome, Subject, ensure, get_one, is_columns, key, limits::REFUSED};

/// Telling values of a kind: limits, and what stores are known to stumble over. What no store has
/// to hold (NUL, NaN, names without a letter) is tried elsewhere.
pub fn samples(kind: Kind) -> Vec<Value> {
    let text = |s: &str| Value::Text(s.to_owned());
    match kind {
        Kind::Null => vec![Value::Null],
        Kind::Bool => vec![true.into(), false.into()],
        Kind::Int => [0, 1, -1, 255, 1 << 31, -(1 << 31), (1 << 53) + 1, i64::MAX, i64::MIN]
            .map(Value::Int)
            .into(),
        Kind::BigInt => ["9223372036854775808", "18446744073709551615", "-9223372036854775809"]
            .into_iter()
            .chain(["18446744073709551616", "-340282366920938463463374607431768211457"])
            .map(|s| Value::BigInt(s.into()))
            .collect(),
        Kind::Float => {
            let exact = [0.0, 1.0, -1.0, 100.0, 0.1, 1.0 / 3.0, 1e300, -2.5e-300, 1e15, 1e22];
            let limits = [f64::MIN_POSITIVE, f64::MAX, 5e-324, 9_007_199_254_740_993.0];
            exact.iter().chain(&limits).map(|v| Value::Float(*v)).collect()
        }
        Kind::Decimal => ["0", "1.50", "-0.001", "1234567890123456789012345678901234567890.1234"]
            .map(|s| Value::Decimal(s.into()))
            .into(),
        Kind::Text => vec![
            text(""),
            text(" "),
            text("ends with spaces  "),
            text("\n"),
            text("a,\"b\"\r\n\t\\ü€😀\u{1}\u{7f}'`$%"),
            text("e\u{301}\u{feff}\u{200d}\u{ffff}\u{10ffff}"),
            text("1"),
            text("null"),
            text("2009-02-13T23:31:30Z"),
            text(&"wörter ".repeat(20_000)),
        ],
        Kind::Bytes => vec![Value::Bytes(vec![]), Value::Bytes((0..=255).collect())],
        Kind::Time => {
            [(0, 0), (1, 0), (-1, 999_999_999), (-5_000_000_000, 1), (4_102_444_800, 123_456_789)]
                .map(|(s, n)| Value::Time(Time::from_unix(s, n).expect("in range")))
                .into()
        }
        Kind::List => vec![
            Value::List(vec![]),
            Value::List(vec![Value::List(vec![]), text("x"), Value::Int(1), Value::Null]),
            Value::List(vec![text("y"); 3000]),
        ],
        Kind::Map => vec![
            Document::new().into(),
            Document::from_iter([("b", text("1")), ("a", text("2")), ("aa", text("3"))]).into(),
            Document::from_iter([("1", text("1")), ("0", text("2")), ("ü", text("3"))]).into(),
        ],
    }
}

fn holding(value: Value, i: usize) -> Row {
    let record =
        Document::from_iter([("before", Value::from("x")), ("v", value), ("after", "y".into())]);
    Row { key: key(format!("v{i}")), record }
}

/// What became of a row: the record as it came back, or why it was refused.
pub async fn through(store: &dyn Store, row: &Row) -> Result<Result<Document, ErrorKind>, Fault> {
    match store.put(std::slice::from_ref(row)).await {
        Ok(()) => {
            let found = get_one(store, &row.key).await?;
            found.map(Ok).ok_or_else(|| Fault::new("it is not there"))
        }
        Err(e) => {
            let told = e.to_string();
            let named = told.contains(&*row.key) || told.contains("\"v\"");
            ensure!(named, "it names neither key nor field: {e:?}");
            Ok(Err(e.kind()))
        }
    }
}

pub async fn kinds(subject: &Subject) -> Outcome {
    let probe = subject.open("").await?;
    let (keeps, loses) = (probe.store.abilities().keeps, probe.store.abilities().loses);
    for kind in keeps {
        let values = samples(*kind).into_iter().enumerate();
        let mut rows: Vec<_> = values.map(|(i, value)| holding(value, i)).collect();
        let fresh = subject.ready(&rows).await?;
        // A few may be beyond what a store can hold, which it then says.
        let (all, mut fine) = (rows.len(), Ok(()));
        rows.retain(|row| match fresh.store.check(row) {
            Ok(()) => true,
            Err(e) => {
                let named = e.to_string().contains("\"v\"");
                if !named || !REFUSED.contains(&e.kind()) {
                    fine = Err(Fault::new(format_args!("refused as {e:?}")));
                }
                false
            }
        });
        fine?;
        let kind_name = kind.name();
        ensure!(rows.len() * 2 > all, "{} of {all} kept of a {kind_name}", rows.len());
        fresh.store.put(&rows).await?;
        for row in &rows {
            let found = get_one(&*fresh.store, &row.key).await?;
            let found = found.ok_or_else(|| Fault::new("it is not there"))?;
            if let Some(difference) = difference(&row.record, &found, keeps) {
                return Err(Fault::new(format_args!("said to keep {kind_name}: {difference}")));
            }
        }
        fresh.done().await?;
    }
    let all = Kind::ALL.iter().all(|kind| keeps.contains(kind));
    // Also what keeps all kinds may lose something of odd values.
    ensure!(all || !loses.is_empty(), "it does not say what it loses");
    Ok(())
}

pub async fn other_kinds(subject: &Subject) -> Outcome {
    let probe = subject.open("").await?;
    let keeps = probe.store.abilities().keeps;
    for kind in Kind::ALL.iter().filter(|kind| !keeps.contains(kind)) {
        let values = samples(*kind).into_iter().enumerate();
        let rows: Vec<_> = values.map(|(i, value)| holding(value, i)).collect();
        // A column is of no such kind: the value meets one of another.
        let like = match is_columns(&*probe.store) && matches!(kind, Kind::List | Kind::Map) {
            true => vec![holding("text".into(), 0)],
            false => rows.clone(),
        };
        let fresh = match subject.ready(&like).await {
            Ok(fresh) => fresh,
            // There may be no columns of this kind at all.
            Err(fault) => {
                let told = fault.0.starts_with("Unsupported") || fault.0.starts_with("Invalid");
                ensure!(is_columns(&*probe.store) && told, "{fault:?}");
                continue;
            }
        };
        for row in &rows {
            match through(&*fresh.store, row).await? {
                Ok(read) => {
                    if let Some(difference) = difference(&row.record, &read, keeps) {
                        return Err(Fault::new(format_args!("{}: {difference}", kind.name())));
                    }
                }
                Err(refused) => {
                    let fine = REFUSED.contains(&refused);
                    ensure!(fine, "refused as {refused:?}: {:?}", row.record);
                }
            }
        }
        fresh.done().await?;
    }
    Ok(())
}
