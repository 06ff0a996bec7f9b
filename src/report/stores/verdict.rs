//! The sentences that answer the question: which store, and what it costs.

use std::collections::BTreeMap;

use super::{
    super::{
        number::{bytes, fixed, short, whole},
        tables::ranked,
        words::list,
    },
    contenders, family, is_asked_for,
    kept::{Space, promise, short_tier},
    unit, weighed,
};
use crate::bench::results::{Cell, Contender, Pace, Phase, Results, Tally};

/// More that were not told apart are no answer.
const FEW: usize = 3;

pub(super) fn verdict(results: &Results) -> Vec<String> {
    let mut classes: BTreeMap<(&str, bool), Vec<&Contender>> = BTreeMap::new();
    for c in contenders(results).filter(|c| c.refused.is_none()) {
        if let Some(kept) = &c.store {
            classes.entry(kept.durability.class()).or_default().push(c);
        }
    }
    let sound: Vec<(&str, &Vec<&Contender>)> =
        classes.iter().rev().filter(|(k, _)| !k.1).map(|(k, v)| (k.0, v)).collect();
    let mut said = Vec::new();
    match &sound[..] {
        [] => {}
        [(tier, stores)] => {
            if let Some(told) = told(results, stores) {
                let all = if stores.len() > 1 { ", all " } else { ", " };
                said.push(format!("For {}{all}{}: {told}.", weighed(results), named(tier)));
            }
        }
        several => {
            said.push(format!(
                "For {}: the stores are of different durability, and those that promise \
                 more do more, so each is compared with its equals only.",
                weighed(results)
            ));
            for (tier, stores) in several {
                if let Some(told) = told(results, stores) {
                    let tier = named(tier);
                    said.push(format!("{}{}: {told}.", tier[..1].to_uppercase(), &tier[1..]));
                }
            }
        }
    }
    said.extend(broken(results));
    said.extend(response(results));
    said.extend(space(results));
    said.extend(troubles(results));
    said.extend(lossy(results));
    said
}

/// `durable when acknowledged (t3)`.
fn named(tier: &str) -> String {
    match tier {
        "" => promise(tier).into(),
        tier => format!("{} ({tier})", promise(tier)),
    }
}

/// True where every record comes back as it was; a store that was not tried is not doubted.
fn keeps_all(contender: &Contender) -> bool {
    contender.proof.as_ref().is_none_or(|p| p.equal == p.records)
}

/// Who leads in which phase, of stores that may be compared with each other.
fn told(results: &Results, stores: &[&Contender]) -> Option<String> {
    let mut leads: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    let mut unclear: Vec<String> = Vec::new();
    let alone = stores.len() == 1;
    for phase in results.phases.iter().filter(|phase| is_asked_for(phase)) {
        let cells: Vec<&Cell> = ranked(results, &phase.id)
            .into_iter()
            .filter(|(c, cell)| {
                // What is lossy takes part: that is said in the next sentence, and by name.
                cell.summary.is_some() && stores.iter().any(|s| s.name == c.name)
            })
            .map(|(_, cell)| cell)
            .collect();
        let group = |cell: &Cell| cell.summary.as_ref().map(|s| s.group);
        let Some(best) = cells.first().map(|c| group(c)) else { continue };
        let first: Vec<&Cell> = cells.iter().copied().filter(|c| group(c) == best).collect();
        let known = first.iter().all(|c| c.summary.as_ref().is_some_and(|s| s.ns.low.is_some()));
        // One that is compared with nobody needs no interval to be told of.
        if !(known || alone) || first.len() > FEW {
            unclear.push(called(&phase.name));
            continue;
        }
        let mut who: Vec<&str> = first.iter().map(|c| c.competitor.as_str()).collect();
        who.sort_unstable();
        let what = format!("{} ({})", called(&phase.name), rate(phase, first[0]));
        match leads.iter_mut().find(|l| l.0 == who) {
            Some(lead) => lead.1.push(what),
            None => leads.push((who, vec![what])),
        }
    }
    let mut parts: Vec<String> = Vec::new();
    let mut first = true;
    for (who, what) in leads.iter().filter(|l| l.0.len() == 1) {
        let fastest = match (alone, first) {
            (true, _) => format!("{} alone, ", who[0]),
            (_, true) => format!("{} is the fastest at ", who[0]),
            (_, false) => format!("{} at ", who[0]),
        };
        first = false;
        parts.push(fastest + &list(what));
    }
    for (who, what) in leads.iter().filter(|l| l.0.len() > 1) {
        parts.push(format!("no difference shown between {} at {}", list(who), list(what)));
    }
    match &unclear[..] {
        [] => {}
        _ if parts.is_empty() => parts.push("which is the fastest these rounds cannot tell".into()),
        some => {
            parts.push(format!("which is the fastest at {} these rounds cannot tell", list(some)));
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A phase by its name, in quotes where that would fall apart in a list.
fn called(name: &str) -> String {
    match name.contains(',') {
        true => format!("\"{name}\""),
        false => name.to_owned(),
    }
}

fn rate(phase: &Phase, cell: &Cell) -> String {
    cell.summary
        .as_ref()
        .map_or(String::new(), |s| format!("{} {}/s", short(1e9 / s.ns.middle), unit(phase)))
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
        format!("Not as durable as was asked for, and so compared with nobody: {}.", list(&lines))
    })
}

/// How long one waits under load, where that was tried.
fn response(results: &Results) -> Option<String> {
    let share = |p: &Phase| match p.pace {
        Some(Pace::Share(share)) => Some(share),
        _ => None,
    };
    // Three quarters is what a server that is used well is given; beyond, queues grow.
    let usual = results.phases.iter().filter(|p| share(p).is_some_and(|s| s < 0.8));
    let phase = usual.max_by(|a, b| share(a).unwrap_or(0.0).total_cmp(&share(b).unwrap_or(0.0)))?;
    let mut found: Vec<(f64, String)> = contenders(results)
        .filter_map(|c| {
            let latency = results.cell(&c.name, &phase.id)?.latency.as_ref()?;
            let tier = match short_tier(c) {
                none if none.is_empty() => none,
                tier => format!(" ({tier})"),
            };
            Some((latency.response.quantile(0.99)?.value, format!("{}{tier}", c.name)))
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

/// What the records take on disk.
fn space(results: &Results) -> Option<String> {
    let raw = *results.dataset.sizes.get("")?;
    let mut found: Vec<(u64, &str)> = contenders(results)
        .filter_map(|c| Some((Space::of(results, c).data?, c.name.as_str())))
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
        format!("Not every record comes back as it was from {}: see Fidelity.", list(&names))
    })
}
