//! A workload's text, read so that what is wrong with it is found by its line.
//!
//! What a phase may have beside the options of all phases, its kind says: [`KINDS`].

use std::{collections::BTreeMap, ops::Range as Span};

use serde::{Deserialize, de::IgnoredAny};
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer},
};

use super::{
    Phase, Room, Table, Workload, bounds,
    options::{Options, did_you_mean},
};
use crate::{
    Error, Result,
    record::dataset::Dataset,
    schedule::{Limit, Pace},
    stores::phase::{Info, KINDS},
};

/// The names of the options that every phase may have.
const COMMON: [&str; 9] =
    ["name", "do", "table", "count", "seconds", "published", "pace", "concurrency", "cache"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorkload {
    name: String,
    about: String,
    source: Option<String>,
    table: BTreeMap<String, Spanned<RawTable>>,
    /// Read apart; here so that it is among the names that are known.
    #[serde(rename = "phase")]
    _phase: Option<IgnoredAny>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum RawPace {
    Free,
    Fixed(f64),
    Poisson(f64),
    Share(f64),
}

pub(super) fn workload(text: &str) -> Result<Workload> {
    let mut parsed = DeTable::parse(text).map_err(|e| told(text, &e))?;
    let given = parsed.get_mut().remove("phase");
    let raw = RawWorkload::deserialize(Deserializer::from(parsed)).map_err(|e| told(text, &e))?;
    let at = |span: Span<usize>, e: Error| e.in_place(format!("line {}", line(text, span.start)));
    let mut tables = Vec::with_capacity(raw.table.len());
    let mut written: Vec<_> = raw.table.into_iter().collect();
    written.sort_by_key(|(_, table)| table.span().start);
    for (name, raw) in written {
        let span = raw.span();
        let read = table(name, raw.into_inner()).and_then(|table| table.bounded().map(|()| table));
        tables.push(read.map_err(|e| at(span, e))?);
    }
    let mut phases: Vec<Phase> = Vec::new();
    let mut loaded: Vec<String> = Vec::new();
    let mut empty = None;
    for (span, given) in written_phases(text, given)? {
        let given = given.into_iter().map(|(name, value)| {
            let at = name.span().start;
            (name.into_inner().into_owned(), at, value)
        });
        let mut options = Options::new(text, &tables, given);
        let written = phase(&mut options).map_err(|e| at(span.clone(), e))?;
        for phase in written {
            phase.bounded().map_err(|e| at(span.clone(), e))?;
            if phases.iter().any(|p| p.name == phase.name) {
                let what = format!("a second phase {:?}", phase.name);
                return Err(at(span, Error::invalid(what)));
            }
            empty = empty.or_else(|| Some((span.clone(), not_loaded(&phase, &loaded)?)));
            if phase.loads() {
                loaded.push(phase.table.clone());
            }
            phases.push(phase);
        }
    }
    if let Some((span, e)) = empty {
        return Err(at(span, e));
    }
    let (name, about, source) = (raw.name, raw.about, raw.source);
    Ok(Workload { name, about, source, tables, phases, text: text.to_owned() })
}

/// The phases as they are written, each with where it stands.
fn written_phases<'t>(
    text: &str,
    given: Option<Spanned<DeValue<'t>>>,
) -> Result<Vec<(Span<usize>, DeTable<'t>)>> {
    let Some(given) = given else {
        return Err(Error::invalid("a workload without a [[phase]]"));
    };
    let no_list = |span: Span<usize>| {
        let error = Error::invalid("phases are a list: write [[phase]] above each");
        error.in_place(format!("line {}", line(text, span.start)))
    };
    let span = given.span();
    let DeValue::Array(all) = given.into_inner() else { return Err(no_list(span)) };
    if all.is_empty() {
        return Err(Error::invalid("a workload without a [[phase]]"));
    }
    let one = |phase: Spanned<DeValue<'t>>| {
        let span = phase.span();
        match phase.into_inner() {
            DeValue::Table(table) => Ok((span, table)),
            _ => Err(no_list(span)),
        }
    };
    all.into_iter().map(one).collect()
}

/// What is wrong with a phase that works on records which no phase before it has loaded.
fn not_loaded(phase: &Phase, loaded: &[String]) -> Option<Error> {
    let needed = phase.kind.needs(&phase.table);
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
        index: raw.index.iter().map(|name| name.parse()).collect::<Result<_>>()?,
        layout: raw.layout.map(|l| l.parse()).transpose()?,
    })
}

/// A phase as it is written: several, where it is a curve.
fn phase(options: &mut Options<'_>) -> Result<Vec<Phase>> {
    let (name, word) = (options.need("name")?, options.need::<String>("do")?);
    let Some(info) = KINDS.iter().find(|info| info.name == word) else {
        let known: Vec<&str> = KINDS.iter().map(|info| info.name).collect();
        let near = did_you_mean(&word, &known);
        let what = format!("there is no do = {word:?}; known: {}{near}", known.join(", "));
        return Err(options.wrong("do", what));
    };
    if let Some(e) = unknown(options, info) {
        return Err(e);
    }
    let table = options.table("table")?;
    let (limit, published) = (limit(options)?, options.take("published")?);
    let pace = pace(options)?;
    let at_once = options.numbers("concurrency", &bounds::CONCURRENCY)?;
    let rooms = rooms(options)?;
    let one = Phase {
        name,
        info,
        kind: (info.read)(options)?,
        table,
        limit,
        published,
        pace,
        concurrency: at_once.first().copied().unwrap_or(1),
        of: None,
        room: None,
    };
    allowed(options, &one, &at_once, &rooms)?;
    Ok(parts(one, &at_once, &rooms))
}

/// An option that phases of this kind do not have.
fn unknown(options: &Options<'_>, info: &Info) -> Option<Error> {
    let own = |info: &Info| info.options.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let known: Vec<&str> = COMMON.into_iter().chain(own(info)).collect();
    let name = options.names().find(|name| !known.contains(name))?;
    let what = match KINDS.iter().any(|other| own(other).contains(&name)) {
        true => format!("{name:?} is not an option of do = {:?}", info.name),
        false => format!("unknown option {name:?}{}", did_you_mean(name, &known)),
    };
    Some(options.wrong(name, format!("{what}; known: {}", known.join(", "))))
}

/// Whether options of how operations are sent go with what a phase does, and with each other.
fn allowed(options: &Options<'_>, phase: &Phase, at_once: &[u32], rooms: &[f64]) -> Result<()> {
    let (word, free) = (phase.info.name, phase.pace == Pace::Free);
    let one_by_one = |name: &str| {
        let what = format!("{name} is for operations that are sent one by one");
        Err(options.wrong(name, format!("{what}; do = {word:?} is one operation")))
    };
    match phase.one_by_one() {
        false if !free => return one_by_one("pace"),
        false if at_once.iter().any(|n| *n > 1) => return one_by_one("concurrency"),
        _ => {}
    }
    if at_once.len() > 1 && !(free && rooms.is_empty()) {
        let what = "a list of concurrency is a curve of capacity: without pace and cache";
        return Err(options.wrong("concurrency", what));
    }
    match rooms.is_empty() || phase.one_by_one() && phase.repeats() {
        true => Ok(()),
        false => {
            let what = "cache is for phases that read one by one";
            Err(options.wrong("cache", format!("{what}; do = {word:?} does not")))
        }
    }
}

/// The phases that one is written for: the points of a curve, each size of the cache cold and warm.
fn parts(one: Phase, at_once: &[u32], rooms: &[f64]) -> Vec<Phase> {
    let part = |name: String| Phase { name, of: Some(one.name.clone()), ..one.clone() };
    let point = |n: &u32| Phase { concurrency: *n, ..part(format!("{} x{n}", one.name)) };
    let both = |share: &f64| {
        [(false, "cold"), (true, "warm")].map(|(warm, state)| Phase {
            room: Some(Room { share: *share, warm }),
            ..part(format!("{}, cache {share}, {state}", one.name))
        })
    };
    match (at_once, rooms) {
        ([_, _, ..], _) => at_once.iter().map(point).collect(),
        (_, []) => vec![one],
        _ => rooms.iter().flat_map(both).collect(),
    }
}

/// `count` or `seconds`.
fn limit(options: &mut Options<'_>) -> Result<Option<Limit>> {
    match (options.number("count", &bounds::COUNT)?, options.take("seconds")?) {
        (None, None) => Ok(None),
        (Some(count), None) => Ok(Some(Limit::Count(count))),
        (None, Some(seconds)) => Ok(Some(Limit::Seconds(seconds))),
        (Some(_), Some(_)) => Err(options.wrong("seconds", "both count and seconds; one of them")),
    }
}

/// `pace`: at which moments operations are sent.
fn pace(options: &mut Options<'_>) -> Result<Pace> {
    let pace = match options.take("pace")? {
        None | Some(RawPace::Free) => Pace::Free,
        Some(RawPace::Fixed(rate)) => Pace::Fixed(rate),
        Some(RawPace::Poisson(rate)) => Pace::Poisson(rate),
        Some(RawPace::Share(share)) => Pace::Share(share),
    };
    match pace {
        Pace::Fixed(n) | Pace::Poisson(n) | Pace::Share(n) if !(n > 0.0 && n.is_finite()) => {
            Err(options.wrong("pace", format!("a pace of {n}: it is above 0")))
        }
        pace => Ok(pace),
    }
}

/// `cache`: the sizes of the server's cache, as shares of the data; none where it is not limited.
fn rooms(options: &mut Options<'_>) -> Result<Vec<f64>> {
    let all = options.numbers("cache", &(f64::MIN..=f64::MAX))?;
    match all.iter().find(|share| **share <= 0.0) {
        Some(share) => {
            let what = format!("cache = {share}: a share of the data's size, above 0");
            Err(options.wrong("cache", what))
        }
        None => Ok(all),
    }
}

/// The line of a byte, from 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count()
}

/// An error of the parser, with its line.
fn told(text: &str, error: &toml::de::Error) -> Error {
    let told = Error::invalid(plain(error));
    match error.span() {
        Some(span) => told.in_place(format!("line {}", line(text, span.start))),
        None => told,
    }
}

/// What an error of the parser says, in one line and, for a word that is not known, with the nearest that
/// is.
pub(super) fn plain(error: &toml::de::Error) -> String {
    let message = error.message();
    // "unknown field `indx`, expected one of `name`, `index`": serde's words.
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let near = match words.split_first() {
        Some((unknown, known)) if message.starts_with("unknown") => did_you_mean(unknown, known),
        _ => String::new(),
    };
    format!("{}{near}", message.replace('\n', " "))
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
    use crate::workload::BUILT_IN;

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
            ("[[phase]]\nname = \"a\"\ndo = \"laod\"\n", ["line 7", "did you mean \"load\"?"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"scan\"\nbatch = 7\n",
                ["line 8", "\"batch\" is not an option of do = \"scan\""],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"find\"\ntable = \"record\"\n",
                ["line 8", "did you mean \"records\"?"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"load\"\nway = \"row\"\n",
                ["line 8", "did you mean \"rows\"?"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nkeys = \"zipf\"\n",
                ["line 8", "did you mean \"zipfian\"?"],
            ),
            ("[[phase]]\nname = \"a\"\ndo = \"delete\"\n", ["line 5", "\"where\" is missing"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nbatch = 0\n",
                ["line 8", "batch = 0: 1 to 1000000"],
            ),
            ("[[phase]]\nname = \"a\"\ndo = \"scan\"\nconcurrency = 2\n", ["line 8", "one by one"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"mix\"\nshares = {red = 1}\n",
                ["line 8", "did you mean \"read\"?"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"find\"\nwhere = {age = {\"$gt\" = 1, \"$x\" = 2}}\n",
                ["line 8", "unknown operator"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"scan\"\n[[phase]]\nname = \"a\"\ndo = \"scan\"\n",
                ["line 8", "a second phase"],
            ),
            ("[[phase]]\nname = 7\ndo = \"scan\"\n", ["line 6", "expected a string"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"rewirte\"\n",
                ["line 7", "did you mean \"rewrite\"?"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"rewrite\"\ntimes = 1\n",
                ["line 8", "times = 1: 2 to"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\ntimes = 3\n",
                ["line 8", "is not an option of"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nconcurrency = [1, 0]\n",
                ["line 8", "1 to 10000"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nconcurrency = \"4\"\n",
                ["line 8", "a number or a list of numbers"],
            ),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nconcurrency = [1, 4]\npace = {fixed = 9}\n",
                ["line 8", "without pace"],
            ),
            ("[[phase]]\nname = \"a\"\ndo = \"get\"\ncache = -1\n", ["line 8", "above 0"]),
            ("[[phase]]\nname = \"a\"\ndo = \"scan\"\ncache = 1\n", ["line 8", "read one by one"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nkeys = {trcae = \"x\"}\n",
                ["line 8", "did you mean \"trace\"?"],
            ),
            ("[[phase]]\nname = \"a\"\ndo = \"find\"\nwhere = 7\n", ["line 8", "age>=90"]),
            ("[[phase]]\nname = \"a\"\ndo = \"find\"\nlimit = 0\n", ["line 8", "limit = 0: 1 to"]),
            (
                "[[phase]]\nname = \"a\"\ndo = \"get\"\nexpect = 1\n",
                ["line 8", "is not an option of"],
            ),
        ] {
            let said = refused(&format!("{HEAD}{body}"));
            for wanted in wanted {
                assert!(said.contains(wanted), "{body}: {said}");
            }
        }
    }

    #[test]
    fn every_kind_of_phase_is_read_by_its_word_and_takes_its_options() {
        for info in KINDS {
            let phase = format!("[[phase]]\nname = \"a\"\ndo = {:?}\n{}", info.name, info.example);
            let text = format!("{HEAD}{LOAD}{phase}");
            let parsed = workload(&text).unwrap_or_else(|e| panic!("{}: {e:?}", info.name));
            assert_eq!(parsed.phases[1].word(), info.name);
            assert!(!parsed.phases[1].about().is_empty() && !parsed.phases[1].unit().is_empty());

            // Each option that it names is read: one of another type is refused with its line.
            for (name, _) in info.options {
                let others = info.example.lines().filter(|line| !line.starts_with(name));
                let others: Vec<&str> = others.collect();
                let phase =
                    format!("[[phase]]\nname = \"a\"\ndo = {:?}\n{name} = true\n", info.name);
                let said = refused(&format!("{HEAD}{LOAD}{phase}{}", others.join("\n")));
                assert!(said.contains("line 11") && said.contains(name), "{}: {said}", info.name);
            }
        }
    }

    /// The table of kinds in docs/workloads.md is that of the code; run with INSTA_UPDATE=always, this
    /// writes it there.
    #[test]
    fn every_kind_of_phase_is_documented() {
        const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/README.md");
        let option = |(name, what): &(&str, &str)| format!("`{name}`: {what}");
        let row = |info: &Info| {
            let options: Vec<String> = info.options.iter().map(option).collect();
            format!("| `{}` | {} | {} |\n", info.name, info.about, options.join("<br>"))
        };
        let rows: String = KINDS.iter().map(row).collect();
        let table = format!("| do | what | options |\n|---|---|---|\n{rows}");
        let docs = std::fs::read_to_string(DOCS).unwrap();
        if docs.contains(&table) {
            return;
        }
        let begin = docs.find("| do |").expect("there is a table of kinds");
        let end = begin + docs[begin..].find("\n\n").unwrap() + 1;
        let written = format!("{}{table}{}", &docs[..begin], &docs[end..]);
        match std::env::var("INSTA_UPDATE") {
            Ok(update) if update == "always" => std::fs::write(DOCS, written).unwrap(),
            _ => panic!("docs/workloads.md has another table; write it with INSTA_UPDATE=always"),
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
