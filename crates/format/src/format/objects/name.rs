//! Keys of any kind as names.
//!
//! Ruby's and Python's maps have keys of any kind; a record has names. Where a name is wanted,
//! single values are met half-way: numbers and decimals by their digits, nothing as `null`, truth
//! as `true` and `false`.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};

use crate::{Error, Result};

/// A deserializer that can be asked for text that is a key.
pub(crate) trait ReadText<'de>: Deserializer<'de, Error = Error> {
    /// Text; if it is a `key`, single values of other kinds as text too.
    fn read_text<V: Visitor<'de>>(self, key: bool, visitor: V) -> Result<V::Value>;
    /// A key of whatever kind; single values that are neither text nor whole numbers as text.
    fn read_key<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value>;
}

/// A key: where a name is wanted, single values are turned into one.
pub(crate) struct Key<D>(pub D);

macro_rules! keys {
    ($($method:ident($($arg:ident: $type:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value> {
            self.0.$method($($arg,)* visitor)
        })*
    };
}

impl<'de, D: ReadText<'de>> Deserializer<'de> for Key<D> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }
    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.0.read_key(visitor)
    }
    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.0.read_text(true, visitor)
    }
    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.0.read_text(true, visitor)
    }
    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.0.read_text(true, visitor)
    }
    keys! {
        deserialize_bool(); deserialize_char();
        deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64(); deserialize_i128();
        deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64(); deserialize_u128();
        deserialize_f32(); deserialize_f64(); deserialize_bytes(); deserialize_byte_buf();
        deserialize_option(); deserialize_unit(); deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str); deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize); deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_ignored_any();
    }
}

/// A visitor for a key, that turns single values into text for the visitor inside.
pub(crate) struct AsName<V> {
    /// Who gets the name.
    pub inner: V,
    /// Whole numbers become text too; else they are passed on as they are.
    pub numbers: bool,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for AsName<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }
    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_str("null")
    }
    fn visit_bool<E: de::Error>(self, v: bool) -> Result<V::Value, E> {
        self.inner.visit_str(if v { "true" } else { "false" })
    }
    fn visit_i64<E: de::Error>(self, v: i64) -> Result<V::Value, E> {
        if self.numbers { self.inner.visit_string(v.to_string()) } else { self.inner.visit_i64(v) }
    }
    fn visit_u64<E: de::Error>(self, v: u64) -> Result<V::Value, E> {
        if self.numbers { self.inner.visit_string(v.to_string()) } else { self.inner.visit_u64(v) }
    }
    fn visit_i128<E: de::Error>(self, v: i128) -> Result<V::Value, E> {
        self.inner.visit_string(v.to_string())
    }
    fn visit_f64<E: de::Error>(self, v: f64) -> Result<V::Value, E> {
        self.inner.visit_string(format!("{v:?}"))
    }
    fn visit_str<E: de::Error>(self, v: &str) -> Result<V::Value, E> {
        self.inner.visit_str(v)
    }
    fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<V::Value, E> {
        self.inner.visit_borrowed_str(v)
    }
    fn visit_string<E: de::Error>(self, v: String) -> Result<V::Value, E> {
        self.inner.visit_string(v)
    }
    fn visit_bytes<E: de::Error>(self, v: &[u8]) -> Result<V::Value, E> {
        match std::str::from_utf8(v) {
            Ok(text) => self.inner.visit_str(text),
            Err(_) => self.inner.visit_bytes(v),
        }
    }
    fn visit_borrowed_bytes<E: de::Error>(self, v: &'de [u8]) -> Result<V::Value, E> {
        match std::str::from_utf8(v) {
            Ok(text) => self.inner.visit_borrowed_str(text),
            Err(_) => self.inner.visit_borrowed_bytes(v),
        }
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(d)
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(seq)
    }
    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(map)
    }
    /// A native value: only its text counts.
    fn visit_enum<A: de::EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        use de::VariantAccess;
        let (_, payload) = data.variant::<de::IgnoredAny>()?;
        self.inner.visit_string(payload.newtype_variant()?)
    }
}
