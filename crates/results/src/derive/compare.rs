//! Who is compared with whom, and what it comes to: one family for a whole run (rule 14).
//!
//! Ranks, marks and verdicts are all read from [`Comparisons`], so that they cannot contradict each
//! other.

use std::collections::BTreeMap;

use super::Means;
use crate::{
    Basis, Cell, Contender, Contrast, Family, Figure, Results, Sensitivity, Verdict, Versus,
    stats::{self, Paired, Rule, Usual, autocorrelation, by_group, by_start, median, paired},
};

/// All comparisons of a run.
pub(super) struct Comparisons {
    basis: Basis,
    rule: Rule,
    serial: f64,
    family: stats::Family,
    /// Cell over cell, by their places in the results.
    pairs: Vec<(usize, usize, Paired)>,
    /// What each of them comes to.
    answers: Vec<Versus>,
    /// The answers by cells.
    found: BTreeMap<(usize, usize), usize>,
    /// Ratios to the baseline of stores of another durability, which are shown and not judged.
    others: BTreeMap<usize, Paired>,
}

impl Comparisons {
    /// Compares all that may be compared, on a basis; `costs` are the times of each cell on it.
    pub(super) fn of(results: &Results, basis: Basis, costs: &[Means]) -> Comparisons {
        let (asked, others) = asked(results, costs);
        let series: Vec<Vec<f64>> =
            asked.iter().map(|&(a, b)| by_start(&paired(&costs[a], &costs[b]))).collect();
        let serial = autocorrelation(series.iter().map(Vec::as_slice));
        let phase = |&(a, _): &(usize, usize)| {
            results.phases.iter().position(|p| p.id == results.cells[a].phase).unwrap_or(usize::MAX)
        };
        let serials = by_group(&series, &asked.iter().map(phase).collect::<Vec<_>>());
        let mut pairs = Vec::new();
        for ((&(a, b), logs), serial) in asked.iter().zip(&series).zip(serials) {
            pairs.extend(Paired::of(logs, serial).map(|pair| (a, b, pair)));
        }
        let usual = Usual::of(&pairs.iter().map(|p| p.2).collect::<Vec<_>>());
        pairs.iter_mut().for_each(|pair| pair.2 = pair.2.moderated(usual));
        let rule = Rule { effect: results.plan.effect, level: 1.0 - results.plan.level };
        let (family, answers) = judged(&pairs.iter().map(|p| p.2).collect::<Vec<_>>(), &rule);
        let others = others.into_iter().filter_map(|(cell, base)| {
            let logs = by_start(&paired(&costs[cell], &costs[base]));
            Some((cell, Paired::of(&logs, serial)?.moderated(usual)))
        });
        Comparisons {
            basis,
            rule,
            serial,
            family,
            answers,
            found: pairs.iter().enumerate().map(|(i, p)| ((p.0, p.1), i)).collect(),
            others: others.collect(),
            pairs,
        }
    }

    /// The answer for the time of one cell over that of another.
    fn answer(&self, of: usize, to: usize) -> Option<Versus> {
        match self.found.get(&(of, to)) {
            Some(&i) => Some(self.answers[i]),
            None => self.found.get(&(to, of)).map(|&i| self.answers[i].reversed()),
        }
    }

    /// Writes everything that follows into the results.
    pub(super) fn tell(&self, results: &mut Results) {
        let base: Vec<Option<usize>> = (0..results.cells.len())
            .map(|i| results.place(&results.baseline, &results.cells[i].phase))
            .collect();
        let ranks: BTreeMap<usize, u32> = self.ranks(results);
        for (i, base) in base.into_iter().enumerate() {
            let versus = base.filter(|b| *b != i).and_then(|b| {
                self.answer(i, b).or_else(|| self.others.get(&i).map(|p| unjudged(p, &self.rule)))
            });
            if let Some(summary) = &mut results.cells[i].summary {
                summary.versus = versus;
                summary.group = ranks.get(&i).copied().unwrap_or(0);
            }
        }
        for i in 0..results.contrasts.len() {
            let versus =
                contrast(results, &results.contrasts[i]).and_then(|(of, to)| self.answer(of, to));
            results.contrasts[i].versus = versus;
        }
        // Also where nobody is ranked: what is said of the baseline has this basis.
        let compared = !self.pairs.is_empty() || !self.others.is_empty();
        results.family = compared.then(|| self.family(results));
    }

    /// The rank of each cell that was compared within its phase: 1 more than there are that were
    /// shown to be faster. Nobody stands behind one that was not shown to be faster.
    fn ranks(&self, results: &Results) -> BTreeMap<usize, u32> {
        let mut ranks = BTreeMap::new();
        for (at, &(a, b, _)) in self.pairs.iter().enumerate() {
            if !self.pairs[at].2.is_known() || results.cells[a].phase != results.cells[b].phase {
                continue;
            }
            let verdict = self.answers[at].verdict;
            *ranks.entry(a).or_insert(1) += u32::from(verdict == Verdict::Slower);
            *ranks.entry(b).or_insert(1) += u32::from(verdict == Verdict::Faster);
        }
        ranks
    }

    fn family(&self, results: &Results) -> Family {
        let key = |cell: usize| {
            let Cell { competitor, phase, .. } = &results.cells[cell];
            (competitor.clone(), phase.clone())
        };
        let pairs = self.pairs.iter().enumerate().map(|(i, &(a, b, _))| Contrast {
            about: String::new(),
            of: key(a),
            to: key(b),
            versus: Some(self.answers[i]),
        });
        let sensitivity = results.phases.iter().filter_map(|phase| {
            let of = |pair: &&(usize, usize, Paired)| results.cells[pair.0].phase == phase.id;
            let ratios = self.pairs.iter().filter(of);
            let ratios: Vec<f64> =
                ratios.filter_map(|p| p.2.detectable(self.family.level)).collect();
            let ratio = median(&ratios)?.max(self.rule.effect);
            Some(Sensitivity { phase: phase.id.clone(), ratio })
        });
        Family {
            basis: self.basis,
            level: self.family.level,
            autocorrelation: self.serial,
            pairs: pairs.collect(),
            sensitivity: sensitivity.collect(),
        }
    }
}

/// What comparisons come to that are decided together: those with starts enough are one family.
pub(crate) fn judged(pairs: &[Paired], rule: &Rule) -> (stats::Family, Vec<Versus>) {
    let known: Vec<(f64, bool)> = pairs
        .iter()
        .filter(|p| p.is_known())
        .map(|p| (p.p(), rule.is_difference(p.ratio())))
        .collect();
    let family = stats::Family::of(&known, rule.level);
    let mut adjusted = family.adjusted.iter();
    let answer = |pair: &Paired| {
        let mut versus = unjudged(pair, rule);
        if pair.is_known() {
            versus.adjusted = adjusted.next().copied().unwrap_or(1.0);
            versus.joint = pair.interval(family.level);
            versus.verdict = pair.verdict(&family, rule).map_or(Verdict::Untested, named);
        }
        versus
    };
    let answers = pairs.iter().map(answer).collect();
    (family, answers)
}

/// A ratio with its own interval, and no verdict.
fn unjudged(pair: &Paired, rule: &Rule) -> Versus {
    let ends = pair.interval(rule.level);
    Versus {
        ratio: Figure { middle: pair.ratio(), low: ends.map(|e| e.0), high: ends.map(|e| e.1) },
        joint: None,
        p: pair.p(),
        adjusted: 1.0,
        verdict: Verdict::Untested,
    }
}

fn named(verdict: stats::Verdict) -> Verdict {
    match verdict {
        stats::Verdict::Faster => Verdict::Faster,
        stats::Verdict::Slower => Verdict::Slower,
        stats::Verdict::Alike => Verdict::Alike,
        stats::Verdict::CannotTell => Verdict::CannotTell,
    }
}

/// The pairs of cells to be compared: all of each phase that may be ranked against each other, then
/// the contrasts; and each cell whose baseline is a store of another durability, with that.
type Asked = (Vec<(usize, usize)>, Vec<(usize, usize)>);

fn asked(results: &Results, costs: &[Means]) -> Asked {
    let (mut asked, mut others) = (Vec::new(), Vec::new());
    for phase in results.phases.iter().filter(|p| !p.is_open()) {
        let cells: Vec<(usize, &Contender)> = (results.cells.iter().enumerate())
            .filter(|(i, cell)| cell.phase == phase.id && !costs[*i].is_empty())
            .filter_map(|(i, cell)| Some((i, results.competitor(&cell.competitor)?)))
            .filter(|(_, contender)| !contender.null)
            .collect();
        let base = cells.iter().find(|c| c.1.name == results.baseline);
        for (k, &(a, contender)) in cells.iter().enumerate() {
            let like = |other: &&(usize, &Contender)| other.0 == a || other.1.ranks_with(contender);
            asked.extend(cells[k + 1..].iter().filter(like).map(|&(b, _)| (a, b)));
            others.extend(base.filter(|base| !like(base)).map(|base| (a, base.0)));
        }
    }
    for pair in results.contrasts.iter().filter_map(|c| contrast(results, c)) {
        let known = |&(a, b): &(usize, usize)| (a, b) == pair || (b, a) == pair;
        let timed = [pair.0, pair.1].iter().all(|&i| !costs[i].is_empty());
        if timed && !asked.iter().any(known) {
            asked.push(pair);
        }
    }
    (asked, others)
}

/// The cells of a contrast.
fn contrast(results: &Results, contrast: &Contrast) -> Option<(usize, usize)> {
    let place = |cell: &(String, String)| results.place(&cell.0, &cell.1);
    Some((place(&contrast.of)?, place(&contrast.to)?))
}
