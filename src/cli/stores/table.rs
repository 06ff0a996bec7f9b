//! The table of abilities: what each layout of each store keeps, finds and promises, as the drivers declare it
//! ([`Facts`]). `docs/stores.md` has it as Markdown, and the contract suite holds the stores to it.

use steelyard::{
    bench::machine::software,
    durability::Tier,
    record::Kind,
    store::{DRIVERS, Driver, Facts, Need, OPTIONAL, Shape},
};

use super::super::fold::folded;

/// How to print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// For a terminal.
    Text,
    /// Markdown.
    Markdown,
    /// A page for a browser.
    Html,
}

/// A part of the table: what it is about, its columns, its rows, and how to read them.
struct Section {
    title: &'static str,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// `width` is that of the terminal, where there is one.
pub fn table(form: Form, width: Option<usize>) -> String {
    let sections = [values(), finding(), writing(), clients()];
    let text = |section: &Section| text(section, width.unwrap_or(usize::MAX));
    match form {
        Form::Text => sections.iter().map(text).collect::<Vec<_>>().join("\n"),
        Form::Markdown => sections.iter().map(markdown).collect::<Vec<_>>().join("\n"),
        Form::Html => html(&sections),
    }
}

/// Every layout there is in this build.
fn layouts() -> impl Iterator<Item = (&'static Driver, &'static Facts)> {
    DRIVERS.iter().flat_map(|driver| driver.facts.iter().map(move |facts| (driver, facts)))
}

/// A part with a row for each layout.
fn section(
    title: &'static str,
    head: &[&str],
    cells: impl Fn(&'static Driver, &'static Facts) -> Vec<String>,
    notes: Vec<String>,
) -> Section {
    let head = ["store", "layout"].iter().chain(head).map(|name| (*name).to_owned()).collect();
    let rows = layouts().map(|(driver, facts)| {
        let named = [driver.name.to_owned(), facts.shape.name().to_owned()];
        named.into_iter().chain(cells(driver, facts)).collect()
    });
    Section { title, head, rows: rows.collect(), notes }
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "-" }.to_owned()
}

fn values() -> Section {
    let kinds = Kind::ALL.map(Kind::name);
    let head: Vec<&str> = kinds.iter().copied().chain(["levels"]).collect();
    let cells = |_: &'static Driver, facts: &'static Facts| {
        let kept = |kind: &Kind| match kind {
            kind if facts.abilities.keeps.contains(kind) => "=",
            kind if facts.refuses.contains(kind) => "-",
            _ => "~",
        };
        let levels = facts.levels.map_or("any".to_owned(), |levels| levels.to_string());
        Kind::ALL.iter().map(|kind| kept(kind).to_owned()).chain([levels]).collect()
    };
    let mut notes = vec![
        "= comes back equal; ~ comes back changed, or some values are refused; - is refused. levels: maps and lists \
         in one another, the record counted as the first. Layout blob, which every store has, \
         keeps what its format keeps (steelyard formats)."
            .to_owned(),
    ];
    notes.extend(DRIVERS.iter().flat_map(|driver| {
        driver.loses().map(move |(shape, loses)| format!("{} {shape}: {loses}.", driver.name))
    }));
    let mut section = section("Values", &head, cells, notes);
    section.rows.retain(|row| row[1] != Shape::Blob.name());
    section
}

fn finding() -> Section {
    let head = ["ordered", "queries", "sorts", "index on", "in maps", "joins"];
    let cells = |_: &'static Driver, facts: &'static Facts| {
        let abilities = &facts.abilities;
        let can = |need: Need| !abilities.cannot.contains(&need);
        let queries = if can(Need::Find) { "by field" } else { "by key" };
        let kinds: Vec<&str> = facts.indexed.iter().map(|kind| kind.name()).collect();
        let scalar = |kind: &&Kind| !matches!(kind, Kind::Null | Kind::List | Kind::Map);
        let mut held = Kind::ALL.iter().filter(scalar).filter(|kind| !facts.refuses.contains(kind));
        let every = held.all(|kind| facts.indexed.contains(kind));
        vec![
            yes(abilities.ordered),
            queries.to_owned(),
            yes(can(Need::Find) && can(Need::Sort)),
            match kinds.is_empty() {
                true => "-".to_owned(),
                false if every => "every kind".to_owned(),
                false => kinds.join(" "),
            },
            yes(facts.nested),
            yes(abilities.joins),
        ]
    };
    let notes = vec![
        "ordered: records are listed in the order of their keys, which parts (--part) need. queries: by field where the \
         store tests conditions itself; elsewhere, and for what a store cannot test (the text of a field, patterns, \
         counts, lengths, elements of lists, times that it keeps as text), the records are read and tested by \
         steelyard, which says so. index on: the kinds of value that an index (--index) finds; in maps: also in \
         address.city. The key has an index everywhere and is unique; no other unique indexes are made. joins: records \
         with those of another table that belong to them, in one query."
            .to_owned(),
    ];
    section("Finding", &head, cells, notes)
}

fn writing() -> Section {
    let head = [
        "batch",
        "transaction",
        "conditional writes",
        "durability",
        "longest key",
        "largest record",
    ];
    let cells = |driver: &'static Driver, facts: &'static Facts| {
        vec![
            if facts.abilities.atomic { "whole" } else { "in parts" }.to_owned(),
            yes(facts.transactions),
            yes(facts.abilities.conditional),
            driver.tiers.iter().map(|tier| tier.name()).collect::<Vec<_>>().join(" "),
            size(facts.abilities.max_key),
            size(facts.abilities.max_record),
        ]
    };
    let tiers = Tier::ALL.map(|tier| format!("{tier} {}", tier.promise()));
    let mut notes = vec![format!(
        "batch: whole where a batch is written whole or not at all. transaction: several statements can be one \
         transaction. conditional writes: a record is written or deleted if none has its key, or if one of its fields \
         is a given text, in one step; of several clients that expect the same one succeeds (couchdb: on a server of one \
         node). durability: {}; which of them a store promises depends on its server's settings \
         (docs/durability.md).",
        tiers.join(", ")
    )];
    let limited = DRIVERS.iter().filter(|driver| !driver.limits.is_empty());
    notes.extend(limited.map(|driver| format!("{}: {}.", driver.name, driver.limits)));
    section("Writing", &head, cells, notes)
}

/// Bytes, in three digits.
fn size(bytes: usize) -> String {
    let (mut rest, mut unit) = (bytes as f64, 0);
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    while rest >= 999.5 && unit + 1 < UNITS.len() {
        rest /= 1000.0;
        unit += 1;
    }
    let digits = match rest {
        _ if unit == 0 || rest.fract().abs() < 0.005 => 0,
        rest if rest < 9.995 => 2,
        rest if rest < 99.95 => 1,
        _ => 0,
    };
    format!("{rest:.digits$} {}", UNITS[unit])
}

fn clients() -> Section {
    let versions = software();
    let head = ["store", "URL", "client", "private servers"].map(str::to_owned).to_vec();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for driver in DRIVERS {
        let client = |client: &steelyard::store::Client| {
            let name = client.to_string();
            match versions.get(&name) {
                Some(version) => format!("{name} {version}"),
                None => name,
            }
        };
        let clients: Vec<String> = driver.clients.iter().map(client).collect();
        let schemes: Vec<String> = [driver.name]
            .iter()
            .chain(driver.aliases)
            .map(|scheme| format!("{scheme}:{}", if driver.is_embedded() { "" } else { "//" }))
            .collect();
        let servers = match driver.servers {
            [] => "none needed".to_owned(),
            servers => servers.join(", "),
        };
        rows.push(vec![driver.name.into(), schemes.join(" "), clients.join("; "), servers]);
    }
    for kind in OPTIONAL.iter().filter(|kind| !kind.built_in) {
        let build = format!("not in this build: --features {}", kind.feature);
        let row = [kind.feature, "-", &build, "-"].map(str::to_owned);
        rows.push(row.to_vec());
    }
    let notes = vec![
        "client: whose code speaks to the store; own is steelyard's. Where there are two, ?client=crate takes the \
         second."
            .to_owned(),
    ];
    Section { title: "Clients", head, rows, notes }
}

/// The widths of the columns.
fn widths(section: &Section) -> Vec<usize> {
    let width = |at: usize| {
        let rows = section.rows.iter().map(|row| row[at].chars().count());
        rows.chain([section.head[at].chars().count()]).max().unwrap_or(0)
    };
    (0..section.head.len()).map(width).collect()
}

fn text(section: &Section, width: usize) -> String {
    let widths = widths(section);
    let whole = widths.iter().sum::<usize>() + 2 * widths.len();
    if whole > width {
        return stacked(section, width);
    }
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text = format!("{}\n{}", section.title, line(&section.head));
    section.rows.iter().for_each(|row| text += &line(row));
    for note in &section.notes {
        text += &folded(note, WIDTH.min(width), 2);
    }
    text
}

/// The same for a terminal that is narrower than the table: a paragraph for each row, with the names of the columns.
fn stacked(section: &Section, width: usize) -> String {
    let mut text = format!("{}\n", section.title);
    // The columns that say which row it is.
    let of = section.head.iter().take_while(|head| ["store", "layout"].contains(&head.as_str()));
    let of = of.count();
    for row in &section.rows {
        text += &folded(&row[..of].join(" "), width, 2);
        let cells = section.head.iter().zip(row).skip(of);
        let cells: Vec<String> = cells.map(|(head, cell)| format!("{head}: {cell}")).collect();
        text += &folded(&cells.join(", "), width, 4);
    }
    for note in &section.notes {
        text += &folded(note, WIDTH.min(width), 2);
    }
    text
}

/// Columns of a note; the tables are wider.
const WIDTH: usize = 96;

fn markdown(section: &Section) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("## {}\n\n{}", section.title, line(&section.head));
    text += &line(&vec!["---".to_owned(); section.head.len()]);
    let plain = |cell: &String| cell.replace('|', "\\|");
    section.rows.iter().for_each(|row| text += &line(&row.iter().map(plain).collect::<Vec<_>>()));
    section.notes.iter().for_each(|note| text += &format!("\n{note}\n"));
    text
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;\
                     color-scheme:light dark}table{border-collapse:collapse}div{overflow-x:auto}\
                     td,th{padding:.15rem .6rem;text-align:left;border-bottom:1px solid #8884}";

fn html(sections: &[Section]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>What stores can do</title>\n<style>{STYLE}</style>\n<h1>What stores can do</h1>\n"
    );
    let row = |cells: &[String], tag: &str| {
        let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    for section in sections {
        page += &format!("<h2>{}</h2>\n<div><table>\n{}", section.title, row(&section.head, "th"));
        section.rows.iter().for_each(|cells| page += &row(cells, "td"));
        page += "</table></div>\n";
        section.notes.iter().for_each(|note| page += &format!("<p>{}</p>\n", escaped(note)));
    }
    page + "</html>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        for (bytes, text) in [
            (250, "250 B"),
            (2690, "2.69 kB"),
            (1 << 20, "1.05 MB"),
            (1_000_000_000, "1 GB"),
            ((1 << 28) - 1, "268 MB"),
            (999_999, "1.00 MB"),
            (1 << 40, "1.10 TB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn every_layout_and_every_store_left_out_has_its_rows() {
        for form in [Form::Text, Form::Markdown, Form::Html] {
            let text = table(form, None);
            for driver in DRIVERS {
                assert!(text.contains(driver.name), "{form:?}: {}", driver.name);
            }
            for kind in OPTIONAL {
                let told =
                    text.contains(&format!("not in this build: --features {}", kind.feature));
                assert_eq!(told, !kind.built_in, "{form:?}: {}", kind.feature);
            }
        }
        // A narrow terminal has all of it, too, in lines that it can show.
        for width in [40, 60, 80, 200] {
            let (narrow, wide) = (table(Form::Text, Some(width)), table(Form::Text, None));
            let longest = |text: &str| text.split_whitespace().map(|word| word.width()).max();
            let most = width.max(6 + longest(&narrow).unwrap_or(0));
            for line in narrow.lines() {
                assert!(line.width() <= most, "{width}: {line}");
            }
            let cells = |text: &str| text.matches(['=', '~']).count();
            assert_eq!(cells(&narrow), cells(&wide), "{width}");
        }
        let rows =
            |driver: &Driver| driver.facts.iter().map(|facts| facts.shape).collect::<Vec<_>>();
        assert!(DRIVERS.iter().all(|driver| rows(driver) == driver.shapes));
    }
}
