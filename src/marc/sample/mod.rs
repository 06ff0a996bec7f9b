//! The built-in catalogue: MARC records made from a seed, as a librarian would see them.
//!
//! [`Catalogue`] makes record `n` from the seed and `n` alone, so that any part can be made
//! anywhere, in any order, and agree. Its figures are those of 11,428 real records of public
//! repositories: how long records and fields are, how often each field is there, in which scripts,
//! how well all of it compresses, and what is odd about it. A test holds it to them.
//!
//! The names, titles, subjects and words are made up, from lists and from syllables; numbers have
//! valid check digits but belong to no book.
//!
//! `table.rs` says which fields there are; the other files write them. To add a field: a row there
//! and a function. This folder takes its random numbers and words from
//! [`record::dataset`](crate::record::dataset), and is the only part of the room that does.

mod codes;
mod holdings;
mod maker;
mod notes;
mod oddities;
mod plan;
mod subjects;
mod table;
#[cfg(test)]
mod tests;
mod titles;

use std::sync::LazyLock;

use self::{
    maker::{LARGEST, Maker, STREAM},
    plan::{Case, Kind, Plan},
    table::{TABLE, Times},
};
use super::{Leader, Record, iso2709};
use crate::{
    Error, Result,
    record::dataset::random::{Random, Ranks, mix},
};

/// The mean size of a record in bytes as ISO 2709, where none is asked for: that of the real ones.
pub const MEAN_BYTES: u32 = 1_461;
/// Of these bytes, so many are in fields whose number can grow and shrink.
const ELASTIC_BYTES: f64 = 700.0;
/// One record in so many is a giant, near the largest size there can be.
const GIANTS: u64 = 5_000;

/// Records of a library catalogue, made from a seed.
///
/// ```
/// use steelyard::marc::sample::Catalogue;
/// let catalogue = Catalogue::new(42);
/// let record = catalogue.record(7);
/// assert!(record.as_ref().field(*b"001").is_some());
/// assert_eq!(record, catalogue.record(7));
/// ```
#[derive(Debug, Clone)]
pub struct Catalogue {
    seed: u64,
    elastic: f64,
    oddities: bool,
}

impl Catalogue {
    /// The catalogue of this seed: records of [`MEAN_BYTES`] on average, with the oddities of real
    /// ones.
    pub fn new(seed: u64) -> Catalogue {
        Catalogue { seed, elastic: 1.0, oddities: true }
    }

    /// The same with records of another mean size, in bytes as ISO 2709 (within 3 % over some
    /// thousands of records). More copies, notes and headings make them longer.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) below 900 or above 10,000.
    pub fn mean_bytes(mut self, bytes: u32) -> Result<Catalogue> {
        if !(900..=10_000).contains(&bytes) {
            return Err(Error::invalid(format!(
                "records of {bytes} bytes on average; 900 to 10,000 can be made"
            )));
        }
        self.elastic = 1.0 + (f64::from(bytes) - f64::from(MEAN_BYTES)) / ELASTIC_BYTES;
        Ok(self)
    }

    /// The same with or without what real records have and the standard does not: leaders that do
    /// not end in 4500, tags that are no numbers, empty subfields and so on, at the rates counted.
    pub fn oddities(mut self, oddities: bool) -> Catalogue {
        self.oddities = oddities;
        self
    }

    /// Record `number`, from 0.
    pub fn record(&self, number: u64) -> Record {
        let mut record = Record::new();
        self.make(number, &mut record);
        record
    }

    /// Makes record `number`, from 0, in the memory of `record`.
    pub fn make(&self, number: u64, record: &mut Record) {
        record.clear();
        let mut random = Random::new(self.seed, STREAM, number);
        let plan = Plan::new(self.seed, number, &mut random);
        let leader = leader(&plan, &mut random);
        let giant = plan.case.kind.is_title()
            && number % GIANTS == mix(self.seed ^ mix(number / GIANTS)) % GIANTS;
        let mut maker = Maker::new(plan, random, record);
        for (row, share) in TABLE.iter().zip(SHARES.iter()) {
            maker.tag = row.tag;
            if !(row.among)(maker.plan.case) || !maker.chance(*share) {
                continue;
            }
            let times = times(row.times, self.elastic, &mut maker.random);
            for turn in 0..times {
                maker.turn = (turn, times);
                (row.make)(&mut maker);
                maker.finish(row.tag);
            }
        }
        if self.oddities {
            oddities::fields(&mut maker);
        }
        if giant {
            fill(&mut maker);
        }
        let plan = maker.plan;
        let leader = if self.oddities { oddities::leader(leader, &plan, record) } else { leader };
        record.set_leader(Leader(leader));
        // As in a file: JSON and XML carry the lengths too.
        record.set_leader(iso2709::leader(record.as_ref()));
    }
}

/// How often a record that can have a field has it, row by row of the table.
static SHARES: LazyLock<Vec<f64>> =
    LazyLock::new(|| TABLE.iter().map(|row| row.share / Case::share(row.among)).collect());

/// Copies of a periodical and the like.
const MANY: Ranks = Ranks::new(9, 520);
/// The mean of one more than a rank of [`MANY`].
const MANY_MEAN: f64 = 6.0;

fn times(times: Times, elastic: f64, random: &mut Random) -> u32 {
    let natural = match times {
        Times::Once => return 1,
        Times::Few(mean) => {
            let mut n = 1;
            while n < 60 && random.chance((mean - 1.0) / mean) {
                n += 1;
            }
            f64::from(n)
        }
        Times::Many(mean) => f64::from(1 + random.rank(&MANY)) * (mean / MANY_MEAN),
    };
    random.round(natural * elastic)
}

/// Copies, until the record is near the largest size.
fn fill(maker: &mut Maker) {
    let size = LARGEST - maker.random.below(LARGEST as u32 / 2) as usize;
    maker.turn = (0, u32::MAX);
    while maker.size() < size {
        let before = maker.size();
        holdings::copy_with_history(maker);
        maker.finish("949");
        maker.turn.0 += 1;
        if maker.size() == before {
            break;
        }
    }
}

fn leader(plan: &Plan, random: &mut Random) -> [u8; 24] {
    let mut leader = *b"00000nam a2200000 a 4500";
    leader[5] = random.pick(b"ccccnnnnp");
    let kind = match plan.case.kind {
        Kind::Book => b"am",
        Kind::Manuscript => b"tm",
        Kind::Serial => b"as",
        Kind::Music if random.chance(0.08) => b"jc",
        Kind::Music => b"jm",
        Kind::Score => b"cm",
        Kind::Video => b"gm",
        Kind::Map => b"em",
        Kind::Talk => b"im",
        Kind::Other => random.pick(&[b"ab", b"aa", b"km", b"ai", b"mm", b"om", b"ac", b"tc"]),
        Kind::Copy => b"x ",
        Kind::Volumes => b"y ",
        Kind::Authority => b"z ",
    };
    leader[6..8].copy_from_slice(kind);
    match plan.case.kind {
        Kind::Copy | Kind::Volumes | Kind::Authority => {
            leader[17] = random.pick(b"n124");
            leader[18] = if plan.case.kind == Kind::Authority { b' ' } else { b'n' };
        }
        _ => {
            leader[17] = random.pick(b"    IM7K1");
            leader[18] = if plan.case.new_rules { b'i' } else { random.pick(b"aaaa  ") };
        }
    }
    leader
}
