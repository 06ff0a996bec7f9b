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
//! and a function. It is the only part of this room that knows [`marc`](crate::marc).

mod codes;
mod holdings;
mod maker;
mod names;
mod notes;
mod numbers;
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
    plan::{Case, Kind, Library, Plan},
    table::{TABLE, Times},
};
use crate::marc::{Leader, Record, iso2709};
use crate::{
    Error, Result,
    record::dataset::random::{Random, Ranks, mix},
};

/// The mean size of a record in bytes as ISO 2709, where none is asked for: that of the real ones.
pub const MEAN_BYTES: u32 = 1_461;
/// The mean size where every field is there as often as in real records, and how many of these
/// bytes are in fields that there can be more or less of. Measured on 180,000 records.
const NATURAL_BYTES: f64 = 1_447.0;
const ELASTIC_BYTES: f64 = 640.0;
/// One record in so many has hundreds of copies, one in so many thousands.
const LONG: u64 = 200;
const GIANTS: u64 = 5_000;

/// Records of a library catalogue, made from a seed.
///
/// ```
/// use steelyard_format::record::dataset::catalogue::Catalogue;
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
        Catalogue { seed, elastic: elastic(MEAN_BYTES), oddities: true }
    }

    /// The same with records of another mean size, in bytes as ISO 2709: met within
    /// 3 % over ten thousand records, less closely far from [`MEAN_BYTES`]. More copies, notes and headings make them longer.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) below 900 or above 10,000.
    pub fn mean_bytes(mut self, bytes: u32) -> Result<Catalogue> {
        if !(900..=10_000).contains(&bytes) {
            return Err(Error::invalid(format!(
                "records of {bytes} bytes on average; 900 to 10,000 can be made"
            )));
        }
        self.elastic = elastic(bytes);
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
        let plan = Plan::new(self.seed, number);
        let leader = leader(&plan);
        let mut maker = Maker::new(plan, record);
        for (row, share) in TABLE.iter().zip(SHARES.iter()) {
            if !(row.among)(maker.plan.case) {
                continue;
            }
            maker.begin(row.tag, row.describes());
            let share = maker.plan.care.share(*share);
            if !maker.chance(share) {
                continue;
            }
            let natural = times(row.times, maker.plan.care.again(), &mut maker.random);
            let elastic = if row.is_elastic() { self.elastic } else { 1.0 };
            let times = maker.random.round(natural * elastic);
            for turn in 0..times {
                maker.turn = (turn, times);
                (row.make)(&mut maker);
                maker.finish(row.tag);
            }
        }
        if self.oddities {
            maker.begin("odd", false);
            oddities::fields(&mut maker);
        }
        if let Some(size) = self.fill(&maker.plan) {
            fill(&mut maker, size);
        }
        let (plan, in_script) = (maker.plan, maker.in_script);
        if !in_script {
            // 066 names the scripts of 880 and stands before it; nothing was to be linked after all.
            record.remove(*b"066");
        }
        let leader = if self.oddities { oddities::leader(leader, &plan, record) } else { leader };
        record.set_leader(Leader(leader));
        // As in a file: JSON and XML carry the lengths too.
        record.set_leader(iso2709::leader(record.as_ref()));
    }
}

/// How many times as many repeated fields as in real records make records of this mean size.
fn elastic(bytes: u32) -> f64 {
    1.0 + (f64::from(bytes) - NATURAL_BYTES) / ELASTIC_BYTES
}

impl Catalogue {
    /// The size to fill a record to, if it is one of the few that have that many copies. There is
    /// one such in each [`LONG`] (and each [`GIANTS`]) numbers, so that sums differ little.
    fn fill(&self, plan: &Plan) -> Option<usize> {
        let turn =
            |every: u64| plan.number % every == mix(self.seed ^ (plan.number / every)) % every;
        let mut random = Random::new(plan.own, STREAM, 3);
        if !plan.case.kind.is_title() {
            None
        } else if turn(GIANTS) {
            Some(LARGEST - random.below(LARGEST as u32 / 2) as usize)
        } else if turn(LONG) {
            let size = random.pick(&[8_000, 10_000, 12_000, 15_000, 20_000, 28_000, 40_000]);
            Some(size + random.below(2_000) as usize)
        } else {
            None
        }
    }
}

/// How often a record that can have a field has it, row by row of the table.
static SHARES: LazyLock<Vec<f64>> =
    LazyLock::new(|| TABLE.iter().map(|row| row.share / Case::share(row.among)).collect());

/// Copies of a periodical and the like.
const MANY: Ranks = Ranks::new(8, 560);
/// The mean of a rank of [`MANY`].
const MANY_MEAN: f64 = 6.70;

/// How often a field is there that is there: at least once, and `more` times as often again as
/// usual.
fn times(times: Times, more: f64, random: &mut Random) -> f64 {
    match times {
        Times::Once => 1.0,
        Times::Few(mean) => {
            let again = (mean - 1.0) * more;
            let mut n = 1.0;
            while n < 4.0 * mean + 2.0 && random.chance(again / (1.0 + again)) {
                n += 1.0;
            }
            n
        }
        Times::Many(mean) => 1.0 + f64::from(random.rank(&MANY)) * (mean - 1.0) / MANY_MEAN,
    }
}

/// Adds copies until the record has this size, in the field its library has them in.
fn fill(maker: &mut Maker, size: usize) {
    let (tag, make): (_, fn(&mut Maker)) = match maker.plan.case.library {
        Library::Shared => ("974", holdings::repository),
        Library::Holdings => ("876", holdings::copy_of_holding),
        Library::Items => ("940", holdings::item),
        _ => ("949", holdings::copy_with_history),
    };
    maker.begin(tag, false);
    maker.turn = (0, u32::MAX);
    while maker.size() < size {
        let before = maker.size();
        make(maker);
        maker.finish(tag);
        maker.turn.0 += 1;
        if maker.size() == before {
            break;
        }
    }
}

fn leader(plan: &Plan) -> [u8; 24] {
    let random = &mut Random::new(plan.own, STREAM, 2);
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
        Kind::PersonName | Kind::BodyName | Kind::Topic | Kind::PlaceName => b"z ",
    };
    leader[6..8].copy_from_slice(kind);
    if plan.case.kind.is_title() {
        leader[17] = random.pick(b"    IM7K1");
        leader[18] = if plan.case.new_rules() { b'i' } else { random.pick(b"aaaa  ") };
    } else {
        leader[17] = random.pick(b"n124");
        leader[18] = if plan.case.kind.is_authority() { b' ' } else { b'n' };
    }
    leader
}
