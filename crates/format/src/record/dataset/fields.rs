//! The records of YCSB: ten fields of 100 bytes.
//!
//! Source: B. F. Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010, section 4:
//! records of ten fields, each a random text of 100 bytes.

use super::{Info, Make, random::Random};
use crate::record::Document;

pub(super) const INFO: Info = Info {
    name: "fields",
    about: "records of ten fields of 100 random characters, as in YCSB",
    count: 10_000,
    published: 1_000_000,
    key: None,
    make: Make::Documents(document),
};

/// Tells this dataset's random numbers from those of others.
const STREAM: u64 = 6;
/// Fields in a record.
const FIELDS: usize = 10;
/// Characters in a field.
const LENGTH: usize = 100;
/// One of these 64 is a character.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Record `number` of the dataset, from 0.
pub fn document(seed: u64, number: u64) -> Document {
    let mut random = Random::new(seed, STREAM, number);
    let mut document = Document::with_capacity(FIELDS);
    for field in 0..FIELDS {
        let mut text = String::with_capacity(LENGTH);
        for _ in 0..LENGTH {
            text.push(char::from(CHARACTERS[random.below(64) as usize]));
        }
        document.push(format!("field{field}"), text);
    }
    document
}
