//! 200,000 people: the documents of a published test of three document stores.

use serde::{Deserialize, Serialize};

use super::{Info, Make, random::Random};
use crate::record::{Document, Time, Value};

pub(super) const INFO: Info = Info {
    name: "people",
    about: "people with a key, name, email, age, birthdate and a flag; to query by age and sort by date",
    count: 200_000,
    published: 200_000,
    key: Some("key"),
    make: Make::Documents(document),
};

/// The same people where nothing may be lost in any format or store, as JSON has no times.
pub(super) const IN_JSON: Info = Info {
    name: "people-json",
    about: "the same people, the birthdate as text, as in JSON: every store and format keeps all of it",
    make: Make::Documents(in_json),
    ..INFO
};

/// Tells this dataset's random numbers from those of others.
const STREAM: u64 = 5;

/// One person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// "bob" and the record's number: unique.
    pub key: String,
    /// "Bob Jones", always.
    pub name: String,
    /// "bob", a number of 0 to 999, "@example.com".
    pub email: String,
    /// 0 to 99, in years.
    pub age: i64,
    /// 1970-01-01 to 2001-09-09, to the second.
    pub birthdate: Time,
    /// The question mark is part of the name.
    #[serde(rename = "is_admin?")]
    pub is_admin: bool,
}

/// Person `number` of the dataset, from 0.
pub fn person(seed: u64, number: u64) -> Person {
    let mut random = Random::new(seed, STREAM, number);
    Person {
        key: format!("bob{number}"),
        name: "Bob Jones".into(),
        email: format!("bob{}@example.com", random.below(1_000)),
        age: i64::from(random.below(100)),
        birthdate: super::moment(i64::from(random.below(1_000_000_000))),
        is_admin: random.chance(0.5),
    }
}

/// The same person as a document.
pub fn document(seed: u64, number: u64) -> Document {
    let Person { key, name, email, age, birthdate, is_admin } = person(seed, number);
    let mut document = Document::with_capacity(6);
    document.push("key", key);
    document.push("name", name);
    document.push("email", email);
    document.push("age", age);
    document.push("birthdate", birthdate);
    document.push("is_admin?", is_admin);
    document
}

/// The same person with the birthdate as RFC 3339 text, which sorts as times do.
fn in_json(seed: u64, number: u64) -> Document {
    let mut document = document(seed, number);
    if let Some(Value::Time(birthdate)) = document.get("birthdate").cloned() {
        document.insert("birthdate", birthdate.to_string());
    }
    document
}
