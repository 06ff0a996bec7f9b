//! What changed between two runs beside the program: the drift of their controls.
//!
//! A machine is not the same twice: its clock, its caches' contents and where the system puts pages
//! differ from run to run, and rounds of one run share that. Their own interval cannot show it.
//! Controls can, which are the same in both runs: their common ratio is the drift, and how far they
//! differ from one another is how far anything else may have moved.

use super::{
    compare::Ratio,
    figures::median,
    normal::{student_quantile, student_tail},
};

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
    pub fn of(controls: &[Ratio]) -> Option<Drift> {
        let logs: Vec<f64> = controls.iter().map(|c| c.ratio.ln()).collect();
        let log = median(&logs)?;
        let n = logs.len() as f64;
        if let [only] = controls {
            let freedom = (only.n as f64 - 1.0).max(1.0);
            let error = standard_error(only, freedom, 0.95);
            return Some(Drift { log, error, freedom });
        }
        let squares: f64 = logs.iter().map(|l| (l - log).powi(2)).sum();
        let spread = (squares / (n - 1.0)).sqrt();
        Some(Drift { log, error: spread * (1.0 + 1.0 / n).sqrt(), freedom: n - 1.0 })
    }
}

/// The standard error that an interval at `level` stands for.
fn standard_error(ratio: &Ratio, freedom: f64, level: f64) -> f64 {
    ratio.half_width / student_quantile((1.0 - level) / 2.0, freedom)
}

impl Ratio {
    /// The ratio without the drift, its interval at `level` widened by the drift's error.
    pub fn without(&self, drift: &Drift, level: f64) -> Ratio {
        let middle = self.ratio.ln() - drift.log;
        if !self.half_width.is_finite() {
            return Ratio { ratio: middle.exp(), ..*self };
        }
        let own_freedom = (self.n as f64 - 1.0).max(1.0);
        let own = standard_error(self, own_freedom, level);
        let error = own.hypot(drift.error);
        // Welch and Satterthwaite: between the two, nearer to that of the larger error.
        let fourths = own.powi(4) / own_freedom + drift.error.powi(4) / drift.freedom.max(1.0);
        let freedom = if fourths > 0.0 { error.powi(4) / fourths } else { own_freedom };
        let t = student_quantile((1.0 - level) / 2.0, freedom);
        let wider = |own: f64| own.hypot(t * drift.error);
        let (below, above) =
            (wider(self.ratio.ln() - self.low.ln()), wider(self.high.ln() - self.ratio.ln()));
        let p = match error > 0.0 {
            true => (2.0 * student_tail(middle.abs() / error, freedom)).min(1.0),
            false if middle == 0.0 => 1.0,
            false => 0.0,
        };
        Ratio {
            ratio: middle.exp(),
            low: (middle - below).exp(),
            high: (middle + above).exp(),
            p,
            n: self.n,
            half_width: 0.5 * (below + above),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(ratio: f64, half: f64) -> Ratio {
        let (low, high) = (ratio * (-half).exp(), ratio * half.exp());
        Ratio { ratio, low, high, p: 0.001, n: 12, half_width: half }
    }

    #[test]
    fn what_all_controls_did_is_no_difference() {
        let controls = [1.10, 1.11, 1.09, 1.10].map(|r| ratio(r, 0.01));
        let drift = Drift::of(&controls).unwrap();
        assert!((drift.log - 1.1f64.ln()).abs() < 1e-9 && drift.error < 0.02, "{drift:?}");
        let same = ratio(1.1, 0.01).without(&drift, 0.95);
        assert!((same.ratio - 1.0).abs() < 1e-9 && same.p > 0.9, "{same:?}");
        let slower = ratio(1.32, 0.01).without(&drift, 0.95);
        assert!((slower.ratio - 1.2).abs() < 1e-9 && slower.low > 1.1 && slower.p < 0.01);
    }

    #[test]
    fn controls_that_disagree_widen_the_interval() {
        let calm = Drift::of(&[0.99, 1.0, 1.01, 1.0].map(|r| ratio(r, 0.01))).unwrap();
        let wild = Drift::of(&[0.9, 1.0, 1.12, 1.0].map(|r| ratio(r, 0.01))).unwrap();
        let seen = |drift| ratio(1.1, 0.01).without(drift, 0.95);
        assert!(seen(&calm).low > 1.05, "{:?}", seen(&calm));
        assert!(seen(&wild).low < 1.0 && seen(&wild).p > 0.05, "{:?}", seen(&wild));
        assert_eq!(Drift::of(&[]), None);
        // One control has its own interval.
        let one = Drift::of(&[ratio(1.0, 0.03)]).unwrap();
        let both = ratio(1.0, 0.04).without(&one, 0.95);
        assert!((both.half_width - 0.05).abs() < 0.003, "{both:?}");
    }
}
