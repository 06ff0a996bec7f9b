//! Limits the length of each message that the client's crate reads from the server.
//!
//! The crate makes room for a message when it has read its length, whatever that is, so a length is looked at
//! before the crate sees it. The messages are those of
//! <https://www.postgresql.org/docs/current/protocol-message-formats.html>: a letter, four bytes of length.

use std::io;

use super::client::LONGEST;
use crate::store::net::SAID;

/// What the error says.
pub(super) const TOO_LONG: &str = "the server's answer is too long";

/// Looks at what a server says.
pub(super) struct Watch {
    /// Bytes before the first message: the answer to whether it has TLS.
    skip: usize,
    head: [u8; 5],
    /// How much of the next message's head is there.
    known: usize,
    /// How much of the message is to come.
    rest: usize,
    /// It has said that it is ready for questions.
    ready: bool,
    /// How many bytes it may still say, if that is known.
    left: Option<usize>,
}

impl Watch {
    /// Of a stream on which it is asked first for TLS, or not; over all it may say so much.
    pub(super) fn new(tls: bool, most: Option<usize>) -> Watch {
        let skip = usize::from(tls);
        Watch { skip, head: [0; 5], known: 0, rest: 0, ready: false, left: most }
    }

    /// Shown what comes, piece by piece.
    pub(super) fn sees(mut self) -> impl FnMut(&[u8]) -> io::Result<()> + Send + 'static {
        move |bytes| self.see(bytes)
    }

    fn see(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(bytes.len()).ok_or_else(too_long)?;
        }
        while let Some((first, after)) = bytes.split_first() {
            if self.skip > 0 {
                (self.skip, bytes) = (self.skip - 1, after);
            } else if self.rest > 0 {
                let n = self.rest.min(bytes.len());
                (self.rest, bytes) = (self.rest - n, &bytes[n..]);
            } else {
                self.head[self.known] = *first;
                (self.known, bytes) = (self.known + 1, after);
                if self.known == self.head.len() {
                    self.message()?;
                }
            }
        }
        Ok(())
    }

    /// The head of a message is whole.
    fn message(&mut self) -> io::Result<()> {
        let [tag, length @ ..] = self.head;
        // One that is too short is for the crate to refuse.
        let length = u32::from_be_bytes(length).saturating_sub(4) as usize;
        if length > if self.ready { LONGEST } else { SAID } {
            return Err(too_long());
        }
        self.ready |= tag == b'Z';
        (self.known, self.rest) = (0, length);
        Ok(())
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, TOO_LONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of these bytes, shown in pieces of this length.
    fn shown(mut watch: Watch, bytes: &[u8], piece: usize) -> bool {
        bytes.chunks(piece).try_for_each(|bytes| watch.see(bytes)).is_ok()
    }

    fn message(tag: u8, length: u32) -> Vec<u8> {
        [&[tag][..], &length.to_be_bytes()].concat()
    }

    #[test]
    fn lengths_are_seen_wherever_they_are_cut() {
        let login = [message(b'R', 8), vec![0; 4], message(b'Z', 5), vec![b'I']].concat();
        let large = message(b'D', LONGEST as u32);
        for (says, ok) in [
            (login.clone(), true),
            ([&login[..], &large].concat(), true),
            ([&login[..], &message(b'D', LONGEST as u32 + 5)].concat(), false),
            (large, false),
            (message(b'R', SAID as u32 + 5), false),
            (message(b'E', u32::MAX), false),
            (message(b'E', 0), true),
        ] {
            for piece in 1..=says.len() {
                assert_eq!(shown(Watch::new(false, None), &says, piece), ok, "{says:?} {piece}");
                let with_tls = [b"S", &says[..]].concat();
                assert_eq!(shown(Watch::new(true, None), &with_tls, piece), ok, "{says:?}");
            }
        }
    }

    #[test]
    fn all_of_it_together_may_have_so_much() {
        let says = [message(b'N', 104), vec![b'x'; 100]].concat();
        assert!(shown(Watch::new(false, Some(105)), &says, 7));
        assert!(!shown(Watch::new(false, Some(104)), &says, 7));
    }
}
