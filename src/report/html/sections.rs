//! Sections: a heading, charts, and the table they show.
//!
//! A table with charts before it is behind them, in a `details`; one without stands for itself.

use super::super::{
    chart::WIDTH,
    markup::escaped,
    page::{Column, Listing, Section, Table},
};

/// Links to all sections.
pub(super) fn contents(sections: &[Section]) -> String {
    let link = |(i, s): (usize, &Section)| {
        format!("<li><a href=\"#s{i}\">{}</a></li>\n", escaped(&s.title))
    };
    let links: String = sections.iter().enumerate().map(link).collect();
    format!(
        "<nav aria-label=\"On this page\">\n<ul>\n{links}<li><a href=\"#notes\">How this was measured</a></li>\n\
         <li><a href=\"#data-files\">The data</a></li>\n</ul>\n</nav>\n"
    )
}

pub(super) fn sections(sections: &[Section]) -> String {
    let mut charts = 0;
    let mut out = String::new();
    for (i, section) in sections.iter().enumerate() {
        // One with a single chart can stand beside another.
        let class = if section.charts.len() == 1 { "" } else { " class=\"wide\"" };
        out.push_str(&format!(
            "<section id=\"s{i}\"{class} aria-labelledby=\"s{i}h\">\n<h2 id=\"s{i}h\">{}</h2>\n",
            escaped(&section.title)
        ));
        if !section.about.is_empty() {
            out.push_str(&format!("<p class=\"about\">{}</p>\n", escaped(&section.about)));
        }
        push_charts(&mut out, section, &mut charts);
        if !section.table.columns.is_empty() {
            let table = table(&section.table, &section.title);
            out.push_str(&match section.charts.is_empty() {
                true => table,
                false => format!(
                    "<details>\n<summary>Figures<span class=\"hidden\"> of {}</span></summary>\n{table}</details>\n",
                    escaped(&section.title)
                ),
            });
        }
        if !section.footnotes.is_empty() {
            let note = |n: &String| format!("<li>{}</li>\n", escaped(n));
            let notes: String = section.footnotes.iter().map(note).collect();
            out.push_str(&format!("<ul class=\"footnotes\">\n{notes}</ul>\n"));
        }
        push_listings(&mut out, section);
        out.push_str("</section>\n");
    }
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
        out.push_str(&format!("<h3>{head}</h3>\n{}", code(statement, "statement")));
        out.push_str(&plan.as_deref().map_or(String::new(), |plan| code(plan, "plan")));
    }
    out.push_str("</details>\n");
}

/// `number` counts the charts of the page, so that each has an id.
fn push_charts(out: &mut String, section: &Section, number: &mut usize) {
    if section.charts.is_empty() {
        return;
    }
    out.push_str("<div class=\"charts\">\n");
    for chart in &section.charts {
        let n = *number;
        *number += 1;
        // What the heading says need not be read twice.
        let said = section.charts.len() == 1 && section.title.starts_with(&chart.title);
        let hidden = if said { " class=\"hidden\"" } else { "" };
        let (title, unit) = (escaped(&chart.title), escaped(&chart.unit));
        out.push_str(&format!(
            "<figure>\n<figcaption><b{hidden}>{title}</b> <span>{unit}</span></figcaption>\n\
             <svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-labelledby=\"c{n}t c{n}d\">\n\
             <title id=\"c{n}t\">{title}, {unit}</title>\n<desc id=\"c{n}d\">{}</desc>\n{}</svg>\n</figure>\n",
            chart.height(),
            escaped(&chart.words()),
            chart.drawn()
        ));
    }
    out.push_str("</div>\n");
}

/// A table that scrolls in a box of its own; the box can be reached and scrolled by keyboard.
pub(super) fn table(table: &Table, name: &str) -> String {
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
