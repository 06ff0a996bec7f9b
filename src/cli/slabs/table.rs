//! What is printed.

use std::fmt::Write;

use steelyard::memcache::slabs::{Classes, Load, PAGE, Settings, advice::Outcome};

use super::super::progress::grouped;
use super::source::Source;

/// A class a line: number, chunk size, chunks a page.
pub fn classes(classes: &Classes) -> String {
    let mut text = String::from("class    chunk  a page\n");
    for class in classes.all() {
        let _ = writeln!(text, "{:5} {:8} {:7}", class.id, class.chunk, class.per_page);
    }
    text
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Where the items are, and what becomes of the memory.
pub fn load(load: &Load, source: &Source) -> String {
    let mut text = String::from("class    chunk  a page      items     chunks   pages   filled\n");
    for usage in load.classes.iter().filter(|usage| usage.pages > 0 || usage.items > 0) {
        let _ = writeln!(
            text,
            "{:5} {:8} {:7} {:>10} {:>10} {:>7} {:7.1}%",
            usage.class.id,
            usage.class.chunk,
            usage.class.per_page,
            grouped(usage.items),
            grouped(usage.chunks),
            grouped(usage.pages),
            percent(usage.chunks, usage.pages * usage.class.per_page),
        );
    }
    let pages = load.pages() * PAGE;
    let _ = writeln!(
        text,
        "\n{} pages of 1 MB, {}:",
        grouped(load.pages()),
        settings(&source.settings, source)
    );
    let headers = load.requested - load.payload;
    let chunks = load.chunk_bytes();
    for (what, bytes) in [
        ("keys and values", load.payload),
        ("headers of items", headers),
        // The pieces of large items have headers too.
        ("left over in chunks", chunks.saturating_sub(load.requested)),
        ("chunks not in use", load.free()),
        ("ends of pages", load.tails()),
    ] {
        let _ = writeln!(text, "{:>7.1}%  {what}", percent(bytes, pages));
    }
    if let Some(there) = source.pages
        && there != load.pages()
    {
        let _ = writeln!(
            text,
            "the server has {} pages: what was deleted or expired keeps its pages",
            grouped(there)
        );
    }
    text.push('\n');
    text
}

/// Settings as memcached's options.
fn settings(settings: &Settings, source: &Source) -> String {
    let version = source.version.as_deref().unwrap_or("1.6.18");
    settings.arguments(version).join(" ")
}

/// What other settings come to: the best, those as they are, and the best of each kind.
pub fn advice(outcomes: &[Outcome], source: &Source) -> String {
    let Some(now) = outcomes.iter().find(|o| o.settings == source.settings) else {
        return String::new();
    };
    let mut text = String::from("what if   pages  keys and values\n");
    let mut line = |outcome: &Outcome, what: &str| {
        let _ = writeln!(
            text,
            "{:>15} {:7.1}%  {}{what}",
            grouped(outcome.pages),
            outcome.efficiency * 100.0,
            settings(&outcome.settings, source),
        );
    };
    let made = outcomes.iter().find(|o| {
        o.settings.slab_sizes.is_some() && o.settings.slab_sizes != source.settings.slab_sizes
    });
    let plain = outcomes.iter().filter(|o| o.settings.slab_sizes.is_none()).take(4);
    let mut shown: Vec<&Outcome> = made.into_iter().chain(plain).collect();
    if !shown.contains(&now) {
        shown.push(now);
    }
    shown.sort_by_key(|outcome| outcome.pages);
    for outcome in shown {
        line(outcome, if outcome == now { "  (as it is)" } else { "" });
    }
    let best = &outcomes[0];
    if best.pages < now.pages {
        let gain = percent(now.pages - best.pages, best.pages);
        let _ = writeln!(
            text,
            "\nthe fewest pages: {} ({} in place of {}; {gain:.1} % more items in the same memory)",
            settings(&best.settings, source),
            grouped(best.pages),
            grouped(now.pages),
        );
    } else {
        text += "\nno other setting that was tried takes fewer pages\n";
    }
    text
}
