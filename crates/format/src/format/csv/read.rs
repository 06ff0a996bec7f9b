//! A line of names and a line of values, read as any type serde can build.

use std::borrow::Cow;

use serde::{
    Deserializer,
    de::{self, DeserializeSeed, IntoDeserializer, Visitor, value::CowStrDeserializer},
    forward_to_deserialize_any,
};

use super::Cells;
use crate::{Error, Result};

/// A row under its header.
pub(super) struct Row<'a> {
    pub names: Cells<'a>,
    pub values: Cells<'a>,
    /// Where the line of values begins, for errors.
    pub at: usize,
}

impl<'de> Deserializer<'de> for Row<'_> {
    type Error = Error;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let at = self.at as u64;
        let (names, values) = (self.names.clone().count(), self.values.clone().count());
        if names != values {
            return Err(Error::malformed(format!("{values} values for {names} names")).at(at));
        }
        visitor.visit_map(Entries { names: self.names, values: self.values })
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Entries<'a> {
    names: Cells<'a>,
    values: Cells<'a>,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some(name) = self.names.next() else { return Ok(None) };
        let name: CowStrDeserializer<'_, Error> = name?.into_deserializer();
        seed.deserialize(name).map(Some)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        match self.values.next() {
            Some(text) => seed.deserialize(Cell(text?)),
            None => Err(Error::malformed("fewer values than names")),
        }
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.values.clone().count())
    }
}

/// A cell: text, or what the type asked for spells so.
struct Cell<'a>(Cow<'a, str>);

macro_rules! spelled {
    ($($method:ident $visit:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.0.parse() {
                Ok(v) => visitor.$visit(v),
                Err(_) => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Cell<'_> {
    type Error = Error;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match &*self.0 {
            "" => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match &*self.0 {
            "" => visitor.visit_unit(),
            _ => self.deserialize_any(visitor),
        }
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_enum(IntoDeserializer::<Error>::into_deserializer(&*self.0))
    }
    spelled! {
        deserialize_bool visit_bool;
        deserialize_i8 visit_i8;
        deserialize_i16 visit_i16;
        deserialize_i32 visit_i32;
        deserialize_i64 visit_i64;
        deserialize_i128 visit_i128;
        deserialize_u8 visit_u8;
        deserialize_u16 visit_u16;
        deserialize_u32 visit_u32;
        deserialize_u64 visit_u64;
        deserialize_u128 visit_u128;
        deserialize_f32 visit_f32;
        deserialize_f64 visit_f64;
    }
    forward_to_deserialize_any! {
        char str string bytes byte_buf seq tuple tuple_struct map struct identifier ignored_any
    }
}
