//! The page of `bench objects`: what it costs to serialize a program's objects, and what a wrap adds.

use super::{
    lead::{be_faster, on_processor_time},
    marks::{self, Marks},
    number::{NONE, fixed, percent, ranged, short, whole},
    page::{Page, Section, Table},
    pictures, tables,
};
use steelyard_results::{Basis, Cell, Contrast, Figure, Phase, Results, Verdict};

pub(super) fn page(results: &Results) -> Page {
    let mut lead = verdict(results);
    lead.extend(marks::cautions(results));
    lead.extend(results.dataset.remarks.iter().cloned());
    let mut sections = vec![tables::sizes(results, "Each by itself, plain and wrapped:")];
    sections.extend(tables::code(results));
    sections.extend(tables::fidelity(results));
    if let Some(size) = largest(results) {
        sections.extend(series(results, size));
    }
    sections.extend(wraps(results));
    sections.push(curves(results));
    Page {
        title: format!("What serializing objects costs, {}", span(results)),
        lead,
        sections,
        notes: marks::notes(results),
    }
}

fn span(results: &Results) -> String {
    let sizes: Vec<u64> = results.phases.iter().filter_map(|p| p.size).collect();
    match (sizes.iter().min(), sizes.iter().max()) {
        (Some(a), Some(b)) if a < b => format!("{} to {} objects", whole(*a), whole(*b)),
        (Some(a), _) => format!("{} objects", whole(*a)),
        _ => "no objects".into(),
    }
}

fn largest(results: &Results) -> Option<u64> {
    results.phases.iter().filter_map(|p| p.size).max()
}

/// The series at one size, in the order of the plan.
fn at(results: &Results, size: u64) -> Vec<&Phase> {
    results.phases.iter().filter(|p| p.size == Some(size)).collect()
}

fn competitors(results: &Results) -> impl Iterator<Item = &str> {
    results.competitors.iter().filter(|c| !c.null).map(|c| c.name.as_str())
}

fn figure(cell: Option<&Cell>) -> Option<Figure> {
    cell?.summary.as_ref().map(|s| s.ns)
}

/// Microseconds for each object in every series at one size: a table for the plain ones, and one
/// for each wrap.
fn series(results: &Results, size: u64) -> Vec<Section> {
    let phases = at(results, size);
    let wrap_of = |p: &Phase| {
        results.competitors.iter().flat_map(|c| c.sizes.keys()).find(|wrap| {
            !wrap.is_empty() && p.name.strip_suffix(wrap.as_str()).is_some_and(|s| s.ends_with('+'))
        })
    };
    let mut wraps: Vec<Option<&String>> = Vec::new();
    for wrap in phases.iter().map(|p| wrap_of(p)) {
        if !wraps.contains(&wrap) {
            wraps.push(wrap);
        }
    }
    wraps
        .into_iter()
        .map(|wrap| {
            let phases: Vec<&Phase> =
                phases.iter().copied().filter(|p| wrap_of(p) == wrap).collect();
            let about = wrap.map_or("plain".to_owned(), |w| format!("in {w}"));
            let time = match results.plan.basis {
                Basis::Elapsed => "Microseconds",
                Basis::Processor => "Microseconds of processor time",
            };
            let title = format!("{time} an object, {about} ({} objects)", whole(size));
            series_table(results, &phases, title)
        })
        .collect()
}

fn series_table(results: &Results, phases: &[&Phase], title: String) -> Section {
    let mut heads = vec!["<"];
    heads.extend(phases.iter().map(|p| p.name.as_str()));
    let mut table = Table::new(&heads);
    let mut marks = Marks::default();
    let mut refused = Vec::new();
    for name in competitors(results) {
        let mut row = vec![name.to_owned()];
        for phase in phases {
            row.push(match results.cell(name, &phase.id).map(|c| (c, c.summary.as_ref())) {
                Some((cell, Some(s))) => {
                    let first = if s.group == 1 && s.ns.low.is_some() { " 1st" } else { "" };
                    format!("{}{}{first}", ranged(&s.ns.scaled(1e-3)), marks.of(cell))
                }
                _ => NONE.into(),
            });
        }
        match row[1..].iter().all(|c| c == NONE) {
            true => refused.push(name),
            false => {
                let proof = results.competitor(name).and_then(|c| c.proof.as_ref());
                row[0].push_str(marks.lossy(proof));
                table.rows.push(row);
            }
        }
    }
    let mut footnotes: Vec<String> =
        phases.iter().map(|p| format!("{}: {}", p.name, p.about)).collect();
    let first = || format!("1st: no other was shown to {} in this series", be_faster(results));
    footnotes.extend(table.shows(" 1st").then(first));
    if !refused.is_empty() {
        footnotes.push(format!("not for objects: {}", refused.join(", ")));
    }
    footnotes.extend(marks.footnotes());
    let about = if on_processor_time(results) { "Figures are of elapsed time." } else { "" };
    Section { title, about: about.into(), table, footnotes, ..Section::default() }
}

/// What a wrap adds to each series it stands in.
fn wraps(results: &Results) -> Option<Section> {
    let mut table = Table::new(&["<", "<wrap", "dump", "load", "dump and load", "bytes"]);
    let mut marks = Marks::default();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for contrast in &results.contrasts {
        if let Some((_, wrap)) = contrast.about.split_once(" + ") {
            let key = (contrast.of.0.as_str(), wrap);
            if !seen.contains(&key) {
                seen.push(key);
            }
        }
    }
    for (name, wrap) in seen {
        let mut cell = |series: &str| {
            let about = format!("{series} + {wrap}");
            let found = results
                .contrasts
                .iter()
                .find(|c| c.of.0 == name && c.about == about)
                .and_then(|c| c.versus);
            found.map_or(NONE.into(), |v| {
                let Figure { middle, low, high } = v.shown();
                let added = Figure {
                    middle: 100.0 * (middle - 1.0),
                    low: low.map(|l| 100.0 * (l - 1.0)),
                    high: high.map(|h| 100.0 * (h - 1.0)),
                };
                format!("{} %{}", ranged(&added), marks.verdict(&v))
            })
        };
        let row =
            vec![name.into(), wrap.into(), cell("create+dump"), cell("load"), cell("dump+load")];
        let sizes = results.competitor(name).map(|c| &c.sizes);
        let grown = sizes.and_then(|s| Some((*s.get(wrap)? as f64, *s.get("")? as f64)));
        let grown = grown.map_or(NONE.into(), |(w, p)| format!("{} %", percent(w - p, p)));
        table.rows.push([row, vec![grown]].concat());
    }
    (!table.rows.is_empty()).then(|| Section {
        title: format!(
            "What a wrap adds, {} objects",
            largest(results).map_or(String::new(), whole)
        ),
        about: "In percent of the same series without it; dump includes creating the object. \
                The last column is measured, not the sum of the two before it."
            .into(),
        table: table.without_empty_columns(),
        footnotes: marks.footnotes(),
        ..Section::default()
    })
}

/// Seconds for all objects, by how many there are.
fn curves(results: &Results) -> Section {
    let mut sizes: Vec<u64> = results.phases.iter().filter_map(|p| p.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let heads: Vec<String> = sizes.iter().map(|s| whole(*s)).collect();
    let mut all = vec!["<", "<series"];
    all.extend(heads.iter().map(String::as_str));
    let mut table = Table::new(&all);
    let mut names: Vec<&str> = Vec::new();
    for phase in &results.phases {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    for name in competitors(results) {
        for series in &names {
            let mut row = vec![name.to_owned(), (*series).to_owned()];
            for size in &sizes {
                let cell = results.cell(name, &format!("{series}@{size}"));
                let seconds = figure(cell).map(|ns| ns.middle * *size as f64 / 1e9);
                row.push(seconds.map_or(NONE.into(), short));
            }
            if row[2..].iter().any(|c| c != NONE) {
                table.rows.push(row);
            }
        }
    }
    Section {
        title: "Seconds by number of objects".into(),
        about: "The curves; their intervals are in the CSV and the pictures.".into(),
        table,
        charts: pictures::curves(results),
        ..Section::default()
    }
}

/// The sentences that answer the question.
fn verdict(results: &Results) -> Vec<String> {
    let Some(size) = largest(results) else { return Vec::new() };
    let mut paragraphs = Vec::new();
    let leader = |series: &str| {
        let ranked = tables::ranked(results, &format!("{series}@{size}"));
        let keeps = ranked.into_iter().filter(|(c, cell)| {
            cell.summary.is_some() && c.proof.as_ref().is_some_and(|p| p.equal == p.records)
        });
        let mut keeps = keeps.collect::<Vec<_>>().into_iter();
        let first = keeps.next()?;
        let group = first.1.summary.as_ref()?.group;
        let equals = keeps.filter(|k| k.1.summary.as_ref().map(|s| s.group) == Some(group)).count();
        Some((first.0.name.as_str(), first.1.summary.as_ref()?.ns.middle / 1e3, equals))
    };
    if let (Some(dump), Some(load)) = (leader("create+dump"), leader("load")) {
        let with = |equals: usize| match equals {
            0 => String::new(),
            1 => ", and one more that was not shown to be slower".into(),
            n => format!(", and {n} more that were not shown to be slower"),
        };
        paragraphs.push(format!(
            "For {} objects, the fastest to dump is {} ({} µs an object, creating it included{}), the fastest to load {} ({} µs{}).",
            whole(size), dump.0, short(dump.1), with(dump.2), load.0, short(load.1), with(load.2)
        ));
    }
    paragraphs.extend(base64(results));
    paragraphs
}

/// What Base64 adds, which the published figures got wrong.
fn base64(results: &Results) -> Option<String> {
    let added = |about: &'static str| {
        let of = |c: &&Contrast| c.about == about;
        let all: Vec<_> = results.contrasts.iter().filter(of).filter_map(|c| c.versus).collect();
        let percent = |v: f64| 100.0 * (v - 1.0);
        let low = all.iter().map(|v| v.ratio.middle).fold(f64::INFINITY, f64::min);
        let high = all.iter().map(|v| v.ratio.middle).fold(f64::NEG_INFINITY, f64::max);
        let different = |v: Verdict| matches!(v, Verdict::Faster | Verdict::Slower);
        let shown = all.iter().any(|v| different(v.verdict));
        (!all.is_empty()).then(|| (percent(low), percent(high), shown))
    };
    let both = added("dump+load + base64")?;
    let (dump, load) = (added("create+dump + base64")?, added("load + base64")?);
    let span = |(low, high, _): (f64, f64, bool)| match (high - low).abs() < 0.5 {
        true => format!("{} %", fixed(high, 0)),
        false => format!("{} to {} %", fixed(low, 0), fixed(high, 0)),
    };
    let mut text = format!(
        "Base64 adds {} to dumping, {} to loading and {} to both together: the parts are not to be added up.",
        span(dump),
        span(load),
        span(both)
    );
    if !(dump.2 || load.2 || both.2) {
        text.push_str(" None of that was shown to be more than chance.");
    }
    text.push_str(" It makes the bytes a third longer, and a store that keeps bytes as bytes does not need it.");
    Some(text)
}
