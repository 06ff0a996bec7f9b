//! A run beside earlier ones: what became faster and what slower, after what else differs between
//! the runs.

use super::{
    chart::{Chart, Plot, Ratio, Ratios},
    csv::{push_row, show, verdict as word},
    html::{self, Document, Front},
    markup::escaped,
    number::{NONE, fixed, ranged, short, times, whole},
    page::{Page, Section, Table},
    svg::svg as drawn,
    text as looks,
    visible::made_visible,
    words::{list, moment},
};
use steelyard_results::{
    Bar, Basis, Comparison, Control, Controlled, Difference, Figure, Json, Pair, Run, Verdict,
};

/// A longer list is only counted.
const MANY: usize = 6;

/// As text for a terminal.
pub fn text(comparisons: &[Comparison]) -> String {
    looks::text(&page(&seen(comparisons)))
}

/// As Markdown.
pub fn markdown(comparisons: &[Comparison]) -> String {
    looks::markdown(&page(&seen(comparisons)))
}

/// As an SVG picture: each ratio with its interval.
pub fn svg(comparisons: &[Comparison]) -> String {
    drawn(&page(&seen(comparisons)))
}

/// As an HTML page in one file.
pub fn html(comparisons: &[Comparison]) -> String {
    let comparisons = &seen(comparisons)[..];
    let page = page(comparisons);
    Document {
        front: Front {
            question: question(comparisons),
            answer: page.lead.clone(),
            ..Front::default()
        },
        page: &page,
        kicker: "steelyard report".into(),
        about: about(comparisons),
        json: Json::list_to_json(comparisons),
        csv: csv(comparisons),
    }
    .written()
}

/// As CSV: a row for each comparison of a competitor in a phase.
pub fn csv(comparisons: &[Comparison]) -> String {
    let mut out = String::from(
        "bench,competitor,phase,new_started,old_started,new_ns,new_ns_low,new_ns_high,old_ns,\
         old_ns_low,old_ns_high,ratio,ratio_low,ratio_high,p,p_adjusted,verdict,comparable\n",
    );
    for c in &seen(comparisons) {
        for pair in &c.pairs {
            let v = &pair.versus;
            let fields = [
                c.bench.clone(),
                pair.competitor.clone(),
                pair.phase.clone(),
                c.new.started.clone(),
                c.old.started.clone(),
                pair.new.middle.to_string(),
                show(pair.new.low),
                show(pair.new.high),
                pair.old.middle.to_string(),
                show(pair.old.low),
                show(pair.old.high),
                v.ratio.middle.to_string(),
                show(v.ratio.low),
                show(v.ratio.high),
                v.p.to_string(),
                v.adjusted.to_string(),
                word(v.verdict).into(),
                c.holds(pair).to_string(),
            ];
            push_row(&mut out, fields.iter().map(String::as_str));
        }
    }
    out
}

/// With nothing hidden in any text.
fn seen(comparisons: &[Comparison]) -> Vec<Comparison> {
    comparisons.iter().map(|c| made_visible(c).into_owned()).collect()
}

fn page(comparisons: &[Comparison]) -> Page {
    let mut page = Page { title: title(comparisons), ..Page::default() };
    if comparisons.is_empty() {
        page.lead.push("There is no earlier run to compare with.".into());
    }
    for c in comparisons {
        page.lead.extend(verdict(c));
        page.sections.extend(differences(c));
        page.sections.extend(controls(c));
        page.sections.push(pairs(c));
    }
    page.notes = notes(comparisons);
    page
}

fn title(comparisons: &[Comparison]) -> String {
    let Some(first) = comparisons.first() else { return "Nothing to compare".into() };
    let than = match comparisons {
        [one] if one.interleaved => with(one),
        [one] => format!("that of {}", moment(&one.old.started)),
        several => format!("{} earlier ones", several.len()),
    };
    format!("{}: the run of {} and {than}", first.bench, moment(&first.new.started))
}

/// The title of the page.
fn question(comparisons: &[Comparison]) -> String {
    match comparisons {
        [] => "Nothing to compare".into(),
        [one] if one.interleaved => "Is the newer program faster than the older one?".into(),
        [one] => format!("What changed since {}?", with(one)),
        several => format!("What changed since {} earlier runs?", several.len()),
    }
}

/// What a run is compared with: `the run of 2026-11-22 09:00`.
pub fn with(c: &Comparison) -> String {
    match c.interleaved {
        true => "the older program".into(),
        false => format!("the run of {}", moment(&c.old.started)),
    }
}

/// Why the runs, or some of their figures, cannot be compared, each in a phrase.
pub fn bars(c: &Comparison) -> Vec<String> {
    let said = match c.barred() {
        Some(Bar::Difference(_)) => {
            let others = c.differences.iter().filter(|d| d.bars && d.competitor.is_none());
            let others: Vec<String> = others
                .map(|d| format!("{} ({}, then {})", d.what, or_none(&d.new), or_none(&d.old)))
                .collect();
            vec![format!("the runs differ in {}", list(&others))]
        }
        Some(Bar::Noise) => {
            let when = match (c.new.noisy, c.old.noisy) {
                (true, true) => "during both runs",
                (true, false) => "during the newer run",
                (false, _) => "during the older run",
            };
            vec![format!("something else used the machine {when}")]
        }
        Some(Bar::Uncontrolled) => vec!["they have no control in common".into()],
        Some(Bar::Control(_)) | None => Vec::new(),
    };
    if !said.is_empty() {
        return said;
    }
    let mut said: Vec<String> = (c.controls.iter())
        .filter(|control| control.differs && bites(c, control))
        .map(|control| {
            let by = 100.0 * (control.ratio.middle - 1.0).abs();
            format!("the control ({}) differed by {} %", name(control), fixed(by, 0))
        })
        .collect();
    let unlike: Vec<String> = (c.differences.iter())
        .filter(|d| d.bars)
        .filter_map(|d| Some(format!("{} ({}, then {})", d.competitor.as_ref()?, d.new, d.old)))
        .collect();
    if !unlike.is_empty() {
        said.push(format!("of another durability than then: {}", list(&unlike)));
    }
    said
}

/// Whether a control keeps anything from being compared.
fn bites(c: &Comparison, control: &Control) -> bool {
    match control.what {
        Controlled::Spin => true,
        Controlled::Sync => c.pairs.iter().any(|p| p.syncs),
        Controlled::Null => c.pairs.iter().any(|p| Some(&p.phase) == control.phase.as_ref()),
    }
}

fn name(control: &Control) -> String {
    match (control.what, &control.phase) {
        (Controlled::Null, Some(phase)) => format!("null competitor in {phase}"),
        (Controlled::Null, None) => "null competitor".into(),
        (Controlled::Spin, _) => "a loop of arithmetic".into(),
        (Controlled::Sync, _) => "a synced write".into(),
    }
}

/// What bars a comparison first, then what became of whom.
fn verdict(c: &Comparison) -> Vec<String> {
    let mut said = Vec::new();
    let than = format!("Compared with {}", with(c));
    let bars = bars(c);
    if !c.pairs.iter().any(|p| c.holds(p)) && !bars.is_empty() {
        said.push(format!(
            "{than}: not comparable: {}. The ratios below say nothing of the program.",
            list(&bars)
        ));
        if !c.interleaved && !matches!(c.barred(), Some(Bar::Difference(_))) {
            said.push(
                "On a shared machine, compare within one run: two builds of this program by --against \
                 OLD_BINARY, two stores or settings by --on NAME=STORE."
                    .into(),
            );
        }
        return said;
    }
    if !bars.is_empty() {
        said.push(format!("Left out as not comparable: {}.", list(&bars)));
    }
    let with = |verdict: Verdict| -> Vec<&Pair> {
        let of = |p: &&Pair| c.holds(p) && p.versus.verdict == verdict;
        let mut pairs: Vec<&Pair> = c.pairs.iter().filter(of).collect();
        pairs.sort_by(|a, b| away(b).total_cmp(&away(a)));
        pairs
    };
    let (slower, faster) = (with(Verdict::Slower), with(Verdict::Faster));
    let same = with(Verdict::CannotTell).len() + with(Verdict::Alike).len();
    let all = slower.len() + faster.len() + same;
    let few = c.pairs.iter().filter(|p| c.holds(p)).filter_map(Pair::few).min();
    said.push(match (all, slower.len() + faster.len()) {
        (0, _) if few.is_some() => {
            let few = few.unwrap_or(0);
            let rounds = if few == 1 { "round" } else { "rounds" };
            format!("{than}: {few} {rounds}: too few to tell anything; 5 at least in both.")
        }
        (0, _) => format!("{than}: the two have nothing in common that can be compared."),
        (1, 0) => format!("{than}: no difference was shown."),
        (all, 0) => format!("{than}: no difference was shown in any of {}.", whole(all as u64)),
        (all, _) => {
            let mut parts = Vec::new();
            if !slower.is_empty() {
                parts.push(told(&slower, "slower"));
            }
            if !faster.is_empty() {
                parts.push(told(&faster, "faster"));
            }
            if same > 0 {
                parts.push(format!("for {same} no difference was shown"));
            }
            format!("{than}, of {} comparisons {}.", whole(all as u64), parts.join("; "))
        }
    });
    if c.interleaved && (c.new.noisy || c.old.noisy) {
        said.push(
            "Noisy: something else used the machine, so that these are processor times, which it \
             touches less."
                .into(),
        );
    }
    for (run, which) in [(&c.new, "newer"), (&c.old, "older")] {
        if run.incomplete {
            said.push(format!("The {which} run was broken off: these are the rounds it had."));
        }
    }
    said
}

/// How far a ratio is from 1, either way.
fn away(pair: &Pair) -> f64 {
    pair.versus.ratio.middle.ln().abs()
}

/// `2 are slower: json decode (1.12 times as long), …`.
fn told(pairs: &[&Pair], how: &str) -> String {
    let one = |p: &&Pair| {
        let ratio = p.versus.ratio.middle;
        let ratio = if ratio < 2.0 { format!("{} times", fixed(ratio, 2)) } else { times(ratio) };
        format!("{} {} ({ratio} as long)", p.competitor, p.phase)
    };
    let named: Vec<String> = pairs.iter().take(MANY).map(one).collect();
    let more = match pairs.len().saturating_sub(MANY) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let verb = if pairs.len() == 1 { "is" } else { "are" };
    format!("{} {verb} {how}: {}{more}", pairs.len(), named.join(", "))
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// What else differs, whether it bars the comparison or not.
fn differences(c: &Comparison) -> Option<Section> {
    let mut table = Table::new(&["<", "<now", "<then", "<so"]);
    let so = |d: &Difference| match (d.bars, &d.competitor) {
        (true, None) => "not comparable".into(),
        (true, Some(name)) => format!("{name} is not comparable"),
        (false, _) => String::new(),
    };
    for d in &c.differences {
        table.rows.push(vec![
            d.what.clone(),
            or_none(&d.new).to_owned(),
            or_none(&d.old).to_owned(),
            so(d),
        ]);
    }
    let only = |names: &[String], when: &str| match names.len() {
        0 => None,
        n if n > 3 * MANY => Some(format!("only {when}: {n}")),
        _ => Some(format!("only {when}: {}", names.join(", "))),
    };
    let footnotes: Vec<String> =
        [only(&c.only_new, "now"), only(&c.only_old, "then")].into_iter().flatten().collect();
    let nothing = table.rows.is_empty() && footnotes.is_empty();
    (!nothing).then(|| Section {
        title: format!("What differs from {}", with(c)),
        table: match table.rows.is_empty() {
            true => Table::default(),
            false => table.without_empty_columns(),
        },
        footnotes,
        ..Section::default()
    })
}

/// What is the same in both runs whatever was measured.
fn controls(c: &Comparison) -> Option<Section> {
    let mut table = Table::new(&["<control", "now / then", "<so"]);
    for control in &c.controls {
        let so = if control.differs { "differs" } else { "" };
        let ratio = control.ratio;
        table.rows.push(vec![name(control), interval(ratio), so.into()]);
    }
    let drift = c.drift?;
    (!c.controls.is_empty()).then(|| Section {
        title: "Controls".into(),
        about: format!(
            "What is the same in both runs, whatever program was measured. Together they took {} \
             times as long as then: ratios below are divided by that, and their intervals are wider \
             by how far the controls differ. What depends on a control that differs is not compared.",
            fixed(drift, 3)
        ),
        table: table.without_empty_columns(),
        ..Section::default()
    })
}

fn pairs(c: &Comparison) -> Section {
    let time = match c.plan.basis {
        Basis::Elapsed => "Microseconds",
        Basis::Processor => "Microseconds of processor time",
    };
    let mut table =
        Table::new(&["<", "<phase", "now", "then", "now / then", "<verdict", "p", "starts"]);
    let mut barred = false;
    for pair in &c.pairs {
        let v = &pair.versus;
        let verdict = match (c.holds(pair), pair.few(), v.verdict) {
            (false, ..) => {
                barred = true;
                "not comparable".to_owned()
            }
            (_, Some(1), _) => "1 round: too few".into(),
            (_, Some(few), _) => format!("{few} rounds: too few"),
            (.., Verdict::Faster) => "faster".into(),
            (.., Verdict::Slower) => "slower".into(),
            (.., Verdict::Alike) => "alike within 3 %".into(),
            (.., Verdict::CannotTell | Verdict::Untested) => "cannot tell".into(),
        };
        let few = pair.few().is_some();
        table.rows.push(vec![
            pair.competitor.clone(),
            pair.phase.clone(),
            time_of(pair.new),
            time_of(pair.old),
            ratio(pair),
            verdict,
            if few || !c.holds(pair) { NONE.into() } else { short_p(v.adjusted) },
            format!("{} / {}", pair.starts.0, pair.starts.1),
        ]);
    }
    let mut footnotes = Vec::new();
    if barred {
        footnotes.push("not comparable: see above".to_owned());
    }
    Section {
        title: match c.interleaved {
            true => "The newer program (now) and the older one (then), in turns".into(),
            false => format!("Now and on {}", moment(&c.old.started)),
        },
        about: format!(
            "{time} an operation, medians. now / then{}: above 1 it became slower; with its interval.",
            match c.drift {
                Some(_) => ", less what the controls drifted by",
                None => "",
            }
        ),
        table: table.without_empty_columns(),
        footnotes,
        charts: charts(c),
        ..Section::default()
    }
}

/// Microseconds, with their interval where there is one.
fn time_of(ns: Figure) -> String {
    match ns.low.is_some() {
        true => ranged(&ns.scaled(1e-3)),
        false => short(ns.middle / 1e3),
    }
}

/// A ratio with both ends of its interval, which is not as wide on both sides.
fn ratio(pair: &Pair) -> String {
    interval(pair.versus.ratio)
}

fn interval(r: Figure) -> String {
    match r.low.zip(r.high) {
        Some((low, high)) => {
            format!("{} ({} to {})", fixed(r.middle, 3), fixed(low, 3), fixed(high, 3))
        }
        None => fixed(r.middle, 3),
    }
}

fn short_p(p: f64) -> String {
    if p < 0.001 { "<0.001".into() } else { fixed(p, 3) }
}

/// A chart for each phase.
fn charts(c: &Comparison) -> Vec<Chart> {
    let mut phases: Vec<&str> = Vec::new();
    for pair in &c.pairs {
        if !phases.contains(&pair.phase.as_str()) {
            phases.push(&pair.phase);
        }
    }
    let chart = |phase: &str| {
        let of = c.pairs.iter().filter(|p| p.phase == phase);
        let ratios = of.map(|p| Ratio {
            name: p.competitor.clone(),
            ratio: p.versus.ratio.inverse(1.0),
            verdict: if c.holds(p) { p.versus.verdict } else { Verdict::Untested },
        });
        Chart {
            title: phase.to_owned(),
            unit: "speed now over speed then: right of 1 is faster".into(),
            plot: Plot::Ratios(Ratios(ratios.collect())),
        }
    };
    phases.into_iter().map(chart).collect()
}

fn notes(comparisons: &[Comparison]) -> Vec<String> {
    let Some(first) = comparisons.first() else { return Vec::new() };
    let plan = &first.plan;
    let how = match first.interleaved {
        true => {
            "Ratios are means of the logarithms of the ratios within each start, which both programs \
             ran in turn"
        }
        false => {
            "Ratios are those of each run's mean over its starts (of logarithms), less the controls' \
             drift"
        }
    };
    let mut notes = vec![
        format!(
            "{how}; from 10 starts on an eighth of them is left out at each end. A ratio is thus not \
             exactly that of the two medians beside it. {} % intervals (Student's), wider where rounds \
             are not independent. Faster and slower: where the interval that holds for all of a \
             comparison together (Holm) excludes 1, and the effect is {} % or more. With fewer than 5 \
             starts there is no interval and no verdict. Intervals of medians: {} resamples, seed {}.",
            fixed(100.0 * plan.level, 0),
            fixed(100.0 * (plan.effect - 1.0), 0),
            whole(u64::from(plan.resamples)),
            plan.seed,
        ),
        "Phases whose duration was planned (a rate, a share of capacity) are not compared here."
            .into(),
        format!("Now: {}.", place(&first.new)),
    ];
    for c in comparisons {
        notes.push(format!("Then ({}): {}.", moment(&c.old.started), place(&c.old)));
    }
    notes
}

/// Where, on what and by what a run was made.
fn place(run: &Run) -> String {
    let version = match run.version.as_str() {
        "" => String::new(),
        version => format!("; steelyard {version}"),
    };
    let Run { machine, kind, dataset, .. } = run;
    format!("{machine}; {} {kind} of {dataset}{version}", whole(run.records))
}

/// Which runs, for the page.
fn about(comparisons: &[Comparison]) -> String {
    let Some(first) = comparisons.first() else { return String::new() };
    let line = |name: &str, run: &Run| {
        format!(
            "<div><dt>{name}</dt><dd>{}, steelyard {}</dd></div>\n",
            escaped(&run.started),
            escaped(&run.version)
        )
    };
    let runs: String = std::iter::once(line("now", &first.new))
        .chain(comparisons.iter().map(|c| line("then", &c.old)))
        .collect();
    html::fold("Runs", &format!("<dl>\n{runs}</dl>\n"))
}
