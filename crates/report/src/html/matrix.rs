//! The table that answers the question at a glance: a row for each competitor, a column for each
//! operation, a small bar in each cell; in groups of those that may be compared.
//!
//! The best of a column has a colour and a word. Where nothing could be ranked nobody has either. On a
//! phone, and wherever columns have no room ([`breaks`]), each row becomes a block with a line for each
//! operation; the roles keep it a table for screen readers.

use std::collections::BTreeSet;

use super::{
    super::{
        marks,
        markup::escaped,
        number::{bytes, short},
        stores,
        summary::{self, Board, Column, Kind, Place, Row, Score},
    },
    answer, part,
};
use steelyard_results::{Contender, Phase, Results};

/// The section with all boards of a page; nothing where nothing was measured.
pub(super) fn glance(results: &Results, boards: &[Board<'_>]) -> String {
    let shown: Vec<&Board<'_>> = boards.iter().filter(|b| is_shown(b)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let numbered = boards.iter().enumerate().filter(|(_, board)| is_shown(board));
    let tables: String = numbered.map(|(at, _)| table(results, boards, at)).collect();
    let inside = format!(
        "<p class=\"about\">{}</p>\n{tables}{}",
        escaped(&about(results, &shown)),
        legend(results, &shown)
    );
    part("glance", "At a glance", &inside)
}

fn is_shown(board: &Board<'_>) -> bool {
    !board.groups.is_empty() && !board.columns.is_empty()
}

/// The widths of the window, in rem, below which rows become blocks: one for each board.
pub(super) fn breaks(results: &Results, boards: &[Board<'_>]) -> BTreeSet<u32> {
    boards.iter().filter(|b| is_shown(b)).map(|board| breaking(results, board)).collect()
}

/// A window that is narrower than this has no room for a board as a table. The widths of letters are
/// those of a wide font.
fn breaking(results: &Results, board: &Board<'_>) -> u32 {
    /// The names of rows; the least of a column, and the air between two.
    const NAMES: f64 = 7.5;
    const LEAST: f64 = 4.4;
    const AIR: f64 = 0.55;
    /// A letter of a head; the window is so much wider than the page.
    const LETTER: f64 = 0.5;
    const MARGINS: f64 = 1.07;
    let width = |(at, column): (usize, &Column<'_>)| {
        let (name, unit) = head(results, column);
        let pieces = |text: &str| {
            let ends = |c: char| c == ' ' || BREAKS.contains(&c);
            text.split_inclusive(ends).map(|p| p.trim().chars().count()).max().unwrap_or(0)
        };
        let values = board.groups.iter().flat_map(|(_, rows)| rows).filter_map(|r| r.scores[at]);
        let value = values.map(|s| value(column, &s).chars().count()).max().unwrap_or(0);
        let letters = pieces(&name).max(pieces(&unit)).max(value);
        (LETTER * letters as f64 + AIR).max(LEAST)
    };
    let all: f64 = board.columns.iter().enumerate().map(width).sum();
    (MARGINS * (NAMES + all)).ceil().clamp(30.0, 999.0) as u32
}

/// What the bars are.
fn about(results: &Results, boards: &[&Board<'_>]) -> String {
    let all = || boards.iter().flat_map(|b| &b.columns);
    let sized = all().any(|c| matches!(c, Column::Size(_)));
    let disk = all().any(|c| *c == Column::Disk);
    let grouped = boards.iter().any(|b| b.groups.len() > 1);
    let longest = if grouped {
        "the longest bar of a column is the best of its group"
    } else {
        "the longest bar of a column is its best"
    };
    let less = match (sized, disk) {
        (true, _) => " Size is of all records: a longer bar is a smaller size.",
        (_, true) => " Disk is what all records take: a longer bar is less disk.",
        _ => "",
    };
    let what = match results.bench.as_str() {
        "cache" => "Calls",
        "stores" | "tenants" => "Operations",
        "objects" => "Objects",
        _ => "Records",
    };
    let unit = summary::rate_unit(results, what);
    let per = match unit.ends_with("CPU s") {
        true => "per second of processor time",
        false => "per second",
    };
    format!("{what} {per}; longer is better, and {longest}.{less}")
}

fn table(results: &Results, boards: &[Board<'_>], number: usize) -> String {
    let board = &boards[number];
    // With many columns a word or a factor stands below its bar.
    let many = if board.columns.len() > 6 { " many" } else { "" };
    let mut out = String::new();
    if !board.title.is_empty() {
        out.push_str(&format!("<h3>{}</h3>\n", escaped(&board.title)));
    }
    let caption = match board.title.as_str() {
        "" => "Results at a glance".to_owned(),
        title => format!("Results at a glance: {title}"),
    };
    out.push_str(&format!(
        "<table class=\"matrix b{}{many}\" role=\"table\">\n<caption class=\"hidden\">{}</caption>\n\
         <thead role=\"rowgroup\"><tr role=\"row\"><td role=\"cell\"></td>",
        breaking(results, board),
        escaped(&caption)
    ));
    for column in &board.columns {
        let (name, unit) = head(results, column);
        out.push_str(&format!(
            "<th scope=\"col\" role=\"columnheader\">{} <small>{}</small></th>",
            breakable(&name),
            escaped(&unit)
        ));
    }
    out.push_str("</tr></thead>\n");
    for (at, (_, rows)) in board.groups.iter().enumerate() {
        out.push_str("<tbody role=\"rowgroup\">\n");
        out.push_str(&heading(results, boards, number, at));
        for row in rows {
            out.push_str(&line(results, board, row));
        }
        out.push_str("</tbody>\n");
    }
    out.push_str("</table>\n");
    out
}

/// What stands above a group: what its members have in common, and who is best among them.
fn heading(results: &Results, boards: &[Board<'_>], number: usize, at: usize) -> String {
    let board = &boards[number];
    let group = &board.groups[at].0;
    let told = answer::of_group(results, boards, number, at);
    let title = match group.kind {
        Kind::All if board.groups.len() < 2 && told.is_none() => return String::new(),
        Kind::All => match results.bench.as_str() {
            "cache" => "Clients".to_owned(),
            "tenants" => "Ways".to_owned(),
            _ => "Give back every record as it was".to_owned(),
        },
        Kind::Lossy => "Do not give back every record as it was: not ranked".to_owned(),
        Kind::Floor => "No client: the least that a call can take".to_owned(),
        Kind::Durability(class) => {
            let promise = answer::promise(group);
            let mut title: String = promise[..1].to_uppercase();
            title.push_str(&promise[1..]);
            if class.is_broken() {
                title.push_str(": less than promised, not ranked");
            } else if !class.is_ranked() {
                title.push_str(": not ranked");
            }
            title
        }
    };
    let told = told.map_or(String::new(), |told| format!(" <span>{}</span>", escaped(&told)));
    format!(
        "<tr role=\"row\" class=\"group\"><th scope=\"rowgroup\" role=\"rowheader\" colspan=\"{}\"><b>{}</b>{told}</th></tr>\n",
        board.columns.len() + 1,
        escaped(&title)
    )
}

fn line(results: &Results, board: &Board<'_>, row: &Row<'_>) -> String {
    let mut out = format!("<tr role=\"row\">{}", who(row.contender));
    let mut before = String::new();
    for (column, score) in board.columns.iter().zip(&row.scores) {
        let (name, unit) = head(results, column);
        out.push_str(&cell(
            column,
            score.as_ref(),
            &label(&name, if unit == before { "" } else { &unit }),
        ));
        before = unit;
    }
    out.push_str("</tr>\n");
    out
}

/// The product on a line, its options on the next.
fn who(contender: &Contender) -> String {
    let (name, options) = match contender.name.split_once(" (") {
        Some((name, options)) => (name, options.strip_suffix(')').unwrap_or(options)),
        None => (contender.name.as_str(), ""),
    };
    let options = match options {
        "" => String::new(),
        options => format!(" <small>{}</small>", breakable(options)),
    };
    format!("<th scope=\"row\" role=\"rowheader\">{}{options}</th>", breakable(name))
}

/// On a phone the heads of columns are not seen, and each line has its own; its unit where that is not the
/// one of the line before.
fn label(name: &str, unit: &str) -> String {
    let unit = match unit {
        "" => String::new(),
        unit => format!(" <small>{}</small>", escaped(unit)),
    };
    format!("<span class=\"op\" aria-hidden=\"true\">{}{unit}</span>", breakable(name))
}

fn cell(column: &Column<'_>, score: Option<&Score>, name: &str) -> String {
    let Some(score) = score else {
        return format!(
            "<td role=\"cell\" class=\"none\">{name}<span class=\"v\"><span aria-hidden=\"true\">–</span>\
             <span class=\"hidden\">not measured</span></span></td>"
        );
    };
    let place = score.standing.place;
    let class = match (score.standing.marked, place, column) {
        (true, Place::Best, Column::Speed(_)) => " class=\"best\"",
        (true, Place::Best, _) => " class=\"least\"",
        (true, ..) => " class=\"shared\"",
        (false, ..) => "",
    };
    format!(
        "<td role=\"cell\"{class}>{name}<span class=\"v\">{}</span> <span class=\"bar\" aria-hidden=\"true\">\
         <i style=\"width:{:.1}%\"></i></span>{}</td>",
        escaped(&value(column, score)),
        100.0 * score.share,
        note(column, score)
    )
}

fn value(column: &Column<'_>, score: &Score) -> String {
    match column {
        Column::Speed(_) => short(score.value),
        Column::Size(_) | Column::Disk => bytes(score.value as u64),
    }
}

/// The word or the factor beside a value.
fn note(column: &Column<'_>, score: &Score) -> String {
    let word = match (column, score.standing.place) {
        (Column::Size(_), Place::Best) => "smallest",
        (_, place) => place.word(),
    };
    let factor = score.standing.factor.filter(|f| f.is_finite()).map(|factor| {
        let how = match column {
            Column::Speed(_) => "the time of the best",
            Column::Size(_) | Column::Disk => "the size of the smallest",
        };
        format!("{}×<span class=\"hidden\"> {how}</span>", answer::times(factor))
    });
    match (word, factor) {
        ("", None) => String::new(),
        ("", Some(factor)) => format!("<span class=\"note\">{factor}</span>"),
        (word, _) => format!("<span class=\"note\">{word}</span>"),
    }
}

/// What stands above a column: its name, and its unit or where it was done.
fn head(results: &Results, column: &Column<'_>) -> (String, String) {
    match column {
        Column::Size(wrap) if wrap.is_empty() => ("size".into(), "plain".into()),
        Column::Size(wrap) => ("size".into(), format!("in {}", super::super::names::format(wrap))),
        Column::Disk => ("disk".into(), "used".into()),
        Column::Speed(phase) => (name(phase), unit(results, phase)),
    }
}

fn name(phase: &Phase) -> String {
    match &phase.cache {
        Some(row) => format!("{} {}", row.row, if row.object { "object" } else { "plain" }),
        // Its table says on which store.
        None if phase.tenants.is_some() => phase.kind.clone(),
        None => phase.name.clone(),
    }
}

fn unit(results: &Results, phase: &Phase) -> String {
    match results.bench.as_str() {
        "stores" | "tenants" => summary::rate_unit(results, stores::unit(phase)),
        "cache" => summary::rate_unit(results, "calls"),
        "objects" => summary::rate_unit(results, "objects"),
        _ => phase.table.clone(),
    }
}

/// Signs within words, behind which a line may end.
const BREAKS: [char; 8] = ['+', '/', '-', ',', '=', '?', '&', ':'];

/// A text that may be broken behind signs within words.
fn breakable(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(BREAKS) {
        out.push_str(&escaped(part));
        out.push_str("<wbr>");
    }
    out
}

/// What the words mean, those that the page uses; and the smallest difference that could be shown.
fn legend(results: &Results, boards: &[&Board<'_>]) -> String {
    let scores = || {
        let rows = boards.iter().flat_map(|b| &b.groups).flat_map(|(_, rows)| rows);
        rows.flat_map(|row| row.scores.iter().flatten().map(|s| s.standing))
    };
    let of = |place: Place| scores().any(|s| s.place == place);
    let speeds = boards.iter().any(|b| b.columns.iter().any(|c| matches!(c, Column::Speed(_))));
    let mut lines: Vec<String> = Vec::new();
    let fastest = |place| speed_of(boards, place);
    if fastest(Place::Best) {
        lines.push(key("best", "best: faster than all others of its group"));
    }
    if of(Place::Tied) {
        lines.push(key("shared", "tied: no other is faster, and those tied are alike within 3 %"));
    }
    if of(Place::Undecided) {
        lines.push(key("shared", "unclear: no other was shown to be faster, but this run does not tell which of these is the fastest"));
    }
    if scores().any(|s| s.factor.is_some()) {
        let sized = boards.iter().any(|b| b.columns.iter().any(|c| matches!(c, Column::Size(_))));
        let of = if sized { "the time, or the size," } else { "the time" };
        lines.push(key("", &format!("2.0×: takes 2.0 times {of} of the best")));
    }
    if speeds && !fastest(Place::Best) && !fastest(Place::Tied) && !fastest(Place::Undecided) {
        let why = answer::unranked(results)
            .unwrap_or_else(|| "Not ranked: nobody can be compared with another here.".into());
        lines.push(format!("<li>{} No rate is marked as best.</li>\n", escaped(&why)));
    }
    if let Some(least) = marks::smallest_shown(results) {
        lines.push(format!(
            "<li>The smallest difference that this run could show, in four of five such runs: {}.</li>\n",
            escaped(&least)
        ));
    }
    match lines.is_empty() {
        true => String::new(),
        false => format!("<ul class=\"legend\">\n{}</ul>\n", lines.concat()),
    }
}

/// Whether any rate has this place.
fn speed_of(boards: &[&Board<'_>], place: Place) -> bool {
    boards.iter().any(|board| {
        let rows = board.groups.iter().flat_map(|(_, rows)| rows);
        rows.flat_map(|row| board.columns.iter().zip(&row.scores)).any(|(column, score)| {
            matches!(column, Column::Speed(_)) && score.is_some_and(|s| s.standing.place == place)
        })
    })
}

fn key(class: &str, text: &str) -> String {
    let swatch = match class {
        "" => String::new(),
        class => format!(
            "<span class=\"{class}\" aria-hidden=\"true\"><span class=\"bar\"><i></i></span></span> "
        ),
    };
    format!("<li>{swatch}{}</li>\n", escaped(text))
}
