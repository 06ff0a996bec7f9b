//! The figures that answer the question of a page: who may be compared with whom ([`groups`]), who leads
//! in an operation and by how much ([`standings`]), and all of it as one table ([`boards`]).
//!
//! A place is given by verdicts alone (rule 14). Where there is none (fewer than 5 starts, a noisy machine,
//! a competitor on its own) everybody is [`Place::Unranked`], and no look may mark anybody as best.

use std::collections::HashMap;

use super::{
    lead::{self, Known, hides_processor_time, lead, on_processor_time, processor},
    stores,
};
use steelyard_results::{Basis, Cell, Class, Contender, Figure, Phase, Results, Verdict};

/// How a competitor stands among those that it may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Place {
    /// No verdict was given.
    #[default]
    Unranked,
    /// It was shown to be faster than every other.
    Best,
    /// None was shown to be faster, and all such are alike within 3 %.
    Tied,
    /// None was shown to be faster, and this run does not tell which of several is.
    Undecided,
    /// Another was shown to be faster.
    Behind,
}

impl Place {
    /// The word beside its figure.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Place::Best => "best",
            Place::Tied => "tied",
            Place::Undecided => "unclear",
            Place::Unranked | Place::Behind => "",
        }
    }

    /// True where none was shown to be faster.
    pub(crate) fn leads(self) -> bool {
        matches!(self, Place::Best | Place::Tied | Place::Undecided)
    }
}

/// A place and what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Standing {
    pub place: Place,
    /// How many times the time of the first of the leaders it takes; only of one that is behind.
    pub factor: Option<f64>,
    /// Whether it leads and somebody is behind: only then does a look give it a colour.
    pub marked: bool,
}

/// Competitors that may be compared with each other.
#[derive(Debug, Clone)]
pub(super) struct Group<'a> {
    pub kind: Kind,
    pub members: Vec<&'a Contender>,
}

/// What the members of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing that has to be said.
    All,
    /// Stores of this durability.
    Durability(Class),
    /// What does not give back every record as it was, or runs to try the method; not ranked.
    Lossy,
    /// The loop without a client, which is no competitor; not ranked.
    Floor,
}

impl Group<'_> {
    /// Whether its members are ranked at all.
    pub(crate) fn is_ranked(&self) -> bool {
        match self.kind {
            Kind::All => true,
            Kind::Durability(class) => class.is_ranked(),
            Kind::Lossy | Kind::Floor => false,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|c| c.name == name)
    }
}

/// Everybody that was measured, in groups: stores by durability, the highest first; what is not ranked
/// last.
pub(super) fn groups(results: &Results) -> Vec<Group<'_>> {
    let all = results.competitors.iter().filter(|c| !c.null && c.refused.is_none());
    let mut groups: Vec<Group<'_>> = Vec::new();
    for c in all {
        let kind = kind(results, c);
        match groups.iter_mut().find(|group| group.kind == kind) {
            Some(group) => group.members.push(c),
            None => groups.push(Group { kind, members: vec![c] }),
        }
    }
    let class = |group: &Group<'_>| match group.kind {
        Kind::Durability(class) => Some(class),
        Kind::All | Kind::Lossy | Kind::Floor => None,
    };
    groups.sort_by_key(|group| std::cmp::Reverse((group.is_ranked(), class(group))));
    groups
}

fn kind(results: &Results, c: &Contender) -> Kind {
    match (results.bench.as_str(), &c.store) {
        (_, Some(kept)) => Kind::Durability(kept.durability.class()),
        ("cache", _) if c.name == super::cache::FLOOR => Kind::Floor,
        ("cache" | "stores" | "tenants", _) => Kind::All,
        _ if super::formats::keeps_all(c) => Kind::All,
        _ => Kind::Lossy,
    }
}

/// Whether places are of the rates that a look shows. On a noisy machine rates are of elapsed time, of
/// which there are no verdicts.
pub(super) fn are_rates_ranked(results: &Results) -> bool {
    !on_processor_time(results) || by_processor(results)
}

/// Whether rates are told by processor time though the run's figures are elapsed ones: as `--cpu` asks
/// of stores, where the machine was quiet.
fn by_processor(results: &Results) -> bool {
    on_processor_time(results) && !results.noise().1
}

/// What rates are of: `records/s`, `records per CPU second`.
pub(super) fn rate_unit(results: &Results, unit: &str) -> String {
    match by_processor(results) || results.figures() == Basis::Processor {
        true => format!("{unit}/CPU s"),
        false => format!("{unit}/s"),
    }
}

/// Operations a second of a cell; `None` where it was not timed, or has no processor time to be told by.
pub(super) fn rate(results: &Results, contender: &Contender, cell: &Cell) -> Option<Figure> {
    let summary = cell.summary.as_ref()?;
    if !by_processor(results) {
        return Some(summary.ns.inverse(1e9));
    }
    let known = !hides_processor_time(contender, cell);
    known.then(|| Figure { middle: 1e9 / processor(cell), ..Figure::default() })
}

/// How each stands in a phase by the rates that a look shows.
pub(super) fn standings(results: &Results, phase: &str) -> HashMap<String, Standing> {
    match are_rates_ranked(results) {
        true => verdicts(results, phase),
        false => HashMap::new(),
    }
}

/// How each stands in a phase, by whatever time verdicts are of: on a noisy machine that is processor
/// time, and not what rates show.
pub(super) fn verdicts(results: &Results, phase: &str) -> HashMap<String, Standing> {
    let mut found = HashMap::new();
    for group in groups(results).iter().filter(|group| group.is_ranked()) {
        let Some(lead) = lead(results, phase, |c| group.has(&c.name)) else { continue };
        let place = match lead.known {
            Known::Alone | Known::Untested => continue,
            Known::First => Place::Best,
            Known::Alike => Place::Tied,
            Known::Unclear => Place::Undecided,
        };
        let first = &lead.cells[0].competitor;
        let versus = |cell: &Cell| results.answer(&cell.competitor, first, phase);
        // Slower than a third is not slower than this one, by any verdict.
        let (told, untold): (Vec<&Cell>, Vec<&Cell>) = lead.others.iter().partition(|cell| {
            place != Place::Best || versus(cell).is_some_and(|v| v.verdict == Verdict::Slower)
        });
        let place = if untold.is_empty() { place } else { Place::Undecided };
        let marked = !told.is_empty();
        for cell in lead.cells.iter().chain(&untold) {
            found.insert(cell.competitor.clone(), Standing { place, factor: None, marked });
        }
        for cell in told {
            let factor = versus(cell).map(|v| v.ratio.middle);
            let standing = Standing { place: Place::Behind, factor, marked: false };
            found.insert(cell.competitor.clone(), standing);
        }
    }
    found
}

/// A table of who did how much: rows in groups, a column for each operation and each size.
#[derive(Debug)]
pub(super) struct Board<'a> {
    /// What tells it from the other boards of the page; empty where there is one.
    pub title: String,
    pub columns: Vec<Column<'a>>,
    pub groups: Vec<(Group<'a>, Vec<Row<'a>>)>,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Column<'a> {
    /// Operations a second.
    Speed(&'a Phase),
    /// Bytes of all records in this wrap: less is better.
    Size(String),
    /// Bytes on disk: less is better, and nobody is marked, as these are not compared by rounds.
    Disk,
}

/// What one competitor did.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub contender: &'a Contender,
    /// One for each column; `None` where it was not measured.
    pub scores: Vec<Option<Score>>,
}

/// A cell of a board.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Score {
    /// Operations a second, or bytes.
    pub value: f64,
    /// Its share of the best in its group: the rate over the highest, the smallest size over its own.
    pub share: f64,
    pub standing: Standing,
}

/// The tables that answer the question. Those of clients of memcached are one for each kind of value and
/// number of connections.
pub(super) fn boards(results: &Results) -> Vec<Board<'_>> {
    match results.bench.as_str() {
        "stores" => {
            let asked = |p: &&Phase| stores::is_asked_for(p);
            let mut columns = speeds(results.phases.iter().filter(asked));
            columns.push(Column::Disk);
            vec![board(results, String::new(), columns)]
        }
        "cache" | "tenants" => {
            let mut tables: Vec<(&str, Vec<&Phase>)> = Vec::new();
            for phase in results.phases.iter().filter(|p| !p.is_open()) {
                match tables.iter_mut().find(|(title, _)| *title == phase.table) {
                    Some((_, phases)) => phases.push(phase),
                    None => tables.push((&phase.table, vec![phase])),
                }
            }
            let several = tables.len() > 1;
            tables
                .into_iter()
                .map(|(table, phases)| {
                    let title = if several { table.to_owned() } else { String::new() };
                    board(results, title, speeds(phases.into_iter()))
                })
                .collect()
        }
        _ => {
            let wraps = results.competitors.iter().flat_map(|c| c.sizes.keys().cloned());
            let mut wraps: Vec<String> = wraps.collect();
            wraps.sort();
            wraps.dedup();
            let mut columns: Vec<Column<'_>> = wraps.into_iter().map(Column::Size).collect();
            // Of objects, those of the largest number; sums say nothing that their parts do not.
            let largest = results.phases.iter().filter_map(|p| p.size).max();
            let shown = |p: &&Phase| p.size == largest && p.sum_of.is_empty();
            columns.extend(speeds(results.phases.iter().filter(shown)));
            vec![board(results, String::new(), columns)]
        }
    }
}

fn speeds<'a>(phases: impl Iterator<Item = &'a Phase>) -> Vec<Column<'a>> {
    phases.map(Column::Speed).collect()
}

fn board<'a>(results: &'a Results, title: String, columns: Vec<Column<'a>>) -> Board<'a> {
    let groups = groups(results).into_iter().map(|group| {
        let mut rows: Vec<Row<'a>> =
            group.members.iter().map(|c| Row { contender: c, scores: Vec::new() }).collect();
        for column in &columns {
            for (row, score) in rows.iter_mut().zip(scores(results, &group, column)) {
                row.scores.push(score);
            }
        }
        rows.retain(|row| row.scores.iter().any(Option::is_some));
        by_strength(&mut rows);
        (group, rows)
    });
    let groups: Vec<_> = groups.filter(|(_, rows)| !rows.is_empty()).collect();
    let shown =
        |at: usize| groups.iter().flat_map(|(_, rows)| rows).any(|row| row.scores[at].is_some());
    let keep: Vec<bool> = (0..columns.len()).map(shown).collect();
    let mut board = Board { title, columns, groups };
    board.keep(&keep);
    board
}

impl Board<'_> {
    /// Leaves out the columns that are not to be kept.
    fn keep(&mut self, keep: &[bool]) {
        let mut at = keep.iter();
        self.columns.retain(|_| *at.next().unwrap_or(&true));
        for row in self.groups.iter_mut().flat_map(|(_, rows)| rows) {
            let mut at = keep.iter();
            row.scores.retain(|_| *at.next().unwrap_or(&true));
        }
    }
}

/// The scores of a group in a column.
fn scores(results: &Results, group: &Group<'_>, column: &Column<'_>) -> Vec<Option<Score>> {
    let values: Vec<Option<f64>> =
        group.members.iter().map(|c| value(results, c, column)).collect();
    let usable = || values.iter().flatten().copied().filter(|v| *v > 0.0 && v.is_finite());
    let (least, most) = (usable().fold(f64::INFINITY, f64::min), usable().fold(0.0, f64::max));
    let standings = match column {
        Column::Speed(phase) => standings(results, &phase.id),
        Column::Size(_) | Column::Disk => HashMap::new(),
    };
    let several = usable().count() > 1;
    let score = |(c, value): (&&Contender, Option<f64>)| {
        let value = value?;
        let standing = match column {
            Column::Speed(_) => standings.get(&c.name).copied().unwrap_or_default(),
            Column::Size(_) if several && group.is_ranked() && least < most => {
                smaller(value, least)
            }
            Column::Size(_) | Column::Disk => Standing::default(),
        };
        let share = match column {
            Column::Speed(_) => value / most,
            Column::Size(_) | Column::Disk => least / value,
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        Some(Score { value, share, standing })
    };
    group.members.iter().zip(values.iter().copied()).map(score).collect()
}

/// Sizes are counted, not estimated: the smallest is known whatever the rounds.
fn smaller(value: f64, least: f64) -> Standing {
    match value == least {
        true => Standing { place: Place::Best, factor: None, marked: true },
        false => Standing { place: Place::Behind, factor: Some(value / least), marked: false },
    }
}

fn value(results: &Results, c: &Contender, column: &Column<'_>) -> Option<f64> {
    match column {
        Column::Speed(phase) => {
            let cell = results.cell(&c.name, &phase.id)?;
            Some(rate(results, c, cell)?.middle).filter(|v| v.is_finite())
        }
        Column::Size(wrap) => c.sizes.get(wrap).map(|size| *size as f64),
        Column::Disk => stores::disk(results, c).filter(|size| *size > 0).map(|size| size as f64),
    }
}

/// Those that lead in more columns first; rows of which nothing is decided stay in their order.
fn by_strength(rows: &mut [Row<'_>]) {
    let leads = |row: &Row<'_>| {
        let places = || row.scores.iter().flatten().map(|s| s.standing);
        let best = places().filter(|s| s.marked).count();
        (best, places().filter(|s| s.place.leads()).count())
    };
    let share = |row: &Row<'_>| {
        let behind = row.scores.iter().flatten().filter(|s| s.standing.place != Place::Unranked);
        let logs: Vec<f64> = behind.map(|s| s.share.max(1e-9).ln()).collect();
        logs.iter().sum::<f64>() / logs.len().max(1) as f64
    };
    let decided = rows.iter().flat_map(|r| r.scores.iter().flatten());
    if decided.map(|s| s.standing.place).all(|place| place == Place::Unranked) {
        return;
    }
    rows.sort_by(|a, b| leads(b).cmp(&leads(a)).then(share(b).total_cmp(&share(a))));
}

/// How many times the time of this the next takes; `None` where it is not alone in front.
pub(super) fn ahead_of_next(results: &Results, group: &Group<'_>, phase: &str) -> Option<f64> {
    let lead = lead::lead(results, phase, |c| group.has(&c.name))?;
    let next = lead.others.first().filter(|_| lead.known == Known::First)?;
    let versus = results.answer(&next.competitor, &lead.cells[0].competitor, phase)?;
    Some(versus.ratio.middle)
}
