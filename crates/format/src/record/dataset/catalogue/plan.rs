//! The plan of a record, made before its first field: which library it is from and what it describes.
//!
//! Records of a real collection come in runs from one library, each with habits of its own, and
//! that is much of what makes them compress. So the library is drawn for a run of records, and
//! everything else for each record.

use super::{maker::STREAM, names::Person};
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
    pub(super) const ALL: [Library; 8] =
        [Stacks, Campus, Shared, Millennium, Holdings, Items, National, Authorities];

    /// How many of every [`RUNS`] runs are its own.
    pub(super) fn runs(self) -> u64 {
        match self {
            Stacks => 40,
            Campus => 20,
            Shared => 23,
            Millennium => 12,
            Holdings => 9,
            Items => 7,
            National => 5,
            Authorities => 12,
        }
    }

    /// What it writes in 003.
    pub(super) fn mark(self) -> &'static str {
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
    pub(super) fn decomposes(self) -> bool {
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
    /// In an authority file: a person's name, a body's, a subject, a place's name.
    PersonName,
    BodyName,
    Topic,
    PlaceName,
}

impl Kind {
    pub(super) const ALL: [Kind; 15] = [
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
        Kind::PersonName,
        Kind::BodyName,
        Kind::Topic,
        Kind::PlaceName,
    ];

    /// How many of 10,000 records of this library are of this kind.
    pub(super) fn weight(self, library: Library) -> u32 {
        let holdings = matches!(library, Campus | Holdings);
        match (self, library) {
            (Kind::PersonName, Authorities) => 3_800,
            (Kind::BodyName, Authorities) => 1_700,
            (Kind::Topic, Authorities) => 3_500,
            (Kind::PlaceName, Authorities) => 1_000,
            (_, Authorities) => 0,
            (Kind::PersonName | Kind::BodyName | Kind::Topic | Kind::PlaceName, _) => 0,
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
    pub(super) fn is_title(self) -> bool {
        !matches!(self, Kind::Copy | Kind::Volumes) && !self.is_authority()
    }

    /// True for what stands in an authority file.
    pub(super) fn is_authority(self) -> bool {
        matches!(self, Kind::PersonName | Kind::BodyName | Kind::Topic | Kind::PlaceName)
    }
}

/// What decides which fields a record may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub library: Library,
    pub kind: Kind,
    pub age: Age,
}

/// How old the work is, and so by which rules it is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// Before 1968: there were no ISBNs.
    Old,
    Modern,
    /// Described by the rules of 2010 (RDA).
    New,
}

impl Age {
    const ALL: [Age; 3] = [Age::Old, Age::Modern, Age::New];

    /// How many of 1,000 works are so old.
    fn weight(self) -> u32 {
        match self {
            Age::Old => 380,
            Age::Modern => 512,
            Age::New => 108,
        }
    }

    /// A year of publication.
    fn year(self, random: &mut Random) -> u32 {
        match (self, random.below(100)) {
            (Age::Old, 0..11) => random.between(1520, 1849),
            (Age::Old, 11..40) => random.between(1850, 1939),
            (Age::Old, _) => random.between(1940, 1967),
            (Age::Modern, _) => random.between(1968, 2012),
            (Age::New, _) => random.between(2005, 2018),
        }
    }
}

impl Case {
    /// True for what is described by the rules of 2010.
    pub(super) fn new_rules(self) -> bool {
        self.age == Age::New
    }

    /// The share of records, 0 to 1, of which `among` is true.
    pub(super) fn share(among: fn(Case) -> bool) -> f64 {
        let mut share = 0.0;
        for library in Library::ALL {
            let total: u32 = Kind::ALL.iter().map(|k| k.weight(library)).sum();
            for kind in Kind::ALL {
                for age in Age::ALL {
                    if among(Case { library, kind, age }) {
                        share += library.runs() as f64 / RUNS as f64
                            * f64::from(kind.weight(library))
                            / f64::from(total)
                            * f64::from(age.weight())
                            / 1_000.0;
                    }
                }
            }
        }
        share
    }
}

/// Languages of titles, in thousandths.
const LANGUAGES: [(Language, u32); 14] = [
    (Language::English, 698),
    (Language::German, 48),
    (Language::French, 42),
    (Language::Spanish, 28),
    (Language::Russian, 48),
    (Language::Italian, 22),
    (Language::Chinese, 32),
    (Language::Japanese, 18),
    (Language::Latin, 12),
    (Language::Polish, 9),
    (Language::Swedish, 9),
    (Language::Arabic, 13),
    (Language::Hebrew, 13),
    (Language::Greek, 8),
];

/// How much a cataloguer wrote, in hundredths of records.
const CARE: [(Care, u32); 3] = [(Care::Brief, 28), (Care::Usual, 62), (Care::Rich, 10)];

/// How much a cataloguer wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    Brief,
    Usual,
    Rich,
}

impl Care {
    /// The share of such records that have an optional field which `share` of all have. Averaged
    /// over all records it is `share` again.
    pub(super) fn share(self, share: f64) -> f64 {
        let (brief, rich) = match share {
            0.87.. => return share,
            0.55.. => (share * 0.6, 1.0),
            _ => (share * 0.45, share * 1.8),
        };
        match self {
            Care::Brief => brief,
            Care::Usual => (share - 0.28 * brief - 0.10 * rich) / 0.62,
            Care::Rich => rich,
        }
    }

    /// The share of such records in a language of another script that have fields in that script.
    fn linked(self) -> f64 {
        match self {
            Care::Brief => 0.22,
            Care::Usual => 0.46,
            Care::Rich => 0.95,
        }
    }

    /// How often a field is repeated, beside what is usual; about 1 on average over those that
    /// have it.
    pub(super) fn again(self) -> f64 {
        match self {
            Care::Brief => 0.4,
            Care::Usual => 0.38,
            Care::Rich => 3.45,
        }
    }
}

/// Books stand in several libraries, and descriptions are copied: this share of records describes
/// the work of an earlier record, at least [`NEAR`] and at most [`FAR`] records back.
const AGAIN: f64 = 0.25;
const NEAR: u32 = 24;
const FAR: u32 = 1_000;

/// What is settled about one record.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub number: u64,
    /// Seeds the fields of this record alone: copies, numbers, what a library did.
    pub own: u64,
    /// Seeds the fields that describe the work: alike in every record of the same one.
    pub work: u64,
    pub care: Care,
    /// The number of its run, scrambled: what records of a run have in common.
    pub run: u64,
    pub case: Case,
    pub language: Language,
    /// Its fields are there in their own script, too.
    pub linked: bool,
    /// Year of publication.
    pub year: u32,
    /// Who wrote it, where someone did.
    pub author: Person,
    /// The library's number for the record: unique, rising.
    pub control: u64,
    /// Class, number and cutter: "PJ5111", ".T84".
    pub class: (String, String),
}

impl Plan {
    pub(super) fn new(seed: u64, number: u64) -> Plan {
        let own = mix(seed ^ mix(number));
        let mut local = Random::new(own, STREAM, 0);
        let run = number / RUN;
        let library = Library::of_run(seed, run);
        let run = mix(seed ^ mix(run));
        let again = library != Authorities && local.chance(AGAIN);
        let back = u64::from(local.between(NEAR, FAR));
        let work = if again && number >= back { mix(seed ^ mix(number - back)) } else { own };
        let random = &mut Random::new(work, STREAM, 1);
        let care = CARE[random.weighted(CARE.iter().map(|c| c.1))].0;
        let kind = Kind::ALL[random.weighted(Kind::ALL.iter().map(|k| k.weight(library)))];
        let age = Age::ALL[random.weighted(Age::ALL.iter().map(|a| a.weight()))];
        let place = random.weighted(LANGUAGES.iter().map(|l| l.1));
        let language = if kind == Kind::Map { Language::English } else { LANGUAGES[place].0 };
        let linked =
            kind.is_title() && language.lexicon().has_script() && random.chance(care.linked());
        let year = age.year(random);
        let control = 1_000_000 + number * 23 + u64::from(local.below(23));
        Plan {
            number,
            own,
            work,
            care,
            run,
            case: Case { library, kind, age },
            language,
            linked,
            year,
            author: Person::any(random, language, year),
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
