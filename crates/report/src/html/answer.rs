//! The question that a page answers, and the answer in one sentence, with factors.
//!
//! The answer speaks of the first group that can be ranked: of stores, those of the highest durability.
//! Every other group has its own sentence, which stands above its rows.

use super::super::{
    lead::on_processor_time,
    marks,
    number::{bytes, fixed, percent, short, whole},
    summary::{self, Board, Column, Group, Kind, Place, Row, Standing},
    words::{list, records},
};
use steelyard_results::{Contender, Dataset, FEWEST, Phase, Results, Verdict};

/// So many operations, or competitors, are named one by one.
const NAMED: usize = 3;
/// So many groups of leaders beside the first are told one by one.
const EXCEPTIONS: usize = 2;

/// The title of the page.
pub(super) fn question(results: &Results) -> String {
    let data = &results.dataset;
    let measured: Vec<&Contender> =
        results.competitors.iter().filter(|c| !c.null && c.refused.is_none()).collect();
    let one = match &measured[..] {
        [one] => Some(one.name.as_str()),
        _ => None,
    };
    match (results.bench.as_str(), one) {
        ("cache", Some(one)) => format!("How fast is the memcached client {one}?"),
        ("cache", None) => "Which memcached client is fastest?".into(),
        ("objects", Some(one)) => format!("How fast does {one} serialize objects?"),
        ("objects", None) => format!("Which format serializes {} fastest?", counted(data)),
        ("tenants", _) => "What does a database for each tenant cost?".into(),
        ("stores", one) => stores(results, one),
        (_, Some(one)) => format!("How fast is {one} for {}?", counted(data)),
        (_, None) => format!("Which format is best for {}?", counted(data)),
    }
}

/// What a workload asks is seen by the kinds of its phases.
fn stores(results: &Results, one: Option<&str>) -> String {
    let data = counted(&results.dataset);
    let asked: Vec<&Phase> =
        results.phases.iter().filter(|p| super::super::stores::is_asked_for(p)).collect();
    let of = |kind: &str| asked.iter().filter(|p| p.kind == kind).count();
    if let Some(one) = one {
        return format!("How fast is {one} with {data}?");
    }
    if of("relate") > 0 {
        format!("Which store follows relations fastest, with {data}?")
    } else if of("mix") > 1 {
        format!("Which store serves mixed reads and writes fastest, with {data}?")
    } else if 2 * of("load") > asked.len() {
        format!("Which store inserts {data} fastest?")
    } else {
        format!("Which store keeps {data} best?")
    }
}

/// `18,881 catalogue records`.
fn counted(data: &Dataset) -> String {
    let mut named = data.clone();
    if named.kind == "MARC records" {
        named.kind = "catalogue records".into();
    }
    records(&named)
}

/// The answer to the question.
pub(super) fn answer(results: &Results, boards: &[Board<'_>]) -> String {
    if results.bench == "tenants" {
        return super::super::tenants::answer(results);
    }
    if let Some(why) = unranked(results) {
        return match by_processor_time(results) {
            Some(told) => format!("{why} {told}"),
            None => format!("{why}{}", highest(results, boards)),
        };
    }
    let Some((board, at, said)) = first(results, boards) else { return alone(results, boards) };
    let board = &boards[board];
    let group = &board.groups[at].0;
    let among = match (group.kind, board.groups.len()) {
        (Kind::Durability(_), 2..) => format!("Among stores that {}: ", promise(group)),
        _ => String::new(),
    };
    format!(
        "{among}{said}{}.",
        sizes(board).unwrap_or_default() + &wraps(results).unwrap_or_default()
    )
}

/// The sentence of the first group that has one, with its board and its place in it.
fn first(results: &Results, boards: &[Board<'_>]) -> Option<(usize, usize, String)> {
    boards.iter().enumerate().find_map(|(board, of)| {
        (0..of.groups.len()).find_map(|at| Some((board, at, sentence(results, of, at)?)))
    })
}

fn sentence(results: &Results, board: &Board<'_>, at: usize) -> Option<String> {
    let (group, rows) = &board.groups[at];
    let ranked = group.is_ranked() && summary::are_rates_ranked(results);
    leaders(results, &Decided::of(board, rows), group).filter(|_| ranked)
}

/// The sentence of one group; `None` where it has none, or it is the answer of the page.
pub(super) fn of_group(
    results: &Results,
    boards: &[Board<'_>],
    board: usize,
    at: usize,
) -> Option<String> {
    let is_answer = first(results, boards).is_some_and(|(b, a, _)| (b, a) == (board, at));
    let said = sentence(results, &boards[board], at).filter(|_| !is_answer)?;
    Some(said + ".")
}

/// Why nobody is ranked; `None` where somebody may be.
pub(super) fn unranked(results: &Results) -> Option<String> {
    let starts = marks::starts(results);
    if (starts as usize) < FEWEST {
        let starts = if starts == 1 { "1 start".into() } else { format!("{starts} starts") };
        return Some(format!("Not ranked: this run made {starts}, and ranking takes {FEWEST}."));
    }
    let (share, noisy) = results.noise();
    (noisy && !summary::are_rates_ranked(results)).then(|| {
        format!(
            "Not ranked by elapsed time: other programs disturbed {} % of the comparisons.",
            fixed(100.0 * share, 0)
        )
    })
}

/// What a noisy machine still tells: who needs the least processor time.
fn by_processor_time(results: &Results) -> Option<String> {
    if !on_processor_time(results) || (marks::starts(results) as usize) < FEWEST {
        return None;
    }
    let boards = summary::boards(results);
    let board = boards.first()?;
    board.groups.iter().filter(|(group, _)| group.is_ranked()).find_map(|(group, rows)| {
        let decided = Decided::by_processor(results, board, rows);
        let said = leaders(results, &decided, group)?;
        let among = match (group.kind, board.groups.len()) {
            (Kind::Durability(_), 2..) => format!(", among stores that {}", promise(group)),
            _ => String::new(),
        };
        Some(format!("By processor time{among}: {said}."))
    })
}

/// The span of medians, where no more is known.
fn highest(results: &Results, boards: &[Board<'_>]) -> String {
    let rows = boards.iter().flat_map(|b| &b.groups).map(|(_, rows)| rows.len()).sum::<usize>();
    match rows {
        0 => String::new(),
        1 => format!(" {}", alone(results, boards)),
        _ => " The rates below are medians of what was measured; differences may be chance.".into(),
    }
}

/// What a single competitor did, or why there is no sentence.
fn alone(results: &Results, boards: &[Board<'_>]) -> String {
    let rows: Vec<(&Board<'_>, &Row<'_>)> = boards
        .iter()
        .flat_map(|b| b.groups.iter().flat_map(move |(_, rows)| rows.iter().map(move |r| (b, r))))
        .collect();
    let [(board, row)] = rows[..] else {
        return match rows.is_empty() {
            true => "Nothing was measured.".into(),
            false => {
                "No two competitors can be compared here: each stands in a group of its own.".into()
            }
        };
    };
    let rates = board.columns.iter().zip(&row.scores).filter_map(|(column, score)| match column {
        Column::Speed(phase) => {
            let unit = summary::rate_unit(results, super::super::stores::unit(phase));
            Some(format!("{} {unit} at {}", short((*score)?.value), phase.name))
        }
        Column::Size(_) | Column::Disk => None,
    });
    let rates: Vec<String> = rates.take(NAMED).collect();
    format!("{} does {}.", row.contender.name, list(&rates))
}

/// What its members promise, behind `stores that`.
pub(super) fn promise(group: &Group<'_>) -> String {
    let Kind::Durability(class) = group.kind else { return String::new() };
    let name = class.name();
    let (tier, how) = name.split_once(' ').unwrap_or((&name, ""));
    let promise = match tier {
        "t3" => "survive a crash of the machine",
        "t2" => "lose the last moments when the machine crashes",
        "t1" => "survive the end of their process",
        "t0" => "keep records in memory only",
        _ => return "promise nothing that is known".into(),
    };
    let how = if how.is_empty() { "" } else { ", by their settings" };
    format!("{promise} ({}{how})", tier.to_uppercase())
}

/// What is decided in a group: its columns with the standing of each member.
struct Decided<'a> {
    columns: Vec<(&'a Phase, Vec<(&'a str, Standing)>)>,
    by_processor: bool,
}

impl<'a> Decided<'a> {
    fn of(board: &'a Board<'_>, rows: &'a [Row<'_>]) -> Decided<'a> {
        let standing = |row: &'a Row<'_>, at: usize| {
            Some((row.contender.name.as_str(), row.scores[at]?.standing))
        };
        let columns = board.columns.iter().enumerate().filter_map(|(at, column)| match column {
            Column::Speed(phase) => {
                Some((*phase, rows.iter().filter_map(|row| standing(row, at)).collect()))
            }
            Column::Size(_) | Column::Disk => None,
        });
        Decided { columns: columns.collect(), by_processor: false }.decided()
    }

    fn by_processor(results: &Results, board: &'a Board<'_>, rows: &'a [Row<'_>]) -> Decided<'a> {
        let columns = board.columns.iter().filter_map(|column| {
            let Column::Speed(phase) = column else { return None };
            let verdicts = summary::verdicts(results, &phase.id);
            let of = rows.iter().filter_map(|row| {
                let name = row.contender.name.as_str();
                Some((name, *verdicts.get(name)?))
            });
            Some((*phase, of.collect()))
        });
        Decided { columns: columns.collect(), by_processor: true }.decided()
    }

    fn decided(mut self) -> Decided<'a> {
        self.columns.retain(|(_, all)| all.iter().any(|(_, s)| s.place != Place::Unranked));
        self
    }

    fn standing(&self, at: usize, name: &str) -> Option<Standing> {
        self.columns[at].1.iter().find(|(who, _)| *who == name).map(|(_, s)| *s)
    }

    fn leaders(&self, at: usize) -> Vec<&'a str> {
        let leads = self.columns[at].1.iter().filter(|(_, s)| s.place.leads());
        leads.map(|(name, _)| *name).collect()
    }

    /// Who leads in the most columns, alone rather than with others.
    fn first(&self) -> Option<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.columns.iter().flat_map(|(_, all)| all) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let score = |name: &str| {
            let of = (0..self.columns.len()).filter_map(|at| self.standing(at, name));
            let places: Vec<Place> = of.map(|s| s.place).collect();
            let lead = places.iter().filter(|p| p.leads()).count();
            (lead, places.iter().filter(|p| **p == Place::Best).count())
        };
        // The first of equals.
        names.into_iter().rev().max_by_key(|name| score(name))
    }

    /// These operations: all, by name, or how many.
    fn named(&self, columns: &[usize]) -> String {
        let all = self.columns.len();
        let word = match self.columns.first().is_some_and(|(phase, _)| phase.cache.is_some()) {
            true => "calls",
            false => "operations",
        };
        match columns.len() {
            n if n == all && all > 1 => format!("all {} {word}", whole(n as u64)),
            n if n > NAMED => format!("{n} of {all} {word}"),
            _ => {
                let names: Vec<String> =
                    columns.iter().map(|at| quoted(&self.columns[*at].0.name)).collect();
                list(&names)
            }
        }
    }
}

/// An operation's name; in quotes where it would fall apart in a list.
fn quoted(name: &str) -> String {
    match name.contains([',', ' ']) {
        true => format!("“{name}”"),
        false => name.to_owned(),
    }
}

/// `2.1 times`, `1.9 to 86 times`.
fn span(factors: impl Iterator<Item = f64>) -> Option<String> {
    let (low, high) = factors
        .filter(|f| f.is_finite())
        .fold((f64::INFINITY, 0.0f64), |(low, high), f| (low.min(f), high.max(f)));
    let (low, high) = (low.is_finite().then(|| times(low))?, times(high));
    Some(if low == high { format!("{low} times") } else { format!("{low} to {high} times") })
}

/// A factor to two digits, as nobody remembers more.
pub(super) fn times(factor: f64) -> String {
    match factor {
        ..9.95 => fixed(factor, 1),
        ..99.5 => fixed(factor, 0),
        _ => short((factor / 10.0).round() * 10.0),
    }
}

/// Who leads in a group, at what, and by how much; who leads where it does not.
fn leaders(results: &Results, decided: &Decided<'_>, group: &Group<'_>) -> Option<String> {
    let first = decided.first()?;
    let place = |at: usize| decided.standing(at, first).map(|s| s.place);
    let columns: Vec<usize> = (0..decided.columns.len()).collect();
    let of = |wanted: &dyn Fn(Place) -> bool| -> Vec<usize> {
        columns.iter().copied().filter(|at| place(*at).is_some_and(wanted)).collect()
    };
    let best = of(&|p| p == Place::Best);
    let shared = of(&|p| matches!(p, Place::Tied | Place::Undecided));
    if best.is_empty() && shared.is_empty() {
        return None;
    }
    let mut said = first.to_owned();
    if !best.is_empty() {
        let next = best
            .iter()
            .filter_map(|at| summary::ahead_of_next(results, group, &decided.columns[*at].0.id));
        let at = decided.named(&best);
        let much = span(next);
        said.push_str(&match (decided.by_processor, much) {
            (true, Some(much)) => {
                format!(" takes the least at {at} (the next takes {much} as much)")
            }
            (true, None) => format!(" takes the least at {at}"),
            (false, Some(much)) => {
                format!(" is the fastest at {at} ({much} as fast as the next)")
            }
            (false, None) => format!(" is the fastest at {at}"),
        });
    }
    if !shared.is_empty() {
        let and = if best.is_empty() { "" } else { " and" };
        let alike = shared.iter().all(|at| place(*at) == Some(Place::Tied));
        let (how, further) = match alike {
            true => ("is level with", ", and with "),
            false => ("cannot be told from", ", nor from "),
        };
        let with = sharers(decided, &shared, first).join(further);
        said.push_str(&format!("{and} {how} {with}"));
        if best.is_empty() {
            said.push_str(&slower(decided, &shared));
        }
    }
    said.push_str(&others(decided, &columns, first));
    Some(said)
}

/// Who shares the lead in these columns, each with those where it does: `msgpack and cbor at dump`, `json at load`.
fn sharers(decided: &Decided<'_>, columns: &[usize], first: &str) -> Vec<String> {
    let mut groups: Vec<(Vec<usize>, Vec<&str>)> = Vec::new();
    let mut seen: Vec<&str> = vec![first];
    for name in columns.iter().flat_map(|at| decided.leaders(*at)) {
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let leads = |at: &usize| decided.leaders(*at).contains(&name);
        let at: Vec<usize> = columns.iter().copied().filter(leads).collect();
        match groups.iter_mut().find(|group| group.0 == at) {
            Some(group) => group.1.push(name),
            None => groups.push((at, vec![name])),
        }
    }
    groups.sort_by_key(|(at, _)| std::cmp::Reverse(at.len()));
    let told = groups.iter().map(|(at, names)| {
        let who = match names.len() {
            n if n > NAMED => format!("{n} others"),
            _ => list(names),
        };
        format!("{who} at {}", decided.named(at))
    });
    told.take(NAMED).collect()
}

/// Who is behind in these columns, and how much longer it takes.
fn slower(decided: &Decided<'_>, columns: &[usize]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut factors: Vec<f64> = Vec::new();
    for (name, standing) in columns.iter().flat_map(|at| &decided.columns[*at].1) {
        if standing.place == Place::Behind {
            factors.extend(standing.factor);
            if !names.contains(name) {
                names.push(name);
            }
        }
    }
    let Some(span) = span(factors.into_iter()) else { return String::new() };
    let much = if decided.by_processor { "much" } else { "long" };
    match &names[..] {
        [one] => format!("; {one} takes {span} as {much}"),
        all if all.len() <= NAMED => format!("; {} take {span} as {much}", list(all)),
        all => format!("; {} others take {span} as {much}", all.len()),
    }
}

/// Who leads where the first does not, and by how much; the largest factor first.
fn others(decided: &Decided<'_>, columns: &[usize], first: &str) -> String {
    let mut groups: Vec<(Vec<&str>, Vec<usize>, Vec<f64>)> = Vec::new();
    for at in columns {
        let Some(standing) = decided.standing(*at, first).filter(|s| s.place == Place::Behind)
        else {
            continue;
        };
        let leaders = decided.leaders(*at);
        let factor = standing.factor.unwrap_or(f64::NAN);
        match groups.iter_mut().find(|g| g.0 == leaders) {
            Some(group) => {
                group.1.push(*at);
                group.2.push(factor);
            }
            None => groups.push((leaders, vec![*at], vec![factor])),
        }
    }
    let most = |g: &(Vec<&str>, Vec<usize>, Vec<f64>)| g.2.iter().copied().fold(0.0, f64::max);
    groups.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let mut said = String::new();
    for (leaders, at, factors) in groups.iter().take(EXCEPTIONS) {
        let who = match leaders.len() {
            n if n > NAMED => format!("{n} others"),
            _ => list(leaders),
        };
        let are = if leaders.len() == 1 { "is" } else { "are" };
        let much = span(factors.iter().copied()).unwrap_or_default();
        said.push_str(&match decided.by_processor {
            true => format!("; at {} it takes {much} as much as {who}", decided.named(at)),
            false => format!("; at {} {who} {are} {much} as fast", decided.named(at)),
        });
    }
    let rest: Vec<usize> = groups.iter().skip(EXCEPTIONS).flat_map(|g| g.1.clone()).collect();
    if !rest.is_empty() {
        said.push_str(&format!("; others lead at {}", decided.named(&rest)));
    }
    said
}

/// What is the smallest, where sizes were taken: as it is, and packed.
fn sizes(board: &Board<'_>) -> Option<String> {
    let (_, rows) = board.groups.iter().find(|(group, _)| group.is_ranked())?;
    let mut least: Vec<(f64, &str, &str)> = Vec::new();
    for (at, column) in board.columns.iter().enumerate() {
        let Column::Size(wrap) = column else { continue };
        let smallest = rows.iter().filter_map(|row| Some((row.scores[at]?.value, row)));
        if let Some((size, row)) = smallest.min_by(|a, b| a.0.total_cmp(&b.0)) {
            least.push((size, &row.contender.name, wrap));
        }
    }
    if rows.len() < 2 {
        return None;
    }
    let (plain, name, _) = least.iter().find(|(.., wrap)| wrap.is_empty())?;
    let mut said = format!("; {name} is the smallest ({})", bytes(*plain as u64));
    let packed = least.iter().min_by(|a, b| a.0.total_cmp(&b.0)).filter(|l| l.0 < *plain);
    if let Some((size, who, wrap)) = packed {
        let who = if who == name { "".to_owned() } else { format!("{who} ") };
        said.push_str(&format!(", and {who}in {wrap} takes {} % of that", percent(*size, *plain)));
    }
    Some(said)
}

/// What Base64 around the bytes adds, where that was measured.
fn wraps(results: &Results) -> Option<String> {
    let of = results.contrasts.iter().filter(|c| c.about == "dump+load + base64");
    let found: Vec<_> = of.filter_map(|c| c.versus).collect();
    let shown = found.iter().any(|v| v.verdict == Verdict::Slower);
    let added = |v: f64| fixed(100.0 * (v - 1.0), 0);
    let low = found.iter().map(|v| v.ratio.middle).fold(f64::INFINITY, f64::min);
    let high = found.iter().map(|v| v.ratio.middle).fold(0.0, f64::max);
    (shown && low > 1.0).then(|| match added(low) == added(high) {
        true => format!("; Base64 around the bytes adds {} % to dump and load", added(low)),
        false => format!(
            "; Base64 around the bytes adds {} to {} % to dump and load",
            added(low),
            added(high)
        ),
    })
}
