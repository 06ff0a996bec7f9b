//! Standard output that is safe for a terminal: control characters in records, keys and names of fields must not reach
//! the terminal as commands.
//!
//! To anything else (a file, a pipe) the bytes are written unchanged. On a terminal, control characters are escaped: in
//! JSON as its own escapes (`\\u009b`), so that it stays the same JSON; elsewhere as `\\u{9b}`. Invalid UTF-8 becomes
//! U+FFFD there, because some terminals take single such bytes for control characters too.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
};

use crate::{
    error::gives_orders,
    format::{Format, Wrapped},
};

/// The standard output, with nothing in it that gives orders to a terminal.
pub struct Shown<W = io::Stdout> {
    out: W,
    to_terminal: bool,
    json: bool,
    /// The beginning of a character that has not all come yet.
    begun: Vec<u8>,
}

impl Shown {
    /// The standard output for records of this format.
    pub fn of(format: &Wrapped) -> Shown {
        Shown::new(format.format == Format::Json && format.wraps.is_empty())
    }

    /// The standard output for JSON, or for other text.
    pub fn new(json: bool) -> Shown {
        let out = io::stdout();
        Shown { to_terminal: out.is_terminal(), out, json, begun: Vec::new() }
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.to_terminal {
            return self.out.write(bytes);
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.push(chunk.valid(), &mut text);
            let bad = chunk.invalid();
            let cut = |e: std::str::Utf8Error| e.error_len().is_none();
            match chunks.peek() {
                None if std::str::from_utf8(bad).is_err_and(cut) => self.begun = bad.to_vec(),
                _ if bad.is_empty() => (),
                _ => text.push('\u{fffd}'),
            }
        }
        self.out.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W> Shown<W> {
    fn push(&self, piece: &str, text: &mut String) {
        let mut chars = piece.chars().peekable();
        while let Some(c) = chars.next() {
            let is_line_end = c == '\r' && chars.peek() == Some(&'\n');
            let written = match c {
                c if !gives_orders(c) || matches!(c, '\n' | '\t') || is_line_end => {
                    text.write_char(c)
                }
                c if self.json => write!(text, "\\u{:04x}", u32::from(c)),
                c => write!(text, "{}", c.escape_unicode()),
            };
            written.expect("a String takes all");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(to_terminal: bool, json: bool, pieces: &[&[u8]]) -> Vec<u8> {
        let mut shown = Shown { out: Vec::new(), to_terminal, json, begun: Vec::new() };
        pieces.iter().for_each(|piece| shown.write_all(piece).unwrap());
        shown.flush().unwrap();
        shown.out
    }

    #[test]
    fn orders_are_escaped_on_terminals_and_nowhere_else() {
        let text = "{\"a\u{9b}\": \"\u{7f}é漢\u{202e}\"}\t\r.\n".as_bytes();
        let odd = b"\x9bm\x1b[2J\xc3";
        assert_eq!(shown(false, true, &[text, odd]), [text, odd].concat());
        let json = "{\"a\\u009b\": \"\\u007fé漢\\u202e\"}\t\\u000d.\n";
        assert_eq!(shown(true, true, &[text]), json.as_bytes());
        assert_eq!(shown(true, false, &[odd]), "\u{fffd}m\\u{1b}[2J".as_bytes());
        assert_eq!(shown(true, true, &[b"1\r\n2\n"]), b"1\r\n2\n");
        // Characters may come in pieces.
        for at in 0..text.len() {
            assert_eq!(shown(true, true, &[&text[..at], &text[at..]]), json.as_bytes(), "{at}");
        }
    }
}
