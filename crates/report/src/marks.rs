//! Footnote marks for figures that need a caveat.

use std::collections::BTreeSet;

use super::{
    lead::{has_ranks, on_processor_time},
    number::{fixed, short, whole},
};
use steelyard_results::{Basis, Cell, FEWEST, Histogram, Proof, Results, Stopped, Verdict, Versus};

/// A share of the harness beyond which a cell is marked (rule 11).
const HARNESS: f64 = 0.20;
/// So many times p99.9 is no ordinary operation.
const STALL: f64 = 100.0;

/// The marks that a table has used, and what they mean.
#[derive(Default)]
pub(super) struct Marks {
    meanings: BTreeSet<(char, String)>,
    /// Of each cell that did not settle: how many of its rounds did not, and how many it has.
    unsettled: BTreeSet<(usize, usize)>,
}

impl Marks {
    /// The marks of a cell: did not settle, harness too large a part.
    pub(crate) fn of(&mut self, cell: &Cell) -> String {
        let mut marks = String::new();
        if !cell.settled {
            marks.push('*');
            self.unsettled.insert((cell.unsettled(), cell.rounds.len()));
        }
        if cell.summary.as_ref().and_then(|s| s.harness).is_some_and(|h| h > HARNESS) {
            marks.push('‡');
            self.add(
                '‡',
                "over a fifth of this is our own code around what is measured (encoding, decoding, \
                 clock), by the time of a competitor that keeps nothing",
            );
        }
        marks
    }

    /// The mark of a competitor that does not keep the records: two grades.
    pub(crate) fn lossy(&mut self, proof: Option<&Proof>) -> &'static str {
        match proof {
            Some(proof) if proof.changed() + proof.refused > 0 => {
                self.add('†', "lossy: some values come back changed or not at all, see Fidelity");
                "†"
            }
            Some(proof) if proof.reordered > 0 => {
                self.add(
                    '~',
                    "reordered: equal values, their names in another order, see Fidelity",
                );
                "~"
            }
            _ => "",
        }
    }

    /// The mark of a comparison that shows no difference.
    pub(crate) fn verdict(&mut self, versus: &Versus) -> &'static str {
        match versus.verdict {
            Verdict::Alike => {
                self.add('=', "alike: the whole interval lies within 3 %");
                " ="
            }
            Verdict::CannotTell => {
                self.add('?', "cannot tell: these rounds do not show which is faster, nor that both are alike");
                " ?"
            }
            Verdict::Faster | Verdict::Slower | Verdict::Untested => "",
        }
    }

    /// The mark of a distribution whose slowest operation took over 100 times p99.9.
    pub(crate) fn stall(&mut self, histogram: &Histogram) -> &'static str {
        match histogram.quantile(0.999) {
            Some(rare) if histogram.max() as f64 > STALL * rare.value => {
                self.add('^', "a stall: the slowest took over 100 times p99.9");
                "^"
            }
            _ => "",
        }
    }

    /// The mark of an open loop that did not keep to its plan.
    pub(crate) fn behind(&mut self, cell: &Cell) -> &'static str {
        match cell.tally.is_some_and(|tally| tally.fell_behind()) {
            true => {
                self.add(
                    '§',
                    "did not keep up: over 1 % of the planned operations were never sent, or \
                     failed; the latency is that of the others only",
                );
                "§"
            }
            false => "",
        }
    }

    /// The mark of a comparison with a store of another durability (rule 4).
    pub(crate) fn unlike(&mut self, baseline: &str) -> &'static str {
        self.add('≠', &format!("of another durability than {baseline}: not a ranking"));
        " ≠"
    }

    /// The mark of a store whose durability is not what was asked for.
    pub(crate) fn broken(&mut self) -> &'static str {
        self.add('!', "its durability is not what was asked for, or less than its settings promise; see The stores");
        "!"
    }

    fn add(&mut self, mark: char, meaning: &str) {
        self.meanings.insert((mark, meaning.to_owned()));
    }

    /// A line for each mark used.
    pub(crate) fn footnotes(mut self) -> Vec<String> {
        if !self.unsettled.is_empty() {
            let text = format!(
                "did not settle{}: its last 7 warm-up windows differ by over 7.5 %, or drift",
                rounds(&self.unsettled)
            );
            self.add('*', &text);
        }
        self.meanings.into_iter().map(|(mark, meaning)| format!("{mark} {meaning}")).collect()
    }
}

/// ` in 3 to 7 of 12 rounds`, of counts of rounds and of all of them; nothing where there was one
/// warm-up for all rounds.
fn rounds(counts: &BTreeSet<(usize, usize)>) -> String {
    let (least, most) = (counts.first(), counts.last());
    let (Some(&(least, _)), Some(&(most, _))) = (least, most) else { return String::new() };
    let of = counts.iter().map(|c| c.1).max().unwrap_or(0);
    match (least, most) {
        (0, _) => String::new(),
        (a, b) if a == b => format!(" in {a} of {of} rounds"),
        (a, b) => format!(" in {a} to {b} of {of} rounds"),
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
        let ratios = results.cells.iter().filter_map(|c| c.summary.as_ref());
        let of_processor =
            match (has_ranks(results), ratios.into_iter().any(|s| s.versus.is_some())) {
                _ if !on_processor_time(results) => None,
                (true, _) => Some("ranks, ratios and answers are"),
                (false, true) => Some("ratios are"),
                (false, false) => None,
            };
        let so = match of_processor {
            Some(what) => format!(
                "elapsed times have no verdict here; {what} of processor time (the client's and its \
                 server's), which does not count waiting"
            ),
            None => "times are longer than on a quiet one".into(),
        };
        said.push(format!(
            "Noisy: {} % of the comparisons were disturbed by something else on this machine; {so}.",
            fixed(100.0 * share, 0)
        ));
    }
    // What else runs on this machine slows the loop, too.
    if let Some((share, most)) = results.slowed().filter(|(share, _)| !marked && *share > 0.1) {
        said.push(format!(
            "Slowed: the processor was up to {} times slower than at its best, and over 10 % slower before {} % of \
             the turns, with nothing else running on this machine. Another virtual machine uses the same core, or \
             the clock changes; more rounds narrow the intervals.",
            fixed(most, 1),
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
        Some(Stopped::Budget) if starts(results) < wanted(results) => {
            let (had, wanted) = (starts(results), wanted(results));
            let wide = if had as usize >= FEWEST { ", so intervals are wide" } else { "" };
            said.push(format!(
                "Short: the budget of {} s allowed {had} instead of {wanted} {}{wide}; \
                 --budget {} would do.",
                short(results.plan.stop.budget),
                fresh(results).1,
                enough(results, wanted)
            ));
        }
        Some(_) => {}
    }
    said.extend(over_budget(results));
    let most = results.cells.iter().filter_map(|c| c.summary.as_ref()).map(|s| s.n).max();
    match (most, starts(results)) {
        (None, _) => {}
        (Some(rounds), starts) if (starts as usize) < FEWEST => {
            let rounds = if rounds == 1 { "1 round".into() } else { format!("{rounds} rounds") };
            let (one, many) = fresh(results);
            let on = if starts == 1 { format!("1 {one}") } else { format!("{starts} {many}") };
            said.push(format!(
                "{rounds} on {on}: too few to rank, or for intervals. It takes {FEWEST} starts."
            ));
        }
        _ => said.extend(sensitivity(results)),
    }
    said
}

/// The budget, in seconds, that so many starts would take.
pub(super) fn enough(results: &Results, starts_wanted: u32) -> f64 {
    let each = results.seconds / f64::from(starts(results).max(1));
    (each * f64::from(starts_wanted) / 10.0).ceil() * 10.0
}

/// What a run took beyond its budget, and why; none where it was kept but for what measuring takes beside
/// rounds.
pub fn over_budget(results: &Results) -> Option<String> {
    /// So many times the budget, and so many seconds more, are no news.
    const SPARE: (f64, f64) = (1.1, 1.0);
    let (took, budget) = (results.seconds, results.plan.stop.budget);
    if took <= SPARE.0 * budget + SPARE.1 {
        return None;
    }
    let rounds = results.cells.iter().flat_map(|c| &c.rounds).map(|r| r.round + 1).max()?;
    const TURN: &str = "a round is a turn of everyone in every phase";
    let (of, less) = match results.bench.as_str() {
        "stores" => {
            let of = "a round is a whole run of the workload by every store";
            (of, "a smaller --scale or fewer stores")
        }
        "objects" => (TURN, "fewer --counts or --formats"),
        "cache" => (TURN, "fewer --rows or clients"),
        "tenants" => {
            let of = "making the data counts, and each number of tenants has 6 rounds whatever the budget says";
            (of, "fewer --tenants, --documents or --arms")
        }
        _ => (TURN, "--limit N records or fewer --formats"),
    };
    let so = match rounds {
        1 => "one round alone took longer".to_owned(),
        n => format!("the last of {n} began before it was over"),
    };
    Some(format!(
        "Over the budget: it took {} s instead of {} s. No round that has begun is broken off; {of}, and \
         {so}. For less: {less}.",
        fixed(took, 0),
        fixed(budget, usize::from(budget.fract() != 0.0))
    ))
}

/// The smallest differences that these rounds could have shown, of half of the pairs in a phase, in a
/// sentence.
fn sensitivity(results: &Results) -> Option<String> {
    let least = smallest_shown(results)?;
    Some(format!(
        "The smallest difference that these rounds could have shown of a usual pair, in four of five such runs: {least}."
    ))
}

/// The smallest differences that these rounds could have shown, over all phases: `13 % (read) to 20 %
/// (write)`.
pub(super) fn smallest_shown(results: &Results) -> Option<String> {
    let family = results.family.as_ref()?;
    let name = |id: &str| results.phase(id).map_or(id.to_owned(), |p| p.name.clone());
    let mut found: Vec<(f64, String)> =
        family.sensitivity.iter().map(|s| (s.ratio, name(&s.phase))).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let by = |ratio: f64| match ratio {
        ..2.0 => format!("{} %", fixed(100.0 * (ratio - 1.0), 0)),
        ..10.0 => format!("{} times", fixed(ratio, 1)),
        _ => "over 10 times".into(),
    };
    Some(match &found[..] {
        [] => return None,
        [(ratio, _)] => by(*ratio),
        [(low, _), .., (high, _)] if by(*low) == by(*high) => by(*low),
        [(low, narrow), .., (high, wide)] => {
            format!("{} ({narrow}) to {} ({wide})", by(*low), by(*high))
        }
    })
}

/// How many starts were to be had: no more than the rounds that were asked for.
pub(super) fn wanted(results: &Results) -> u32 {
    let stop = &results.plan.stop;
    stop.min_starts.min(stop.max_rounds.div_ceil(stop.rounds_per_start.max(1)))
}

/// On how many starts with fresh data the figures rest.
pub(super) fn starts(results: &Results) -> u32 {
    results.cells.iter().filter_map(|c| c.summary.as_ref()).map(|s| s.starts).max().unwrap_or(0)
}

/// How the comparisons of the page were decided.
fn together(results: &Results) -> Option<String> {
    let family = results.family.as_ref().filter(|f| f.decided() > 0)?;
    let decided = match family.decided() {
        1 => "1 comparison is decided,".to_owned(),
        n => format!("{} comparisons are decided together (Holm),", whole(n as u64)),
    };
    let level = 100.0 * family.level;
    let widened = match family.autocorrelation {
        ..0.005 => String::new(),
        r => format!(
            " Rounds may be like those before them (autocorrelation about {}), and intervals of ratios are widened for it.",
            fixed(r, 2)
        ),
    };
    Some(format!(
        "{decided} so that all ranks and verdicts of a page are right in 95 of 100 runs. The interval of each ratio is at {} %. Faster or slower: it excludes 100 %, and the ratio is at least 3 % away. Alike (=): it lies within 3 %. Cannot tell (?): neither.{widened}",
        short(100.0 - level).trim_end_matches('0').trim_end_matches('.'),
    ))
}

/// How often things were measured: `n = 24 rounds on 12 starts`.
pub(super) fn repeats(results: &Results) -> String {
    let counts = |f: fn(&steelyard_results::Summary) -> u32| {
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
        span(counts(|s| s.starts), fresh(results).0, fresh(results).1)
    )
}

/// What a start is, one and several: in the bench of tenants, one of the processes.
fn fresh(results: &Results) -> (&'static str, &'static str) {
    match results.bench.as_str() {
        "tenants" => ("start of the processes", "starts of the processes"),
        _ => ("start with fresh data", "starts with fresh data"),
    }
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
        "Measured in {} s, {}; ended because {ended}. Seed {}. Times are medians of rounds, processor times of user and system their means, with 95 % intervals ({} resamples, by start; of logarithms).",
        fixed(results.seconds, 0),
        repeats(results),
        results.plan.seed,
        whole(u64::from(results.plan.resamples)),
    ));
    notes.extend(together(results));
    match (results.plan.basis, results.figures()) {
        (Basis::Processor, Basis::Processor) => notes.push(
            "Times are processor time, user and system of all threads, not what a user waits for."
                .into(),
        ),
        (Basis::Processor, Basis::Elapsed) => notes.push(
            "Ranks, ratios and answers are of processor time, the client's and its private \
             server's, as --cpu asks for; rates and latencies are of elapsed time."
                .into(),
        ),
        (Basis::Elapsed, _) => {}
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
    let mut costs: Vec<(f64, &str)> = results
        .cells
        .iter()
        .filter(|c| Some(c.competitor.as_str()) == null)
        .filter_map(|c| {
            Some((c.summary.as_ref()?.ns.middle, results.phase(&c.phase)?.name.as_str()))
        })
        .collect();
    costs.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some((least, at_least)), Some((most, at_most))) = (costs.first(), costs.last()) {
        let takes = match costs.len() {
            1 => format!("{} ns", short(*least)),
            _ => format!("{} ns ({at_least}) to {} ns ({at_most})", short(*least), short(*most)),
        };
        // The null competitor of stores is a driver like the others.
        notes.push(match results.workload.is_some() || results.bench == "tenants" {
            true => format!(
                "Our own code around a store (the call, encoding or decoding, counting) takes {takes} an operation, measured by a store that keeps nothing."
            ),
            false => format!(
                "The harness itself takes {takes} an operation, measured by a competitor that does nothing."
            ),
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use steelyard_results::Round;

    #[test]
    fn cells_that_did_not_settle_say_in_how_many_rounds() {
        let cell = |unsettled: usize, of: usize| {
            let round = |n| Round { unsettled: n < unsettled, ..Round::default() };
            let mut cell = Cell { rounds: (0..of).map(round).collect(), ..Cell::default() };
            cell.settled = cell.mostly_settled();
            cell
        };
        let said = |cells: &[Cell]| {
            let mut marks = Marks::default();
            let marked = cells.iter().filter(|cell| marks.of(cell) == "*").count();
            (marked, marks.footnotes().join("\n"))
        };
        // A fifth of the rounds at most is the exception.
        assert_eq!(said(&[cell(0, 10), cell(2, 10)]), (0, String::new()));
        let (marked, text) = said(&[cell(3, 12)]);
        assert_eq!(marked, 1);
        assert!(text.starts_with("* did not settle in 3 of 12 rounds: its last"), "{text}");
        let (marked, text) = said(&[cell(3, 12), cell(12, 12), cell(1, 12)]);
        assert!(marked == 2 && text.contains("in 3 to 12 of 12 rounds:"), "{text}");
        // One warm-up for all rounds.
        let (_, text) = said(&[Cell { settled: false, ..cell(0, 12) }]);
        assert!(text.starts_with("* did not settle: its last"), "{text}");
    }
}
