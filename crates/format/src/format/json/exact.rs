//! JSON read with every digit of its numbers, for records that have more of them than the usual
//! readers keep: they know whole numbers of 64 bits and floats.
//!
//! Slower than those, and asked only where [`digits`](super::digits) has found such a number.

use memchr::memchr2;
use serde::{
    Deserializer,
    de::{
        self, DeserializeSeed, Error as _, IntoDeserializer, Visitor,
        value::{MapAccessDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};

use crate::{
    Error, ErrorKind, Result,
    format::{DEPTH, caused},
    record::{
        Value,
        native::{BIGINT, DECIMAL, Native, TIME},
        number, spelled_name,
    },
};

pub(crate) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    let mut reader = Reader { bytes, at: 0, depth: 0 };
    let record = seed.deserialize(&mut reader);
    let record = record.map_err(|e| match e.place().offset {
        Some(_) => e,
        None => e.at(reader.at as u64),
    })?;
    match reader.skip() {
        None => Ok(record),
        Some(_) => Err(reader.wrong("bytes after its end")),
    }
}

struct Reader<'de> {
    bytes: &'de [u8],
    at: usize,
    depth: usize,
}

impl<'de> Reader<'de> {
    fn wrong(&self, what: &str) -> Error {
        Error::malformed(format!("unexpected JSON: {what}")).at(self.at as u64)
    }

    /// The next byte that is no blank, which is not taken.
    fn skip(&mut self) -> Option<u8> {
        let blank = |b: &&u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
        self.at += self.bytes[self.at..].iter().take_while(blank).count();
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8> {
        self.skip().ok_or_else(|| self.wrong("unexpected end"))
    }

    fn take(&mut self, wanted: u8) -> Result<()> {
        match self.next()? == wanted {
            true => {
                self.at += 1;
                Ok(())
            }
            false => Err(self.wrong(&format!("expected {:?}", char::from(wanted)))),
        }
    }

    fn word(&mut self, word: &str) -> Result<()> {
        match self.bytes[self.at..].starts_with(word.as_bytes()) {
            true => {
                self.at += word.len();
                Ok(())
            }
            false => Err(self.wrong("not the start of a value")),
        }
    }

    /// A string with its quotes.
    fn quoted(&mut self) -> Result<&'de [u8]> {
        let start = self.at;
        let mut end = start + 1;
        loop {
            match self.bytes.get(end..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
                None => return Err(self.wrong("unterminated string")),
                Some(at) if self.bytes[end + at] == b'\\' => end += at + 2,
                Some(at) => {
                    self.at = end + at + 1;
                    return Ok(&self.bytes[start..self.at]);
                }
            }
        }
    }

    fn text<T: de::Deserialize<'de>>(&mut self) -> Result<T> {
        let start = self.at;
        serde_json::from_slice(self.quoted()?)
            .map_err(|e| caused(ErrorKind::Malformed, "unexpected JSON", e).at(start as u64))
    }

    /// A number, as it is written.
    fn number(&mut self) -> Result<&'de str> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().take_while(|b| super::digits::is_part(**b)).count();
        match str::from_utf8(&rest[..len]) {
            Ok(text) if number::is_json(text) => {
                self.at += len;
                Ok(text)
            }
            _ => Err(self.wrong("invalid number")),
        }
    }

    fn starts_number(&mut self) -> Result<bool> {
        Ok(matches!(self.next()?, b'-' | b'0'..=b'9'))
    }

    fn inside<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>, end: u8) -> Result<T> {
        if self.depth == DEPTH {
            return Err(self.wrong("nested too deeply"));
        }
        (self.at, self.depth) = (self.at + 1, self.depth + 1);
        let read = read(self)?;
        self.depth -= 1;
        self.take(end).map(|()| read)
    }

    /// A number for a type that says which it wants: digits beyond that are the type's to refuse.
    fn typed<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        if !self.starts_number()? {
            return self.deserialize_any(visitor);
        }
        let start = self.at;
        let text = self.number()?;
        if let Ok(n) = text.parse() {
            return visitor.visit_u64(n);
        }
        match text.parse() {
            Ok(n) if text != "-0" => visitor.visit_i64(n),
            _ => match text.parse::<f64>() {
                Ok(v) if v.is_finite() => visitor.visit_f64(v),
                _ => {
                    Err(Error::malformed("unexpected JSON: a number out of range").at(start as u64))
                }
            },
        }
    }
}

macro_rules! typed {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.typed(visitor)
        })*
    };
}

macro_rules! wide {
    ($($method:ident $visit:ident $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            if !self.starts_number()? {
                return self.deserialize_any(visitor);
            }
            let text = self.number()?;
            match text.parse::<$type>() {
                Ok(n) => visitor.$visit(n),
                Err(_) => {
                    let of = stringify!($type);
                    Err(self.wrong(&format!("the number {text} is out of range for {of}")))
                }
            }
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.next()? {
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            b'"' => match memchr::memchr(b'\\', self.peek_quoted()?) {
                None => visitor.visit_borrowed_str(self.text()?),
                Some(_) => visitor.visit_string(self.text()?),
            },
            b'[' => self.inside(|reader| visitor.visit_seq(Items { reader, first: true }), b']'),
            b'{' => self.inside(|reader| visitor.visit_map(Items { reader, first: true }), b'}'),
            b'-' | b'0'..=b'9' => {
                let text = self.number()?;
                match number::of_json(text) {
                    Some(Value::Int(n)) => visitor.visit_i64(n),
                    Some(Value::Float(v)) => visitor.visit_f64(v),
                    Some(Value::BigInt(digits)) => match digits.parse() {
                        Ok(n) => visitor.visit_u64(n),
                        Err(_) => visitor.visit_enum(Native::new(BIGINT, digits.into())),
                    },
                    Some(Value::Decimal(digits)) => {
                        visitor.visit_enum(Native::new(DECIMAL, digits.into()))
                    }
                    _ => Err(self.wrong("the exponent before is beyond 32 bits")),
                }
            }
            _ => Err(self.wrong("not the start of a value")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.next()? {
            b'n' => self.word("null").and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        match [TIME, DECIMAL, BIGINT].contains(&name) && self.starts_number()? {
            true => {
                let text: StrDeserializer<Error> = self.number()?.into_deserializer();
                visitor.visit_newtype_struct(text)
            }
            false => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.next()? {
            b'"' => {
                let variant: String = self.text()?;
                let variant: StrDeserializer<Error> = variant.as_str().into_deserializer();
                visitor.visit_enum(variant)
            }
            b'{' => self.inside(
                |reader| {
                    let items = Items { reader, first: true };
                    visitor.visit_enum(MapAccessDeserializer::new(items))
                },
                b'}',
            ),
            _ => Err(Error::custom(format_args!("the enum {name} is a string or a map of one"))),
        }
    }

    typed! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64
    }

    wide! {
        deserialize_i128 visit_i128 i128;
        deserialize_u128 visit_u128 u128;
    }

    forward_to_deserialize_any! {
        bool char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

impl<'de> Reader<'de> {
    fn peek_quoted(&mut self) -> Result<&'de [u8]> {
        let at = self.at;
        let quoted = self.quoted()?;
        self.at = at;
        Ok(quoted)
    }
}

/// What is in a list or a map.
struct Items<'a, 'de> {
    reader: &'a mut Reader<'de>,
    first: bool,
}

impl Items<'_, '_> {
    /// Whether there is one more before this end.
    fn more(&mut self, end: u8) -> Result<bool> {
        if self.reader.next()? == end {
            return Ok(false);
        }
        if !std::mem::take(&mut self.first) {
            self.reader.take(b',')?;
        }
        Ok(true)
    }
}

impl<'de> de::SeqAccess<'de> for Items<'_, 'de> {
    type Error = Error;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        match self.more(b']')? {
            true => seed.deserialize(&mut *self.reader).map(Some),
            false => Ok(None),
        }
    }
}

impl<'de> de::MapAccess<'de> for Items<'_, 'de> {
    type Error = Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if !self.more(b'}')? {
            return Ok(None);
        }
        match self.reader.next()? {
            b'"' => seed.deserialize(spelled_name(self.reader.text()?)).map(Some),
            _ => Err(self.reader.wrong("a name is a string")),
        }
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        self.reader.take(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}
