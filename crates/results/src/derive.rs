//! From raw rounds to figures: a pure function of [`Results`], so that a file that was
//! interrupted, or read again years later, gives the same figures.

mod compare;

use std::collections::BTreeSet;

use self::compare::Comparisons;
pub(crate) use self::compare::judged;
use super::{
    Basis, Cell, Figure, Phase, Results, Round, Summary, noise,
    stats::{
        Bootstrap, FEWEST, Paired, Sample, autocorrelation, by_start, median, outliers, paired,
    },
};

/// Nanoseconds an operation took: (start, round, ns).
pub(crate) type Means = Vec<(u32, u32, f64)>;

/// Fills in everything that follows from the raw rounds: sums of phases, summaries, comparisons,
/// ranks and marks of noise.
pub fn derive(results: &mut Results) {
    noise::judge(&mut results.probes, &results.cells);
    add_sums(results);
    let tools = Tools::of(results);
    for i in 0..results.cells.len() {
        let means = means_of(results, i);
        results.cells[i].summary = tools.summary(results, &results.cells[i], &means);
    }
    // What others did to a noisy machine is in elapsed times, and hardly in processor times (rule 10).
    let basis = if results.noise().1 { Basis::Processor } else { results.plan.basis };
    let costs: Vec<Means> = (0..results.cells.len()).map(|i| costs(results, i, basis)).collect();
    Comparisons::of(results, basis, &costs).tell(results);
}

/// The first comparison, from `hint` on and around, whose interval is not within `precision`; the
/// stop rule goes on while there is one (rule 8). Asking from the last answer on saves most of the
/// work.
pub fn first_wide(results: &Results, precision: f64, hint: usize) -> Option<usize> {
    let timed = |c: &Cell| c.refused.is_none() && !is_null(results, &c.competitor);
    let open = |c: &Cell| results.phase(&c.phase).is_some_and(Phase::is_open);
    let with_baseline = results.cells.iter().filter(|c| timed(c) && !open(c)).filter_map(|cell| {
        let base = results.cell(&results.baseline, &cell.phase).filter(|c| timed(c))?;
        (cell.competitor != results.baseline).then_some((cell, base))
    });
    let contrasts = results
        .contrasts
        .iter()
        .filter_map(|c| Some((results.cell(&c.of.0, &c.of.1)?, results.cell(&c.to.0, &c.to.1)?)));
    let means = |cell: &Cell| cell.means(results.figures());
    let series: Vec<Vec<f64>> = with_baseline
        .chain(contrasts)
        .map(|(of, to)| by_start(&paired(&means(of), &means(to))))
        .collect();
    let serial = autocorrelation(series.iter().map(Vec::as_slice));
    let narrow = |i: usize| {
        let half = Paired::of(&series[i], serial)?.half_width(1.0 - results.plan.level)?;
        Some(half <= precision)
    };
    (0..series.len()).map(|k| (k + hint) % series.len()).find(|&i| narrow(i) != Some(true))
}

fn is_null(results: &Results, name: &str) -> bool {
    results.competitor(name).is_some_and(|c| c.null)
}

/// Gives every phase that is a sum a cell for each competitor, with no rounds of its own.
fn add_sums(results: &mut Results) {
    let sums: Vec<Phase> =
        results.phases.iter().filter(|p| !p.sum_of.is_empty()).cloned().collect();
    for phase in sums {
        for c in 0..results.competitors.len() {
            let name = results.competitors[c].name.clone();
            if results.cell(&name, &phase.id).is_some() {
                continue;
            }
            let parts: Vec<&Cell> =
                phase.sum_of.iter().filter_map(|id| results.cell(&name, id)).collect();
            if parts.is_empty() {
                continue;
            }
            let refused = match parts.len() == phase.sum_of.len() {
                true => parts.iter().find_map(|p| p.refused.clone()),
                false => Some("one of its parts was not timed".to_owned()),
            };
            let cell = Cell {
                competitor: name.clone(),
                phase: phase.id.clone(),
                refused,
                units: phase.units,
                settled: parts.iter().all(|p| p.settled),
                ..Cell::default()
            };
            results.cells.push(cell);
        }
    }
}

/// The means of a cell's rounds; of a sum, the sums of its parts within each round.
fn means_of(results: &Results, cell: usize) -> Means {
    sum_or_own(results, &results.cells[cell], &|cell| cell.means(results.figures()))
}

/// What `of` gives for a cell; for one whose phase is a sum, the sums of its parts within each round.
fn sum_or_own(results: &Results, cell: &Cell, of: &dyn Fn(&Cell) -> Means) -> Means {
    let Some(phase) = results.phase(&cell.phase).filter(|p| !p.sum_of.is_empty()) else {
        return of(cell);
    };
    let part = |id: &String| results.cell(&cell.competitor, id).map(of).unwrap_or_default();
    let parts: Vec<Means> = phase.sum_of.iter().map(part).collect();
    let Some((first, rest)) = parts.split_first() else { return Means::new() };
    first
        .iter()
        .filter_map(|&(start, round, ns)| {
            rest.iter()
                .try_fold(ns, |sum, part| {
                    part.iter().find(|m| (m.0, m.1) == (start, round)).map(|m| sum + m.2)
                })
                .map(|sum| (start, round, sum))
        })
        .collect()
}

/// What a cell's rounds cost an operation on a basis: of processor time, the client's and its
/// server's. Nothing where a server's part is not known, which cannot be compared then.
pub(crate) fn costs(results: &Results, at: usize, basis: Basis) -> Means {
    let cell = &results.cells[at];
    let kept = results.competitor(&cell.competitor).and_then(|c| c.store.as_ref());
    let (Some(kept), Basis::Processor) = (kept, basis) else {
        return sum_or_own(results, cell, &|cell| cell.means(basis));
    };
    if kept.is_elsewhere() {
        return Means::new();
    }
    let both = |cell: &Cell, round: &Round| {
        let server = match (&kept.server, round.server) {
            (None, _) => 0,
            (Some(_), used) => used.map(|s| s.user_ns + s.system_ns)?,
        };
        let ns = (round.user_ns + round.system_ns + server) as f64;
        Some((round.start, round.round, ns / cell.units_of(round).max(1) as f64))
    };
    sum_or_own(results, cell, &|cell| cell.rounds.iter().filter_map(|r| both(cell, r)).collect())
}

/// The time of a cell on a basis: the median of its rounds, with its interval.
pub(crate) fn figure(results: &Results, cell: usize, basis: Basis) -> Option<Figure> {
    Tools::of(results).figure(&costs(results, cell, basis))
}

/// How many starts there are.
fn starts(means: &[(u32, u32, f64)]) -> usize {
    means.iter().map(|m| m.0).collect::<BTreeSet<_>>().len()
}

struct Tools {
    bootstrap: Bootstrap,
}

impl Tools {
    fn of(results: &Results) -> Tools {
        let plan = &results.plan;
        Tools {
            bootstrap: Bootstrap { resamples: plan.resamples, seed: plan.seed, level: plan.level },
        }
    }

    /// The median, with its interval where there are starts enough.
    fn figure(&self, means: &[(u32, u32, f64)]) -> Option<Figure> {
        // In logarithms, so that no end of an interval is below 0.
        let log = |ns: f64| ns.max(f64::MIN_POSITIVE).ln();
        let samples: Vec<Sample> =
            means.iter().map(|&(start, _, ns)| Sample { start, value: log(ns) }).collect();
        let estimate = self.bootstrap.median(&samples)?;
        let ends = (estimate.low.exp(), estimate.high.exp());
        let ends = (starts(means) >= FEWEST).then_some(ends);
        let middle = median(&means.iter().map(|m| m.2).collect::<Vec<_>>())?;
        Some(Figure { middle, low: ends.map(|e| e.0), high: ends.map(|e| e.1) })
    }

    fn summary(
        &self,
        results: &Results,
        cell: &Cell,
        means: &[(u32, u32, f64)],
    ) -> Option<Summary> {
        let ns = self.figure(means)?;
        let values: Vec<f64> = means.iter().map(|m| m.2).collect();
        let operations: u64 = cell.rounds.iter().map(|r| cell.units_of(r)).sum();
        let operations = operations.max(1) as f64;
        let (user, system) = match results.phase(&cell.phase).filter(|p| !p.sum_of.is_empty()) {
            None => (
                cell.rounds.iter().map(|r| r.user_ns as f64).sum::<f64>() / operations,
                cell.rounds.iter().map(|r| r.system_ns as f64).sum::<f64>() / operations,
            ),
            Some(phase) => phase
                .sum_of
                .iter()
                .filter_map(|id| results.cell(&cell.competitor, id)?.summary.as_ref())
                .fold((0.0, 0.0), |sum, s| (sum.0 + s.user_ns, sum.1 + s.system_ns)),
        };
        Some(Summary {
            n: means.len() as u32,
            starts: starts(means) as u32,
            ns,
            user_ns: user,
            system_ns: system,
            outliers: outliers(&values).into_iter().map(|i| i as u32).collect(),
            harness: self.harness(results, cell, ns.middle),
            versus: None,
            group: 0,
        })
    }

    /// The null competitor's time in the same phase, as a share of this cell's (rule 11). None in an
    /// open loop, where both spend their time waiting for planned moments.
    fn harness(&self, results: &Results, cell: &Cell, ns: f64) -> Option<f64> {
        results.phase(&cell.phase).filter(|p| !p.is_open())?;
        let null = results.competitors.iter().find(|c| c.null)?;
        if null.name == cell.competitor {
            return None;
        }
        let cost = results.cell(&null.name, &cell.phase)?;
        let values: Vec<f64> = cost.means(results.figures()).iter().map(|m| m.2).collect();
        Some(median(&values)? / ns)
    }
}
