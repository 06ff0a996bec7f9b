//! The keys of a table, through SCAN.
//!
//! Redis promises that SCAN gives every key that is there from its begin to its end, and gives some
//! twice where its table of keys shrinks meanwhile. It walks that table by the reversed bits of the
//! cursor, so that keys given again are those given just before: the part of the wider table that
//! falls together in one place of the narrower one. A window of the last keys therefore finds them:
//! 65,536 keys, or four mebibytes of long ones. What comes again beyond that (a table that shrinks
//! to less than a thirty-thousandth within a scan) is not found.
//!
//! In a large space of keys with few of the table's, many answers have none, and all is well: no time is held
//! against that. Each answer has looked at a thousand places, though, so that there is an end to them: a server
//! that gives a cursor twice, or 65,536 empty answers and one more for every hundred keys it has (`DBSIZE`), is
//! asked no more.

use std::collections::{HashSet, VecDeque};

use redis::cmd;

use super::pool::Pool;
use crate::{
    ErrorKind, Result,
    store::{
        Key, counts,
        kv::Namespace,
        onward::{Barren, Onward},
    },
};

/// How many places of the table of keys to look at with one command.
const PLACES: u32 = 1000;
/// For how many keys a server may send an empty answer more: a tenth of the places.
const EACH: u64 = 100;

/// A walk through the keys of a table.
pub(super) struct Keys<'a> {
    pool: &'a Pool,
    space: &'a Namespace,
    pattern: String,
    /// None at the end.
    cursor: Option<u64>,
    recent: Recent,
    walk: Onward<u64>,
    barren: Barren,
    /// How many of its commands were asked.
    pub rounds: u64,
}

impl<'a> Keys<'a> {
    pub(super) fn new(pool: &'a Pool, space: &'a Namespace) -> Keys<'a> {
        let pattern = format!("{}*", literally(space.prefix()));
        let (recent, walk, barren) = (Recent::default(), Onward::new(), Barren::default());
        Keys { pool, space, pattern, cursor: Some(0), recent, walk, barren, rounds: 0 }
    }

    /// How many keys the server has, as it says; who may not ask takes it to have as many as any.
    async fn size(&self) -> Result<u64> {
        match self.pool.ask::<i64>("DBSIZE", &cmd("DBSIZE")).await {
            Ok(size) => counts::records("DBSIZE", size).map_err(|e| self.pool.placed(e)),
            Err(e) if matches!(e.kind(), ErrorKind::Denied | ErrorKind::Unsupported) => {
                Ok(Barren::RECORDS)
            }
            Err(e) => Err(e),
        }
    }

    /// Some keys more, perhaps none; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Key>>> {
        let Some(cursor) = self.cursor else { return Ok(None) };
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(&self.pattern).arg("COUNT").arg(PLACES);
        let (next, found): (u64, Vec<Vec<u8>>) = self.pool.ask("SCAN", &scan).await?;
        self.walk.at(&next, "SCAN").map_err(|e| self.pool.placed(e))?;
        self.cursor = Some(next).filter(|next| *next != 0);
        self.rounds += 1;
        let mut keys = Vec::with_capacity(found.len());
        for full in found {
            if let Some(key) = self.space.own(&full)?
                && self.recent.is_new(&key)
            {
                keys.push(key);
            }
        }
        // Keys that come again are none that come.
        let barren = self.barren.came(keys.len(), "SCAN").map_err(|e| self.pool.placed(e))?;
        if barren && self.cursor.is_some() {
            self.barren.known(self.size().await?, EACH);
        }
        Ok(Some(keys))
    }
}

/// A pattern that fits this text only.
fn literally(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// The last keys that came.
#[derive(Default)]
struct Recent {
    known: HashSet<Key>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl Recent {
    const KEYS: usize = 1 << 16;
    const BYTES: usize = 4 << 20;

    fn is_new(&mut self, key: &Key) -> bool {
        if !self.known.insert(key.clone()) {
            return false;
        }
        self.bytes += key.len();
        self.order.push_back(key.clone());
        while self.order.len() > Recent::KEYS || self.bytes > Recent::BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= oldest.len();
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_literal() {
        assert_eq!(literally("a*b?[c-d]^\\:"), r"a\*b\?\[c\-d\]\^\\:");
    }

    #[test]
    fn recent_keys_are_known_in_bounded_memory() {
        let mut recent = Recent::default();
        let key = |i: usize| Key::new(i.to_string()).unwrap();
        for i in 0..Recent::KEYS * 3 {
            assert!(recent.is_new(&key(i)));
            assert!(!recent.is_new(&key(i - i.min(1000))));
        }
        assert_eq!(recent.known.len(), Recent::KEYS);
        let long = |i: usize| Key::new(format!("{i}{}", "x".repeat(Recent::BYTES / 4))).unwrap();
        (0..10).for_each(|i| assert!(recent.is_new(&long(i))));
        assert!(recent.known.len() <= 4 && recent.bytes <= Recent::BYTES);
    }
}
