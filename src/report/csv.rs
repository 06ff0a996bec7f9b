//! Results as CSV: a row for each cell, in nanoseconds and bytes for each operation.

use crate::bench::results::{Cell, Results, Verdict};

const HEADS: [&str; 31] = [
    "bench",
    "competitor",
    "phase",
    "size",
    "n",
    "starts",
    "ns",
    "ns_low",
    "ns_high",
    "per_second",
    "user_ns",
    "system_ns",
    "ratio",
    "ratio_low",
    "ratio_high",
    "p",
    "p_adjusted",
    "verdict",
    "group",
    "outliers",
    "settled",
    "harness_share",
    "bytes",
    "allocations",
    "allocated_bytes",
    "peak_bytes",
    "records_equal",
    "records",
    "total_bytes",
    "total_gzip_bytes",
    "refused",
];

pub(super) fn csv(results: &Results) -> String {
    let mut out = HEADS.join(",");
    out.push('\n');
    let null = |c: &Cell| results.competitor(&c.competitor).is_some_and(|k| k.null);
    for cell in results.cells.iter().filter(|c| !null(c)) {
        let fields = row(results, cell);
        out.push_str(&fields.iter().map(|f| quoted(f)).collect::<Vec<_>>().join(","));
        out.push('\n');
    }
    out
}

fn row(results: &Results, cell: &Cell) -> [String; 31] {
    fn show<T: ToString>(v: Option<T>) -> String {
        v.map_or(String::new(), |v| v.to_string())
    }
    let phase = results.phase(&cell.phase);
    let contender = results.competitor(&cell.competitor);
    let proof = contender.and_then(|c| c.proof.as_ref());
    let size = |wrap: &str| contender.and_then(|c| c.sizes.get(wrap).copied());
    let s = cell.summary.as_ref();
    let versus = s.and_then(|s| s.versus);
    let memory = cell.memory.unwrap_or_default();
    let verdict = |v: Verdict| match v {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifference => "no-difference",
    };
    [
        results.bench.clone(),
        cell.competitor.clone(),
        phase.map_or(cell.phase.clone(), |p| p.name.clone()),
        show(phase.and_then(|p| p.size)),
        show(s.map(|s| s.n)),
        show(s.map(|s| s.starts)),
        show(s.map(|s| s.ns.middle)),
        show(s.and_then(|s| s.ns.low)),
        show(s.and_then(|s| s.ns.high)),
        show(s.map(|s| 1e9 / s.ns.middle)),
        show(s.map(|s| s.user_ns)),
        show(s.map(|s| s.system_ns)),
        show(versus.map(|v| v.ratio.middle)),
        show(versus.and_then(|v| v.ratio.low)),
        show(versus.and_then(|v| v.ratio.high)),
        show(versus.map(|v| v.p)),
        show(versus.map(|v| v.adjusted)),
        show(versus.map(|v| verdict(v.verdict))),
        show(s.map(|s| s.group).filter(|g| *g > 0)),
        show(s.map(|s| s.outliers.len())),
        show(s.map(|_| cell.settled)),
        show(s.and_then(|s| s.harness)),
        show((cell.units > 0 && cell.bytes > 0).then(|| cell.bytes as f64 / cell.units as f64)),
        show(memory.allocations),
        show(memory.allocated),
        show(memory.peak),
        show(proof.map(|p| p.equal)),
        show(proof.map(|p| p.records)),
        show(size("")),
        show(size("gzip")),
        cell.refused.clone().unwrap_or_default(),
    ]
}

/// A field, in quotes where it must be: RFC 4180.
fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_would_break_the_row() {
        assert_eq!(quoted("a"), "a");
        assert_eq!(quoted("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
    }
}
