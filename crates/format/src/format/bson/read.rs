//! A raw document of the bson crate, read as any type serde can build.

use std::{collections::BTreeMap, fmt::Display};

use bson::raw::{RawBsonRef, RawDocument, RawElement, RawIter};
use serde::{
    Deserializer,
    de::{
        self, DeserializeSeed, Error as _, IntoDeserializer, Visitor,
        value::{BorrowedStrDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};

use crate::{
    Error, ErrorKind, Result,
    format::{DEPTH, caused},
    record::{
        Time,
        native::{DECIMAL, Native, TIME},
    },
};

/// One value of a document, and how many levels may still open below it.
pub(super) struct Reader<'de> {
    value: RawBsonRef<'de>,
    depth: usize,
}

/// A date beyond our years, as canonical Extended JSON has it; the crate would change it.
fn far_date(at: bson::DateTime) -> BTreeMap<&'static str, BTreeMap<&'static str, String>> {
    let millis = at.timestamp_millis().to_string();
    BTreeMap::from([("$date", BTreeMap::from([("$numberLong", millis)]))])
}

fn malformed(e: impl Display + Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    caused(ErrorKind::Malformed, "unexpected BSON", e)
}

impl<'de> Reader<'de> {
    /// The document that `bytes` hold, and nothing else.
    pub(super) fn document(bytes: &'de [u8]) -> Result<Self> {
        let value = RawBsonRef::Document(RawDocument::from_bytes(bytes).map_err(malformed)?);
        Ok(Reader { value, depth: DEPTH })
    }

    fn deeper(&self, elements: RawIter<'de>) -> Result<Elements<'de>> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Elements { elements, value: None, depth }),
            None => Err(Error::malformed(format!("nested deeper than {DEPTH} levels"))),
        }
    }

    /// The name and the text of a native kind, where this is one.
    fn native(&self) -> Option<(&'static str, String)> {
        match self.value {
            RawBsonRef::DateTime(at) => {
                let millis = at.timestamp_millis();
                let nanoseconds = millis.rem_euclid(1000) as u32 * 1_000_000;
                // MongoDB's years go beyond ours; those stay Extended JSON.
                let time = Time::from_unix(millis.div_euclid(1000), nanoseconds).ok()?;
                Some((TIME, time.to_string()))
            }
            // What is no number stays Extended JSON too: decimals of ours are numbers.
            RawBsonRef::Decimal128(decimal) => {
                let text = decimal.to_string();
                text.ends_with(|c: char| c.is_ascii_digit()).then_some((DECIMAL, text))
            }
            _ => None,
        }
    }
}

/// Numbers that BSON has no room for were written as text: see `write.rs`.
macro_rules! spelled {
    ($($method:ident $visit:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.value {
                RawBsonRef::String(digits) => match digits.parse() {
                    Ok(v) => visitor.$visit(v),
                    Err(_) => visitor.visit_borrowed_str(digits),
                },
                _ => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.value {
            RawBsonRef::String(v) => visitor.visit_borrowed_str(v),
            RawBsonRef::Document(v) => visitor.visit_map(self.deeper(v.iter_elements())?),
            RawBsonRef::Array(v) => {
                let items = RawDocument::from_bytes(v.as_bytes()).map_err(malformed)?;
                visitor.visit_seq(self.deeper(items.iter_elements())?)
            }
            RawBsonRef::Int32(v) => visitor.visit_i32(v),
            RawBsonRef::Int64(v) => visitor.visit_i64(v),
            RawBsonRef::Double(v) => visitor.visit_f64(v),
            RawBsonRef::Boolean(v) => visitor.visit_bool(v),
            RawBsonRef::Null => visitor.visit_unit(),
            RawBsonRef::Binary(v) if v.subtype == bson::spec::BinarySubtype::Generic => {
                visitor.visit_borrowed_bytes(v.bytes)
            }
            other => match self.native() {
                Some((name, text)) => visitor.visit_enum(Native::new(name, text)),
                None => {
                    if let RawBsonRef::DateTime(at) = other {
                        return far_date(at).into_deserializer().deserialize_any(visitor);
                    }
                    if let RawBsonRef::Decimal128(decimal) = other {
                        let map = BTreeMap::from([("$numberDecimal", decimal.to_string())]);
                        return map.into_deserializer().deserialize_any(visitor);
                    }
                    let other = bson::Bson::try_from(other).map_err(malformed)?;
                    bson::Deserializer::new(other).deserialize_any(visitor).map_err(malformed)
                }
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.value {
            RawBsonRef::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        match self.native() {
            Some((native, text)) if native == name => {
                let text: StringDeserializer<Error> = text.into_deserializer();
                visitor.visit_newtype_struct(text)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match (&self.value, self.native()) {
            (_, Some((_, text))) => visitor.visit_string(text),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.value {
            RawBsonRef::String(variant) => {
                visitor.visit_enum(IntoDeserializer::<Error>::into_deserializer(variant))
            }
            RawBsonRef::Document(map) => {
                let map = self.deeper(map.iter_elements())?;
                visitor.visit_enum(de::value::MapAccessDeserializer::new(map))
            }
            _ => Err(Error::custom(format_args!(
                "neither a variant's name nor a map of one where the enum {name} should be"
            ))),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    spelled! {
        deserialize_u64 visit_u64;
        deserialize_i128 visit_i128;
        deserialize_u128 visit_u128;
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 f32 f64 char bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier
    }
}

/// What is inside a document or an array.
struct Elements<'de> {
    elements: RawIter<'de>,
    value: Option<RawElement<'de>>,
    depth: usize,
}

impl<'de> Elements<'de> {
    #[inline]
    fn read<T: DeserializeSeed<'de>>(
        &self,
        element: &RawElement<'de>,
        seed: T,
    ) -> Result<T::Value> {
        let value = element.value().map_err(malformed)?;
        seed.deserialize(Reader { value, depth: self.depth })
    }
}

impl<'de> de::SeqAccess<'de> for Elements<'de> {
    type Error = Error;
    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        match self.elements.next() {
            Some(element) => self.read(&element.map_err(malformed)?, seed).map(Some),
            None => Ok(None),
        }
    }
}

impl<'de> de::MapAccess<'de> for Elements<'de> {
    type Error = Error;
    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some(element) = self.elements.next() else { return Ok(None) };
        let element = element.map_err(malformed)?;
        let name = BorrowedStrDeserializer::<Error>::new(element.key().as_str());
        self.value = Some(element);
        seed.deserialize(name).map(Some)
    }
    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        match self.value.take() {
            Some(element) => self.read(&element, seed),
            None => Err(Error::custom("a value asked for before its name")),
        }
    }
}
