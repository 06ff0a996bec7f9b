//! The bytes that a writer puts before, between and after records.

use crate::{
    Error, ErrorKind, Result,
    format::{Framing, Wrapped, csv},
    marc::xml,
};

/// Puts records into a file of a format, one after another.
#[derive(Debug)]
pub struct Glue {
    framing: Framing,
    /// Each record is the bare text of the format, not wrapped in another.
    bare: bool,
    begun: bool,
    /// The header line of CSV, once it was written.
    head: Vec<u8>,
}

impl Glue {
    /// Glue for a new file of this format.
    pub fn new(wrapped: &Wrapped) -> Self {
        let bare = wrapped.wraps.is_empty();
        Glue { framing: wrapped.framing(), bare, begun: false, head: Vec::new() }
    }

    /// The same glue for records in the middle of a file: what stands before the first of them is
    /// written by whoever begins it.
    pub fn inside(mut self) -> Self {
        self.begun = true;
        self
    }

    /// Appends what comes before the first record, once.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
    }

    /// Appends one record to the file's bytes: what `encode` appends, and what belongs around it.
    ///
    /// # Errors
    /// Those of `encode`; [`Unsupported`](ErrorKind::Unsupported) where the record cannot stand
    /// among those before it (a CSV row with other columns). The record has then left no trace.
    pub fn put(
        &mut self,
        out: &mut Vec<u8>,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        self.begin(out);
        let before = out.len();
        if let Framing::Prefixed = self.framing {
            out.extend_from_slice(&[0; 4]);
        }
        let start = out.len();
        let done = encode(out).and_then(|()| self.end(start, out));
        if done.is_err() {
            out.truncate(before);
        }
        done
    }

    /// Appends what comes after the last record. Nothing may follow.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        if let Framing::Elements = self.framing {
            out.extend_from_slice(xml::EPILOGUE.as_bytes());
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true)
            && let Framing::Elements = self.framing
        {
            out.extend_from_slice(xml::PROLOGUE.as_bytes());
        }
    }

    fn end(&mut self, start: usize, out: &mut Vec<u8>) -> Result<()> {
        match self.framing {
            Framing::Delimited | Framing::Marc => {}
            Framing::Lines => {
                if memchr::memchr(b'\n', &out[start..]).is_some() {
                    if !self.bare {
                        return Err(Error::unsupported("a record that is more than one line"));
                    }
                    // Within JSON line breaks are blanks: in text they are written `\n`.
                    for byte in &mut out[start..] {
                        if matches!(byte, b'\n' | b'\r') {
                            *byte = b' ';
                        }
                    }
                }
                out.push(b'\n');
            }
            Framing::Elements => {
                if out.last() != Some(&b'\n') {
                    out.push(b'\n');
                }
            }
            Framing::Paragraphs => {
                if out.last() != Some(&b'\n') {
                    out.push(b'\n');
                }
                out.push(b'\n');
            }
            Framing::Prefixed => {
                let length = u32::try_from(out.len() - start)
                    .map_err(|_| Error::new(ErrorKind::TooLarge, "a record of over 4 GiB"))?;
                out[start - 4..start].copy_from_slice(&length.to_be_bytes());
            }
            Framing::Header => {
                let head = csv::line_end(&out[start..], true).unwrap_or(0);
                let header = &out[start..start + head];
                if self.head.is_empty() {
                    self.head.extend_from_slice(header);
                } else if self.head == header {
                    out.drain(start..start + head);
                } else {
                    let line = |l: &[u8]| String::from_utf8_lossy(l.trim_ascii_end()).into_owned();
                    return Err(Error::unsupported(format!(
                        "the columns differ from those of the first row: {} instead of {}",
                        line(header),
                        line(&self.head)
                    )));
                }
            }
        }
        Ok(())
    }
}
