//! How long a value is kept.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Beyond this many seconds memcached takes a number for a time since 1970 (doc/protocol.txt,
/// "Expiration times").
const RELATIVE: u64 = 60 * 60 * 24 * 30;

/// How long a value is kept. memcached counts in whole seconds, and its clock ticks once a second:
/// a value may go up to a second early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// Until the memory is needed.
    #[default]
    Never,
    /// For so long, rounded up to seconds; nothing at all is kept for a time of zero.
    After(Duration),
    /// Until then.
    At(SystemTime),
}

impl From<Duration> for Expiry {
    fn from(time: Duration) -> Expiry {
        Expiry::After(time)
    }
}

impl Expiry {
    /// The number that says so to a server: 0 never, -1 at once.
    pub fn number(self) -> i64 {
        let since_1970 = |time: SystemTime| {
            let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
            i64::try_from(seconds).unwrap_or(i64::MAX)
        };
        match self {
            Expiry::Never => 0,
            Expiry::After(Duration::ZERO) => -1,
            Expiry::After(time) => {
                let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
                match seconds {
                    0..=RELATIVE => seconds as i64,
                    // What is further away than the clock goes is never.
                    _ => SystemTime::now()
                        .checked_add(time)
                        .map_or(0, since_1970)
                        .min(i64::from(i32::MAX)),
                }
            }
            // A number of less than a month would count from now.
            Expiry::At(time) if since_1970(time) <= RELATIVE as i64 => -1,
            Expiry::At(time) => since_1970(time).min(i64::from(i32::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mean_what_the_server_takes_them_for() {
        let after = |time| Expiry::After(time).number();
        assert_eq!(Expiry::Never.number(), 0);
        assert_eq!(after(Duration::ZERO), -1);
        assert_eq!(after(Duration::from_millis(1)), 1);
        assert_eq!(after(Duration::from_millis(1001)), 2);
        assert_eq!(after(Duration::from_secs(RELATIVE)), RELATIVE as i64);
        // More than a month: a date.
        assert!(after(Duration::from_secs(RELATIVE + 1)) > 1_700_000_000);
        assert!(after(Duration::MAX) <= i64::from(i32::MAX));
        assert_eq!(Expiry::At(UNIX_EPOCH + Duration::from_secs(5)).number(), -1);
        let date = UNIX_EPOCH + Duration::from_secs(1_900_000_000);
        assert_eq!(Expiry::At(date).number(), 1_900_000_000);
    }
}
