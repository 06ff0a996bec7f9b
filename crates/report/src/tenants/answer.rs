//! The sentences that answer the question: what a database for each tenant costs, whether that is the published 5.3 %,
//! and what the gateway adds.

use super::{
    super::{
        lead::on_processor_time,
        marks,
        number::{fixed, short, whole},
        words::list,
    },
    counted, phrase,
};
use steelyard_results::{
    FEWEST, Figure, Results, Verdict, Versus,
    tenants::{DATABASE, GATEWAY, Published, SCHEMA, SHARED, Tenants},
};

/// The answer for one screen; empty where nothing was measured.
pub(super) fn sentences(results: &Results) -> Vec<String> {
    let Some(tenants) = &results.tenants else { return Vec::new() };
    tenants.stores().into_iter().flat_map(|store| of_store(results, tenants, store)).collect()
}

/// The same in one paragraph, without what only a page has room for.
pub(crate) fn answer(results: &Results) -> String {
    let Some(tenants) = &results.tenants else { return String::new() };
    let ranked = marks::starts(results) as usize >= FEWEST;
    let nothing = (!ranked).then(|| "Nothing is ranked: there were too few rounds.".to_owned());
    let stores = tenants.stores();
    // Of several stores the first sentence of each.
    let few = if stores.len() > 1 { 1 } else { usize::MAX };
    let told =
        stores.iter().flat_map(|store| of_store(results, tenants, store).into_iter().take(few));
    nothing.into_iter().chain(told).collect::<Vec<_>>().join(" ")
}

fn of_store(results: &Results, tenants: &Tenants, store: &str) -> Vec<String> {
    let mut said = Vec::new();
    let sizes = tenants.sizes(store);
    let ratio = |kind: &str, size: u64, of: &str, to: &str| {
        results.tenants_ratio((kind, store, size), of, to)
    };
    let largest = |of: &str, to: &str| {
        sizes.iter().rev().copied().find(|size| ratio("query", *size, of, to).is_some())
    };
    let cpu = if on_processor_time(results) { " in processor time" } else { "" };
    if let Some(size) = largest(DATABASE, SHARED)
        && let Some(query) = ratio("query", size, DATABASE, SHARED)
    {
        let insert = ratio("insert", size, DATABASE, SHARED);
        let insert = insert.map_or(String::new(), |v| format!("; inserts {}", told(&v)));
        said.push(format!(
            "{store}, {} against one table{cpu}: queries {}{}{insert}.",
            counted(size, "database"),
            told(&query),
            published(&query)
        ));
        said.extend(fewer(results, store, &sizes, size));
    }
    if let Some(size) = largest(SCHEMA, SHARED)
        && let Some(query) = ratio("query", size, SCHEMA, SHARED)
    {
        let schemas = counted(size, "schema");
        said.push(format!("{store}, {schemas} against one table{cpu}: queries {}.", told(&query)));
    }
    if let Some(size) = largest(GATEWAY, DATABASE) {
        let of = |kind: &str| ratio(kind, size, GATEWAY, DATABASE).map(|v| told(&v));
        let both = [("queries", of("query")), ("inserts", of("insert"))];
        let both: Vec<String> =
            both.into_iter().filter_map(|(what, how)| Some(format!("{what} {}", how?))).collect();
        said.push(format!(
            "The gateway before {}{cpu}: {}.",
            counted(size, "database"),
            both.join("; ")
        ));
    }
    if said.is_empty() {
        said.extend(alone(results, tenants, store));
    }
    said
}

/// The queries with fewer tenants, each in a few words.
fn fewer(results: &Results, store: &str, sizes: &[u64], largest: u64) -> Option<String> {
    let told = sizes.iter().filter(|size| **size < largest).filter_map(|size| {
        let versus = results.tenants_ratio(("query", store, *size), DATABASE, SHARED)?;
        let (low, high) = versus.ratio.low.zip(versus.ratio.high)?;
        Some(format!("{} ({})", whole(*size), span(low, high)))
    });
    let told: Vec<String> = told.collect();
    // With one tenant both are one table: what differs there is no matter of the number of databases.
    let alone =
        results.tenants_ratio(("query", store, 1), DATABASE, SHARED).filter(|_| largest > 1);
    let differs = alone.is_some_and(|v| matches!(v.verdict, Verdict::Slower | Verdict::Faster));
    let of_field = match differs {
        true => "; what differs with 1 is the field of the tenant in the shared table",
        false => "",
    };
    (!told.is_empty()).then(|| format!("Queries with fewer tenants: {}{of_field}.", list(&told)))
}

/// What was measured where nothing could be compared.
fn alone(results: &Results, tenants: &Tenants, store: &str) -> Option<String> {
    let size = *tenants.sizes(store).last()?;
    let phase = results.tenants_phase("query", store, size)?;
    let micros = |arm: &&str| {
        let ns = results.cell(arm, phase)?.summary.as_ref()?.ns.middle;
        Some(format!("{} µs in {}", short(ns / 1e3), phrase(arm)))
    };
    let all: Vec<String> = tenants.arms(store).iter().filter_map(micros).collect();
    (!all.is_empty())
        .then(|| format!("{store}, {}: a query takes {}.", counted(size, "tenant"), list(&all)))
}

/// What a ratio comes to, with its interval: no more than its verdict allows.
fn told(versus: &Versus) -> String {
    let Figure { middle, low, high } = versus.ratio;
    let Some((low, high)) = low.zip(high) else {
        return format!("{} times the time (no interval)", fixed(middle, 2));
    };
    let span = span(low, high);
    let much = |ratio: f64| format!("{} %", fixed(100.0 * (ratio - 1.0), 1));
    match (versus.verdict, middle) {
        (Verdict::Slower, 2.0..) => format!("{} times as long ({span})", short(middle)),
        (Verdict::Slower, _) => format!("{} slower ({span})", much(middle)),
        (Verdict::Faster, 0.5..) => {
            format!("{} % faster ({span})", fixed(100.0 * (1.0 - middle), 1))
        }
        (Verdict::Faster, _) => format!("{} times as long ({span})", short(middle)),
        (Verdict::Alike, _) => format!("alike within 3 % ({span})"),
        (Verdict::CannotTell | Verdict::Untested, _) => {
            format!("not shown to differ ({span})")
        }
    }
}

/// An interval of a ratio: in percent of a difference where it is small, else as factors.
fn span(low: f64, high: f64) -> String {
    if low < 0.5 || high >= 2.0 {
        return format!("{} to {} times", short(low), short(high));
    }
    let percent = |ratio: f64| {
        let text = fixed(100.0 * (ratio - 1.0), 1);
        if ratio >= 1.0 { format!("+{text}") } else { text }
    };
    format!("{} to {} %", percent(low), percent(high))
}

/// Whether the published ratio lies within an interval; nothing where it is not even shown that there is a difference, nor that
/// there is none.
fn published(versus: &Versus) -> &'static str {
    if matches!(versus.verdict, Verdict::CannotTell | Verdict::Untested) {
        return "";
    }
    match Published::of(&versus.ratio) {
        Published::Within => ", so perhaps the 5.3 % that was published",
        Published::Below | Published::Above => ", so not the 5.3 % that was published",
        Published::Unknown => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versus(middle: f64, low: f64, high: f64, verdict: Verdict) -> Versus {
        let ratio = Figure { middle, low: Some(low), high: Some(high) };
        Versus { ratio, joint: None, p: 0.5, adjusted: 0.5, verdict }
    }

    #[test]
    fn no_more_is_said_than_the_verdict_allows() {
        for (of, want) in [
            (versus(1.06, 1.04, 1.08, Verdict::Slower), "6.0 % slower (+4.0 to +8.0 %)"),
            (versus(0.9, 0.88, 0.93, Verdict::Faster), "10.0 % faster (-12.0 to -7.0 %)"),
            (versus(1.01, 0.99, 1.02, Verdict::Alike), "alike within 3 % (-1.0 to +2.0 %)"),
            // By itself it excludes 1; in its family it does not.
            (versus(1.05, 1.01, 1.09, Verdict::CannotTell), "not shown to differ (+1.0 to +9.0 %)"),
            (versus(98.2, 95.0, 101.0, Verdict::Slower), "98.2 times as long (95.0 to 101 times)"),
        ] {
            assert_eq!(told(&of), want);
        }
        let few = Figure { middle: 1.5, low: None, high: None };
        let few = Versus { ratio: few, ..versus(1.5, 1.0, 2.0, Verdict::Untested) };
        assert!(told(&few).contains("no interval"));
        assert_eq!(published(&few), "");
        assert_eq!(published(&versus(16.7, 1.96, 143.0, Verdict::CannotTell)), "");
        assert!(published(&versus(16.7, 9.0, 31.0, Verdict::Slower)).starts_with(", so not"));
    }
}
