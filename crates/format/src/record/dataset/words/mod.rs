//! Words, names and places in several languages, in any number.
//!
//! A language is a text file here: a line for each list, entries between spaces (`houses`, which
//! hold spaces, between `|`; elsewhere `_` stands for a space). An entry of a script other than
//! Latin gives its romanization after `=`, or the language has a table for it. The words listed are
//! the common ones; those beyond are put together from `starts`, `vowels` and `ends`, always the
//! same word for the same rank, so that a vocabulary has the long tail that real ones have.
//!
//! To add a language: its file, and a line in `languages!`.

mod romanize;

use std::sync::LazyLock;

use super::random::{Random, Ranks, mix};

/// Words and names are drawn by these laws; which one decides how well text compresses.
const LINKS: Ranks = Ranks::new(4, 900);
const WORDS: Ranks = Ranks::new(15, 880);
/// So many words are equally common.
const COMMON: u32 = 31;
const GIVEN: Ranks = Ranks::new(7, 1000);
const FAMILY: Ranks = Ranks::new(13, 1150);

macro_rules! languages {
    ($($name:ident $file:literal;)*) => {
        /// A language that words can be had in.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Language { $($name,)* }

        impl Language {
            /// Every language.
            pub const ALL: &[Language] = &[$(Language::$name),*];

            /// Its words.
            pub fn lexicon(self) -> &'static Lexicon {
                static ALL: LazyLock<Vec<Lexicon>> =
                    LazyLock::new(|| vec![$(Lexicon::parse(include_str!($file))),*]);
                &ALL[self as usize]
            }
        }
    };
}

languages! {
    English "english.txt";
    German "german.txt";
    French "french.txt";
    Spanish "spanish.txt";
    Italian "italian.txt";
    Latin "latin.txt";
    Swedish "swedish.txt";
    Polish "polish.txt";
    Russian "russian.txt";
    Greek "greek.txt";
    Chinese "chinese.txt";
    Japanese "japanese.txt";
    Arabic "arabic.txt";
    Hebrew "hebrew.txt";
}

/// The words of a language.
///
/// Every method that writes takes `native`: true for the language's own script, false for Latin
/// letters. With the same random numbers both say the same.
#[derive(Debug, Default)]
pub struct Lexicon {
    /// The language's code of three letters, as catalogues use it.
    pub code: &'static str,
    salt: u64,
    links: Vec<Entry>,
    words: Vec<Entry>,
    starts: Vec<Entry>,
    vowels: Vec<Entry>,
    ends: Vec<Entry>,
    given: Vec<Entry>,
    family: Vec<Entry>,
    places: Vec<Entry>,
    houses: Vec<Entry>,
}

/// A word in the language's own script and in Latin letters.
#[derive(Debug)]
struct Entry {
    native: String,
    latin: String,
}

impl Entry {
    fn new(text: &str) -> Entry {
        let text = text.replace('_', " ");
        match text.split_once('=') {
            Some((native, latin)) => Entry { native: native.into(), latin: latin.into() },
            None => Entry { latin: romanize::romanized(&text), native: text },
        }
    }

    fn write(&self, native: bool, out: &mut String) {
        out.push_str(if native { &self.native } else { &self.latin });
    }
}

impl Lexicon {
    fn parse(text: &'static str) -> Lexicon {
        let mut lexicon = Lexicon::default();
        for line in text.lines() {
            let (list, rest) = line.split_once(": ").expect("a list and its entries");
            if list == "code" {
                lexicon.code = rest;
                lexicon.salt = rest.bytes().fold(0, |h, b| mix(h ^ u64::from(b)));
                continue;
            }
            let entries = match list {
                "links" => &mut lexicon.links,
                "words" => &mut lexicon.words,
                "starts" => &mut lexicon.starts,
                "vowels" => &mut lexicon.vowels,
                "ends" => &mut lexicon.ends,
                "given" => &mut lexicon.given,
                "family" => &mut lexicon.family,
                "places" => &mut lexicon.places,
                "houses" => &mut lexicon.houses,
                other => panic!("no list {other}"),
            };
            let apart = if list == "houses" { '|' } else { ' ' };
            entries.extend(rest.split(apart).map(Entry::new));
        }
        lexicon
    }

    /// True where the language has a script of its own, not Latin letters.
    pub fn has_script(&self) -> bool {
        self.words.first().is_some_and(|e| e.native != e.latin)
    }

    /// True where words of the own script follow one another without a space.
    pub fn runs_on(&self) -> bool {
        matches!(self.code, "chi" | "jpn")
    }

    /// The word of this rank, common ones first.
    pub fn word(&self, rank: u32, native: bool, out: &mut String) {
        match self.words.get(rank as usize) {
            Some(entry) => entry.write(native, out),
            None => self.stem(rank, native, out),
        }
    }

    /// A made-up word: the same for the same rank.
    fn stem(&self, rank: u32, native: bool, out: &mut String) {
        let mut bits = mix(self.salt ^ u64::from(rank));
        let mut next = |entries: &[Entry], out: &mut String| {
            if let Some(entry) = entries.get((bits % entries.len().max(1) as u64) as usize) {
                entry.write(native, out);
            }
            bits = bits.rotate_right(11);
        };
        let syllables = if rank < 600 { 1 } else { 1 + rank % 2 + u32::from(rank > 8_000) };
        let syllables = if self.vowels.is_empty() { syllables.max(2) } else { syllables };
        for _ in 0..syllables {
            next(&self.starts, out);
            next(&self.vowels, out);
        }
        next(&self.ends, out);
    }

    /// A word at random, as running text has them: some often, most seldom.
    pub fn any_word(&self, random: &mut Random, native: bool, out: &mut String) {
        let rank = random.rank(&WORDS);
        // No word of a title is as common as the law has its first ones: those are the small words.
        let rank = if rank < COMMON { random.below(COMMON) } else { rank };
        self.word(rank, native, out);
    }

    /// A phrase of so many words, the small words between the others counted; the first begins
    /// with a capital where `capital` says so.
    pub fn phrase(
        &self,
        random: &mut Random,
        words: u32,
        capital: bool,
        native: bool,
        out: &mut String,
    ) {
        let gap = if native && self.runs_on() { "" } else { " " };
        let mut may_link = false;
        for i in 0..words {
            if i > 0 {
                out.push_str(gap);
            }
            let start = out.len();
            if may_link && i + 1 < words && random.chance(0.55) {
                let link = random.rank(&LINKS) as usize % self.links.len();
                self.links[link].write(native, out);
                may_link = false;
            } else {
                self.any_word(random, native, out);
                may_link = true;
            }
            if i == 0 && capital {
                capitalize(out, start);
            }
        }
    }

    /// A given name.
    pub fn given(&self, random: &mut Random, native: bool, out: &mut String) {
        let rank = random.rank(&GIVEN) as usize % self.given.len();
        self.given[rank].write(native, out);
    }

    /// A family name: one of the common ones, or one made up.
    pub fn family(&self, random: &mut Random, native: bool, out: &mut String) {
        let rank = random.rank(&FAMILY);
        match self.family.get(rank as usize) {
            Some(entry) => entry.write(native, out),
            None => {
                let start = out.len();
                self.stem(rank + 20_000 * u32::from(rank > 3_000), native, out);
                capitalize(out, start);
            }
        }
    }

    /// A place where books are published.
    pub fn place(&self, random: &mut Random, native: bool, out: &mut String) {
        let rank = random.rank(&GIVEN) as usize % self.places.len();
        self.places[rank].write(native, out);
    }

    /// What the name of a publishing house ends with (or, in some languages, begins with).
    pub fn house(&self, random: &mut Random, native: bool, out: &mut String) {
        self.houses[random.below(self.houses.len() as u32) as usize].write(native, out);
    }
}

/// Makes the first letter from byte `start` on a capital, where its script has capitals.
pub fn capitalize(text: &mut String, start: usize) {
    let Some((at, first)) =
        text[start..].char_indices().find(|(_, c)| c.is_lowercase() || c.is_uppercase())
    else {
        return;
    };
    let at = start + at;
    if first.is_lowercase() {
        let upper: String = first.to_uppercase().collect();
        text.replace_range(at..at + first.len_utf8(), &upper);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_language_has_what_it_is_asked_for() {
        for language in Language::ALL {
            let lexicon = language.lexicon();
            assert_eq!(lexicon.code.len(), 3);
            for native in [false, true] {
                let mut random = Random::new(1, 2, 3);
                let mut text = String::new();
                lexicon.phrase(&mut random, 200, true, native, &mut text);
                lexicon.given(&mut random, native, &mut text);
                lexicon.family(&mut random, native, &mut text);
                lexicon.place(&mut random, native, &mut text);
                lexicon.house(&mut random, native, &mut text);
                assert!(!text.contains(['_', '=', '|']), "{text}");
                assert!(!text.chars().any(char::is_control), "{text}");
                let letters = text.chars().filter(|c| c.is_alphabetic());
                let (own, all) = letters.fold((0, 0), |(o, a), c| {
                    let latin = (c as u32) < 0x370 || ('\u{1e00}'..'\u{1eff}').contains(&c);
                    (o + u32::from(!latin), a + 1)
                });
                let script = native && lexicon.has_script();
                assert_eq!(own, if script { all } else { 0 }, "{text}");
            }
        }
    }

    #[test]
    fn a_vocabulary_has_a_long_tail() {
        for language in [Language::English, Language::Russian, Language::Chinese] {
            let lexicon = language.lexicon();
            let words: HashSet<_> = (0..20_000)
                .map(|rank| {
                    let mut word = String::new();
                    lexicon.word(rank, true, &mut word);
                    assert!(!word.is_empty());
                    word
                })
                .collect();
            assert!(words.len() > 4_000, "{:?} {}", language, words.len());
        }
    }

    #[test]
    fn capitals_skip_what_is_no_letter() {
        for (small, large) in [("école", "École"), ("\"ни", "\"Ни"), ("ʻalá", "ʻAlá"), ("", "")]
        {
            let mut text = format!("x {small}");
            capitalize(&mut text, 2);
            assert_eq!(text[2..], *large);
        }
    }
}
