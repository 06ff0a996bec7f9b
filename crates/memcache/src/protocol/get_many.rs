//! Many values at once.
//!
//! Keys that are sent as they are go in lines of the classic `get`, which a server answers with
//! the least work, and with the keys: so a value cannot be taken for another's. Keys in Base64 go
//! in quiet `mg` commands, which name the request in the answer, with an `mn` behind them.

use super::{
    CHUNK, Exchange, Input, Sent,
    call::{decimal, said},
    reply::{Marks, Parsed, Reply, expected, out_of_step, parse, same},
};
use crate::{Result, key::Form};

/// About how long a line of `get` may be, in bytes: a server's buffer has 16 KiB.
const LINE: usize = 8 << 10;

/// Keys by number, and what is done with the values found.
pub struct GetMany<'a, K, F> {
    sent: Sent<'a>,
    /// The numbers of the keys, and how they are sent: those in Base64 last.
    numbers: &'a [(usize, Form)],
    key: K,
    each: F,
    /// How many keys are written.
    next: usize,
    /// Up to where each line asks that is written and not answered to its end.
    lines: std::collections::VecDeque<usize>,
    /// The first key that a value may still come for.
    at: usize,
    /// Whether anything has come.
    begun: bool,
}

impl<'a, 'k, K: Fn(usize) -> &'k [u8], F: FnMut(usize, &[u8], Marks)> GetMany<'a, K, F> {
    /// The keys of these numbers; those in Base64 must be the last.
    pub fn new(sent: Sent<'a>, numbers: &'a [(usize, Form)], key: K, each: F) -> Self {
        debug_assert!(numbers.is_sorted_by_key(|(_, form)| *form == Form::Coded));
        let lines = std::collections::VecDeque::new();
        GetMany { sent, numbers, key, each, next: 0, lines, at: 0, begun: false }
    }

    /// Those whose answer is not known.
    pub fn unanswered(&self) -> &'a [(usize, Form)] {
        &self.numbers[self.at..]
    }

    fn write_line(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"get");
        while let Some(&(number, form)) = self.numbers.get(self.next)
            && form != Form::Coded
            && out.len() - start < LINE
        {
            out.push(b' ');
            self.sent.keys.append(form, (self.key)(number), out);
            self.next += 1;
        }
        out.extend_from_slice(b"\r\n");
    }

    fn write_coded(&mut self, out: &mut Vec<u8>) {
        while let Some(&(number, form)) = self.numbers.get(self.next)
            && out.len() < CHUNK
        {
            out.extend_from_slice(b"mg ");
            self.sent.keys.append(form, (self.key)(number), out);
            out.extend_from_slice(b" b f v q O");
            decimal(self.next as u64, out);
            out.extend_from_slice(b"\r\n");
            self.next += 1;
        }
        out.extend_from_slice(b"mn\r\n");
    }

    /// Finds the key of a classic reply: they come in the order they were asked in.
    #[inline]
    fn place(&self, key: &[u8], end: usize) -> Option<usize> {
        let namespace = self.sent.keys.namespace();
        let mut hashed = Vec::new();
        (self.at..end).find(|&at| {
            let (number, form) = self.numbers[at];
            if form == Form::Plain {
                let own = (self.key)(number);
                return key.len() == namespace.len() + own.len()
                    && same(&key[..namespace.len()], namespace)
                    && same(&key[namespace.len()..], own);
            }
            hashed.clear();
            self.sent.keys.append(form, (self.key)(number), &mut hashed);
            hashed == key
        })
    }

    /// Takes the value of the very next key, if that is what comes: nearly always. Answers how many
    /// bytes it had.
    #[inline]
    fn take_next(&mut self, bytes: &[u8], end: usize) -> Option<usize> {
        let &(number, form) = self.numbers[..end].get(self.at)?;
        if form != Form::Plain {
            return None;
        }
        let key = (self.sent.keys.namespace(), (self.key)(number));
        let (value, marks, used) = expected(bytes, key, self.sent.max_value)?;
        (self.each)(number, value, marks);
        self.at += 1;
        Some(used)
    }

    /// Takes one reply; what it says must be about a key of the line at hand.
    #[inline]
    fn take(&mut self, reply: Reply<'_>, end: usize) -> Result<()> {
        let coded = self.numbers.get(end - 1).is_some_and(|(_, form)| *form == Form::Coded);
        match reply {
            Reply::Item(key, value, marks) if !coded => {
                let at = self.place(key, end).ok_or_else(|| out_of_step(key))?;
                (self.each)(self.numbers[at].0, value, marks);
                self.at = at + 1;
            }
            Reply::Value(value, marks) if coded => {
                let at = marks.opaque.map(|at| at as usize);
                let at = at.filter(|at| (self.at..end).contains(at));
                let at = at.ok_or_else(|| out_of_step(b"VA of another request"))?;
                (self.each)(self.numbers[at].0, value, marks);
                self.at = at + 1;
            }
            Reply::End if !coded => self.end(end),
            Reply::Barrier if coded => self.end(end),
            // How much of the line was answered is not known then.
            Reply::Error(line) => return Err(said(line, None)?),
            other => return Err(out_of_step(format!("{other:?}").as_bytes())),
        }
        Ok(())
    }

    fn end(&mut self, end: usize) {
        self.at = end;
        self.lines.pop_front();
    }
}

impl<'k, K: Fn(usize) -> &'k [u8], F: FnMut(usize, &[u8], Marks)> Exchange for GetMany<'_, K, F> {
    fn write(&mut self, out: &mut Vec<u8>) {
        while out.len() < CHUNK
            && let Some(&(_, form)) = self.numbers.get(self.next)
        {
            match form {
                Form::Coded => self.write_coded(out),
                Form::Plain | Form::Hashed => self.write_line(out),
            }
            self.lines.push_back(self.next);
        }
    }

    fn written(&self) -> bool {
        self.next == self.numbers.len()
    }

    fn read(&mut self, input: &mut Input) -> Result<bool> {
        while let Some(&end) = self.lines.front() {
            if let Some(used) = self.take_next(input.unread(), end) {
                self.begun = true;
                input.read(used);
                continue;
            }
            // The bytes are borrowed while the reply is taken: how many were used is said behind.
            let used = match parse(input.unread(), self.sent.max_value)? {
                Parsed::Whole(reply, used) => {
                    self.take(reply, end)?;
                    used
                }
                Parsed::Short(wanted) => {
                    input.want(wanted);
                    return Ok(false);
                }
            };
            self.begun = true;
            input.read(used);
        }
        match input.is_empty() {
            true => Ok(self.written()),
            false => Err(out_of_step(input.unread())),
        }
    }

    fn again(&mut self) -> bool {
        self.next = 0;
        self.lines.clear();
        !self.begun
    }
}
