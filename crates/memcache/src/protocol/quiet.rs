//! Quiet calls, which are answered only if they fail, with a barrier behind them.
//!
//! A quiet meta command (`q`) that succeeds is not answered. The answer to one that fails may not name its key: a value
//! that is too large is refused without it. So a large value is sent as an ordinary call, with a barrier before it, and
//! its answer is unambiguous. Servers without meta commands answer every call, and their answers are read at the
//! barrier.

use std::collections::VecDeque;

use super::{
    Call, Exchange, Input, Op, Sent,
    call::said,
    reply::{Parsed, Reply, out_of_step, parse},
};
use crate::{
    Error, ErrorKind, Result,
    key::{Form, shown},
};

/// Values from this size on are sent as ordinary calls.
const LARGE: usize = 32 << 10;

/// A call that was not done.
#[derive(Debug)]
pub struct Loss {
    /// The key; none where the server does not say which of the calls since the last barrier it was.
    pub key: Option<Vec<u8>>,
    /// Why.
    pub error: Error,
}

/// What is awaited, in order.
#[derive(Debug)]
enum Await {
    /// `MN`.
    Barrier,
    /// The answer to a call on this key.
    Answer(Vec<u8>),
}

/// Calls that were written and are not known to be done.
#[derive(Debug, Default)]
pub struct Quiet {
    /// What is to be sent.
    pub out: Vec<u8>,
    awaited: VecDeque<Await>,
    /// Quiet calls since the last barrier that was written.
    unbarred: usize,
    losses: Vec<Loss>,
}

impl Quiet {
    /// Adds a call.
    #[inline]
    pub fn add(&mut self, call: &Call<'_>, form: Form, sent: &Sent<'_>) {
        let large = matches!(call.op, Op::Store { value, .. } if value.len() >= LARGE);
        if large && sent.dialect == super::Dialect::Meta {
            self.bar();
            call.write(form, sent, &mut self.out);
            self.awaited.push_back(Await::Answer(call.key.to_vec()));
        } else if call.write_quietly(form, sent, &mut self.out) {
            self.unbarred += 1;
        } else {
            self.awaited.push_back(Await::Answer(call.key.to_vec()));
        }
    }

    fn bar(&mut self) {
        if self.unbarred > 0 {
            self.out.extend_from_slice(b"mn\r\n");
            self.awaited.push_back(Await::Barrier);
            self.unbarred = 0;
        }
    }

    /// Adds the end: once what is awaited has come, every call is done or among the losses.
    pub fn finish(&mut self) {
        self.bar();
    }

    /// Whether nothing is awaited any more.
    pub fn settled(&self) -> bool {
        self.awaited.is_empty() && self.unbarred == 0 && self.out.is_empty()
    }

    /// What was not done, as far as it is known; they are told once.
    pub fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }

    /// The stream is in doubt or broken: nobody knows what was done.
    pub fn fail(&mut self, error: &dyn Fn() -> Error) {
        let unknown = self.unbarred > 0 || !self.out.is_empty();
        for awaited in self.awaited.drain(..) {
            if let Await::Answer(key) = awaited {
                self.losses.push(Loss { key: Some(key), error: error() });
            }
        }
        if unknown || self.losses.is_empty() {
            self.losses.push(Loss { key: None, error: error() });
        }
        (self.unbarred, self.out) = (0, Vec::new());
    }

    fn lose(&mut self, key: Option<Vec<u8>>, error: Error) {
        // What a caller does not ask for in time must not fill the memory.
        const MOST: usize = 10_000;
        if self.losses.len() < MOST {
            self.losses.push(Loss { key, error });
        }
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// Where the stream is in doubt.
    pub fn read(&mut self, input: &mut Input) -> Result<bool> {
        loop {
            let bytes = input.unread();
            if bytes.is_empty() {
                return Ok(self.awaited.is_empty());
            }
            let (reply, used) = match parse(bytes, 0)? {
                Parsed::Whole(reply, used) => (reply, used),
                Parsed::Short(_) => return Ok(false),
            };
            let loss = match (self.awaited.front(), &reply) {
                (Some(Await::Answer(_)), _) => {
                    let Some(Await::Answer(key)) = self.awaited.pop_front() else { unreachable!() };
                    meaning(&reply, Some(&key))?.map(|error| (Some(key), error))
                }
                (Some(Await::Barrier), Reply::Barrier) => {
                    self.awaited.pop_front();
                    None
                }
                // One of the quiet ones before the barrier.
                (Some(Await::Barrier), _) => meaning(&reply, None)?.map(|error| (None, error)),
                (None, _) if self.unbarred > 0 => meaning(&reply, None)?.map(|error| (None, error)),
                (None, _) => return Err(out_of_step(bytes)),
            };
            input.read(used);
            if let Some((key, error)) = loss {
                self.lose(key, error);
            }
        }
    }
}

/// The error that a reply tells of; none where the call is done. A key that is not there is none
/// for a `delete` or `touch`: servers do not tell of it when asked quietly.
fn meaning(reply: &Reply<'_>, key: Option<&[u8]>) -> Result<Option<Error>> {
    let of = || key.map_or("a call".into(), |key| format!("key {}", shown(key)));
    Ok(match reply {
        Reply::Done(_) | Reply::Miss(_) | Reply::Number(_) => None,
        Reply::NotStored(_) => {
            Some(Error::new(ErrorKind::Conflict, format!("{}: not stored", of())))
        }
        Reply::Exists(_) => Some(Error::new(
            ErrorKind::Conflict,
            format!("{}: changed by another client meanwhile", of()),
        )),
        Reply::Error(line) => Some(said(line, key)?),
        other => return Err(out_of_step(format!("{other:?}").as_bytes())),
    })
}

/// All that was added, sent and answered.
impl Exchange for Quiet {
    fn write(&mut self, out: &mut Vec<u8>) {
        std::mem::swap(out, &mut self.out);
    }

    fn written(&self) -> bool {
        self.out.is_empty()
    }

    fn read(&mut self, input: &mut Input) -> Result<bool> {
        Quiet::read(self, input)
    }

    fn again(&mut self) -> bool {
        false
    }
}
