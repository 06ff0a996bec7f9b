//! Reports of several runs that belong together: those of the tour. Of one run they are that run's own report.

use super::{
    csv::csv as table, html::of_runs, made_visible, names::with_product_names, page, page::Page,
    svg::svg as picture, text as look,
};
use steelyard_results::Results;

/// Runs with nothing hidden in any of their texts.
fn visible(runs: &[Results]) -> Vec<Results> {
    runs.iter().map(|run| made_visible(run).into_owned()).collect()
}

/// The pages of all runs, one behind the other; what every one of them notes is there once.
fn pages(runs: &[Results]) -> Page {
    let mut pages = runs.iter().map(page);
    let mut all = pages.next().unwrap_or_default();
    for page in pages {
        all.title = format!("{}; {}", all.title, page.title);
        all.lead.extend(page.lead);
        all.sections.extend(page.sections);
        let new: Vec<String> = page.notes.into_iter().filter(|n| !all.notes.contains(n)).collect();
        all.notes.extend(new);
    }
    all
}

/// As text for a terminal of 100 columns or more.
pub fn text(runs: &[Results]) -> String {
    look::text(&pages(&visible(runs)))
}

/// As Markdown.
pub fn markdown(runs: &[Results]) -> String {
    look::markdown(&pages(&visible(runs)))
}

/// As CSV, the cells of all runs below one line of heads.
pub fn csv(runs: &[Results]) -> String {
    let tables: Vec<String> = visible(runs).iter().map(table).collect();
    let body =
        |table: &str| table.split_once('\n').map_or(String::new(), |(_, rows)| rows.to_owned());
    let mut tables = tables.into_iter();
    let first = tables.next().unwrap_or_default();
    tables.fold(first, |all, table| all + &body(&table))
}

/// As one SVG picture.
pub fn svg(runs: &[Results]) -> String {
    picture(&pages(&visible(runs)))
}

/// As one HTML page.
pub fn html(runs: &[Results]) -> String {
    let runs = visible(runs);
    let named: Vec<Results> = runs.iter().map(with_product_names).collect();
    of_runs(&runs, &named, &pages(&named), csv(&runs))
}
