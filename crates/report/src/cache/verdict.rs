//! The sentences that answer the question: which client.

use super::{
    super::{
        lead,
        number::{fixed, short},
        words::list,
    },
    FLOOR, contenders, is_open, phases, row_name, tables,
};
use steelyard_results::{Cell, Contrast, Results, Verdict};

pub(super) fn verdict(results: &Results) -> Vec<String> {
    let mut said: Vec<String> =
        tables(results).into_iter().filter_map(|table| fastest(results, table)).collect();
    said.extend(against(results));
    said.extend(floor(results));
    said.extend(response(results));
    said.extend(absent(results));
    said
}

/// Who leads in which row of a table.
fn fastest(results: &Results, table: &str) -> Option<String> {
    let micros = |cell: &Cell| cell.summary.as_ref().map_or(f64::NAN, |s| s.ns.middle / 1e3);
    let leads = phases(results, table).filter_map(|(phase, row)| {
        let lead = lead::lead(results, &phase.id, |c| c.name != FLOOR)?;
        let told = lead.told(&|cell| short(micros(cell)), " µs");
        Some((lead, format!("{} {told}", row_name(row))))
    });
    let fastest = match lead::on_processor_time(results) {
        true => "is the client that takes the least processor time",
        false => "is the fastest client",
    };
    let told = lead::told(leads, fastest)?;
    Some(format!("Values of {table}: {told}."))
}

/// Our client against each other one, in how many rows.
fn against(results: &Results) -> Vec<String> {
    let mut others: Vec<&str> = Vec::new();
    for contrast in &results.contrasts {
        if !others.contains(&contrast.to.0.as_str()) {
            others.push(&contrast.to.0);
        }
    }
    let told = |other: &&str| {
        let of = |c: &&Contrast| c.to.0 == **other;
        let all: Vec<&Contrast> = results.contrasts.iter().filter(of).collect();
        let known = |c: &&&Contrast| c.versus.is_some_and(|v| v.ratio.low.is_some());
        let known: Vec<&&Contrast> = all.iter().filter(known).collect();
        let with = |wanted: Verdict| {
            let like = |c: &&&&Contrast| c.versus.is_some_and(|v| v.verdict == wanted);
            known.iter().filter(like).count()
        };
        let middles = known.iter().filter_map(|c| Some(c.versus?.ratio.middle));
        let (low, high) = ends(middles)?;
        let counts = [
            (Verdict::Faster, "faster"),
            (Verdict::Slower, "slower"),
            (Verdict::Alike, "alike within 3 %"),
            (Verdict::CannotTell, "cannot tell"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter_map(|(verdict, word)| match with(*verdict) {
                0 => None,
                n => Some(format!("{word} in {n}")),
            })
            .collect();
        Some(format!(
            "Against {other}, {} takes {} times the time: {} of {} rows.",
            all[0].of.0,
            span(low, high),
            list(&counts),
            known.len()
        ))
    };
    others.iter().filter_map(told).collect()
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    values.for_each(|v| (low, high) = (low.min(v), high.max(v)));
    (high > 0.0).then_some((low, high))
}

fn span(low: f64, high: f64) -> String {
    match fixed(low, 2) == fixed(high, 2) {
        true => fixed(low, 2),
        false => format!("{} to {}", fixed(low, 2), fixed(high, 2)),
    }
}

/// How far each client is above the floor.
fn floor(results: &Results) -> Option<String> {
    if results.baseline != FLOOR {
        return None;
    }
    let mut above: Vec<(f64, String)> = Vec::new();
    for c in contenders(results).filter(|c| c.name != FLOOR) {
        let closed = results.phases.iter().filter(|p| !is_open(p));
        let ratios = closed.filter_map(|p| {
            Some(results.cell(&c.name, &p.id)?.summary.as_ref()?.versus?.ratio.middle)
        });
        if let Some((low, high)) = ends(ratios) {
            above.push((low, format!("{} {}", c.name, span(low, high))));
        }
    }
    above.sort_by(|a, b| a.0.total_cmp(&b.0));
    let above: Vec<&str> = above.iter().map(|(_, text)| text.as_str()).collect();
    (!above.is_empty()).then(|| {
        format!("Of the time of a raw loop without a client, a call takes: {} times.", list(&above))
    })
}

/// What one waits for at the rate that was planned.
fn response(results: &Results) -> Option<String> {
    let phase = results.phases.iter().find(|p| is_open(p))?;
    let one = |name: &str| {
        let latency = results.cell(name, &phase.id)?.latency.as_ref()?;
        let q = latency.response.quantile(0.99)?;
        Some(format!("{} µs by {name}", short(q.value / 1e3)))
    };
    let all: Vec<String> = contenders(results).filter_map(|c| one(&c.name)).collect();
    (!all.is_empty()).then(|| {
        format!(
            "With {} at the planned rate, 99 of 100 are answered within {}.",
            phase.name,
            list(&all)
        )
    })
}

/// Who did not take part.
fn absent(results: &Results) -> Option<String> {
    let absent = results.competitors.iter().filter(|c| c.refused.is_some());
    let names: Vec<&str> = absent.map(|c| c.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("Not measured: {}; see The clients.", list(&names)))
}
