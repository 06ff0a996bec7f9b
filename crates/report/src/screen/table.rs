//! The one table of a screen: a row for each competitor, a column for each of the most telling phases, with rates and how
//! many times as long as the best of its group each takes. Groups are of equal durability, as only those compare.

use std::collections::BTreeMap;

use super::{
    super::{
        cache::FLOOR,
        lead::{Known, hides_processor_time, lead, on_processor_time, processor},
        number::{NONE, bytes, fixed, short},
        stores::is_asked_for,
    },
    counted,
    lines::{Lines, Weight, columns, fit, pad},
    rate_unit,
};
use steelyard_results::{Cell, Class, Contender, Phase, Results, Verdict};

/// Columns between columns.
const GAP: usize = 2;
/// The most columns of names.
const NAME: usize = 30;
/// The most columns of what stands above a column.
const HEAD: usize = 18;
/// The most lines of the legend.
const LEGEND: usize = 2;
/// What stands beside a rate or size that was shown to be the best.
const BEST: &str = "best";

/// Competitors that are compared with each other.
pub(super) struct Group<'a> {
    /// What they have in common, where there are several groups.
    pub(super) class: Option<Class>,
    pub(super) members: Vec<&'a Contender>,
}

impl Group<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|c| c.name == name)
    }
}

/// What a column shows.
#[derive(Clone, Copy)]
enum Shows<'a> {
    Phase(&'a Phase),
    /// The size of all records, in a wrap.
    Size(&'static str),
}

/// A figure and what stands beside it.
struct Shown {
    figure: String,
    factor: String,
}

struct Column {
    heads: [String; 2],
    /// One for each row, group by group.
    cells: Vec<Shown>,
    width: usize,
}

/// The competitors that were measured, those of the most durable stores first; of each the quickest in the first
/// phase shown first.
pub(super) fn groups(results: &Results) -> Vec<Group<'_>> {
    let mut classes: BTreeMap<Option<Class>, Vec<&Contender>> = BTreeMap::new();
    // The loop without a client is there for comparison, and no competitor.
    let floor = |c: &Contender| results.bench == "cache" && c.name == FLOOR;
    let mut apart = Vec::new();
    for c in results.competitors.iter().filter(|c| !c.null && c.refused.is_none()) {
        let class = c.store.as_ref().map(|kept| kept.durability.class());
        match floor(c) {
            true => apart.push(c),
            false => classes.entry(class).or_default().push(c),
        }
    }
    let first = phases(results).into_iter().next();
    let time = |c: &Contender| {
        let cell = first.and_then(|phase| results.cell(&c.name, &phase.id));
        cell.and_then(|cell| time(results, c, cell)).unwrap_or(f64::INFINITY)
    };
    let sorted = classes.into_iter().rev().map(|(class, mut members)| {
        members.sort_by(|a, b| time(a).total_cmp(&time(b)));
        Group { class, members }
    });
    let apart = apart.into_iter().map(|floor| Group { class: None, members: vec![floor] });
    sorted.chain(apart).collect()
}

/// The phases that say most, the most telling first.
pub(super) fn phases(results: &Results) -> Vec<&Phase> {
    let all = || results.phases.iter();
    let timed = |phase: &&Phase| {
        results.cells.iter().any(|cell| cell.phase == phase.id && cell.summary.is_some())
    };
    let named = |names: &[&str], among: &dyn Fn(&Phase) -> bool| -> Vec<&Phase> {
        let one = |name: &&str| all().filter(timed).find(|p| p.name == **name && among(p));
        names.iter().filter_map(one).collect()
    };
    match results.bench.as_str() {
        "stores" => one_of_each_kind(all().filter(timed).filter(|p| is_asked_for(p)).collect()),
        "objects" => {
            let largest = all().filter_map(|p| p.size).max();
            let names = ["create+dump", "load", "create+dump+base64", "load+base64", "create"];
            named(&names, &|phase| phase.size == largest)
        }
        "cache" => {
            // With the fewest connections, as fast as answers come.
            let least = all().filter_map(|p| p.size).min();
            let plain = |phase: &Phase| phase.name.contains("plain");
            let (mut first, mut rest): (Vec<&Phase>, Vec<&Phase>) = all()
                .filter(timed)
                .filter(|phase| phase.size == least && !phase.is_open())
                .partition(|p| plain(p));
            first.append(&mut rest);
            first
        }
        _ => {
            let files = named(&["read", "write"], &|_| true);
            if files.is_empty() { named(&["decode", "encode"], &|_| true) } else { files }
        }
    }
}

/// One phase of each kind before the others.
fn one_of_each_kind(phases: Vec<&Phase>) -> Vec<&Phase> {
    let mut kinds: Vec<&str> = Vec::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for phase in phases {
        match kinds.contains(&phase.kind.as_str()) {
            true => rest.push(phase),
            false => {
                kinds.push(&phase.kind);
                first.push(phase);
            }
        }
    }
    first.extend(rest);
    first
}

/// The time that a cell is judged by, in nanoseconds an operation.
fn time(results: &Results, contender: &Contender, cell: &Cell) -> Option<f64> {
    let summary = cell.summary.as_ref()?;
    match on_processor_time(results) {
        true if hides_processor_time(contender, cell) => None,
        true => Some(processor(cell)),
        false => Some(summary.ns.middle),
    }
}

/// `1.04x`, `2.3x`, `41x`.
pub(super) fn factor(ratio: f64) -> String {
    match ratio {
        ..1.095 => format!("{}x", fixed(ratio, 2)),
        ..9.95 => format!("{}x", fixed(ratio, 1)),
        _ => format!("{}x", short(ratio.round())),
    }
}

impl Shows<'_> {
    fn heads(self, results: &Results) -> [String; 2] {
        match self {
            Shows::Phase(phase) => [phase.name.clone(), rate_unit(results, phase)],
            Shows::Size("") => ["size".into(), "plain".into()],
            Shows::Size(wrap) => ["size".into(), wrap.into()],
        }
    }

    fn cells(self, results: &Results, group: &Group<'_>) -> Vec<Shown> {
        match self {
            Shows::Phase(phase) => of_phase(results, phase, group),
            Shows::Size(wrap) => of_size(wrap, group),
        }
    }
}

fn of_phase(results: &Results, phase: &Phase, group: &Group<'_>) -> Vec<Shown> {
    let leads = lead(results, &phase.id, |c| group.has(&c.name));
    // Where nothing was decided, a factor would say more than is known.
    let known = leads.as_ref().map_or(Known::Untested, |lead| lead.known);
    let first = leads.as_ref().and_then(|lead| lead.cells.first());
    let first = first.map(|cell| cell.competitor.as_str());
    let cell_of = |c: &Contender| results.cell(&c.name, &phase.id);
    let shown = |c: &&Contender| {
        let summary = cell_of(c).and_then(|cell| cell.summary.as_ref());
        let Some(summary) = summary else {
            return Shown { figure: NONE.into(), factor: String::new() };
        };
        let factor = match first {
            _ if matches!(known, Known::Untested | Known::Alone) => String::new(),
            Some(name) if name == c.name && known == Known::First => BEST.into(),
            Some(name) if name == c.name => factor(1.0),
            // The ratio of the verdict, round by round, which the answer gives too; not that of the medians.
            Some(name) => match results.answer(&c.name, name, &phase.id) {
                Some(versus) if versus.verdict != Verdict::Untested => {
                    let mark = match versus.verdict {
                        Verdict::Alike => "=",
                        Verdict::CannotTell => "?",
                        _ => "",
                    };
                    factor(versus.ratio.middle) + mark
                }
                _ => NONE.into(),
            },
            None => NONE.into(),
        };
        Shown { figure: short(1e9 / summary.ns.middle), factor }
    };
    group.members.iter().map(shown).collect()
}

fn of_size(wrap: &str, group: &Group<'_>) -> Vec<Shown> {
    let least = group.members.iter().filter_map(|c| c.sizes.get(wrap)).min();
    let shown = |c: &&Contender| match (c.sizes.get(wrap), least) {
        (Some(size), Some(least)) => Shown {
            figure: bytes(*size),
            factor: match size == least {
                true => BEST.into(),
                false => factor(*size as f64 / (*least).max(1) as f64),
            },
        },
        _ => Shown { figure: NONE.into(), factor: String::new() },
    };
    group.members.iter().map(shown).collect()
}

/// What the columns may be, the most telling first.
fn candidates(results: &Results) -> Vec<Shows<'_>> {
    let mut all: Vec<Shows<'_>> = phases(results).into_iter().map(Shows::Phase).collect();
    let sized = |wrap: &str| results.competitors.iter().any(|c| c.sizes.contains_key(wrap));
    if results.bench == "formats" {
        all.truncate(2);
        all.extend(["", "zstd", "gzip"].into_iter().filter(|w| sized(w)).map(Shows::Size));
    }
    all
}

/// Adds the table, in so many lines at most.
pub(super) fn table(lines: &mut Lines, results: &Results, room: usize) {
    let groups = groups(results);
    let lossy = |c: &Contender| c.proof.as_ref().is_some_and(|p| p.changed() + p.refused > 0);
    let label = |c: &Contender| format!("{}{}", c.name, if lossy(c) { " !" } else { "" });
    let names: Vec<String> = groups.iter().flat_map(|g| &g.members).map(|c| label(c)).collect();
    // On a narrow screen a column of figures has room beside them.
    let most = NAME.min(lines.width().saturating_sub(HEAD + GAP));
    let name_width = names.iter().map(|n| columns(n)).max().unwrap_or(0).min(most);
    let candidates = candidates(results);
    let mut shown: Vec<Column> = Vec::new();
    let mut left = lines.width().saturating_sub(name_width);
    for candidate in &candidates {
        let column = column(*candidate, results, &groups);
        if column.width + GAP > left {
            break;
        }
        left -= column.width + GAP;
        shown.push(column);
    }
    if names.is_empty() || shown.is_empty() {
        return;
    }
    for line in 0..2 {
        let mut text = " ".repeat(name_width);
        for column in &shown {
            text += &" ".repeat(GAP);
            text += &pad(&column.heads[line], column.width, true);
        }
        lines.spans(vec![(Weight::Dim, text)]);
    }
    let mut rows = body(&groups, &names, &shown, name_width);
    // What groups have in common is a sentence.
    rows.iter_mut()
        .filter(|row| row.len() == 1)
        .for_each(|row| row[0].1 = fit(&row[0].1, lines.width()));
    let legend = legend(results, &shown, &names, candidates.len() - shown.len());
    let mut explained = Lines::new(lines.width());
    if !legend.is_empty() {
        explained.paragraph(Weight::Dim, &legend, LEGEND);
    }
    // The heads and the legend are there whatever has no room.
    let room = room.saturating_sub(2 + explained.len()).max(3);
    let total = rows.len();
    if total > room {
        rows.truncate(room - 1);
        rows.push(vec![(Weight::Dim, format!("+{} more in the report", total - rows.len()))]);
    }
    rows.into_iter().for_each(|row| lines.spans(row));
    lines.append(explained);
}

fn column(shows: Shows<'_>, results: &Results, groups: &[Group<'_>]) -> Column {
    let heads = shows.heads(results).map(|head| fit(&head, HEAD));
    let cells: Vec<Shown> = groups.iter().flat_map(|group| shows.cells(results, group)).collect();
    // Figures stand below each other, and factors behind them.
    let factor = cells.iter().map(|c| columns(&c.factor)).max().unwrap_or(0);
    let figure = cells.iter().map(|c| columns(&c.figure)).max().unwrap_or(0);
    let pair = |cell: Shown| Shown {
        figure: pad(&cell.figure, figure, true),
        factor: if factor == 0 { String::new() } else { pad(&cell.factor, factor + 1, true) },
    };
    let inner = figure + if factor == 0 { 0 } else { factor + 1 };
    let width = heads.iter().map(|head| columns(head)).max().unwrap_or(0).max(inner);
    Column { heads, cells: cells.into_iter().map(pair).collect(), width }
}

fn body(
    groups: &[Group<'_>],
    names: &[String],
    shown: &[Column],
    name_width: usize,
) -> Vec<Vec<(Weight, String)>> {
    let mut rows = Vec::new();
    let mut row = 0;
    for group in groups {
        if let Some(class) = group.class {
            rows.push(vec![(Weight::Dim, capital(&class.phrase()))]);
        }
        for _ in &group.members {
            let mut spans = vec![(Weight::Plain, pad(&names[row], name_width, false))];
            for column in shown {
                let cell = &column.cells[row];
                let text = format!("{}{}", cell.figure, cell.factor);
                let blanks = " ".repeat(GAP + column.width - columns(&text));
                let best = cell.factor.trim() == BEST;
                spans.push((Weight::Plain, blanks));
                spans.push((if best { Weight::Bold } else { Weight::Plain }, text));
            }
            rows.push(spans);
            row += 1;
        }
    }
    rows
}

/// What the marks mean, of those that are there.
fn legend(results: &Results, shown: &[Column], names: &[String], hidden: usize) -> String {
    let has = |mark: char| shown.iter().flat_map(|c| &c.cells).any(|c| c.factor.contains(mark));
    let mut parts = Vec::new();
    if has('x') {
        let sizes = if results.bench == "formats" { ", or size" } else { "" };
        parts.push(match on_processor_time(results) {
            true => format!(
                "2.0x: twice the processor time of the best{sizes}; rates are of elapsed time"
            ),
            false => format!("2.0x: twice the time of the best{sizes}"),
        });
    }
    if has('=') {
        parts.push("= alike within 3 %".into());
    }
    if has('?') {
        parts.push("? cannot be told from the best".into());
    }
    if names.iter().any(|name| name.ends_with('!')) {
        parts.push("! loses values".into());
    }
    if hidden > 0 {
        parts.push(format!("+{} in the report", counted(hidden, "columns")));
    }
    parts.join("; ")
}

/// A sentence begins with a capital letter; a tier's name stays.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}
