//! Axes: where a value stands, and which values are written beside it.

use super::super::number::short;

/// How values are laid out along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Evenly, from 0.
    Linear,
    /// By their logarithm.
    Log,
    /// Shares of a distribution (0 to 1), by how rare what lies beyond is: 90 %, 99 % and 99.9 %
    /// are equally far from each other.
    Tail,
}

/// An axis: a scale, and the values at its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis on which all of these values have a place.
    pub(super) fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Axis {
        let fits = |v: &f64| v.is_finite() && (scale != Scale::Log || *v > 0.0);
        let (low, high) = values
            .filter(fits)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = match scale {
            _ if low > high => (0.0, 0.0),
            Scale::Linear => (0.0, high),
            // A little air, so that what lies at an end can be seen.
            Scale::Log => (low / 1.15, high * 1.15),
            Scale::Tail => (low, high),
        };
        Axis { scale, low, high }
    }

    /// Where a value stands, from 0 to 1.
    pub(super) fn place(&self, v: f64) -> f64 {
        let bent = |v: f64| match self.scale {
            Scale::Linear => v,
            Scale::Log => v.max(f64::MIN_POSITIVE).ln(),
            Scale::Tail => -(1.0 - v).max(1e-9).log10(),
        };
        let (low, high) = (bent(self.low), bent(self.high));
        match high > low {
            true => ((bent(v) - low) / (high - low)).clamp(0.0, 1.0),
            false => 0.0,
        }
    }

    /// The values written beside the axis, with their texts.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => round(self.high).into_iter().map(|t| (t, label(t))).collect(),
            Scale::Log => powers(self.low, self.high).into_iter().map(|t| (t, label(t))).collect(),
            Scale::Tail => tails(self.low, self.high),
        }
    }
}

/// A round number without needless zeros.
fn label(v: f64) -> String {
    let text = short(v);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Round numbers from 0 up to `top`, three to five of them.
fn round(top: f64) -> Vec<f64> {
    match top > 0.0 && top.is_finite() {
        true => steps(0.0, top),
        false => vec![0.0],
    }
}

/// Multiples of a round number between two others, three to five of them.
fn steps(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= rough).unwrap_or(rough);
    let first = (low / step - 1e-9).ceil();
    (0..6)
        .map(|i| (first + f64::from(i)) * step)
        .take_while(|t| *t <= high + 1e-4 * (high - low))
        .collect()
}

/// Powers of ten, with 2 and 5 of each where there are few; where there are hardly any, round
/// numbers at even steps.
fn powers(low: f64, high: f64) -> Vec<f64> {
    if !(low > 0.0 && high > low) {
        return Vec::new();
    }
    let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let of = |steps: &[f64]| -> Vec<f64> {
        let all = decades.clone().flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d)));
        all.filter(|t| (low..=high).contains(t)).collect()
    };
    match of(&[1.0]) {
        few if few.len() < 3 => match of(&[1.0, 2.0, 5.0]) {
            few if few.len() < 3 => steps(low, high),
            some => some,
        },
        many if many.len() > 7 => many.into_iter().step_by(2).collect(),
        some => some,
    }
}

/// 50 %, 90 %, 99 % and so on.
fn tails(low: f64, high: f64) -> Vec<(f64, String)> {
    let names = ["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"];
    let shares = std::iter::once(0.5).chain((1..).map(|n| 1.0 - 10f64.powi(-n)));
    shares
        .zip(names)
        .filter(|(share, _)| (low - 1e-9..=high + 1e-9).contains(share))
        .map(|(share, name)| (share, name.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(round(100_000.0), [0.0, 50_000.0, 100_000.0]);
        assert_eq!(round(0.9).len(), 2);
        assert_eq!(round(4.0), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!((round(0.0), round(f64::NAN)), (vec![0.0], vec![0.0]));
        assert_eq!(texts(Axis::of(Scale::Log, [0.9, 90.0].into_iter())), ["1", "10", "100"]);
        assert_eq!(texts(Axis::of(Scale::Log, [3.0, 9.0].into_iter())), ["4", "6", "8", "10"]);
        assert_eq!(texts(Axis::of(Scale::Log, [0.95, 1.2].into_iter())), ["1", "1.2"]);
        assert_eq!(
            texts(Axis::of(Scale::Tail, [0.0, 0.9995].into_iter())),
            ["50 %", "90 %", "99 %", "99.9 %"]
        );
    }

    #[test]
    fn places_are_inside_whatever_comes() {
        for scale in [Scale::Linear, Scale::Log, Scale::Tail] {
            for values in [vec![], vec![0.0], vec![f64::NAN, 1.0], vec![0.0, 0.5, 1.0]] {
                let axis = Axis::of(scale, values.into_iter());
                for v in [f64::NEG_INFINITY, -1.0, 0.0, 0.5, 1.0, 1e300, f64::INFINITY] {
                    let place = axis.place(v);
                    assert!((0.0..=1.0).contains(&place), "{axis:?} {v} {place}");
                }
                axis.ticks();
            }
        }
        let axis = Axis::of(Scale::Tail, [0.9, 0.999].into_iter());
        assert!((axis.place(0.99) - 0.5).abs() < 1e-9);
    }
}
