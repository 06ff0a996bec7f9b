//! A page of a report, before it is text, Markdown or anything else: a lead, tables, notes.

use super::chart::Chart;

/// A report.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Page {
    /// What it is about, in a few words.
    pub title: String,
    /// The verdict: paragraphs that a person can act on.
    pub lead: Vec<String>,
    /// The tables.
    pub sections: Vec<Section>,
    /// What has to be known to judge the figures, one fact each.
    pub notes: Vec<String>,
}

/// A table with what is said around it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Section {
    /// Its heading.
    pub title: String,
    /// What was measured, and how often.
    pub about: String,
    /// The same without what is only of the table, for looks that have it behind a fold; empty where that is
    /// all of it.
    pub brief: String,
    /// The table.
    pub table: Table,
    /// What the marks in it mean; one line each.
    pub footnotes: Vec<String>,
    /// The same as pictures, for looks that have any.
    pub charts: Vec<Chart>,
    /// The statements that were measured.
    pub listings: Vec<Listing>,
    /// What it is, for looks that lay out sections by that.
    pub role: Role,
}

/// What a section is on its page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Role {
    /// A result like any other.
    #[default]
    Result,
    /// All operations together, for looks that have no picture of that.
    Glance,
    /// One operation, by the id of its phase.
    Operation(String),
    /// What has to be known to judge the results.
    Method,
}

/// A statement as it was sent, and how it was answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Listing {
    /// Who was sent it.
    pub head: String,
    /// The statement.
    pub statement: String,
    /// Its plan, line by line, if it was kept.
    pub plan: Option<String>,
}

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// What stands above it.
    pub head: String,
    /// Which side its texts stand on.
    pub right: bool,
}

impl Table {
    /// Whether any cell holds this mark.
    pub(crate) fn shows(&self, mark: &str) -> bool {
        self.rows.iter().flatten().any(|cell| cell.contains(mark))
    }

    /// An empty table; a head that begins with `<` stands left, any other right.
    pub(crate) fn new(heads: &[&str]) -> Table {
        let column = |head: &&str| Column {
            head: head.trim_start_matches('<').to_owned(),
            right: !head.starts_with('<'),
        };
        Table { columns: heads.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a column on the right.
    pub(crate) fn add_column(&mut self, head: &str) {
        self.columns.push(Column { head: head.into(), right: true });
    }

    /// Leaves out columns in which no row says anything.
    pub(crate) fn without_empty_columns(mut self) -> Table {
        let says = |text: &String| !text.is_empty() && text != super::number::NONE;
        let keep: Vec<bool> =
            (0..self.columns.len()).map(|i| self.rows.iter().any(|r| says(&r[i]))).collect();
        let mut at = keep.iter();
        self.columns.retain(|_| *at.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut at = keep.iter();
            row.retain(|_| *at.next().unwrap_or(&true));
        }
        self
    }
}
