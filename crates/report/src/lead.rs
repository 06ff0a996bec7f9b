//! Who leads in a phase: one, several that are alike, or several that these rounds cannot tell apart.

use super::{
    number::{fixed, short, times},
    tables::ranked,
    words::list,
};
use steelyard_results::{Basis, Cell, Contender, Results, Verdict};

/// More than so many are not named one by one.
const FEW: usize = 3;

/// Those of whom none other was shown to be faster.
pub(super) struct Lead<'a> {
    results: &'a Results,
    /// The quickest first.
    pub cells: Vec<&'a Cell>,
    /// The others that were compared, the quickest first: each was shown to be slower than another.
    pub others: Vec<&'a Cell>,
    /// What is known of them.
    pub known: Known,
}

/// What is known of those who lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Known {
    /// It was the only one.
    Alone,
    /// It was shown to be faster than every other.
    First,
    /// Every two of them are alike within 3 %.
    Alike,
    /// They cannot be told apart.
    Unclear,
    /// Nothing: there were too few rounds, or no times that hold on a noisy machine.
    Untested,
}

/// Who leads in a phase, of those that `among` admits; `None` where none of them was timed.
pub(super) fn lead<'a>(
    results: &'a Results,
    phase: &str,
    among: impl Fn(&Contender) -> bool,
) -> Option<Lead<'a>> {
    let on_processor = on_processor_time(results);
    let timed = ranked(results, phase).into_iter().filter(|(c, cell)| {
        // Whose server nobody could look at has no processor time to be told beside others'.
        cell.summary.is_some() && among(c) && !(on_processor && hides_processor_time(c, cell))
    });
    let cells: Vec<&Cell> = timed.map(|t| t.1).collect();
    let all = cells.len();
    let answer = |of: &Cell, to: &Cell| {
        results.answer(&of.competitor, &to.competitor, phase).map(|v| v.verdict)
    };
    let decided = |verdict: Option<Verdict>| verdict.is_some_and(|v| v != Verdict::Untested);
    let judged: Vec<&Cell> = cells
        .iter()
        .copied()
        .filter(|cell| cells.iter().any(|other| decided(answer(cell, other))))
        .collect();
    let (known, leaders): (Option<Known>, Vec<&Cell>) = match (all, judged.len()) {
        (0, _) => return None,
        (1, _) => (Some(Known::Alone), cells.clone()),
        (_, 0) => (Some(Known::Untested), cells.clone()),
        _ => {
            let slower =
                |cell: &Cell| judged.iter().any(|o| answer(cell, o) == Some(Verdict::Slower));
            (None, judged.iter().copied().filter(|cell| !slower(cell)).collect())
        }
    };
    let alike = || {
        let mut pairs = leaders.iter().enumerate().flat_map(|(i, a)| {
            leaders[i + 1..].iter().map(move |b| answer(a, b) == Some(Verdict::Alike))
        });
        pairs.all(|alike| alike)
    };
    let known = known.unwrap_or_else(|| match leaders.len() {
        1 => Known::First,
        _ if alike() => Known::Alike,
        _ => Known::Unclear,
    });
    let leads = |cell: &Cell| leaders.iter().any(|l| std::ptr::eq(*l, cell));
    let others = judged.iter().copied().filter(|cell| !leads(cell)).collect();
    Some(Lead { results, cells: leaders, others, known })
}

/// True where answers are of processor time though times are elapsed ones: on a noisy machine, and of stores
/// with `--cpu`.
pub(super) fn on_processor_time(results: &Results) -> bool {
    let basis = results.family.as_ref().map_or(results.plan.basis, |family| family.basis);
    basis != results.figures() && basis == Basis::Processor
}

/// What a first one was not shown to be beaten in: `be faster`, on a noisy machine by processor time.
pub(super) fn be_faster(results: &Results) -> &'static str {
    match on_processor_time(results) {
        true => "take less processor time",
        false => "be faster",
    }
}

/// True where anybody has a rank.
pub(super) fn has_ranks(results: &Results) -> bool {
    results.cells.iter().filter_map(|cell| cell.summary.as_ref()).any(|s| s.group > 0)
}

/// True where the work is done by a server whose processor time is not known: one that is not ours.
pub(super) fn hides_processor_time(contender: &Contender, cell: &Cell) -> bool {
    let Some(kept) = &contender.store else { return false };
    let unseen = kept.server.is_some() && super::stores::server_ns(cell).is_none();
    kept.is_elsewhere() || unseen
}

/// Processor time of an operation in nanoseconds, the client's and its server's.
pub(super) fn processor(cell: &Cell) -> f64 {
    let own = cell.summary.as_ref().map_or(f64::INFINITY, |s| s.user_ns + s.system_ns);
    own + super::stores::server_ns(cell).unwrap_or(0.0)
}

impl Lead<'_> {
    /// What they lead with, behind the name of the phase: `(111,000 records/s; next: postgres,
    /// 71,300)`. `figure` says what one of them did; on a noisy machine it is processor time.
    pub(crate) fn told(&self, figure: &dyn Fn(&Cell) -> String, unit: &str) -> String {
        let (figure, unit): (&dyn Fn(&Cell) -> String, String) =
            match on_processor_time(self.results) {
                true => (&|cell| short(processor(cell) / 1e3), " µs of CPU".into()),
                false => (figure, unit.to_owned()),
            };
        let first = self.cells[0];
        match self.known {
            Known::Alone => format!("({}{unit})", figure(first)),
            Known::First => match self.others.first() {
                Some(next) => format!(
                    "({}{unit}; next: {}, {})",
                    figure(first),
                    next.competitor,
                    figure(next)
                ),
                None => format!("({}{unit})", figure(first)),
            },
            Known::Alike | Known::Untested | Known::Unclear if self.cells.len() > FEW => {
                let last = self.cells[self.cells.len() - 1];
                format!(
                    "({} of them, {} to {}{unit}{})",
                    self.cells.len(),
                    figure(first),
                    figure(last),
                    self.behind()
                )
            }
            Known::Alike | Known::Untested => {
                let each: Vec<String> = (self.cells.iter())
                    .map(|c| format!("{} {}", c.competitor, figure(c)))
                    .collect();
                format!("({}{unit}{})", list(&each), self.behind())
            }
            Known::Unclear => {
                let each = |cell: &&Cell| {
                    let versus =
                        self.results.answer(&cell.competitor, &first.competitor, &first.phase);
                    let span = versus.and_then(|v| v.joint).map_or(String::new(), |(low, high)| {
                        let much = if on_processor_time(self.results) { "much" } else { "long" };
                        format!(", {} to {} times as {much}", span(low), span(high))
                    });
                    format!("{} {}{span}", cell.competitor, figure(cell))
                };
                let others: Vec<String> = self.cells[1..].iter().map(each).collect();
                format!(
                    "({} {}{unit}; {}{})",
                    first.competitor,
                    figure(first),
                    others.join("; "),
                    self.behind()
                )
            }
        }
    }

    /// Those that do not lead, behind several that do: `; slower: folder 2.5 times`.
    fn behind(&self) -> String {
        // Each with how many times as long as the first of the leaders it takes.
        let first = self.cells[0];
        let told = |cell: &&Cell| {
            let versus = self.results.answer(&cell.competitor, &first.competitor, &first.phase);
            let ratio = versus.map_or(String::new(), |v| format!(" {}", times(v.ratio.middle)));
            format!("{}{ratio}", cell.competitor)
        };
        let named: Vec<String> = self.others.iter().map(told).collect();
        let who = match named.len() {
            0 => return String::new(),
            1..=FEW => list(&named),
            n => format!("{n} others"),
        };
        let how = if on_processor_time(self.results) { "more" } else { "slower" };
        format!("; {how}: {who}")
    }
}

/// Who leads in which of several phases, those with the same leader together: each with what
/// [`Lead::told`] says of it behind the phase's name. `fastest` is what the first leader of all does.
pub(super) fn told<'a>(
    leads: impl Iterator<Item = (Lead<'a>, String)>,
    fastest: &str,
) -> Option<String> {
    let mut groups: Vec<(Known, Option<String>, Vec<String>)> = Vec::new();
    for (lead, what) in leads {
        // Of several, the names stand with their figures.
        let one = matches!(lead.known, Known::Alone | Known::First);
        let who = one.then(|| lead.cells[0].competitor.clone());
        match groups.iter_mut().find(|g| (g.0, &g.1) == (lead.known, &who)) {
            Some(group) => group.2.push(what),
            None => groups.push((lead.known, who, vec![what])),
        }
    }
    groups.sort_by_key(|group| group.0);
    let mut first = true;
    let mut part = |(known, who, what): &(Known, Option<String>, Vec<String>)| {
        let (who, what) = (who.as_deref().unwrap_or_default(), list(what));
        match known {
            Known::Alone => format!("{who} alone, {what}"),
            Known::First if std::mem::take(&mut first) => format!("{who} {fastest} at {what}"),
            Known::First => format!("{who} at {what}"),
            Known::Alike => format!("alike within 3 %: {what}"),
            Known::Unclear => format!("cannot tell: {what}"),
            Known::Untested => format!("not compared: {what}"),
        }
    };
    let parts: Vec<String> = groups.iter().map(&mut part).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// An end of an interval of a ratio.
fn span(v: f64) -> String {
    match v {
        ..0.1 => "under 0.1".into(),
        ..10.0 => fixed(v, 2),
        ..=100.0 => short(v),
        _ => "over 100".into(),
    }
}
