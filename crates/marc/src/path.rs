//! What names a part of a MARC record: `245`, `245$a`, `650[2]a`, `008/35-37`, `245/ind2`, `LDR/06`.

use std::{fmt, num::NonZeroUsize, str::FromStr};

use super::{Content, FieldRef, RecordRef};
use crate::{Error, Result};

/// A part of a MARC record.
///
/// | written | names |
/// |---|---|
/// | `245` | every field 245 |
/// | `6XX` | every field whose tag begins with 6; `X` stands for any character |
/// | `245a`, `245$a` | every subfield `a` of fields 245 |
/// | `650ax`, `650$a$x` | every subfield `a` or `x` |
/// | `650[2]a` | the same of the second field 650 only |
/// | `245/ind2` | the second indicator |
/// | `008/35-37`, `LDR/06` | characters 35 to 37 of field 008, character 6 of the leader, counted from 0 |
///
/// Subfield codes are small letters and digits; any other one needs `$` before it: `245$!`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    text: String,
    /// `X` stands for any character.
    tag: [u8; 3],
    /// Which of the fields with this tag, from 1.
    nth: Option<NonZeroUsize>,
    part: Part,
    /// Characters of the text, both included.
    positions: Option<(usize, usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Leader,
    Field,
    Subfields(Vec<u8>),
    /// 0 or 1.
    Indicator(usize),
}

/// Where in its text a path is wrong, in bytes, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub struct Wrong {
    pub at: usize,
    pub why: String,
}

impl Path {
    /// Reads a path.
    #[doc(hidden)]
    pub fn parse(text: &str) -> Result<Path, Wrong> {
        let wrong = |at: usize, why: &str| Err(Wrong { at, why: why.into() });
        let Some((tag, mut rest)) = text.as_bytes().split_first_chunk::<3>() else {
            return wrong(
                0,
                "a MARC path begins with a tag of three characters, such as 245, 6XX or LDR",
            );
        };
        // Tags in small letters could be, and are not met; `title` is what somebody hopes for.
        let tag = tag.map(|b| if b == b'x' { b'X' } else { b });
        if let Some(at) = tag.iter().position(|b| !b.is_ascii_digit() && !b.is_ascii_uppercase()) {
            return wrong(
                at,
                "a MARC path begins with a tag: digits, capital letters, X for any character",
            );
        }
        let at = |rest: &[u8]| text.len() - rest.len();
        let mut nth = None;
        if let Some(inside) = rest.strip_prefix(b"[") {
            let end = inside.iter().position(|b| *b == b']');
            let number = end.and_then(|end| std::str::from_utf8(&inside[..end]).ok()?.parse().ok());
            let (Some(end), Some(number)) = (end, number) else {
                return wrong(at(rest), "[ ] takes the number of the field, from 1: 650[2]a");
            };
            (nth, rest) = (Some(number), &inside[end + 1..]);
        }
        let mut codes = Vec::new();
        loop {
            match rest {
                [b'$', code, more @ ..] if code.is_ascii_graphic() => {
                    codes.push(*code);
                    rest = more;
                }
                [b'$', ..] => return wrong(at(rest), "$ stands before a subfield code: 245$a"),
                [code, ..] if codes.contains(code) => {
                    return wrong(at(rest), "this subfield code is named twice");
                }
                [code, more @ ..] if code.is_ascii_lowercase() || code.is_ascii_digit() => {
                    codes.push(*code);
                    rest = more;
                }
                [] | [b'/', ..] => break,
                [other, ..] => {
                    let c = text[at(rest)..].chars().next().unwrap_or(char::from(*other));
                    return wrong(
                        at(rest),
                        &format!(
                            "{c:?} is not a subfield code; codes are a to z and 0 to 9, others \
                             are written ${c}"
                        ),
                    );
                }
            }
        }
        if codes.starts_with(b"ind") {
            return wrong(
                3,
                "an indicator is written 245/ind1; subfields i, n and d are 245$i$n$d",
            );
        }
        let mut part = match codes.is_empty() {
            true => Part::Field,
            false => Part::Subfields(codes),
        };
        let leader = tag == *b"LDR";
        let control = tag[0] == b'0' && tag[1] == b'0';
        if leader && nth.is_some() {
            return wrong(3, "a record has one leader");
        }
        if (leader || control) && matches!(part, Part::Subfields(_)) {
            return wrong(
                3,
                "the leader and fields 00X have no subfields; name characters by their positions: 008/35-37",
            );
        }
        if leader {
            part = Part::Leader;
        }
        let mut positions = None;
        if let Some(after) = rest.strip_prefix(b"/") {
            let (whole, after) = (at(rest), std::str::from_utf8(after).unwrap_or_default());
            match after {
                "ind1" | "ind2" if part != Part::Field || control => {
                    return wrong(whole, "only a whole data field has indicators: 245/ind1");
                }
                "ind1" => part = Part::Indicator(0),
                "ind2" => part = Part::Indicator(1),
                _ => {
                    let (from, to) = after.split_once('-').unwrap_or((after, after));
                    let number = |text: &str| -> Option<usize> {
                        text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
                    };
                    match (number(from), number(to)) {
                        (Some(from), Some(to)) if from <= to => positions = Some((from, to)),
                        _ => {
                            return wrong(
                                whole,
                                "/ stands before positions, counted from 0, or an indicator: 008/35-37, LDR/06, 245/ind2",
                            );
                        }
                    }
                }
            }
        }
        if let (Some((_, to)), Some(length)) = (positions, length_of(tag))
            && to >= length
        {
            let name = if leader { "the leader" } else { "this field" };
            let why = format!("{name} has characters 0 to {}", length - 1);
            return wrong(text.len() - rest.len(), &why);
        }
        Ok(Path { text: text.to_owned(), tag, nth, part, positions })
    }

    /// Whether the leader is meant.
    pub fn is_leader(&self) -> bool {
        self.part == Part::Leader
    }

    /// The codes of the subfields that are meant; none where whole fields, an indicator or the leader are.
    pub fn codes(&self) -> Option<&[u8]> {
        match &self.part {
            Part::Subfields(codes) => Some(codes),
            _ => None,
        }
    }

    /// Whether a field with this tag can be meant.
    pub fn matches(&self, tag: [u8; 3]) -> bool {
        !self.is_leader() && self.tag.iter().zip(tag).all(|(want, is)| *want == b'X' || *want == is)
    }

    /// Whether the field that is the `n`th of those that [match](Path::matches), from 1, is meant.
    pub fn takes_nth(&self, n: usize) -> bool {
        self.nth.is_none_or(|nth| nth.get() == n)
    }

    /// The fields that are meant, or of which a part is.
    pub fn fields<'r>(&self, record: RecordRef<'r>) -> impl Iterator<Item = FieldRef<'r>> {
        let (skip, most) = match self.nth {
            None => (0, usize::MAX),
            Some(nth) => (nth.get() - 1, 1),
        };
        record.fields().filter(|field| self.matches(field.tag())).skip(skip).take(most)
    }

    /// Calls `each` with the bytes of every part of `record` that is meant, whole, until it says enough;
    /// gives whether it did. [`cut`](Path::cut) takes the positions from their text.
    pub fn parts(&self, record: RecordRef<'_>, mut each: impl FnMut(&[u8]) -> bool) -> bool {
        if self.is_leader() {
            return each(&record.leader().0);
        }
        self.fields(record).any(|field| match (&self.part, field.content()) {
            (Part::Field, Content::Plain(text)) => each(text),
            (Part::Field, Content::Data(..)) => each(field.to_string().as_bytes()),
            (Part::Indicator(i), Content::Data(indicators, _)) => each(&indicators[*i..=*i]),
            (Part::Subfields(codes), Content::Data(_, mut subfields)) => {
                subfields.any(|s| matches!(s.code, [c] if codes.contains(c)) && each(s.value))
            }
            _ => false,
        })
    }

    /// What the path means of a part's text: all of it, or its positions; none where the text ends before the
    /// first of them.
    pub fn cut<'t>(&self, text: &'t str) -> Option<&'t str> {
        let Some((from, to)) = self.positions else { return Some(text) };
        let at = |n: usize| text.char_indices().nth(n).map(|(at, _)| at);
        Some(&text[at(from)?..at(to.saturating_add(1)).unwrap_or(text.len())])
    }
}

/// How many characters the leader and fields of fixed length have, by the standard.
fn length_of(tag: [u8; 3]) -> Option<usize> {
    match &tag {
        b"LDR" => Some(24),
        b"005" => Some(16),
        b"006" => Some(18),
        b"008" => Some(40),
        _ => None,
    }
}

impl FromStr for Path {
    type Err = Error;
    fn from_str(text: &str) -> Result<Path> {
        Path::parse(text).map_err(|wrong| {
            Error::invalid(format!("{text:?} is not a path into a MARC record: {}", wrong.why))
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn record() -> Record {
        let mut r = Record::new();
        r.push_plain(*b"001", b"42").unwrap();
        r.push_plain(*b"008", b"851231s1985    xx            000 0 eng d").unwrap();
        r.push_data(*b"245", *b"10", &[(b'a', b"Weights"), (b'c', b"me"), (b'!', b"odd")]).unwrap();
        r.push_data(*b"650", *b" 0", &[(b'a', b"Scales"), (b'x', b"History")]).unwrap();
        r.push_data(*b"650", *b" 7", &[(b'a', b"H\xc3\xa4nse")]).unwrap();
        r
    }

    fn texts(path: &str) -> Vec<String> {
        let path: Path = path.parse().unwrap();
        let mut found = Vec::new();
        path.parts(record().as_ref(), |bytes| {
            found.extend(path.cut(&String::from_utf8_lossy(bytes)).map(str::to_owned));
            false
        });
        found
    }

    #[test]
    fn parts_are_found() {
        for (path, want) in [
            ("001", &["42"][..]),
            ("245a", &["Weights"]),
            ("245$a", &["Weights"]),
            ("245ac", &["Weights", "me"]),
            ("245$a$c", &["Weights", "me"]),
            ("245$!", &["odd"]),
            ("650a", &["Scales", "Hänse"]),
            ("6XXa", &["Scales", "Hänse"]),
            ("6xxa", &["Scales", "Hänse"]),
            ("650[2]a", &["Hänse"]),
            ("650[3]a", &[]),
            ("650/ind2", &["0", "7"]),
            ("650[1]/ind1", &[" "]),
            ("008/35-37", &["eng"]),
            ("008/35", &["e"]),
            ("001/1-9", &["2"]),
            ("001/7", &[]),
            ("650a/1-2", &["ca", "än"]),
            ("LDR/06", &["a"]),
            ("880", &[]),
        ] {
            assert_eq!(texts(path), want, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_has_its_place() {
        for (path, at) in [
            ("", 0),
            ("24", 0),
            ("title", 0),
            ("2é5", 1),
            ("245[0]", 3),
            ("245[x]", 3),
            ("245[1", 3),
            ("245é", 3),
            ("245A", 3),
            ("650*", 3),
            ("650a!", 4),
            ("650$", 3),
            ("650$ ", 3),
            ("LDRa", 3),
            ("LDR[1]", 3),
            ("008a", 3),
            ("008/ind1", 3),
            ("245a/ind1", 4),
            ("245/ind3", 3),
            ("008/", 3),
            ("008/5-3", 3),
            ("008/+5", 3),
            ("008/35-37x", 3),
            ("008/40", 3),
            ("LDR/24", 3),
            ("245ind2", 3),
            ("245aa", 4),
        ] {
            let wrong = Path::parse(path).unwrap_err();
            assert_eq!(wrong.at, at, "{path}: {}", wrong.why);
        }
    }
}
