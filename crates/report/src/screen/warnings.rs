//! What makes a run doubtful, each in one line.

use super::{
    super::{
        lead::on_processor_time,
        marks::{enough, over_budget, starts},
        number::fixed,
    },
    counted, named,
};
use steelyard_results::{Contender, FEWEST, Results, Stopped};

/// The most lines of warnings.
pub(super) const MOST: usize = 5;

/// The gravest first.
pub(super) fn warnings(results: &Results) -> Vec<String> {
    let mut said = Vec::new();
    let opt = results.software.get("opt-level").map_or("", String::as_str);
    if matches!(opt, "0" | "1") {
        said.push("debug build: its figures mean nothing; build it with --release".into());
    }
    said.extend(stopped(results));
    let starts = starts(results) as usize;
    let few = starts > 0 && starts < FEWEST;
    if few {
        let rounds = counted(starts, "rounds");
        let try_this = match (results.stopped, (results.plan.stop.max_rounds as usize) < FEWEST) {
            (None | Some(Stopped::Interrupted), _) => String::new(),
            (_, true) => format!(": try --rounds {FEWEST}"),
            (_, false) => format!(": try --budget {}", enough(results, FEWEST as u32)),
        };
        said.push(format!("{rounds}, and ranking takes {FEWEST}{try_this}"));
    }
    let (share, noisy) = results.noise();
    if noisy {
        let so = match on_processor_time(results) {
            _ if few => "times are too long",
            true => "ranked by processor time",
            false => "times are too long",
        };
        let share = fixed(100.0 * share, 0);
        said.push(format!("busy machine: {share} % of comparisons disturbed; {so}"));
    }
    if over_budget(results).is_some() {
        let (took, budget) = (fixed(results.seconds, 0), fixed(results.plan.stop.budget, 0));
        said.push(format!(
            "{took} s instead of {budget} s: a round in progress is always finished"
        ));
    }
    said.extend(competitors(results));
    if results.dataset.unreadable > 0 {
        let count = counted(results.dataset.unreadable as usize, "records");
        said.push(format!("{count} could not be read and were left out"));
    }
    said
}

/// How a run ended that did not end as planned.
fn stopped(results: &Results) -> Option<String> {
    match results.stopped {
        None => Some("incomplete: the run was broken off; these are the rounds it had".into()),
        Some(Stopped::Interrupted) => Some("interrupted; these are the rounds it had".into()),
        Some(_) => None,
    }
}

/// Who was not measured, failed, lost data or was not as durable as asked.
fn competitors(results: &Results) -> Vec<String> {
    let all = || results.competitors.iter().filter(|c| !c.null);
    let names = |which: &dyn Fn(&Contender) -> bool| -> Vec<&str> {
        all().filter(|c| which(c)).map(|c| c.name.as_str()).collect()
    };
    let mut said: Vec<String> = all()
        .filter_map(|c| Some(format!("{} was not measured: {}", c.name, c.refused.as_ref()?)))
        .collect();
    let failed = |c: &Contender| {
        let mut own = results.cells.iter().filter(|cell| cell.competitor == c.name);
        own.any(|cell| cell.refused.as_ref().is_some_and(|why| why.starts_with("failed: ")))
    };
    let broken = |c: &Contender| c.store.as_ref().is_some_and(|kept| kept.durability.broken);
    let lossy = |c: &Contender| c.proof.as_ref().is_some_and(|p| p.changed() + p.refused > 0);
    for (names, what) in [
        (names(&failed), "failed in a phase"),
        (names(&broken), "not as durable as asked; not ranked"),
        (names(&lossy), "some values do not come back equal; marked !"),
    ] {
        if !names.is_empty() {
            said.push(format!("{}: {what}", named(&names)));
        }
    }
    said
}
