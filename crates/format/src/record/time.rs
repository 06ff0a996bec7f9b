//! A moment in UTC.

use std::{fmt, str::FromStr};

use crate::{Error, Result};

/// A moment in UTC with nanoseconds. Years -9999 to 9999; written as RFC 3339 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(jiff::Timestamp);

impl Time {
    /// From seconds and nanoseconds (0..1,000,000,000) since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where the year is out of range.
    pub fn from_unix(seconds: i64, nanoseconds: u32) -> Result<Self> {
        let nanos = i32::try_from(nanoseconds).unwrap_or(i32::MAX);
        jiff::Timestamp::new(seconds, nanos)
            .map(Time)
            .map_err(|e| Error::malformed("a time outside the years -9999 to 9999").with_source(e))
    }

    /// Whole seconds since 1970, rounded down, and the nanoseconds after them.
    pub fn to_unix(self) -> (i64, u32) {
        let nanos = self.0.as_nanosecond();
        let billion = 1_000_000_000i128;
        (nanos.div_euclid(billion) as i64, nanos.rem_euclid(billion) as u32)
    }
}

impl Time {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub(super) fn to_nanos(self) -> i128 {
        self.0.as_nanosecond()
    }

    /// From nanoseconds since 1970-01-01T00:00:00Z.
    pub(super) fn from_nanos(nanos: i128) -> Result<Self> {
        jiff::Timestamp::from_nanosecond(nanos)
            .map(Time)
            .map_err(|e| Error::malformed("a time outside the years -9999 to 9999").with_source(e))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Time {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self> {
        s.parse()
            .map(Time)
            .map_err(|e| Error::malformed(format!("{s:?} is not an RFC 3339 time")).with_source(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_text_and_unix_also_before_1970() {
        for (s, n) in [(0, 0), (-1, 999_999_999), (1_000_000_000, 5), (-62_000_000_000, 1)] {
            let t = Time::from_unix(s, n).unwrap();
            assert_eq!(t.to_unix(), (s, n));
            assert_eq!(t.to_string().parse::<Time>().unwrap(), t);
        }
    }
}
