//! Tests that have to be evaluated on the record itself: the databases do not agree on one meaning for them, so every
//! store refuses them ([`Need::Look`](crate::store::Need::Look)), and `streamed.rs` evaluates them on the records.

use std::{borrow::Cow, cmp::Ordering, fmt};

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::{Path, Test, compare, condition::Sign};
use crate::{
    format::Format,
    marc::{self, RecordRef},
    record::{Document, Value},
    store::Key,
};

/// A test that is evaluated on the record itself, not by the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    pub(super) part: Part,
    pub(super) check: Check,
    /// As people read it.
    pub(super) shown: String,
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Document(Vec<Step>),
    Marc(marc::Path),
}

impl Part {
    fn of(path: &Path) -> Part {
        Part::Document(Step::of(path))
    }
}

/// A step of a path of documents.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Name(String),
    /// Every element of a list.
    Each,
}

impl Step {
    pub(super) fn of(path: &Path) -> Vec<Step> {
        path.names().iter().cloned().map(Step::Name).collect()
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Step::Name(name) => Some(name),
            Step::Each => None,
        }
    }
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Check {
    There,
    /// A value, as stores compare them.
    Value(Test),
    Text(TextTest),
    /// How many there are.
    Count(Test),
    /// How many characters a text has.
    Length(Test),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TextTest {
    Compare(Comparison),
    Equals(Fold),
    Contains(Fold),
    Begins(Fold),
    Matches(Pattern),
}

/// What a text is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Compared {
    /// Only texts that are numbers compare with it.
    Number(Value),
    Text(String),
}

impl Compared {
    pub(super) fn by(self, sign: Sign, spelled: Spelled) -> Comparison {
        let with = match self {
            Compared::Text(text) => Compared::Text(spelled.text(&text).into_owned()),
            number => number,
        };
        Comparison { sign, with }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Comparison {
    sign: Sign,
    with: Compared,
}

impl Comparison {
    fn holds(&self, text: &str) -> bool {
        let order = match &self.with {
            Compared::Text(with) => Some(text.cmp(with)),
            Compared::Number(with) => number_of(text).and_then(|number| compare(&number, with)),
        };
        order.is_some_and(match self.sign {
            Sign::Less => Ordering::is_lt,
            Sign::AtMost => Ordering::is_le,
            Sign::Greater => Ordering::is_gt,
            Sign::AtLeast => Ordering::is_ge,
            _ => Ordering::is_eq,
        })
    }
}

/// A text to look for, perhaps in capital and small letters alike.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fold {
    text: String,
    any_case: bool,
}

impl Fold {
    pub(super) fn new(text: &str, any_case: bool, spelled: Spelled) -> Fold {
        let text = spelled.text(text);
        let text = if any_case { text.to_lowercase() } else { text.into_owned() };
        Fold { text, any_case }
    }

    fn holds(&self, text: &str, test: fn(&str, &str) -> bool) -> bool {
        match self.any_case {
            true => test(&text.to_lowercase(), &self.text),
            false => test(text, &self.text),
        }
    }
}

/// A regular expression.
#[derive(Debug, Clone)]
pub(super) struct Pattern(regex::Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Pattern {
    /// How much memory a compiled pattern may take.
    const SIZE: usize = 1 << 20;

    pub(super) fn new(text: &str, any_case: bool) -> Result<Pattern, String> {
        // Flags are part of the text, so that two patterns are equal where their texts are.
        let text = if any_case { format!("(?i){text}") } else { text.to_owned() };
        let built = regex::RegexBuilder::new(&text).size_limit(Pattern::SIZE).build();
        built.map(Pattern).map_err(|e| match e {
            regex::Error::CompiledTooBig(limit) => {
                format!("a pattern that needs over {limit} bytes of memory")
            }
            e => {
                // The last line says what; those before it show the place.
                let text = e.to_string();
                let why = text.lines().last().unwrap_or_default();
                format!("not a regular expression: {}", why.trim_start_matches("error: "))
            }
        })
    }
}

impl TextTest {
    fn holds(&self, text: &str) -> bool {
        match self {
            TextTest::Compare(comparison) => comparison.holds(text),
            TextTest::Equals(with) => with.holds(text, |a, b| a == b),
            TextTest::Contains(with) => with.holds(text, |a, b| a.contains(b)),
            TextTest::Begins(with) => with.holds(text, |a, b| a.starts_with(b)),
            TextTest::Matches(pattern) => pattern.0.is_match(text),
        }
    }
}

impl Check {
    fn counts(&self) -> bool {
        matches!(self, Check::Count(_))
    }

    /// Whether a number of parts, or of characters, is the one wanted.
    fn number(test: &Test, number: usize) -> bool {
        test.holds(Some(&Value::Int(number as i64)))
    }

    fn text(&self, text: &str) -> bool {
        match self {
            Check::There | Check::Count(_) => true,
            Check::Text(test) => test.holds(text),
            Check::Value(test) => test.holds(Some(&Value::from(text))),
            Check::Length(test) => Check::number(test, text.chars().count()),
        }
    }

    fn value(&self, value: &Value) -> bool {
        match (self, value) {
            (Check::There | Check::Count(_), _) => true,
            (Check::Value(test), value) => test.holds(Some(value)),
            (check, Value::Text(text)) => check.text(text),
            _ => false,
        }
    }
}

impl Look {
    pub(super) fn is_pattern(&self) -> bool {
        matches!(self.check, Check::Text(TextTest::Matches(_)))
    }

    /// That the text under the path contains this.
    pub(super) fn contains(path: &Path, text: &str) -> Look {
        let check = Check::Text(TextTest::Contains(Fold::new(text, false, Spelled::AsItIs)));
        Look { part: Part::of(path), check, shown: format!("{path} ~ {text:?}") }
    }

    /// That the text under the path matches this regular expression.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub(super) fn pattern(path: &Path, text: &str) -> Result<Look, String> {
        let check = Check::Text(TextTest::Matches(Pattern::new(text, false)?));
        Ok(Look { part: Part::of(path), check, shown: format!("{path} ~ /{text}/") })
    }

    /// The field of a document that it looks at, up to the first list; none where it only asks whether that is there.
    pub(super) fn path(&self) -> Option<Path> {
        match (&self.part, &self.check) {
            (Part::Document(steps), check) if !matches!(check, Check::There | Check::Count(_)) => {
                Some(Path::new(steps.iter().map_while(Step::name)))
            }
            _ => None,
        }
    }

    /// Whether it looks at MARC records.
    pub(super) fn is_marc(&self) -> bool {
        matches!(self.part, Part::Marc(_))
    }

    /// A key can be looked at without its record.
    pub(super) fn fits_document(&self, key: Option<&Key>, record: Option<&Document>) -> bool {
        let Part::Document(steps) = &self.part else { return false };
        if let ([Step::Name(name)], Some(key)) = (&steps[..], key)
            && name == Path::KEY
        {
            return match &self.check {
                Check::Count(test) => Check::number(test, 1),
                check => check.text(key.as_str()),
            };
        }
        let Some((Step::Name(first), rest)) = steps.split_first() else { return false };
        let Some(value) = record.and_then(|record| record.get(first)) else {
            return matches!(&self.check, Check::Count(test) if Check::number(test, 0));
        };
        if let Check::Count(test) = &self.check {
            return Check::number(test, counted(value, rest));
        }
        any(value, rest, &mut |value| self.check.value(value))
    }

    pub(super) fn fits_marc(&self, record: RecordRef<'_>) -> bool {
        let Part::Marc(path) = &self.part else { return false };
        let mut count = 0;
        let found = path.parts(record, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let text = Spelled::Composed.text(&text);
            let Some(text) = path.cut(&text) else { return false };
            count += 1;
            // Counting needs them all.
            !self.check.counts() && self.check.text(text)
        });
        match &self.check {
            Check::Count(test) => Check::number(test, count),
            _ => found,
        }
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Calls `each` with every value at the end of the path, until it says enough; gives whether it did.
pub(super) fn any(value: &Value, steps: &[Step], each: &mut dyn FnMut(&Value) -> bool) -> bool {
    match steps.split_first() {
        None => each(value),
        Some((Step::Name(name), rest)) => {
            let inner = value.as_map().and_then(|map| map.get(name));
            inner.is_some_and(|inner| any(inner, rest, each))
        }
        Some((Step::Each, rest)) => match value {
            Value::List(list) => list.iter().any(|element| any(element, rest, each)),
            _ => false,
        },
    }
}

/// How many values are at the end of the path: of a list, its elements. An element counts as one, also where it is
/// a list itself.
fn counted(value: &Value, steps: &[Step]) -> usize {
    let (mut count, elements) = (0, matches!(steps.last(), Some(Step::Each)));
    any(value, steps, &mut |value| {
        count += match value {
            Value::List(list) if !elements => list.len(),
            _ => 1,
        };
        false
    });
    count
}

/// How texts are spelled before they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelled {
    /// As stores compare the texts of documents.
    AsItIs,
    /// In Unicode form C, as letters with accents are written in two ways in MARC records.
    Composed,
}

impl Spelled {
    fn text(self, text: &str) -> Cow<'_, str> {
        let is = || text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes;
        match self == Spelled::AsItIs || is() {
            true => Cow::Borrowed(text),
            false => Cow::Owned(text.nfc().collect()),
        }
    }
}

/// The number that a text is, read as a decimal; leading zeros and a `+` are allowed.
pub(super) fn number_of(text: &str) -> Option<Value> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
    let fits = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
    if whole == 0 || !digits.bytes().all(fits) {
        return None;
    }
    let zeros = digits[..whole - 1].bytes().take_while(|b| *b == b'0').count();
    Format::Json.decode::<Value>(format!("{sign}{}", &digits[zeros..]).as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_counts_as_one() {
        let lists = Value::List(vec![Value::List(vec![1.into(), 2.into()]), 3.into(), 4.into()]);
        assert_eq!(counted(&lists, &[Step::Each]), 3);
        assert_eq!(counted(&lists, &[]), 3);
        assert_eq!(counted(&lists, &[Step::Each, Step::Each]), 2);
    }

    #[test]
    fn texts_that_are_numbers() {
        for (text, number) in [
            ("42", Some(Value::Int(42))),
            (" 00042 ", Some(Value::Int(42))),
            ("+7", Some(Value::Int(7))),
            ("-0.5", Some(Value::Float(-0.5))),
            ("1e3", Some(Value::Float(1000.0))),
            ("0", Some(Value::Int(0))),
            ("000", Some(Value::Int(0))),
            ("19uu", None),
            ("1987.", None),
            ("inf", None),
            ("", None),
            ("--1", None),
            ("1 2", None),
            (".5", None),
        ] {
            assert_eq!(number_of(text), number, "{text:?}");
        }
    }
}
