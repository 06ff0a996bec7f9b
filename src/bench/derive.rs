//! From raw rounds to figures: a pure function of [`Results`], so that a file that was
//! interrupted, or read again years later, gives the same figures.

use std::collections::BTreeMap;

use super::{
    quiet,
    results::{Cell, Figure, Phase, Results, Summary, Verdict, Versus},
    stats::{self, Bootstrap, Estimate, Ratio, Rule, Sample, holm, median, outliers, paired},
};

/// Nanoseconds an operation took: (start, round, ns).
pub(super) type Means = Vec<(u32, u32, f64)>;

/// Whom a competitor may be ranked among: `None` where it is no store.
type Class<'a> = Option<(&'a str, bool)>;

/// Fills in everything that follows from the raw rounds: sums of phases, summaries, verdicts,
/// rank groups, contrasts and marks of noise.
pub fn derive(results: &mut Results) {
    quiet::judge(&mut results.probes, &results.cells);
    add_sums(results);
    let tools = Tools::of(results);
    let means: Vec<Means> = (0..results.cells.len()).map(|i| means_of(results, i)).collect();
    for (i, means) in means.iter().enumerate() {
        results.cells[i].summary = tools.summary(results, &results.cells[i], means);
    }
    tools.compare_with_baseline(results, &means);
    tools.rank(results, &means);
    tools.contrasts(results, &means);
}

/// The first comparison, from `hint` on and around, whose interval is not within `precision`; the
/// stop rule goes on while there is one (rule 8). Asking from the last answer on saves nearly all
/// of the work.
pub fn first_wide(results: &Results, precision: f64, hint: usize) -> Option<usize> {
    let tools = Tools::of(results);
    let timed = |c: &Cell| c.refused.is_none() && !is_null(results, &c.competitor);
    let n = results.cells.len();
    let with_baseline = (0..n).map(|k| (k + hint) % n).find(|&i| {
        let cell = &results.cells[i];
        if !timed(cell) || cell.competitor == results.baseline {
            return false;
        }
        let Some(base) = results.cell(&results.baseline, &cell.phase) else { return false };
        timed(base)
            && tools.wider(
                &cell.means(results.plan.basis),
                &base.means(results.plan.basis),
                precision,
            )
    });
    with_baseline.or_else(|| {
        results
            .contrasts
            .iter()
            .position(|c| match (results.cell(&c.of.0, &c.of.1), results.cell(&c.to.0, &c.to.1)) {
                (Some(a), Some(b)) => tools.wider(
                    &a.means(results.plan.basis),
                    &b.means(results.plan.basis),
                    precision,
                ),
                _ => false,
            })
            .map(|i| n + i)
    })
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
pub(super) fn means_of(results: &Results, cell: usize) -> Means {
    let cell = &results.cells[cell];
    let Some(phase) = results.phase(&cell.phase).filter(|p| !p.sum_of.is_empty()) else {
        return cell.means(results.plan.basis);
    };
    let parts: Vec<Means> = phase
        .sum_of
        .iter()
        .map(|id| {
            results
                .cell(&cell.competitor, id)
                .map(|c| c.means(results.plan.basis))
                .unwrap_or_default()
        })
        .collect();
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

struct Tools {
    bootstrap: Bootstrap,
    rule: Rule,
}

impl Tools {
    fn of(results: &Results) -> Tools {
        let plan = &results.plan;
        Tools {
            bootstrap: Bootstrap { resamples: plan.resamples, seed: plan.seed, level: plan.level },
            rule: Rule { effect: plan.effect, level: 1.0 - plan.level },
        }
    }

    fn ratio(&self, a: &[(u32, u32, f64)], b: &[(u32, u32, f64)]) -> Option<Ratio> {
        Ratio::of(&paired(a, b), &self.bootstrap)
    }

    fn wider(&self, a: &[(u32, u32, f64)], b: &[(u32, u32, f64)], precision: f64) -> bool {
        // Not `>`: what is not a number is not narrow enough either.
        !self.ratio(a, b).is_some_and(|r| r.half_width <= precision)
    }

    fn summary(
        &self,
        results: &Results,
        cell: &Cell,
        means: &[(u32, u32, f64)],
    ) -> Option<Summary> {
        let samples: Vec<Sample> =
            means.iter().map(|&(start, _, value)| Sample { start, value }).collect();
        let estimate = self.bootstrap.median(&samples)?;
        let values: Vec<f64> = samples.iter().map(|s| s.value).collect();
        let mut starts: Vec<u32> = samples.iter().map(|s| s.start).collect();
        starts.sort_unstable();
        starts.dedup();
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
            n: estimate.n as u32,
            starts: starts.len() as u32,
            ns: figure(&estimate),
            user_ns: user,
            system_ns: system,
            outliers: outliers(&values).into_iter().map(|i| i as u32).collect(),
            harness: self.harness(results, cell, estimate.middle),
            versus: None,
            group: 0,
        })
    }

    /// The null competitor's time in the same phase, as a share of this cell's (rule 11).
    fn harness(&self, results: &Results, cell: &Cell, ns: f64) -> Option<f64> {
        let null = results.competitors.iter().find(|c| c.null)?;
        if null.name == cell.competitor {
            return None;
        }
        let cost = results.cell(&null.name, &cell.phase)?;
        let values: Vec<f64> = cost.means(results.plan.basis).iter().map(|m| m.2).collect();
        Some(median(&values)? / ns)
    }

    /// Every competitor against the baseline, phase by phase; Holm over each table.
    fn compare_with_baseline(&self, results: &mut Results, means: &[Means]) {
        let mut tables: Vec<&str> = results.phases.iter().map(|p| p.table.as_str()).collect();
        tables.sort_unstable();
        tables.dedup();
        let mut found = Vec::new();
        for table in tables {
            let family: Vec<(usize, Ratio)> = (0..results.cells.len())
                .filter_map(|i| {
                    let cell = &results.cells[i];
                    let phase = results.phase(&cell.phase)?;
                    let skip = cell.competitor == results.baseline
                        || is_null(results, &cell.competitor)
                        || phase.table != table;
                    let base = results
                        .cells
                        .iter()
                        .position(|c| c.phase == cell.phase && c.competitor == results.baseline)?;
                    if skip { None } else { Some((i, self.ratio(&means[i], &means[base])?)) }
                })
                .collect();
            let adjusted = holm(&family.iter().map(|f| f.1.p).collect::<Vec<_>>());
            found.extend(
                family.iter().zip(adjusted).map(|((i, r), a)| (*i, versus(r, a, &self.rule))),
            );
        }
        for (i, versus) in found {
            if let Some(summary) = &mut results.cells[i].summary {
                summary.versus = Some(versus);
            }
        }
    }

    /// Rank groups in each phase. Each competitor is compared with the first of the group before;
    /// which pairs that makes depends on the data, so p is adjusted for all pairs there could be.
    /// Stores are ranked among those of their own durability only (rule 4).
    fn rank(&self, results: &mut Results, means: &[Means]) {
        for p in 0..results.phases.len() {
            let id = results.phases[p].id.clone();
            let mut classes: BTreeMap<Class<'_>, Vec<(usize, f64)>> = BTreeMap::new();
            for (i, cell) in results.cells.iter().enumerate().filter(|c| c.1.phase == id) {
                let Some(contender) = results.competitor(&cell.competitor) else { continue };
                if let Some(s) = cell.summary.as_ref().filter(|_| !contender.null) {
                    let class = contender.store.as_ref().map(|s| s.durability.class());
                    classes.entry(class).or_default().push((i, s.ns.middle));
                }
            }
            let ranked: Vec<(usize, u32)> =
                classes.into_values().flat_map(|class| self.groups(class, means)).collect();
            for (i, group) in ranked {
                if let Some(summary) = &mut results.cells[i].summary {
                    summary.group = group;
                }
            }
        }
    }

    /// The rank groups of these cells, given with their times.
    fn groups(&self, cells: Vec<(usize, f64)>, means: &[Means]) -> Vec<(usize, u32)> {
        let (cells, middles): (Vec<usize>, Vec<f64>) = cells.into_iter().unzip();
        let pairs = (cells.len() * cells.len().saturating_sub(1) / 2) as f64;
        let groups = stats::groups(&middles, |a, b| {
            self.ratio(&means[cells[a]], &means[cells[b]]).is_some_and(|r| {
                r.verdict((r.p * pairs).min(1.0), &self.rule) == stats::Verdict::Slower
            })
        });
        cells.into_iter().zip(groups).collect()
    }

    /// The contrasts asked for; Holm over all of them.
    fn contrasts(&self, results: &mut Results, means: &[Means]) {
        let at = |results: &Results, cell: &(String, String)| {
            results.cells.iter().position(|c| c.competitor == cell.0 && c.phase == cell.1)
        };
        let found: Vec<(usize, Ratio)> = (0..results.contrasts.len())
            .filter_map(|i| {
                let contrast = &results.contrasts[i];
                let (of, to) = (at(results, &contrast.of)?, at(results, &contrast.to)?);
                Some((i, self.ratio(&means[of], &means[to])?))
            })
            .collect();
        let adjusted = holm(&found.iter().map(|f| f.1.p).collect::<Vec<_>>());
        for ((i, ratio), adjusted) in found.iter().zip(adjusted) {
            results.contrasts[*i].versus = Some(versus(ratio, adjusted, &self.rule));
        }
    }
}

/// What a ratio comes to, given its p as adjusted over its table.
pub(super) fn versus(ratio: &Ratio, adjusted: f64, rule: &Rule) -> Versus {
    let ends = |v: f64| v.is_finite().then_some(v);
    let known = ratio.half_width.is_finite();
    Versus {
        ratio: Figure {
            middle: ratio.ratio,
            low: ends(ratio.low).filter(|_| known),
            high: ends(ratio.high).filter(|_| known),
        },
        p: ratio.p,
        adjusted,
        verdict: match ratio.verdict(adjusted, rule) {
            stats::Verdict::Faster => Verdict::Faster,
            stats::Verdict::Slower => Verdict::Slower,
            stats::Verdict::NoDifference => Verdict::NoDifference,
        },
    }
}

fn figure(e: &Estimate) -> Figure {
    let known = |v: f64| v.is_finite().then_some(v);
    Figure { middle: e.middle, low: known(e.low), high: known(e.high) }
}
