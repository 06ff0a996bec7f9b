//! How memcached's memory holds records: the classes they fall into, what becomes of the memory, what
//! other settings come to.

use super::{
    chart::{Bar, Bars, Chart, Plot},
    csv::push_row,
    html::{Document, Front},
    number::{bytes, fixed, percent, whole},
    page::{Page, Section, Table},
    svg::svg as drawn,
    text as looks,
};
use steelyard_memcache::slabs::{Load, PAGE, Settings, Usage, advice::Outcome};
use steelyard_results::Figure;

/// What there is to report.
#[derive(Debug, Clone, Copy)]
pub struct Slabs<'a> {
    /// What the items are, in a line.
    pub about: &'a str,
    /// The settings they are held under.
    pub settings: &'a Settings,
    /// The version of the server whose options are written.
    pub version: &'a str,
    /// Where the items are.
    pub load: &'a Load,
    /// What other settings come to, the fewest pages first, those as they are among them.
    pub outcomes: &'a [Outcome],
    /// The pages that a running server has, where there is one.
    pub there: Option<u64>,
    /// What is to be known besides, one fact each.
    pub notes: &'a [String],
}

/// As text for a terminal.
pub fn text(slabs: &Slabs<'_>) -> String {
    looks::text(&page(slabs))
}

/// As Markdown.
pub fn markdown(slabs: &Slabs<'_>) -> String {
    looks::markdown(&page(slabs))
}

/// As an SVG picture: items and pages over the classes, and the memory.
pub fn svg(slabs: &Slabs<'_>) -> String {
    drawn(&page(slabs))
}

/// As an HTML page in one file.
pub fn html(slabs: &Slabs<'_>) -> String {
    let page = page(slabs);
    Document {
        front: Front {
            question: "How much memory does memcached need for these items?".into(),
            answer: page.lead.clone(),
            ..Front::default()
        },
        page: &page,
        kicker: "steelyard slabs".into(),
        about: String::new(),
        json: json(slabs),
        csv: csv(slabs),
    }
    .written()
}

/// As CSV: a row for each class that holds something.
pub fn csv(slabs: &Slabs<'_>) -> String {
    let mut out = String::from("class,chunk,chunks_a_page,items,chunks,pages,requested\n");
    for usage in used(slabs.load) {
        let fields = fields(usage).map(|n| n.to_string());
        push_row(&mut out, fields.iter().map(String::as_str));
    }
    out
}

/// As JSON: the same with the settings, the memory and what other settings come to.
pub fn json(slabs: &Slabs<'_>) -> String {
    let names = ["class", "chunk", "chunks_a_page", "items", "chunks", "pages", "requested"];
    let classes: Vec<_> = used(slabs.load)
        .map(|usage| {
            let pairs = names.iter().zip(fields(usage));
            pairs.map(|(name, n)| ((*name).to_owned(), n.into())).collect::<serde_json::Map<_, _>>()
        })
        .collect();
    let memory: serde_json::Map<_, _> = memory(slabs.load)
        .map(|(what, bytes)| (what.to_owned(), bytes.into()))
        .into_iter()
        .collect();
    let what_if: Vec<_> = (slabs.outcomes.iter())
        .map(|o| {
            let settings = arguments(slabs, &o.settings);
            serde_json::json!({"settings": settings, "pages": o.pages, "payload_share": o.efficiency})
        })
        .collect();
    let all = serde_json::json!({
        "about": slabs.about,
        "settings": arguments(slabs, slabs.settings),
        "pages": slabs.load.pages(),
        "items": slabs.load.held,
        "refused": slabs.load.refused,
        "classes": classes,
        "memory": memory,
        "what_if": what_if,
        "notes": slabs.notes,
    });
    all.to_string()
}

fn page(slabs: &Slabs<'_>) -> Page {
    let mut notes = slabs.notes.to_vec();
    if let Some(there) = slabs.there.filter(|there| *there != slabs.load.pages()) {
        notes.push(format!(
            "the server has {} pages: what was deleted or expired keeps its pages",
            whole(there)
        ));
    }
    Page {
        title: format!("Slabs: {}", slabs.about),
        lead: lead(slabs),
        sections: vec![classes(slabs), shares(slabs), what_if(slabs)],
        notes,
    }
}

/// Settings as memcached's options.
fn arguments(slabs: &Slabs<'_>, settings: &Settings) -> String {
    settings.arguments(slabs.version).join(" ")
}

/// `1 page`, `2 pages`.
fn pages(n: u64) -> String {
    format!("{} page{}", whole(n), if n == 1 { "" } else { "s" })
}

fn lead(slabs: &Slabs<'_>) -> Vec<String> {
    let load = slabs.load;
    let now = format!(
        "{}: {} of 1 MB under {}; {} of that are keys and values.",
        slabs.about,
        pages(load.pages()),
        arguments(slabs, slabs.settings),
        share(load.payload, load.pages() * PAGE),
    );
    let better = match slabs.outcomes.first() {
        Some(best) if best.pages < load.pages() => {
            let gain = percent((load.pages() - best.pages) as f64, best.pages as f64);
            format!(
                "The fewest pages: {} ({} in place of {}; {gain} % more items in the same memory).",
                arguments(slabs, &best.settings),
                whole(best.pages),
                whole(load.pages()),
            )
        }
        _ => "No other setting that was tried takes fewer pages.".to_owned(),
    };
    vec![now, better]
}

fn share(part: u64, all: u64) -> String {
    format!("{} %", fixed(100.0 * part as f64 / all.max(1) as f64, 1))
}

fn used(load: &Load) -> impl Iterator<Item = &Usage> {
    load.classes.iter().filter(|usage| usage.pages > 0 || usage.items > 0)
}

/// A class in numbers, in the order of the table's columns.
fn fields(usage: &Usage) -> [u64; 7] {
    let class = usage.class;
    let [id, chunk, per_page] = [class.id as u64, class.chunk, class.per_page];
    [id, chunk, per_page, usage.items, usage.chunks, usage.pages, usage.requested]
}

fn bar(name: String, value: u64) -> Bar {
    let value = Figure { middle: value as f64, ..Figure::default() };
    Bar { name, value, counted: true, ..Bar::default() }
}

fn bars(title: &str, unit: &str, bars: Vec<Bar>) -> Chart {
    Chart { title: title.into(), unit: unit.into(), plot: Plot::Bars(Bars(bars)) }
}

/// Where the items are.
fn classes(slabs: &Slabs<'_>) -> Section {
    let mut table = Table::new(&["class", "chunk", "a page", "items", "chunks", "pages", "filled"]);
    let (mut items, mut held) = (Vec::new(), Vec::new());
    for usage in used(slabs.load) {
        let [id, chunk, per_page, count, chunks, pages, _] = fields(usage);
        let row = [id, chunk, per_page, count, chunks, pages].map(whole);
        table.rows.push([&row[..], &[share(chunks, pages * per_page)]].concat());
        let name = format!("to {} B", whole(chunk));
        items.push(bar(name.clone(), count));
        held.push(bar(name, pages));
    }
    Section {
        title: "Where the items are".into(),
        about: "A class holds items up to the size of its chunks, in bytes; a page of 1 MB is cut \
                into chunks of one class."
            .into(),
        table,
        footnotes: Vec::new(),
        charts: vec![
            bars("Sizes of items", "items by the chunk they fit in", items),
            bars("Memory", "pages by class", held),
        ],
        ..Section::default()
    }
}

/// What becomes of the bytes of all pages.
fn memory(load: &Load) -> [(&'static str, u64); 5] {
    [
        ("keys and values", load.payload),
        ("headers of items", load.requested - load.payload),
        // The pieces of large items have headers too.
        ("left over in chunks", load.chunk_bytes().saturating_sub(load.requested)),
        ("chunks not in use", load.free()),
        ("ends of pages", load.tails()),
    ]
}

fn shares(slabs: &Slabs<'_>) -> Section {
    let all = slabs.load.pages() * PAGE;
    let mut table = Table::new(&["<what", "size", "share"]);
    let mut drawn = Vec::new();
    for (what, size) in memory(slabs.load) {
        table.rows.push(vec![what.into(), bytes(size), share(size, all)]);
        drawn.push(bar(what.into(), size / 1000));
    }
    Section {
        title: "What becomes of the memory".into(),
        about: format!("Of the {} in use.", pages(slabs.load.pages())),
        table,
        footnotes: Vec::new(),
        charts: vec![bars("What becomes of the memory", "kB", drawn)],
        ..Section::default()
    }
}

/// What other settings come to: the best, those as they are, and the best of each kind.
fn what_if(slabs: &Slabs<'_>) -> Section {
    let now = |o: &Outcome| o.settings == *slabs.settings;
    let made = |o: &&Outcome| {
        o.settings.slab_sizes.is_some() && o.settings.slab_sizes != slabs.settings.slab_sizes
    };
    let plain = slabs.outcomes.iter().filter(|o| o.settings.slab_sizes.is_none()).take(4);
    let mut shown: Vec<&Outcome> =
        slabs.outcomes.iter().find(made).into_iter().chain(plain).collect();
    if let Some(as_it_is) = slabs.outcomes.iter().find(|o| now(o))
        && !shown.iter().any(|o| now(o))
    {
        shown.push(as_it_is);
    }
    shown.sort_by_key(|outcome| outcome.pages);
    let mut table = Table::new(&["pages", "keys and values", "<settings"]);
    for outcome in shown {
        let as_it_is = if now(outcome) { "  (as it is)" } else { "" };
        table.rows.push(vec![
            whole(outcome.pages),
            format!("{} %", fixed(100.0 * outcome.efficiency, 1)),
            format!("{}{as_it_is}", arguments(slabs, &outcome.settings)),
        ]);
    }
    Section {
        title: "What other settings come to".into(),
        about: "The same items under other factors, smallest chunks, and sizes made for them."
            .into(),
        table,
        ..Section::default()
    }
}
