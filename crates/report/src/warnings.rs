//! What a reader must know before believing a figure: each warning with a label of a few words and a
//! sentence or two.

use super::{
    lead::{has_ranks, on_processor_time},
    marks,
    number::{fixed, percent, short, whole},
    words::list,
};
use steelyard_results::{Contender, FEWEST, Results, Stopped, Tally};

/// A label is cut at so many characters.
const LABEL: usize = 44;

/// A warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Warning {
    /// In a few words: `Noisy machine`.
    pub label: String,
    /// What it means, and what to do.
    pub text: String,
}

fn warning(label: impl Into<String>, text: impl Into<String>) -> Warning {
    Warning { label: label.into(), text: text.into() }
}

/// All of them, the gravest first.
pub(super) fn warnings(results: &Results) -> Vec<Warning> {
    let mut found = Vec::new();
    found.extend(unoptimised(results));
    found.extend(ended(results));
    found.extend(starts(results));
    found.extend(noisy(results));
    found.extend(slowed(results));
    found.extend(refused(results));
    found.extend(failed(results));
    found.extend(behind(results));
    found.extend(durability(results));
    found.extend(lossy(results));
    found.extend(unsettled(results));
    found.extend(network(results));
    found
        .extend(results.dataset.remarks.iter().map(|remark| warning(cut(remark), remark.as_str())));
    found.extend(marks::over_budget(results).map(|text| warning("Over budget", text)));
    found
}

/// The beginning of a remark, up to its first stop.
fn cut(remark: &str) -> String {
    let end = remark.find([':', ';', ',']).unwrap_or(remark.len());
    let head = remark[..end].trim_end_matches('.');
    match head.char_indices().nth(LABEL) {
        None => head.to_owned(),
        Some((at, _)) => {
            let words = head[..at].rsplit_once(' ').map_or(&head[..at], |(words, _)| words);
            format!("{words}…")
        }
    }
}

/// Those that took part.
fn measured(results: &Results) -> impl Iterator<Item = &Contender> {
    results.competitors.iter().filter(|c| !c.null && c.refused.is_none())
}

/// `SQLite`, `3 stores`: one by its name, several by their number.
fn counted(results: &Results, names: &[&str]) -> String {
    let many = match results.bench.as_str() {
        "stores" => "stores",
        "cache" => "clients",
        "tenants" => "ways",
        _ => "formats",
    };
    match names {
        [one] => (*one).to_owned(),
        all => format!("{} {many}", all.len()),
    }
}

fn unoptimised(results: &Results) -> Option<Warning> {
    let level =
        results.software.get("opt-level").filter(|level| matches!(level.as_str(), "0" | "1"))?;
    Some(warning(
        "Debug build",
        format!(
            "This program was built without optimisation (opt-level {level}), so its figures say \
             little. Build it with --release and run it again."
        ),
    ))
}

/// How the run ended, where that was not as planned.
fn ended(results: &Results) -> Option<Warning> {
    match results.stopped {
        None => Some(warning(
            "Incomplete",
            "The run broke off. The figures are of the rounds it finished.",
        )),
        Some(Stopped::Interrupted) => Some(warning(
            "Interrupted",
            "The run was interrupted. The figures are of the rounds it finished.",
        )),
        Some(Stopped::Precise | Stopped::Budget | Stopped::Rounds) => None,
    }
}

/// Fewer starts than ranks take, or than were planned.
fn starts(results: &Results) -> Option<Warning> {
    let had = marks::starts(results);
    if had == 0 {
        return None;
    }
    let starts = if had == 1 { "1 start".to_owned() } else { format!("{had} starts") };
    let wanted = marks::wanted(results);
    let enough = |wanted: u32| {
        let seconds = results.seconds * f64::from(wanted) / f64::from(had);
        format!("--budget {}", (seconds / 10.0).ceil() * 10.0)
    };
    if (had as usize) < FEWEST {
        let more = match results.stopped {
            Some(Stopped::Budget) => {
                format!(" {} should be enough.", enough(wanted.max(FEWEST as u32)))
            }
            _ => String::new(),
        };
        return Some(warning(
            format!("Only {starts}"),
            format!(
                "This run made {starts} with fresh data. Ranks and intervals take at least {FEWEST}, \
                 so there are none here.{more}"
            ),
        ));
    }
    (results.stopped == Some(Stopped::Budget) && had < wanted).then(|| {
        warning(
            format!("{had} of {wanted} starts"),
            format!(
                "The budget of {} s ended the run after {starts} instead of {wanted}, so intervals are \
                 wide. {} should be enough.",
                short(results.plan.stop.budget),
                enough(wanted)
            ),
        )
    })
}

fn noisy(results: &Results) -> Option<Warning> {
    let (share, noisy) = results.noise();
    let so = match (on_processor_time(results), has_ranks(results)) {
        (true, true) => {
            "Elapsed times are not ranked; ranks in the tables are by processor time (client and \
             server), which does not count waiting."
        }
        (true, false) => "Elapsed times are not ranked.",
        (false, _) => "Times are longer than on an idle machine.",
    };
    noisy.then(|| {
        let share = fixed(100.0 * share, 0);
        let text = format!("Other programs disturbed {share} % of the comparisons. {so}");
        warning("Noisy machine", text)
    })
}

fn slowed(results: &Results) -> Option<Warning> {
    let (share, most) = results.slowed().filter(|(share, _)| !results.noise().1 && *share > 0.1)?;
    Some(warning(
        "Processor slowed",
        format!(
            "The processor ran up to {} times slower than at its best, and over 10 % slower before {} % \
             of the turns, though nothing else ran on this machine. Another virtual machine shares its \
             core, or its clock changes. More rounds narrow the intervals.",
            fixed(most, 1),
            fixed(100.0 * share, 0)
        ),
    ))
}

fn refused(results: &Results) -> Option<Warning> {
    let why = |c: &Contender| Some(format!("{}: {}", c.name, c.refused.as_ref()?));
    let all: Vec<String> = results.competitors.iter().filter(|c| !c.null).filter_map(why).collect();
    let names: Vec<&str> = results
        .competitors
        .iter()
        .filter(|c| !c.null && c.refused.is_some())
        .map(|c| c.name.as_str())
        .collect();
    let text = format!("Not measured: {}.", all.join("; "));
    (!all.is_empty()).then(|| warning(format!("{} not measured", counted(results, &names)), text))
}

/// Operations that did not do what they were to do (rule 2).
fn failed(results: &Results) -> Option<Warning> {
    let mut all = Vec::new();
    for c in measured(results) {
        let of = results.cells.iter().filter(|cell| cell.competitor == c.name);
        let tally = of.filter_map(|cell| cell.tally).fold(Tally::default(), Tally::plus);
        let what = [(tally.failed, "failed"), (tally.missed, "found nothing")];
        let what = what.into_iter().filter(|(n, _)| *n > 0);
        let what: Vec<String> = what.map(|(n, how)| format!("{} {how}", whole(n))).collect();
        if !what.is_empty() {
            all.push(format!("{} ({})", c.name, what.join(", ")));
        }
    }
    let text = format!("Only operations that succeeded are counted. Others: {}.", all.join("; "));
    (!all.is_empty()).then(|| warning("Failed operations", text))
}

/// Open loops that fell behind their plan.
fn behind(results: &Results) -> Option<Warning> {
    let late = |cell: &&steelyard_results::Cell| cell.tally.is_some_and(|t| t.fell_behind());
    let said = results.cells.iter().filter(late).filter_map(|cell| {
        let phase = results.phase(&cell.phase).filter(|p| p.is_open())?;
        let tally = cell.tally?;
        let done = (tally.planned() - tally.skipped).saturating_sub(tally.failed);
        let share = percent(done as f64, tally.planned() as f64);
        Some(format!("{} at {} ({share} % done)", cell.competitor, phase.name))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| {
        warning(
            "Did not keep up",
            format!(
                "These did not do all operations that were planned, and their latencies leave out the \
                 rest: {}.",
                said.join("; ")
            ),
        )
    })
}

/// Stores whose durability is not what was asked for, or not known.
fn durability(results: &Results) -> Vec<Warning> {
    let stores = || measured(results).filter_map(|c| Some((c, &c.store.as_ref()?.durability)));
    let mut found = Vec::new();
    let broken: Vec<_> = stores().filter(|(_, d)| d.broken).collect();
    if !broken.is_empty() {
        let names: Vec<&str> = broken.iter().map(|(c, _)| c.name.as_str()).collect();
        let why = broken.iter().map(|(c, d)| match &d.remark {
            Some(why) => format!("{} ({why})", c.name),
            None => c.name.clone(),
        });
        let why: Vec<String> = why.collect();
        found.push(warning(
            format!("{} less durable than promised", counted(results, &names)),
            format!("Less durable than asked for or promised, so not ranked: {}.", list(&why)),
        ));
    }
    let unknown = stores().filter(|(_, d)| !d.class().is_ranked() && !d.class().is_broken());
    let names: Vec<&str> = unknown.map(|(c, _)| c.name.as_str()).collect();
    if !names.is_empty() {
        found.push(warning(
            "Durability unknown",
            format!("Nothing is known of the durability of {}, so it is not ranked.", list(&names)),
        ));
    }
    found
}

/// Competitors that change records.
fn lossy(results: &Results) -> Option<Warning> {
    let changes = |c: &&Contender| c.proof.as_ref().is_some_and(|p| p.changed() + p.refused > 0);
    let names: Vec<&str> = measured(results).filter(changes).map(|c| c.name.as_str()).collect();
    let verb = if names.len() == 1 { "changes" } else { "change" };
    (!names.is_empty()).then(|| {
        warning(
            format!("{} {verb} values", counted(results, &names)),
            format!(
                "Some values come back changed, or not at all, from {}. See Fidelity.",
                list(&names)
            ),
        )
    })
}

/// Figures whose warm-up did not become steady (rule 7).
fn unsettled(results: &Results) -> Option<Warning> {
    let null = |name: &str| results.competitor(name).is_some_and(|c| c.null);
    let timed = || results.cells.iter().filter(|c| !c.rounds.is_empty() && !null(&c.competitor));
    let (not, all) = (timed().filter(|c| !c.settled).count(), timed().count());
    (not > 0).then(|| {
        warning(
            format!("{not} of {all} figures not steady"),
            "Their warm-up did not become steady: the last 7 windows differ by over 7.5 %, or drift. \
             They are marked * in the tables.",
        )
    })
}

fn network(results: &Results) -> Option<Warning> {
    let network = results.network?;
    let ms = |ns: u64| short(ns as f64 / 1e6);
    Some(warning(
        format!("{} ms network round trip", ms(network.round_trip_ns)),
        format!(
            "A relay added {} ms of network round trip between client and server ({} ms as measured; the \
             relay itself takes {} µs). Stores in this process have no network.",
            ms(network.round_trip_ns),
            ms(network.measured_ns),
            short(network.relay_ns as f64 / 1e3)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_end_at_a_word() {
        assert_eq!(cut("2 records are left out."), "2 records are left out");
        assert_eq!(
            cut("couchdb broke in phase query, and was left out"),
            "couchdb broke in phase query"
        );
        let long = cut("couchdb is measured on express-pouchdb which is not the product");
        assert!(long.ends_with('…') && long.chars().count() <= LABEL + 1, "{long}");
        assert_eq!(cut(""), "");
        assert!(cut(&"é".repeat(99)).chars().count() <= LABEL + 1);
    }
}
