//! What a file is, by its name and by its first bytes.

use std::{fmt, path::Path, str::FromStr};

use crate::{
    Error, Result,
    format::{Format, Wrapped, gzip, zstd},
};

/// What a whole file is packed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Packing {
    /// Nothing.
    #[default]
    Plain,
    /// Gzip of this level, 0 to 9.
    Gzip(u32),
    /// Zstd of this level, 1 to 22.
    Zstd(i32),
}

impl Packing {
    /// What the end of a file's name says, and the name without it.
    pub(super) fn by_name(name: &str) -> (Option<Packing>, &str) {
        let Some((stem, extension)) = name.rsplit_once('.') else { return (None, name) };
        match extension.to_ascii_lowercase().as_str() {
            "gz" | "gzip" | "bgz" => (Some(Packing::Gzip(gzip::LEVEL)), stem),
            "zst" | "zstd" => (Some(Packing::Zstd(zstd::LEVEL)), stem),
            _ => (None, name),
        }
    }

    /// What a file's first bytes say.
    pub(super) fn by_content(head: &[u8]) -> Packing {
        // Zstd files may begin with a frame to be skipped, of sixteen kinds.
        let skippable = |head: &[u8]| matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        if head.starts_with(&gzip::MAGIC) {
            Packing::Gzip(gzip::LEVEL)
        } else if head.starts_with(&zstd::MAGIC) || skippable(head) {
            Packing::Zstd(zstd::LEVEL)
        } else {
            Packing::Plain
        }
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Packing::Plain => f.write_str("plain"),
            Packing::Gzip(gzip::LEVEL) => f.write_str("gzip"),
            Packing::Gzip(level) => write!(f, "gzip:{level}"),
            Packing::Zstd(zstd::LEVEL) => f.write_str("zstd"),
            Packing::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl FromStr for Packing {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        use crate::format::Wrap;
        match s {
            "plain" => Ok(Packing::Plain),
            _ => match s.parse() {
                Ok(Wrap::Gzip(level)) => Ok(Packing::Gzip(level)),
                Ok(Wrap::Zstd(level)) => Ok(Packing::Zstd(level)),
                Err(e) if s.starts_with("gzip:") || s.starts_with("zstd:") => Err(e),
                _ => Err(Error::invalid(format!(
                    "unknown compression {s:?}; known: plain, gzip, zstd (or gzip:LEVEL, \
                     zstd:LEVEL)"
                ))),
            },
        }
    }
}

/// The format that the end of a file's name says, packing left out: `.mrc`, or a format in full
/// as in `.json+base64`.
pub(super) fn format_by_name(name: &str) -> Option<Wrapped> {
    let (_, name) = Packing::by_name(name);
    let extension = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
    Format::ALL
        .iter()
        .find(|f| f.info().extensions.contains(&extension.as_str()))
        .map(|&f| f.into())
        .or_else(|| extension.parse().ok())
}

/// The format that a file's first (unpacked) bytes say, and whether they could be no other.
pub(super) fn format_by_content(head: &[u8]) -> Option<(Format, bool)> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let digits = |n: usize| text.len() >= n && text[..n].iter().all(u8::is_ascii_digit);
    let (name, sure) = match (head, text) {
        ([0x04, 0x08, ..], _) => ("marshal", true),
        ([0x80, 2..=5, ..], _) => ("pickle", true),
        // UTF-16, which the reader of XML can at least name.
        ([0xff, 0xfe, ..] | [0xfe, 0xff, ..], _) => ("marcxml", true),
        (_, [b'<', ..]) => ("marcxml", true),
        // A JSON object begins with a quote or ends at once, a list is not so easily told.
        (_, [b'{', rest @ ..]) if matches!(rest.trim_ascii_start(), [] | [b'"' | b'}', ..]) => {
            ("json", true)
        }
        (_, [b'[', ..]) => ("json", false),
        (_, [b'=', tag @ ..])
            if tag.len() > 3 && tag[..3].iter().all(u8::is_ascii_alphanumeric) =>
        {
            ("line", true)
        }
        // The length, then a leader: its last four bytes are digits as a rule.
        (_, [..])
            if digits(5) && text.get(20..22).is_some_and(|d| d.iter().all(u8::is_ascii_digit)) =>
        {
            ("marc21", true)
        }
        (_, [..]) if digits(5) && text.len() >= 24 && !text[..24].contains(&b'\n') => {
            ("marc21", false)
        }
        ([a, b, c, d, 0x01..=0x13, rest @ ..], _)
            if (5..1 << 26).contains(&u32::from_le_bytes([*a, *b, *c, *d]))
                && rest.iter().take(256).any(|&b| b == 0) =>
        {
            ("bson", false)
        }
        // Records are maps.
        ([0x80..=0x8f | 0xde | 0xdf, ..], _) => ("msgpack", false),
        ([0xa1..=0xbb | 0xbf, ..], _) => ("cbor", false),
        _ => return None,
    };
    Format::named(name).ok().map(|format| (format, sure))
}

/// What a file is: by its content where that leaves no doubt, by its name, by a guess.
pub(super) fn format_of(name: &str, head: &[u8]) -> Result<Wrapped> {
    let named = format_by_name(name);
    match (named, format_by_content(head)) {
        (Some(named), Some((seen, true)))
            // Wrapped records may look like anything, and two formats may have one look.
            if named.wraps.is_empty()
                && named.format != seen
                && named.format.info().framing != seen.info().framing
                && named.format.info().takes != crate::format::Takes::Rows =>
        {
            Ok(seen.into())
        }
        (Some(named), _) => Ok(named),
        (None, Some((seen, _))) => Ok(seen.into()),
        (None, None) => {
            let known: Vec<_> = Format::ALL.iter().map(|f| f.name()).collect();
            Err(Error::invalid(format!(
                "unknown format: neither its name nor its first bytes show it; choose one: {}",
                known.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_packing_and_format() {
        for (name, packing, format) in [
            ("a/b.json", None, Some("json")),
            ("b.JSON.GZ", Some("gzip"), Some("json")),
            ("b.ndjson.zst", Some("zstd"), Some("json")),
            ("b.tar.msgpack+base64.gz", Some("gzip"), Some("msgpack+base64")),
            ("b.csv", None, Some("csv")),
            ("gz", None, None),
            ("-", None, None),
            ("b.unknown", None, None),
        ] {
            assert_eq!(Packing::by_name(name).0.map(|p| p.to_string()).as_deref(), packing);
            assert_eq!(format_by_name(name).map(|f| f.to_string()).as_deref(), format, "{name}");
        }
    }

    #[test]
    fn every_format_is_known_by_its_bytes_but_rows() {
        use crate::{format::Takes, record::Document};
        for &format in Format::ALL {
            let mut bytes = Vec::new();
            match format.info().takes {
                Takes::Marc => {
                    let mut record = crate::marc::Record::new();
                    record.push_plain(*b"001", b"1").unwrap();
                    format.encode_marc(record.as_ref(), &mut bytes).unwrap();
                }
                _ => format.encode(&Document::from_iter([("name", "text")]), &mut bytes).unwrap(),
            }
            let seen = format_by_content(&bytes).map(|(f, _)| f.name());
            let want = match format.name() {
                "csv" => None,
                "sonic" => Some("json"),
                name => Some(name),
            };
            assert_eq!(seen, want, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn content_without_doubt_beats_the_name() {
        let of = |name, head: &[u8]| format_of(name, head).map(|f| f.to_string());
        assert_eq!(of("a.mrc", b"<?xml?>").unwrap(), "marcxml");
        assert_eq!(of("a.xml", b"{\"leader\":").unwrap(), "json");
        assert_eq!(of("a.mrc", b"junk").unwrap(), "marc21");
        assert_eq!(of("a.csv", b"{\"a\"").unwrap(), "csv");
        assert_eq!(of("a.json+base64", b"00000").unwrap(), "json+base64");
        assert_eq!(of("-", b"[1]").unwrap(), "json");
        let error = of("-", b"hello").unwrap_err();
        assert!(error.to_string().contains("choose one: json"), "{error}");
    }

    #[test]
    fn packings_have_names() {
        for name in ["plain", "gzip", "gzip:9", "zstd", "zstd:19"] {
            assert_eq!(name.parse::<Packing>().unwrap().to_string(), name);
        }
        assert!("gzip:10".parse::<Packing>().unwrap_err().to_string().contains("0 to 9"));
        assert!("base64".parse::<Packing>().unwrap_err().to_string().contains("known: plain"));
        assert_eq!(Packing::by_content(b"\x1f\x8b\x08"), Packing::Gzip(6));
        assert_eq!(Packing::by_content(b"\x28\xb5\x2f\xfd"), Packing::Zstd(3));
        assert_eq!(Packing::by_content(b"\x50\x2a\x4d\x18"), Packing::Zstd(3));
        assert_eq!(Packing::by_content(b""), Packing::Plain);
    }
}
