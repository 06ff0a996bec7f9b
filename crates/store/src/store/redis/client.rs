//! Commands over a connection: packed by the client, their answers found here and read by the client.

use std::time::Duration;

use futures_util::FutureExt;
use redis::{
    Cmd, ErrorKind as Redis, Pipeline, RedisError, RedisFuture, RedisResult, Value,
    aio::ConnectionLike,
};

use super::{MAX_RECORD, pool::error};
use crate::{
    Error, Result,
    store::{
        kv::out_of_step,
        net::{Connection, too_long},
    },
};

/// A connection of ours as one of the client, for all it makes of commands and answers.
pub(super) struct Commands<'a> {
    pub connection: &'a mut Connection,
    pub what: &'a str,
    pub limit: Duration,
    /// How many bytes an answer may have.
    pub most: usize,
    /// What became of the connection, where it broke: the client knows no such error.
    pub broken: Option<Error>,
}

impl Commands<'_> {
    /// The answers to so many commands, which are written already.
    async fn answers(&mut self, count: usize) -> RedisResult<Vec<Value>> {
        if count == 1 {
            return Ok(vec![self.answer().await?]);
        }
        let mut ends = Ends::new(count);
        let asked = self
            .connection
            .ask(self.what, self.limit, self.most, |bytes| ends.find(bytes, self.what))
            .await;
        let bytes = match asked {
            Ok(bytes) => bytes,
            Err(e) => {
                self.broken = Some(e);
                return Err(RedisError::from((Redis::Io, "the connection broke")));
            }
        };
        let mut begin = 0;
        let answer = |end| {
            let answer = &bytes[begin..end];
            begin = end;
            value(answer)
        };
        ends.ends.into_iter().map(answer).collect()
    }

    /// The answer to one command, which is written already.
    async fn answer(&mut self) -> RedisResult<Value> {
        let mut ends = Ends::new(1);
        let asked = self
            .connection
            .ask(self.what, self.limit, self.most, |bytes| ends.find(bytes, self.what))
            .await;
        match asked {
            Ok(answer) => value(answer),
            Err(e) => {
                self.broken = Some(e);
                Err(RedisError::from((Redis::Io, "the connection broke")))
            }
        }
    }

    /// What was asked, or what is the trouble with it.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) fn settle<T>(self, done: RedisResult<T>) -> Result<T> {
        match (self.broken, done) {
            (Some(e), _) => Err(e),
            (None, done) => done.map_err(error),
        }
    }
}

impl ConnectionLike for Commands<'_> {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        async move {
            command.write_packed_command(self.connection.out());
            self.answer().await
        }
        .boxed()
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        async move {
            *self.connection.out() = commands.get_packed_pipeline();
            let mut answers = self.answers(offset + count).await?;
            let asked_for = answers.split_off(offset);
            // In a transaction it is here that it is said what was wrong with a command.
            answers.into_iter().try_for_each(|answer| answer.extract_error().map(drop))?;
            Ok(asked_for)
        }
        .boxed()
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// The value that an answer is.
fn value(answer: &[u8]) -> RedisResult<Value> {
    match read(answer, DEEP) {
        Some((value, _)) => Ok(value),
        None => redis::parse_redis_value(answer),
    }
}

/// How many bytes an answer may have: a value as large as there are any, and what is around it. A value
/// counts for what it takes when it is read, so that a list of many short ones is no way around that.
pub(super) const LONGEST: usize = MAX_RECORD as usize + (16 << 20);
/// What a value takes beside its bytes.
const VALUE: usize = size_of::<Value>();
/// The bytes of the shortest value there is in a list.
const SHORTEST: usize = 3;
/// How deep lists are read here.
const DEEP: usize = 4;

/// The first value of an answer that is whole, and what is behind it; none where it is for the
/// client to read: errors, and what is rare. (The client's reader begins with 8 KiB of zeros.)
fn read(bytes: &[u8], deep: usize) -> Option<(Value, &[u8])> {
    let (line, rest) = bytes.split_at(memchr::memchr(b'\n', bytes)? + 1);
    let [kind, text @ .., b'\r', b'\n'] = line else { return None };
    if line == b"+OK\r\n" {
        return Some((Value::Okay, rest));
    }
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    match (kind, usize::try_from(number)) {
        (b':', _) => Some((Value::Int(number), rest)),
        (b'$' | b'*', Err(_)) => (number == -1).then_some((Value::Nil, rest)),
        (b'$', Ok(len)) => {
            let (value, rest) = rest.split_at_checked(len)?;
            Some((Value::BulkString(value.to_vec()), rest.get(2..)?))
        }
        (b'*', Ok(count)) if deep > 0 => {
            let (mut values, mut left) =
                (Vec::with_capacity(count.min(rest.len() / SHORTEST)), rest);
            for _ in 0..count {
                let (value, rest) = read(left, deep - 1)?;
                values.push(value);
                left = rest;
            }
            Some((Value::Array(values), left))
        }
        _ => None,
    }
}

/// Finds where answers end (<https://redis.io/docs/latest/develop/reference/protocol-spec/>, in the
/// version that is spoken where none was agreed on).
struct Ends {
    /// Of the answers that are there; none are kept of one that is alone.
    ends: Vec<usize>,
    found: usize,
    count: usize,
    /// What comes before this was looked at.
    at: usize,
    /// How many values there are to come of the answer that is being looked at.
    left: usize,
    /// How many values there were.
    values: usize,
}

impl Ends {
    fn new(count: usize) -> Ends {
        Ends { ends: Vec::new(), found: 0, count, at: 0, left: 1, values: 0 }
    }

    /// The end of the last answer, if it is there.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) for what is no answer.
    fn find(&mut self, bytes: &[u8], what: &str) -> Result<Option<usize>> {
        /// The longest line there is.
        const LINE: usize = 64 << 10;
        while self.found < self.count {
            let rest = &bytes[self.at..];
            let none = || Err(out_of_step(what, rest));
            let line = match memchr::memchr(b'\n', rest) {
                Some(end) => &rest[..=end],
                None if rest.len() > LINE => return none(),
                None => return Ok(None),
            };
            let [kind, text @ .., b'\r', b'\n'] = line else { return none() };
            let mut len = line.len();
            match kind {
                b'+' | b'-' | b':' => {}
                b'$' | b'*' => {
                    let number = std::str::from_utf8(text).ok().and_then(|n| n.parse::<i64>().ok());
                    match (kind, number, number.map(usize::try_from)) {
                        // There is nothing.
                        (_, Some(-1), _) => {}
                        (_, None, _) | (_, _, None | Some(Err(_))) => return none(),
                        // Before anything is kept for it: the longest value there is.
                        (b'$', Some(bytes), _) if bytes.unsigned_abs() > MAX_RECORD => {
                            return Err(Error::malformed(format!(
                                "the answer to {what} announces {bytes} bytes; the limit of Redis \
                                 is {MAX_RECORD}"
                            )));
                        }
                        (b'$', _, Some(Ok(bytes))) => len = len.saturating_add(bytes + 2),
                        (_, _, Some(Ok(values))) => self.left = self.left.saturating_add(values),
                    }
                    if len > rest.len() {
                        return Ok(None);
                    }
                }
                _ => return none(),
            }
            self.at += len;
            self.left -= 1;
            self.values += 1;
            if self.values * VALUE + self.at > LONGEST {
                return Err(too_long(what, LONGEST));
            }
            if self.left == 0 {
                self.found += 1;
                if self.count > 1 {
                    self.ends.push(self.at);
                }
                self.left = 1;
            }
        }
        Ok(Some(self.at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        ErrorKind,
        store::nonsense::{near, shown},
    };

    #[test]
    fn answers_are_found_wherever_they_are_cut() {
        let answers: [&[u8]; 8] = [
            b"+OK\r\n",
            b"-ERR no\r\n",
            b":-12\r\n",
            b"$-1\r\n",
            b"$5\r\n\r\n$1\r\r\n",
            b"*0\r\n",
            b"*-1\r\n",
            b"*3\r\n$1\r\na\r\n*2\r\n:1\r\n$0\r\n\r\n$-1\r\n",
        ];
        let all = answers.concat();
        let mut ends = Ends::new(answers.len());
        for cut in 0..all.len() {
            assert_eq!(ends.find(&all[..cut], "GET").unwrap(), None, "{cut}");
        }
        assert_eq!(ends.find(&all, "GET").unwrap(), Some(all.len()));
        let mut sum = 0;
        let wanted: Vec<_> = answers
            .iter()
            .map(|answer| {
                sum += answer.len();
                sum
            })
            .collect();
        assert_eq!(ends.ends, wanted);
    }

    #[test]
    fn answers_are_read_as_the_client_reads_them() {
        for answer in [
            "+OK\r\n",
            ":-12\r\n",
            "$-1\r\n",
            "$0\r\n\r\n",
            "$5\r\n\r\n$1\r\r\n",
            "*-1\r\n",
            "*3\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n$-1\r\n",
        ] {
            let (value, rest) = read(answer.as_bytes(), DEEP).unwrap();
            assert_eq!(value, redis::parse_redis_value(answer.as_bytes()).unwrap());
            assert_eq!(rest, b"");
        }
        for others in ["-ERR no\r\n", "+PONG\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"] {
            assert!(read(others.as_bytes(), DEEP).is_none());
        }
    }

    #[test]
    fn a_list_of_many_values_is_an_answer_and_one_without_end_is_none() {
        let list = [&b"*300000\r\n"[..], &b":1\r\n".repeat(300_000)].concat();
        assert_eq!(Ends::new(1).find(&list, "MGET").unwrap(), Some(list.len()));
        let begin = b"*9223372036854775807\r\n";
        let values = (LONGEST / VALUE) + 1;
        let list = [&begin[..], &b":1\r\n".repeat(values)].concat();
        let error = Ends::new(1).find(&list, "MGET").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
    }

    #[test]
    fn what_is_no_answer_is_malformed() {
        let long = "x".repeat(70 << 10);
        let lengths =
            ["$-2\r\n", "$-99\r\n", "*-2\r\n", "$536870913\r\n", "$9223372036854775807\r\n"];
        let others = ["HTTP/1.1 400\r\n", "$x\r\n", "*\r\n", "+OK\n", "\n", &long];
        for wrong in lengths.into_iter().chain(others) {
            let error = Ends::new(1).find(wrong.as_bytes(), "GET").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
        }
        // What it says of lengths costs nothing.
        for large in ["$536870912\r\nabc", "*9223372036854775807\r\n:1\r\n"] {
            assert_eq!(Ends::new(1).find(large.as_bytes(), "GET").unwrap(), None);
        }
    }

    fn answers() -> Vec<Vec<u8>> {
        let answers: [&[u8]; 3] = [
            b"+OK\r\n:-12\r\n-ERR no\r\n",
            b"$-1\r\n$5\r\n\r\n$1\r\r\n*0\r\n",
            b"*3\r\n$1\r\na\r\n*2\r\n:1\r\n$0\r\n\r\n$-1\r\n",
        ];
        answers.map(<[u8]>::to_vec).to_vec()
    }

    proptest! {
        #[test]
        fn nonsense_is_refused_or_read(bytes in near(answers()), cut: prop::sample::Index) {
            for count in [1, 3] {
                let mut ends = Ends::new(count);
                let find = |bytes: &[u8]| ends.find(bytes, "GET");
                shown(&bytes, cut, find, |all| drop(value(all)))?;
            }
        }
    }
}
