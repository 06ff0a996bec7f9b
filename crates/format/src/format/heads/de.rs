//! From bytes to serde.

use serde::{
    de::{
        self, DeserializeSeed, Visitor,
        value::{BorrowedStrDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{Head, Heads, Reader};
use crate::{
    Error, Result,
    format::objects::whole::Whole,
    record::native::{BIGINT, DECIMAL, Native, NativeText, TIME},
};

impl<'de, H: Heads> Reader<'de, H> {
    #[inline]
    fn visit<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let at = self.pos;
        match H::head(self)? {
            Head::Text(bytes) => visit_text(bytes, visitor),
            Head::Map(count) => self.visit_map(count, visitor),
            Head::List(count) => self.visit_list(count, visitor),
            Head::Whole(whole) => whole.visit(visitor),
            Head::Float(v) => visitor.visit_f64(v),
            Head::Null => visitor.visit_unit(),
            Head::Bool(v) => visitor.visit_bool(v),
            Head::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Head::Joined { text, bytes } => match String::from_utf8(bytes) {
                Ok(joined) if text => visitor.visit_string(joined),
                Ok(joined) => visitor.visit_byte_buf(joined.into_bytes()),
                Err(e) => visitor.visit_byte_buf(e.into_bytes()),
            },
            Head::Time(time) => visitor.visit_enum(Native::time(time)),
            Head::Native(name, text) => visitor.visit_enum(Native::new(name, text)),
            Head::Extension(kind, bytes) => Err(extension(kind, bytes).at(at as u64)),
        }
    }

    #[inline]
    fn visit_list<V: Visitor<'de>>(&mut self, count: Option<u64>, visitor: V) -> Result<V::Value> {
        self.deeper()?;
        let mut items = Items { reader: self, left: count };
        let read = visitor.visit_seq(&mut items)?;
        items.end()?;
        self.depth -= 1;
        Ok(read)
    }

    #[inline]
    fn visit_map<V: Visitor<'de>>(&mut self, count: Option<u64>, visitor: V) -> Result<V::Value> {
        self.deeper()?;
        let mut items = Items { reader: self, left: count };
        let read = visitor.visit_map(&mut items)?;
        items.end()?;
        self.depth -= 1;
        Ok(read)
    }
}

/// Text; what is not UTF-8 is handed over as bytes.
#[inline]
fn visit_text<'de, V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value> {
    match std::str::from_utf8(bytes) {
        Ok(text) => visitor.visit_borrowed_str(text),
        Err(_) => visitor.visit_borrowed_bytes(bytes),
    }
}

impl<'de, H: Heads> de::Deserializer<'de> for &mut Reader<'de, H> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let before = self.pos;
        if let Head::Null = H::head(self)? {
            return visitor.visit_none();
        }
        self.pos = before;
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
        let before = self.pos;
        let text = match H::head(self)? {
            Head::Time(time) if name == TIME => {
                return NativeText::from(time).deserialize_newtype_struct(TIME, visitor);
            }
            Head::Native(native, text) if native == name => text,
            Head::Whole(whole) if name != TIME => whole.into_digits(),
            _ => {
                self.pos = before;
                return visitor.visit_newtype_struct(self);
            }
        };
        visitor.visit_newtype_struct(StringDeserializer::<Error>::new(text))
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let before = self.pos;
        match H::head(self)? {
            Head::Text(bytes) => visit_text(bytes, visitor),
            Head::Native(_, text) => visitor.visit_string(text),
            Head::Time(time) => visitor.visit_string(time.to_string()),
            _ => {
                self.pos = before;
                self.visit(visitor)
            }
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let before = self.pos;
        match H::head(self)? {
            Head::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(variant) => visitor.visit_enum(BorrowedStrDeserializer::<Error>::new(variant)),
                Err(_) => Err(self.wrong("a variant's name that is not UTF-8")),
            },
            Head::Map(Some(1)) => {
                self.deeper()?;
                let read = visitor.visit_enum(Variant(&mut *self))?;
                self.depth -= 1;
                Ok(read)
            }
            other => {
                self.pos = before;
                let what = other.what();
                Err(self.wrong(format!(
                    "{what} for the enum {name}, instead of a variant's name or a map of one"
                )))
            }
        }
    }

    /// A number of more than 64 bits may have been written as text.
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let before = self.pos;
        if let Head::Text(digits) = H::head(self)?
            && let Some(v) = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok())
        {
            return visitor.visit_i128(v);
        }
        self.pos = before;
        self.visit(visitor)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let before = self.pos;
        match H::head(self)? {
            Head::Whole(Whole::U128(v)) => return visitor.visit_u128(v),
            Head::Text(digits) => {
                if let Some(v) = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok()) {
                    return visitor.visit_u128(v);
                }
            }
            _ => {}
        }
        self.pos = before;
        self.visit(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let before = self.pos;
        if let Head::Native(DECIMAL | BIGINT, digits) = H::head(self)?
            && let Ok(v) = digits.parse()
        {
            return visitor.visit_f64(v);
        }
        self.pos = before;
        self.visit(visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_f64(visitor)
    }

    /// Some programs write nothing as a list of nothing.
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.peek() == Some(H::LIST.least) {
            self.pos += 1;
            return visitor.visit_unit();
        }
        self.visit(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 char bytes byte_buf seq tuple tuple_struct map struct
    }
}

/// The values in a list, or the names and values in a map.
struct Items<'a, 'de, H> {
    reader: &'a mut Reader<'de, H>,
    /// Values or pairs to come; none where a break ends them.
    left: Option<u64>,
}

impl<'de, H: Heads> Items<'_, 'de, H> {
    /// Each value is at least a byte, so no more can come than there are bytes.
    fn hint(&self) -> Option<usize> {
        let room = self.reader.rest().len();
        Some(usize::try_from(self.left?).map_or(room, |n| n.min(room)))
    }

    /// All must have been read; a type may have wanted fewer.
    fn end(mut self) -> Result<()> {
        match self.reader.more(&mut self.left)? {
            true => Err(self.reader.wrong("more values than the type wants")),
            false => Ok(()),
        }
    }
}

impl<'de, H: Heads> de::SeqAccess<'de> for Items<'_, 'de, H> {
    type Error = Error;
    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        match self.reader.more(&mut self.left)? {
            true => seed.deserialize(&mut *self.reader).map(Some),
            false => Ok(None),
        }
    }
    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

impl<'de, H: Heads> de::MapAccess<'de> for Items<'_, 'de, H> {
    type Error = Error;
    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        match self.reader.more(&mut self.left)? {
            true => seed.deserialize(&mut *self.reader).map(Some),
            false => Ok(None),
        }
    }
    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.reader)
    }
    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

/// The name of a variant comes, then what it holds.
struct Variant<'a, 'de, H>(&'a mut Reader<'de, H>);

impl<'de, H: Heads> de::EnumAccess<'de> for Variant<'_, 'de, H> {
    type Error = Error;
    type Variant = Self;
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'de, H: Heads> de::VariantAccess<'de> for Variant<'_, 'de, H> {
    type Error = Error;
    fn unit_variant(self) -> Result<()> {
        de::Deserialize::deserialize(self.0)
    }
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        seed.deserialize(self.0)
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        de::Deserializer::deserialize_seq(self.0, visitor)
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        de::Deserializer::deserialize_map(self.0, visitor)
    }
}

/// Why an extension is no value: read as a list of its number and its bytes it would be one of those.
#[cold]
fn extension(kind: i8, bytes: &[u8]) -> Error {
    let len = bytes.len();
    Error::malformed(match kind {
        -1 => "an invalid timestamp, or one outside the years -9999 to 9999".to_owned(),
        _ => format!(
            "an extension of type {kind} ({len} bytes), which only the program that wrote it can \
             read; have it write plain values"
        ),
    })
}
