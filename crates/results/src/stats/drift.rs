//! What changed between two runs beside the program: the drift of their controls.
//!
//! A machine is not the same twice: its clock, its caches' contents and where the system puts pages
//! differ from run to run, and rounds of one run share that. Their own interval cannot show it.
//! Controls can, which are the same in both runs: their common ratio is the drift, and how far they
//! differ from one another is how far anything else may have moved.

use super::{Paired, figures::median};

/// The drift between two runs, as a logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// The median of the controls' ratios; above 0 the newer run was slower throughout.
    pub log: f64,
    /// The standard error with which it holds for one more cell.
    pub error: f64,
    /// Degrees of freedom of that error.
    pub freedom: f64,
}

impl Drift {
    /// From the controls' ratios; `None` without any. A single one says nothing of how far controls
    /// differ, so that its own error has to do.
    pub fn of(controls: &[Paired]) -> Option<Drift> {
        if let [only] = controls {
            let (log, error, freedom) = only.parts();
            return Some(Drift { log, error, freedom });
        }
        let logs: Vec<f64> = controls.iter().map(|control| control.parts().0).collect();
        let log = median(&logs)?;
        let n = logs.len() as f64;
        let squares: f64 = logs.iter().map(|l| (l - log).powi(2)).sum();
        let spread = (squares / (n - 1.0)).sqrt();
        Some(Drift { log, error: spread * (1.0 + 1.0 / n).sqrt(), freedom: n - 1.0 })
    }
}

impl Paired {
    /// The ratio without the drift, its error widened by the drift's.
    pub fn without(&self, drift: &Drift) -> Paired {
        self.less(&Paired::known(drift.log, drift.error, drift.freedom.max(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(ratio: f64, error: f64) -> Paired {
        Paired::known(ratio.ln(), error, 11.0)
    }

    #[test]
    fn what_all_controls_did_is_no_difference() {
        let controls = [1.10, 1.11, 1.09, 1.10].map(|r| ratio(r, 0.005));
        let drift = Drift::of(&controls).unwrap();
        assert!((drift.log - 1.1f64.ln()).abs() < 1e-9 && drift.error < 0.02, "{drift:?}");
        let same = ratio(1.1, 0.005).without(&drift);
        assert!((same.ratio() - 1.0).abs() < 1e-9 && same.p() > 0.9, "{same:?}");
        let slower = ratio(1.32, 0.005).without(&drift);
        assert!((slower.ratio() - 1.2).abs() < 1e-9 && slower.p() < 0.01);
        assert!(slower.interval(0.05).unwrap().0 > 1.1);
    }

    #[test]
    fn controls_that_disagree_widen_the_interval() {
        let calm = Drift::of(&[0.99, 1.0, 1.01, 1.0].map(|r| ratio(r, 0.005))).unwrap();
        let wild = Drift::of(&[0.9, 1.0, 1.12, 1.0].map(|r| ratio(r, 0.005))).unwrap();
        let seen = |drift| ratio(1.1, 0.005).without(drift);
        assert!(seen(&calm).interval(0.05).unwrap().0 > 1.05, "{:?}", seen(&calm));
        assert!(seen(&wild).interval(0.05).unwrap().0 < 1.0 && seen(&wild).p() > 0.05);
        assert_eq!(Drift::of(&[]), None);
        // One control has its own error.
        let one = Drift::of(&[ratio(1.0, 0.03)]).unwrap();
        let both = ratio(1.0, 0.04).without(&one).parts();
        assert!((both.1 - 0.05).abs() < 1e-9 && both.2 > 11.0, "{both:?}");
    }
}
