//! Reads plain pickles directly from their bytes into serde.
//!
//! Most pickles of records are lists and dicts, each filled right where it is made, of single values
//! and texts. Their opcodes come in the order serde wants values in, so they need no stack. Whether
//! `}` begins an empty dict or one of a single item shows only after that item, and other things
//! (tuples, links to lists) later still: this takes the likely for given, checks that it was so, and
//! answers [`Error`] to all that is not; the caller then has the machine run. What is read here is
//! what the machine would read, since every opcode did what it does on a stack.

mod calls;

use std::marker::PhantomData;

use serde::{
    de::{self, DeserializeSeed, Visitor},
    forward_to_deserialize_any,
};

use super::{
    natives::{self, Item},
    ops::*,
    text::Text,
};
use crate::{
    Error, Result,
    format::objects::{
        limits::{Budget, deeper},
        name::{AsName, Key, ReadText},
    },
    record::native::{BIGINT, DECIMAL, NativeText, TIME},
};

/// Python puts so many items at a time into a list or dict.
const BATCH: usize = 1000;

/// Reads one record by `seed`, if it is plain; `bytes` must hold it and nothing else.
pub(super) fn decode<'de, T: Text<'de>, S: DeserializeSeed<'de>>(
    seed: S,
    bytes: &'de [u8],
) -> Result<S::Value> {
    let mut direct = Direct {
        input: bytes,
        pos: 0,
        memo: Vec::with_capacity((bytes.len() / 8).min(1024)),
        budget: Budget::new(bytes.len()),
        depth: 0,
        text: PhantomData::<T>,
    };
    if let [PROTO, 0..=5, ..] = bytes {
        direct.pos = 2;
    }
    let read = seed.deserialize(&mut direct)?;
    match direct.next()? {
        STOP if direct.pos == bytes.len() => Ok(read),
        _ => Err(odd()),
    }
}

/// Something for the machine.
#[cold]
fn odd() -> Error {
    Error::malformed("not a plain pickle")
}

/// Stands in the bytes of one record.
struct Direct<'de, T> {
    input: &'de [u8],
    pos: usize,
    /// Where the memoized texts begin and end; where lists and dicts are memoized, nowhere.
    memo: Vec<(u32, u32)>,
    budget: Budget,
    depth: usize,
    text: PhantomData<T>,
}

/// A memoized list or dict.
const NOWHERE: (u32, u32) = (u32::MAX, 0);
impl<'de, T: Text<'de>> Direct<'de, T> {
    /// The next opcode, which stays.
    #[inline(always)]
    fn peek(&mut self) -> Result<u8> {
        match self.input.get(self.pos) {
            Some(&FRAME) => self.after_frame(),
            Some(&code) => Ok(code),
            None => Err(odd()),
        }
    }

    /// Passes over the beginning of a frame.
    #[cold]
    fn after_frame(&mut self) -> Result<u8> {
        self.pos += 1;
        let len = u64::from_le_bytes(self.array()?);
        match self.input.get(self.pos) {
            Some(&code) if len <= (self.input.len() - self.pos) as u64 => Ok(code),
            _ => Err(odd()),
        }
    }

    /// The next opcode.
    #[inline(always)]
    fn next(&mut self) -> Result<u8> {
        let code = self.peek()?;
        self.pos += 1;
        Ok(code)
    }

    #[inline(always)]
    fn take(&mut self, n: usize) -> Result<&'de [u8]> {
        match self.input.get(self.pos..).and_then(|rest| rest.get(..n)) {
            Some(bytes) => {
                self.pos += n;
                Ok(bytes)
            }
            None => Err(odd()),
        }
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.input.get(self.pos..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => {
                self.pos += N;
                Ok(*bytes)
            }
            None => Err(odd()),
        }
    }

    /// Memoizes what lies between two offsets, if the next opcode says so.
    #[inline(always)]
    fn memoize(&mut self, from: u32, to: u32) -> Result<()> {
        match self.input.get(self.pos) {
            Some(&MEMOIZE) => {
                self.pos += 1;
                self.memo.push((from, to));
                Ok(())
            }
            Some(&(BINPUT | LONG_BINPUT | FRAME)) => self.other_memoize(from, to),
            _ => Ok(()),
        }
    }

    fn other_memoize(&mut self, from: u32, to: u32) -> Result<()> {
        let n = match self.peek()? {
            MEMOIZE => self.memo.len(),
            BINPUT | LONG_BINPUT => self.memo_number()?,
            _ => return Ok(()),
        };
        self.pos += 1;
        if n != self.memo.len() {
            return Err(odd());
        }
        self.memo.push((from, to));
        Ok(())
    }

    /// The number after an opcode, of one byte or four; leaves off one before its end.
    fn memo_number(&mut self) -> Result<usize> {
        match self.next()? {
            BINPUT | BINGET => self.input.get(self.pos).map(|&n| n.into()).ok_or_else(odd),
            _ => {
                let n = u32::from_le_bytes(self.array()?);
                self.pos -= 1;
                Ok(n as usize)
            }
        }
    }

    /// The text whose opcode this is, if it is one for text or a link to text.
    #[inline(always)]
    fn text(&mut self, code: u8) -> Result<Option<&'de [u8]>> {
        let len = match code {
            SHORT_BINUNICODE => {
                let [len] = self.array()?;
                usize::from(len)
            }
            BINGET => {
                let [n] = self.array()?;
                return self.linked(n.into()).map(Some);
            }
            BINUNICODE => u32::from_le_bytes(self.array()?) as usize,
            LONG_BINGET => {
                let n = u32::from_le_bytes(self.array()?);
                return self.linked(n as usize).map(Some);
            }
            _ => return Ok(None),
        };
        let bytes = self.take(len)?;
        self.memoize((self.pos - len) as u32, self.pos as u32)?;
        Ok(Some(bytes))
    }

    #[inline(always)]
    fn linked(&mut self, n: usize) -> Result<&'de [u8]> {
        match self.memo.get(n) {
            Some(&(from, to)) if from <= to => {
                self.budget.spend(8 + (to - from) as usize)?;
                Ok(&self.input[from as usize..to as usize])
            }
            _ => Err(odd()),
        }
    }

    /// A list or dict after its first opcode: `MANY` or `ONE` ends it.
    #[inline]
    fn inside<R, const MANY: u8, const ONE: u8>(
        &mut self,
        read: impl FnOnce(&mut Items<'_, 'de, T, MANY, ONE>) -> Result<R>,
    ) -> Result<R> {
        self.depth = deeper(self.depth)?;
        self.memoize(NOWHERE.0, NOWHERE.1)?;
        let left = match self.peek()? {
            MARK => {
                self.pos += 1;
                Left::All
            }
            // What ends something around it, or the whole: it is empty.
            SETITEM | SETITEMS | APPEND | APPENDS | STOP => Left::Nothing,
            _ => Left::One,
        };
        let mut items = Items { direct: self, left, count: 0 };
        let done = read(&mut items)?;
        match items.left {
            Left::Nothing => {}
            _ => return Err(odd()),
        }
        self.depth -= 1;
        Ok(done)
    }

    #[inline]
    fn visit_list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        self.inside::<_, APPENDS, APPEND>(|items| visitor.visit_seq(items))
    }

    #[inline]
    fn visit_map<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        self.inside::<_, SETITEMS, SETITEM>(|items| visitor.visit_map(items))
    }

    /// Hands the value whose opcode this is to a visitor that takes anything.
    #[inline]
    fn visit<V: Visitor<'de>>(&mut self, code: u8, visitor: V) -> Result<V::Value> {
        if let Some(made) = self.made(code)? {
            return natives::visit(made, visitor);
        }
        if let Some(text) = self.text(code)? {
            return T::visit(text, visitor);
        }
        match code {
            EMPTY_DICT => self.visit_map(visitor),
            EMPTY_LIST => self.visit_list(visitor),
            NONE => visitor.visit_unit(),
            NEWTRUE => visitor.visit_bool(true),
            NEWFALSE => visitor.visit_bool(false),
            BININT1 => {
                let [v] = self.array()?;
                visitor.visit_i64(v.into())
            }
            BININT2 => visitor.visit_i64(u16::from_le_bytes(self.array()?).into()),
            BININT => visitor.visit_i64(i32::from_le_bytes(self.array()?).into()),
            LONG1 => {
                let [len] = self.array()?;
                let bytes = self.take(len.into())?;
                if bytes.len() > 8 {
                    return Err(odd());
                }
                let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
                let mut wide = [if negative { 0xff } else { 0 }; 8];
                wide[..bytes.len()].copy_from_slice(bytes);
                visitor.visit_i64(i64::from_le_bytes(wide))
            }
            BINFLOAT => visitor.visit_f64(f64::from_bits(u64::from_be_bytes(self.array()?))),
            SHORT_BINBYTES => {
                let bytes = self.bytes()?;
                visitor.visit_borrowed_bytes(bytes)
            }
            _ => Err(odd()),
        }
    }

    /// Short bytes, after their opcode.
    fn bytes(&mut self) -> Result<&'de [u8]> {
        let [len] = self.array()?;
        let bytes = self.take(len.into())?;
        self.memoize(NOWHERE.0, NOWHERE.1)?;
        Ok(bytes)
    }
}

/// What is left of a list or dict.
#[derive(Clone, Copy)]
enum Left {
    Nothing,
    /// A single item, to be read.
    One,
    /// The end of a single item.
    End,
    /// All up to the end of many.
    All,
}

/// The items of a list, or the keys and values of a dict, and the opcodes that end many and one.
struct Items<'a, 'de, T, const MANY: u8, const ONE: u8> {
    direct: &'a mut Direct<'de, T>,
    left: Left,
    count: usize,
}

impl<'de, T: Text<'de>, const MANY: u8, const ONE: u8> Items<'_, 'de, T, MANY, ONE> {
    /// True if another item comes.
    #[inline(always)]
    fn more(&mut self) -> Result<bool> {
        match self.left {
            Left::Nothing => Ok(false),
            Left::One => {
                self.left = Left::End;
                Ok(true)
            }
            Left::End => {
                self.left = Left::Nothing;
                if self.direct.next()? == ONE { Ok(false) } else { Err(odd()) }
            }
            Left::All => {
                if self.direct.peek()? != MANY {
                    self.count += 1;
                    return Ok(true);
                }
                self.direct.pos += 1;
                self.left = Left::Nothing;
                // After a full batch another may come.
                if self.count > 0 && self.count.is_multiple_of(BATCH) {
                    Err(odd())
                } else {
                    Ok(false)
                }
            }
        }
    }

    fn hint(&self) -> Option<usize> {
        match self.left {
            Left::Nothing | Left::End => Some(0),
            Left::One => Some(1),
            Left::All => None,
        }
    }
}

impl<'de, T: Text<'de>, const MANY: u8, const ONE: u8> de::SeqAccess<'de>
    for &mut Items<'_, 'de, T, MANY, ONE>
{
    type Error = Error;
    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        match self.more()? {
            true => seed.deserialize(&mut *self.direct).map(Some),
            false => Ok(None),
        }
    }
    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

impl<'de, T: Text<'de>, const MANY: u8, const ONE: u8> de::MapAccess<'de>
    for &mut Items<'_, 'de, T, MANY, ONE>
{
    type Error = Error;
    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        match self.more()? {
            true => seed.deserialize(Key(&mut *self.direct)).map(Some),
            false => Ok(None),
        }
    }
    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.direct)
    }
    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

impl<'de, T: Text<'de>> ReadText<'de> for &mut Direct<'de, T> {
    #[inline]
    fn read_text<V: Visitor<'de>>(self, key: bool, visitor: V) -> Result<V::Value> {
        let code = self.next()?;
        match self.text(code)? {
            Some(text) => T::visit(text, visitor),
            None if code == SHORT_BINBYTES => {
                let bytes = self.bytes()?;
                <&str>::visit(bytes, visitor)
            }
            None if key => self.visit(code, AsName { inner: visitor, numbers: true }),
            None => self.visit(code, visitor),
        }
    }

    #[inline]
    fn read_key<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let code = self.next()?;
        match self.text(code)? {
            Some(text) => T::visit(text, visitor),
            None => self.visit(code, AsName { inner: visitor, numbers: false }),
        }
    }
}

impl<'de, T: Text<'de>> de::Deserializer<'de> for &mut Direct<'de, T> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let code = self.next()?;
        self.visit(code, visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.read_text(false, visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let code = self.next()?;
        match self.text(code)? {
            Some(bytes) => visitor.visit_borrowed_bytes(bytes),
            None => self.visit(code, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.peek()? == NONE {
            self.pos += 1;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        if ![TIME, DECIMAL, BIGINT].contains(&name) {
            return visitor.visit_newtype_struct(self);
        }
        let code = self.next()?;
        match (name, self.made(code)?) {
            (TIME, Some(Item::Time(micros))) => {
                NativeText::from(natives::time(micros)?).deserialize_newtype_struct(TIME, visitor)
            }
            _ => Err(odd()),
        }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.next()? {
            EMPTY_LIST => self.visit_list(visitor),
            code => self.visit(code, visitor),
        }
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.next()? {
            EMPTY_DICT => self.visit_map(visitor),
            code => self.visit(code, visitor),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value> {
        Err(odd())
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 unit unit_struct ignored_any
    }
}
