//! One operation on one key: its request in either dialect, and the meaning of its replies.

mod classic;
mod meta;

pub(super) use meta::decimal;

use super::{
    Dialect, Exchange, Input,
    reply::{Marks, Parsed, Reply, out_of_step, parse},
};
use crate::{
    Error, ErrorKind, Result,
    key::{Form, Keys, shown},
};

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// In any case.
    Set,
    /// Where there is none.
    Add,
    /// Where there is one.
    Replace,
    /// Behind the one that is there.
    Append,
    /// Before the one that is there.
    Prepend,
}

/// What is done.
#[derive(Debug, Clone, Copy)]
pub enum Op<'a> {
    /// Reads a value; with the number for [`Op::Store`]'s `cas`.
    Get { cas: bool },
    /// Reads a value and sets how long it is kept.
    GetAndTouch { expiry: i64 },
    /// Reads a value; the first who finds none, or one that goes in `recache` seconds, wins the
    /// task of making it anew, for `lease` seconds.
    Fetch { lease: u32, recache: u32 },
    /// Stores a value, where `cas` is given only if it is still the one with that number.
    Store { how: How, value: &'a [u8], flags: u32, expiry: i64, cas: Option<u64> },
    /// Counts up or down; where there is none, begins with the `initial` number and expiry.
    Count { up: bool, by: u64, initial: Option<(u64, i64)> },
    /// Sets how long a value is kept.
    Touch { expiry: i64 },
    /// Deletes a value, where `cas` is given only if it is still the one with that number. With
    /// `stale`, it is only marked as out of date, and goes after so many seconds.
    Delete { cas: Option<u64>, stale: Option<u32> },
    /// Asks what is known of an item.
    Debug,
}

/// An operation on a key.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The key, as the caller has it.
    pub key: &'a [u8],
    /// What is done.
    pub op: Op<'a>,
}

/// How calls are said: in which dialect, with which keys, values of which size at most.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// The server's dialect.
    pub dialect: Dialect,
    /// How keys are sent.
    pub keys: &'a Keys,
    /// The longest value that is taken, in bytes.
    pub max_value: usize,
}

/// A value, where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What the server says besides.
    pub marks: Marks,
}

/// What has become of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// A value.
    Found(Found),
    /// Done.
    Done,
    /// There is no such key.
    Miss,
    /// The condition does not hold: there is one (`add`), there is none (`replace`, `append`).
    NotStored,
    /// It has changed.
    Exists,
    /// What was counted to.
    Number(u64),
    /// A line of text.
    Text(String),
}

impl Call<'_> {
    /// Whether doing it twice is as good as doing it once.
    pub fn repeatable(&self) -> bool {
        match self.op {
            Op::Store { how, cas, .. } => how == How::Set && cas.is_none(),
            Op::Count { .. } | Op::Fetch { .. } => false,
            Op::Delete { cas, .. } => cas.is_none(),
            Op::Get { .. } | Op::GetAndTouch { .. } | Op::Touch { .. } | Op::Debug => true,
        }
    }

    /// Why it cannot be said in a dialect, if it cannot.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported), to be told as the call's answer.
    pub fn possible(&self, form: Form, dialect: Dialect) -> Result<()> {
        if dialect == Dialect::Meta {
            return Ok(());
        }
        let cannot = |what: &str| {
            Err(Error::unsupported(format!(
                "key {}: {what} needs memcached 1.6.10 or later, and this server is older",
                shown(self.key)
            )))
        };
        match self.op {
            _ if form == Form::Coded => cannot("a key with spaces or control characters"),
            Op::Fetch { .. } => cannot("letting one client only renew a value"),
            Op::Count { initial: Some(_), .. } => cannot("a counter with an initial value"),
            Op::Delete { cas, stale } if cas.is_some() || stale.is_some() => {
                cannot("a conditional delete")
            }
            Op::GetAndTouch { .. } => Ok(()),
            _ => Ok(()),
        }
    }

    /// Appends it as it is said.
    #[inline]
    pub fn write(&self, form: Form, sent: &Sent<'_>, out: &mut Vec<u8>) {
        match sent.dialect {
            Dialect::Meta => meta::write(self, form, sent.keys, out, b""),
            Dialect::Classic => classic::write(self, form, sent.keys, out),
        }
    }

    /// The same, to be answered only if it fails, where the dialect can say so. Says whether
    /// that is so.
    #[inline]
    pub fn write_quietly(&self, form: Form, sent: &Sent<'_>, out: &mut Vec<u8>) -> bool {
        match sent.dialect {
            Dialect::Meta => meta::write(self, form, sent.keys, out, b" q"),
            Dialect::Classic => classic::write(self, form, sent.keys, out),
        }
        sent.dialect == Dialect::Meta
    }

    /// Reads its answer, if that is there: what the server did or says against it.
    ///
    /// # Errors
    /// Where the stream is in doubt.
    #[inline]
    pub fn read(&self, sent: &Sent<'_>, input: &mut Input) -> Result<Option<Result<Answer>>> {
        let bytes = input.unread();
        let (reply, used) = match parse(bytes, sent.max_value)? {
            Parsed::Whole(reply, used) => (reply, used),
            Parsed::Short(wanted) => {
                input.want(wanted);
                return Ok(None);
            }
        };
        // A classic value has an END behind it.
        let mut used = used;
        if matches!(reply, Reply::Item(..)) {
            match parse(&bytes[used..], sent.max_value)? {
                Parsed::Whole(Reply::End, end) => used += end,
                Parsed::Whole(..) => return Err(out_of_step(b"two values")),
                Parsed::Short(_) => return Ok(None),
            }
        }
        let answer = self.meaning(reply, sent)?;
        input.read(used);
        Ok(Some(answer))
    }

    /// What a reply means as an answer to this.
    #[inline]
    fn meaning(&self, reply: Reply<'_>, sent: &Sent<'_>) -> Result<Result<Answer>> {
        let found = |value: &[u8], marks| Answer::Found(Found { bytes: value.to_vec(), marks });
        let answer = match (reply, self.op) {
            (
                Reply::Value(value, marks),
                Op::Get { .. } | Op::GetAndTouch { .. } | Op::Fetch { .. },
            ) => found(value, marks),
            (Reply::Value(value, _), Op::Count { .. }) => {
                let number = super::reply::number(value).ok_or_else(|| out_of_step(value))?;
                Answer::Number(number)
            }
            (Reply::Number(number), Op::Count { .. }) => Answer::Number(number),
            (Reply::Item(key, value, marks), Op::Get { .. } | Op::GetAndTouch { .. }) => {
                self.is_of(key, sent)?;
                found(value, marks)
            }
            (Reply::End, Op::Get { .. } | Op::GetAndTouch { .. }) => Answer::Miss,
            (Reply::Done(_), Op::Store { .. } | Op::Touch { .. } | Op::Delete { .. }) => {
                Answer::Done
            }
            (Reply::Miss(_), _) => Answer::Miss,
            (Reply::NotStored(_), Op::Store { .. } | Op::Count { .. }) => Answer::NotStored,
            (Reply::Exists(_), Op::Store { .. } | Op::Delete { .. }) => Answer::Exists,
            (Reply::Debug(text), Op::Debug) => {
                Answer::Text(String::from_utf8_lossy(text).into_owned())
            }
            (Reply::Error(line), _) => return Ok(Err(said(line, Some(self.key))?)),
            (other, _) => return Err(out_of_step(format!("{other:?}").as_bytes())),
        };
        Ok(Ok(answer))
    }

    /// Holds the key of a classic reply against this one's.
    fn is_of(&self, key: &[u8], sent: &Sent<'_>) -> Result<()> {
        let mut wire = Vec::with_capacity(key.len());
        sent.keys.append(sent.keys.form(self.key)?, self.key, &mut wire);
        if wire == key { Ok(()) } else { Err(out_of_step(key)) }
    }
}

/// What a server says against a call, as an error of the call.
///
/// # Errors
/// Where that says that it has not understood: what it takes for commands then is in doubt.
#[cold]
pub(super) fn said(line: &[u8], key: Option<&[u8]>) -> Result<Error> {
    let text = String::from_utf8_lossy(line);
    let of = key.map(|key| format!("key {}: ", shown(key))).unwrap_or_default();
    let kind = if text.contains("too large") {
        ErrorKind::TooLarge
    } else if text.contains("non-numeric") {
        ErrorKind::Invalid
    } else if text.starts_with("SERVER_ERROR") {
        ErrorKind::Io
    } else {
        return Err(Error::malformed(format!("{of}the server rejected the command: {text}")));
    };
    let hint = match kind {
        ErrorKind::TooLarge => " (memcached -I sets the largest item size)",
        _ => "",
    };
    Ok(Error::new(kind, format!("{of}the server says: {text}{hint}")))
}

/// One call, said and answered.
pub struct One<'a> {
    call: &'a Call<'a>,
    form: Form,
    sent: Sent<'a>,
    written: bool,
    /// What has become of it.
    pub answer: Option<Result<Answer>>,
}

impl<'a> One<'a> {
    /// A call that is possible in the dialect.
    pub fn new(call: &'a Call<'a>, form: Form, sent: Sent<'a>) -> One<'a> {
        One { call, form, sent, written: false, answer: None }
    }
}

impl Exchange for One<'_> {
    #[inline]
    fn write(&mut self, out: &mut Vec<u8>) {
        self.call.write(self.form, &self.sent, out);
        self.written = true;
    }

    #[inline]
    fn written(&self) -> bool {
        self.written
    }

    #[inline]
    fn read(&mut self, input: &mut Input) -> Result<bool> {
        self.answer = self.call.read(&self.sent, input)?;
        match self.answer.is_some() && !input.is_empty() {
            true => Err(out_of_step(input.unread())),
            false => Ok(self.answer.is_some()),
        }
    }

    fn again(&mut self) -> bool {
        self.written = false;
        self.answer.is_none() && self.call.repeatable()
    }
}
