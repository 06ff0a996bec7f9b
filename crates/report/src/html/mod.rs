//! A report as an HTML page: one file that reads without a network, without a script, on a phone, on
//! paper, with a screen reader.
//!
//! From above: the question and its answer ([`answer`]), warnings, one table of bars ([`matrix`]), each
//! operation with its latency, other results, and behind folds the method, settings and machine
//! ([`about`]). The results themselves lie in the page, as JSON and as CSV. Every text that comes from
//! results is escaped; should that fail, the page's own policy runs no other script and fetches nothing.

mod about;
mod answer;
mod bars;
mod front;
mod matrix;
mod sections;

use std::collections::BTreeSet;

use super::{
    chart::tone::{DARK, LIGHT, STYLE},
    csv,
    markup::{escaped, in_script},
    page::Page,
    summary::boards,
    warnings::warnings,
};
use steelyard_results::{Json, Results};

pub(super) use self::front::Front;

/// How the page looks.
const PAGE_STYLE: &str = include_str!("style.css");
/// How its tables of bars look where there is no room for columns.
const BLOCK_STYLE: &str = include_str!("blocks.css");
/// What can be done without, and is nicer with it.
const SCRIPT: &str = include_str!("script.js");
/// The SHA-256 of what stands between the tags of the script, in Base64: no other script runs.
const SCRIPT_HASH: &str = "sha256-Q1w7rhz/G61+gKcUlhj4Dd2tDugPGWrIJcg159M+E2s=";

/// A run as a page. `named` has the names of products, `results` the words that were typed.
pub(super) fn html(results: &Results, named: &Results, page: &Page) -> String {
    let json = results.to_json();
    let workload = named.workload.as_ref().map_or(named.bench.as_str(), |w| w.name.as_str());
    Document {
        front: front_of(named),
        page,
        kicker: format!("steelyard bench {workload}"),
        about: about::about(named),
        json,
        csv: csv::csv(results),
    }
    .written()
}

/// What a reader of a run sees first.
fn front_of(named: &Results) -> Front {
    let boards = boards(named);
    Front {
        question: answer::question(named),
        answer: vec![answer::answer(named, &boards)],
        warnings: warnings(named),
        facts: front::facts(named),
        glance: matrix::glance(named, &boards),
        breaks: matrix::breaks(named, &boards),
    }
}

/// Runs that belong together as one page; `named` has them with the names of products.
pub(super) fn of_runs(runs: &[Results], named: &[Results], page: &Page, csv: String) -> String {
    if let ([run], [named]) = (runs, named) {
        return html(run, named, page);
    }
    let json = Json::list_to_json(runs);
    let about = named.iter().map(about::about).collect();
    let mut front = Front::default();
    for (n, one) in named.iter().map(front_of).enumerate() {
        let gap = if n == 0 { "" } else { " " };
        front.question = front.question + gap + &one.question;
        front.answer.extend(one.answer);
        front.warnings.extend(one.warnings);
        front.breaks.extend(one.breaks);
        if n == 0 {
            front.facts = one.facts;
            front.glance = one.glance;
        } else {
            // An id is there once.
            let apart = |id: &str| format!("\"glance-{}{id}\"", n + 1);
            front.glance +=
                &one.glance.replace("\"glance\"", &apart("")).replace("\"glance-h\"", &apart("-h"));
        }
    }
    Document { front, page, kicker: "steelyard bench".into(), about, json, csv }.written()
}

/// All that a page is made of.
pub(super) struct Document<'a> {
    /// What a reader sees first.
    pub front: Front,
    pub page: &'a Page,
    /// The line above the title.
    pub kicker: String,
    /// What a run was made with and on, as HTML: folds.
    pub about: String,
    /// The data that the page was made from …
    pub json: String,
    /// … and as a table.
    pub csv: String,
}

impl Document<'_> {
    pub(crate) fn written(&self) -> String {
        let sections = sections::Sorted::of(&self.page.sections);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">Skip to the results</a>\n\
             <header>\n{top}{front}</header>\n\
             <main id=\"main\">\n{glance}{full}{sections}</main>\n\
             <footer>\n{method}{downloads}</footer>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            policy = policy(),
            title = escaped(&self.front.question),
            style = style(&self.front.breaks),
            top = self.top(&sections),
            front = self.front.written(),
            glance = self.front.glance,
            full = self.full(),
            sections = sections.written(),
            method = self.method(&sections),
            downloads = self.downloads(),
            data = in_script(&self.json),
        )
    }

    /// What the page is, and links to its parts.
    fn top(&self, sections: &sections::Sorted<'_>) -> String {
        let glance = (!self.front.glance.is_empty()).then_some(("glance", "At a glance"));
        let parts = glance
            .into_iter()
            .chain(sections.parts())
            .chain([("method", "Method"), ("data-files", "Data")]);
        let links: String =
            parts.map(|(id, name)| format!("<li><a href=\"#{id}\">{name}</a></li>\n")).collect();
        format!(
            "<div class=\"top\">\n<p class=\"kicker\">{}</p>\n\
             <nav aria-label=\"On this page\">\n<ul>\n{links}</ul>\n</nav>\n</div>\n",
            escaped(&self.kicker)
        )
    }

    /// All sentences of the report in text, for who wants more than one.
    fn full(&self) -> String {
        let told = |p: &&String| !self.front.answer.contains(p);
        let more: Vec<&String> = self.page.lead.iter().filter(told).collect();
        let paragraphs: String = more.iter().map(|p| format!("<p>{}</p>\n", escaped(p))).collect();
        match more.is_empty() {
            true => String::new(),
            false => {
                fold("The answer in full", &format!("<div class=\"full\">\n{paragraphs}</div>\n"))
            }
        }
    }

    /// How it was measured, behind folds.
    fn method(&self, sections: &sections::Sorted<'_>) -> String {
        let lines: String =
            self.page.notes.iter().map(|n| format!("<li>{}</li>\n", escaped(n))).collect();
        let notes = match lines.is_empty() {
            true => String::new(),
            false => fold("Method", &format!("<ul>\n{lines}</ul>\n")),
        };
        let inside =
            format!("<div class=\"folds\">\n{notes}{}{}</div>\n", sections.method(), self.about);
        part("method", "How this was measured", &inside)
    }

    /// Links to the data that lie in the page.
    fn downloads(&self) -> String {
        let mut link = String::from("data:text/csv;charset=utf-8,");
        for byte in self.csv.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b',' => {
                    link.push(char::from(byte));
                }
                byte => link.push_str(&format!("%{byte:02X}")),
            }
        }
        let links = format!(
            "<p>This page contains everything that was measured: \
             <a class=\"button\" download=\"results.csv\" href=\"{link}\">CSV</a> \
             <a class=\"button\" download=\"results.json\" id=\"json\" hidden>JSON</a></p>\n"
        );
        part("data-files", "Data", &links)
    }
}

/// Nothing is fetched and no script runs but the page's own, whatever stands in the page.
fn policy() -> String {
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; \
         base-uri 'none'; form-action 'none'"
    )
}

/// Both themes, the charts', the page's, and tables as blocks in windows narrower than `breaks`.
fn style(breaks: &BTreeSet<u32>) -> String {
    let blocks: String = breaks
        .iter()
        .map(|rem| {
            let rules = BLOCK_STYLE.replace(".matrix", &format!(".b{rem}"));
            format!("@media (max-width:{rem}rem){{\n{rules}}}\n")
        })
        .collect();
    format!(
        ":root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n{STYLE}{PAGE_STYLE}{blocks}",
        LIGHT.css(),
        DARK.css()
    )
}

/// A part of the page with a heading; `inside` is HTML.
pub(super) fn part(id: &str, title: &str, inside: &str) -> String {
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{}</h2>\n{inside}</section>\n",
        escaped(title)
    )
}

/// Something behind a line that opens it; `inside` is HTML.
pub(super) fn fold(title: &str, inside: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n{inside}</details>\n", escaped(title))
}

#[cfg(test)]
mod tests;
