//! A workload's text, read so that what is wrong with it is found by its line.

use std::{collections::BTreeMap, ops::Range as Span};

use serde::Deserialize;
use toml::Spanned;

use super::{
    Act, Kind, Phase, Range, Relation, Room, Table, Way, Word, Workload,
    raw::{RawPace, RawPhase, RawRange, sort},
};
use crate::{
    Error, Result,
    bench::schedule::{Limit, Pace},
    record::dataset::Dataset,
    store::query::Path,
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

pub(super) fn workload(text: &str) -> Result<Workload> {
    let raw: RawWorkload = toml::from_str(text).map_err(|e| told(text, &e))?;
    let at = |span: Span<usize>, e: Error| e.in_place(format!("line {}", line(text, span.start)));
    let mut tables = Vec::with_capacity(raw.table.len());
    let mut written: Vec<_> = raw.table.into_iter().collect();
    written.sort_by_key(|(_, table)| table.span().start);
    for (name, raw) in written {
        let span = raw.span();
        let read = table(name, raw.into_inner()).and_then(|table| table.bounded().map(|()| table));
        tables.push(read.map_err(|e| at(span, e))?);
    }
    let mut phases: Vec<Phase> = Vec::with_capacity(raw.phase.len());
    let mut loaded: Vec<String> = Vec::new();
    let mut empty = None;
    for raw in raw.phase {
        let span = raw.span();
        let written = phase(raw.into_inner(), &tables).map_err(|e| at(span.clone(), e))?;
        for phase in written {
            phase.bounded().map_err(|e| at(span.clone(), e))?;
            if phases.iter().any(|p| p.name == phase.name) {
                let what = format!("a second phase {:?}", phase.name);
                return Err(at(span, Error::invalid(what)));
            }
            empty = empty.or_else(|| Some((span.clone(), not_loaded(&phase, &loaded)?)));
            if let Act::Load { .. } = phase.act {
                loaded.push(phase.table.clone());
            }
            phases.push(phase);
        }
    }
    if phases.is_empty() {
        return Err(Error::invalid("a workload without a [[phase]]"));
    }
    if let Some((span, e)) = empty {
        return Err(at(span, e));
    }
    let (name, about, source) = (raw.name, raw.about, raw.source);
    Ok(Workload { name, about, source, tables, phases, text: text.to_owned() })
}

/// What is wrong with a phase that works on records which no phase before it has loaded.
fn not_loaded(phase: &Phase, loaded: &[String]) -> Option<Error> {
    let needed = phase.act.needs(&phase.table);
    let table = needed.into_iter().find(|table| !loaded.iter().any(|name| name == table))?;
    Some(Error::invalid(format!(
        "phase {:?} needs the records of table {table:?}, and no phase before it loads them; put \
         before it a [[phase]] with do = \"load\" and table = {table:?}",
        phase.family()
    )))
}

fn table(name: String, raw: RawTable) -> Result<Table> {
    let dataset = Dataset::named(&raw.dataset)?;
    let info = dataset.info();
    Ok(Table {
        name,
        dataset,
        count: raw.count.unwrap_or(info.count),
        published: raw.published.unwrap_or(info.published),
        key: raw.key,
        index: paths(&raw.index)?,
        layout: raw.layout.map(|l| l.parse()).transpose()?,
    })
}

fn paths(names: &[String]) -> Result<Vec<Path>> {
    names.iter().map(|name| name.parse()).collect()
}

/// A phase as it is written: several, where it is a curve.
fn phase(mut raw: RawPhase, tables: &[Table]) -> Result<Vec<Phase>> {
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
    let concurrency = raw.concurrency()?;
    let room = raw.room()?;
    let act = act(&mut raw, &named)?;
    if let Some(key) = raw.left() {
        return Err(Error::invalid(format!("{key:?} says nothing where do = {:?}", raw.r#do)));
    }
    let (curve, at_once) = (concurrency.len() > 1, concurrency.iter().any(|n| *n > 1));
    if !act.one_by_one() && (pace != Pace::Free || at_once) {
        let what = "pace and concurrency are for operations that are sent one by one";
        return Err(Error::invalid(format!("{what}; do = {:?} is one", raw.r#do)));
    }
    if curve && (pace != Pace::Free || !room.is_empty()) {
        let what = "a list of concurrency is a curve of capacity: without pace and cache";
        return Err(Error::invalid(what));
    }
    let reads = act.one_by_one() && act.repeats();
    if !room.is_empty() && !reads {
        let what = "cache is for phases that read one by one";
        return Err(Error::invalid(format!("{what}; do = {:?} is none", raw.r#do)));
    }
    let one = Phase {
        name: raw.name,
        act,
        table,
        limit,
        published: raw.published,
        pace,
        concurrency: concurrency[0],
        of: None,
        room: None,
    };
    let part = |name: String| Phase { name, of: Some(one.name.clone()), ..one.clone() };
    if curve {
        let point = |n: &u32| Phase { concurrency: *n, ..part(format!("{} x{n}", one.name)) };
        return Ok(concurrency.iter().map(point).collect());
    }
    if !room.is_empty() {
        let both = |share: &f64| {
            [(false, "cold"), (true, "warm")].map(|(warm, state)| Phase {
                room: Some(Room { share: *share, warm }),
                ..part(format!("{}, cache {share}, {state}", one.name))
            })
        };
        return Ok(room.iter().flat_map(both).collect());
    }
    Ok(vec![one])
}

/// What takes an act's keys out of a phase; tables are checked by their names.
type Parse = fn(&mut RawPhase, &dyn Fn(&str) -> Result<String>) -> Result<Act>;

/// The kinds of phases: the word of each, and what reads its keys.
const ACTS: &[(&str, Parse)] = &[
    ("prepare", |_, _| Ok(Act::Prepare)),
    ("load", |raw, _| {
        Ok(Act::Load {
            way: raw.way.take().map_or(Ok(Way::Bulk), |w| Way::of(&w, "way"))?,
            batch: raw.batch()?.unwrap_or(BATCH),
        })
    }),
    ("index", |raw, _| {
        let names = raw.index.take().ok_or_else(|| missing("index"))?;
        Ok(Act::Index { paths: paths(&names)?, writes: raw.writes.take().unwrap_or(0) })
    }),
    ("get", |raw, _| Ok(Act::Get { spread: raw.spread()?, batch: raw.batch()?.unwrap_or(1) })),
    ("find", find),
    ("relate", |raw, named| {
        Ok(Act::Relate {
            by: Relation::of(&raw.by.take().ok_or_else(|| missing("by"))?, "relation")?,
            to: named(raw.to.take().as_deref().unwrap_or(TABLE))?,
            field: raw.field.take().ok_or_else(|| missing("field"))?.parse()?,
        })
    }),
    ("update", |raw, _| {
        let set = raw.set.take().ok_or_else(|| missing("set"))?;
        Ok(Act::Update { spread: raw.spread()?, set })
    }),
    ("delete", |raw, _| Ok(Act::Delete(raw.filter()?.ok_or_else(|| missing("where"))?))),
    ("scan", |_, _| Ok(Act::Scan)),
    ("mix", mix),
    ("settle", |_, _| Ok(Act::Settle)),
    ("rewrite", |raw, _| match raw.times.take().unwrap_or(2) {
        // The last time writes them as they were: a store may skip what is there already.
        0 | 1 => {
            Err(Error::invalid("times = 2 at least: the last pass writes records as they were"))
        }
        times => Ok(Act::Rewrite { times, batch: raw.batch()?.unwrap_or(BATCH) }),
    }),
    ("recover", |_, _| Ok(Act::Recover)),
];

fn act(raw: &mut RawPhase, named: &dyn Fn(&str) -> Result<String>) -> Result<Act> {
    let word = raw.r#do.clone();
    match ACTS.iter().find(|(known, _)| *known == word) {
        Some((_, parse)) => parse(raw, named),
        None => {
            let known: Vec<&str> = ACTS.iter().map(|act| act.0).collect();
            let near =
                nearest(&word, &known).map_or(String::new(), |n| format!("; did you mean {n:?}?"));
            Err(Error::invalid(format!("no do = {word:?}; known: {}{near}", known.join(", "))))
        }
    }
}

fn missing(key: &str) -> Error {
    Error::invalid(format!("{key:?} is missing"))
}

fn find(raw: &mut RawPhase, _: &dyn Fn(&str) -> Result<String>) -> Result<Act> {
    Ok(Act::Find {
        filter: raw.filter()?.unwrap_or_default(),
        range: match raw.range.take() {
            None => None,
            Some(RawRange { width: 0, .. }) => {
                return Err(Error::invalid("a range of width 0 holds nothing"));
            }
            Some(RawRange { field, width }) => Some(Range { field: field.parse()?, width }),
        },
        sort: raw.sort.take().unwrap_or_default().iter().map(|s| sort(s)).collect::<Result<_>>()?,
        most: match raw.limit.take() {
            Some(0) => return Err(Error::invalid("limit = 0: a query that asks for no record")),
            most => most,
        },
        expect: raw.expect.take(),
    })
}

fn mix(raw: &mut RawPhase, _: &dyn Fn(&str) -> Result<String>) -> Result<Act> {
    let shares = raw.shares.take().ok_or_else(|| missing("shares"))?;
    let all: f64 = shares.values().sum();
    if !(all > 0.0 && all.is_finite() && shares.values().all(|s| *s >= 0.0)) {
        return Err(Error::invalid("shares are numbers of 0 or more, and not all 0"));
    }
    let kinds =
        shares.iter().map(|(kind, share)| Ok((Kind::of(kind, "kind of operation")?, share / all)));
    Ok(Act::Mix { shares: kinds.collect::<Result<_>>()?, spread: raw.spread()? })
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

    const LOAD: &str = "[[phase]]\nname = \"load\"\ndo = \"load\"\n";

    #[test]
    fn what_works_on_records_that_nothing_loads_is_refused() {
        let two = format!("{HEAD}[table.others]\ndataset = \"people\"\n");
        let phase = |rest: &str| format!("[[phase]]\nname = \"a\"\n{rest}\n");
        let related = |by: &str, to: &str| {
            phase(&format!("do = \"relate\"\nby = {by:?}\nto = {to:?}\nfield = \"x\""))
        };
        for (body, table) in [
            (phase("do = \"get\""), "records"),
            (phase("do = \"scan\"\ntable = \"others\""), "others"),
            (phase("do = \"get\"\ntable = \"others\"\nconcurrency = [1, 4]"), "others"),
            (phase("do = \"rewrite\"\ntable = \"others\""), "others"),
            (phase("do = \"delete\"\nwhere = \"age>=90\"\ntable = \"others\""), "others"),
            (phase("do = \"mix\"\nshares = {read = 1}\ntable = \"others\""), "others"),
            (phase("do = \"index\"\nindex = [\"age\"]\nwrites = 9\ntable = \"others\""), "others"),
            (related("index", "others"), "others"),
        ] {
            // A load of `records` is none of `others`, and one that comes later is too late.
            let before = if table == "others" { LOAD } else { "" };
            let after = if table == "records" { LOAD } else { "" };
            let said = refused(&format!("{two}{before}{body}{after}"));
            let line = two.lines().count() + before.lines().count() + 1;
            for wanted in
                [format!("line {line}"), "phase \"a\"".into(), format!("table \"{table}\"")]
            {
                assert!(said.contains(&wanted), "{wanted}: {body}: {said}");
            }
        }
        for body in [
            phase("do = \"mix\"\nshares = {insert = 1}\ntable = \"others\""),
            phase("do = \"recover\"\ntable = \"others\""),
            related("embedded", "others"),
        ] {
            workload(&format!("{two}{LOAD}{body}")).unwrap_or_else(|e| panic!("{body}: {e:?}"));
        }
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
                ["line 5", "unknown operator"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"scan\"\n[[phase]]\nname = \"a\"\ndo = \"scan\"\n",
                ["line 8", "a second phase"],
            ),
            ("[[phase]]\nname = 7\ndo = \"scan\"\n", ["line 6", "expected a string"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"rewirte\"\n",
                ["line 5", "did you mean \"rewrite\"?"],
            ),
            ("[[phase]]\nname = \"a\"\ndo = \"rewrite\"\ntimes = 1\n", ["line 5", "times = 2"]),
            ("[[phase]]\nname = \"a\"\ndo = \"get\"\ntimes = 3\n", ["line 5", "says nothing"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nconcurrency = [1, 0]\n",
                ["line 5", "1 to 10000"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nconcurrency = \"4\"\n",
                ["line 8", "a number or a list of numbers"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nconcurrency = [1, 4]\npace = {fixed = 9}\n",
                ["line 5", "without pace"],
            ),
            ("[[phase]]\nname = \"a\"\ndo = \"get\"\ncache = -1\n", ["line 5", "above 0"]),
            ("[[phase]]\nname = \"a\"\ndo = \"scan\"\ncache = 1\n", ["line 5", "read one by one"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nkeys = {trcae = \"x\"}\n",
                ["line 8", "did you mean \"trace\"?"],
            ),
            ("[[phase]]\nname = \"a\"\ndo = \"find\"\nwhere = 7\n", ["line 8", "age>=90"]),
            ("[[phase]]\nname = \"a\"\ndo = \"find\"\nlimit = 0\n", ["line 5", "no record"]),
            ("[[phase]]\nname = \"a\"\ndo = \"get\"\nexpect = 1\n", ["line 5", "says nothing"]),
        ] {
            let said = refused(&format!("{HEAD}{body}"));
            for wanted in wanted {
                assert!(said.contains(wanted), "{body}: {said}");
            }
        }
    }

    #[test]
    fn every_kind_of_phase_goes_by_its_word_and_is_documented() {
        let docs = include_str!("../../../docs/workloads.md");
        let more = |word: &str| match word {
            "index" => "index = [\"age\"]",
            "relate" => "by = \"embedded\"\nfield = \"x\"",
            "update" => "set = { age = 1 }",
            "delete" => "where = \"age>=90\"",
            "mix" => "shares = { read = 1 }",
            _ => "",
        };
        for (word, _) in ACTS {
            let phase = format!("[[phase]]\nname = \"a\"\ndo = \"{word}\"\n{}", more(word));
            let text = format!("{HEAD}{LOAD}{phase}");
            let parsed = workload(&text).unwrap_or_else(|e| panic!("{word}: {e:?}"));
            assert_eq!(parsed.phases[1].act.kind(), *word);
            assert!(docs.contains(&format!("| `{word}` |")), "docs/workloads.md has no {word}");
        }
    }

    #[test]
    fn curves_and_caches_are_several_phases() {
        let body = "[[phase]]\nname = \"a\"\ndo = \"get\"\nconcurrency = [1, 4]\n\
                    [[phase]]\nname = \"b\"\ndo = \"get\"\ncache = [2, 0.5]\n\
                    [[phase]]\nname = \"c\"\ndo = \"get\"\npace = {share = 0.5}\n";
        let mut workload = workload(&format!("{HEAD}{LOAD}{body}")).unwrap();
        workload.phases.remove(0);
        let names: Vec<&str> = workload.phases.iter().map(|p| p.name.as_str()).collect();
        let caches =
            ["b, cache 2, cold", "b, cache 2, warm", "b, cache 0.5, cold", "b, cache 0.5, warm"];
        assert_eq!(names[..2], ["a x1", "a x4"]);
        assert_eq!(names[2..6], caches);
        assert_eq!(workload.phases[1].concurrency, 4);
        let families = workload.families();
        assert_eq!((families[1].as_deref(), families[6].as_deref()), (Some("a"), Some("b")));
    }

    #[test]
    fn words_are_near_or_not() {
        assert_eq!(nearest("zipf", &["file", "zipfian"]), Some("zipfian"));
        assert_eq!(nearest("qqq", &["file", "zipfian"]), None);
    }
}
