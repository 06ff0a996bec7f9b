//! From serde to pickle, protocol 4: one frame; only keys and classes are memoized, and linked
//! to when they come again.

use serde::ser::{self, Error as _, Serialize, Serializer};

use super::{natives, ops};
use crate::{
    Error, Result,
    format::objects::{
        keys::{Keys, Seen},
        limits::deeper,
        text::if_text,
        whole::{magnitude_of, twos_complement},
    },
    record::{
        Time,
        native::{BIGINT, DECIMAL, TIME},
    },
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[ops::PROTO, 4, ops::FRAME]);
    out.extend_from_slice(&[0; 8]);
    let body = out.len();
    let mut encoder = Encoder {
        out,
        start,
        memoized: 0,
        keys: Keys::new(),
        datetime: None,
        utc: None,
        decimal: None,
        in_key: false,
        depth: 0,
    };
    record.serialize(&mut encoder)?;
    out.push(ops::STOP);
    let length = (out.len() - body) as u64;
    out[body - 8..body].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Writes one record.
struct Encoder<'o> {
    out: &'o mut Vec<u8>,
    /// Where the record begins in `out`.
    start: usize,
    /// How many keys and classes are memoized.
    memoized: u32,
    keys: Keys,
    /// Under which number the class `datetime` is memoized.
    datetime: Option<u32>,
    /// The same for the `timezone` of UTC.
    utc: Option<u32>,
    /// The same for the class `Decimal`.
    decimal: Option<u32>,
    /// The next text is a key.
    in_key: bool,
    depth: usize,
}

impl Encoder<'_> {
    /// Appends an opcode of the size of the length, the length, and the bytes.
    #[inline]
    fn sized(&mut self, [short, medium, long]: [u8; 3], bytes: &[u8]) {
        let len = bytes.len();
        if let Ok(len) = u8::try_from(len) {
            self.out.extend_from_slice(&[short, len]);
        } else if let Ok(len) = u32::try_from(len) {
            self.out.push(medium);
            self.out.extend_from_slice(&len.to_le_bytes());
        } else {
            self.out.push(long);
            self.out.extend_from_slice(&(len as u64).to_le_bytes());
        }
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        let codes = [ops::SHORT_BINUNICODE, ops::BINUNICODE, ops::BINUNICODE8];
        self.sized(codes, text.as_bytes());
    }

    #[inline]
    fn key(&mut self, key: &str) {
        match self.keys.find(key.as_bytes(), &self.out[self.start..]) {
            Seen::Before(n) => self.link(n),
            Seen::Never => self.text(key),
            Seen::Not(slot) => {
                // A key is short: its text comes after the opcode and a length of one byte.
                let at = self.out.len() - self.start + 2;
                self.keys.put(slot, at, key.len(), self.memoized);
                self.text(key);
                self.memoize();
            }
        }
    }

    /// What was memoized under this number.
    fn link(&mut self, n: u32) {
        match u8::try_from(n) {
            Ok(n) => self.out.extend_from_slice(&[ops::BINGET, n]),
            Err(_) => {
                self.out.push(ops::LONG_BINGET);
                self.out.extend_from_slice(&n.to_le_bytes());
            }
        }
    }

    /// Memoizes what was written last, and says under which number.
    fn memoize(&mut self) -> u32 {
        self.out.push(ops::MEMOIZE);
        self.memoized = self.memoized.wrapping_add(1);
        self.memoized.wrapping_sub(1)
    }

    fn class(&mut self, module: &str, name: &str) {
        self.text(module);
        self.text(name);
        self.out.push(ops::STACK_GLOBAL);
    }

    /// A `datetime` in UTC, as Python writes it; text where Python has no such year.
    fn time(&mut self, text: &str) -> Result<()> {
        let Some(state) = natives::state(text.parse::<Time>()?) else {
            self.text(text);
            return Ok(());
        };
        match self.datetime {
            Some(n) => self.link(n),
            None => {
                self.class("datetime", "datetime");
                self.datetime = Some(self.memoize());
            }
        }
        self.sized([ops::SHORT_BINBYTES, ops::BINBYTES, ops::BINBYTES8], &state);
        match self.utc {
            Some(n) => self.link(n),
            None => {
                self.class("datetime", "timezone");
                self.class("datetime", "timedelta");
                let zero = [ops::BININT1, 0];
                self.out.extend_from_slice(&[zero, zero, zero].concat());
                self.out.extend_from_slice(&[ops::TUPLE3, ops::REDUCE, ops::TUPLE1, ops::REDUCE]);
                self.utc = Some(self.memoize());
            }
        }
        self.out.extend_from_slice(&[ops::TUPLE2, ops::REDUCE]);
        Ok(())
    }

    /// A `Decimal`; text where it is none.
    fn decimal(&mut self, digits: &str) -> Result<()> {
        if !natives::is_decimal(digits.as_bytes()) {
            self.text(digits);
            return Ok(());
        }
        match self.decimal {
            Some(n) => self.link(n),
            None => {
                self.class("decimal", "Decimal");
                self.decimal = Some(self.memoize());
            }
        }
        self.text(digits);
        self.out.extend_from_slice(&[ops::TUPLE1, ops::REDUCE]);
        Ok(())
    }

    fn long(&mut self, bytes: &[u8]) -> Result<()> {
        if let Ok(len) = u8::try_from(bytes.len()) {
            self.out.extend_from_slice(&[ops::LONG1, len]);
        } else {
            let len = i32::try_from(bytes.len())
                .map_err(|_| Error::unsupported("a whole number over 2 GiB"))?;
            self.out.push(ops::LONG4);
            self.out.extend_from_slice(&len.to_le_bytes());
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }
}

impl<'a, 'o> Serializer for &'a mut Encoder<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'a, 'o>;
    type SerializeTuple = Compound<'a, 'o>;
    type SerializeTupleStruct = Compound<'a, 'o>;
    type SerializeTupleVariant = Compound<'a, 'o>;
    type SerializeMap = Compound<'a, 'o>;
    type SerializeStruct = Compound<'a, 'o>;
    type SerializeStructVariant = Compound<'a, 'o>;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, v: bool) -> Result<()> {
        self.out.push(if v { ops::NEWTRUE } else { ops::NEWFALSE });
        Ok(())
    }
    fn serialize_i8(self, v: i8) -> Result<()> {
        self.serialize_i64(v.into())
    }
    fn serialize_i16(self, v: i16) -> Result<()> {
        self.serialize_i64(v.into())
    }
    fn serialize_i32(self, v: i32) -> Result<()> {
        self.serialize_i64(v.into())
    }
    #[inline]
    fn serialize_i64(self, v: i64) -> Result<()> {
        if let Ok(v) = u8::try_from(v) {
            self.out.extend_from_slice(&[ops::BININT1, v]);
        } else if let Ok(v) = u16::try_from(v) {
            self.out.push(ops::BININT2);
            self.out.extend_from_slice(&v.to_le_bytes());
        } else if let Ok(v) = i32::try_from(v) {
            self.out.push(ops::BININT);
            self.out.extend_from_slice(&v.to_le_bytes());
        } else {
            return self.serialize_i128(v.into());
        }
        Ok(())
    }
    fn serialize_i128(self, v: i128) -> Result<()> {
        if let Ok(v) = i32::try_from(v) {
            return self.serialize_i64(v.into());
        }
        let bytes = v.to_le_bytes();
        let filler = if v < 0 { 0xff } else { 0 };
        let last = bytes.iter().rposition(|&b| b != filler).unwrap_or(0);
        // One more where the sign would be lost.
        let len = last + 1 + usize::from((bytes[last] ^ filler) & 0x80 != 0);
        self.long(&bytes[..len])
    }
    fn serialize_u8(self, v: u8) -> Result<()> {
        self.serialize_i64(v.into())
    }
    fn serialize_u16(self, v: u16) -> Result<()> {
        self.serialize_i64(v.into())
    }
    fn serialize_u32(self, v: u32) -> Result<()> {
        self.serialize_i64(v.into())
    }
    fn serialize_u64(self, v: u64) -> Result<()> {
        self.serialize_i128(v.into())
    }
    fn serialize_u128(self, v: u128) -> Result<()> {
        match i128::try_from(v) {
            Ok(v) => self.serialize_i128(v),
            Err(_) => self.long(&twos_complement(false, v.to_le_bytes().to_vec())),
        }
    }
    fn serialize_f32(self, v: f32) -> Result<()> {
        self.serialize_f64(v.into())
    }
    fn serialize_f64(self, v: f64) -> Result<()> {
        self.out.push(ops::BINFLOAT);
        self.out.extend_from_slice(&v.to_bits().to_be_bytes());
        Ok(())
    }
    fn serialize_char(self, v: char) -> Result<()> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }
    #[inline]
    fn serialize_str(self, v: &str) -> Result<()> {
        if self.in_key {
            self.key(v);
        } else {
            self.text(v);
        }
        Ok(())
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<()> {
        self.sized([ops::SHORT_BINBYTES, ops::BINBYTES, ops::BINBYTES8], v);
        Ok(())
    }
    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<()> {
        v.serialize(self)
    }
    fn serialize_unit(self) -> Result<()> {
        self.out.push(ops::NONE);
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        if self.in_key || ![TIME, DECIMAL, BIGINT].contains(&name) {
            return value.serialize(self);
        }
        if_text(value, |text| match name {
            TIME => self.time(text),
            DECIMAL => self.decimal(text),
            _ => {
                let (negative, magnitude) = magnitude_of(text)?;
                self.long(&twos_complement(negative, magnitude))
            }
        })
        .unwrap_or_else(|| Err(Error::custom(format_args!("a {name} that is not text"))))
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let mut map = Compound::begin(self, ops::EMPTY_DICT, Some(1))?;
        ser::SerializeStruct::serialize_field(&mut map, variant, value)?;
        map.finish()
    }
    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Compound<'a, 'o>> {
        Compound::begin(self, ops::EMPTY_LIST, len)
    }
    fn serialize_tuple(self, len: usize) -> Result<Compound<'a, 'o>> {
        Compound::begin(self, ops::EMPTY_LIST, Some(len))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, 'o>> {
        Compound::begin(self, ops::EMPTY_LIST, Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'o>> {
        Compound::holding(self, variant, ops::EMPTY_LIST, len)
    }
    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Compound<'a, 'o>> {
        Compound::begin(self, ops::EMPTY_DICT, len)
    }
    #[inline]
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, 'o>> {
        Compound::begin(self, ops::EMPTY_DICT, Some(len))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'o>> {
        Compound::holding(self, variant, ops::EMPTY_DICT, len)
    }
}

/// A list or map being written.
struct Compound<'a, 'o> {
    encoder: &'a mut Encoder<'o>,
    /// What puts the items into the list or map below them.
    put: u8,
    /// It does so after each item; else once, for all from a mark on.
    each: bool,
    /// It is itself the only value of a map, from the name of a variant.
    held: bool,
}

impl<'a, 'o> Compound<'a, 'o> {
    /// `empty` is the opcode for an empty list or map.
    #[inline]
    fn begin(encoder: &'a mut Encoder<'o>, empty: u8, len: Option<usize>) -> Result<Self> {
        encoder.depth = deeper(encoder.depth)?;
        encoder.out.push(empty);
        let each = matches!(len, Some(0 | 1));
        if !each {
            encoder.out.push(ops::MARK);
        }
        let put = match (empty, each) {
            (ops::EMPTY_LIST, true) => ops::APPEND,
            (ops::EMPTY_LIST, false) => ops::APPENDS,
            (_, true) => ops::SETITEM,
            (_, false) => ops::SETITEMS,
        };
        Ok(Compound { encoder, put, each, held: false })
    }

    /// One inside a map of a single item, from the name of a variant.
    fn holding(encoder: &'a mut Encoder<'o>, variant: &str, empty: u8, len: usize) -> Result<Self> {
        encoder.depth = deeper(encoder.depth)?;
        encoder.out.push(ops::EMPTY_DICT);
        encoder.key(variant);
        let mut inner = Self::begin(encoder, empty, Some(len))?;
        inner.held = true;
        Ok(inner)
    }

    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(&mut *self.encoder)?;
        if self.each {
            self.encoder.out.push(self.put);
        }
        Ok(())
    }

    #[inline]
    fn finish(self) -> Result<()> {
        self.encoder.depth -= 1;
        if !self.each {
            self.encoder.out.push(self.put);
        }
        if self.held {
            self.encoder.depth -= 1;
            self.encoder.out.push(ops::SETITEM);
        }
        Ok(())
    }
}

macro_rules! elements {
    ($($trait:ident $method:ident;)*) => {
        $(impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = Error;
            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.element(value)
            }
            #[inline]
            fn end(self) -> Result<()> {
                self.finish()
            }
        })*
    };
}

elements! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! fields {
    ($($trait:ident)*) => {
        $(impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = Error;
            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<()> {
                self.encoder.key(key);
                self.element(value)
            }
            #[inline]
            fn end(self) -> Result<()> {
                self.finish()
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Compound<'_, '_> {
    type Ok = ();
    type Error = Error;
    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.encoder.in_key = true;
        key.serialize(&mut *self.encoder)?;
        self.encoder.in_key = false;
        Ok(())
    }
    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.element(value)
    }
    #[inline]
    fn end(self) -> Result<()> {
        self.finish()
    }
}
