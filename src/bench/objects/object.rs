//! The object of the published test, whose fields are not known: it has what such objects have.

use serde::{Deserialize, Serialize};

use crate::{bench::random::Random, record::Time};

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// From 1: unique.
    pub id: i64,
    /// A given and a family name.
    pub name: String,
    /// Unique.
    pub email: String,
    /// To the millisecond.
    pub created_at: Time,
    /// Three words.
    pub tags: Vec<String>,
}

/// Object `number`, from 0.
pub(super) fn object(seed: u64, number: u64) -> Object {
    const GIVEN: [&str; 8] =
        ["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Frances", "Niklaus"];
    const FAMILY: [&str; 6] = ["Lovelace", "Hopper", "Turing", "Dijkstra", "Liskov", "Knuth"];
    const TAGS: [&str; 8] =
        ["new", "paid", "beta", "press", "school", "mobile", "partner", "retired"];
    let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut pick = |words: &[&'static str]| words[random.below(words.len() as u64) as usize];
    let (given, family) = (pick(&GIVEN), pick(&FAMILY));
    let tags = (0..3).map(|_| pick(&TAGS).to_owned()).collect();
    let id = number as i64 + 1;
    Object {
        id,
        name: format!("{given} {family}"),
        email: format!("{}.{}{id}@example.com", given.to_lowercase(), family.to_lowercase()),
        created_at: Time::from_unix(1_262_304_000 + (number as i64 % 315_532_800), 0)
            .unwrap_or_else(|_| unreachable!("within decades of 1970")),
        tags,
    }
}
