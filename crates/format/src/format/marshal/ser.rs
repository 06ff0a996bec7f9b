//! From serde to Marshal.
//!
//! Strings are written as Ruby's UTF-8 literals are; symbols and keys that come again are links,
//! as Ruby writes them too.

use std::collections::HashMap;

use serde::ser::{Error as _, Serialize, Serializer};

use super::{HEADER, native, object::Compound};
use crate::{
    Error, ErrorKind, Result,
    format::objects::{
        keys::{Keys, Seen},
        limits::deeper,
        text::if_text,
        whole::magnitude_of,
    },
    record::{
        Time,
        native::{BIGINT, DECIMAL, TIME},
    },
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&HEADER);
    record.serialize(&mut Encoder {
        out,
        start,
        e: None,
        symbols: HashMap::new(),
        symbol_count: 0,
        objects: 0,
        keys: Keys::new(),
        in_key: false,
        depth: 0,
        class: String::new(),
    })
}

/// Writes one record.
pub struct Encoder<'o> {
    pub(super) out: &'o mut Vec<u8>,
    /// Where the record begins in `out`.
    start: usize,
    /// The number of the symbol `E`, once it is written.
    e: Option<u32>,
    /// The numbers of the other symbols.
    symbols: HashMap<String, u32>,
    symbol_count: u32,
    /// How many objects are written: links go by these numbers.
    objects: u32,
    keys: Keys,
    /// The next string is a key.
    pub(super) in_key: bool,
    pub(super) depth: usize,
    /// The class of the map whose first key and value said that it is an object.
    pub(super) class: String,
}

/// Appends a whole number of up to 32 bits, as Marshal packs lengths and small Integers.
#[inline]
pub(super) fn put_long(out: &mut Vec<u8>, v: i32) {
    match v {
        1..=122 => out.push(v as u8 + 5),
        _ => put_other_long(out, v),
    }
}

fn put_other_long(out: &mut Vec<u8>, v: i32) {
    match v {
        0 => out.push(0),
        -123..=-1 => out.push((v - 5) as u8),
        _ => {
            let bytes = v.to_le_bytes();
            let filler = if v < 0 { 0xff } else { 0 };
            let len = bytes.iter().rposition(|&b| b != filler).map_or(1, |last| last + 1);
            out.push(if v < 0 { (len as u8).wrapping_neg() } else { len as u8 });
            out.extend_from_slice(&bytes[..len]);
        }
    }
}

impl Encoder<'_> {
    /// Appends a length.
    #[inline]
    pub fn length(&mut self, len: usize) -> Result<()> {
        let len = i32::try_from(len).map_err(|_| {
            let what = format!("a length of {len}: Marshal's limit is {}", i32::MAX);
            Error::new(ErrorKind::TooLarge, what)
        })?;
        put_long(self.out, len);
        Ok(())
    }

    /// Appends a length and bytes.
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.length(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Counts an object.
    #[inline]
    pub fn enter(&mut self) {
        self.objects = self.objects.wrapping_add(1);
    }

    /// A level of nesting begins.
    #[inline]
    pub fn deeper(&mut self) -> Result<()> {
        self.depth = deeper(self.depth)?;
        Ok(())
    }

    /// Appends a string with its encoding.
    #[inline]
    pub fn text(&mut self, text: &str) -> Result<()> {
        self.enter();
        match text.len() {
            len @ 1..=122 => self.out.extend_from_slice(&[b'I', b'"', len as u8 + 5]),
            len => {
                self.out.extend_from_slice(b"I\"");
                self.length(len)?;
            }
        }
        self.out.extend_from_slice(text.as_bytes());
        match self.e {
            Some(0) => {
                self.out.extend_from_slice(b"\x06;\0T");
                Ok(())
            }
            _ => self.utf8(b'T'),
        }
    }

    /// Appends the one variable that says UTF-8 (`T`) or US-ASCII (`F`).
    fn utf8(&mut self, flag: u8) -> Result<()> {
        self.out.push(6);
        self.symbol_e();
        self.out.push(flag);
        Ok(())
    }

    fn symbol_e(&mut self) {
        match self.e {
            Some(n) => self.symbol_link(n),
            None => {
                self.e = Some(self.symbol_count);
                self.symbol_count += 1;
                self.out.extend_from_slice(b":\x06E");
            }
        }
    }

    fn symbol_link(&mut self, n: u32) {
        self.out.push(b';');
        put_long(self.out, n as i32);
    }

    /// Appends a symbol, or a link to it.
    pub fn symbol(&mut self, name: &str) -> Result<()> {
        if name == "E" {
            self.symbol_e();
            return Ok(());
        }
        if let Some(&n) = self.symbols.get(name) {
            self.symbol_link(n);
            return Ok(());
        }
        self.symbols.insert(name.to_owned(), self.symbol_count);
        self.symbol_count += 1;
        if name.is_ascii() {
            self.out.push(b':');
            return self.bytes(name.as_bytes());
        }
        self.out.extend_from_slice(b"I:");
        self.bytes(name.as_bytes())?;
        self.utf8(b'T')
    }

    /// Appends a key, or a link to it.
    #[inline]
    pub fn key(&mut self, key: &str) -> Result<()> {
        match self.keys.find(key.as_bytes(), &self.out[self.start..]) {
            Seen::Before(n) => {
                self.out.push(b'@');
                put_long(self.out, n as i32);
                Ok(())
            }
            Seen::Never => self.text(key),
            Seen::Not(slot) => {
                // A key is short: its text comes after a length of one byte.
                let at = self.out.len() - self.start + 3;
                self.keys.put(slot, at, key.len(), self.objects);
                self.text(key)
            }
        }
    }

    /// Forgets the keys: what is written has moved.
    pub fn moved(&mut self) {
        self.keys.clear();
    }

    /// Appends an Integer of any size: sign, and magnitude with the least significant byte first.
    fn big(&mut self, negative: bool, magnitude: &[u8]) -> Result<()> {
        let len = magnitude.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
        let magnitude = &magnitude[..len];
        if len <= 4 {
            let mut wide = [0; 8];
            wide[..len].copy_from_slice(magnitude);
            let v = i64::from_le_bytes(wide);
            let v = if negative { -v } else { v };
            if (-(1 << 30)..1 << 30).contains(&v) {
                self.out.push(b'i');
                put_long(self.out, v as i32);
                return Ok(());
            }
        }
        self.enter();
        self.out.extend_from_slice(if negative { b"l-" } else { b"l+" });
        self.length(len.div_ceil(2))?;
        self.out.extend_from_slice(magnitude);
        if len % 2 == 1 {
            self.out.push(0);
        }
        Ok(())
    }

    fn time(&mut self, time: Time) -> Result<()> {
        let (dump, nanos) = native::write_time(time);
        self.out.extend_from_slice(b"Iu");
        self.symbol("Time")?;
        self.bytes(&dump)?;
        self.length(if nanos == 0 { 1 } else { 4 })?;
        self.symbol("zone")?;
        self.enter();
        self.out.extend_from_slice(b"I\"\x08UTC");
        self.utf8(b'F')?;
        if nanos != 0 {
            self.symbol("nano_num")?;
            self.out.push(b'i');
            put_long(self.out, nanos as i32);
            self.symbol("nano_den")?;
            self.out.extend_from_slice(b"i\x06");
            // The same three digits again, two in a byte, for Ruby 1.9.1.
            self.symbol("submicro")?;
            self.enter();
            let digits =
                [(((nanos / 100) << 4) | (nanos / 10 % 10)) as u8, ((nanos % 10) << 4) as u8];
            self.out.push(b'"');
            self.bytes(if digits[1] == 0 { &digits[..1] } else { &digits })?;
        }
        // Ruby counts a Time after what belongs to it.
        self.enter();
        Ok(())
    }

    fn decimal(&mut self, digits: &str) -> Result<()> {
        if !native::is_decimal(digits) {
            let start: String = digits.chars().take(40).collect();
            return Err(Error::unsupported(format!("{start:?} is not a decimal Ruby can read")));
        }
        self.out.push(b'u');
        self.symbol("BigDecimal")?;
        self.length(2 + digits.len())?;
        // The precision 0: Ruby works it out, and we know the digits are as they were.
        self.out.extend_from_slice(b"0:");
        self.out.extend_from_slice(digits.as_bytes());
        self.enter();
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
        self.out.push(if v { b'T' } else { b'F' });
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
    fn serialize_i64(self, v: i64) -> Result<()> {
        self.big(v < 0, &v.unsigned_abs().to_le_bytes())
    }
    fn serialize_i128(self, v: i128) -> Result<()> {
        self.big(v < 0, &v.unsigned_abs().to_le_bytes())
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
        self.big(false, &v.to_le_bytes())
    }
    fn serialize_u128(self, v: u128) -> Result<()> {
        self.big(false, &v.to_le_bytes())
    }
    fn serialize_f32(self, v: f32) -> Result<()> {
        self.serialize_f64(v.into())
    }
    fn serialize_f64(self, v: f64) -> Result<()> {
        self.enter();
        self.out.extend_from_slice(b"f\0");
        let at = self.out.len();
        native::write_float(v, self.out);
        // At most 25 bytes: a length of one byte.
        self.out[at - 1] = (self.out.len() - at) as u8 + 5;
        Ok(())
    }
    fn serialize_char(self, v: char) -> Result<()> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }
    #[inline]
    fn serialize_str(self, v: &str) -> Result<()> {
        if self.in_key { self.key(v) } else { self.text(v) }
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<()> {
        self.enter();
        self.out.push(b'"');
        self.bytes(v)
    }
    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<()> {
        v.serialize(self)
    }
    fn serialize_unit(self) -> Result<()> {
        self.out.push(b'0');
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
        let done = match name {
            TIME => if_text(value, |text| self.time(text.parse()?)),
            DECIMAL => if_text(value, |digits| self.decimal(digits)),
            BIGINT => if_text(value, |digits| {
                let (negative, magnitude) = magnitude_of(digits)?;
                self.big(negative, &magnitude)
            }),
            _ => return value.serialize(self),
        };
        done.unwrap_or_else(|| Err(Error::custom(format_args!("a {name} that is not text"))))
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let mut hash = Compound::hash(self, Some(1))?;
        hash.named(variant, value)?;
        hash.finish()
    }
    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Compound<'a, 'o>> {
        Compound::list(self, len)
    }
    fn serialize_tuple(self, len: usize) -> Result<Compound<'a, 'o>> {
        Compound::list(self, Some(len))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, 'o>> {
        Compound::list(self, Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'o>> {
        Compound::holding(self, variant)?.list_inside(len)
    }
    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Compound<'a, 'o>> {
        Compound::map(self, len)
    }
    #[inline]
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, 'o>> {
        Compound::map(self, Some(len))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'o>> {
        Compound::holding(self, variant)?.hash_inside(len)
    }
}
