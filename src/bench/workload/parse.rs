//! A workload's text, read so that what is wrong with it is found by its line.

use std::{collections::BTreeMap, ops::Range as Span};

use serde::Deserialize;
use toml::Spanned;

use super::{Act, Kind, Phase, Range, Relation, Spread, Table, Way, Word, Workload};
use crate::{
    Error, Result,
    bench::schedule::{Limit, Pace},
    record::{Document, dataset::Dataset},
    store::{
        Filter,
        query::{Order, Path},
    },
};

/// The table of phases that name none.
const TABLE: &str = "records";
/// Records in a batch where nobody says how many.
const BATCH: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorkload {
    name: String,
    about: String,
    source: Option<String>,
    table: BTreeMap<String, Spanned<RawTable>>,
    phase: Vec<Spanned<RawPhase>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    dataset: String,
    count: Option<u64>,
    published: Option<u64>,
    key: Option<String>,
    #[serde(default)]
    index: Vec<String>,
    layout: Option<String>,
}

/// All keys that a phase may have; which of them belong to what it does, `act` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPhase {
    name: String,
    r#do: String,
    table: Option<String>,
    count: Option<u64>,
    published: Option<u64>,
    seconds: Option<f64>,
    pace: Option<RawPace>,
    concurrency: Option<u32>,
    way: Option<String>,
    batch: Option<usize>,
    index: Option<Vec<String>>,
    keys: Option<RawSpread>,
    r#where: Option<Document>,
    range: Option<RawRange>,
    sort: Option<Vec<String>>,
    limit: Option<u64>,
    by: Option<String>,
    to: Option<String>,
    field: Option<String>,
    set: Option<Document>,
    shares: Option<BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum RawPace {
    Free,
    Fixed(f64),
    Poisson(f64),
    Share(f64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum RawSpread {
    File,
    Random,
    Zipfian,
    Latest,
    Hot { records: f64, operations: f64 },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRange {
    field: String,
    width: u64,
}

pub(super) fn workload(text: &str) -> Result<Workload> {
    let raw: RawWorkload = toml::from_str(text).map_err(|e| told(text, &e))?;
    let at = |span: Span<usize>, e: Error| e.in_place(format!("line {}", line(text, span.start)));
    let mut tables = Vec::with_capacity(raw.table.len());
    for (name, raw) in raw.table {
        let span = raw.span();
        tables.push(table(name, raw.into_inner()).map_err(|e| at(span, e))?);
    }
    let mut phases: Vec<Phase> = Vec::with_capacity(raw.phase.len());
    for raw in raw.phase {
        let span = raw.span();
        let phase = phase(raw.into_inner(), &tables).and_then(|phase| {
            match phases.iter().any(|p| p.name == phase.name) {
                true => Err(Error::invalid(format!("a second phase {:?}", phase.name))),
                false => Ok(phase),
            }
        });
        phases.push(phase.map_err(|e| at(span, e))?);
    }
    if phases.is_empty() {
        return Err(Error::invalid("a workload without a [[phase]]"));
    }
    let (name, about, source) = (raw.name, raw.about, raw.source);
    Ok(Workload { name, about, source, tables, phases, text: text.to_owned() })
}

fn table(name: String, raw: RawTable) -> Result<Table> {
    let dataset = Dataset::named(&raw.dataset)?;
    let info = dataset.info();
    Ok(Table {
        name,
        dataset,
        count: raw.count.unwrap_or(info.count),
        published: raw.published.unwrap_or(info.published),
        key: raw.key.or(info.key.map(str::to_owned)),
        index: paths(&raw.index)?,
        layout: raw.layout.map(|l| l.parse()).transpose()?,
    })
}

fn paths(names: &[String]) -> Result<Vec<Path>> {
    names.iter().map(|name| name.parse()).collect()
}

fn phase(mut raw: RawPhase, tables: &[Table]) -> Result<Phase> {
    let known: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    let named = |name: &str| match known.contains(&name) {
        true => Ok(name.to_owned()),
        false => {
            let near =
                nearest(name, &known).map_or(String::new(), |n| format!("; did you mean {n:?}?"));
            Err(Error::invalid(format!("no [table.{name}]{near}")))
        }
    };
    let table = named(raw.table.take().as_deref().unwrap_or(TABLE))?;
    let limit = match (raw.count.take(), raw.seconds.take()) {
        (None, None) => None,
        (Some(count), None) if count > 0 => Some(Limit::Count(count)),
        (None, Some(seconds)) if seconds > 0.0 => Some(Limit::Seconds(seconds)),
        (Some(_), Some(_)) => return Err(Error::invalid("both count and seconds; one of them")),
        _ => return Err(Error::invalid("a phase of nothing: count and seconds are above 0")),
    };
    let pace = match raw.pace.take() {
        None | Some(RawPace::Free) => Pace::Free,
        Some(RawPace::Fixed(rate)) => Pace::Fixed(rate),
        Some(RawPace::Poisson(rate)) => Pace::Poisson(rate),
        Some(RawPace::Share(share)) => Pace::Share(share),
    };
    if let Pace::Fixed(n) | Pace::Poisson(n) | Pace::Share(n) = pace
        && !(n > 0.0 && n.is_finite())
    {
        return Err(Error::invalid(format!("a pace of {n}: it is above 0")));
    }
    let concurrency = raw.concurrency.take().unwrap_or(1);
    if !(1..=10_000).contains(&concurrency) {
        return Err(Error::invalid(format!("concurrency = {concurrency}: 1 to 10000")));
    }
    let act = act(&mut raw, named)?;
    if let Some(key) = raw.left() {
        return Err(Error::invalid(format!("{key:?} says nothing where do = {:?}", raw.r#do)));
    }
    let published = raw.published;
    let phase = Phase { name: raw.name, act, table, limit, published, pace, concurrency };
    if !phase.one_by_one() && (pace != Pace::Free || concurrency > 1) {
        let what = "pace and concurrency are for operations that are sent one by one";
        return Err(Error::invalid(format!("{what}; do = {:?} is one", raw.r#do)));
    }
    Ok(phase)
}

const ACTS: [&str; 11] = [
    "prepare", "load", "index", "get", "find", "relate", "update", "delete", "scan", "mix",
    "settle",
];

fn act(raw: &mut RawPhase, named: impl Fn(&str) -> Result<String>) -> Result<Act> {
    let missing = |key: &str| Error::invalid(format!("{key:?} is missing"));
    Ok(match raw.r#do.as_str() {
        "prepare" => Act::Prepare,
        "settle" => Act::Settle,
        "scan" => Act::Scan,
        "load" => Act::Load {
            way: raw.way.take().map_or(Ok(Way::Bulk), |w| Way::of(&w, "way"))?,
            batch: raw.batch()?.unwrap_or(BATCH),
        },
        "index" => Act::Index(paths(&raw.index.take().ok_or_else(|| missing("index"))?)?),
        "get" => Act::Get { spread: raw.spread()?, batch: raw.batch()?.unwrap_or(1) },
        "find" => Act::Find {
            filter: raw.filter()?.unwrap_or_default(),
            range: match raw.range.take() {
                None => None,
                Some(RawRange { width: 0, .. }) => {
                    return Err(Error::invalid("a range of width 0 holds nothing"));
                }
                Some(RawRange { field, width }) => Some(Range { field: field.parse()?, width }),
            },
            sort: raw
                .sort
                .take()
                .unwrap_or_default()
                .iter()
                .map(|s| sort(s))
                .collect::<Result<_>>()?,
            most: raw.limit.take(),
        },
        "relate" => Act::Relate {
            by: Relation::of(&raw.by.take().ok_or_else(|| missing("by"))?, "relation")?,
            to: named(raw.to.take().as_deref().unwrap_or(TABLE))?,
            field: raw.field.take().ok_or_else(|| missing("field"))?.parse()?,
        },
        "update" => Act::Update {
            spread: raw.spread()?,
            set: raw.set.take().ok_or_else(|| missing("set"))?,
        },
        "delete" => Act::Delete(raw.filter()?.ok_or_else(|| missing("where"))?),
        "mix" => {
            let shares = raw.shares.take().ok_or_else(|| missing("shares"))?;
            let all: f64 = shares.values().sum();
            if !(all > 0.0 && all.is_finite() && shares.values().all(|s| *s >= 0.0)) {
                return Err(Error::invalid("shares are numbers of 0 or more, and not all 0"));
            }
            let kinds = shares
                .iter()
                .map(|(kind, share)| Ok((Kind::of(kind, "kind of operation")?, share / all)));
            Act::Mix { shares: kinds.collect::<Result<_>>()?, spread: raw.spread()? }
        }
        other => {
            let near =
                nearest(other, &ACTS).map_or(String::new(), |n| format!("; did you mean {n:?}?"));
            return Err(Error::invalid(format!(
                "no do = {other:?}; known: {}{near}",
                ACTS.join(", ")
            )));
        }
    })
}

/// `birthdate` is ascending, `-birthdate` descending.
fn sort(text: &str) -> Result<(Path, Order)> {
    Ok(match text.strip_prefix('-') {
        Some(path) => (path.parse()?, Order::Descending),
        None => (text.parse()?, Order::Ascending),
    })
}

impl RawPhase {
    fn batch(&mut self) -> Result<Option<usize>> {
        match self.batch.take() {
            Some(0) => Err(Error::invalid("a batch of 0 records")),
            batch => Ok(batch),
        }
    }

    fn spread(&mut self) -> Result<Spread> {
        Ok(match self.keys.take() {
            None | Some(RawSpread::Random) => Spread::Random,
            Some(RawSpread::File) => Spread::File,
            Some(RawSpread::Zipfian) => Spread::Zipfian,
            Some(RawSpread::Latest) => Spread::Latest,
            Some(RawSpread::Hot { records, operations }) => {
                if !(records > 0.0 && records <= 1.0 && (0.0..=1.0).contains(&operations)) {
                    return Err(Error::invalid("shares of hot keys are between 0 and 1"));
                }
                Spread::Hot { records, operations }
            }
        })
    }

    fn filter(&mut self) -> Result<Option<Filter>> {
        self.r#where.take().map(|document| Filter::from_document(&document)).transpose()
    }

    /// A key that nobody took.
    fn left(&self) -> Option<&'static str> {
        let left = [
            (self.way.is_some(), "way"),
            (self.batch.is_some(), "batch"),
            (self.index.is_some(), "index"),
            (self.keys.is_some(), "keys"),
            (self.r#where.is_some(), "where"),
            (self.range.is_some(), "range"),
            (self.sort.is_some(), "sort"),
            (self.limit.is_some(), "limit"),
            (self.by.is_some(), "by"),
            (self.to.is_some(), "to"),
            (self.field.is_some(), "field"),
            (self.set.is_some(), "set"),
            (self.shares.is_some(), "shares"),
        ];
        left.into_iter().find(|l| l.0).map(|l| l.1)
    }
}

/// The line of a byte, from 1.
fn line(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count()
}

/// An error of the parser, with its line and, for a key that is not known, the nearest that is.
fn told(text: &str, error: &toml::de::Error) -> Error {
    let message = error.message();
    // "unknown field `indx`, expected one of `name`, `index`": serde's words.
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let near = match words.split_first() {
        Some((unknown, known)) if message.starts_with("unknown") => nearest(unknown, known),
        _ => None,
    };
    let near = near.map_or(String::new(), |n| format!("; did you mean {n:?}?"));
    let told = Error::invalid(format!("{}{near}", message.replace('\n', " ")));
    match error.span() {
        Some(span) => told.in_place(format!("line {}", line(text, span.start))),
        None => told,
    }
}

/// The known word that is most like this one, if any is.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |k: &str| strsim::jaro_winkler(word, k);
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.75).then_some(*best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::workload::BUILT_IN;

    #[test]
    fn built_in_ones_are_sound() {
        for (name, text) in BUILT_IN {
            let workload = Workload::parse(text).unwrap_or_else(|e| panic!("{name}: {e:?}"));
            assert_eq!(workload.name, *name);
            assert!(workload.about.ends_with('.'), "{name}");
        }
    }

    fn refused(text: &str) -> String {
        format!("{:?}", workload(text).unwrap_err())
    }

    const HEAD: &str = "name = \"x\"\nabout = \"y\"\n[table.records]\ndataset = \"people\"\n";

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_the_right_key() {
        for (body, wanted) in [
            (
                "[[phase]]\nname = \"a\"\ndo = \"load\"\nbach = 7\n",
                ["line 8", "did you mean \"batch\"?"],
            ),
            ("[[phase]]\nname = \"a\"\ndo = \"laod\"\n", ["line 5", "did you mean \"load\"?"]),
            ("[[phase]]\nname = \"a\"\ndo = \"scan\"\nbatch = 7\n", ["line 5", "says nothing"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"find\"\ntable = \"record\"\n",
                ["line 5", "did you mean \"records\"?"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"load\"\nway = \"row\"\n",
                ["line 5", "did you mean \"rows\"?"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nkeys = \"zipf\"\n",
                ["line 8", "did you mean \"zipfian\"?"],
            ),
            ("[[phase]]\nname = \"a\"\ndo = \"delete\"\n", ["line 5", "\"where\" is missing"]),
            ("[[phase]]\nname = \"a\"\ndo = \"get\"\nbatch = 0\n", ["line 5", "batch of 0"]),
            ("[[phase]]\nname = \"a\"\ndo = \"scan\"\nconcurrency = 2\n", ["line 5", "one by one"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"mix\"\nshares = {red = 1}\n",
                ["line 5", "did you mean \"read\"?"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"find\"\nwhere = {age = {\"$gt\" = 1, \"$x\" = 2}}\n",
                ["line 5", "no operator"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"scan\"\n[[phase]]\nname = \"a\"\ndo = \"scan\"\n",
                ["line 8", "a second phase"],
            ),
            ("[[phase]]\nname = 7\ndo = \"scan\"\n", ["line 6", "expected a string"]),
        ] {
            let said = refused(&format!("{HEAD}{body}"));
            for wanted in wanted {
                assert!(said.contains(wanted), "{body}: {said}");
            }
        }
    }

    #[test]
    fn words_are_near_or_not() {
        assert_eq!(nearest("zipf", &["file", "zipfian"]), Some("zipfian"));
        assert_eq!(nearest("qqq", &["file", "zipfian"]), None);
    }
}
