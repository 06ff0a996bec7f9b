//! Warm-up by test, not by clock (rule 7).
//!
//! A cell is run in equal windows until the last [`LAST`] of them lie within [`WITHIN`] of their
//! median and show no trend; after [`WINDOWS`] windows it is taken as it is, and the report says
//! that it did not settle.

use super::figures::median;

/// How many windows a cell is given to settle.
pub const WINDOWS: usize = 25;
/// How many of the last windows must agree.
pub const LAST: usize = 7;
/// How far from their median each may lie.
const WITHIN: f64 = 0.075;
/// Mann and Kendall's S for 7 values beyond which a trend is no accident (p = 0.03, two-sided).
const TREND: i32 = 15;
/// A trend that moves less than this from the first to the last window is too small to matter.
const DRIFT: f64 = 0.01;

/// What a run of windows looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steady {
    /// Fewer than 7 windows, or not agreed yet.
    NotYet,
    /// The last 7 agree.
    Settled,
    /// 25 windows, and the last 7 do not agree.
    Never,
}

impl Steady {
    /// Judges the times (or rates) of the windows so far.
    pub fn of(windows: &[f64]) -> Steady {
        let settled = windows.len() >= LAST && agree(&windows[windows.len() - LAST..]);
        match (settled, windows.len() >= WINDOWS) {
            (true, _) => Steady::Settled,
            (false, true) => Steady::Never,
            (false, false) => Steady::NotYet,
        }
    }
}

fn agree(windows: &[f64]) -> bool {
    let Some(center) = median(windows) else { return false };
    let near = windows.iter().all(|w| (w - center).abs() <= WITHIN * center);
    near && !(kendall(windows).abs() >= TREND && drift(windows).abs() > DRIFT * center)
}

/// Mann and Kendall's S: how many pairs rise, less how many fall.
fn kendall(windows: &[f64]) -> i32 {
    pairs(windows).map(|(a, b, _)| i32::from(b > a) - i32::from(b < a)).sum()
}

/// Theil and Sen's slope, from the first window to the last.
fn drift(windows: &[f64]) -> f64 {
    let slopes: Vec<f64> = pairs(windows).map(|(a, b, gap)| (b - a) / gap).collect();
    median(&slopes).unwrap_or(0.0) * (windows.len() - 1) as f64
}

fn pairs(windows: &[f64]) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
    (0..windows.len()).flat_map(move |i| {
        (i + 1..windows.len()).map(move |j| (windows[i], windows[j], (j - i) as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_flat_run_settles_at_the_seventh_window() {
        let flat = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 100.1];
        assert_eq!(Steady::of(&flat[..6]), Steady::NotYet);
        assert_eq!(Steady::of(&flat), Steady::Settled);
    }

    #[test]
    fn a_warm_up_is_waited_for() {
        let warming: Vec<f64> =
            (0..25).map(|i| 100.0 + 300.0 * (-f64::from(i) / 2.0).exp()).collect();
        let settled = (1..=25).find(|&n| Steady::of(&warming[..n]) == Steady::Settled).unwrap();
        assert!((12..=20).contains(&settled), "{settled}");
    }

    #[test]
    fn a_steady_climb_never_settles_though_it_stays_within() {
        let climb: Vec<f64> = (0..25).map(|i| 100.0 + f64::from(i) * 0.5).collect();
        assert_eq!(Steady::of(&climb), Steady::Never);
        // A climb too small to matter does.
        let creep: Vec<f64> = (0..25).map(|i| 100.0 + f64::from(i) * 0.05).collect();
        assert_eq!(Steady::of(&creep), Steady::Settled);
    }

    #[test]
    fn a_wild_run_never_settles() {
        let wild: Vec<f64> = (0..25).map(|i| if i % 3 == 0 { 130.0 } else { 100.0 }).collect();
        assert_eq!(Steady::of(&wild), Steady::Never);
    }

    #[test]
    fn ordinary_noise_settles_nearly_always() {
        let mut random = Random::new(11);
        let settled = (0..300)
            .filter(|_| {
                let windows: Vec<f64> =
                    (0..WINDOWS).map(|_| 100.0 * (0.02 * random.normal()).exp()).collect();
                (1..=WINDOWS).any(|n| Steady::of(&windows[..n]) == Steady::Settled)
            })
            .count();
        assert!(settled >= 297, "{settled} of 300");
    }
}
