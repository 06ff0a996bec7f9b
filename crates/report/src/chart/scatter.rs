//! A point for each competitor and each way of packing, by size and by rate: what is small and fast is
//! above on the left.
//!
//! The points of one competitor are joined, and named once. Shapes and colours are those of the packings.

use super::{
    super::{markup::escaped, number::short},
    Canvas, WIDTH, fitted,
    scale::{Axis, Scale},
    text_width,
    tone::Tone,
};

const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 42.0;
/// The picture without its key.
const HEIGHT: f64 = 320.0;
const KEY: f64 = 24.0;
/// The size of names beside that of other text.
const SMALL: f64 = 11.0 / 12.0;
/// Half the height of a name, and half the size of a point with some air.
const HALF: f64 = 6.5;
const POINT: f64 = 5.0;

/// Points over two logarithmic axes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Scatter {
    pub trails: Vec<Trail>,
    /// The ways of packing, in the order of their tones.
    pub kinds: Vec<String>,
    /// What stands below the axis from left to right.
    pub below: String,
}

/// The points of one competitor.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Trail {
    pub name: String,
    pub spots: Vec<Spot>,
}

/// A point.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Spot {
    pub size: f64,
    pub rate: f64,
    /// Which way of packing.
    pub kind: usize,
}

/// A rectangle that is taken: left, top, right, bottom.
type Place = (f64, f64, f64, f64);

impl Scatter {
    pub(crate) fn height(&self) -> f64 {
        HEIGHT + KEY
    }

    pub(crate) fn words(&self) -> String {
        let spot = |s: &Spot| {
            let kind = self.kinds.get(s.kind).map_or("", String::as_str);
            format!("{kind} {} at {}", short(s.size), short(s.rate))
        };
        let trail = |t: &Trail| {
            let spots: Vec<String> = t.spots.iter().map(spot).collect();
            format!("{}: {}", t.name, spots.join(", "))
        };
        self.trails.iter().map(trail).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        let spots = || self.trails.iter().flat_map(|t| &t.spots);
        let across = Axis::of(Scale::Log, spots().map(|s| s.size));
        let up = Axis::of(Scale::Log, spots().map(|s| s.rate));
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let x = |v: f64| LEFT + (right - LEFT) * across.place(v);
        let y = |v: f64| bottom - (bottom - TOP) * up.place(v);
        for (tick, text) in up.ticks() {
            let y = y(tick);
            canvas.add(format_args!("<path d=\"M{LEFT} {y:.1}H{right:.1}\" class=\"grid\"/>"));
            canvas.text(LEFT - 6.0, y + 4.0, "end", "muted", &text);
        }
        let places: Vec<_> = across.ticks().into_iter().map(|(v, text)| (x(v), text)).collect();
        canvas.ticks(&places, TOP, bottom);
        canvas.text((LEFT + right) / 2.0, bottom + 34.0, "middle", "muted", &self.below);
        let placed: Vec<Vec<(f64, f64, usize)>> = (self.trails.iter())
            .map(|t| t.spots.iter().map(|s| (x(s.size), y(s.rate), s.kind)).collect())
            .collect();
        for trail in &placed {
            let corners: Vec<String> =
                trail.iter().map(|(x, y, _)| format!("{x:.1},{y:.1}")).collect();
            canvas
                .add(format_args!("<polyline points=\"{}\" class=\"trail\"/>", corners.join(" ")));
        }
        for (trail, spots) in self.trails.iter().zip(&placed) {
            for (spot, (x, y, kind)) in trail.spots.iter().zip(spots) {
                let (tone, packing) = (Tone(*kind), self.kinds.get(*kind).map_or("", |k| k));
                canvas.add(format_args!(
                    "<g class=\"{} solid\"><title>{} {}: {} MB, {} a second</title>{}</g>",
                    tone.class(),
                    escaped(&trail.name),
                    escaped(packing),
                    short(spot.size),
                    short(spot.rate),
                    tone.shape(*x, *y)
                ));
            }
        }
        self.names(canvas, &placed, (LEFT, TOP, right, bottom));
        self.key(canvas);
    }

    /// Each name beside its first point, or, where there is no room, beside another; then beside the
    /// others, where there is room: over no point and no other name.
    fn names(&self, canvas: &mut Canvas, placed: &[Vec<(f64, f64, usize)>], plot: Place) {
        let of = |(x, y, _): &(f64, f64, usize)| (x - POINT, y - POINT, x + POINT, y + POINT);
        let mut taken: Vec<Place> = placed.iter().flatten().map(of).collect();
        let firsts = placed
            .iter()
            .enumerate()
            .filter_map(|(at, spots)| Some((at, *spots.first()?, NEAR.len())));
        let others = placed
            .iter()
            .enumerate()
            .flat_map(|(at, spots)| spots.iter().skip(1).map(move |spot| (at, *spot, 1)));
        for (at, (x, y, kind), rings) in firsts.chain(others) {
            let name = fitted(&self.trails[at].name, 120.0);
            let width = SMALL * text_width(&name);
            let free = beside(x, y, width, rings).find(|(place, _)| {
                inside(*place, plot) && !taken.iter().any(|t| overlap(*place, *t))
            });
            // Without room the point has no name; the table of figures has it.
            let Some((place, anchor)) = free else { continue };
            taken.push(place);
            let at = match anchor {
                "end" => place.2,
                "middle" => (place.0 + place.2) / 2.0,
                _ => place.0,
            };
            let class = if kind == 0 { "small" } else { "small muted" };
            canvas.text(at, (place.1 + place.3) / 2.0 + 4.0, anchor, class, &name);
        }
    }

    /// What the shapes mean, below.
    fn key(&self, canvas: &mut Canvas) {
        let mut at = LEFT;
        for (kind, name) in self.kinds.iter().enumerate() {
            let tone = Tone(kind);
            let y = HEIGHT + KEY / 2.0 - 2.0;
            canvas.add(format_args!(
                "<g class=\"{} solid\">{}</g>",
                tone.class(),
                tone.shape(at + 4.0, y)
            ));
            canvas.text(at + 13.0, y + 4.0, "start", "small", name);
            at += 13.0 + SMALL * text_width(name) + 18.0;
        }
    }
}

/// How far a name may be from its point, in rings.
const NEAR: [f64; 3] = [0.0, 9.0, 18.0];

/// Places for a name about a point, the best first: right, left, above, below, then a little further off.
/// With the end of the text that the place is given by, as widths are estimates.
fn beside(x: f64, y: f64, width: f64, rings: usize) -> impl Iterator<Item = (Place, &'static str)> {
    let places = NEAR.into_iter().take(rings).flat_map(move |away| {
        let (side, level) = (POINT + 1.5, HALF + POINT + away);
        let at = |left: f64, middle: f64| (left, middle - HALF, left + width, middle + HALF);
        [
            (at(x + side, y - away), "start"),
            (at(x - side - width, y - away), "end"),
            (at(x + side, y + away), "start"),
            (at(x - side - width, y + away), "end"),
            (at(x - width / 2.0, y - level), "middle"),
            (at(x - width / 2.0, y + level), "middle"),
        ]
    });
    places.collect::<Vec<_>>().into_iter()
}

fn inside(a: Place, plot: Place) -> bool {
    a.0 >= plot.0 && a.1 >= plot.1 && a.2 <= plot.2 && a.3 <= plot.3
}

fn overlap(a: Place, b: Place) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scatter(sizes: &[(f64, f64)]) -> Scatter {
        let trail = |(n, (size, rate)): (usize, &(f64, f64))| Trail {
            name: format!("format {n}"),
            spots: vec![Spot { size: *size, rate: *rate, kind: 0 }],
        };
        Scatter {
            trails: sizes.iter().enumerate().map(trail).collect(),
            kinds: vec!["plain".into()],
            below: "MB".into(),
        }
    }

    fn drawn(scatter: &Scatter) -> String {
        let mut canvas = Canvas::default();
        scatter.draw(&mut canvas);
        canvas.0
    }

    #[test]
    fn each_point_that_has_room_has_its_name_once() {
        let picture = drawn(&scatter(&[(10.0, 1e6), (30.0, 2e5), (90.0, 1e4), (31.0, 2.1e5)]));
        for n in 0..4 {
            assert_eq!(picture.matches(&format!(">format {n}<")).count(), 1, "{picture}");
        }
    }

    #[test]
    fn names_without_room_are_left_out_rather_than_drawn_over_others() {
        let picture = drawn(&scatter(&[(10.0, 1e5); 60]));
        // A point without a name still has it as its tooltip.
        let named = |n: &usize| picture.contains(&format!(">format {n}</text>"));
        let names = (0..60).filter(named).count();
        assert!(names > 2 && names < 60, "{names}");
        assert_eq!(picture.matches("<circle").count(), 61, "all points, and the key");
    }

    #[test]
    fn nothing_to_draw_is_no_panic() {
        drawn(&Scatter::default());
        drawn(&scatter(&[(0.0, 0.0), (f64::NAN, f64::INFINITY)]));
    }
}
