//! The page of `bench formats`: which format, for these records.

use super::{
    lead::{Known, Lead, be_faster, has_ranks, lead},
    marks,
    names::is_format,
    number::{bytes, fixed, percent, short, times},
    page::Page,
    tables,
    words::{list, records, these},
};
use steelyard_results::{Cell, Contender, Figure, Results, Verdict, Versus};

pub(super) fn page(results: &Results) -> Page {
    let mut lead = verdict(results);
    lead.extend(trial(results));
    lead.extend(marks::cautions(results));
    lead.extend(results.dataset.remarks.iter().cloned());
    let mut sections =
        vec![tables::sizes(results, "As one file, plain and compressed as a whole:")];
    sections.extend(tables::code(results));
    sections.extend(tables::fidelity(results));
    for phase in &results.phases {
        sections.push(tables::phase(results, phase, &title(&phase.table, &phase.name)));
    }
    Page {
        title: format!("Formats for {} ({})", results.dataset.name, records(&results.dataset)),
        lead,
        sections,
        notes: [vec![columns(results)], marks::notes(results)].concat(),
    }
}

/// What the columns of the tables hold.
fn columns(results: &Results) -> String {
    let rank = match has_ranks(results) {
        true => format!("rank: 1 more than there are that were shown to {}. ", be_faster(results)),
        false => String::new(),
    };
    rank + COLUMNS
}

const COLUMNS: &str = "user and \
    system: processor time of all threads, in the unit of the column before. MB/s counts each \
    format's own bytes, records/s is what compares. allocs: allocations a record.";

fn title(table: &str, name: &str) -> String {
    format!("{name} ({table})")
}

/// What a trial of the method came to on this machine, where there was one (rule 22).
fn trial(results: &Results) -> Option<String> {
    let verdicts = |name: &str| {
        let of = results.cells.iter().filter(|c| c.competitor == name);
        let found: Vec<Verdict> =
            of.filter_map(|c| c.summary.as_ref()?.versus.map(|v| v.verdict)).collect();
        (!found.is_empty()).then_some(found)
    };
    let (again, slowed) = (verdicts("again")?, verdicts("slowed")?);
    let different = |v: &&Verdict| matches!(v, Verdict::Faster | Verdict::Slower);
    let called = again.iter().filter(different).count();
    let found = slowed.iter().filter(|v| **v == Verdict::Slower).count();
    let base = &results.baseline;
    Some(format!(
        "The method on trial: {base} against itself was called different in {called} of {} phases, \
         {base} slowed by 5 % was found slower in {found} of {}.",
        again.len(),
        slowed.len()
    ))
}

/// The sentences that answer the question.
fn verdict(results: &Results) -> Vec<String> {
    let mut paragraphs = Vec::new();
    let Some(smallest) = smallest(results, "") else { return paragraphs };
    let mut first = format!("For {} {}", these(&results.dataset), records(&results.dataset));
    if let Some(size) = results.competitor(&results.baseline).and_then(|c| c.sizes.get("")) {
        first.push_str(&format!(" ({} as {})", bytes(*size), results.baseline));
    }
    let leading = |phase: &str| {
        let lead = lead(results, phase, keeps_all)?;
        Some((
            who(&lead)?,
            rate(lead.cells[0]),
            matches!(lead.cells[..], [one] if one.competitor == smallest.name),
        ))
    };
    let told = match (leading("decode"), leading("encode")) {
        (None, None) => "; which is the fastest these rounds cannot tell".to_owned(),
        (Some((_, read, true)), Some((_, write, true))) => format!(
            " and the fastest: it reads {read} and writes {write} records/s in memory on one core"
        ),
        (Some((r, read, _)), Some((w, write, _))) if r == w => format!(
            "; the fastest to read and to write {r} ({read} and {write} records/s in memory on one core)"
        ),
        (read, write) => {
            let one = |found: Option<(String, String, bool)>, way: &str| match found {
                Some((who, rate, _)) => {
                    format!("the fastest to {way} {who} ({rate} records/s in memory)")
                }
                None => format!("which is the fastest to {way} these rounds cannot tell"),
            };
            format!("; {}; {}", one(read, "read"), one(write, "write"))
        }
    };
    first.push_str(&format!(", {} is the smallest{told}.", smallest.name));
    first.push_str(&against(results));
    paragraphs.push(first);
    paragraphs.extend(originals(results));
    paragraphs.extend(advice(results));
    paragraphs
}

fn rate(cell: &Cell) -> String {
    cell.summary.as_ref().map_or(String::new(), |s| short(1e9 / s.ns.middle))
}

/// Who leads: one, or a few and how near they are. Of many, or without intervals, nobody does.
fn who(lead: &Lead) -> Option<String> {
    let names: Vec<&str> = lead.cells.iter().map(|c| c.competitor.as_str()).collect();
    match (lead.known, &names[..]) {
        (Known::Alone | Known::First, [one]) => Some(format!("is {one}")),
        (Known::Alike, [_, _] | [_, _, _]) => {
            Some(format!("are {}, alike within 3 %", list(&names)))
        }
        (Known::Unclear, [_, _] | [_, _, _]) => {
            Some(format!("is one of {}, which these rounds cannot tell apart", list(&names)))
        }
        _ => None,
    }
}

/// True of those that run to try the method: the baseline again, and slowed.
fn is_trial(contender: &Contender) -> bool {
    ["again", "slowed"].contains(&contender.name.as_str())
}

/// True where every record comes back as it was.
pub(super) fn keeps_all(contender: &Contender) -> bool {
    !is_trial(contender) && contender.proof.as_ref().is_some_and(|p| p.equal == p.records)
}

fn smallest<'a>(results: &'a Results, wrap: &str) -> Option<&'a Contender> {
    results
        .competitors
        .iter()
        .filter(|c| keeps_all(c) && c.sizes.contains_key(wrap))
        .min_by_key(|c| c.sizes[wrap])
}

/// How the others compare with the baseline when read: the span of the ratios.
fn against(results: &Results) -> String {
    let versus: Vec<&Versus> = tables::ranked(results, "decode")
        .into_iter()
        .filter(|(contender, _)| !is_trial(contender))
        .filter_map(|(_, cell)| cell.summary.as_ref()?.versus.as_ref())
        .collect();
    if versus.is_empty() || versus.iter().any(|v| v.verdict != Verdict::Slower) {
        return String::new();
    }
    let ratios: Vec<f64> = versus.iter().map(|v| v.ratio.middle).collect();
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    match ratios.len() {
        1 => format!(" The other takes {} as long to read.", times(low)),
        _ => format!(" The others take {} to {} as long to read.", fixed(low, 1), times(high)),
    }
}

/// What compressed newline-delimited JSON costs, the conclusion of the published study: beside the
/// baseline compressed in the same way, and beside the baseline as it is.
fn originals(results: &Results) -> Option<String> {
    let is_json = |c: &&Contender| is_format(&c.name, "json");
    let json = results.competitors.iter().find(is_json).filter(|c| c.name != results.baseline)?;
    let base = results.competitor(&results.baseline)?;
    let (packed, plain) = (*json.sizes.get("gzip")?, *base.sizes.get("")?);
    let mut text = format!(
        "Compressed newline-delimited JSON, which the published study recommended without timing it, takes {} ({} % of plain {}",
        bytes(packed),
        percent(packed as f64, plain as f64),
        results.baseline
    );
    if let Some(base_packed) = base.sizes.get("gzip") {
        let share = percent(packed as f64, *base_packed as f64);
        text.push_str(&format!(", {share} % of {} in gzip", results.baseline));
    }
    text.push(')');
    text.push('.');
    for pack in ["gzip", "zstd"] {
        text.extend(packed_json(results, &json.name, pack));
    }
    Some(text)
}

/// What files of JSON in one pack cost to read and write: like with like first.
fn packed_json(results: &Results, json: &str, pack: &str) -> Option<String> {
    let base = &results.baseline;
    let sure = |v: &Versus| v.ratio.low.is_some();
    let alike = |way: &str| {
        let cell = results.cell(json, &format!("{way}-{pack}"))?;
        cell.summary.as_ref()?.versus.filter(sure)
    };
    let plain = |way: &str| {
        let of = (json.to_owned(), format!("{way}-{pack}"));
        let to = (base.clone(), way.to_owned());
        results.contrasts.iter().find(|c| c.of == of && c.to == to)?.versus.filter(sure)
    };
    let cost = |read: Versus, write: Versus| {
        format!("{} to read and {} to write", longer(&read), longer(&write))
    };
    let beside_alike = alike("read").zip(alike("write")).map(|(read, write)| {
        format!("compared with {base} in {pack} too it takes {}", cost(read, write))
    });
    let beside_plain = plain("read")
        .zip(plain("write"))
        .map(|(read, write)| format!("compared with plain {base} {}", cost(read, write)));
    match (beside_alike, beside_plain) {
        (None, None) => None,
        (alike, plain) => {
            let both: Vec<String> = alike.into_iter().chain(plain).collect();
            Some(format!(" JSON files in {pack}: {}.", both.join("; ")))
        }
    }
}

/// How long something takes, beside something else.
fn longer(versus: &Versus) -> String {
    let ratio = versus.ratio.middle;
    match versus.verdict {
        Verdict::Slower => format!("{} as long", times(ratio)),
        Verdict::Faster => format!("{} % of the time", fixed(100.0 * ratio, 0)),
        Verdict::Alike => "as long, within 3 %,".into(),
        Verdict::CannotTell | Verdict::Untested => {
            let Figure { low, high, .. } = versus.shown();
            let end = |v: Option<f64>| v.map_or("?".into(), |v| fixed(v, 2));
            format!("{} to {} times as long", end(low), end(high))
        }
    }
}

/// What to do: for speed, for space.
fn advice(results: &Results) -> Option<String> {
    let lead = ["read", "decode"].iter().find_map(|phase| lead(results, phase, keeps_all))?;
    who(&lead)?;
    let fast = lead.cells[0];
    let packed: Vec<(&Contender, &str, u64)> = results
        .competitors
        .iter()
        .filter(|c| keeps_all(c))
        .flat_map(|c| c.sizes.iter().map(move |(wrap, size)| (c, wrap.as_str(), *size)))
        .collect();
    let least = packed.iter().map(|p| p.2).min()? as f64;
    let time = |name: &str, wrap: &str| {
        let phase = if wrap.is_empty() { "read".to_owned() } else { format!("read-{wrap}") };
        results.cell(name, &phase).and_then(|c| c.summary.as_ref()).map(|s| s.ns.middle)
    };
    // Of those that are as good as the smallest, the fastest to read.
    let (small, wrap, size) =
        packed.into_iter().filter(|p| p.2 as f64 <= 1.05 * least).min_by(|a, b| {
            let of = |p: &(&Contender, &str, u64)| time(&p.0.name, p.1).unwrap_or(f64::INFINITY);
            of(a).total_cmp(&of(b)).then(a.2.cmp(&b.2))
        })?;
    let names: Vec<&str> = lead.cells.iter().map(|c| c.competitor.as_str()).collect();
    let mut text = format!("So: for speed keep them as {}", names.join(" or "));
    let near = if size as f64 > least { ", within 5 % of the smallest" } else { "" };
    if wrap.is_empty() {
        if small.name == fast.competitor {
            return Some(text + "; nothing measured here is smaller.");
        }
        return Some(format!("{text}; for space as {} ({}).", small.name, bytes(size)));
    }
    text.push_str(&format!("; for space as {} in {wrap} ({}{})", small.name, bytes(size), near));
    let (of, to) = (time(&small.name, wrap), time(&fast.competitor, ""));
    if let Some((of, to)) = of.zip(to) {
        text.push_str(&format!(
            ", which takes {} as long to read from a file as plain {}",
            times(of / to),
            fast.competitor
        ));
        if let Some(alike) = time(&fast.competitor, wrap) {
            let ratio = times(of / alike);
            text.push_str(&format!(" and {ratio} as long as {} in {wrap}", fast.competitor));
        }
    }
    text.push('.');
    Some(text)
}
