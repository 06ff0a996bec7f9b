//! What the table of drivers says of a layout (`steelyard stores --table`) is what a store of it does.

use std::slice;

use futures_util::TryStreamExt;
use steelyard::{
    Error, ErrorKind,
    durability::Tier,
    record::{Document, Kind, Value},
    server,
    store::{
        self, DRIVERS, Driver, Facts, Filter, Index, Query, Row, Shape, one_by_one,
        query::{Path, Test},
    },
};

use super::{
    super::places::layout,
    Fault, Outcome, Subject, Wrap, ensure, key, rows,
    values::{samples, through},
};

/// What is known of a subject beforehand; none where it is a store of the tests, or inside a wrapper.
fn known(subject: &Subject) -> Option<(&'static Driver, &'static Facts)> {
    let driver = DRIVERS.iter().find(|driver| driver.name == subject.driver())?;
    let facts = driver.facts.iter().find(|facts| facts.shape == subject.shape())?;
    // MyISAM is another store by the same driver: what differs stands in the driver's `limits`.
    (subject.wrap == Wrap::Bare && !subject.name.contains("engine=")).then_some((driver, facts))
}

pub async fn abilities(subject: &Subject) -> Outcome {
    let Some((driver, facts)) = known(subject) else { return Ok(()) };
    let fresh = subject.ready(&rows(1)).await?;
    let about = fresh.store.describe().await?;
    let (now, said) = (fresh.store.abilities().clone(), &facts.abilities);
    ensure!(driver.clients.first() == Some(&about.client), "{} speaks to it", about.client);
    ensure!(driver.clients.contains(&about.client), "{} is not in the table", about.client);
    // A stand-in is another product: it says so, and has abilities of its own.
    if about.product == "express-pouchdb" {
        return fresh.done().await;
    }
    if facts.shape != Shape::Blob {
        ensure!(now.keeps == said.keeps, "keeps {:?}, not {:?}", now.keeps, said.keeps);
        ensure!(now.loses == said.loses, "loses {:?}, not {:?}", now.loses, said.loses);
    }
    ensure!(now.cannot == said.cannot, "cannot {:?}, not {:?}", now.cannot, said.cannot);
    let yes_or_no = [
        ("joins", now.joins, said.joins),
        ("atomic", now.atomic, said.atomic),
        ("conditional", now.conditional, said.conditional),
        ("ordered", now.ordered, said.ordered),
    ];
    for (what, now, said) in yes_or_no {
        ensure!(now == said, "{what}: {now}, not {said}");
    }
    let sizes = [("key", now.max_key, said.max_key), ("record", now.max_record, said.max_record)];
    for (what, now, said) in sizes {
        let fits = now == said || now < said && !driver.limits.is_empty();
        ensure!(fits, "the largest {what} has {now} bytes, not {said}");
    }
    let each = fresh.store.put_each(&rows(3)).await;
    let refused = |e: &Error| e.kind() == ErrorKind::Unsupported;
    ensure!(each.as_ref().err().is_none_or(refused), "put_each: {each:?}");
    ensure!(each.is_ok() == facts.transactions, "transactions: {}", each.is_ok());
    fresh.done().await
}

fn holding(value: Value, i: usize) -> Row {
    Row { key: key(format!("v{i}")), record: Document::from_iter([("v", value)]) }
}

/// Kinds that are refused are refused whatever the value, and no others are.
pub async fn refused_kinds(subject: &Subject) -> Outcome {
    let Some((_, facts)) = known(subject).filter(|(_, facts)| facts.shape != Shape::Blob) else {
        return Ok(());
    };
    for kind in Kind::ALL {
        let values = samples(kind).into_iter().enumerate();
        let rows: Vec<Row> = values.map(|(i, value)| holding(value, i)).collect();
        let like = match (facts.shape, kind) {
            (Shape::Columns, Kind::List | Kind::Map) => vec![holding("text".into(), 0)],
            _ => rows.clone(),
        };
        let refused = match subject.ready(&like).await {
            // There may be no columns of this kind at all.
            Err(_) if facts.shape == Shape::Columns => true,
            Err(fault) => return Err(fault),
            Ok(fresh) => {
                let mut refused = true;
                for row in &rows {
                    refused &= through(&*fresh.store, row).await?.is_err();
                }
                fresh.done().await?;
                refused
            }
        };
        let (name, said) = (kind.name(), facts.refuses.contains(&kind));
        ensure!(refused == said, "every {name} is refused: {refused}, and the table says {said}");
    }
    Ok(())
}

/// Maps in maps, so many with the record itself.
fn deep(levels: usize) -> Row {
    let inner =
        (2..levels).fold(Value::Int(1), |inner, _| Document::from_iter([("m", inner)]).into());
    let outer = match levels {
        1 => Value::Int(1),
        _ => Document::from_iter([("m", inner)]).into(),
    };
    holding(outer, levels)
}

pub async fn levels(subject: &Subject) -> Outcome {
    let Some((_, facts)) = known(subject).filter(|(_, facts)| facts.shape != Shape::Blob) else {
        return Ok(());
    };
    let fresh = subject.ready(&[deep(1)]).await?;
    let deepest = facts.levels.unwrap_or(200);
    let held = through(&*fresh.store, &deep(deepest)).await?;
    ensure!(held.is_ok(), "{deepest} levels: {held:?}");
    if let Some(levels) = facts.levels {
        let held = through(&*fresh.store, &deep(levels + 1)).await?;
        ensure!(held.is_err(), "{} levels are held, and the table says {levels}", levels + 1);
    }
    fresh.done().await
}

/// Indexes are made on the kinds of value that are in the table, and find them.
pub async fn indexes(subject: &Subject) -> Outcome {
    let Some((_, facts)) = known(subject) else { return Ok(()) };
    for kind in facts.indexed {
        let path: Path = "v".parse()?;
        let values = samples(*kind).into_iter().take(2).enumerate();
        let rows: Vec<Row> = values.map(|(i, value)| holding(value, i)).collect();
        let fresh = subject.open("").await?;
        let layout = layout(fresh.store.shape(), &rows)?.with_index(path.clone(), *kind);
        fresh.store.prepare(&layout).await?;
        fresh.store.put(&rows).await?;
        for row in &rows {
            let value = row.record.get("v").expect("it is there").clone();
            let query = Query::new(Filter::Field(path.clone(), Test::In(vec![value])));
            let found: Vec<Row> = one_by_one(fresh.store.find(&query).await?).try_collect().await?;
            let keys: Vec<_> = found.iter().map(|row| &row.key).collect();
            ensure!(keys == [&row.key], "{} finds {keys:?} for {row:?}", kind.name());
        }
        fresh.done().await?;
    }
    let on = |path: &str| Ok::<_, Error>(Index { path: path.parse()?, kind: Kind::Text });
    let (flat, inside) = (holding("x".into(), 0), deep(2));
    for (path, like, said) in
        [("v", &flat, !facts.indexed.is_empty()), ("v.m", &inside, facts.nested)]
    {
        let fresh = subject.open("").await?;
        // There are no columns of maps.
        let like = if facts.shape == Shape::Columns { &flat } else { like };
        let mut layout = layout(fresh.store.shape(), slice::from_ref(like))?;
        layout.indexes.push(on(path)?);
        let made = fresh.store.prepare(&layout).await;
        // The store in memory goes through its records, and takes no notice of indexes.
        let is = made.is_ok() && subject.driver() != "memory";
        ensure!(is == said, "an index on {path}: {made:?}, and the table says {said}");
        if made.is_ok() {
            fresh.done().await?;
        }
    }
    Ok(())
}

/// Whether a store opens that promises this tier.
async fn opens(url: &str, tier: Tier) -> Result<bool, Fault> {
    match store::open(url).await {
        Ok(place) => {
            let set = place.describe().await?.set;
            ensure!(set == Some(tier), "{url}: {set:?}");
            Ok(true)
        }
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// The tiers of a driver are those that it opens with in this process, or those of its servers.
pub async fn tiers() -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    for driver in DRIVERS {
        for tier in Tier::ALL {
            let said = driver.tiers.contains(&tier);
            let is = match (driver.is_embedded(), driver.name) {
                (true, name) => {
                    let file = folder.path().join(format!("{name}-{tier}"));
                    let url = format!("{name}:{}?durability={tier}", file.display());
                    let in_memory = format!("{name}:?durability={tier}");
                    opens(&url, tier).await? || name == "sqlite" && opens(&in_memory, tier).await?
                }
                // Nobody has an Amazon to try.
                (false, "s3") if tier >= Tier::T2 => said,
                (false, _) => {
                    // FerretDB can be less durable than the protocol can ask for.
                    let asked = driver.servers.iter().filter(|name| **name != "ferretdb");
                    let servers = asked.map(|name| server::named(name));
                    servers.filter_map(Result::ok).any(|program| program.tiers.contains(&tier))
                }
            };
            ensure!(is == said, "{} with {tier}: {is}, and the table says {said}", driver.name);
        }
    }
    Ok(())
}
