//! Writes the result of a phase into the results of the run.

use super::{Run, turn::Done};
use crate::{
    durability::Tier,
    results::{self, Latency, Tally},
    stats,
};

impl Run<'_, '_, '_> {
    /// Adds the result of a phase.
    pub(super) fn note(&mut self, at: usize, done: Done, place: u32) {
        let start = self.rounds;
        if let Some(shares) = &done.shares {
            self.shares = self.shares.plus(shares);
        }
        let cell = &mut self.results.cells[at];
        if let Some(phase) = self.results.phases.iter_mut().find(|p| p.id == cell.phase) {
            phase.units = if phase.units == 0 { done.units } else { phase.units };
        }
        let mut round = done.used.round(start, self.rounds, place);
        (round.units, round.server) = (done.units, done.server);
        (round.bloat, round.index, round.recovery) = (done.bloat, done.index, done.recovery);
        round.unsettled = !done.settled;
        if cell.rounds.is_empty() {
            (cell.units, cell.items) = (done.units, done.items);
            cell.warm_up = done.warm_up;
            cell.statements = done.statements;
            if !self.options.explain {
                cell.statements.iter_mut().for_each(|statement| statement.plan = None);
            }
        }
        cell.rounds.push(round);
        cell.settled = cell.mostly_settled();
        if let Some(window) = done.window {
            let open = window.latency.service.is_some();
            let latency = cell.latency.get_or_insert_with(|| Latency::of_window(open));
            latency.add(&window.latency);
            cell.tally = Some(cell.tally.unwrap_or_default().plus(window.tally));
        } else {
            let done = Tally { done: done.units, ..Tally::default() };
            cell.tally = Some(cell.tally.unwrap_or_default().plus(done));
        }
        if let Some(offered) = done.offered {
            let all = self.offered.entry(at).or_default();
            all.push(offered);
            cell.offered = stats::median(all);
        }
        if let Some(recovery) = done.recovery {
            let label = cell.competitor.clone();
            self.lost(&label, &recovery);
        }
    }

    /// Says that a store did not keep what its tier promises, where it lost records to a crash of its
    /// process: t2 may have held some back itself, t0 all.
    fn lost(&mut self, label: &str, recovery: &results::Recovery) {
        let lost = recovery.lost + recovery.earlier_lost;
        let row = self.results.competitors.iter_mut().find(|c| c.name == label);
        let Some(kept) = row.and_then(|row| row.store.as_mut()) else { return };
        let durability = &mut kept.durability;
        let set = durability.set.as_deref().and_then(|tier| tier.parse().ok());
        if lost > 0 && matches!(set, Some(Tier::T1 | Tier::T3)) {
            durability.broken = true;
            durability.remark = Some(format!(
                "{lost} of {} acknowledged records were lost when its process was killed",
                recovery.acknowledged + recovery.earlier
            ));
        }
    }
}
