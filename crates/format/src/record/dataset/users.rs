//! 2.5 million users with pets: an insert test that was published, and the questions it left open.
//!
//! The rows are as they were published, the same for every seed: 50 rounds of 10,000 numbers of
//! five pets, so that each number has 250 rows.

use serde::{Deserialize, Serialize};

use super::{Info, Make};
use crate::record::Document;

/// Rounds over all numbers.
pub const ROUNDS: u64 = 50;
/// Numbers in a round, from 0.
pub const NUMBERS: u64 = 10_000;
/// The pets each number has in each round, in order.
pub const PETS: [&str; 5] = ["cat", "dog", "sugar glider", "pigeon", "dove"];

pub(super) const INFO: Info = Info {
    name: "users",
    about: "2.5 million rows of number, pet, name and email; 250 rows a number",
    count: 100_000,
    published: ROUNDS * NUMBERS * PETS.len() as u64,
    key: None,
    make: Make::Documents(document),
};

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// 0 to 9,999; not unique: what the range query asks for.
    pub number: i64,
    /// One of [`PETS`].
    pub pet: String,
    /// "Jason Mooberry", always.
    pub name: String,
    /// "a@b.com", always.
    pub email: String,
}

/// Row `number` of the dataset, from 0. The seed changes nothing: the rows are the published ones.
pub fn user(_seed: u64, number: u64) -> User {
    let pets = PETS.len() as u64;
    User {
        number: (number / pets % NUMBERS) as i64,
        pet: PETS[(number % pets) as usize].into(),
        name: "Jason Mooberry".into(),
        email: "a@b.com".into(),
    }
}

/// The same row as a document.
pub fn document(seed: u64, number: u64) -> Document {
    let User { number, pet, name, email } = user(seed, number);
    let mut document = Document::with_capacity(4);
    document.push("number", number);
    document.push("pet", pet);
    document.push("name", name);
    document.push("email", email);
    document
}
