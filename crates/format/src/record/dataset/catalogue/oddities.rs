//! Deviations of real records from the standard, at the rates at which they were counted.
//!
//! Of structurally valid records from public repositories, so many have a leader that does not end
//! in `4500`, a tag that is not a number, and so on. All of these are valid UTF-8 and come back byte
//! for byte through any format that keeps what it is given.

use super::{maker::Maker, plan::Plan};
use crate::{marc::Record, record::dataset::random::Random};

/// Shares of records, 0 to 1.
const END_OF_LEADER: f64 = 0.114;
const LOCAL_TAG: f64 = 0.020;
const CAPITAL_CODE: f64 = 0.016;
const EMPTY_SUBFIELD: f64 = 0.016;
const INDICATOR: f64 = 0.007;
const CONTROL: f64 = 0.004;
const PUNCTUATION_CODE: f64 = 0.004;
const NO_UTF8_MARK: f64 = 0.016;

/// Adds a field or two as no cataloguer should have.
pub(super) fn fields(m: &mut Maker) {
    if m.chance(LOCAL_TAG) {
        let tag = m.random.choose("LKR|CAT|SYS|OWN|AVA|Z30|abc");
        m.ind("  ").sub('a').any("BATCH|CONV|UP").sub('b').range(0, 99).sub('c').digits(8);
        m.finish(tag);
    }
    if m.chance(CAPITAL_CODE) {
        m.ind("  ").sub('a').say("LIBRARY HAS").sub('A').english(1, 4).sub('D').say("x");
        m.finish("956");
    }
    if m.chance(EMPTY_SUBFIELD) {
        m.ind("  ").sub('a').english(2, 4).sub('b');
        m.finish("595");
    }
    if m.chance(INDICATOR) {
        m.one_of(&["a ", " |", "\\\\", "- ", "#1"]).sub('a').english(2, 6).stop();
        m.finish("599");
    }
    if m.chance(CONTROL) {
        m.ind("  ").sub('a').english(2, 4).any("\t|\n|\r|\u{7f}").english(1, 2);
        m.finish("598");
    }
    if m.chance(PUNCTUATION_CODE) {
        let code = m.random.pick(&['-', '.', '&', '=', '?']);
        m.ind("  ").sub('a').english(2, 4).sub(code).range(1700, 1990);
        m.finish("597");
    }
}

/// The leader, sound or not.
pub(super) fn leader(mut leader: [u8; 24], plan: &Plan, record: &Record) -> [u8; 24] {
    let mut random = Random::new(plan.own, 20, 0);
    if random.chance(END_OF_LEADER) {
        let end = random.pick(&[b"45  ", b"45 0", b"    ", b"450 ", b"4 00"]);
        leader[20..].copy_from_slice(end);
    }
    // Counted over all records; it shows only in those that are not plain ASCII, some 36 %.
    if random.chance(NO_UTF8_MARK / 0.36) && !is_ascii(record) {
        leader[9] = b' ';
    }
    leader
}

fn is_ascii(record: &Record) -> bool {
    record.as_ref().fields().all(|f| f.bytes().is_ascii())
}
