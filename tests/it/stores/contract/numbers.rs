//! Numbers of any length, and values of any kinds side by side: what a store keeps is the same value when
//! it comes back, or one of another kind that its abilities declare; what it cannot keep it refuses by
//! name. Conditions compare by value.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    format::Format,
    record::{Document, Kind, Value, dataset::random::Random, number},
    store::{
        DRIVERS, Filter, Key, Query, Row, Shape, Store, difference, one_by_one,
        query::{Order, Test},
    },
};

use super::{
    Fault, Outcome, Subject, ensure, get_one, is_columns, key,
    limits::REFUSED,
    values::{samples, through},
};
use crate::numbers::EDGES;

/// A record with the number, as it is read from a file.
fn from_file(edge: &str, i: usize) -> Result<Row, Fault> {
    let json = format!(r#"{{"before":"x","v":{edge},"after":"y"}}"#);
    Ok(Row { key: key(format!("n{i:02}")), record: Format::Json.decode(json.as_bytes())? })
}

/// A store made for records like these; none where it has no columns for them.
async fn made_for(subject: &Subject, rows: &[Row]) -> Result<Option<super::places::Fresh>, Fault> {
    match subject.ready(rows).await {
        Ok(fresh) => Ok(Some(fresh)),
        Err(fault) => {
            let told = fault.0.starts_with("Unsupported") || fault.0.starts_with("Invalid");
            let columns = is_columns(&*subject.open("").await?.store);
            ensure!(columns && told, "{fault:?}");
            Ok(None)
        }
    }
}

pub async fn numbers(subject: &Subject) -> Outcome {
    let rows: Vec<Row> =
        EDGES.iter().enumerate().map(|(i, edge)| from_file(edge, i)).collect::<Result<_, _>>()?;
    let probe = subject.open("").await?;
    // A column is of one kind, a document of any.
    let groups = match is_columns(&*probe.store) {
        false => vec![rows],
        true => {
            let kind = |row: &Row| row.record.get("v").map(Value::kind);
            let of = |wanted: &[Kind]| {
                let fits = |row: &&Row| kind(row).is_some_and(|kind| wanted.contains(&kind));
                rows.iter().filter(fits).cloned().collect::<Vec<_>>()
            };
            vec![
                of(&[Kind::Int]),
                of(&[Kind::Float]),
                of(&[Kind::Int, Kind::Float]),
                of(&[Kind::Int, Kind::BigInt]),
                of(&[Kind::Decimal]),
            ]
        }
    };
    for rows in groups {
        let Some(fresh) = made_for(subject, &rows).await? else { continue };
        let kept = keep(subject, &*fresh.store, &rows).await?;
        conditions(subject, &*fresh.store, &kept).await?;
        fresh.done().await?;
    }
    Ok(())
}

/// Puts the records there, and sees that each is there as the same number, or was refused.
async fn keep(
    subject: &Subject,
    store: &dyn Store,
    rows: &[Row],
) -> Result<BTreeMap<Key, Document>, Fault> {
    let mut kept = BTreeMap::new();
    for row in rows {
        let read = match through(store, row).await? {
            Ok(read) => read,
            Err(refused) => {
                ensure!(REFUSED.contains(&refused), "refused as {refused:?}: {:?}", row.record);
                continue;
            }
        };
        let abilities = store.abilities();
        // The same number in other digits is none of the kinds that are kept.
        let spelled = abilities.loses.contains("no exponent");
        let other = |kind: &Kind| !(spelled && *kind == Kind::Decimal);
        let keeps: Vec<Kind> = abilities.keeps.iter().copied().filter(other).collect();
        if let Some(difference) = difference(&row.record, &read, &keeps) {
            return Err(Fault::new(difference));
        }
        let (before, after) = (row.record.get("v").unwrap_or(&Value::Null), read.get("v"));
        let same =
            after.and_then(|after| number::compare(before, after)).is_some_and(|o| o.is_eq());
        // A format may have to spell it out, and declares that.
        ensure!(same || subject.shape() == Shape::Blob, "{before:?} came back as {after:?}");
        kept.insert(row.key.clone(), row.record.clone());
    }
    ensure!(!kept.is_empty(), "none of {} numbers is kept", rows.len());
    Ok(kept)
}

async fn conditions(
    subject: &Subject,
    store: &dyn Store,
    kept: &BTreeMap<Key, Document>,
) -> Outcome {
    let tests: [fn(Value) -> Test; 7] =
        [Test::Eq, Test::Ne, Test::Lt, Test::Le, Test::Gt, Test::Ge, |v| Test::In(vec![v])];
    let mut faults = Vec::new();
    for edge in EDGES {
        for test in tests {
            let with = number::of_json(edge).ok_or_else(|| Fault::new(edge))?;
            let query = Query::new(Filter::field("v", test(with))?);
            let found = match store.find(&query).await {
                Err(e) if e.kind() == ErrorKind::Unsupported => {
                    ensure!(store.abilities().can(&query).is_err(), "not declared: {e:?}");
                    continue;
                }
                found => one_by_one(found?).try_collect::<Vec<Row>>().await?,
            };
            let mut found: Vec<Key> = found.into_iter().map(|row| row.key).collect();
            found.sort();
            let want = kept.iter().filter(|(key, record)| query.matches(key, record));
            let want: Vec<Key> = want.map(|(key, _)| key.clone()).collect();
            if found != want {
                let shown = |keys: &[Key]| {
                    let all = keys.iter().map(|k| kept[k].get("v").map(|v| format!("{v:?}")));
                    all.flatten().collect::<Vec<_>>().join(" ")
                };
                let (found, want) = (shown(&found), shown(&want));
                faults.push(format!("{}: {found}, not {want}", query.filter));
            }
        }
    }
    ensure!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults[..faults.len().min(6)].join("\n")
    );
    // MongoDB has decimals in its order by all binary digits of the floats beside them.
    if subject.driver() == "mongodb" {
        return Ok(());
    }
    for order in [Order::Ascending, Order::Descending] {
        let query = Query::default().sorted("v".parse()?, order);
        if store.abilities().can(&query).is_err() {
            continue;
        }
        let found: Vec<Row> = one_by_one(store.find(&query).await?).try_collect().await?;
        let found: Vec<Key> = found.into_iter().map(|row| row.key).collect();
        let mut want: Vec<Row> = kept
            .iter()
            .map(|(key, record)| Row { key: key.clone(), record: record.clone() })
            .collect();
        want.sort_by(|a, b| query.order(a, b));
        let want: Vec<Key> = want.into_iter().map(|row| row.key).collect();
        ensure!(found == want, "{order:?}: {found:?}, not {want:?}");
    }
    Ok(())
}

/// Kinds that one field has in some records: all at once, or such as a column can hold.
const FAMILIES: &[&[Kind]] = &[
    &[Kind::Int, Kind::Float, Kind::Null],
    &[Kind::Int, Kind::BigInt, Kind::Null],
    &[Kind::Float, Kind::Null],
    &[Kind::Decimal, Kind::Null],
    &[Kind::Text, Kind::Null],
    &[Kind::Bytes, Kind::Bool],
    &[Kind::Bytes],
    &[Kind::Bool, Kind::Null],
    &[Kind::Time, Kind::Null],
    &Kind::ALL,
];

/// A value of a kind, for documents of many: not those that are there to be large.
fn any(kind: Kind, random: &mut Random, depth: u32) -> Value {
    let some = |random: &mut Random| {
        (0..random.below(4)).map(|_| any(random.pick(&Kind::ALL), random, depth + 1)).collect()
    };
    match kind {
        Kind::List if depth < 3 => Value::List(some(random)),
        Kind::Map if depth < 3 => {
            let values: Vec<Value> = some(random);
            let names = ["a", "b", "ü", "10"].into_iter();
            Document::from_iter(names.zip(values)).into()
        }
        Kind::List | Kind::Map => Value::Null,
        Kind::Float if random.chance(0.2) => Value::Float(-0.0),
        kind => {
            let small = |value: &Value| value.as_str().is_none_or(|text| text.len() < 1000);
            let all: Vec<Value> = samples(kind).into_iter().filter(small).collect();
            all[random.below(all.len() as u32) as usize].clone()
        }
    }
}

pub async fn any_values(subject: &Subject) -> Outcome {
    let driver = DRIVERS.iter().find(|driver| driver.name == subject.driver());
    let loses = subject.open("").await?.store.abilities().loses;
    if let (Some(driver), false, false) = (driver, subject.shape() == Shape::Blob, loses.is_empty())
    {
        let listed = driver.loses().any(|(shape, _)| shape == subject.shape());
        ensure!(listed, "`steelyard stores` does not say what layout {} loses", subject.shape());
    }
    let (mut kept, mut faults) = (0, Vec::new());
    for (family, kinds) in FAMILIES.iter().enumerate() {
        let mut random = Random::new(20_091_115, 9, family as u64);
        let row = |i: usize| {
            let fields = ["a", "b"].map(|name| {
                let there = !random.chance(0.1);
                (name, there.then(|| any(random.pick(kinds), &mut random, 0)))
            });
            let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
            Row { key: key(format!("r{i}")), record: fields.collect() }
        };
        let rows: Vec<Row> = (0..40).map(row).collect();
        let Some(fresh) = made_for(subject, &rows).await? else { continue };
        for row in &rows {
            match fresh.store.put(std::slice::from_ref(row)).await {
                Ok(()) => {}
                Err(e) if REFUSED.contains(&e.kind()) => {
                    let named =
                        e.to_string().contains(&*row.key) || e.to_string().contains("field");
                    ensure!(named, "it names neither key nor field: {e:?}");
                    continue;
                }
                Err(e) => return Err(e.into()),
            }
            kept += 1;
            let found = get_one(&*fresh.store, &row.key).await?;
            let found = found.ok_or_else(|| Fault::new("it is not there"))?;
            if let Some(found) = difference(&row.record, &found, fresh.store.abilities().keeps) {
                faults.push(found);
            }
        }
        fresh.done().await?;
    }
    ensure!(kept > 40, "only {kept} records were kept");
    ensure!(faults.is_empty(), "{}", faults[..faults.len().min(6)].join("\n"));
    Ok(())
}
