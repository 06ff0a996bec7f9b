//! What a reader sees first: the question, the answer, warnings, and what was run.

use std::collections::BTreeSet;

use super::{
    super::{
        marks,
        markup::escaped,
        number::{duration, fixed, whole},
        warnings::Warning,
        words::moment,
    },
    fold,
};
use steelyard_results::Results;

/// The head of a page.
#[derive(Default)]
pub(crate) struct Front {
    /// The title.
    pub question: String,
    /// The answer: a sentence, or a few paragraphs.
    pub answer: Vec<String>,
    pub warnings: Vec<Warning>,
    /// What was run, in a few words each.
    pub facts: Vec<String>,
    /// The table of bars, as HTML; empty where there is none.
    pub glance: String,
    /// The widths of the window, in rem, below which its rows become blocks.
    pub breaks: BTreeSet<u32>,
}

impl Front {
    pub(crate) fn written(&self) -> String {
        let answer: String = self
            .answer
            .iter()
            .enumerate()
            .map(|(i, p)| {
                let class = if i == 0 { "answer" } else { "answer more" };
                format!("<p class=\"{class}\">{}</p>\n", escaped(p))
            })
            .collect();
        let facts: Vec<String> = self.facts.iter().map(|f| escaped(f)).collect();
        let facts = match facts.is_empty() {
            true => String::new(),
            false => format!("<p class=\"facts\">{}</p>\n", facts.join(" · ")),
        };
        format!("<h1>{}</h1>\n{answer}{}{facts}", escaped(&self.question), chips(&self.warnings))
    }
}

/// A chip for each warning, which opens to say what it means.
fn chips(warnings: &[Warning]) -> String {
    let chip = |w: &Warning| {
        let text = format!("<p>{}</p>\n", escaped(&w.text));
        format!("<li>{}</li>\n", fold(&w.label, &text))
    };
    let chips: String = warnings.iter().map(chip).collect();
    match chips.is_empty() {
        true => String::new(),
        false => format!("<ul class=\"chips\" aria-label=\"Warnings\">\n{chips}</ul>\n"),
    }
}

/// How often, how long, on what, and when.
pub(super) fn facts(results: &Results) -> Vec<String> {
    let machine = &results.machine;
    let cores = match machine.cores {
        1 => "1 core".to_owned(),
        n => format!("{n} cores"),
    };
    let repeats = marks::repeats(results);
    [
        repeats.strip_prefix("n = ").unwrap_or(&repeats).to_owned(),
        took(results.seconds),
        format!("{} {cores}", machine.cpu).trim_start().to_owned(),
        moment(&results.started),
    ]
    .into_iter()
    .filter(|fact| !fact.is_empty())
    .collect()
}

/// A duration for people: `12 s`, `6 min 30 s`, `1 h 4 min`.
fn took(seconds: f64) -> String {
    match seconds.round() {
        s if !s.is_finite() || s < 1.0 => duration(seconds * 1e9),
        s if s < 60.0 => format!("{} s", fixed(s, 0)),
        s if s < 3600.0 => format!("{} min {} s", whole(s as u64 / 60), s as u64 % 60),
        s => format!("{} h {} min", whole(s as u64 / 3600), s as u64 % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::took;

    #[test]
    fn durations_read_well() {
        let all = [0.25, 12.0, 59.6, 402.3, 3840.0].map(took);
        assert_eq!(all, ["250 ms", "12 s", "1 min 0 s", "6 min 42 s", "1 h 4 min"]);
    }
}
