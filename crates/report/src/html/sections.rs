//! Sections in the order of the page: an operation each with its latency, other results, and what belongs
//! to the method.
//!
//! Charts are seen at once; the table behind a chart is behind a fold, and so are statements.

use super::{
    super::{
        chart::{Chart, Plot, WIDTH},
        markup::escaped,
        page::{Column, Listing, Role, Section, Table},
    },
    bars, fold, part,
};

/// The sections of a page by what they are. Each has its place among all, from which its id follows.
pub(super) struct Sorted<'a> {
    /// Of one operation each: what it did, its latency.
    operations: Vec<Vec<(usize, &'a Section)>>,
    results: Vec<(usize, &'a Section)>,
    method: Vec<(usize, &'a Section)>,
}

impl<'a> Sorted<'a> {
    pub(super) fn of(sections: &'a [Section]) -> Sorted<'a> {
        let mut sorted = Sorted { operations: Vec::new(), results: Vec::new(), method: Vec::new() };
        for numbered in sections.iter().enumerate() {
            match &numbered.1.role {
                Role::Glance => {}
                Role::Result => sorted.results.push(numbered),
                Role::Method => sorted.method.push(numbered),
                role @ Role::Operation(_) => {
                    let same = |card: &&mut Vec<(usize, &Section)>| card[0].1.role == *role;
                    match sorted.operations.iter_mut().find(same) {
                        Some(card) => card.push(numbered),
                        None => sorted.operations.push(vec![numbered]),
                    }
                }
            }
        }
        sorted
    }

    /// The parts that there are, by id and name.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let trade_off = self.trade_off().map(|_| ("trade-off", "Size and speed"));
        let operations = (!self.operations.is_empty()).then_some(("operations", "Operations"));
        let more = self.others().next().map(|_| ("more", "More results"));
        trade_off.into_iter().chain(operations).chain(more)
    }

    /// The section with the charts of size against speed, where there are any.
    fn trade_off(&self) -> Option<&(usize, &'a Section)> {
        let scatter = |s: &&(usize, &Section)| {
            s.1.charts.iter().any(|chart| matches!(chart.plot, Plot::Scatter(_)))
        };
        self.results.iter().find(scatter)
    }

    /// The other results.
    fn others(&self) -> impl Iterator<Item = &(usize, &'a Section)> {
        let apart = self.trade_off().map(|s| s.0);
        self.results.iter().filter(move |s| Some(s.0) != apart)
    }

    pub(super) fn written(&self) -> String {
        let mut out = String::new();
        if let Some((at, section)) = self.trade_off() {
            let inside = body(*at, section);
            out.push_str(&part("trade-off", "Size against speed", &inside));
        }
        if !self.operations.is_empty() {
            let cards: String = self.operations.iter().map(|card| operation(card)).collect();
            let about = escaped(&self.about_operations());
            let inside =
                format!("<p class=\"about\">{about}</p>\n<div class=\"cards\">\n{cards}</div>\n");
            out.push_str(&part("operations", "Operations", &inside));
        }
        let others: String = self.others().map(|(at, section)| result(*at, section)).collect();
        if !others.is_empty() {
            let inside = format!("<div class=\"sections\">\n{others}</div>\n");
            out.push_str(&part("more", "More results", &inside));
        }
        out
    }

    /// How the bars of operations are read.
    fn about_operations(&self) -> String {
        let sections = || self.operations.iter().flatten();
        let charts = || sections().flat_map(|s| &s.1.charts);
        let bars = || {
            charts().flat_map(|chart| match &chart.plot {
                Plot::Bars(bars) => &bars.0[..],
                Plot::Lines(_) | Plot::Ratios(_) | Plot::Scatter(_) => &[],
            })
        };
        let mut said = String::from("Longer bars are faster.");
        if bars().any(|bar| bar.value.low.is_some()) {
            said.push_str(" The thin line and the figure with ± are the 95 % interval.");
        }
        if bars().any(|bar| bar.latency.is_some()) {
            said.push_str(
                " p50 and p99: the time in which 50 % and 99 % of operations were answered; – where too \
                 few were timed.",
            );
        }
        if bars().any(|bar| bar.mark.contains('*')) {
            said.push_str(" *: the warm-up did not become steady.");
        }
        said
    }

    /// What belongs to the method, each behind a fold.
    pub(super) fn method(&self) -> String {
        self.method.iter().map(|(at, section)| fold(&section.title, &body(*at, section))).collect()
    }
}

/// An operation: bars with latency, and the rest behind folds.
fn operation(card: &[(usize, &Section)]) -> String {
    let Some(((at, first), rest)) = card.split_first() else { return String::new() };
    let mut inside = body(*at, first);
    for (at, section) in rest {
        let title = section
            .title
            .strip_prefix(&first.title)
            .map_or(section.title.as_str(), |t| t.trim_start_matches([':', ' ']));
        let mut name = title.to_owned();
        if let Some(first) = name.get(..1).map(str::to_uppercase) {
            name.replace_range(..1, &first);
        }
        inside.push_str(&fold(&name, &body(*at, section)));
    }
    titled("card", *at, first, &inside)
}

/// Any other result.
fn result(at: usize, section: &Section) -> String {
    // One with a single chart can stand beside another.
    let class = if section.charts.len() == 1 { "one" } else { "wide" };
    titled(class, at, section, &body(at, section))
}

fn titled(class: &str, at: usize, section: &Section, inside: &str) -> String {
    format!(
        "<section id=\"s{at}\" class=\"{class}\" aria-labelledby=\"s{at}h\">\n<h3 id=\"s{at}h\">{}</h3>\n{inside}</section>\n",
        escaped(&section.title)
    )
}

impl Section {
    /// Whether its table is for those who look for it only, where there is something shorter to say.
    fn is_long(&self) -> bool {
        const LONG: usize = 6;
        self.role == Role::Result && !self.brief.is_empty() && self.table.rows.len() > LONG
    }
}

/// A section without its heading.
fn body(at: usize, section: &Section) -> String {
    let mut out = String::new();
    let about = |text: &str| match text {
        "" => String::new(),
        text => format!("<p class=\"about\">{}</p>\n", escaped(text)),
    };
    let mut figures = String::new();
    let folded = !section.charts.is_empty() || section.is_long();
    match section.brief.is_empty() || !folded {
        true => out.push_str(&about(&section.about)),
        false => {
            out.push_str(&about(&section.brief));
            figures.push_str(&about(&section.about));
        }
    }
    push_charts(&mut out, at, section);
    if !section.table.columns.is_empty() {
        figures.push_str(&table(&section.table, &section.title));
    }
    if !section.footnotes.is_empty() {
        let note = |n: &String| format!("<li>{}</li>\n", escaped(n));
        let notes: String = section.footnotes.iter().map(note).collect();
        figures.push_str(&format!("<ul class=\"footnotes\">\n{notes}</ul>\n"));
    }
    out.push_str(&match !folded || figures.is_empty() {
        true => figures,
        false => format!(
            "<details>\n<summary>All figures<span class=\"hidden\"> of {}</span></summary>\n{figures}</details>\n",
            escaped(&section.title)
        ),
    });
    push_listings(&mut out, section);
    out
}

/// The statements, behind a heading of their own: most readers want the figures.
fn push_listings(out: &mut String, section: &Section) {
    if section.listings.is_empty() {
        return;
    }
    out.push_str(&format!(
        "<details>\n<summary>Statements<span class=\"hidden\"> of {}</span></summary>\n",
        escaped(&section.title)
    ));
    for Listing { head, statement, plan } in &section.listings {
        let head = escaped(head);
        let code = |text: &str, what: &str| {
            format!(
                "<pre tabindex=\"0\" role=\"region\" aria-label=\"{head}, {what}\">{}</pre>\n",
                escaped(text)
            )
        };
        out.push_str(&format!("<h4>{head}</h4>\n{}", code(statement, "statement")));
        out.push_str(&plan.as_deref().map_or(String::new(), |plan| code(plan, "plan")));
    }
    out.push_str("</details>\n");
}

/// `at` is the place of the section, so that each chart has an id.
fn push_charts(out: &mut String, at: usize, section: &Section) {
    if section.charts.is_empty() {
        return;
    }
    out.push_str("<div class=\"charts\">\n");
    for (n, chart) in section.charts.iter().enumerate() {
        // What the heading says need not be read twice.
        let said = section.charts.len() == 1 && section.title.starts_with(&chart.title);
        let picture = match &chart.plot {
            Plot::Bars(bars) => bars::table(bars, &chart.title, &chart.unit),
            Plot::Lines(_) | Plot::Ratios(_) | Plot::Scatter(_) => {
                picture(chart, &format!("c{at}n{n}"))
            }
        };
        let class = match &chart.plot {
            Plot::Bars(_) => " class=\"barred\"",
            Plot::Scatter(_) => " class=\"scatter\"",
            Plot::Lines(_) | Plot::Ratios(_) => "",
        };
        let hidden = if said { " class=\"hidden\"" } else { "" };
        out.push_str(&format!(
            "<figure{class}>\n<figcaption><b{hidden}>{}</b> <span>{}</span></figcaption>\n{picture}</figure>\n",
            escaped(&chart.title),
            escaped(&chart.unit)
        ));
    }
    out.push_str("</div>\n");
}

/// A chart as SVG, with the same in words for who does not see it.
fn picture(chart: &Chart, id: &str) -> String {
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-labelledby=\"{id}t {id}d\">\n\
         <title id=\"{id}t\">{}, {}</title>\n<desc id=\"{id}d\">{}</desc>\n{}</svg>\n",
        chart.height(),
        escaped(&chart.title),
        escaped(&chart.unit),
        escaped(&chart.words()),
        chart.drawn()
    )
}
/// A table that scrolls in a box of its own; the box can be reached and scrolled by keyboard.
fn table(table: &Table, name: &str) -> String {
    let name = escaped(name);
    let reach: Vec<usize> = (0..table.columns.len())
        .map(|i| table.rows.iter().filter_map(|r| Some(reach_of(&r[i])?.1.chars().count())).max())
        .map(|widest| widest.unwrap_or(0))
        .collect();
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}, table\">\n<table>\n\
         <caption class=\"hidden\">{name}</caption>\n<thead><tr>"
    );
    for column in &table.columns {
        out.push_str(&head(column));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (i, (text, column)) in row.iter().zip(&table.columns).enumerate() {
            out.push_str(&match i {
                0 => format!("<th scope=\"row\">{}</th>", escaped(text)),
                _ => cell(text, column, reach[i]),
            });
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}

fn head(column: &Column) -> String {
    let side = if column.right { " class=\"n\"" } else { "" };
    match column.head.is_empty() {
        // What a screen reader would say of it, says nothing.
        true => "<td></td>".into(),
        false => format!("<th scope=\"col\"{side}>{}</th>", escaped(&column.head)),
    }
}

/// A figure and what stands behind it from `±` on.
fn reach_of(text: &str) -> Option<(&str, &str)> {
    text.find(" ±").map(|at| text.split_at(at))
}

/// A cell. Intervals are as wide as the widest of their column, so that figures stand under each
/// other.
fn cell(text: &str, column: &Column, reach: usize) -> String {
    if !column.right {
        return format!("<td>{}</td>", escaped(text));
    }
    if reach == 0 {
        return format!("<td class=\"n\">{}</td>", escaped(text));
    }
    let (figure, rest) = reach_of(text).unwrap_or((text, ""));
    format!(
        "<td class=\"n\">{}<span class=\"reach\" style=\"width:{reach}ch\">{}</span></td>",
        escaped(figure),
        escaped(rest)
    )
}
