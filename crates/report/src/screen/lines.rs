//! Lines of a screen: cut or wrapped to its width, in columns as terminals count them.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How much a line stands out, on a terminal that shows that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Plain,
    Bold,
    Dim,
}

/// A piece of a line.
pub(super) type Span = (Weight, String);

/// Lines no wider than a screen.
pub(super) struct Lines {
    width: usize,
    lines: Vec<Vec<Span>>,
}

/// The columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// A text that is cut, with `…` at its end, to so many columns.
pub(super) fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let wide = c.width().unwrap_or(0);
        if wide > left {
            break;
        }
        left -= wide;
        end = at + c.len_utf8();
    }
    format!("{}…", text[..end].trim_end())
}

/// A text with blanks behind it, or before it, to so many columns.
pub(super) fn pad(text: &str, width: usize, right: bool) -> String {
    let text = fit(text, width);
    let blanks = " ".repeat(width - columns(&text));
    if right { blanks + &text } else { text + &blanks }
}

impl Lines {
    pub(super) fn new(width: usize) -> Lines {
        Lines { width, lines: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// An empty line, where the line before is none.
    pub(super) fn blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Vec::new());
        }
    }

    /// A line, cut where it is too long.
    pub(super) fn cut(&mut self, weight: Weight, text: &str) {
        self.lines.push(vec![(weight, fit(text, self.width))]);
    }

    /// A line whose text is cut so that its end has room.
    pub(super) fn cut_before(&mut self, weight: Weight, text: &str, end: &str) {
        let text = fit(text, self.width.saturating_sub(columns(end)));
        self.cut(weight, &(text + end));
    }

    /// A line of pieces that are known to fit.
    pub(super) fn spans(&mut self, spans: Vec<Span>) {
        self.lines.push(spans);
    }

    /// A paragraph, in so many lines at most.
    pub(super) fn paragraph(&mut self, weight: Weight, text: &str, most: usize) {
        let from = self.lines.len();
        self.wrapped(weight, "", text, most);
        self.lines[from..].iter_mut().flatten().for_each(|span| span.0 = weight);
    }

    /// A paragraph behind a head, in so many lines at most.
    pub(super) fn wrapped(&mut self, head_weight: Weight, head: &str, text: &str, most: usize) {
        let indent = " ".repeat(columns(head));
        let room = self.width - columns(head);
        let mut rows: Vec<String> = Vec::new();
        for word in text.split(' ') {
            match rows.last_mut() {
                Some(row) if columns(row) + 1 + columns(word) <= room => {
                    row.push(' ');
                    row.push_str(word);
                }
                _ => rows.push(fit(word, room)),
            }
        }
        let most = most.max(1);
        if rows.len() > most {
            let rest = rows.split_off(most - 1).join(" ");
            rows.push(fit(&rest, room));
        }
        for (n, row) in rows.into_iter().enumerate() {
            let first = if n == 0 { head } else { &indent };
            let spans = [(head_weight, first.to_owned()), (Weight::Plain, row)];
            self.lines.push(spans.into_iter().filter(|(_, text)| !text.is_empty()).collect());
        }
    }

    pub(super) fn append(&mut self, other: Lines) {
        self.lines.extend(other.lines);
    }

    /// The text, with the codes of bold and dim where a terminal shows them.
    pub(super) fn text(self, styled: bool) -> String {
        let mut out = String::new();
        for line in self.lines {
            let mut text = String::new();
            for (weight, span) in line {
                text += &match weight {
                    Weight::Bold if styled => format!("\x1b[1m{span}\x1b[0m"),
                    Weight::Dim if styled => format!("\x1b[2m{span}\x1b[0m"),
                    _ => span,
                };
            }
            out += text.trim_end();
            out.push('\n');
        }
        out
    }
}
