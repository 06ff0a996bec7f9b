//! CSV (RFC 4180): a record is a header line with its names and a line with its values.
//!
//! In a file the header comes once (see `framing.rs`); encoded alone, each record is a small CSV
//! file. Everything is text: what is read back is text, unless the type asked for says otherwise.
//! The codec is our own, since the csv crate makes its buffers anew for every small file; tests
//! hold the two against each other.

mod read;
mod write;

use std::borrow::Cow;

use serde::{Serialize, de::DeserializeSeed};

use super::{By, Code, Framing, Info, Takes};
use crate::{Error, Result, record::Kind};

pub(super) const INFO: Info = Info {
    name: "csv",
    extensions: &["csv"],
    framing: Framing::Header,
    takes: Takes::Rows,
    keeps: &[Kind::Text],
    loses: "every value becomes text, and null becomes empty text; lists, maps and bytes are \
            refused",
    marc: Code::of(By::OwnSerde),
    values: Code::of(By::OwnSerde),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    write::row(record, out)
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    let header = line_end(bytes, true)
        .ok_or_else(|| Error::malformed("a CSV record without a line of values"))?;
    let (names, values) = bytes.split_at(header);
    match line_end(values, true) {
        Some(end) if end == values.len() => {}
        Some(end) => {
            let at = (header + end) as u64;
            return Err(Error::malformed("more lines after the CSV record").at(at));
        }
        None => return Err(Error::malformed("a CSV record without a line of values")),
    }
    seed.deserialize(read::Row { names: Cells::of(names), values: Cells::of(values), at: header })
}

/// Where the line at the start of `bytes` ends, its line break included, quotes observed; `None`
/// where it goes on beyond them. At the end of the input a line needs no break.
pub(super) fn line_end(bytes: &[u8], eof: bool) -> Option<usize> {
    let mut at = 0;
    // Outside of quotes lines end; a quote inside quotes is doubled, which leaves and enters.
    loop {
        match memchr::memchr2(b'\n', b'"', &bytes[at..]) {
            Some(i) if bytes[at + i] == b'\n' => return Some(at + i + 1),
            Some(i) => match memchr::memchr(b'"', &bytes[at + i + 1..]) {
                Some(close) => at += i + 1 + close + 1,
                None => break,
            },
            None => break,
        }
    }
    (eof && !bytes.is_empty()).then_some(bytes.len())
}

/// The cells of one line.
#[derive(Clone)]
struct Cells<'a> {
    /// What is left of the line, without its break; `None` after the last cell.
    rest: Option<&'a [u8]>,
}

impl<'a> Cells<'a> {
    fn of(line: &'a [u8]) -> Self {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        Cells { rest: Some(line.strip_suffix(b"\r").unwrap_or(line)) }
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Result<Cow<'a, str>>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let Some(quoted) = rest.strip_prefix(b"\"") else {
            let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
            self.rest = rest.get(end + 1..);
            return Some(text(&rest[..end]).map(Cow::Borrowed));
        };
        let mut doubled = false;
        let mut from = 0;
        let close = loop {
            let Some(i) = memchr::memchr(b'"', &quoted[from..]) else {
                return Some(Err(Error::malformed("a quote that is not closed")));
            };
            match quoted.get(from + i + 1) {
                Some(b'"') => (doubled, from) = (true, from + i + 2),
                _ => break from + i,
            }
        };
        self.rest = match quoted.get(close + 1) {
            None => None,
            Some(b',') => Some(&quoted[close + 2..]),
            Some(_) => return Some(Err(Error::malformed("text after a closing quote"))),
        };
        Some(text(&quoted[..close]).map(|cell| match doubled {
            true => Cow::Owned(cell.replace("\"\"", "\"")),
            false => Cow::Borrowed(cell),
        }))
    }
}

fn text(cell: &[u8]) -> Result<&str> {
    simdutf8::basic::from_utf8(cell)
        .map_err(|e| Error::malformed("a cell that is not UTF-8").with_source(e))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;
    use crate::record::{Document, Value};

    fn encoded<T: Serialize>(record: &T) -> String {
        let mut out = Vec::new();
        encode(record, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn types_come_back_documents_become_text() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Row {
            n: i64,
            x: f64,
            yes: bool,
            none: Option<u8>,
            some: Option<u8>,
            text: String,
        }
        let row =
            Row { n: -1, x: 0.5, yes: true, none: None, some: Some(3), text: "a \"b\", c".into() };
        let csv = encoded(&row);
        assert_eq!(csv, "n,x,yes,none,some,text\n-1,0.5,true,,3,\"a \"\"b\"\", c\"\n");
        assert_eq!(crate::format::Format::Csv.decode::<Row>(csv.as_bytes()).unwrap(), row);
        let document: Document = crate::format::Format::Csv.decode(csv.as_bytes()).unwrap();
        assert!(document.iter().all(|(_, v)| v.as_str().is_some()), "{document:?}");
    }

    #[test]
    fn one_empty_cell_is_not_an_empty_line() {
        let document = Document::from_iter([("", "")]);
        assert_eq!(encoded(&document), "\"\"\n\"\"\n");
        assert_eq!(
            crate::format::Format::Csv.decode::<Document>(encoded(&document).as_bytes()).unwrap(),
            document
        );
    }

    #[test]
    fn refuses_what_has_no_row() {
        let nested = Document::from_iter([("a", Value::List(vec![]))]);
        for (refused, want) in [
            (encode(&nested, &mut vec![]), "\"a\" is a list"),
            (encode(&vec![1], &mut vec![]), "a map, not a list"),
            (encode(&Document::new(), &mut vec![]), "an empty map"),
            (encode(&Document::from_iter([("b", vec![1u8])]), &mut vec![]), "\"b\" is bytes"),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
            assert!(error.to_string().contains(want), "{error}");
        }
    }

    #[test]
    fn refuses_what_is_no_record() {
        for (bytes, want) in [
            (&b""[..], "without a line of values"),
            (b"a,b\n", "without a line of values"),
            (b"a,b\n1\n", "1 values for 2 names"),
            (b"a,b\n1,2,3\n", "3 values for 2 names"),
            (b"a\n1\n2\n", "more lines"),
            (b"a\n\"1\n", "not closed"),
            (b"a\n\"1\"2\n", "after a closing quote"),
            (b"a\n\xff\n", "not UTF-8"),
        ] {
            let error = crate::format::Format::Csv.decode::<Document>(bytes).unwrap_err();
            assert!(error.to_string().contains(want), "{}: {error}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn the_csv_crate_agrees(
            rows in prop::collection::vec(("[a-z\",\n\r é]{0,6}", "[a-z\",\n\r é]{0,6}"), 1..5)
        ) {
            let document = Document::from_iter(rows.clone());
            let ours = encoded(&document);
            let mut reader = csv::Reader::from_reader(ours.as_bytes());
            let names: Vec<_> = reader.headers().unwrap().iter().map(str::to_owned).collect();
            let values: Vec<_> =
                reader.records().next().unwrap().unwrap().iter().map(str::to_owned).collect();
            let theirs: Vec<_> = names.into_iter().zip(values).collect();
            prop_assert_eq!(&theirs, &rows);

            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(rows.iter().map(|r| &r.0)).unwrap();
            writer.write_record(rows.iter().map(|r| &r.1)).unwrap();
            let theirs = writer.into_inner().unwrap();
            prop_assert_eq!(crate::format::Format::Csv.decode::<Document>(&theirs).unwrap(), document);
        }
    }
}
