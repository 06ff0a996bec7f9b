//! The normal distribution and Student's t: tails and quantiles.
//!
//! Sources, by number in Abramowitz & Stegun, "Handbook of Mathematical Functions": the error
//! function by its series (7.1.6) and continued fraction (7.1.14), Student's t through the
//! incomplete beta function (26.7.1, 26.5.8), ln Γ by Stirling's series (6.1.41). The normal's
//! quantile bisects on that, Student's takes Newton's steps.

use std::f64::consts::{PI, SQRT_2};

/// P(Z > z) for a standard normal Z; accurate to ~1e-14 relative, also far out in the tail.
pub(super) fn normal_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal_tail(-z);
    }
    let x = z / SQRT_2;
    if x < 2.5 {
        // erf by its series: all terms are positive, so nothing cancels.
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term > sum * 1e-17 {
            n += 1.0;
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
        }
        return 0.5 * (1.0 - 2.0 / PI.sqrt() * (-x * x).exp() * sum);
    }
    let fraction = (1..=80).rev().fold(x, |rest, k| x + f64::from(k) / 2.0 / rest);
    0.5 * (-x * x).exp() / PI.sqrt() / fraction
}

/// P(T > t) for Student's t with `freedom` degrees of freedom.
pub(super) fn student_tail(t: f64, freedom: f64) -> f64 {
    if t < 0.0 {
        return 1.0 - student_tail(-t, freedom);
    }
    0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The t with P(T > t) = `tail`, for a tail in (0, 0.5].
pub(super) fn student_quantile(tail: f64, freedom: f64) -> f64 {
    if tail >= 0.5 {
        return 0.0;
    }
    let half = (freedom + 1.0) / 2.0;
    let scale = (ln_gamma(half) - ln_gamma(freedom / 2.0)).exp() / (freedom * PI).sqrt();
    // Newton's steps on the logarithm of the tail, by that of t: it falls and is concave, so that
    // from the first step on they come down to the root.
    let mut t: f64 = 1.0;
    for _ in 0..100 {
        let beyond = student_tail(t, freedom);
        let density = scale * (1.0 + t * t / freedom).powf(-half);
        let step = (beyond / tail).ln() * beyond / (density * t);
        t *= step.exp();
        if step.abs() < 1e-14 {
            break;
        }
    }
    t
}

/// The regularised incomplete beta function I_x(a, b).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The continued fraction converges fast only on this side of the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    let keep_off_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / keep_off_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / keep_off_zero(1.0 + coefficient * d);
            c = keep_off_zero(1.0 + coefficient / c);
            step = c * d;
            fraction *= step;
        }
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front.exp() * fraction / a
}

/// ln Γ(x) for x > 0: Stirling's series, shifted to where it converges.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 15.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series =
        (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / 1680.0 / square) / square) / square) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-12), "{a} is not {b}");
    }

    #[test]
    fn agrees_with_printed_tables() {
        near(normal_tail(0.0), 0.5);
        near(normal_tail(1.959963984540054), 0.025);
        near(normal_tail(-1.0), 0.8413447460685429);
        near(normal_tail(6.0), 9.865876450376946e-10);
        near(student_tail(0.0, 3.0), 0.5);
        // t = 1 with one degree of freedom is a quarter of the circle.
        near(student_tail(1.0, 1.0), 0.25);
        near(student_quantile(0.025, 4.0), 2.7764451051977934);
        near(student_quantile(0.025, 5.0), 2.570581835636314);
        near(student_quantile(0.025, 1.0), 12.706204736432095);
        near(student_quantile(0.025, 1000.0), 1.9623390808264078);
        near(student_quantile(0.5, 3.0), 0.0);
        for freedom in [1.0, 1.7, 4.0, 11.0, 60.0] {
            for tail in [0.4999, 0.2, 0.025, 1e-4, 1e-9] {
                near(student_tail(student_quantile(tail, freedom), freedom), tail);
            }
        }
        assert!(student_tail(160.0, 5.0) < 1e-9);
    }
}
