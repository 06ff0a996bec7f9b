//! Progress of long work, on stderr, and only where that is a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// A line of progress, or nothing.
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// For work over `total` bytes, where that is known.
    pub fn bytes(total: Option<u64>, quiet: bool) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Progress(None);
        }
        let (bar, style) = match total {
            Some(total) => (
                ProgressBar::new(total),
                "{bar:30} {percent:>3} %  {msg}  {binary_bytes_per_sec}  {eta} left",
            ),
            None => {
                (ProgressBar::new_spinner(), "{spinner} {msg}  {binary_bytes_per_sec}  {elapsed}")
            }
        };
        bar.set_style(ProgressStyle::with_template(style).expect("a template of our own"));
        Progress(Some(bar))
    }

    /// So many bytes are done; `message` says the rest.
    pub fn at(&self, bytes: u64, message: impl FnOnce() -> String) {
        if let Some(bar) = &self.0 {
            bar.set_position(bytes);
            bar.set_message(message());
        }
    }

    /// Prints a line above the progress.
    pub fn say(&self, line: &str) {
        match &self.0 {
            Some(bar) => bar.suspend(|| super::say(line)),
            None => super::say(line),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// `12,345` for 12345.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 record`, `2 records`.
pub fn count(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}
