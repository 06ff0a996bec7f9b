//! Results to text, Markdown, CSV, SVG and HTML. Pure: every report is a function of [`Results`] alone,
//! which is all this room sees of the others.
//!
//! A report is first a [`page`](self): the verdict in sentences, then tables, then notes. Each bench
//! has a file that says what stands on its page; `text.rs` and others say how a page looks.
//! Everything a reader must know to judge a figure stands beside it: how often it was measured, its
//! interval, what did not settle, what was lossy, how quiet the machine was.
//!
//! Charts belong to the tables that they show; looks without pictures leave them out.
//!
//! [`screen`] is what a bench prints: one screen of a terminal, with the answer. [`several`] reports the runs of the tour
//! together, [`compared`] a run beside earlier ones, [`slabs`] how memcached's memory holds records.
//!
//! To add a look: a function from `Page` (or `Results`) to `String`. To add a bench: a file with
//! `page`, and its arm below.

mod cache;
mod chart;
pub mod compared;
mod csv;
mod formats;
mod html;
mod lead;
mod marks;
mod markup;
mod names;
mod number;
mod objects;
mod page;
mod pictures;
pub mod screen;
pub mod several;
pub mod slabs;
mod stores;
mod summary;
mod svg;
mod tables;
mod tenants;
mod text;
mod visible;
mod warnings;
mod words;

pub use marks::over_budget;
pub use visible::{visible, visible_json, visible_lines};

use self::visible::made_visible;
use steelyard_results::Results;

/// As text for a terminal of 100 columns or more; the verdict first.
pub fn text(results: &Results) -> String {
    text::text(&page(&made_visible(results)))
}

/// As Markdown.
pub fn markdown(results: &Results) -> String {
    text::markdown(&page(&made_visible(results)))
}

/// As CSV for other tools: a row for each cell, all figures in basic units, nothing rounded.
pub fn csv(results: &Results) -> String {
    csv::csv(&made_visible(results))
}

/// As an SVG picture of all charts: curves with their intervals, bars, distributions.
pub fn svg(results: &Results) -> String {
    svg::svg(&page(&made_visible(results)))
}

/// As an HTML page in one file, which needs no network: the answer, charts, tables, and the results
/// themselves. Competitors have the names of their products.
pub fn html(results: &Results) -> String {
    let results = &*made_visible(results);
    let named = names::with_product_names(results);
    html::html(results, &named, &page(&named))
}

fn page(results: &Results) -> page::Page {
    let mut page = match results.bench.as_str() {
        "objects" => objects::page(results),
        "stores" => stores::page(results),
        "cache" => cache::page(results),
        "tenants" => tenants::page(results),
        _ => formats::page(results),
    };
    if page.sections.iter().any(|section| section.table.shows(number::UNKNOWN)) {
        let meaning = "too few rounds for an interval, or one wider than 10 times the figure.";
        page.notes.push(format!("{}: {meaning}", number::UNKNOWN));
    }
    page
}

#[cfg(test)]
mod tests;

// The example of the README is compiled.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
