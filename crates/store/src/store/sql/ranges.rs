//! Ranges of keys in words of SQL, the pages of a scan, and the cutting of a table into parts.

use super::{Dialect, Sql};
use crate::{
    Error, Result,
    record::Value,
    store::{
        Filter, Key, KeyRange,
        query::{Path, Test},
    },
};

/// A range of keys, from a border and up to another, each with what compares a key with it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bounds {
    from: Option<(String, &'static str)>,
    until: Option<(String, &'static str)>,
}

impl Bounds {
    /// The same range. Where texts have no NUL (`nul` is false), a border with one lies just after what
    /// stands before it.
    pub(crate) fn new(range: &KeyRange, nul: bool) -> Bounds {
        let border = |key: &Key, operator, after_nul| match key.split_once('\0') {
            Some((before, _)) if !nul => (before.to_owned(), after_nul),
            _ => (key.to_string(), operator),
        };
        Bounds {
            from: range.from.as_ref().map(|key| border(key, " >= ", " > ")),
            until: range.until.as_ref().map(|key| border(key, " < ", " <= ")),
        }
    }

    /// What is left of it after a key.
    pub(crate) fn after(self, last: &Key) -> Bounds {
        Bounds { from: Some((last.to_string(), " > ")), ..self }
    }

    /// Appends the condition on the key, an expression.
    fn push(&self, key: &str, sql: &mut Sql) {
        let mut word = " WHERE ";
        for (border, operator) in [&self.from, &self.until].into_iter().flatten() {
            sql.push(word).push(key).push(operator).bind(Value::from(border.as_str()));
            word = " AND ";
        }
    }
}

/// `select`, a statement without conditions, of the rows in a range in the order of their keys; how many,
/// the caller says.
pub(crate) fn page(dialect: &dyn Dialect, select: &str, key: &str, bounds: &Bounds) -> Sql {
    let mut sql = Sql::new(dialect, select);
    bounds.push(key, &mut sql);
    sql.push(" ORDER BY ").push(key);
    sql
}

fn of_key(test: Test) -> Filter {
    Filter::Field(Path::new([Path::KEY]), test)
}

/// The filter that a key lies in a range.
pub(crate) fn filter(range: &KeyRange) -> Filter {
    let from = range.from.iter().map(|key| of_key(Test::Ge(key.as_str().into())));
    let until = range.until.iter().map(|key| of_key(Test::Lt(key.as_str().into())));
    from.chain(until).fold(Filter::All, Filter::and)
}

/// The filter for those that fit whose keys come after this one.
pub(crate) fn after(filter: Filter, key: &Key) -> Filter {
    filter.and(of_key(Test::Gt(key.as_str().into())))
}

/// The places, among so many keys in their order, at which parts begin but for the first.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for no parts at all.
pub(crate) fn places(count: u64, parts: u32) -> Result<impl Iterator<Item = u64> + Clone> {
    if parts == 0 {
        return Err(Error::invalid("no parts at all; one at least"));
    }
    let (count, of) = (u128::from(count), u128::from(parts));
    Ok((1..of).map(move |i| (count * i / of) as u64))
}

/// So many ranges, cut at these borders. Where they are fewer, as there are few keys, or fewer than
/// there were, the ranges without a border are empty.
pub(crate) fn parts(borders: Vec<Key>, parts: u32) -> Vec<KeyRange> {
    let mut ranges = KeyRange::between(borders);
    ranges.resize_with(parts as usize, || {
        let none = Key::new("\0").expect("not empty");
        KeyRange { from: Some(none.clone()), until: Some(none) }
    });
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    impl Bounds {
        /// Whether a key is in it, as a database would say.
        fn has(&self, key: &str) -> bool {
            let fits = |(border, operator): &(String, &str)| match *operator {
                " >= " => key >= border.as_str(),
                " > " => key > border.as_str(),
                " < " => key < border.as_str(),
                " <= " => key <= border.as_str(),
                other => panic!("no operator: {other}"),
            };
            [&self.from, &self.until].into_iter().flatten().all(fits)
        }
    }

    proptest! {
        #[test]
        fn bounds_hold_the_keys_of_their_range(
            from in prop::option::of("[ab\0]{1,4}"),
            until in prop::option::of("[ab\0]{1,4}"),
            text in "[ab\0]{1,4}",
            last in "[ab]{1,3}",
        ) {
            let range = KeyRange { from: from.as_deref().map(key), until: until.as_deref().map(key) };
            let (bounds, inside) = (Bounds::new(&range, true), range.contains(&key(&text)));
            prop_assert_eq!(bounds.has(&text), inside);
            prop_assert_eq!(bounds.after(&key(&last)).has(&text), text > last
                && range.until.as_ref().is_none_or(|until| text.as_str() < until.as_str()));
            if !text.contains('\0') {
                prop_assert_eq!(Bounds::new(&range, false).has(&text), inside);
            }
        }

        #[test]
        fn every_key_is_in_one_part(count in 0usize..40, of in 1u32..20, gone in 0usize..40) {
            let keys: Vec<Key> = (0..count).map(|i| key(&format!("{i:03}"))).collect();
            // Some may be deleted after they were counted.
            let there = count.saturating_sub(gone);
            let borders = places(count as u64, of).unwrap();
            let borders = borders.map_while(|at| keys[..there].get(at as usize).cloned()).collect();
            let parts = parts(borders, of);
            prop_assert_eq!(parts.len(), of as usize);
            for key in &keys {
                prop_assert_eq!(parts.iter().filter(|range| range.contains(key)).count(), 1);
            }
            let most = |range: &KeyRange| keys.iter().filter(|key| range.contains(key)).count();
            if gone == 0 {
                prop_assert!(parts.iter().map(most).max() <= Some(count.div_ceil(of as usize)));
            }
        }
    }

    #[test]
    fn no_parts_are_refused() {
        assert!(places(5, 0).map(drop).is_err());
        assert_eq!(places(10, 4).unwrap().collect::<Vec<_>>(), [2, 5, 7]);
        assert_eq!(places(u64::MAX, 2).unwrap().collect::<Vec<_>>(), [u64::MAX / 2]);
    }
}
