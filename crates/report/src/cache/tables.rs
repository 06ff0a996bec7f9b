//! The tables over several rows: the published test, all rows at a glance, ours against the others,
//! and who ran.

use super::{
    super::{
        chart::{Chart, Plot, Ratio, Ratios},
        lead::{be_faster, on_processor_time},
        marks::Marks,
        number::{NONE, fixed, ranged, short},
        page::{Role, Section, Table},
    },
    FLOOR, contenders, is_first, is_open, phases, row_name,
};
use steelyard_results::{CacheRow, Contrast, Phase, Published, Results};

/// The value of the published test.
const VALUE: &str = "4b";

/// The original's table: seconds for its calls, ours beside what was published.
pub(super) fn published(results: &Results) -> Option<Section> {
    let like = |row: &CacheRow| row.value == VALUE && row.connections == 1;
    let rows: Vec<(&Phase, &CacheRow)> = results
        .phases
        .iter()
        .filter(|p| !is_open(p))
        .filter_map(|p| Some((p, p.cache.as_ref().filter(|row| like(row))?)))
        .collect();
    let names: Vec<&str> = contenders(results).map(|c| c.name.as_str()).collect();
    let mut heads = vec!["<"];
    heads.extend(&names);
    heads.extend(["published: binding", "published: pure"]);
    let mut table = Table::new(&heads);
    for (phase, row) in &rows {
        let mut texts = vec![row_name(row)];
        for name in &names {
            let summary = results.cell(name, &phase.id).and_then(|c| c.summary.as_ref());
            let seconds = summary.map(|s| s.ns.middle * row.calls as f64 / 1e9);
            texts.push(seconds.map_or(NONE.into(), short));
        }
        let Published { binding: (low, high), pure } = row.published;
        texts.push(match low == high {
            true => fixed(low, 2),
            false => format!("{}-{}", fixed(low, 2), fixed(high, 2)),
        });
        texts.push(pure.map_or(NONE.into(), |s| fixed(s, 2)));
        table.rows.push(texts);
    }
    let replayed = rows.iter().all(|(phase, row)| phase.units == row.calls);
    let how = match replayed {
        true => "as many as were published, in each window",
        false => "as many as were published, by the time of one",
    };
    (!rows.is_empty() && !names.is_empty()).then(|| Section {
        title: "The published test".into(),
        about: format!(
            "Seconds for 2,500 iterations, {how}. The last two columns are those of the original \
             (Ruby, with a binding of libmemcached and with a client in Ruby alone), on a machine of \
             its time: how its two clients stand to each other can be compared with ours, seconds \
             cannot. It published multiget, missing and mixed once; noblock did not count what was \
             still to be sent."
        ),
        table,
        ..Section::default()
    })
}

/// Microseconds of every client in every row of a table.
pub(super) fn overview(results: &Results, name: &str) -> Option<Section> {
    let names: Vec<&str> = contenders(results).map(|c| c.name.as_str()).collect();
    let mut heads = vec!["<"];
    heads.extend(&names);
    let mut table = Table::new(&heads);
    for (phase, row) in phases(results, name) {
        let mut texts = vec![row_name(row)];
        for name in &names {
            let summary = results.cell(name, &phase.id).and_then(|c| c.summary.as_ref());
            texts.push(summary.map_or(NONE.into(), |s| {
                let first = if is_first(results, name, phase) { " 1st" } else { "" };
                format!("{}{first}", short(s.ns.middle / 1e3))
            }));
        }
        table.rows.push(texts);
    }
    let first =
        || format!("1st: no other client was shown to {}; the floor is none", be_faster(results));
    let first = table.shows(" 1st").then(first);
    let elapsed = if on_processor_time(results) { " Figures are of elapsed time." } else { "" };
    (table.rows.len() > 1 && !names.is_empty()).then(|| Section {
        title: format!("At a glance: {name}"),
        about: format!("Microseconds a call.{elapsed}"),
        table,
        footnotes: first.into_iter().collect(),
        role: Role::Glance,
        ..Section::default()
    })
}

/// Our client against each other one: time over time.
pub(super) fn against(results: &Results) -> Option<Section> {
    let mut others: Vec<&str> = Vec::new();
    for contrast in &results.contrasts {
        if contrast.versus.is_some() && !others.contains(&contrast.to.0.as_str()) {
            others.push(&contrast.to.0);
        }
    }
    let ours = &results.contrasts.first()?.of.0;
    let find = |other: &str, phase: &Phase| -> Option<&Contrast> {
        results.contrasts.iter().find(|c| c.to.0 == other && c.to.1 == phase.id)
    };
    let mut heads = vec!["<"];
    heads.extend(&others);
    let (mut table, mut marks) = (Table::new(&heads), Marks::default());
    for phase in results.phases.iter().filter(|p| !is_open(p)) {
        let mut row = vec![label(phase)];
        for other in &others {
            let versus = find(other, phase).and_then(|c| c.versus);
            row.push(
                versus.map_or(NONE.into(), |v| {
                    format!("{}{}", ranged(&v.shown()), marks.verdict(&v))
                }),
            );
        }
        if row[1..].iter().any(|text| text != NONE) {
            table.rows.push(row);
        }
    }
    let chart = |other: &&str| {
        let ratio = |phase: &Phase| {
            let versus = find(other, phase)?.versus?;
            let ratio = versus.shown().inverse(1.0);
            Some(Ratio { name: label(phase), ratio, verdict: versus.verdict })
        };
        let ratios: Vec<Ratio> = results.phases.iter().filter_map(ratio).collect();
        Chart {
            title: format!("{ours} against {other}"),
            unit: format!("speed of {ours} over that of {other}: right of 1 is faster"),
            plot: Plot::Ratios(Ratios(ratios)),
        }
    };
    (!table.rows.is_empty()).then(|| Section {
        title: format!("{ours} against the others"),
        about: format!(
            "The time of {ours} over that of each other client, call by call: below 1, {ours} is \
             faster."
        ),
        table,
        footnotes: marks.footnotes(),
        charts: others.iter().map(chart).collect(),
        ..Section::default()
    })
}

/// A phase in a few words, with its connections where there are several.
fn label(phase: &Phase) -> String {
    match phase.concurrency {
        0 | 1 => phase.name.clone(),
        n => format!("{} x{n}", phase.name),
    }
}

/// Who ran, and who did not.
pub(super) fn clients(results: &Results) -> Option<Section> {
    let mut table =
        Table::new(&["<", "<version", "<what it is", "<objects by", "<keys", "<multiget"]);
    let mut footnotes = Vec::new();
    for c in results.competitors.iter().filter(|c| !c.null) {
        if let Some(why) = &c.refused {
            footnotes.push(format!("- {}: {why}", c.name));
        }
        let Some(client) = &c.client else { continue };
        let spread = |keys: &[u64]| match keys {
            [] => NONE.to_owned(),
            keys => keys.iter().map(u64::to_string).collect::<Vec<_>>().join(" + "),
        };
        let objects = if client.serializer.is_empty() { NONE } else { &client.serializer };
        table.rows.push(vec![
            c.name.clone(),
            client.version.clone(),
            client.about.clone(),
            objects.to_owned(),
            spread(&client.stored),
            spread(&client.asked),
        ]);
        if let Some(why) = &client.uncounted {
            footnotes.push(format!("{}: its system calls were not counted: {why}", c.name));
        }
    }
    if results.competitor(FLOOR).is_some_and(|c| c.refused.is_none()) {
        footnotes.push(format!("{FLOOR}: no client, but what none can be faster than"));
    }
    (!table.rows.is_empty() || !footnotes.is_empty()).then(|| Section {
        title: "The clients".into(),
        about:
            "keys: how many of the three that are stored lie on each server. multiget: how many \
                of its six each server is asked for; who asks one server only has one round trip."
                .into(),
        table,
        footnotes,
        role: Role::Method,
        ..Section::default()
    })
}
