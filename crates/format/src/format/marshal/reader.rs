//! From bytes to the heads of values: tags, lengths, symbols, links, encodings.
//!
//! A [`Reader`] stands at a value; [`head`](Reader::head) reads what it is, and for a single value
//! all of it. What a list or map holds is read by whoever asked, who then calls
//! [`finish`](Reader::finish) with the head's [`Tail`]. Tables hold offsets only: a link is read
//! again from where it points to, within a budget.

use super::{
    native,
    text::{Charset, Text},
};
use crate::{
    Error, ErrorKind, Result,
    format::objects::limits::{Budget, deeper},
    record::Time,
};

/// A value, or the beginning of one.
pub enum Head<'de> {
    Nil,
    Bool(bool),
    Int(i64),
    /// Sign (true: negative) and magnitude, least significant byte first.
    Big(bool, &'de [u8]),
    Float(f64),
    Text(&'de [u8], Charset),
    Time(Time),
    Decimal(String),
    List(usize, Tail),
    Hash(usize, Tail),
    /// Class, and how many variables.
    Object(&'de [u8], usize, Tail),
    /// Class, and how many members.
    Struct(&'de [u8], usize, Tail),
    /// Class, and what it dumped itself to.
    Dump(&'de [u8], &'de [u8], Charset),
    /// Class; the value it dumped itself to follows.
    Data(&'de [u8], Tail),
    /// Source and options.
    Regexp(&'de [u8], Charset, u8),
    /// `Class` or `Module`, and its name.
    Named(&'static str, &'de [u8]),
}

/// What is left to do after the last part of a value.
#[derive(Clone, Copy, Default)]
pub struct Tail {
    /// A hash's default value follows.
    default: bool,
    /// Instance variables follow.
    variables: bool,
    /// The value was read through a link to the first offset; go on at the second.
    link: Option<(usize, usize)>,
}

impl Tail {
    pub fn variables(variables: bool) -> Self {
        Tail { variables, ..Tail::default() }
    }
}

/// An object that may be linked to: where it begins, and its text if that is all there is to it.
#[derive(Clone, Copy)]
pub(super) struct Object<T> {
    pub at: u32,
    pub text: T,
}

/// Stands in the bytes of one record.
pub struct Reader<'de, T> {
    pub(super) input: &'de [u8],
    pub(super) pos: usize,
    /// Where each symbol begins and ends.
    symbols: Vec<(u32, u32)>,
    /// What ends a UTF-8 string, but for the first: one variable, the symbol `E` by its number, true.
    /// None until that number is known.
    pub(super) utf8_end: Option<u32>,
    pub(super) objects: Vec<Object<T>>,
    /// Offsets of the objects being read again, from the outermost.
    links: Vec<usize>,
    pub(super) budget: Budget,
    depth: usize,
    /// A part of the input that is known to be UTF-8, and where it begins: checking many strings
    /// at once, with what is between them, costs less than each by itself.
    pub(super) valid: (&'de str, usize),
    /// Objects and symbols are entered in the tables: not those read again.
    pub(super) entering: bool,
}

impl<'de, T: Text<'de>> Reader<'de, T> {
    /// At the first value after the version.
    pub fn new(input: &'de [u8]) -> Result<Self> {
        if u32::try_from(input.len()).is_err() {
            return Err(Error::new(ErrorKind::TooLarge, "a Marshal record over 4 GiB"));
        }
        if let Some(&[major, minor]) = input.first_chunk()
            && (major != 4 || minor > 8)
        {
            return Err(Error::malformed(format!(
                "not Marshal 4.8: it begins with {major:#04x} {minor:#04x}"
            ))
            .at(0));
        }
        // A guess that spares most records growing the tables.
        let objects = (input.len() / 8 + 8).min(4096);
        Ok(Reader {
            input,
            pos: 2,
            symbols: Vec::with_capacity(16),
            utf8_end: None,
            objects: Vec::with_capacity(objects),
            links: Vec::new(),
            budget: Budget::new(input.len()),
            depth: 0,
            valid: ("", 0),
            entering: true,
        })
    }

    #[cold]
    pub fn wrong(&self, at: usize, what: impl Into<String>) -> Error {
        Error::malformed(what).at(at as u64)
    }

    #[cold]
    fn short(&self) -> Error {
        self.wrong(self.input.len(), "the bytes end inside a value")
    }

    #[inline(always)]
    pub fn peek(&self) -> Option<u8> {
        self.input.get(self.pos).copied()
    }

    #[inline(always)]
    pub fn byte(&mut self) -> Result<u8> {
        match self.peek() {
            Some(byte) => {
                self.pos += 1;
                Ok(byte)
            }
            None => Err(self.short()),
        }
    }

    #[inline]
    pub(super) fn take(&mut self, n: usize) -> Result<&'de [u8]> {
        match self.input.get(self.pos..).and_then(|rest| rest.get(..n)) {
            Some(bytes) => {
                self.pos += n;
                Ok(bytes)
            }
            None => Err(self.short()),
        }
    }

    /// A whole number of up to 32 bits.
    #[inline(always)]
    pub fn long(&mut self) -> Result<i64> {
        match self.peek() {
            Some(first @ 5..128) => {
                self.pos += 1;
                Ok(i64::from(first) - 5)
            }
            _ => self.other_long(),
        }
    }

    fn other_long(&mut self) -> Result<i64> {
        let first = self.byte()? as i8;
        Ok(match first {
            0 => 0,
            5.. => i64::from(first) - 5,
            ..-4 => i64::from(first) + 5,
            _ => {
                let n = usize::from(first.unsigned_abs());
                let mut wide = [if first < 0 { 0xff } else { 0 }; 8];
                wide[..n].copy_from_slice(self.take(n)?);
                i64::from_le_bytes(wide)
            }
        })
    }

    /// How many parts follow, each of at least `size` bytes.
    #[inline(always)]
    pub fn count(&mut self, size: usize) -> Result<usize> {
        let at = self.pos;
        let n = self.long()?;
        match usize::try_from(n) {
            Ok(n) if n.saturating_mul(size) <= self.input.len() - self.pos => Ok(n),
            _ => Err(self.wrong_count(at, n)),
        }
    }

    #[cold]
    fn wrong_count(&self, at: usize, n: i64) -> Error {
        let left = self.input.len() - self.pos;
        self.wrong(at, format!("a length of {n}, but only {left} bytes are left"))
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> Result<&'de [u8]> {
        let n = self.count(1)?;
        self.take(n)
    }

    /// Enters an object that begins at `start` in the table.
    #[inline(always)]
    pub(super) fn enter(&mut self, start: usize) {
        if self.entering {
            self.objects.push(Object { at: start as u32, text: T::default() });
        }
    }

    /// A symbol, or a link to one.
    #[inline]
    pub fn symbol(&mut self) -> Result<&'de [u8]> {
        self.symbol_range().map(|(from, to)| &self.input[from..to])
    }

    /// Where the name of the symbol here, or linked to from here, begins and ends.
    #[inline]
    pub fn symbol_range(&mut self) -> Result<(usize, usize)> {
        let at = self.pos;
        match self.byte()? {
            b';' => {
                let n = self.long()?;
                self.linked_symbol(at, n)
            }
            b':' => self.new_symbol(false),
            b'I' if self.peek() == Some(b':') => {
                self.pos += 1;
                self.new_symbol(true)
            }
            tag => Err(self.wrong(at, format!("{} where a symbol has to be", shown(tag)))),
        }
    }

    #[inline]
    fn linked_symbol(&mut self, at: usize, n: i64) -> Result<(usize, usize)> {
        match usize::try_from(n).ok().and_then(|n| self.symbols.get(n)) {
            Some(&(from, to)) => {
                self.budget.spend((to - from) as usize)?;
                Ok((from as usize, to as usize))
            }
            None => Err(self.wrong(at, format!("a link to symbol {n}, which does not exist"))),
        }
    }

    /// A symbol after its tag. Its encoding is of no consequence: text if it is UTF-8.
    pub(super) fn new_symbol(&mut self, variables: bool) -> Result<(usize, usize)> {
        let name = self.bytes()?;
        let range = (self.pos - name.len(), self.pos);
        if self.entering {
            let n = self.symbols.len();
            self.symbols.push((range.0 as u32, range.1 as u32));
            if name == b"E" && n < 123 {
                let n = if n == 0 { 0 } else { n as u8 + 5 };
                self.utf8_end = Some(u32::from_le_bytes([6, b';', n, b'T']));
            }
        }
        if variables {
            self.symbol_variables()?;
        }
        Ok(range)
    }

    /// The variables of a symbol: its encoding, and nothing that could have variables again.
    fn symbol_variables(&mut self) -> Result<()> {
        for _ in 0..self.count(2)? {
            for _ in 0..2 {
                match self.peek() {
                    Some(b'T' | b'F' | b'0' | b'@' | b'"' | b':' | b';') => self.skip()?,
                    Some(_) => return Err(self.wrong(self.pos, "a symbol with odd variables")),
                    None => return Err(self.short()),
                }
            }
        }
        Ok(())
    }

    /// The count of a list or hash with this tag, if one begins here.
    #[inline(always)]
    pub fn plain(&mut self, tag: u8, size: usize) -> Result<Option<usize>> {
        if self.peek() != Some(tag) {
            return Ok(None);
        }
        let start = self.pos;
        self.pos += 1;
        let n = self.count(size)?;
        self.enter(start);
        Ok(Some(n))
    }

    /// What the value here is.
    pub fn head(&mut self) -> Result<Head<'de>> {
        let start = self.pos;
        if self.peek() != Some(b'@') {
            return self.own_head(start);
        }
        let (n, target) = self.link()?;
        let Some(target) = target else { return Err(self.dangling(start, n)) };
        let back = self.pos;
        if self.links.contains(&target) {
            return Err(self.wrong(start, "an object inside itself"));
        }
        self.budget.spend(1)?;
        self.links.push(target);
        self.entering = false;
        self.pos = target;
        let mut head = self.own_head(target)?;
        match &mut head {
            Head::List(_, tail)
            | Head::Hash(_, tail)
            | Head::Object(.., tail)
            | Head::Struct(.., tail)
            | Head::Data(_, tail) => tail.link = Some((target, back)),
            _ => self.return_from(target, back)?,
        }
        Ok(head)
    }

    /// The link here: its number, and the offset it points to.
    #[inline]
    pub(super) fn link(&mut self) -> Result<(i64, Option<usize>)> {
        self.pos += 1;
        let n = self.long()?;
        let target = usize::try_from(n).ok().and_then(|n| self.objects.get(n));
        Ok((n, target.map(|target| target.at as usize)))
    }

    #[cold]
    pub(super) fn dangling(&self, at: usize, n: i64) -> Error {
        self.wrong(at, format!("a link to object {n}, which does not exist"))
    }

    fn return_from(&mut self, target: usize, back: usize) -> Result<()> {
        self.budget.spend(self.pos - target)?;
        self.links.pop();
        self.entering = self.links.is_empty();
        self.pos = back;
        Ok(())
    }

    /// The head of a value that is no link and begins at `start`.
    fn own_head(&mut self, start: usize) -> Result<Head<'de>> {
        let mut variables = false;
        loop {
            let at = self.pos;
            let tag = self.byte()?;
            let tail = Tail::variables(variables);
            return Ok(match tag {
                b'I' if !variables => {
                    if self.peek() == Some(b':') {
                        self.pos += 1;
                        let (from, to) = self.new_symbol(true)?;
                        return Ok(Head::Text(&self.input[from..to], Charset::Utf8));
                    }
                    variables = true;
                    continue;
                }
                b'e' | b'C' => {
                    self.symbol()?;
                    continue;
                }
                b'"' => {
                    let bytes = self.bytes()?;
                    let (n, from) = (self.objects.len(), self.pos - bytes.len());
                    self.enter(start);
                    let charset = if variables { self.charset()? } else { Charset::Binary };
                    if charset == Charset::Utf8
                        && self.entering
                        && let Some(text) = T::read(self, from, from + bytes.len())
                    {
                        self.objects[n].text = text;
                    }
                    Head::Text(bytes, charset)
                }
                b'0' => Head::Nil,
                b'T' => Head::Bool(true),
                b'F' => Head::Bool(false),
                b'i' => Head::Int(self.long()?),
                b':' | b';' => {
                    self.pos = at;
                    Head::Text(self.symbol()?, Charset::Utf8)
                }
                b'[' => {
                    let n = self.count(1)?;
                    self.enter(start);
                    Head::List(n, tail)
                }
                b'{' | b'}' => {
                    let n = self.count(2)?;
                    self.enter(start);
                    Head::Hash(n, Tail { default: tag == b'}', ..tail })
                }
                b'f' => {
                    let digits = self.bytes()?;
                    self.enter(start);
                    Head::Float(native::float(digits).ok_or_else(|| {
                        let digits = String::from_utf8_lossy(digits);
                        self.wrong(at, format!("{digits:?} is not a Float"))
                    })?)
                }
                b'l' => {
                    let negative = self.sign()?;
                    let words = self.count(2)?;
                    let magnitude = self.take(words * 2)?;
                    self.enter(start);
                    Head::Big(negative, magnitude)
                }
                b'o' | b'S' => {
                    self.enter(start);
                    let class = self.symbol()?;
                    let n = self.count(2)?;
                    match tag {
                        b'o' => Head::Object(class, n, tail),
                        _ => Head::Struct(class, n, tail),
                    }
                }
                b'u' => {
                    let class = self.symbol()?;
                    let dump = self.bytes()?;
                    let read = self.dumped(class, dump, variables)?;
                    // Ruby counts the object after all that belongs to it.
                    self.enter(start);
                    read
                }
                b'U' | b'd' => {
                    self.enter(start);
                    Head::Data(self.symbol()?, tail)
                }
                b'/' => {
                    let source = self.bytes()?;
                    let options = self.byte()?;
                    self.enter(start);
                    let charset = if variables { self.charset()? } else { Charset::Binary };
                    Head::Regexp(source, charset, options)
                }
                b'c' | b'm' | b'M' => {
                    let name = self.bytes()?;
                    self.enter(start);
                    if variables {
                        self.skip_variables()?;
                    }
                    Head::Named(if tag == b'c' { "Class" } else { "Module" }, name)
                }
                _ => return Err(self.unknown(at, tag)),
            });
        }
    }

    #[cold]
    pub(super) fn unknown(&self, at: usize, tag: u8) -> Error {
        self.wrong(at, format!("{} where a value has to begin", shown(tag)))
    }

    pub(super) fn sign(&mut self) -> Result<bool> {
        let at = self.pos;
        match self.byte()? {
            b'+' => Ok(false),
            b'-' => Ok(true),
            sign => Err(self.wrong(at, format!("{} as the sign of an Integer", shown(sign)))),
        }
    }

    /// What an object dumped itself to: times and decimals are known, the rest is data.
    fn dumped(&mut self, class: &'de [u8], dump: &'de [u8], variables: bool) -> Result<Head<'de>> {
        let mut charset = Charset::Binary;
        if class != b"Time" {
            if variables {
                charset = self.charset()?;
            }
            return Ok(match native::read_decimal(class, dump) {
                Some(decimal) => Head::Decimal(decimal),
                None => Head::Dump(class, dump, charset),
            });
        }
        let mut nanos = (Some(0), Some(1));
        for _ in 0..if variables { self.count(2)? } else { 0 } {
            match self.symbol()? {
                b"nano_num" => nanos.0 = self.whole()?,
                b"nano_den" => nanos.1 = self.whole()?,
                _ => self.skip()?,
            }
        }
        Ok(match native::read_time(dump, nanos) {
            Some(time) => Head::Time(time),
            None => Head::Dump(class, dump, charset),
        })
    }

    /// A whole number of up to 120 bits; none if there is something else, which is passed over.
    fn whole(&mut self) -> Result<Option<i128>> {
        let big = match self.peek() {
            Some(b'i') => {
                self.pos += 1;
                return self.long().map(|v| Some(v.into()));
            }
            Some(b'@') => {
                let start = self.pos;
                let (_, target) = self.link()?;
                self.pos = start;
                target.is_some_and(|target| self.input[target] == b'l')
            }
            tag => tag == Some(b'l'),
        };
        let number = match big {
            true => match self.head()? {
                Head::Big(negative, bytes) if bytes.len() < 16 => {
                    let mut wide = [0; 16];
                    wide[..bytes.len()].copy_from_slice(bytes);
                    let magnitude = i128::from_le_bytes(wide);
                    Some(if negative { -magnitude } else { magnitude })
                }
                _ => None,
            },
            false => {
                self.skip()?;
                None
            }
        };
        Ok(number)
    }

    /// One level deeper, for as long as the parts of a value are read.
    #[inline(always)]
    pub fn deeper(&mut self) -> Result<()> {
        match deeper(self.depth) {
            Ok(depth) => {
                self.depth = depth;
                Ok(())
            }
            Err(e) => Err(e.at(self.pos as u64)),
        }
    }

    /// What is left to do after the parts of a value, one level up again.
    #[inline(always)]
    pub fn finish(&mut self, tail: Tail) -> Result<()> {
        self.depth -= 1;
        if tail.default {
            self.skip()?;
        }
        if tail.variables {
            self.skip_variables()?;
        }
        match tail.link {
            Some((target, back)) => self.return_from(target, back),
            None => Ok(()),
        }
    }
}

/// A byte for a message.
fn shown(byte: u8) -> String {
    if byte.is_ascii_graphic() { format!("{:?}", char::from(byte)) } else { format!("{byte:#04x}") }
}
