//! The tables that pages of several benches have in common.

use super::{
    lead::{hides_processor_time, on_processor_time, processor},
    marks::Marks,
    number::{NONE, beside, bytes, fixed, megabytes, percent, ranged, short, whole},
    page::{Role, Section, Table},
    pictures,
};
use steelyard_results::{
    Basis, Cell, Contender, Contrast, Histogram, Phase, Proof, Results, Summary,
};

/// The shares that are shown of the distribution of single calls.
pub(super) const SHARES: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")];

/// Microseconds at a share; `-` where fewer than 10 samples lie beyond (rule 16).
pub(super) fn at(histogram: Option<&Histogram>, share: f64) -> String {
    let found = histogram.and_then(|h| h.quantile(share));
    found.map_or(NONE.into(), |q| short(q.value / 1e3))
}

/// The cells of a phase, the fastest first (by the time that answers are of), then those without figures; never
/// the null competitor.
pub(super) fn ranked<'a>(results: &'a Results, phase: &str) -> Vec<(&'a Contender, &'a Cell)> {
    let mut cells: Vec<_> = results
        .cells
        .iter()
        .filter(|c| c.phase == phase)
        .filter_map(|c| Some((results.competitor(&c.competitor).filter(|k| !k.null)?, c)))
        .collect();
    let on_processor = on_processor_time(results);
    let time = |&(contender, cell): &(&Contender, &Cell)| match (&cell.summary, on_processor) {
        (None, _) => f64::INFINITY,
        (Some(_), true) if hides_processor_time(contender, cell) => f64::MAX,
        (Some(_), true) => processor(cell),
        (Some(summary), false) => summary.ns.middle,
    };
    cells.sort_by(|a, b| time(a).total_cmp(&time(b)));
    cells
}

/// A phase as a table: ranks, seconds for a pass, percent of the baseline, rates, processor time,
/// memory.
pub(super) fn phase(results: &Results, phase: &Phase, about: &str) -> Section {
    let base = share_of_baseline(results);
    // Compressed files are compared with plain ones of the baseline too.
    let plain = |name: &str| {
        let this = |c: &&Contrast| c.of.0 == name && c.of.1 == phase.id && c.to.1 != phase.id;
        results.contrasts.iter().find(this)
    };
    let of_plain = format!("% of plain {}", results.baseline);
    // Seconds where they take seconds, else milliseconds: for a whole pass, as published.
    let cells = ranked(results, &phase.id);
    let slowest = cells.iter().filter_map(|c| c.1.summary.as_ref()).map(|s| s.ns.middle);
    let (unit, per_unit) = match slowest.fold(0.0, f64::max) * phase.units as f64 {
        1e9.. => ("seconds", 1e9),
        _ => ("ms", 1e6),
    };
    let unit = match results.figures() {
        Basis::Elapsed => unit.to_owned(),
        Basis::Processor => format!("CPU {unit}"),
    };
    let mut table = Table::new(&[
        "<",
        "rank",
        &unit,
        &base,
        &of_plain,
        "records/s",
        "MB/s",
        "user",
        "system",
        "allocs",
        "peak",
    ]);
    let mut marks = Marks::default();
    let mut refusals = Vec::new();
    for (contender, cell) in cells {
        let Some(s) = &cell.summary else {
            refusals.extend(refusal(cell));
            let mut row = vec![contender.name.clone()];
            row.resize(table.columns.len(), NONE.into());
            table.rows.push(row);
            continue;
        };
        let pass = phase.units as f64 / per_unit;
        let rate = (cell.bytes > 0 && cell.units > 0)
            .then(|| cell.bytes as f64 / cell.units as f64 / s.ns.middle * 1e3);
        let memory = cell.memory.unwrap_or_default();
        table.rows.push(vec![
            name(contender, cell, &mut marks),
            rank(s),
            ranged(&s.ns.scaled(pass)),
            versus(results, contender, s, &mut marks),
            plain(&contender.name).and_then(|c| c.versus).map_or(NONE.into(), |v| {
                format!("{}{}", ranged(&v.ratio.scaled(100.0)), marks.verdict(&v))
            }),
            short(1e9 / s.ns.middle),
            rate.map_or(NONE.into(), short),
            beside(s.user_ns * pass, s.ns.middle * pass),
            beside(s.system_ns * pass, s.ns.middle * pass),
            memory.allocations.map_or(NONE.into(), |a| fixed(a, 1)),
            memory.peak.map_or(NONE.into(), bytes),
        ]);
    }
    let mut footnotes = marks.footnotes();
    footnotes.extend(refusals);
    Section {
        title: about.to_owned(),
        about: format!("{} One pass is {} records.", phase.about, whole(phase.units)),
        brief: phase.about.clone(),
        table: table.without_empty_columns(),
        footnotes,
        charts: pictures::pass(results, phase).into_iter().collect(),
        role: Role::Operation(phase.id.clone()),
        ..Section::default()
    }
}

/// A competitor's name with the marks of its cell.
pub(super) fn name(contender: &Contender, cell: &Cell, marks: &mut Marks) -> String {
    let lossy = marks.lossy(contender.proof.as_ref());
    format!("{}{lossy}{}", contender.name, marks.of(cell))
}

/// The rank, where it was compared with anybody.
pub(super) fn rank(summary: &Summary) -> String {
    match summary.group {
        0 => NONE.into(),
        rank => rank.to_string(),
    }
}

/// What stands above the ratios to the baseline, which are of processor time on a noisy machine.
pub(super) fn share_of_baseline(results: &Results) -> String {
    let family = results.family.as_ref().map(|family| family.basis);
    let other = family.is_some_and(|basis| basis != results.figures());
    let cpu = if other { "CPU " } else { "" };
    format!("{cpu}% of {}", results.baseline)
}

/// Percent of the baseline's time.
pub(super) fn versus(
    results: &Results,
    contender: &Contender,
    summary: &Summary,
    marks: &mut Marks,
) -> String {
    match (&summary.versus, contender.name == results.baseline) {
        (_, true) => "100".into(),
        (Some(v), _) => format!("{}{}", ranged(&v.shown().scaled(100.0)), marks.verdict(v)),
        (None, _) => NONE.into(),
    }
}

/// The footnote of a row without figures: why.
pub(super) fn refusal(cell: &Cell) -> Option<String> {
    cell.refused.as_ref().map(|why| format!("- {}: {why}", cell.competitor))
}

/// Sizes of all records in each format: as they are, and in each wrap.
pub(super) fn sizes(results: &Results, about: &str) -> Section {
    let mut wraps: Vec<&str> = Vec::new();
    for wrap in results.competitors.iter().flat_map(|c| c.sizes.keys()) {
        if !wraps.contains(&wrap.as_str()) {
            wraps.push(wrap);
        }
    }
    let base = |wrap: &str| {
        let size = results.competitor(&results.baseline)?.sizes.get(wrap).copied();
        size.map(|s| s as f64)
    };
    let mut table = Table::new(&["<"]);
    for wrap in &wraps {
        table.add_column(format!("{wrap} MB").trim_start());
        table.add_column("%");
    }
    table.add_column("bytes/record");
    let mut contenders: Vec<&Contender> =
        results.competitors.iter().filter(|c| !c.null && !c.sizes.is_empty()).collect();
    contenders.sort_by_key(|c| c.sizes.get("").copied().unwrap_or(u64::MAX));
    let mut marks = Marks::default();
    for c in contenders {
        let mut row = vec![format!("{}{}", c.name, marks.lossy(c.proof.as_ref()))];
        for wrap in &wraps {
            let size = c.sizes.get(*wrap).copied();
            row.push(size.map_or(NONE.into(), megabytes));
            let share = size.zip(base(wrap)).map(|(s, b)| percent(s as f64, b));
            row.push(share.unwrap_or(NONE.into()));
        }
        let each = c.sizes.get("").map(|s| *s as f64 / results.dataset.records.max(1) as f64);
        row.push(each.map_or(NONE.into(), |b| fixed(b, 0)));
        table.rows.push(row);
    }
    Section {
        title: "Sizes".into(),
        about: format!(
            "{about} {} {}; % is of {} in the same column.",
            whole(results.dataset.records),
            results.dataset.kind,
            results.baseline
        ),
        brief: "Each point is a format with all records, plain or packed; a line joins the points of one \
                format."
            .into(),
        table: table.without_empty_columns(),
        footnotes: marks.footnotes(),
        charts: pictures::trade_offs(results),
        ..Section::default()
    }
}

/// How many of the records were tried before anything was timed, as a sentence.
fn tried(results: &Results) -> String {
    let proofs = results.competitors.iter().filter_map(|c| c.proof.as_ref());
    // Files of before proofs said of how many they are.
    let of = |proof: &Proof| if proof.of > 0 { proof.of } else { results.dataset.records };
    let partial: Vec<&Proof> = proofs.clone().filter(|proof| proof.records < of(proof)).collect();
    let which = match partial.iter().min_by_key(|proof| proof.records) {
        Some(proof) => {
            let alike = proofs.clone().all(|other| other.records == proof.records);
            let least = if alike { "" } else { "at least " };
            format!("{least}{} of {}", whole(proof.records), whole(of(proof)))
        }
        None => match proofs.map(|proof| proof.records).max() {
            Some(all) => format!("all {}", whole(all)),
            None => "all".into(),
        },
    };
    format!(
        "Before anything was timed, {which} records were written, read back and compared by value."
    )
}

/// Whose code was measured; `None` where nothing is known about it, as in older results.
pub(super) fn code(results: &Results) -> Option<Section> {
    let mut table = Table::new(&["<", "<read by", "<written by"]);
    for contender in results.competitors.iter().filter(|c| !c.null && c.refused.is_none()) {
        if let Some(code) = &contender.code {
            table.rows.push(vec![contender.name.clone(), code.reads.clone(), code.writes.clone()]);
        }
    }
    (!table.rows.is_empty()).then(|| Section {
        title: "Readers and writers".into(),
        about: format!(
            "Whose code the figures are about. own: this program's, straight between bytes and {}. \
             own, by serde: this program's, for any type, through serde. Others are crates, through \
             serde.",
            results.dataset.kind
        ),
        table,
        role: Role::Method,
        ..Section::default()
    })
}

/// What did not come back as it was; `None` where everything did.
pub(super) fn fidelity(results: &Results) -> Option<Section> {
    let lines: Vec<String> = results
        .competitors
        .iter()
        .filter_map(|c| {
            // One that holds all records may be left out for something else: files.
            let told = |p: &&Proof| p.equal < p.records || c.refused.is_some();
            Some((c, c.proof.as_ref().filter(told)?))
        })
        .map(|(c, proof)| {
            if let (Some(why), true) = (&c.refused, proof.equal == proof.records) {
                let of = whole(proof.records);
                return format!(
                    "{}: {of} of {of} came back equal in memory; not timed: {why}.",
                    c.name
                );
            }
            let first = proof.first.as_deref().unwrap_or("nothing is known about the first");
            let declared = match proof.declared.as_str() {
                "" => String::new(),
                text => format!(" Declared: {text}."),
            };
            let grades = [
                (proof.reordered, "reordered (equal values, names in another order)"),
                (proof.changed(), "changed"),
                (proof.refused, "refused"),
            ];
            let grades = grades.into_iter().filter(|(n, _)| *n > 0);
            let grades: String = grades.map(|(n, what)| format!(", {} {what}", whole(n))).collect();
            let (equal, of) = (whole(proof.equal), whole(proof.records));
            format!("{}: {equal} of {of} came back equal{grades}; {first}.{declared}", c.name)
        })
        .collect();
    (!lines.is_empty()).then(|| Section {
        title: "Fidelity".into(),
        about: format!("{} What is not named here came back equal.", tried(results)),
        table: Table::default(),
        footnotes: lines,
        role: Role::Method,
        ..Section::default()
    })
}
