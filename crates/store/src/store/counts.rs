//! Counts that a server gives, checked against what it was asked.

use std::{collections::HashSet, fmt::Display};

use super::Key;
use crate::{Error, Result};

/// How many records there can be: what the signed numbers hold in which servers count.
const MOST: u64 = i64::MAX as u64;

/// How many of these keys a server says it had: none of them twice, so at most as many as differ.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) for a count that is negative or larger.
pub(super) fn of_keys(what: &str, keys: &[Key], count: impl Into<i128>) -> Result<u64> {
    let count = count.into();
    // Most remove one key, or find none: those are not looked at one by one.
    let most = match keys {
        _ if count <= 1 => keys.len().min(1),
        keys => keys.iter().collect::<HashSet<_>>().len(),
    };
    at_most(what, most as u64, "keys it was given", count)
}

/// How many rows a server says it wrote, where these are the most it can have counted.
///
/// # Errors
/// As [`of_keys`].
pub(super) fn at_most(
    what: &str,
    most: u64,
    of: impl Display,
    count: impl Into<i128>,
) -> Result<u64> {
    let count = count.into();
    match u64::try_from(count) {
        Ok(count) if count <= most => Ok(count),
        _ => Err(Error::malformed(format!(
            "the server's answer to {what} is invalid: it counts {count} of {most} {of}"
        ))),
    }
}

/// A count of records, of which nobody knows how many there are.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) for a count that is negative, or of more than there can be.
pub(super) fn records(what: &str, count: impl Into<i128>) -> Result<u64> {
    let count = count.into();
    match u64::try_from(count) {
        Ok(count) if count <= MOST => Ok(count),
        _ => Err(Error::malformed(format!(
            "the server's answer to {what} is invalid: it counts {count} records"
        ))),
    }
}

/// A yes or no that a server says as 1 or 0.
///
/// # Errors
/// As [`of_keys`].
pub(super) fn yes(what: &str, count: impl Into<i128>) -> Result<bool> {
    match count.into() {
        0 => Ok(false),
        1 => Ok(true),
        count => Err(Error::malformed(format!(
            "the server's answer to {what} is invalid: {count}, not 0 or 1"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_count_is_larger_than_what_was_asked(
            keys in prop::collection::vec(0u8..20, 0..30),
            count in prop_oneof![-3i64..40, any::<i64>()],
        ) {
            let keys: Vec<Key> =
                keys.into_iter().map(|n| Key::new(n.to_string()).unwrap()).collect();
            let different = keys.iter().collect::<HashSet<_>>().len() as i64;
            let held = of_keys("DELETE", &keys, count);
            prop_assert_eq!(held.is_ok(), (0..=different).contains(&count));
            if let Err(e) = held {
                prop_assert_eq!(e.kind(), crate::ErrorKind::Malformed);
                let said = format!("counts {count} of");
                prop_assert!(e.to_string().contains(&said), "{}", e);
            }
            prop_assert_eq!(records("COUNT", count).is_ok(), count >= 0);
            prop_assert_eq!(yes("EXISTS", count).is_ok(), [0, 1].contains(&count));
        }
    }

    #[test]
    fn counts_that_wrapped_around_are_none() {
        assert!(records("COUNT", u64::MAX).is_err());
        assert!(records("COUNT", i64::MAX).is_ok());
        assert!(at_most("INSERT", 2, "rows", u64::MAX).is_err());
    }
}
