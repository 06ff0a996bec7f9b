//! What a run was made with and on: machine, plan, versions, the workload; each behind a fold.

use super::{
    super::{
        markup::escaped,
        number::{bytes, fixed, whole},
        words::moment,
    },
    fold,
};
use steelyard_results::{Basis, Results};

/// All of it, as HTML.
pub(super) fn about(results: &Results) -> String {
    let mut out = String::new();
    out.push_str(&list("Machine", &machine(results)));
    out.push_str(&list("Run", &plan(results)));
    let software: Vec<(String, String)> =
        results.software.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    out.push_str(&list("Versions", &software));
    let settings: Vec<(String, String)> =
        results.settings.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    out.push_str(&list("Settings", &settings));
    for contender in &results.competitors {
        let Some(kept) = &contender.store else { continue };
        let mut lines = vec![("URL".to_owned(), kept.url.clone())];
        lines.extend(kept.settings.iter().map(|(k, v)| (k.clone(), v.clone())));
        let name = format!("{}: {} {}", contender.name, kept.product, kept.version);
        out.push_str(&list(&name, &lines));
    }
    if let Some(workload) = results.workload.as_ref().filter(|w| !w.text.is_empty()) {
        out.push_str(&fold(
            &format!("Workload {}", workload.name),
            &format!(
                "<pre tabindex=\"0\" role=\"region\" aria-label=\"Workload\">{}</pre>\n",
                escaped(&workload.text)
            ),
        ));
    }
    out
}

fn machine(results: &Results) -> Vec<(String, String)> {
    let machine = &results.machine;
    let mut lines = vec![
        ("Processor", machine.cpu.clone()),
        ("Logical processors", machine.cores.to_string()),
        ("Kernel", machine.kernel.clone()),
        ("System", machine.os.clone()),
        ("Vector extensions", machine.features.join(", ")),
    ];
    if machine.memory > 0 {
        lines.push(("Memory", bytes(machine.memory)));
    }
    if let Some(virtual_machine) = machine.virtual_machine {
        lines.push(("Virtual machine", if virtual_machine { "yes" } else { "no" }.into()));
    }
    lines.extend(machine.governor.clone().map(|g| ("Governor", g)));
    lines.extend(machine.load.map(|l| ("Load average before", fixed(l, 2))));
    owned(lines)
}

fn plan(results: &Results) -> Vec<(String, String)> {
    let plan = &results.plan;
    let basis = match plan.basis {
        Basis::Elapsed => "elapsed time",
        Basis::Processor => "processor time, user and system",
    };
    let percent = |v: f64| format!("{} %", fixed(100.0 * v, 0));
    owned(vec![
        ("Started", moment(&results.started)),
        ("Duration", format!("{} s", fixed(results.seconds, 0))),
        ("Seed", plan.seed.to_string()),
        ("Times are", basis.into()),
        ("Stops when intervals are within", format!("±{}", percent(plan.stop.precision))),
        ("Minimum starts", plan.stop.min_starts.to_string()),
        ("Rounds per start", plan.stop.rounds_per_start.to_string()),
        ("Maximum rounds", plan.stop.max_rounds.to_string()),
        ("Budget", format!("{} s", fixed(plan.stop.budget, 0))),
        ("Bootstrap resamples", whole(u64::from(plan.resamples))),
        ("Confidence level", percent(plan.level)),
        ("Smallest effect called a difference", percent(plan.effect - 1.0)),
        ("Cost of reading the clock", format!("{} ns", fixed(results.clock.read_ns, 0))),
    ])
}

fn owned(lines: Vec<(&str, String)>) -> Vec<(String, String)> {
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A list of names and values; nothing where there are none.
fn list(title: &str, lines: &[(String, String)]) -> String {
    let said: String = lines
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| {
            format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value))
        })
        .collect();
    match said.is_empty() {
        true => String::new(),
        false => fold(title, &format!("<dl>\n{said}</dl>\n")),
    }
}
