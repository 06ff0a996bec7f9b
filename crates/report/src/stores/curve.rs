//! Rate and waiting by how many operations are on their way at once, and where more of them gain
//! nothing: the knee.

use super::{
    super::{
        chart::{Chart, Line, Lines, Plot, Scale},
        marks::Marks,
        number::{NONE, ranged, short, whole},
        page::{Section, Table},
        pictures::tone,
        tables,
        words::list,
    },
    contenders, families, family, is_point,
    kept::{short_tier, tier},
    latency::at,
    phases, unit,
};
use steelyard_results::{Cell, Contender, Figure, Phase, Results};

/// The knee is the least number at once with this share of the best rate.
const ENOUGH: f64 = 0.9;

/// A store at one number of operations at once.
struct Point<'a> {
    at_once: u64,
    cell: &'a Cell,
    /// Operations a second.
    rate: Figure,
}

/// The points of a store, from few at once to many.
fn points<'a>(results: &'a Results, contender: &Contender, name: &str) -> Vec<Point<'a>> {
    let mut points: Vec<Point<'a>> = (results.phases.iter())
        .filter(|phase| is_point(phase) && family(phase) == name)
        .filter_map(|phase| {
            let cell = results.cell(&contender.name, &phase.id)?;
            let rate = cell.summary.as_ref()?.ns.inverse(1e9);
            Some(Point { at_once: phase.size?, cell, rate })
        })
        .collect();
    points.sort_by_key(|point| point.at_once);
    points
}

/// The first point with nearly the best rate.
fn knee<'p, 'a>(points: &'p [Point<'a>]) -> Option<&'p Point<'a>> {
    let best = points.iter().map(|point| point.rate.middle).fold(0.0, f64::max);
    points.iter().find(|point| point.rate.middle >= ENOUGH * best)
}

/// Whether these rounds tell where the knee is: not on a noisy machine, and not without intervals.
fn is_known(results: &Results, points: &[Point<'_>]) -> bool {
    !results.noise().1 && points.iter().all(|point| point.rate.low.is_some())
}

/// Milliseconds in which 99 of 100 are answered.
fn p99(cell: &Cell) -> Option<Figure> {
    let q = cell.latency.as_ref()?.response.quantile(0.99)?;
    let ms = |ns: f64| ns / 1e6;
    Some(Figure { middle: ms(q.value), low: Some(ms(q.low)), high: Some(ms(q.high)) })
}

/// Where each store does what it can, in a sentence for each curve.
pub(super) fn told(results: &Results) -> Vec<String> {
    let sentence = |name: &str| {
        let phase = results.phases.iter().find(|p| is_point(p) && family(p) == name)?;
        let store = |c: &Contender| {
            let points = points(results, c, name);
            let knee = knee(&points).filter(|_| is_known(results, &points))?;
            let wait = p99(knee.cell).map_or(String::new(), |p99| {
                format!(", 99 of 100 within {} ms", short(p99.middle))
            });
            let (rate, unit) = (short(knee.rate.middle), unit(phase));
            Some(format!("{} at {} ({rate} {unit}/s{wait})", c.name, knee.at_once))
        };
        let stores: Vec<String> = contenders(results).filter_map(store).collect();
        (!stores.is_empty()).then(|| {
            format!(
                "How many {name} at once are enough for {} % of the best rate: {}.",
                100.0 * ENOUGH,
                list(&stores)
            )
        })
    };
    families(results, is_point).into_iter().filter_map(sentence).collect()
}

/// A section for each curve.
pub(super) fn sections(results: &Results) -> Vec<Section> {
    families(results, is_point).into_iter().filter_map(|name| section(results, name)).collect()
}

fn section(results: &Results, name: &str) -> Option<Section> {
    let first = results.phases.iter().find(|p| is_point(p) && family(p) == name)?;
    let rate = format!("{}/s", unit(first));
    let of = tables::share_of_baseline(results);
    let mut table = Table::new(&[
        "<",
        "<durability",
        "at once",
        &rate,
        &of,
        "% of best",
        "p50",
        "p99",
        "p99.9",
        "max",
        "<",
    ]);
    let mut marks = Marks::default();
    let mut refusals: Vec<String> = Vec::new();
    let mut knees = false;
    for c in contenders(results) {
        let points = points(results, c, name);
        if points.is_empty() {
            let why = results.cell(&c.name, &first.id).and_then(tables::refusal);
            refusals.extend(why);
        }
        let known = is_known(results, &points);
        let knee = knee(&points).filter(|_| known).map(|point| point.at_once);
        knees |= knee.is_some();
        let best = points.iter().map(|point| point.rate.middle).fold(0.0, f64::max);
        for point in &points {
            let response = point.cell.latency.as_ref().map(|latency| &latency.response);
            let within = |share| response.map_or(NONE.into(), |h| at(h, share));
            table.rows.push(vec![
                tables::name(c, point.cell, &mut marks),
                tier(c, &mut marks),
                whole(point.at_once),
                ranged(&point.rate),
                phases::versus(results, c, point.cell, &mut marks),
                short(100.0 * point.rate.middle / best),
                within(0.5),
                within(0.99),
                within(0.999),
                response.map_or(NONE.into(), |h| short(h.max() as f64 / 1e6)),
                if knee == Some(point.at_once) { "knee" } else { NONE }.into(),
            ]);
        }
    }
    let mut footnotes = marks.footnotes();
    footnotes.extend(refusals);
    (!table.rows.is_empty() || !footnotes.is_empty()).then(|| Section {
        title: format!("{name}: by how many at once"),
        about: format!(
            "{} Each of so many workers sends its next operation when its last one was answered, on a \
             connection of its own; milliseconds for one.{}",
            plain(first),
            if knees { of_knees() } else { String::new() }
        ),
        brief: format!("{} The rate and the latency with more and more operations at once.", plain(first)),
        table: table.without_empty_columns(),
        footnotes,
        charts: charts(results, name, first),
        ..Section::default()
    })
}

fn of_knees() -> String {
    format!(
        " knee: the fewest at once with {} % of the best rate; with more, operations wait for each other.",
        100.0 * ENOUGH
    )
}

/// What is done, without how many at once.
fn plain(phase: &Phase) -> String {
    let about = phase.about.split(", ").next().unwrap_or_default();
    format!("{}.", about.trim_end_matches('.'))
}

fn charts(results: &Results, name: &str, first: &Phase) -> Vec<Chart> {
    let lines = |of: &dyn Fn(&Point<'_>) -> Option<(f64, Figure)>| -> Vec<Line> {
        let line = |c: &Contender| {
            let points: Vec<_> = points(results, c, name).iter().filter_map(of).collect();
            let name = format!("{} {}", c.name, short_tier(c)).trim_end().to_owned();
            let tone = tone(results, &c.name);
            (!points.is_empty()).then_some(Line { name, tone, points, dotted: true })
        };
        contenders(results).filter_map(line).collect()
    };
    let rates = lines(&|point| Some((point.at_once as f64, point.rate)));
    let waits = lines(&|point| Some((point.rate.middle, p99(point.cell)?)));
    let chart = |title: String, unit: String, lines, scales, below: &str| Chart {
        title,
        unit,
        plot: Plot::Lines(Lines { lines, scales, below: below.into() }),
    };
    let unit = unit(first);
    let mut charts = Vec::new();
    if !rates.is_empty() {
        charts.push(chart(
            format!("{name}: rate by how many at once"),
            format!("{unit}/s"),
            rates,
            (Scale::Log, Scale::Linear),
            "at once",
        ));
    }
    if !waits.is_empty() {
        charts.push(chart(
            format!("{name}: 99 of 100 are answered within"),
            "ms".into(),
            waits,
            (Scale::Log, Scale::Log),
            &format!("{unit}/s, from few at once to many"),
        ));
    }
    charts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_the_fewest_with_nearly_the_best_rate() {
        let cell = Cell::default();
        let point = |(at_once, rate): (u64, f64)| {
            let rate = Figure { middle: rate, ..Figure::default() };
            Point { at_once, cell: &cell, rate }
        };
        let knee_of = |rates: &[(u64, f64)]| {
            let points: Vec<Point<'_>> = rates.iter().copied().map(point).collect();
            knee(&points).map(|point| point.at_once)
        };
        assert_eq!(knee_of(&[(1, 100.0), (4, 350.0), (16, 395.0), (64, 400.0)]), Some(16));
        assert_eq!(knee_of(&[(1, 100.0), (4, 90.0), (16, 80.0)]), Some(1), "more is worse");
        assert_eq!(knee_of(&[(1, 10.0), (4, 40.0)]), Some(4));
        assert_eq!(knee_of(&[]), None);
    }
}
