//! The controls of two runs: what is the same in both, whatever program was measured.
//!
//! They are the null competitor in each phase, a loop of arithmetic, and a small synced write. Where one
//! of them differs between the runs, so does the machine, and figures that depend on it cannot be
//! compared. Where none does, what they differ by is still taken out of every ratio, and added to its
//! interval (`stats/drift.rs`).

use super::logs;
use crate::{
    Basis, Cell, Control, Controlled, Probe, Results, Verdict,
    derive::judged,
    stats::{Drift, Paired, Rule, Sample, by_start},
};

/// A reading of a probe.
type Reading = fn(&Probe) -> Option<u64>;

/// The controls that both runs have, and the drift that follows from those of the processor.
pub(super) fn controls(
    new: &Results,
    old: &Results,
    serial: f64,
    rule: &Rule,
) -> (Vec<Control>, Option<Drift>) {
    let mut found: Vec<(Controlled, Option<String>, Paired)> = Vec::new();
    let spin: Reading = match new.plan.basis {
        Basis::Elapsed => |p| Some(p.spin_ns),
        // Undisturbed, as processor time is.
        Basis::Processor => |p| Some(p.spin_least_ns),
    };
    let probes: [(Controlled, Reading); 2] =
        [(Controlled::Spin, spin), (Controlled::Sync, |p| p.sync_ns)];
    for (what, of) in probes {
        let ratio = Paired::between(&probed(new, of), &probed(old, of), serial);
        found.extend(ratio.map(|ratio| (what, None, ratio)));
    }
    for (i, cell) in nulls(new) {
        let Some((j, _)) = nulls(old).find(|(_, c)| c.phase == cell.phase) else { continue };
        let ratio = Paired::between(&logs(new, i), &logs(old, j), serial);
        found.extend(ratio.map(|ratio| (Controlled::Null, Some(cell.phase.clone()), ratio)));
    }
    // A sum of phases bars what is the same sum, and has no news of its own.
    let sum = |phase: &String| new.phase(phase).is_some_and(|p| !p.sum_of.is_empty());
    let processor: Vec<Paired> = (found.iter())
        .filter(|(what, phase, _)| *what != Controlled::Sync && !phase.as_ref().is_some_and(sum))
        .map(|found| found.2)
        .collect();
    // A family of their own: they decide what may be compared, before anything is.
    let (_, answers) = judged(&found.iter().map(|f| f.2).collect::<Vec<_>>(), rule);
    let controls = found.into_iter().zip(answers).map(|((what, phase, _), versus)| {
        let differs = matches!(versus.verdict, Verdict::Faster | Verdict::Slower);
        Control { what, phase, ratio: versus.ratio, differs }
    });
    (controls.collect(), Drift::of(&processor))
}

/// Logarithms of what probes have seen, one for each round.
fn probed(results: &Results, of: impl Fn(&Probe) -> Option<u64>) -> Vec<f64> {
    let seen = results.probes.iter().filter_map(|p| Some((p.round, of(p)?)));
    let logs = seen.filter(|(_, ns)| *ns > 0);
    by_start(&logs.map(|(start, ns)| Sample { start, value: (ns as f64).ln() }).collect::<Vec<_>>())
}

/// The null competitor's cells.
fn nulls(results: &Results) -> impl Iterator<Item = (usize, &Cell)> {
    let null = |cell: &Cell| results.competitor(&cell.competitor).is_some_and(|c| c.null);
    results.cells.iter().enumerate().filter(move |(_, cell)| null(cell))
}
