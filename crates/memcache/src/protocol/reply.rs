//! Replies, of the meta commands and of the classic ones: no word of one is a word of the other, so
//! one reader reads both.
//!
//! Source: doc/protocol.txt of memcached. Any bytes may come: a length is held against a limit before
//! anything is reserved for it, a line against [`LINE`].

use crate::{Error, ErrorKind, Result};

/// The longest line of a reply, in bytes: that of a statistic or of a listed key.
pub const LINE: usize = 8 << 10;

/// What has come.
#[derive(Debug)]
pub enum Parsed<'a> {
    /// A reply, and how many bytes it has.
    Whole(Reply<'a>, usize),
    /// Not enough yet: the reply has at least so many bytes; 0 where nothing is known of it.
    Short(usize),
}

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// `VA`: a value.
    Value(&'a [u8], Marks),
    /// `VALUE`: a value and its key, as the classic commands have it.
    Item(&'a [u8], &'a [u8], Marks),
    /// `HD`, `STORED`, `DELETED`, `TOUCHED`, `OK`: it is done.
    Done(Marks),
    /// `EN`, `NF`, `NOT_FOUND`: there is no such key.
    Miss(Marks),
    /// `NS`, `NOT_STORED`: the condition of the command does not hold.
    NotStored(Marks),
    /// `EX`, `EXISTS`: somebody else has changed it.
    Exists(Marks),
    /// `MN`: the end of what was asked quietly.
    Barrier,
    /// `END`: the end of a classic reply.
    End,
    /// A number: what `incr` and `decr` have counted to.
    Number(u64),
    /// `VERSION`.
    Version(&'a [u8]),
    /// `STAT` name and value.
    Stat(&'a [u8], &'a [u8]),
    /// `ME`: what is known about a key, after the key.
    Debug(&'a [u8]),
    /// `SERVER_ERROR`, `CLIENT_ERROR`, `ERROR`: it cannot, or does not understand. The whole line.
    Error(&'a [u8]),
    /// Any other line: a part of a listing.
    Line(&'a [u8]),
}

/// What a reply says besides: flags of the meta commands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// `f`: the number the value was stored with.
    pub flags: u32,
    /// `c`: the number that changes when the value does.
    pub cas: u64,
    /// `t`: seconds until it goes; -1 for never.
    pub ttl: Option<i64>,
    /// `O`: what the request was called.
    pub opaque: Option<u32>,
    /// `W`: whoever reads this is to make the value anew.
    pub won: bool,
    /// `Z`: somebody else is making it anew.
    pub taken: bool,
    /// `X`: it is out of date.
    pub stale: bool,
}

/// A decimal number, and nothing else.
#[inline]
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut sum = 0u64;
    for (at, byte) in text.iter().enumerate() {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        // Nineteen digits fit whatever they are.
        sum = match at {
            0..19 => sum * 10 + digit,
            _ => sum.checked_mul(10)?.checked_add(digit)?,
        };
    }
    Some(sum)
}

impl Marks {
    /// Reads what follows a status or a length: ` f3 c12 W`.
    #[inline]
    fn read(text: &[u8]) -> Option<Marks> {
        let mut marks = Marks::default();
        let mut rest = text;
        while let [b' ', after @ ..] = rest {
            let end = after.iter().position(|b| *b == b' ').unwrap_or(after.len());
            let (word, next) = after.split_at(end);
            rest = next;
            let [letter, value @ ..] = word else { continue };
            match letter {
                b'f' => marks.flags = u32::try_from(number(value)?).ok()?,
                b'c' => marks.cas = number(value)?,
                b'O' => marks.opaque = Some(u32::try_from(number(value)?).ok()?),
                b't' if value == b"-1" => marks.ttl = Some(-1),
                b't' => marks.ttl = Some(i64::try_from(number(value)?).ok()?),
                b'W' => marks.won = true,
                b'Z' => marks.taken = true,
                b'X' => marks.stale = true,
                // Flags that later versions may have.
                _ => {}
            }
        }
        rest.is_empty().then_some(marks)
    }
}

/// The error of a stream that is in doubt: what follows cannot be trusted.
#[cold]
pub fn out_of_step(line: &[u8]) -> Error {
    let shown: String = String::from_utf8_lossy(line).chars().take(80).collect();
    Error::malformed(format!("unexpected answer from the server: {shown:?}"))
}

/// Reads the first reply of `bytes`. A value may have `limit` bytes.
///
/// # Errors
/// [`Malformed`](ErrorKind::Malformed) where it is none, [`TooLarge`](ErrorKind::TooLarge) beyond
/// a limit.
#[inline]
pub fn parse(bytes: &[u8], limit: usize) -> Result<Parsed<'_>> {
    let searched = &bytes[..bytes.len().min(LINE)];
    let Some(end) = memchr::memchr(b'\n', searched) else {
        if searched.len() == LINE {
            let what = format!("a line of a reply has more than {LINE} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what));
        }
        return Ok(Parsed::Short(0));
    };
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let after = end + 1;
    let wrong = || out_of_step(line);
    // The replies of the quick commands first.
    let (word, rest) = line.split_at(line.len().min(2));
    let plain = rest.is_empty() || rest[0] == b' ';
    let reply = match word {
        b"VA" if plain => {
            let rest = rest.get(1..).unwrap_or_default();
            let digits = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
            let length = number(&rest[..digits]).ok_or_else(wrong)?;
            let marks = Marks::read(&rest[digits..]).ok_or_else(wrong)?;
            return value(bytes, after, length, limit)
                .map(|found| found.whole(|value| Reply::Value(value, marks)));
        }
        b"HD" if plain => Reply::Done(Marks::read(rest).ok_or_else(wrong)?),
        b"EN" | b"NF" if plain => Reply::Miss(Marks::read(rest).ok_or_else(wrong)?),
        b"NS" if plain => Reply::NotStored(Marks::read(rest).ok_or_else(wrong)?),
        b"EX" if plain => Reply::Exists(Marks::read(rest).ok_or_else(wrong)?),
        b"MN" if rest.is_empty() => Reply::Barrier,
        b"ME" if plain => Reply::Debug(rest.get(1..).unwrap_or_default()),
        b"OK" if rest.is_empty() => Reply::Done(Marks::default()),
        b"VA" if rest.starts_with(b"LUE ") => {
            let (key, marks, length) = item(&rest[4..]).ok_or_else(wrong)?;
            return value(bytes, after, length, limit)
                .map(|found| found.whole(|value| Reply::Item(key, value, marks)));
        }
        _ => classic(line),
    };
    Ok(Parsed::Whole(reply, after))
}

/// `key flags bytes [cas]`.
#[inline]
fn item(rest: &[u8]) -> Option<(&[u8], Marks, u64)> {
    let word = |text: &[u8]| text.iter().position(|b| *b == b' ');
    let (key, rest) = rest.split_at(word(rest)?);
    let rest = &rest[1..];
    let (flags, rest) = rest.split_at(word(rest)?);
    let rest = &rest[1..];
    let (length, cas) = match word(rest) {
        None => (rest, 0),
        Some(end) => (&rest[..end], number(&rest[end + 1..])?),
    };
    let flags = u32::try_from(number(flags)?).ok()?;
    Some((key, Marks { flags, cas, ..Marks::default() }, number(length)?))
}

/// The classic reply about this key, where just that comes next and is whole: its value, its marks,
/// and how many bytes it has. All else is for [`parse`], which takes twice as long.
#[inline]
pub fn expected<'a>(
    bytes: &'a [u8],
    (namespace, key): (&[u8], &[u8]),
    limit: usize,
) -> Option<(&'a [u8], Marks, usize)> {
    let rest = bytes.strip_prefix(b"VALUE ")?;
    let (space, rest) = rest.split_at_checked(namespace.len())?;
    let (own, rest) = rest.split_at_checked(key.len())?;
    if !same(own, key) || !same(space, namespace) {
        return None;
    }
    let (flags, rest) = digits(rest.strip_prefix(b" ")?)?;
    let (length, rest) = digits(rest.strip_prefix(b" ")?)?;
    let rest = rest.strip_prefix(b"\r\n")?;
    let length = usize::try_from(length).ok().filter(|length| *length <= limit)?;
    let (value, rest) = rest.split_at_checked(length)?;
    let rest = rest.strip_prefix(b"\r\n")?;
    let marks = Marks { flags: u32::try_from(flags).ok()?, ..Marks::default() };
    Some((value, marks, bytes.len() - rest.len()))
}

/// The number that bytes begin with, and what is behind it.
#[inline]
fn digits(bytes: &[u8]) -> Option<(u64, &[u8])> {
    // So many digits fit whatever they are.
    const MOST: usize = 19;
    let (mut sum, mut at) = (0, 0);
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        if at == MOST {
            return None;
        }
        sum = sum * 10 + u64::from(digit - b'0');
        at += 1;
    }
    (at > 0).then(|| (sum, &bytes[at..]))
}

/// Whether two runs of bytes of one length are equal. Keys are short: a loop takes a third of the
/// time of calling `memcmp`, which was a fifth of a batch (perf, 100 keys of 8 bytes).
#[inline]
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.iter().zip(other).all(|(one, other)| one == other)
}

fn classic(line: &[u8]) -> Reply<'_> {
    match line {
        b"STORED" | b"DELETED" | b"TOUCHED" => Reply::Done(Marks::default()),
        b"NOT_FOUND" => Reply::Miss(Marks::default()),
        b"NOT_STORED" => Reply::NotStored(Marks::default()),
        b"EXISTS" => Reply::Exists(Marks::default()),
        b"END" => Reply::End,
        b"ERROR" => Reply::Error(line),
        _ if line.starts_with(b"STAT ") => {
            let rest = &line[5..];
            let name = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
            Reply::Stat(&rest[..name], rest.get(name + 1..).unwrap_or_default())
        }
        _ if line.starts_with(b"VERSION ") => Reply::Version(&line[8..]),
        _ if [&b"SERVER_ERROR"[..], b"CLIENT_ERROR", b"ERROR "]
            .iter()
            .any(|word| line.starts_with(word)) =>
        {
            Reply::Error(line)
        }
        // Numbers come with blanks behind them, where one was longer before.
        _ => number(line.trim_ascii_end()).map_or(Reply::Line(line), Reply::Number),
    }
}

enum Found<'a> {
    Value(&'a [u8], usize),
    Short(usize),
}

impl<'a> Found<'a> {
    #[inline]
    fn whole(self, reply: impl FnOnce(&'a [u8]) -> Reply<'a>) -> Parsed<'a> {
        match self {
            Found::Value(value, length) => Parsed::Whole(reply(value), length),
            Found::Short(length) => Parsed::Short(length),
        }
    }
}

/// The value after a line, its end checked.
#[inline]
fn value(bytes: &[u8], start: usize, length: u64, limit: usize) -> Result<Found<'_>> {
    if length > limit as u64 {
        let what = format!("a value has {length} bytes, the limit is {limit}; see max_value");
        return Err(Error::new(ErrorKind::TooLarge, what));
    }
    let end = start + length as usize;
    let Some(tail) = bytes.get(end..end + 2) else { return Ok(Found::Short(end + 2)) };
    if tail != b"\r\n" {
        return Err(Error::malformed("a value is not as long as the server says"));
    }
    Ok(Found::Value(&bytes[start..end], end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Reply<'_> {
        match parse(text.as_bytes(), 1000) {
            Ok(Parsed::Whole(reply, used)) if used == text.len() => reply,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn replies_of_both_kinds_are_read() {
        let marks = Marks { flags: 3, cas: 12, ttl: Some(-1), ..Marks::default() };
        assert_eq!(whole("VA 2 f3 c12 t-1\r\n\r\n\r\n"), Reply::Value(b"\r\n", marks));
        let won = Marks { won: true, stale: true, opaque: Some(7), ..Marks::default() };
        assert_eq!(whole("VA 0 W X O7 q9\r\n\r\n"), Reply::Value(b"", won));
        assert_eq!(whole("HD\r\n"), Reply::Done(Marks::default()));
        assert_eq!(whole("EN\r\n"), Reply::Miss(Marks::default()));
        let item = Marks { flags: 1, cas: 5, ..Marks::default() };
        assert_eq!(whole("VALUE k 1 3 5\r\nabc\r\n"), Reply::Item(b"k", b"abc", item));
        assert_eq!(whole("END\r\n"), Reply::End);
        assert_eq!(whole("12  \r\n"), Reply::Number(12));
        assert_eq!(whole("STAT a b c\r\n"), Reply::Stat(b"a", b"b c"));
        assert_eq!(whole("VERSION 1.4\r\n"), Reply::Version(b"1.4"));
        assert_eq!(whole("MN\r\n"), Reply::Barrier);
        assert_eq!(whole("ERROR\r\n"), Reply::Error(b"ERROR"));
        assert_eq!(whole("key=a exp=-1\n"), Reply::Line(b"key=a exp=-1"));
    }

    #[test]
    fn what_is_expected_is_read_as_anything_else() {
        let key = (&b"n:"[..], &b"key"[..]);
        let limit = 1000;
        let text = b"VALUE n:key 7 5\r\nhello\r\nEND\r\n";
        let (value, marks, used) = expected(text, key, limit).unwrap();
        let Ok(Parsed::Whole(reply, length)) = parse(text, limit) else { panic!() };
        assert_eq!((reply, length), (Reply::Item(b"n:key", value, marks), used));
        assert_eq!((value, marks.flags), (&b"hello"[..], 7));
        for end in 0..used {
            assert!(expected(&text[..end], key, limit).is_none(), "{end}");
        }
        for other in [
            "VALUE n:kez 7 5\r\nhello\r\n",
            "VALUE m:key 7 5\r\nhello\r\n",
            "VALUE n:keys 7 5\r\nhello\r\n",
            "VALUE n:key 7 5 9\r\nhello\r\n",
            "VALUE n:key 7 4\r\nhello\r\n",
            "VALUE n:key 7 1001\r\n",
            "VALUE n:key  5\r\nhello\r\n",
            "VALUE n:key 4294967296 5\r\nhello\r\n",
            "VALUE n:key 7 99999999999999999999999\r\n",
            "END\r\n",
        ] {
            assert!(expected(other.as_bytes(), key, limit).is_none(), "{other:?}");
        }
    }

    #[test]
    fn every_beginning_is_short_and_says_what_it_wants() {
        let text = b"VA 5 f1\r\nhello\r\n";
        for end in 0..text.len() {
            let Ok(Parsed::Short(wanted)) = parse(&text[..end], 1000) else { panic!("{end}") };
            assert_eq!(wanted, if end < 9 { 0 } else { text.len() });
        }
    }

    #[test]
    fn what_is_wrong_is_refused_before_anything_is_reserved() {
        for (text, kind) in [
            ("VA 1001\r\n", ErrorKind::TooLarge),
            ("VA 99999999999999999999\r\n", ErrorKind::Malformed),
            ("VA -1\r\n", ErrorKind::Malformed),
            ("VA\r\n", ErrorKind::Malformed),
            ("VA 1\r\nabc\r\n", ErrorKind::Malformed),
            ("VA 1 fx\r\na\r\n", ErrorKind::Malformed),
            ("VALUE k 0\r\n", ErrorKind::Malformed),
            (&"x".repeat(LINE), ErrorKind::TooLarge),
        ] {
            assert_eq!(parse(text.as_bytes(), 1000).unwrap_err().kind(), kind, "{text}");
        }
    }
}
