//! Results as CSV: a row for each cell, in nanoseconds and bytes for each operation.
//!
//! A column is added at the end, so that what reads them by place goes on to.

use super::stores::server_ns;
use steelyard_results::{Basis, Cell, Disk, Histogram, Kept, Pace, Results, Round, Verdict};

/// A column's head and its text.
type Field = (&'static str, String);

pub(super) fn csv(results: &Results) -> String {
    // What the columns are called does not depend on what is in them.
    let heads: Vec<&str> = row(results, &Cell::default()).into_iter().map(|f| f.0).collect();
    let mut out = heads.join(",");
    out.push('\n');
    let null = |c: &Cell| results.competitor(&c.competitor).is_some_and(|k| k.null);
    for cell in results.cells.iter().filter(|c| !null(c)) {
        let fields = row(results, cell);
        push_row(&mut out, fields.iter().map(|f| f.1.as_str()));
    }
    out
}

/// Adds a line of fields.
pub(super) fn push_row<'a>(out: &mut String, fields: impl Iterator<Item = &'a str>) {
    out.push_str(&fields.map(quoted).collect::<Vec<_>>().join(","));
    out.push('\n');
}

/// A value that may be missing.
pub(super) fn show<T: ToString>(v: Option<T>) -> String {
    v.map_or(String::new(), |v| v.to_string())
}

/// The one word for a verdict.
pub(super) fn verdict(v: Verdict) -> &'static str {
    match v {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Alike => "alike",
        Verdict::CannotTell => "cannot-tell",
        Verdict::Untested => "untested",
    }
}

fn row(results: &Results, cell: &Cell) -> Vec<Field> {
    let mut row = measured(results, cell);
    row.extend(stored(results, cell));
    row.extend(added(results, cell));
    row
}

/// What every bench has.
fn measured(results: &Results, cell: &Cell) -> Vec<Field> {
    let phase = results.phase(&cell.phase);
    let contender = results.competitor(&cell.competitor);
    let proof = contender.and_then(|c| c.proof.as_ref());
    let size = |wrap: &str| contender.and_then(|c| c.sizes.get(wrap).copied());
    let s = cell.summary.as_ref();
    let versus = s.and_then(|s| s.versus);
    let memory = cell.memory.unwrap_or_default();
    let bytes = (cell.units > 0 && cell.bytes > 0).then(|| cell.bytes as f64 / cell.units as f64);
    vec![
        ("bench", results.bench.clone()),
        ("competitor", cell.competitor.clone()),
        ("phase", phase.map_or(cell.phase.clone(), |p| p.name.clone())),
        ("size", show(phase.and_then(|p| p.size))),
        ("n", show(s.map(|s| s.n))),
        ("starts", show(s.map(|s| s.starts))),
        ("ns", show(s.map(|s| s.ns.middle))),
        ("ns_low", show(s.and_then(|s| s.ns.low))),
        ("ns_high", show(s.and_then(|s| s.ns.high))),
        ("per_second", show(s.map(|s| 1e9 / s.ns.middle))),
        ("user_ns", show(s.map(|s| s.user_ns))),
        ("system_ns", show(s.map(|s| s.system_ns))),
        ("ratio", show(versus.map(|v| v.ratio.middle))),
        ("ratio_low", show(versus.and_then(|v| v.ratio.low))),
        ("ratio_high", show(versus.and_then(|v| v.ratio.high))),
        ("p", show(versus.map(|v| v.p))),
        ("p_adjusted", show(versus.map(|v| v.adjusted))),
        ("verdict", show(versus.map(|v| verdict(v.verdict)))),
        ("group", show(s.map(|s| s.group).filter(|g| *g > 0))),
        ("outliers", show(s.map(|s| s.outliers.len()))),
        ("settled", show(s.map(|_| cell.settled))),
        ("harness_share", show(s.and_then(|s| s.harness))),
        ("bytes", show(bytes)),
        ("allocations", show(memory.allocations)),
        ("allocated_bytes", show(memory.allocated)),
        ("peak_bytes", show(memory.peak)),
        ("records_equal", show(proof.map(|p| p.equal))),
        ("records", show(proof.map(|p| p.records))),
        ("total_bytes", show(size(""))),
        ("total_gzip_bytes", show(size("gzip"))),
        ("refused", cell.refused.clone().unwrap_or_default()),
    ]
}

/// What stores have beside; empty for others.
fn stored(results: &Results, cell: &Cell) -> Vec<Field> {
    let phase = results.phase(&cell.phase);
    let contender = results.competitor(&cell.competitor);
    let kept = contender.and_then(|c| c.store.as_ref());
    let durability = kept.map(|k| &k.durability);
    let medium = durability.and_then(|d| d.medium.as_ref());
    let used = || cell.rounds.iter().filter_map(|r: &Round| r.server);
    let latency = cell.latency.as_ref();
    let response = latency.map(|l| &l.response).filter(|h| h.count() > 0);
    let service = latency.and_then(|l| l.service.as_ref());
    let lag = latency.and_then(|l| l.lag.as_ref());
    let at =
        |h: Option<&Histogram>, share| show(h.and_then(|h| h.quantile(share)).map(|q| q.value));
    let p99 = response.and_then(|h| h.quantile(0.99));
    let tally = cell.tally;
    let joint = cell.summary.as_ref().and_then(|s| s.versus?.joint);
    let workload = results.workload.as_ref().map(|w| w.name.clone()).unwrap_or_default();
    vec![
        ("workload", workload),
        ("unit", phase.map_or(String::new(), |p| p.unit.clone())),
        ("pace", phase.and_then(|p| p.pace).map_or(String::new(), pace)),
        ("concurrency", show(phase.map(|p| p.concurrency).filter(|n| *n > 0))),
        ("offered_per_second", show(cell.offered)),
        ("server_cpu_ns", show(server_ns(cell))),
        ("server_memory_bytes", show(used().map(|s| s.memory).max())),
        ("server_written_bytes", show(used().map(|s| s.written).max())),
        ("durability_asked", show(durability.and_then(|d| d.asked.clone()))),
        ("durability_set", show(durability.and_then(|d| d.set.clone()))),
        ("syncs_per_write", show(durability.and_then(|d| d.syncs))),
        ("durability_broken", show(durability.map(|d| d.broken))),
        ("durability_found", show(durability.map(|d| d.class().name()))),
        ("filesystem", show(medium.map(|lies| lies.filesystem.clone()))),
        ("filesystem_sync_ns", show(medium.and_then(|lies| lies.sync_ns))),
        ("done", show(tally.map(|t| t.done))),
        ("failed", show(tally.map(|t| t.failed))),
        ("timed_out", show(tally.map(|t| t.timed_out))),
        ("missed", show(tally.map(|t| t.missed))),
        ("late", show(tally.map(|t| t.late))),
        ("skipped", show(tally.map(|t| t.skipped))),
        ("p50_ns", at(response, 0.5)),
        ("p90_ns", at(response, 0.9)),
        ("p99_ns", at(response, 0.99)),
        ("p99_low_ns", show(p99.map(|q| q.low))),
        ("p99_high_ns", show(p99.map(|q| q.high))),
        ("p99_9_ns", at(response, 0.999)),
        ("max_ns", show(response.map(Histogram::max))),
        ("service_p50_ns", at(service, 0.5)),
        ("service_p99_ns", at(service, 0.99)),
        ("lag_p99_ns", at(lag, 0.99)),
        ("disk_bytes", show(kept.and_then(|k| disk(k, Disk::total)))),
        ("disk_data_bytes", show(kept.and_then(|k| disk(k, |d| d.data)))),
        ("disk_log_bytes", show(kept.and_then(|k| disk(k, |d| d.logs)))),
        ("raw_bytes", show(results.dataset.sizes.get(""))),
        ("system_calls", show(cell.system_calls)),
        ("joint_low", show(joint.map(|j| j.0))),
        ("joint_high", show(joint.map(|j| j.1))),
    ]
}

/// What every bench has, too, and had no column at first.
fn added(results: &Results, cell: &Cell) -> Vec<Field> {
    let contender = results.competitor(&cell.competitor);
    let reordered = contender.and_then(|c| c.proof.as_ref()).map(|proof| proof.reordered);
    let code = contender.and_then(|c| c.code.as_ref());
    let kept = contender.and_then(|c| c.store.as_ref());
    vec![
        ("units", show(results.phase(&cell.phase).map(|phase| phase.units))),
        ("noisy", results.noise().1.to_string()),
        ("records_reordered", show(reordered)),
        ("read_by", code.map_or(String::new(), |code| code.reads.clone())),
        ("written_by", code.map_or(String::new(), |code| code.writes.clone())),
        ("client", kept.map_or(String::new(), |kept| kept.client.clone())),
        // The time that ratio, p, verdict and group are of; ns is elapsed where stores are measured.
        ("ratio_of", results.family.as_ref().map_or("", |f| basis(f.basis)).into()),
    ]
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Elapsed => "elapsed",
        Basis::Processor => "processor",
    }
}

fn pace(pace: Pace) -> String {
    match pace {
        Pace::Free => "free".into(),
        Pace::Fixed(rate) => format!("fixed {rate}"),
        Pace::Poisson(rate) => format!("poisson {rate}"),
        Pace::Share(share) => format!("share {share}"),
    }
}

/// The median over starts.
fn disk(kept: &Kept, of: fn(&Disk) -> u64) -> Option<u64> {
    let mut bytes: Vec<u64> = kept.disk.iter().map(of).collect();
    bytes.sort_unstable();
    bytes.get(bytes.len() / 2).copied()
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
