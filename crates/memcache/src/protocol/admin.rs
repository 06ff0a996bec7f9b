//! Commands that are about no key: version, statistics, flushing, listings.

use super::{
    Exchange, Input,
    reply::{Parsed, Reply, parse},
};
use crate::Result;

/// A command of a whole line, and what is done with each line of its answer: `Some(true)` after
/// the last one.
pub struct Admin<F> {
    command: Vec<u8>,
    each: F,
    written: bool,
    patient: bool,
    begun: bool,
}

impl<F: FnMut(Reply<'_>) -> Result<bool>> Admin<F> {
    /// A command. `each` is given every reply, and says whether it was the last; its errors are
    /// those of a stream in doubt.
    pub fn new(command: impl Into<Vec<u8>>, each: F) -> Admin<F> {
        let mut command = command.into();
        command.extend_from_slice(b"\r\n");
        Admin { command, each, written: false, patient: false, begun: false }
    }

    /// The same, for an answer that takes as long as it takes, as long as something comes.
    pub fn patient(self) -> Admin<F> {
        Admin { patient: true, ..self }
    }
}

impl<F: FnMut(Reply<'_>) -> Result<bool>> Exchange for Admin<F> {
    fn write(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.command);
        self.written = true;
    }

    fn written(&self) -> bool {
        self.written
    }

    fn read(&mut self, input: &mut Input) -> Result<bool> {
        loop {
            let (done, used) = match parse(input.unread(), 0)? {
                Parsed::Whole(reply, used) => ((self.each)(reply)?, used),
                Parsed::Short(_) => return Ok(false),
            };
            self.begun = true;
            input.read(used);
            if done {
                return Ok(true);
            }
        }
    }

    fn again(&mut self) -> bool {
        self.written = false;
        !self.begun
    }

    fn patient(&self) -> bool {
        self.patient
    }
}
