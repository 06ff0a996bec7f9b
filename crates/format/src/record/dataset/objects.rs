//! Objects of a program: what a published test of object serialization kept in a database.
//!
//! The post does not say what its "simple object" held; these have what such objects have.

use serde::{Deserialize, Serialize};

use super::{
    Info, Make,
    random::{Random, Ranks},
    words::Language,
};
use crate::record::{Document, Time, Value};

pub(super) const INFO: Info = Info {
    name: "objects",
    about: "program objects with an id, name, email, moment of creation and three tags",
    count: 10_000,
    published: 100_000,
    key: Some("id"),
    make: Make::Documents(document),
};

/// Tells this dataset's random numbers from those of others.
const STREAM: u64 = 1;
/// Tags are drawn from so many words, a few of them often.
const TAGS: Ranks = Ranks::new(10, 1000);
/// 2010-01-01T00:00:00Z.
const FIRST: i64 = 1_262_304_000;
/// Ten years of seconds.
const SPAN: u32 = 315_532_800;

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// The record's number, from 1: unique.
    pub id: i64,
    /// A given and a family name.
    pub name: String,
    /// Made from the name and the id: unique.
    pub email: String,
    /// Within 2010 to 2019, to the millisecond.
    pub created_at: Time,
    /// Three words, not always different.
    pub tags: Vec<String>,
}

/// Object `number` of the dataset, from 0.
pub fn object(seed: u64, number: u64) -> Object {
    let mut random = Random::new(seed, STREAM, number);
    let english = Language::English.lexicon();
    let (mut given, mut family) = (String::new(), String::new());
    english.given(&mut random, false, &mut given);
    english.family(&mut random, false, &mut family);
    let id = number as i64 + 1;
    let tags = (0..3).map(|_| {
        let mut tag = String::new();
        english.word(random.rank(&TAGS), false, &mut tag);
        tag
    });
    Object {
        id,
        email: format!("{}.{}{id}@example.com", given.to_lowercase(), family.to_lowercase()),
        name: format!("{given} {family}"),
        tags: tags.collect(),
        created_at: {
            let (seconds, millis) = (random.below(SPAN), random.below(1_000));
            super::moment_with(FIRST + i64::from(seconds), millis * 1_000_000)
        },
    }
}

/// The same object as a document.
pub fn document(seed: u64, number: u64) -> Document {
    let Object { id, name, email, created_at, tags } = object(seed, number);
    let mut document = Document::with_capacity(5);
    document.push("id", id);
    document.push("name", name);
    document.push("email", email);
    document.push("created_at", created_at);
    document.push("tags", tags.into_iter().map(Value::Text).collect::<Vec<_>>());
    document
}
