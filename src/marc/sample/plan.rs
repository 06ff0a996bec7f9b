//! What is settled about a record before its first field: whose it is, what it describes.
//!
//! Records of a real collection come in runs from one library, each with habits of its own, and
//! that is much of what makes them compress. So the library is drawn for a run of records, and
//! everything else for each record.

use crate::record::dataset::{
    random::{Random, Ranks, mix},
    words::Language,
};

/// So many records in a row come from one library.
const RUN: u64 = 16;
/// After so many runs every library has had its share exactly.
const RUNS: u64 = 128;

/// Where a record comes from, by the local fields it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Library {
    /// Items in 999, a list of holding libraries in 596.
    Stacks,
    /// Items in 949 with long histories.
    Campus,
    /// A shared repository: 852 and 970 to 974.
    Shared,
    /// Items in 945, record numbers in 907, fixed fields in 998.
    Millennium,
    /// Holdings in 866, items in 876.
    Holdings,
    /// Items in 940.
    Items,
    /// A national bibliography: 015, 039, 079, 084.
    National,
    /// An authority file: names and subjects, not books.
    Authorities,
}

use Library::*;

impl Library {
    pub const ALL: [Library; 8] =
        [Stacks, Campus, Shared, Millennium, Holdings, Items, National, Authorities];

    /// How many of every [`RUNS`] runs are its own.
    pub fn runs(self) -> u64 {
        match self {
            Stacks => 44,
            Campus => 21,
            Shared => 23,
            Millennium => 11,
            Holdings => 7,
            Items => 5,
            National => 5,
            Authorities => 12,
        }
    }

    /// What it writes in 003.
    pub fn mark(self) -> &'static str {
        match self {
            Stacks | Campus => "SIRSI",
            Shared => "MiU",
            Millennium => "OCoLC",
            Holdings => "CStRLIN",
            Items => "OCoLC",
            National => "DE-101",
            Authorities => "DLC",
        }
    }

    /// True where letters with marks are written as letter and mark, as MARC-8 had them.
    pub fn decomposes(self) -> bool {
        matches!(self, Stacks | Shared | Holdings | Authorities)
    }

    fn of_run(seed: u64, run: u64) -> Library {
        // An odd step through 128 places visits each place once, in another order for each seed.
        let turn = mix(seed ^ mix(run / RUNS));
        let place = (run % RUNS).wrapping_mul((turn >> 32) | 1).wrapping_add(turn) % RUNS;
        let mut left = place;
        for library in Self::ALL {
            if left < library.runs() {
                return library;
            }
            left -= library.runs();
        }
        Stacks
    }
}

/// What a record describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Book,
    Manuscript,
    Serial,
    Music,
    Score,
    Video,
    Map,
    Talk,
    Other,
    /// The holdings of one copy (leader 6 = x).
    Copy,
    /// The holdings of a serial (leader 6 = y).
    Volumes,
    /// A name or subject in an authority file.
    Authority,
}

impl Kind {
    pub const ALL: [Kind; 12] = [
        Kind::Book,
        Kind::Manuscript,
        Kind::Serial,
        Kind::Music,
        Kind::Score,
        Kind::Video,
        Kind::Map,
        Kind::Talk,
        Kind::Other,
        Kind::Copy,
        Kind::Volumes,
        Kind::Authority,
    ];

    /// How many of 10,000 records of this library are of this kind.
    pub fn weight(self, library: Library) -> u32 {
        let holdings = matches!(library, Campus | Holdings);
        match (self, library) {
            (Kind::Authority, Authorities) => 10_000,
            (Kind::Authority, _) | (_, Authorities) => 0,
            (Kind::Copy, _) => 880 * u32::from(holdings),
            (Kind::Volumes, _) => 940 * u32::from(holdings),
            (Kind::Book, _) => {
                if holdings {
                    5_330
                } else {
                    7_150
                }
            }
            (Kind::Manuscript, _) => 88,
            (Kind::Serial, _) => 655,
            (Kind::Music, _) => 963,
            (Kind::Score, _) => 322,
            (Kind::Video, _) => 247,
            (Kind::Map, _) => 111,
            (Kind::Talk, _) => 87,
            (Kind::Other, _) => 377,
        }
    }

    /// True for what stands in a catalogue of books and the like.
    pub fn is_title(self) -> bool {
        !matches!(self, Kind::Copy | Kind::Volumes | Kind::Authority)
    }
}

/// What decides which fields a record may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub library: Library,
    pub kind: Kind,
    /// Described by the rules of 2010 (RDA), not those before.
    pub new_rules: bool,
}

impl Case {
    /// Of the titles, so many in a hundred are described by the new rules.
    const NEW_RULES: f64 = 0.108;

    /// The share of records, 0 to 1, of which `among` is true.
    pub fn share(among: fn(Case) -> bool) -> f64 {
        let mut share = 0.0;
        for library in Library::ALL {
            let total: u32 = Kind::ALL.iter().map(|k| k.weight(library)).sum();
            for kind in Kind::ALL {
                for new_rules in [false, true] {
                    let rules = if new_rules { Self::NEW_RULES } else { 1.0 - Self::NEW_RULES };
                    if among(Case { library, kind, new_rules }) {
                        share += library.runs() as f64 / RUNS as f64
                            * f64::from(kind.weight(library))
                            / f64::from(total)
                            * rules;
                    }
                }
            }
        }
        share
    }
}

/// Languages of titles, in thousandths. English is what is left.
const LANGUAGES: [(Language, u32); 14] = [
    (Language::English, 650),
    (Language::German, 78),
    (Language::French, 70),
    (Language::Spanish, 45),
    (Language::Russian, 40),
    (Language::Italian, 22),
    (Language::Chinese, 20),
    (Language::Japanese, 14),
    (Language::Latin, 12),
    (Language::Polish, 12),
    (Language::Swedish, 13),
    (Language::Arabic, 9),
    (Language::Hebrew, 9),
    (Language::Greek, 6),
];
/// Of records in a script of its own, this share has its fields in that script too.
const LINKED: f64 = 0.46;

/// What is settled about one record.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub number: u64,
    /// The number of its run, scrambled: what records of a run have in common.
    pub run: u64,
    pub case: Case,
    pub language: Language,
    /// Its fields are there in their own script, too.
    pub linked: bool,
    /// Year of publication.
    pub year: u32,
    /// The library's number for the record: unique, rising.
    pub control: u64,
    /// Class, number and cutter: "PJ5111", ".T84".
    pub class: (String, String),
}

impl Plan {
    pub fn new(seed: u64, number: u64, random: &mut Random) -> Plan {
        let run = number / RUN;
        let library = Library::of_run(seed, run);
        let run = mix(seed ^ mix(run));
        let kind = Kind::ALL[random.weighted(Kind::ALL.iter().map(|k| k.weight(library)))];
        let new_rules = random.chance(Case::NEW_RULES);
        let place = random.weighted(LANGUAGES.iter().map(|l| l.1));
        let language = if kind == Kind::Map { Language::English } else { LANGUAGES[place].0 };
        let linked = language.lexicon().has_script() && random.chance(LINKED);
        let year = match random.below(100) {
            _ if new_rules => random.between(2005, 2018),
            0..4 => random.between(1520, 1849),
            4..15 => random.between(1850, 1939),
            _ => random.between(1940, 2012),
        };
        let control = 1_000_000 + number * 23 + u64::from(random.below(23));
        Plan {
            number,
            run,
            case: Case { library, kind, new_rules },
            language,
            linked,
            year,
            control,
            class: class(kind, random),
        }
    }
}

/// Classes of the Library of Congress, common ones first.
const CLASSES: [&str; 48] = [
    "PR", "HD", "QA", "PS", "DS", "HC", "BX", "PN", "PQ", "E", "F", "DA", "ML", "QC", "TK", "HV",
    "LB", "PT", "PG", "ND", "QH", "RC", "JX", "KF", "TA", "DK", "HB", "BR", "B", "QD", "SB", "GV",
    "HG", "DC", "DT", "PL", "N", "QE", "BS", "CT", "G", "HF", "HM", "JK", "Z", "PJ", "PZ", "TX",
];
const CLASS: Ranks = Ranks::new(6, 1050);

fn class(kind: Kind, random: &mut Random) -> (String, String) {
    let letters = match kind {
        Kind::Music | Kind::Score => "M",
        Kind::Map => "G",
        Kind::Video => "PN",
        _ => CLASSES[random.rank(&CLASS) as usize % CLASSES.len()],
    };
    let number = if random.chance(0.3) { random.below(400) } else { random.below(9_000) } + 1;
    let letter = char::from(b'A' + random.below(26) as u8);
    let cutter =
        format!(".{letter}{}", random.between(2, 98) * if random.chance(0.2) { 10 } else { 1 });
    (format!("{letters}{number}"), cutter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_has_its_share_of_runs() {
        assert_eq!(Library::ALL.iter().map(|l| l.runs()).sum::<u64>(), RUNS);
        for seed in [0, 1, 99] {
            for library in Library::ALL {
                let runs = (RUNS..2 * RUNS).filter(|&r| Library::of_run(seed, r) == library);
                assert_eq!(runs.count() as u64, library.runs());
            }
        }
    }

    #[test]
    fn shares_add_up() {
        assert!((Case::share(|_| true) - 1.0).abs() < 1e-9);
        let titles = Case::share(|c| c.kind.is_title());
        assert!((0.855..0.875).contains(&titles), "{titles}");
    }
}
