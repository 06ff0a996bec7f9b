//! Records of one copy that have the same key.
//!
//! Whether they lie in one batch or far apart makes no difference: the keys of a copy are remembered
//! from its beginning to its end. A key takes a fingerprint of 16 bytes, so that a million keys take
//! 20 to 40 MB. Fingerprints are SipHash with keys drawn for each run: two different keys of a
//! thousand million have the same one with a probability of 1 in 10^20. The workers make them, so
//! that the thread that writes to the store only has to look them up. It need not even do that for
//! keys that count up, as those of most sources do: each is new because it follows the one before.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState},
    str::FromStr,
};

use siphasher::sip128::{Hasher128, SipHasher13};

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
    Error::new(ErrorKind::Conflict, format!("duplicate key {}", key.shown()))
        .with_hint("--on-duplicate first or last keeps one of the records with the same key")
}

/// Makes the fingerprints of one copy.
#[derive(Clone)]
pub(super) struct Prints(SipHasher13);

/// Of a key.
pub(super) type Print = u128;

impl Prints {
    pub(super) fn new() -> Prints {
        let random = RandomState::new();
        let [one, two] = [1, 2].map(|n| random.hash_one(n));
        Prints(SipHasher13::new_with_keys(one, two))
    }

    pub(super) fn of(&self, key: &Key) -> Print {
        let mut hasher = self.0;
        hasher.write(key.as_bytes());
        hasher.finish128().as_u128()
    }

    /// Those of a batch.
    pub(super) fn of_all<'k>(&self, keys: impl Iterator<Item = &'k Key>) -> Printed {
        let mut printed = Printed::default();
        let mut before: Option<&Key> = None;
        let mut first = None;
        for key in keys {
            printed.all.push(self.of(key));
            printed.broken |= before.is_some_and(|before| !follows(key, before));
            first = first.or(Some(key));
            before = Some(key);
        }
        printed.ends = first.cloned().zip(before.cloned());
        printed
    }
}

/// Whether a key comes later where keys count up: longer ones after shorter ones, so that 10 follows 9.
fn follows(key: &str, before: &str) -> bool {
    (key.len(), key) > (before.len(), before)
}

/// The fingerprints of a batch.
#[derive(Default)]
pub(super) struct Printed {
    all: Vec<Print>,
    /// The first key and the last.
    ends: Option<(Key, Key)>,
    /// Some key does not follow the one before it.
    broken: bool,
}

impl Printed {
    /// Of a record, by its place in the batch.
    pub(super) fn at(&self, i: usize) -> Print {
        self.all[i]
    }
}

/// The keys of the records that a copy has written.
pub(super) struct Seen {
    prints: Prints,
    keys: HashSet<Print, BuildHasherDefault<Half>>,
    /// Keys that counted up from the beginning, and were not looked for.
    counted: Vec<Print>,
    order: Order,
}

/// How the keys have come so far.
enum Order {
    /// There was none.
    Nothing,
    /// Each followed the one before it; this is the last.
    UpTo(Key),
    /// Some key did not follow.
    Broken,
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
    pub(super) fn new(prints: Prints) -> Seen {
        Seen { prints, keys: HashSet::default(), counted: Vec::new(), order: Order::Nothing }
    }

    /// Remembers a batch of keys that all follow those before, if that is what they do.
    fn count_up(&mut self, batch: &Printed) -> bool {
        let Some((first, last)) = &batch.ends else { return true };
        let follow = match &self.order {
            Order::Nothing => true,
            Order::UpTo(before) => follows(first, before),
            Order::Broken => false,
        };
        if batch.broken || !follow {
            self.order = Order::Broken;
            return false;
        }
        self.counted.extend_from_slice(&batch.all);
        self.order = Order::UpTo(last.clone());
        true
    }

    /// All keys, to look for one.
    fn keys(&mut self) -> &mut HashSet<Print, BuildHasherDefault<Half>> {
        self.keys.extend(std::mem::take(&mut self.counted));
        &mut self.keys
    }

    /// Remembers a key; says whether it is new.
    pub(super) fn add(&mut self, key: Print) -> bool {
        self.order = Order::Broken;
        self.keys().insert(key)
    }

    /// Whether a key was written.
    pub(super) fn has(&mut self, key: &Key) -> bool {
        let key = self.prints.of(key);
        self.keys().contains(&key)
    }

    /// Forgets a key whose record was not written after all.
    pub(super) fn forget(&mut self, key: Print) {
        self.keys().remove(&key);
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

/// Plans a batch of records whose keys have these fingerprints; none where every key is new. `holds`
/// answers whether the store can hold a record; it is asked of those whose keys come more than once,
/// since a record that is refused takes no key.
pub(super) fn plan(
    rule: OnDuplicate,
    batch: &Printed,
    seen: &mut Seen,
    holds: impl Fn(usize) -> Result<()>,
) -> Option<Plan> {
    if seen.count_up(batch) {
        return None;
    }
    let prints = &batch.all;
    let taken: BTreeSet<usize> = (0..prints.len()).filter(|&i| !seen.add(prints[i])).collect();
    if taken.is_empty() {
        return None;
    }
    let twice: HashSet<Print> = taken.iter().map(|&i| prints[i]).collect();
    let (mut groups, mut plan) = (HashMap::<Print, Vec<usize>>::new(), Plan::default());
    for (i, print) in prints.iter().enumerate() {
        match twice.contains(print) {
            true => groups.entry(*print).or_default().push(i),
            false => plan.fresh.push(i),
        }
    }
    for group in groups.into_values() {
        let first = group[0];
        // The first of a group whose key is new was found to be so.
        let earlier = taken.contains(&first);
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
            Some(i) => plan.fresh.push(i),
            None if !earlier => seen.forget(prints[first]),
            None => {}
        }
        plan.beaten.extend(held);
    }
    for places in [&mut plan.fresh, &mut plan.again, &mut plan.beaten] {
        places.sort_unstable();
    }
    plan.refused.sort_by_key(|(i, _)| *i);
    Some(plan)
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
        let prints = Prints::new();
        let (mut end, mut seen, mut at) = (End::default(), Seen::new(prints.clone()), 0);
        for size in sizes.iter().cycle() {
            let batch = &records[at..records.len().min(at + size)];
            if batch.is_empty() {
                return end;
            }
            let keys: Vec<Key> =
                batch.iter().map(|(key, _)| Key::new(key.to_string()).unwrap()).collect();
            let made = prints.of_all(keys.iter());
            let holds = |i: usize| match batch[i].1 {
                true => Ok(()),
                false => Err(Error::invalid("refused")),
            };
            let all = || Plan { fresh: (0..batch.len()).collect(), ..Plan::default() };
            let plan = plan(rule, &made, &mut seen, holds).unwrap_or_else(all);
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
                        seen.forget(made.at(i));
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
            counting in prop::collection::vec(prop::bool::weighted(0.8), 0..30),
            sizes in prop::collection::vec(1usize..12, 1..5),
        ) {
            // They begin with keys that count up, some of which the store refuses.
            let counting = counting.into_iter().enumerate().map(|(i, held)| (i as u8, held));
            let records: Vec<_> = counting.chain(records).collect();
            for rule in OnDuplicate::ALL {
                prop_assert_eq!(planned(rule, &records, &sizes), model(rule, &records), "{}", rule);
            }
        }
    }

    #[test]
    fn keys_that_count_up_are_new_until_one_does_not_follow() {
        let batch = |prints: &Prints, keys: &[u32]| {
            let keys: Vec<Key> =
                keys.iter().map(|key| Key::new(format!("k{key}")).unwrap()).collect();
            prints.of_all(keys.iter())
        };
        let prints = Prints::new();
        let mut seen = Seen::new(prints.clone());
        let mut taken = |keys: &[u32]| {
            let made = batch(&prints, keys);
            plan(OnDuplicate::First, &made, &mut seen, |_| Ok(())).map(|plan| plan.beaten)
        };
        assert_eq!(taken(&[8, 9, 10]), None);
        assert_eq!(taken(&[]), None);
        assert_eq!(taken(&[11, 100]), None);
        // Between those that are known, and not among them.
        assert_eq!(taken(&[50, 51]), None);
        assert_eq!(taken(&[52, 9, 100, 101]), Some(vec![1, 2]));
        assert_eq!(taken(&[102, 8, 50]), Some(vec![1, 2]));
        assert!(seen.has(&Key::new("k11").unwrap()) && !seen.has(&Key::new("k12").unwrap()));
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
