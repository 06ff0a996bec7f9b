//! The builder that writes the fields of a catalogue record.

use super::plan::Plan;
use crate::{
    marc::Record,
    record::dataset::{
        random::{Random, Ranks},
        words::{Language, Lexicon},
    },
};

/// No record is longer than this as an ISO 2709 file holds it: 99,999 is what its leader can say.
pub(super) const LARGEST: usize = 99_950;
/// No field is longer than this: 9,999 with its terminator is what the directory can say.
pub(super) const LARGEST_FIELD: usize = 9_900;

const LABELS: Ranks = Ranks::new(7, 1000);
/// Tells the streams of random numbers of this dataset from one another and from others'.
pub(super) const STREAM: u64 = 0x4341_5400;

/// Writes the fields of one record, one after the other.
///
/// A field is begun with [`ind`](Maker::ind) (not for control fields) and [`sub`](Maker::sub), and
/// written with the rest; the table adds it to the record under its tag. A field left empty is left
/// out.
pub(super) struct Maker<'a> {
    pub random: Random,
    pub plan: Plan,
    /// The how-many-th field of its tag this is, from 0, and of how many.
    pub turn: (u32, u32),
    /// The tag being written.
    pub tag: &'static str,
    /// Writes in the record's own script, not in Latin letters.
    pub native: bool,
    /// There are fields in the record's own script.
    pub in_script: bool,
    record: &'a mut Record,
    pub text: String,
    linked: Vec<(&'static str, String)>,
    size: usize,
}

impl<'a> Maker<'a> {
    pub(super) fn new(plan: Plan, record: &'a mut Record) -> Self {
        Maker {
            random: Random::new(plan.own, STREAM, 0),
            plan,
            turn: (0, 1),
            tag: "",
            native: false,
            in_script: false,
            record,
            text: String::with_capacity(256),
            linked: Vec::new(),
            size: 26,
        }
    }

    /// The record's size so far, as ISO 2709 has it.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Begins with a tag. Each has random numbers of its own, so that a field more or less leaves
    /// the others as they are: those of the work where `describes`, else those of the record.
    pub(super) fn begin(&mut self, tag: &'static str, describes: bool) {
        self.tag = tag;
        let seed = if describes { self.plan.work } else { self.plan.own };
        let number = tag.bytes().fold(0, |n, b| n << 8 | u64::from(b));
        self.random = Random::new(seed, STREAM + 100, number);
    }

    /// Adds the field just written to the record under `tag`, if it is not empty and there is room.
    pub(super) fn finish(&mut self, tag: &str) {
        if self.plan.case.library.decomposes() && !self.text.is_ascii() {
            decompose(&mut self.text);
        }
        self.put(tag);
        self.text.clear();
    }

    fn put(&mut self, tag: &str) {
        let size = self.text.len() + 13;
        if self.text.is_empty() || size > LARGEST_FIELD || self.size + size > LARGEST {
            return;
        }
        let tag = tag.as_bytes().try_into().expect("three characters");
        let put = self.record.push_bytes(tag, self.text.as_bytes());
        if put.is_ok() {
            self.size += size;
        }
    }

    /// Adds the fields in the record's own script, as 880.
    pub(super) fn finish_linked(&mut self) {
        for (_, text) in std::mem::take(&mut self.linked) {
            self.text = text;
            self.finish("880");
            self.in_script = true;
        }
    }

    /// The two indicators.
    pub(super) fn ind(&mut self, indicators: &str) -> &mut Self {
        self.say(indicators)
    }

    /// Begins a subfield.
    pub(super) fn sub(&mut self, code: char) -> &mut Self {
        self.text.push('\u{1f}');
        self.text.push(code);
        self
    }

    /// The two indicators: in this share of cases `one`, else `other`.
    pub(super) fn ind_or(&mut self, share: f64, one: &str, other: &str) -> &mut Self {
        let one_of_them = if self.chance(share) { one } else { other };
        self.say(one_of_them)
    }

    /// Begins a subfield: in this share of cases `one`, else `other`.
    pub(super) fn sub_or(&mut self, share: f64, one: char, other: char) -> &mut Self {
        let code = if self.chance(share) { one } else { other };
        self.sub(code)
    }

    /// The year of publication.
    pub(super) fn year(&mut self) -> &mut Self {
        self.num(self.plan.year)
    }

    /// The record's number and so much more, to so many digits.
    pub(super) fn control(&mut self, more: u64, digits: usize) -> &mut Self {
        self.padded(self.plan.control + more, digits)
    }

    /// Text as it is.
    pub(super) fn say(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// The first where the record's own script is written, else the second.
    pub(super) fn either(&mut self, native: &str, latin: &str) -> &mut Self {
        let text = if self.native { native } else { latin };
        self.say(text)
    }

    /// One of the texts between `|`.
    pub(super) fn any(&mut self, texts: &str) -> &mut Self {
        let text = self.random.choose(texts);
        self.text.push_str(text);
        self
    }

    /// One of these texts, which may have `|` in them.
    pub(super) fn one_of(&mut self, texts: &[&str]) -> &mut Self {
        let text = self.random.pick(texts);
        self.text.push_str(text);
        self
    }

    /// One of the texts between `|`, the first ones more often, by the law `ranks`.
    pub(super) fn ranked(&mut self, ranks: &Ranks, texts: &str) -> &mut Self {
        let count = 1 + texts.bytes().filter(|b| *b == b'|').count();
        let at = self.random.rank(ranks) as usize % count;
        self.text.push_str(texts.split('|').nth(at).unwrap_or_default());
        self
    }

    /// A full stop, where the field does not end with a mark already.
    pub(super) fn stop(&mut self) -> &mut Self {
        if !self.text.ends_with(['.', '-', '?', '!']) {
            self.text.push('.');
        }
        self
    }

    /// A number, as it is.
    pub(super) fn num(&mut self, n: impl Into<u64>) -> &mut Self {
        self.padded(n.into(), 1)
    }

    /// A number with zeros before it, to so many digits at least.
    pub(super) fn padded(&mut self, mut n: u64, digits: usize) -> &mut Self {
        let mut buffer = [b'0'; 20];
        let mut at = 20;
        while n > 0 || at > 20 - digits {
            at -= 1;
            buffer[at] = b'0' + (n % 10) as u8;
            n /= 10;
        }
        self.text.extend(buffer[at..].iter().map(|&b| char::from(b)));
        self
    }

    /// So many random digits.
    pub(super) fn digits(&mut self, n: usize) -> &mut Self {
        let range = 10u64.pow(n.min(9) as u32) as u32;
        let number = self.random.below(range);
        self.padded(u64::from(number), n)
    }

    /// A random number from `low` to `high`.
    pub(super) fn range(&mut self, low: u32, high: u32) -> &mut Self {
        let n = self.random.between(low, high);
        self.num(n)
    }

    /// Takes blanks off the end.
    pub(super) fn trim(&mut self) -> &mut Self {
        let length = self.text.trim_end_matches(' ').len();
        self.text.truncate(length);
        self
    }

    /// Makes the field (plain ASCII) exactly so long, with blanks.
    pub(super) fn fit(&mut self, length: usize) -> &mut Self {
        while self.text.len() < length {
            self.text.push(' ');
        }
        self.text.truncate(length);
        self
    }

    /// True in this share of cases.
    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.random.chance(share)
    }

    /// The words of the record's language.
    pub(super) fn lexicon(&self) -> &'static Lexicon {
        self.plan.language.lexicon()
    }

    /// A phrase in the record's language, beginning with a capital.
    pub(super) fn title(&mut self, low: u32, high: u32) -> &mut Self {
        self.phrase_in(self.plan.language, low, high, true)
    }

    /// A phrase in the record's language.
    pub(super) fn phrase(&mut self, low: u32, high: u32) -> &mut Self {
        self.phrase_in(self.plan.language, low, high, false)
    }

    /// A phrase in English, the language of notes and headings, beginning with a capital.
    pub(super) fn english(&mut self, low: u32, high: u32) -> &mut Self {
        self.phrase_in(Language::English, low, high, true)
    }

    /// A phrase of `low` words or more, halfway to `high` on average: mostly short, some long.
    pub(super) fn phrase_in(
        &mut self,
        language: Language,
        low: u32,
        high: u32,
        capital: bool,
    ) -> &mut Self {
        let more = self.random.below(2 * (high - low) + 1);
        let words = low + self.random.below(more + 1);
        let native = self.native && language == self.plan.language;
        language.lexicon().phrase(&mut self.random, words, capital, native, &mut self.text);
        self
    }

    /// What `fill` writes, once in Latin letters and, where the record is so, once more in its own
    /// script, the two linked by `$6` as MARC 21 has it (appendix A of the format).
    pub(super) fn linked(&mut self, indicators: &str, fill: impl Fn(&mut Self)) {
        self.ind(indicators);
        if !self.plan.linked || self.native {
            fill(self);
            return;
        }
        let occurrence = self.linked.len() as u64 + 1;
        let before = self.random.clone();
        self.sub('6').say("880-").padded(occurrence, 2);
        fill(self);
        let latin = std::mem::take(&mut self.text);
        let after = std::mem::replace(&mut self.random, before);
        self.native = true;
        let (tag, script) = (self.tag, script(self.plan.language));
        self.ind(indicators).sub('6').say(tag).say("-").padded(occurrence, 2).say(script);
        fill(self);
        self.native = false;
        self.random = after;
        let native = std::mem::replace(&mut self.text, latin);
        self.linked.push((tag, native));
    }

    /// A place where books are published, in the record's language.
    pub(super) fn place(&mut self) -> &mut Self {
        self.lexicon().place(&mut self.random, self.native, &mut self.text);
        self
    }

    /// A firm that makes recordings.
    pub(super) fn label(&mut self) -> &mut Self {
        let mut label = Random::new(STREAM + 4, 0, u64::from(self.random.rank(&LABELS)));
        Language::English.lexicon().family(&mut label, false, &mut self.text);
        self.text.push_str(label.choose(" Records|| Classics| Music|"));
        self
    }
}

/// How `$6` names a script.
fn script(language: Language) -> &'static str {
    match language {
        Language::Russian => "/(N",
        Language::Greek => "/(S",
        Language::Chinese | Language::Japanese => "/$1",
        Language::Arabic => "/(3/r",
        Language::Hebrew => "/(2/r",
        _ => "",
    }
}

/// Letters with marks: the mark, the letters that have it, the letters without it.
const MARKS: [(char, &str, &str); 12] = [
    ('\u{300}', "ÀÈÌÒàèìò", "AEIOaeio"),
    ('\u{301}', "ÁÉÍÓÚáéíóúĆćŃńŚśŹź", "AEIOUaeiouCcNnSsZz"),
    ('\u{302}', "ÂÊÎÔâêîô", "AEIOaeio"),
    ('\u{303}', "Ññ", "Nn"),
    ('\u{304}', "ĀāĪīŌōŪū", "AaIiOoUu"),
    ('\u{306}', "Ĭĭ", "Ii"),
    ('\u{307}', "ĖėŻż", "EeZz"),
    ('\u{308}', "ÄËÖÜäëöü", "AEOUaeou"),
    ('\u{30a}', "Åå", "Aa"),
    ('\u{323}', "ḤḥḲḳṢṣṬṭṾṿẒẓ", "HhKkSsTtVvZz"),
    ('\u{327}', "Çç", "Cc"),
    ('\u{328}', "ĄąĘę", "AaEe"),
];

/// Writes letters with marks as letter and mark.
fn decompose(text: &mut String) {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        let found = (!c.is_ascii()).then(|| {
            MARKS.iter().find_map(|(mark, with, without)| {
                let at = with.chars().position(|w| w == c)?;
                Some((*mark, char::from(without.as_bytes()[at])))
            })
        });
        match found.flatten() {
            Some((mark, base)) => out.extend([base, mark]),
            None => out.push(c),
        }
    }
    *text = out;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_apart() {
        let mut text = String::from("Müller, Ėmilī Ḳ. ш");
        decompose(&mut text);
        assert_eq!(text, "Mu\u{308}ller, E\u{307}mili\u{304} K\u{323}. ш");
        for (_, with, without) in MARKS {
            assert_eq!(with.chars().count(), without.len());
        }
    }
}
