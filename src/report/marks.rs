//! What must stand beside a figure so that it does not say more than it knows.

use std::collections::BTreeSet;

use super::number::{fixed, short, whole};
use crate::bench::results::{Basis, Cell, Proof, Results, Stopped, Verdict, Versus};

/// A share of the harness beyond which a cell is marked (rule 11).
const HARNESS: f64 = 0.20;

/// The marks that a table has used, and what they mean.
#[derive(Default)]
pub(super) struct Marks(BTreeSet<(char, String)>);

impl Marks {
    /// The marks of a cell: did not settle, harness too large a part.
    pub fn of(&mut self, cell: &Cell) -> String {
        let mut marks = String::new();
        if !cell.settled {
            marks.push('*');
            self.add(
                '*',
                "did not settle: its last 7 warm-up windows differ by over 7.5 %, or drift",
            );
        }
        if cell.summary.as_ref().and_then(|s| s.harness).is_some_and(|h| h > HARNESS) {
            marks.push('‡');
            self.add('‡', "over a fifth of this is the cost of measuring itself");
        }
        marks
    }

    /// The mark of a competitor that does not keep the records.
    pub fn lossy(&mut self, proof: Option<&Proof>) -> &'static str {
        match proof {
            Some(proof) if proof.equal < proof.records => {
                self.add('†', "lossy: not every record comes back equal, see Fidelity");
                "†"
            }
            _ => "",
        }
    }

    /// The mark of a comparison that shows nothing.
    pub fn verdict(&mut self, versus: &Versus) -> &'static str {
        match versus.verdict {
            // Without an interval nothing was tried.
            _ if versus.ratio.low.is_none() => "",
            Verdict::NoDifference => {
                self.add('=', "no difference shown: under 3 %, or less than chance can make");
                " ="
            }
            Verdict::Faster | Verdict::Slower => "",
        }
    }

    /// The mark of a comparison with a store of another durability (rule 4).
    pub fn unlike(&mut self, baseline: &str) -> &'static str {
        self.add('≠', &format!("of another durability than {baseline}: not a ranking"));
        " ≠"
    }

    /// The mark of a store whose durability is not what was asked for.
    pub fn broken(&mut self) -> &'static str {
        self.add('!', "durability set or observed is not what was asked for, see The stores");
        "!"
    }

    fn add(&mut self, mark: char, meaning: &str) {
        self.0.insert((mark, meaning.to_owned()));
    }

    /// A line for each mark used.
    pub fn footnotes(self) -> Vec<String> {
        self.0.into_iter().map(|(mark, meaning)| format!("{mark} {meaning}")).collect()
    }
}

/// What makes the whole run doubtful, in sentences; empty where nothing does.
pub(super) fn cautions(results: &Results) -> Vec<String> {
    let mut said = Vec::new();
    let opt = results.software.get("opt-level").map_or("", String::as_str);
    if matches!(opt, "0" | "1") {
        said.push(format!(
            "Not to be relied on: this program was built without optimisation (opt-level {opt}); build it with --release."
        ));
    }
    let (share, marked) = results.noise();
    if marked {
        said.push(format!(
            "Noisy: something else used this machine in {} % of the rounds; small differences may be its doing, and times are longer than on a quiet one.",
            fixed(100.0 * share, 0)
        ));
    }
    match results.stopped {
        None => {
            said.push("Incomplete: the run was broken off; these are the rounds it had.".into())
        }
        Some(Stopped::Interrupted) => {
            said.push("Interrupted: the run was ended early; these are the rounds it had.".into());
        }
        Some(Stopped::Budget) if starts(results) < results.plan.stop.min_starts => {
            said.push(format!(
                "Short: the budget of {} s allowed {} instead of {} starts with fresh data, so intervals are wide.",
                short(results.plan.stop.budget),
                starts(results),
                results.plan.stop.min_starts
            ));
        }
        Some(_) => {}
    }
    let most = results.cells.iter().filter_map(|c| c.summary.as_ref()).map(|s| s.n).max();
    match (most, starts(results)) {
        (Some(1), _) => {
            said.push("One round only: no figure has an interval, and none a rank.".into())
        }
        (_, 1) => said.push(
            "One start only: the intervals say how rounds differ, not how another start would."
                .into(),
        ),
        _ => {}
    }
    said
}

fn starts(results: &Results) -> u32 {
    results.cells.iter().filter_map(|c| c.summary.as_ref()).map(|s| s.starts).max().unwrap_or(0)
}

/// How often things were measured: `n = 24 rounds on 12 starts`.
pub(super) fn repeats(results: &Results) -> String {
    let counts = |f: fn(&crate::bench::results::Summary) -> u32| {
        let all: Vec<u32> =
            results.cells.iter().filter_map(|c| c.summary.as_ref()).map(f).collect();
        (all.iter().min().copied().unwrap_or(0), all.iter().max().copied().unwrap_or(0))
    };
    let span = |(low, high): (u32, u32), one: &str, many: &str| match (low, high) {
        (1, 1) => format!("1 {one}"),
        (a, b) if a == b => format!("{a} {many}"),
        (a, b) => format!("{a} to {b} {many}"),
    };
    format!(
        "n = {} on {}",
        span(counts(|s| s.n), "round", "rounds"),
        span(counts(|s| s.starts), "start with fresh data", "starts with fresh data")
    )
}

/// The facts that every page ends with.
pub(super) fn notes(results: &Results) -> Vec<String> {
    let machine = &results.machine;
    let mut notes = Vec::new();
    let ended = match results.stopped {
        Some(Stopped::Precise) => {
            "every comparison had its interval within the precision asked for"
        }
        Some(Stopped::Budget) => "the time allowed was up",
        Some(Stopped::Rounds) => "the rounds allowed were done",
        Some(Stopped::Interrupted) => "it was interrupted",
        None => "it was broken off",
    };
    notes.push(format!(
        "Measured in {} s, {}; ended because {ended}. Seed {}. Figures are medians of rounds with 95 % intervals ({} resamples, by start); verdicts hold for a whole table (Holm).",
        fixed(results.seconds, 0),
        repeats(results),
        results.plan.seed,
        whole(u64::from(results.plan.resamples)),
    ));
    if results.plan.basis == Basis::Processor {
        notes.push(
            "Times are processor time, user and system of all threads, not what a user waits for."
                .into(),
        );
    }
    for (name, value) in &results.settings {
        notes.push(format!("{name}: {value}"));
    }
    let mut place = format!("Machine: {}, {} cores", machine.cpu, machine.cores);
    if machine.memory > 0 {
        place.push_str(&format!(", {} GB", fixed(machine.memory as f64 / 1e9, 1)));
    }
    place.push_str(&format!(", {}", machine.kernel));
    if machine.virtual_machine == Some(true) {
        place.push_str(", virtual");
    }
    if let Some(governor) = &machine.governor {
        place.push_str(&format!(", governor {governor}"));
    }
    if let Some(load) = machine.load {
        place.push_str(&format!(", load {} before", fixed(load, 2)));
    }
    notes.push(place + ".");
    let outliers: usize =
        results.cells.iter().filter_map(|c| c.summary.as_ref()).map(|s| s.outliers.len()).sum();
    let rounds: usize = results.cells.iter().map(|c| c.rounds.len()).sum();
    notes.push(format!(
        "{} of {} timed windows lie far from the rest of theirs; none was dropped. The clock costs {} ns.",
        whole(outliers as u64),
        whole(rounds as u64),
        fixed(results.clock.read_ns, 0)
    ));
    let null = results.competitors.iter().find(|c| c.null).map(|c| c.name.as_str());
    let costs: Vec<f64> = results
        .cells
        .iter()
        .filter(|c| Some(c.competitor.as_str()) == null)
        .filter_map(|c| Some(c.summary.as_ref()?.ns.middle))
        .collect();
    if !costs.is_empty() {
        notes.push(format!(
            "The harness itself takes {} to {} ns an operation, measured by a competitor that does nothing.",
            short(costs.iter().copied().fold(f64::INFINITY, f64::min)),
            short(costs.iter().copied().fold(0.0, f64::max)),
        ));
    }
    let versions: Vec<String> = ["steelyard", "rustc"]
        .iter()
        .filter_map(|name| results.software.get(*name).map(|v| (name, v)))
        .map(|(name, v)| if v.starts_with(name) { v.clone() } else { format!("{name} {v}") })
        .collect();
    if !versions.is_empty() {
        notes.push(format!("Made by {}, {}.", versions.join(", "), results.started));
    }
    notes
}
