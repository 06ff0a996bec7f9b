//! The built-in datasets: records made from a seed and a number.
//!
//! Record `n` of a dataset depends on the seed and on `n` alone, so that any part can be made
//! anywhere, in any order, and agree. The same seed gives the same bytes on every machine and in
//! every version; a test pins them. Nothing here does I/O or reads a clock.
//!
//! [`Dataset`] is the table that the command line's help and the tests walk. The catalogue's
//! records are MARC records, made by [`catalogue`]: [`Make::Catalogue`] says so.
//!
//! To add a dataset: a file with a struct, `document` and `INFO`, and a row in [`Dataset::ALL`].

pub mod catalogue;
pub mod families;
pub mod fields;
pub mod objects;
pub mod pairs;
pub mod people;
pub mod random;
pub mod users;
pub mod words;

use super::{Document, Time};
use crate::{Error, Result};

/// A built-in dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Dataset {
    Catalogue,
    Users,
    People,
    PeopleJson,
    Objects,
    Fields,
    Owners,
    Pets,
    Families,
    Keepers,
    Pairs,
}

/// What there is to know about a dataset without making a record of it.
#[derive(Debug)]
pub struct Info {
    /// The one word it goes by.
    pub name: &'static str,
    /// What its records are, in a phrase.
    pub about: &'static str,
    /// How many records to make where nobody says how many.
    pub count: u64,
    /// How many the published test had.
    pub published: u64,
    /// The name of the entry that is different in every record (for MARC, the tag), if any is.
    pub key: Option<&'static str>,
    /// How a record is made.
    pub make: Make,
}

/// How a record of a dataset is made.
#[derive(Debug, Clone, Copy)]
pub enum Make {
    /// From a seed and a number, as a document.
    Documents(fn(seed: u64, number: u64) -> Document),
    /// By [`catalogue::Catalogue`], as a MARC record.
    Catalogue,
}

const CATALOGUE: Info = Info {
    name: "catalogue",
    about: "a library's MARC records, in the sizes, fields, scripts and oddities of real ones",
    count: 10_000,
    published: 18_881,
    key: Some("001"),
    make: Make::Catalogue,
};

impl Dataset {
    /// Every dataset.
    pub const ALL: &[Dataset] = &[
        Dataset::Catalogue,
        Dataset::Users,
        Dataset::People,
        Dataset::PeopleJson,
        Dataset::Objects,
        Dataset::Fields,
        Dataset::Owners,
        Dataset::Pets,
        Dataset::Families,
        Dataset::Keepers,
        Dataset::Pairs,
    ];

    /// What there is to know about it.
    pub fn info(self) -> &'static Info {
        match self {
            Dataset::Catalogue => &CATALOGUE,
            Dataset::Users => &users::INFO,
            Dataset::People => &people::INFO,
            Dataset::PeopleJson => &people::IN_JSON,
            Dataset::Objects => &objects::INFO,
            Dataset::Fields => &fields::INFO,
            Dataset::Owners => &families::OWNERS,
            Dataset::Pets => &families::HOLDINGS,
            Dataset::Families => &families::FAMILIES,
            Dataset::Keepers => &families::KEEPERS,
            Dataset::Pairs => &pairs::INFO,
        }
    }

    /// The one word it goes by.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The dataset of this name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming those there are.
    pub fn named(name: &str) -> Result<Dataset> {
        Self::ALL.iter().copied().find(|d| d.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|d| d.name()).collect();
            Error::invalid(format!("unknown dataset {name:?}; known: {}", known.join(", ")))
        })
    }

    /// Record `number`, from 0, where the dataset is one of documents; `None` for the catalogue.
    pub fn document(self, seed: u64, number: u64) -> Option<Document> {
        match self.info().make {
            Make::Documents(make) => Some(make(seed, number)),
            Make::Catalogue => None,
        }
    }
}

/// The moment so many seconds after the beginning of 1970.
fn moment(seconds: i64) -> Time {
    moment_with(seconds, 0)
}

fn moment_with(seconds: i64, nanoseconds: u32) -> Time {
    Time::from_unix(seconds, nanoseconds).expect("within a few decades of 1970")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde::{Serialize, de::DeserializeOwned};

    use super::*;
    use crate::record::{Kind, Value};

    fn documents() -> impl Iterator<Item = Dataset> {
        Dataset::ALL.iter().copied().filter(|d| d.document(0, 0).is_some())
    }

    #[test]
    fn names_lead_back_and_unknown_ones_are_told() {
        for d in Dataset::ALL {
            assert_eq!(Dataset::named(d.name()).unwrap(), *d);
        }
        let e = Dataset::named("cats").unwrap_err();
        assert!(e.to_string().contains("catalogue, users, people, people-json, objects"), "{e}");
    }

    #[test]
    fn keys_are_unique() {
        for dataset in documents() {
            let Some(key) = dataset.info().key else { continue };
            let mut seen = HashSet::new();
            for n in 0..20_000 {
                let document = dataset.document(1, n).unwrap();
                let text = format!("{:?}", document.get(key).expect(key));
                assert!(seen.insert(text), "{} {n}", dataset.name());
            }
        }
    }

    /// A struct and the document made from it are the same record to every format.
    #[test]
    fn structs_and_documents_agree() {
        fn agree<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
            made: T,
            document: Document,
        ) {
            let text = serde_json::to_string(&made).unwrap();
            assert_eq!(text, serde_json::to_string(&document).unwrap());
            assert_eq!(serde_json::from_str::<T>(&text).unwrap(), made);
        }
        for n in [0, 1, 77, 2_499_999] {
            agree(users::user(3, n), users::document(3, n));
            agree(people::person(3, n), people::document(3, n));
            agree(objects::object(3, n), objects::document(3, n));
        }
        let person = people::document(0, 0);
        assert_eq!(person.get("birthdate").unwrap().kind(), Kind::Time);
        assert!(matches!(person.get("is_admin?"), Some(Value::Bool(_))));
    }

    #[test]
    fn users_are_the_published_rows() {
        assert_eq!(users::INFO.published, 2_500_000);
        let rows: Vec<_> = (0..50_000).map(|n| users::user(0, n)).collect();
        assert_eq!(rows.iter().filter(|u| u.number == 42).count(), 5);
        assert_eq!(users::user(0, 50_000), users::user(0, 0));
        assert_eq!((rows[2].pet.as_str(), rows[49_999].number), ("sugar glider", 9_999));
    }

    #[test]
    fn people_match_the_published_query() {
        let n = 20_000;
        let old = (0..n).filter(|&n| people::person(9, n).age >= 90).count();
        assert!((1_800..2_200).contains(&old), "{old}");
        let last = Time::from_unix(1_000_000_000, 0).unwrap();
        assert!((0..n).all(|n| people::person(9, n).birthdate < last));
    }

    /// The bytes are pinned: the same seed must give the same records in every version.
    #[test]
    fn records_are_pinned() {
        let got: Vec<_> = documents()
            .map(|d| {
                let mut sum = 0;
                for n in (0..1_000).chain([1 << 40]) {
                    let text = serde_json::to_string(&d.document(42, n).unwrap()).unwrap();
                    sum = text.bytes().fold(sum, |s, b| random::mix(s ^ u64::from(b)));
                }
                format!("{} {sum:016x}", d.name())
            })
            .collect();
        assert_eq!(
            got,
            [
                "users 5ab084e5857ddcf4",
                "people ba35fc4e147e0413",
                "people-json ba35fc4e147e0413",
                "objects 4edd75631325aa16",
                "fields 2432eaf9e5c39fc2",
                "owners 65c08da7a537a8a6",
                "pets b7b65abf127f00f0",
                "families 4d9e119086e57068",
                "keepers b15c6334f3023027",
                "pairs ee2945af94c65721"
            ]
        );
    }
}
