//! One run against another: pure, from their results alone.
//!
//! What differs between the runs is looked for first: figures of other records, another machine,
//! another workload or another durability cannot be compared, whatever they are.
//!
//! Two runs at different times are compared only where the machine was quiet in both and their
//! controls agree (`runs/controls.rs`). Their rounds are no pairs, so each run's median is resampled by
//! itself, by start, and the logarithms are subtracted; what the controls drifted by is taken out, and
//! how far they differ is added to the interval. Holm's adjustment is over the whole comparison.
//!
//! Two programs that took turns in one run ([`against`](super::against)) need no controls: whatever
//! else happened, happened to both. Their ratios are taken pair by pair within each round.

mod controls;
mod differences;

use self::{controls::controls, differences::differences};
use super::{
    derive::{derive, means_of, versus},
    results::{Basis, Cell, Comparison, Pace, Pair, Results, Run, Stopped},
    stats::{Bootstrap, Ratio, Rule, Sample, holm, paired},
};

/// Compares a run with an earlier one, or with the one that it was interleaved with.
pub fn compare(new: &Results, old: &Results) -> Comparison {
    let interleaved = new.interleaved.is_some() && new.interleaved == old.interleaved;
    let mut plan = new.plan.clone();
    if interleaved && (new.noise().1 || old.noise().1) {
        // Elapsed time is partly that of others then (rule 10).
        plan.basis = Basis::Processor;
    }
    let (new, old) = (&on(new, plan.basis), &on(old, plan.basis));
    let mut comparison = Comparison {
        bench: new.bench.clone(),
        new: run(new),
        old: run(old),
        plan: plan.clone(),
        interleaved,
        differences: differences(new, old),
        ..Comparison::default()
    };
    let bootstrap = Bootstrap { resamples: plan.resamples, seed: plan.seed, level: plan.level };
    let rule = Rule { effect: plan.effect, level: 1.0 - plan.level };
    let mut drift = None;
    if !interleaved {
        (comparison.controls, drift) = controls(new, old, &bootstrap, &rule);
        comparison.drift = drift.map(|drift| drift.log.exp());
    }
    let mut found: Vec<(Pair, Ratio)> = Vec::new();
    for (i, cell) in timed(new) {
        let Some((j, before)) = timed(old).find(|(_, c)| same(c, cell)) else {
            comparison.only_new.push(format!("{} {}", cell.competitor, cell.phase));
            continue;
        };
        let Some(phase) = new.phase(&cell.phase) else { continue };
        let ratio = match interleaved {
            true => Ratio::of(&paired(&means_of(new, i), &means_of(old, j)), &bootstrap),
            false => Ratio::between(&logs(new, i), &logs(old, j), &bootstrap)
                .map(|ratio| drift.map_or(ratio, |drift| ratio.without(&drift, plan.level))),
        };
        if let (Some(ratio), Some(a), Some(b)) = (ratio, &cell.summary, &before.summary) {
            found.push((
                Pair {
                    competitor: cell.competitor.clone(),
                    phase: cell.phase.clone(),
                    unit: phase.unit.clone(),
                    new: a.ns,
                    old: b.ns,
                    versus: versus(&ratio, 1.0, &rule),
                    starts: (a.starts, b.starts),
                    syncs: syncs(new, cell),
                },
                ratio,
            ));
        }
    }
    let gone = timed(old).filter(|(_, c)| !timed(new).any(|(_, n)| same(n, c)));
    comparison.only_old = gone.map(|(_, c)| format!("{} {}", c.competitor, c.phase)).collect();
    let adjusted = holm(&found.iter().map(|f| f.1.p).collect::<Vec<_>>());
    comparison.pairs = found
        .into_iter()
        .zip(adjusted)
        .map(|((pair, ratio), p)| Pair { versus: versus(&ratio, p, &rule), ..pair })
        .collect();
    comparison
}

/// The run on this basis: rounds have either time.
fn on(results: &Results, basis: Basis) -> Results {
    let mut on = results.clone();
    if on.plan.basis != basis {
        on.plan.basis = basis;
        derive(&mut on);
    }
    on
}

/// Whether a cell's time depends on how fast the disk syncs: it is of a store that syncs what it
/// acknowledges, then or later.
fn syncs(results: &Results, cell: &Cell) -> bool {
    let store = results.competitor(&cell.competitor).and_then(|c| c.store.as_ref());
    let store = store.filter(|_| results.plan.basis == Basis::Elapsed);
    store.is_some_and(|s| !matches!(s.durability.set.as_deref(), Some("t0" | "t1")))
}

fn same(a: &Cell, b: &Cell) -> bool {
    a.competitor == b.competitor && a.phase == b.phase
}

/// Cells with figures that say something of speed: not the null competitor's, and not those of
/// phases whose duration was planned.
fn timed(results: &Results) -> impl Iterator<Item = (usize, &Cell)> {
    results.cells.iter().enumerate().filter(|(_, c)| {
        let null = results.competitor(&c.competitor).is_none_or(|k| k.null);
        let planned =
            results.phase(&c.phase).is_none_or(|p| p.pace.is_some_and(|p| p != Pace::Free));
        c.summary.is_some() && !null && !planned
    })
}

fn logs(results: &Results, cell: usize) -> Vec<Sample> {
    means_of(results, cell)
        .into_iter()
        .filter(|m| m.2 > 0.0)
        .map(|(start, _, ns)| Sample { start, value: ns.ln() })
        .collect()
}

fn run(results: &Results) -> Run {
    let data = &results.dataset;
    let machine = &results.machine;
    Run {
        started: results.started.clone(),
        version: results.software.get("steelyard").cloned().unwrap_or_default(),
        records: data.records,
        kind: data.kind.clone(),
        dataset: data.name.clone(),
        machine: format!("{}, {} cores, {}", machine.cpu, machine.cores, machine.kernel),
        noisy: results.noise().1,
        incomplete: matches!(results.stopped, None | Some(Stopped::Interrupted)),
    }
}

#[cfg(test)]
mod tests;
