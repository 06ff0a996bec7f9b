//! Databases, schemas and tenants of one server over one pool of connections: each sees its own, whatever the others do on
//! the same connections, in tables of the same name that look different.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{FutureExt, TryStreamExt, future::try_join_all};
use steelyard::{
    ErrorKind,
    record::{Document, Value, dataset::random::Random},
    store::{
        Databases, Expected, Filter, Key, KeyRange, Part, Place, Pools, Query, Row, Store,
        one_by_one,
    },
};

use super::{
    clients::{beyond, clients},
    places::{self, Fault, Outcome, Subject, Wrap, ensure, layout},
    proxy::Proxy,
};

/// How many operations each part is put through.
const OPERATIONS: u32 = 150;
/// Connections of all parts: fewer than there are parts.
const POOL: usize = 2;
const PARTS: usize = 3;

/// What is in a part under `n`. No two parts have the same kind of value, so that a statement of one is none of another's.
fn record(part: usize, n: u32) -> Document {
    let value = match part {
        0 => Value::Int(n.into()),
        1 => Value::Text(format!("text {n}")),
        _ => Value::Float(f64::from(n) + 0.5),
    };
    Document::from_iter([("v", value)])
}

fn row(part: usize, key: &Key, n: u32) -> Row {
    Row { key: key.clone(), record: record(part, n) }
}

async fn found(rows: steelyard::store::Rows<'_>) -> Result<BTreeMap<Key, Document>, Fault> {
    let rows: Vec<Row> = one_by_one(rows).try_collect().await?;
    Ok(rows.into_iter().map(|row| (row.key, row.record)).collect())
}

/// Operations at random on one part and on a map.
async fn lives(store: Arc<dyn Store>, part: usize, random: &mut Random) -> Outcome {
    let layout = layout(store.shape(), &[row(part, &Key::new("k")?, 1)])?;
    let mut model = BTreeMap::<Key, Document>::new();
    store.prepare(&layout).await?;
    for step in 0..OPERATIONS {
        let key = Key::new(format!("k{}", random.below(8)))?;
        let n = random.below(100);
        let at = |what: &str| format!("part {part}, step {step}: {what} {}", key.shown());
        match random.below(9) {
            0 | 1 => {
                store.put(&[row(part, &key, n)]).await?;
                model.insert(key.clone(), record(part, n));
            }
            2 => {
                let more: Vec<Row> = (0..40)
                    .map(|i| Ok(row(part, &Key::new(format!("m{i}"))?, n)))
                    .collect::<Result<_, Fault>>()?;
                store.put(&more).await?;
                model.extend(more.into_iter().map(|row| (row.key, row.record)));
            }
            3 => {
                let gone = store.remove(std::slice::from_ref(&key)).await?;
                ensure!(gone == u64::from(model.remove(&key).is_some()), "{}", at("removed"));
            }
            4 if store.abilities().conditional => {
                let done = store.put_if(&row(part, &key, n), &Expected::Absent).await?;
                ensure!(done != model.contains_key(&key), "{}", at("put_if"));
                model.entry(key.clone()).or_insert_with(|| record(part, n));
            }
            5 if store.abilities().can(&Query::new(equal(part, n)?)).is_ok() => {
                let same: BTreeMap<_, _> = model
                    .iter()
                    .filter(|(_, r)| **r == record(part, n))
                    .map(|(k, r)| (k.clone(), r.clone()))
                    .collect();
                let query = Query::new(equal(part, n)?);
                ensure!(found(store.find(&query).await?).await? == same, "{}", at("find"));
            }
            6 => {
                ensure!(
                    found(store.scan(&KeyRange::all()).await?).await? == model,
                    "{}",
                    at("scan")
                );
                ensure!(store.count().await? == model.len() as u64, "{}", at("count"));
            }
            // Given up while its connection may be on its way from another part.
            7 => drop(store.get(std::slice::from_ref(&key)).now_or_never()),
            8 if random.chance(0.1) => {
                store.drop_table().await?;
                model.clear();
                store.prepare(&layout).await?;
            }
            _ => {
                let got = store.get(std::slice::from_ref(&key)).await?.remove(0);
                ensure!(got.as_ref() == model.get(&key), "{}: {got:?}", at("get"));
            }
        }
    }
    Ok(())
}

fn equal(part: usize, n: u32) -> Result<Filter, Fault> {
    Ok(Filter::from_document(&record(part, n))?)
}

/// Whether a place has schemas, or databases.
pub fn has_parts(url: &str) -> Result<bool, Fault> {
    Ok(Databases::has_schemas(url)? || Databases::own_url(url, "x")?.is_some())
}

/// New schemas, or databases where there are none, over as few pools as there can be; `direct` makes the databases.
pub async fn made(url: &str, direct: &str, names: &[String]) -> Result<Vec<Place>, Fault> {
    let pools = Pools::default();
    let mut places = Vec::new();
    for name in names {
        let part = match Databases::has_schemas(url)? {
            true => Part::Schema(name),
            false => {
                Databases::create(direct, name).await?;
                Part::Database(name)
            }
        };
        places.push(pools.open(url, part).await?);
    }
    Ok(places)
}

/// Drops them.
pub async fn removed(direct: &str, names: &[String]) -> Outcome {
    for name in names {
        match Databases::has_schemas(direct)? {
            true => Databases::remove_schema(direct, name).await?,
            false => Databases::remove(direct, name).await?,
        }
    }
    Ok(())
}

async fn parts(subject: Arc<Subject>) -> Outcome {
    let Some(server) = subject.server() else { return Ok(()) };
    let proxy = Proxy::before(server).await;
    for client in clients(subject.driver()) {
        let table = places::name("t");
        let more = format!("pool={POOL}&table={table}&{client}");
        let url = subject.at(&proxy.url).url(&more).expect("a server");
        let direct = subject.url("").expect("a server");
        if !has_parts(&url)? {
            let none = Pools::default().open(&url, Part::Database("x")).await;
            ensure!(none.is_err_and(|e| e.kind() == ErrorKind::Unsupported), "{url}");
            return Ok(());
        }
        let names: Vec<String> = (0..PARTS).map(|_| places::name("part")).collect();
        let stores = made(&url, &direct, &names).await?;
        let seed = places::seed(&format!("{} {client}", subject.name));
        let mut lots: Vec<Random> =
            (0..PARTS).map(|part| Random::new(seed, 61, part as u64)).collect();
        let stores = stores.iter().map(|place| place.store().clone());
        let all = stores.zip(&mut lots).enumerate();
        try_join_all(all.map(|(part, (store, random))| lives(store, part, random))).await?;
        if let (false, Some(beyond)) = (client.ends_with("crate"), beyond(subject.driver())) {
            let most = proxy.most();
            ensure!(most <= POOL + beyond + 1, "{client}: {most} connections");
        }
        removed(&direct, &names).await?;
    }
    Ok(())
}

#[test]
fn parts_of_a_server_share_connections_and_nothing_else() {
    places::each(Wrap::Bare, parts);
}
