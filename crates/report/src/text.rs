//! A page as text for a terminal, and as Markdown.

use super::page::{Listing, Page, Table};

/// How wide paragraphs are set.
const WIDTH: usize = 96;

/// As text: columns aligned, paragraphs broken at 96 columns, no colours.
pub(super) fn text(page: &Page) -> String {
    let mut out = String::new();
    for paragraph in &page.lead {
        push_wrapped(&mut out, "", paragraph);
        out.push('\n');
    }
    for section in &page.sections {
        out.push_str(&section.title);
        out.push('\n');
        if !section.about.is_empty() {
            push_wrapped(&mut out, "  ", &section.about);
        }
        if !section.table.columns.is_empty() {
            out.push('\n');
            push_aligned(&mut out, &section.table);
        }
        for note in &section.footnotes {
            push_wrapped(&mut out, "  ", note);
        }
        for listing in &section.listings {
            push_listing(&mut out, listing);
        }
        out.push('\n');
    }
    for note in &page.notes {
        push_wrapped(&mut out, "", note);
    }
    out
}

/// As Markdown: headings, pipe tables, a list of notes.
pub(super) fn markdown(page: &Page) -> String {
    let mut out = format!("# {}\n\n", escaped(&page.title));
    for paragraph in &page.lead {
        out.push_str(&escaped(paragraph));
        out.push_str("\n\n");
    }
    for section in &page.sections {
        out.push_str(&format!("## {}\n\n", escaped(&section.title)));
        if !section.about.is_empty() {
            out.push_str(&format!("{}\n\n", escaped(&section.about)));
        }
        push_pipes(&mut out, &section.table);
        for note in &section.footnotes {
            out.push_str(&format!("{}\n\n", escaped(note)));
        }
        for Listing { head, statement, plan } in &section.listings {
            out.push_str(&format!("{}:\n\n", escaped(head)));
            push_fenced(&mut out, statement);
            plan.iter().for_each(|plan| push_fenced(&mut out, plan));
        }
    }
    for note in &page.notes {
        out.push_str(&format!("- {}\n", escaped(note)));
    }
    out
}

/// A block of Markdown that nothing in the text can end.
fn push_fenced(out: &mut String, text: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    out.push_str(&format!("{fence}\n{}\n{fence}\n\n", text.trim_end()));
}

/// A statement, its lines broken where they are long; the lines of a plan stay as they are.
fn push_listing(out: &mut String, Listing { head, statement, plan }: &Listing) {
    push_wrapped(out, "  ", &format!("{head}:"));
    for line in statement.lines() {
        push_wrapped(out, "    ", line);
    }
    for line in plan.iter().flat_map(|plan| plan.lines()) {
        out.push_str("      ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn push_pipes(out: &mut String, table: &Table) {
    if table.columns.is_empty() {
        return;
    }
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&row(table.columns.iter().map(|c| escaped(&c.head)).collect()));
    let rule = |right: bool| if right { "--:" } else { ":--" }.to_owned();
    out.push_str(&row(table.columns.iter().map(|c| rule(c.right)).collect()));
    for cells in &table.rows {
        out.push_str(&row(cells.iter().map(|c| escaped(c)).collect()));
    }
    out.push('\n');
}

/// Keeps what a record or a file is called from being read as Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '[' | '\\' | '#' => out.extend(['\\', c]),
            '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn push_aligned(out: &mut String, table: &Table) {
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|i| {
            let cells = table.rows.iter().map(|r| width(&r[i])).max().unwrap_or(0);
            cells.max(width(&table.columns[i].head))
        })
        .collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::from(" ");
        for ((cell, column), &w) in cells.zip(&table.columns).zip(&widths) {
            let gap = " ".repeat(w - width(cell));
            match column.right {
                true => text.extend([" ", &gap, cell, " "]),
                false => text.extend([" ", cell, &gap, " "]),
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(&mut table.columns.iter().map(|c| c.head.as_str()));
    for row in &table.rows {
        line(&mut row.iter().map(String::as_str));
    }
}

fn push_wrapped(out: &mut String, indent: &str, paragraph: &str) {
    let mut column = 0;
    for word in paragraph.split_whitespace() {
        if column > 0 && column + 1 + width(word) > WIDTH {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str(indent);
            column = indent.len();
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width(word);
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Section;

    fn page() -> Page {
        let mut table = Table::new(&["<format", "size"]);
        table.rows =
            vec![vec!["a|b".into(), "1".into()], vec!["long name".into(), "12,345".into()]];
        Page {
            title: "T".into(),
            lead: vec!["word ".repeat(40)],
            sections: vec![Section { title: "S".into(), table, ..Section::default() }],
            notes: vec!["a note".into()],
        }
    }

    #[test]
    fn columns_are_aligned_and_lines_are_not_too_long() {
        let text = text(&page());
        assert!(text.lines().all(|l| width(l) <= WIDTH), "{text}");
        assert!(
            text.contains("  format       size\n  a|b             1\n  long name  12,345\n"),
            "{text}"
        );
    }

    #[test]
    fn statements_are_broken_into_lines_and_plans_are_not() {
        let mut page = page();
        page.sections[0].listings = vec![Listing {
            head: "maria".into(),
            statement: format!("SELECT `a` FROM{}", " column".repeat(30)),
            plan: Some("first\n  second".into()),
        }];
        let plain = text(&page);
        assert!(plain.lines().all(|line| width(line) <= WIDTH), "{plain}");
        assert!(plain.contains("  maria:\n    SELECT `a` FROM column"), "{plain}");
        assert!(plain.contains("      first\n        second\n"), "{plain}");
        page.sections[0].listings[0].statement = "a ``` b".into();
        let text = markdown(&page);
        assert!(text.contains("maria:\n\n````\na ``` b\n````\n"), "{text}");
    }

    #[test]
    fn markdown_is_not_broken_by_what_stands_in_a_table() {
        let text = markdown(&page());
        assert!(text.contains("| a\\|b | 1 |\n"), "{text}");
        assert!(text.contains("| :-- | --: |\n"), "{text}");
    }
}
