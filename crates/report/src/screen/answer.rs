//! The answer in a few sentences: only what the verdicts of the run allow.

use super::{
    super::{
        lead::{Known, Lead, lead, on_processor_time},
        number::{bytes, short},
        words::list,
    },
    named, rate_unit,
    table::{Group, capital, factor, groups, phases},
};
use steelyard_results::{Contender, Phase, Results};

/// The most lines it takes.
pub(super) const LINES: usize = 8;
/// So many phases are spoken of, so many groups of stores.
const PHASES: usize = 4;
const GROUPS: usize = 2;

const NOTHING: &str = "Nothing is ranked: there were too few rounds.";

/// Empty where nothing was measured.
pub(super) fn answer(results: &Results) -> String {
    if results.bench == "tenants" {
        return super::super::tenants::answer(results);
    }
    let mut said: Vec<String> = Vec::new();
    let groups: Vec<Group<'_>> = groups(results);
    let compared = |group: &&Group<'_>| group.members.len() > 1;
    let several = groups.iter().filter(|group| group.class.is_some()).count() > 1;
    for group in groups.iter().filter(compared).take(GROUPS) {
        let told = of_group(results, group);
        said.extend(match (told.is_empty(), group.class) {
            (true, _) => None,
            (false, Some(class)) if several => {
                Some(format!("{}: {told}", capital(&class.phrase())))
            }
            (false, _) => Some(told),
        });
    }
    if !said.is_empty() && said.iter().all(|told| told.ends_with(NOTHING)) {
        return [Some(NOTHING.to_owned()), smallest(results)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ");
    }
    if said.is_empty() {
        said.extend(alone(results, &groups));
    }
    if several {
        said.push("Stores of different durability are not ranked against each other.".into());
    }
    said.extend(smallest(results));
    said.join(" ")
}

/// What can be said of those that are compared with each other.
fn of_group(results: &Results, group: &Group<'_>) -> String {
    let chosen = phases(results).into_iter().take(PHASES);
    let leads: Vec<(&Phase, Lead<'_>)> = chosen
        .filter_map(|phase| Some((phase, lead(results, &phase.id, |c| group.has(&c.name))?)))
        .collect();
    let decided = |known: Known| !matches!(known, Known::Untested | Known::Alone);
    if leads.iter().all(|(_, lead)| lead.known == Known::Untested) && !leads.is_empty() {
        return NOTHING.into();
    }
    let mut sentences: Vec<String> = Vec::new();
    // Each winner once, with all that it wins.
    let mut winners: Vec<(&str, Vec<String>)> = Vec::new();
    for (phase, lead) in leads.iter().filter(|(_, lead)| lead.known == Known::First) {
        let first = lead.cells[0];
        let ratio = |next: &str| {
            let versus = results.answer(next, &first.competitor, &phase.id)?;
            Some(versus.ratio.middle)
        };
        let behind =
            lead.others.iter().filter_map(|c| Some((&c.competitor, ratio(&c.competitor)?)));
        let next = behind.min_by(|a, b| a.1.total_cmp(&b.1));
        let next = next.map(|(name, ratio)| format!("next: {name}, {}", factor(ratio)));
        let won = match next {
            Some(next) => format!("{} ({next})", phase.name),
            None => phase.name.clone(),
        };
        match winners.iter_mut().find(|(name, _)| *name == first.competitor) {
            Some((_, all)) => all.push(won),
            None => winners.push((&first.competitor, vec![won])),
        }
    }
    let does = match on_processor_time(results) {
        true => "takes the least processor time",
        false => "is the fastest",
    };
    for (name, won) in &winners {
        sentences.push(format!("{name} {does} at {}.", list(won)));
    }
    for (known, how) in
        [(Known::Alike, "are alike within 3 %"), (Known::Unclear, "cannot be told apart")]
    {
        for (phase, lead) in leads.iter().filter(|(_, lead)| lead.known == known) {
            let names: Vec<&str> = lead.cells.iter().map(|c| c.competitor.as_str()).collect();
            sentences.push(format!("At {}, {} {how}.", phase.name, named(&names)));
        }
    }
    debug_assert!(sentences.is_empty() || leads.iter().any(|(_, lead)| decided(lead.known)));
    sentences.join(" ")
}

/// The rates of those that were compared with nobody.
fn alone(results: &Results, groups: &[Group<'_>]) -> Option<String> {
    let one = groups.iter().find_map(|group| match &group.members[..] {
        [one] => Some(*one),
        _ => None,
    })?;
    let rate = |phase: &&Phase| {
        let ns = results.cell(&one.name, &phase.id)?.summary.as_ref()?.ns.middle;
        Some(format!("{} {} {}", phase.name, short(1e9 / ns), rate_unit(results, phase)))
    };
    let rates: Vec<String> = phases(results).iter().take(PHASES).filter_map(rate).collect();
    (!rates.is_empty()).then(|| format!("{}: {}.", one.name, list(&rates)))
}

/// The smallest formats that lose nothing, plain and packed. Other benches show no sizes on their screen.
fn smallest(results: &Results) -> Option<String> {
    if results.bench != "formats" {
        return None;
    }
    let keeps = |c: &&Contender| !c.null && c.proof.as_ref().is_some_and(|p| p.equal == p.records);
    // All that are as small as the smallest.
    let least = |wrap: &str| {
        let sized = results.competitors.iter().filter(keeps);
        let sized: Vec<_> =
            sized.filter_map(|c| Some((c.name.as_str(), *c.sizes.get(wrap)?))).collect();
        let least = sized.iter().map(|(_, size)| *size).min()?;
        let names: Vec<&str> = sized.iter().filter(|s| s.1 == least).map(|s| s.0).collect();
        Some((named(&names), least))
    };
    let (names, size) = least("")?;
    let packed = match least("zstd") {
        Some((same, size)) if same == names => format!(", also with zstd ({})", bytes(size)),
        Some((others, size)) => format!("; with zstd: {others} ({})", bytes(size)),
        None => String::new(),
    };
    Some(format!("Smallest: {names} ({}){packed}.", bytes(size)))
}
