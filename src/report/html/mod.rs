//! A report as an HTML page: one file that reads without a network, without a script, on a phone, on
//! paper, with a screen reader.
//!
//! The order is that of every report: the verdict, charts with their tables behind them, then what
//! has to be known to judge them. The results themselves lie in the page, as JSON and as CSV. Every
//! text that comes from results is escaped; should that fail, the page's own policy lets nothing be
//! fetched.

mod about;
mod sections;

use super::{
    chart::tone::{DARK, LIGHT, STYLE},
    csv,
    markup::{escaped, in_script},
    page::Page,
};
use crate::bench::results::Results;

/// How the page looks.
const PAGE_STYLE: &str = include_str!("style.css");
/// What can be done without, and is nicer with it.
const SCRIPT: &str = include_str!("script.js");
/// Nothing is fetched, whatever stands in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    base-uri 'none'; form-action 'none'";

/// A run as a page.
pub(super) fn html(results: &Results, page: &Page) -> String {
    let json = serde_json::to_string(results).expect("results are plain data");
    Document {
        page,
        kicker: format!("steelyard bench {}", results.bench),
        about: about::about(results),
        json,
        csv: csv::csv(results),
    }
    .written()
}

/// Runs that belong together as one page.
pub(super) fn of_runs(runs: &[Results], page: &Page, csv: String) -> String {
    if let [one] = runs {
        return html(one, page);
    }
    let json = serde_json::to_string(runs).expect("results are plain data");
    let about = runs.iter().map(about::about).collect();
    Document { page, kicker: "steelyard bench".into(), about, json, csv }.written()
}

/// All that a page is made of.
pub(super) struct Document<'a> {
    pub page: &'a Page,
    /// The line above the title.
    pub kicker: String,
    /// What stands below the notes, as HTML.
    pub about: String,
    /// The data that the page was made from …
    pub json: String,
    /// … and as a table.
    pub csv: String,
}

impl Document<'_> {
    pub fn written(&self) -> String {
        let page = self.page;
        let title = escaped(&page.title);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">Skip to the verdict</a>\n\
             <header>\n<p class=\"kicker\">{kicker}</p>\n<h1>{title}</h1>\n</header>\n\
             <main id=\"main\">\n{verdict}{contents}<div class=\"sections\">\n{sections}</div>\n</main>\n\
             <footer>\n{notes}{about}{downloads}</footer>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            style = style(),
            kicker = escaped(&self.kicker),
            verdict = verdict(&page.lead),
            contents = sections::contents(&page.sections),
            sections = sections::sections(&page.sections),
            notes = notes(&page.notes),
            about = self.about,
            downloads = self.downloads(),
            data = in_script(&self.json),
        )
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
            "<p>All that was measured lies in this page: \
             <a class=\"button\" download=\"results.csv\" href=\"{link}\">CSV</a> \
             <a class=\"button\" download=\"results.json\" id=\"json\" hidden>JSON</a></p>\n"
        );
        part("data-files", "The data", &links)
    }
}

/// Both themes, the charts', the page's.
fn style() -> String {
    format!(
        ":root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n{STYLE}{PAGE_STYLE}",
        LIGHT.css(),
        DARK.css()
    )
}

fn verdict(lead: &[String]) -> String {
    if lead.is_empty() {
        return String::new();
    }
    let paragraphs: String = lead.iter().map(|p| format!("<p>{}</p>\n", escaped(p))).collect();
    format!(
        "<section class=\"verdict\" id=\"verdict\" aria-label=\"Verdict\">\n{paragraphs}</section>\n"
    )
}

/// A part of the page's end, with a heading; `inside` is HTML.
pub(super) fn part(id: &str, title: &str, inside: &str) -> String {
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{}</h2>\n{inside}</section>\n",
        escaped(title)
    )
}

fn notes(notes: &[String]) -> String {
    let lines: String = notes.iter().map(|n| format!("<li>{}</li>\n", escaped(n))).collect();
    part("notes", "How this was measured", &format!("<ul>\n{lines}</ul>\n"))
}
