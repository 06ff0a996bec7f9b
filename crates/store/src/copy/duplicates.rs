//! Records of one copy that have the same key.
//!
//! Whether they lie in one batch or far apart makes no difference: the keys of a copy are remembered
//! from its beginning to its end. A key takes a fingerprint of 16 bytes, so that a million keys take
//! 20 to 40 MB. Fingerprints are SipHash with keys drawn for each run: two different keys of a
//! thousand million have the same one with a probability of 1 in 10^20.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState},
    str::FromStr,
};

use crate::{Error, ErrorKind, Result, store::Key};

/// Which of the records of a copy that have the same key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnDuplicate {
    /// The first; later ones are counted as duplicates.
    First,
    /// The last; earlier ones are counted as duplicates.
    Last,
    /// The first; later ones are rejected.
    #[default]
    Reject,
}

impl OnDuplicate {
    /// Every rule.
    pub const ALL: [OnDuplicate; 3] = [OnDuplicate::First, OnDuplicate::Last, OnDuplicate::Reject];

    /// The one word it goes by.
    pub fn name(self) -> &'static str {
        match self {
            OnDuplicate::First => "first",
            OnDuplicate::Last => "last",
            OnDuplicate::Reject => "reject",
        }
    }
}

impl fmt::Display for OnDuplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for OnDuplicate {
    type Err = Error;
    fn from_str(name: &str) -> Result<OnDuplicate> {
        OnDuplicate::ALL.into_iter().find(|rule| rule.name() == name).ok_or_else(|| {
            Error::invalid(format!(
                "unknown rule for duplicates {name:?}; known: first, last, reject"
            ))
        })
    }
}

/// Why a record is rejected whose key an earlier one has.
pub(super) fn taken(key: &Key) -> Error {
    let what = format!(
        "duplicate key {}; --on-duplicate first or last keeps one of the records",
        key.shown()
    );
    Error::new(ErrorKind::Conflict, what)
}

/// The keys of the records that a copy has written.
#[derive(Default)]
pub(super) struct Seen {
    keys: HashSet<u128, BuildHasherDefault<Half>>,
    halves: [RandomState; 2],
}

/// Half of a fingerprint is hash enough.
#[derive(Default)]
struct Half(u64);

impl Hasher for Half {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u128(&mut self, n: u128) {
        self.0 = n as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

impl Seen {
    fn fingerprint(&self, key: &Key) -> u128 {
        let [high, low] = [0, 1].map(|i| u128::from(self.halves[i].hash_one(key.as_str())));
        high << 64 | low
    }

    /// Remembers a key; says whether it is new.
    pub(super) fn add(&mut self, key: &Key) -> bool {
        let key = self.fingerprint(key);
        self.keys.insert(key)
    }

    /// Whether a key was written.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.keys.contains(&self.fingerprint(key))
    }

    /// Forgets a key whose record was not written after all.
    pub(super) fn forget(&mut self, key: &Key) {
        let key = self.fingerprint(key);
        self.keys.remove(&key);
    }
}

/// What is to become of the records of a batch, by their places in it.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// To be written; their keys are new.
    pub fresh: Vec<usize>,
    /// To be written in place of records of earlier batches.
    pub again: Vec<usize>,
    /// Not to be written: another one has the key.
    pub beaten: Vec<usize>,
    /// Not to be written: the store cannot hold them.
    pub refused: Vec<(usize, Error)>,
}

/// Plans a batch of records with these keys. `holds` answers whether the store can hold a record; it
/// is asked of those whose keys come more than once, since a record that is refused takes no key.
pub(super) fn plan(
    rule: OnDuplicate,
    keys: &[&Key],
    seen: &mut Seen,
    holds: impl Fn(usize) -> Result<()>,
) -> Plan {
    let mut plan = Plan::default();
    let mut twice = HashSet::new();
    for (i, key) in keys.iter().enumerate() {
        match seen.add(key) {
            true => plan.fresh.push(i),
            false => drop(twice.insert(*key)),
        }
    }
    if twice.is_empty() {
        return plan;
    }
    let mut groups: HashMap<&Key, Vec<usize>> = HashMap::new();
    for (i, key) in keys.iter().enumerate().filter(|(_, key)| twice.contains(*key)) {
        groups.entry(key).or_default().push(i);
    }
    let mut fresh: HashSet<usize> = plan.fresh.drain(..).collect();
    for (key, group) in groups {
        // The first of a group whose key is new was found to be so.
        let earlier = !fresh.contains(&group[0]);
        fresh.remove(&group[0]);
        let mut held = Vec::new();
        for i in group {
            match holds(i) {
                Ok(()) => held.push(i),
                Err(e) => plan.refused.push((i, e)),
            }
        }
        let winner = match (rule, earlier) {
            (OnDuplicate::Last, _) => held.pop(),
            (_, true) => None,
            (_, false) if held.is_empty() => None,
            (_, false) => Some(held.remove(0)),
        };
        match winner {
            Some(i) if earlier => plan.again.push(i),
            Some(i) => drop(fresh.insert(i)),
            None if !earlier => seen.forget(key),
            None => {}
        }
        plan.beaten.extend(held);
    }
    plan.fresh.extend(fresh);
    for places in [&mut plan.fresh, &mut plan.again, &mut plan.beaten] {
        places.sort_unstable();
    }
    plan.refused.sort_by_key(|(i, _)| *i);
    plan
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// What is in the store in the end, and how many were written, beaten or replaced, refused.
    #[derive(Debug, Default, PartialEq)]
    struct End {
        store: BTreeMap<u8, usize>,
        beaten: usize,
        refused: usize,
    }

    /// One record after another: the meaning of the rules.
    fn model(rule: OnDuplicate, records: &[(u8, bool)]) -> End {
        let mut end = End::default();
        for (i, (key, held)) in records.iter().enumerate() {
            match (held, end.store.contains_key(key), rule) {
                (false, _, _) => end.refused += 1,
                (true, false, _) => drop(end.store.insert(*key, i)),
                (true, true, OnDuplicate::Last) => {
                    end.store.insert(*key, i);
                    end.beaten += 1;
                }
                (true, true, _) => end.beaten += 1,
            }
        }
        end
    }

    fn planned(rule: OnDuplicate, records: &[(u8, bool)], sizes: &[usize]) -> End {
        let (mut end, mut seen, mut at) = (End::default(), Seen::default(), 0);
        for size in sizes.iter().cycle() {
            let batch = &records[at..records.len().min(at + size)];
            if batch.is_empty() {
                return end;
            }
            let keys: Vec<Key> =
                batch.iter().map(|(key, _)| Key::new(key.to_string()).unwrap()).collect();
            let refs: Vec<&Key> = keys.iter().collect();
            let holds = |i: usize| match batch[i].1 {
                true => Ok(()),
                false => Err(Error::invalid("refused")),
            };
            let plan = plan(rule, &refs, &mut seen, holds);
            end.refused += plan.refused.len();
            end.beaten += plan.beaten.len();
            for i in plan.again {
                assert!(end.store.insert(batch[i].0, at + i).is_some());
                end.beaten += 1;
            }
            for i in plan.fresh {
                match batch[i].1 {
                    true => assert_eq!(end.store.insert(batch[i].0, at + i), None),
                    false => {
                        // As the keeper does where the store refuses.
                        seen.forget(&keys[i]);
                        end.refused += 1;
                    }
                }
            }
            at += batch.len();
        }
        end
    }

    proptest! {
        #[test]
        fn batches_make_no_difference(
            records in prop::collection::vec((0u8..6, prop::bool::weighted(0.8)), 0..40),
            sizes in prop::collection::vec(1usize..12, 1..5),
        ) {
            for rule in OnDuplicate::ALL {
                prop_assert_eq!(planned(rule, &records, &sizes), model(rule, &records), "{}", rule);
            }
        }
    }

    #[test]
    fn rules_have_names() {
        for rule in OnDuplicate::ALL {
            assert_eq!(rule.to_string().parse::<OnDuplicate>().unwrap(), rule);
        }
        let error = "both".parse::<OnDuplicate>().unwrap_err();
        assert!(error.to_string().contains("known: first, last, reject"), "{error}");
    }
}
