//! The protocol of memcached, without any I/O: requests are written to and replies parsed from buffers.
//!
//! A [`Call`] is one operation on one key. An [`Exchange`] is something that is said on one
//! connection and answered there, whole: [`One`] call, [`Many`] calls one behind another, a
//! [`GetMany`] of values, [`Quiet`] calls with a barrier behind them, an [`Admin`] command. The
//! shells (`../blocking`, `../nonblocking`) send what an exchange writes and hand it what comes.
//!
//! Two dialects: the meta commands of memcached 1.6.10 and later, the classic text of any. What is
//! out of step with the question is an error of the stream: the connection is closed, and never used
//! again.
//!
//! To add an operation: a variant of [`Op`], its line in `call/meta.rs` and in `call/classic.rs`.

mod admin;
mod call;
mod get_many;
mod input;
mod many;
mod quiet;
pub mod reply;

pub use admin::Admin;
pub use call::{Answer, Call, Found, How, One, Op, Sent};
pub use get_many::GetMany;
pub use input::Input;
pub use many::Many;
pub use quiet::{Loss, Quiet};

use crate::Result;

/// About how much is written before it is sent.
pub const CHUNK: usize = 64 << 10;

/// Which commands a server understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `mg`, `ms`, `md`, `ma`, `mn`.
    Meta,
    /// `get`, `set` and so on.
    Classic,
}

impl Dialect {
    /// What a server of this version understands. Meta commands answer as they do now, and take keys
    /// in Base64, from 1.6.10 on (its release notes).
    pub fn of_version(version: &str) -> Dialect {
        let mut numbers = version
            .split(['.', '-', ' '])
            .map(|part| part.parse::<u32>().unwrap_or(0))
            .chain([0, 0, 0]);
        let version: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
        if version >= [1, 6, 10] { Dialect::Meta } else { Dialect::Classic }
    }
}

/// Something that is said on one connection, and answered there.
pub trait Exchange {
    /// Appends more of what is to be said, about [`CHUNK`] bytes, to an `out` that is empty.
    fn write(&mut self, out: &mut Vec<u8>);

    /// Whether all is said.
    fn written(&self) -> bool;

    /// Reads the replies that are there as a whole, and says whether that was the last.
    ///
    /// # Errors
    /// Where the stream is in doubt. What a server says against a call is in the call's answer.
    fn read(&mut self, input: &mut Input) -> Result<bool>;

    /// Goes back to its beginning, to be said anew on another connection. It must not, and says
    /// so, where something was answered or where saying it twice does harm.
    fn again(&mut self) -> bool;

    /// Whether the time counts from the last byte that came, as for long listings.
    fn patient(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_tell_the_dialect() {
        for (version, dialect) in [
            ("1.6.18", Dialect::Meta),
            ("1.6.10", Dialect::Meta),
            ("1.6.9", Dialect::Classic),
            ("1.4.39-37-g9a4d", Dialect::Classic),
            ("2.0.0", Dialect::Meta),
            ("mcrouter", Dialect::Classic),
            ("", Dialect::Classic),
        ] {
            assert_eq!(Dialect::of_version(version), dialect, "{version}");
        }
    }
}
