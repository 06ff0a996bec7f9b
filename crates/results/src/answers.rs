//! The outcome of a run's comparisons: one family, from which ranks, marks and verdicts are read.

use serde::{Deserialize, Serialize};

use super::{Basis, Contrast, Figure};

/// A comparison of two cells: the time of one over the time of the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// The ratio and its interval by itself, at the level of the plan; above 1 means slower.
    pub ratio: Figure,
    /// The interval by which the verdict was given, at the level of its family: different where it
    /// excludes 1, alike where it lies within the smallest effect. `None` where none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<(f64, f64)>,
    /// p by itself.
    pub p: f64,
    /// p as adjusted over its family.
    pub adjusted: f64,
    /// What it comes to.
    pub verdict: Verdict,
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Less time: the interval excludes 1 and the effect is 3 % or more.
    Faster,
    /// More time, likewise.
    Slower,
    /// The whole interval lies within 3 %.
    Alike,
    /// None of these: the rounds were too few or too different.
    #[serde(alias = "no-difference")]
    CannotTell,
    /// Not tested: too few starts, or stores of different durability, or a noisy machine and no
    /// processor time to go by.
    Untested,
}

/// Every comparison of a run, decided together (rule 14).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Family {
    /// The time that was compared: processor time where the run was noisy (rule 10).
    pub basis: Basis,
    /// The p below which a single comparison is a difference, so that all hold together.
    pub level: f64,
    /// By how much a round was like the one before, from 0 to 0.9; intervals are widened for it.
    pub autocorrelation: f64,
    /// All pairs within each phase, and the contrasts; the null competitor is in none.
    pub pairs: Vec<Contrast>,
    /// What could have been shown in each phase.
    pub sensitivity: Vec<Sensitivity>,
}

/// The smallest difference that the rounds of a phase could have shown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sensitivity {
    /// Id of the phase.
    pub phase: String,
    /// A ratio this far from 1 would have been shown in four of five such runs: the median of its
    /// pairs.
    pub ratio: f64,
}

impl Verdict {
    /// The same seen from the other side.
    pub fn reversed(self) -> Verdict {
        match self {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            same => same,
        }
    }
}

impl Versus {
    /// The same comparison the other way round.
    pub fn reversed(&self) -> Versus {
        Versus {
            ratio: self.ratio.inverse(1.0),
            joint: self.joint.map(|(low, high)| (1.0 / high, 1.0 / low)),
            verdict: self.verdict.reversed(),
            ..*self
        }
    }

    /// The ratio with the interval by which the verdict was given, so that the two cannot contradict
    /// each other; its own interval where no verdict was given.
    pub fn shown(&self) -> Figure {
        match self.joint {
            Some((low, high)) => Figure { low: Some(low), high: Some(high), ..self.ratio },
            None => self.ratio,
        }
    }
}

impl Family {
    /// The answer for two cells (competitor, phase id), whichever way round they are kept.
    pub fn answer(&self, of: (&str, &str), to: (&str, &str)) -> Option<Versus> {
        let is = |cell: &(String, String), key: (&str, &str)| (&*cell.0, &*cell.1) == key;
        self.pairs.iter().find_map(|pair| {
            let versus = pair.versus?;
            match (is(&pair.of, of) && is(&pair.to, to), is(&pair.of, to) && is(&pair.to, of)) {
                (true, _) => Some(versus),
                (_, true) => Some(versus.reversed()),
                _ => None,
            }
        })
    }

    /// How many comparisons were decided.
    pub fn decided(&self) -> usize {
        let decided = |v: &Versus| v.verdict != Verdict::Untested;
        self.pairs.iter().filter(|p| p.versus.as_ref().is_some_and(decided)).count()
    }
}
