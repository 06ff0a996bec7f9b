//! The sentences that answer the question: which store, and what it costs.

use std::collections::BTreeMap;

use super::{
    super::{
        lead, marks,
        number::{bytes, fixed, percent, short, whole},
        words::list,
    },
    contenders, family, is_asked_for,
    kept::{Space, short_tier},
    unit, weighed,
};
use steelyard_results::{Cell, Class, Contender, FEWEST, Pace, Phase, Results, Tally};

/// A longer list is only counted.
const MANY: usize = 6;

pub(super) fn verdict(results: &Results) -> Vec<String> {
    let mut classes: BTreeMap<Class, Vec<&Contender>> = BTreeMap::new();
    for c in contenders(results).filter(|c| c.refused.is_none()) {
        if let Some(kept) = &c.store {
            classes.entry(kept.durability.class()).or_default().push(c);
        }
    }
    let sound: Vec<(&Class, &Vec<&Contender>)> =
        classes.iter().rev().filter(|(class, _)| class.is_ranked()).collect();
    let mut said = Vec::new();
    match &sound[..] {
        [] => {}
        [(class, stores)] => {
            if let Some(told) = told(results, stores) {
                let all = if stores.len() > 1 { ", all " } else { ", " };
                said.push(format!("For {}{all}{}: {told}.", weighed(results), class.phrase()));
            }
        }
        several => {
            said.push(format!(
                "For {}: the stores are of different durability, and those that promise \
                 more do more, so each is compared with its equals only.",
                weighed(results)
            ));
            for (class, stores) in several {
                if let Some(told) = told(results, stores) {
                    let class = class.phrase();
                    said.push(format!("{}{}: {told}.", class[..1].to_uppercase(), &class[1..]));
                }
            }
        }
    }
    said.extend(left_out(results));
    said.extend(unknown(results));
    said.extend(hidden(results));
    said.extend(broken(results));
    said.extend(response(results));
    said.extend(overloaded(results));
    said.extend(space(results));
    said.extend(troubles(results));
    said.extend(lossy(results));
    said
}

/// The stores that could not be measured, and why.
fn left_out(results: &Results) -> Option<String> {
    let why = |c: &Contender| Some(format!("{} ({})", c.name, c.refused.as_ref()?));
    let all: Vec<String> = contenders(results).filter_map(why).collect();
    (!all.is_empty()).then(|| format!("Not measured: {}.", all.join("; ")))
}

/// True where every value comes back as it was; a store that was not tried is not doubted.
fn keeps_all(contender: &Contender) -> bool {
    contender.proof.as_ref().is_none_or(|p| p.changed() + p.refused == 0)
}

/// Who leads in which phase, of stores that may be compared with each other.
fn told(results: &Results, stores: &[&Contender]) -> Option<String> {
    // What is lossy takes part: that is said in the next sentence, and by name.
    let among = |c: &Contender| stores.iter().any(|s| s.name == c.name);
    let rate = |cell: &Cell| cell.summary.as_ref().map_or(f64::NAN, |s| 1e9 / s.ns.middle);
    let phases = results.phases.iter().filter(|phase| is_asked_for(phase));
    let leads = phases.filter_map(|phase| {
        let lead = lead::lead(results, &phase.id, among)?;
        let unit = format!(" {}/s", unit(phase));
        let told = lead.told(&|cell| short(rate(cell)), &unit);
        Some((lead, format!("{} {told}", called(&phase.name))))
    });
    let fastest = match lead::on_processor_time(results) {
        true => "takes the least processor time",
        false => "is the fastest",
    };
    lead::told(leads, fastest)
}

/// A phase by its name, in quotes where that would fall apart in a list.
fn called(name: &str) -> String {
    match name.contains(',') {
        true => format!("\"{name}\""),
        false => name.to_owned(),
    }
}

/// Stores of whose durability nothing is known.
fn unknown(results: &Results) -> Option<String> {
    let is_unknown = |c: &&Contender| {
        c.refused.is_none()
            && c.store.as_ref().is_some_and(|kept| {
                let class = kept.durability.class();
                !class.is_ranked() && !class.is_broken()
            })
    };
    let names: Vec<&str> =
        contenders(results).filter(is_unknown).map(|c| c.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("Of unknown durability, so not ranked: {}.", list(&names)))
}

/// Stores of which nothing can be said on a noisy machine, where answers are of processor time.
fn hidden(results: &Results) -> Option<String> {
    let timed = |cell: &&Cell| {
        cell.summary.is_some() && results.phase(&cell.phase).is_some_and(is_asked_for)
    };
    let is_hidden = |c: &Contender| {
        let mut own = results.cells.iter().filter(|cell| cell.competitor == c.name).filter(timed);
        own.any(|cell| lead::hides_processor_time(c, cell))
    };
    let names: Vec<&str> =
        contenders(results).filter(|c| is_hidden(c)).map(|c| c.name.as_str()).collect();
    (lead::on_processor_time(results) && !names.is_empty()).then(|| {
        format!(
            "Not compared, as the processor time of a server that is not private is not known: {}.",
            list(&names)
        )
    })
}

/// Stores that are not what they were asked to be.
fn broken(results: &Results) -> Option<String> {
    let lines: Vec<String> = contenders(results)
        .filter_map(|c| Some((c, &c.store.as_ref()?.durability)))
        .filter(|(_, d)| d.broken)
        .map(|(c, d)| match &d.remark {
            Some(why) => format!("{} ({why})", c.name),
            None => c.name.clone(),
        })
        .collect();
    (!lines.is_empty()).then(|| {
        format!("Less durable than asked for or promised, so not ranked: {}.", list(&lines))
    })
}

/// How long one waits under load, where that was tried.
fn response(results: &Results) -> Option<String> {
    let share = |p: &Phase| match p.pace {
        Some(Pace::Share(share)) => Some(share),
        _ => None,
    };
    // Three quarters is what a server that is used well is given; beyond, queues grow.
    // A quantile of one store beside another is no comparison where rounds are few or disturbed.
    if results.noise().1 || marks::starts(results) < FEWEST as u32 {
        return None;
    }
    let usual = results.phases.iter().filter(|p| share(p).is_some_and(|s| s < 0.8));
    let phase = usual.max_by(|a, b| share(a).unwrap_or(0.0).total_cmp(&share(b).unwrap_or(0.0)))?;
    let mut found: Vec<(f64, String)> = contenders(results)
        .filter_map(|c| {
            let cell = results.cell(&c.name, &phase.id)?;
            let late = behind(cell).map_or(String::new(), |why| format!("did not keep up: {why}"));
            let notes = [short_tier(c), late];
            let notes: Vec<String> = notes.into_iter().filter(|n| !n.is_empty()).collect();
            let notes = match notes.is_empty() {
                true => String::new(),
                false => format!(" ({})", notes.join("; ")),
            };
            let p99 = cell.latency.as_ref()?.response.quantile(0.99)?.value;
            Some((p99, format!("{}{notes}", c.name)))
        })
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let told: Vec<String> =
        found.iter().map(|(ns, name)| format!("{} ms by {name}", short(ns / 1e6))).collect();
    (!told.is_empty()).then(|| {
        format!(
            "With {} at {} % of what each can do, 99 of 100 are answered within {}.",
            family(phase),
            fixed(100.0 * share(phase).unwrap_or(0.0), 0),
            list(&told)
        )
    })
}

/// What kept a store from doing all that was planned, where that was over 1 %: its latency is that of
/// the rest.
fn behind(cell: &Cell) -> Option<String> {
    let tally = cell.tally.filter(Tally::fell_behind)?;
    let planned = tally.planned() as f64;
    let mut why = Vec::new();
    if tally.skipped > 0 {
        let sent = (tally.planned() - tally.skipped) as f64;
        why.push(format!("{} % of the planned operations were sent", percent(sent, planned)));
    }
    if tally.failed > 0 {
        why.push(format!("{} % failed", percent(tally.failed as f64, planned)));
    }
    Some(why.join(", "))
}

/// Open loops that did not keep to their plan, in all phases.
fn overloaded(results: &Results) -> Option<String> {
    let open = results.cells.iter().filter_map(|cell| {
        let phase = results.phase(&cell.phase).filter(|p| p.is_open())?;
        Some(format!("{} at {} ({})", cell.competitor, phase.name, behind(cell)?))
    });
    let found: Vec<String> = open.collect();
    let (named, more) = found.split_at(found.len().min(MANY));
    let more = match more.len() {
        0 => String::new(),
        n => format!("; and {n} more, marked § in the tables"),
    };
    (!found.is_empty()).then(|| {
        format!(
            "Did not keep up with the planned rate, so that latencies are of what was sent only: \
             {}{more}.",
            named.join("; ")
        )
    })
}

/// What the records take on disk.
fn space(results: &Results) -> Option<String> {
    let raw = *results.dataset.sizes.get("")?;
    let mut found: Vec<(u64, &str)> = contenders(results)
        // What keeps its records in memory has next to nothing on disk.
        .filter(|c| c.store.as_ref().is_none_or(|kept| !kept.durability.class().is_volatile()))
        .filter_map(|c| Some((Space::of(results, c).total?, c.name.as_str())))
        .filter(|f| f.0 > 0)
        .collect();
    found.sort_unstable();
    let times = |n: u64| fixed(n as f64 / raw as f64, 1);
    let packed = match results.dataset.sizes.get("gzip") {
        Some(gzip) => format!(", {} in gzip", bytes(*gzip)),
        None => String::new(),
    };
    match found[..] {
        [] => None,
        [(one, name)] => Some(format!(
            "On disk they take {} in {name}, {} times what they are as JSON lines ({}{packed}).",
            bytes(one),
            times(one),
            bytes(raw)
        )),
        [(least, small), .., (most, large)] => Some(format!(
            "On disk they take {} ({small}) to {} ({large}), {} to {} times what they are as JSON \
             lines ({}{packed}).",
            bytes(least),
            bytes(most),
            times(least),
            times(most),
            bytes(raw)
        )),
    }
}

/// Operations that did not do what they were to do (rule 2).
fn troubles(results: &Results) -> Option<String> {
    let mut found: Vec<String> = Vec::new();
    for c in contenders(results) {
        let mut at: Vec<String> = Vec::new();
        let mut all = Tally::default();
        for cell in results.cells.iter().filter(|cell| cell.competitor == c.name) {
            let tally = cell.tally.unwrap_or_default();
            if tally.failed + tally.missed > 0 {
                all = all.plus(tally);
                let phase = called(results.phase(&cell.phase).map_or(cell.phase.as_str(), family));
                if !at.contains(&phase) {
                    at.push(phase);
                }
            }
        }
        let what: Vec<String> = [(all.failed, "failed"), (all.missed, "found nothing")]
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, how)| format!("{} {how}", whole(*n)))
            .collect();
        if !what.is_empty() {
            found.push(format!("{} at {} ({})", c.name, list(&at), what.join(", ")));
        }
    }
    (!found.is_empty()).then(|| {
        format!(
            "Not every operation was done, and only what was done is counted: {}.",
            list(&found)
        )
    })
}

fn lossy(results: &Results) -> Option<String> {
    let names: Vec<&str> =
        contenders(results).filter(|c| !keeps_all(c)).map(|c| c.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!("Some values come back changed from {}, or not at all: see Fidelity.", list(&names))
    })
}
