//! One run against another: pure, from their results alone.
//!
//! What differs between the runs is looked for first: figures of other records, another machine,
//! another workload or another durability cannot be compared, whatever they are.
//!
//! Two runs at different times are compared only where the machine was quiet in both and their
//! controls agree (`runs/controls.rs`). Their rounds are no pairs, so each run's mean is estimated by
//! itself and the logarithms are subtracted; what the controls drifted by is taken out, and how far
//! they differ is added to the interval.
//!
//! Two programs that took turns in one run (`against` in `steelyard-bench`) need no controls: whatever
//! else happened, happened to both. Their ratios are taken pair by pair within each round.
//!
//! Either way it is the arithmetic of a page (`stats/paired.rs`): by start, on logarithms, corrected for
//! rounds that are not independent, none below 5 starts; and the whole comparison is one family.

mod controls;
mod differences;

use self::{controls::controls, differences::differences};
use super::{
    Basis, Cell, Comparison, Pace, Pair, Results, Run, Stopped, Versus,
    derive::{costs, derive, figure, judged},
    stats::{Paired, Rule, Sample, Usual, autocorrelation, by_start, paired},
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
    let rule = Rule { effect: plan.effect, level: 1.0 - plan.level };
    let mut both: Vec<(usize, usize)> = Vec::new();
    for (i, cell) in timed(new) {
        match timed(old).find(|(_, c)| same(c, cell)) {
            Some((j, _)) if new.phase(&cell.phase).is_some() => both.push((i, j)),
            Some(_) => {}
            None => comparison.only_new.push(format!("{} {}", cell.competitor, cell.phase)),
        }
    }
    let ratios = match interleaved {
        true => in_turns(new, old, &both),
        false => {
            let serial = serial(&[new, old]);
            let (controls, drift) = controls(new, old, serial, &rule);
            comparison.controls = controls;
            comparison.drift = drift.map(|drift| drift.log.exp());
            let ratio = |&(i, j): &(usize, usize)| {
                let ratio = Paired::between(&logs(new, i), &logs(old, j), serial)?;
                Some(drift.map_or(ratio, |drift| ratio.without(&drift)))
            };
            both.iter().map(ratio).collect()
        }
    };
    let found: Vec<((usize, usize), Paired)> =
        both.into_iter().zip(ratios).filter_map(|(pair, ratio)| Some((pair, ratio?))).collect();
    let (_, answers) = judged(&found.iter().map(|f| f.1).collect::<Vec<_>>(), &rule);
    let pairs = found.iter().zip(answers);
    comparison.pairs = pairs.filter_map(|(f, versus)| pair((new, old), f.0, versus)).collect();
    let gone = timed(old).filter(|(_, c)| !timed(new).any(|(_, n)| same(n, c)));
    comparison.only_old = gone.map(|(_, c)| format!("{} {}", c.competitor, c.phase)).collect();
    comparison
}

/// The ratios of two programs that took turns, by the cells of each.
fn in_turns(new: &Results, old: &Results, cells: &[(usize, usize)]) -> Vec<Option<Paired>> {
    let series = |&(i, j): &(usize, usize)| {
        by_start(&paired(&costs(new, i, new.plan.basis), &costs(old, j, old.plan.basis)))
    };
    let series: Vec<Vec<f64>> = cells.iter().map(series).collect();
    let serial = autocorrelation(series.iter().map(Vec::as_slice));
    let pairs: Vec<Option<Paired>> = series.iter().map(|logs| Paired::of(logs, serial)).collect();
    let usual = Usual::of(&pairs.iter().flatten().copied().collect::<Vec<_>>());
    pairs.into_iter().map(|pair| pair.map(|pair| pair.moderated(usual))).collect()
}

/// How much a round of these runs tells of the next one. Nothing is cancelled by ratios within a round
/// here: what slowed the machine for a while is in all of it.
fn serial(runs: &[&Results]) -> f64 {
    let all = runs.iter().flat_map(|run| (0..run.cells.len()).map(|cell| logs(run, cell)));
    let all: Vec<Vec<f64>> = all.collect();
    autocorrelation(all.iter().map(Vec::as_slice))
}

fn pair((new, old): (&Results, &Results), (i, j): (usize, usize), versus: Versus) -> Option<Pair> {
    let (cell, before) = (&new.cells[i], &old.cells[j]);
    let (a, b) = (cell.summary.as_ref()?, before.summary.as_ref()?);
    Some(Pair {
        competitor: cell.competitor.clone(),
        phase: cell.phase.clone(),
        unit: new.phase(&cell.phase)?.unit.clone(),
        // What the ratio is of, which for stores need not be what their pages show.
        new: figure(new, i, new.plan.basis)?,
        old: figure(old, j, old.plan.basis)?,
        versus,
        starts: (a.starts, b.starts),
        syncs: syncs(new, cell),
    })
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

/// A logarithm of its time for each start of a cell.
fn logs(results: &Results, cell: usize) -> Vec<f64> {
    let means = costs(results, cell, results.plan.basis).into_iter().filter(|m| m.2 > 0.0);
    by_start(&means.map(|(start, _, ns)| Sample { start, value: ns.ln() }).collect::<Vec<_>>())
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
