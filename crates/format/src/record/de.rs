//! A [`Value`] read as any type serde can build.

use serde::{
    Deserializer,
    de::{
        self, DeserializeOwned, Error as _, IntoDeserializer, Visitor, value::StringDeserializer,
    },
    forward_to_deserialize_any,
};

use super::{
    Document, Value,
    native::{BIGINT, DECIMAL, Native, TIME},
};
use crate::{Error, Result};

/// Builds a `T` from a value: the way back from [`to_value`](super::to_value).
///
/// `&Value` is a [`Deserializer`] too, and lends its text: `T::deserialize(&value)`.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed), saying what was expected and what is there.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T> {
    T::deserialize(value)
}

/// The text of a value that has one: text itself, and the kinds that travel as text.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::Text(s) => Some(s.clone()),
        Value::Time(t) => Some(t.to_string()),
        Value::Decimal(digits) | Value::BigInt(digits) => Some(digits.to_string()),
        _ => None,
    }
}

/// Text and bytes as serde's visitor is given them: for good, or lent.
trait Give<'de> {
    fn give<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value>;
}

macro_rules! give {
    ($($type:ty, $visit:ident;)*) => {
        $(impl<'de> Give<'de> for $type {
            fn give<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
                visitor.$visit(self)
            }
        })*
    };
}

give! {
    String, visit_string;
    &'de String, visit_borrowed_str;
    &'de str, visit_borrowed_str;
    Vec<u8>, visit_byte_buf;
    &'de Vec<u8>, visit_borrowed_bytes;
}

/// The name of an entry. A type with numbers for names gets the number the name spells.
struct Key<T>(T);

impl<'de, T> IntoDeserializer<'de, Error> for Key<T>
where
    T: Give<'de> + AsRef<str>,
{
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! spelled {
    ($($method:ident $visit:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.0.as_ref().parse() {
                Ok(v) => visitor.$visit(v),
                Err(_) => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de, T> Deserializer<'de> for Key<T>
where
    T: Give<'de> + AsRef<str>,
{
    type Error = Error;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.0.give(visitor)
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
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
        visitor.visit_enum(IntoDeserializer::<Error>::into_deserializer(self.0.as_ref()))
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
    }
    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// The name of an entry, as a deserializer.
pub(crate) fn spelled_name<'de>(name: String) -> impl Deserializer<'de, Error = Error> {
    Key(name)
}

fn given(map: Document) -> impl Iterator<Item = (Key<String>, Value)> {
    map.into_iter().map(|(name, value)| (Key(name), value))
}

fn lent(map: &Document) -> impl Iterator<Item = (Key<&str>, &Value)> {
    map.iter().map(|(name, value)| (Key(name), value))
}

/// Whole numbers beyond 64 bits, where a type asks for just that.
macro_rules! wide {
    ($($method:ident $visit:ident $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match &self {
                Value::BigInt(digits) => match digits.parse::<$type>() {
                    Ok(n) => visitor.$visit(n),
                    Err(_) => Err(Error::custom(format_args!(
                        "the number {digits} is out of range for {}", stringify!($type)
                    ))),
                },
                _ => self.deserialize_any(visitor),
            }
        })*
    };
}

/// The same for a value given away and for one borrowed; only how things are handed over differs.
macro_rules! deserializer {
    ($value:ty, $entries:ident) => {
        impl<'de> IntoDeserializer<'de, Error> for $value {
            type Deserializer = Self;
            fn into_deserializer(self) -> Self {
                self
            }
        }

        impl<'de> Deserializer<'de> for $value {
            type Error = Error;

            fn is_human_readable(&self) -> bool {
                false
            }

            fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
                match self {
                    Value::Null => visitor.visit_unit(),
                    Value::Bool(v) => visitor.visit_bool(v.to_owned()),
                    Value::Int(v) => visitor.visit_i64(v.to_owned()),
                    Value::BigInt(digits) => match digits.parse() {
                        Ok(v) => visitor.visit_u64(v),
                        Err(_) => visitor.visit_enum(Native::new(BIGINT, digits.to_string())),
                    },
                    Value::Float(v) => visitor.visit_f64(v.to_owned()),
                    Value::Decimal(digits) => {
                        visitor.visit_enum(Native::new(DECIMAL, digits.to_string()))
                    }
                    Value::Text(v) => v.give(visitor),
                    Value::Bytes(v) => v.give(visitor),
                    Value::Time(v) => visitor.visit_enum(Native::new(TIME, v.to_string())),
                    Value::List(v) => {
                        let mut list = de::value::SeqDeserializer::new(v.into_iter());
                        let read = visitor.visit_seq(&mut list)?;
                        list.end().map(|()| read)
                    }
                    Value::Map(v) => {
                        let mut map = de::value::MapDeserializer::new($entries(v));
                        let read = visitor.visit_map(&mut map)?;
                        map.end().map(|()| read)
                    }
                }
            }

            fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
                match self {
                    Value::Null => visitor.visit_none(),
                    _ => visitor.visit_some(self),
                }
            }

            fn deserialize_newtype_struct<V: Visitor<'de>>(
                self,
                name: &'static str,
                visitor: V,
            ) -> Result<V::Value> {
                match written(&self) {
                    Some(text) if [TIME, DECIMAL, BIGINT].contains(&name) => {
                        let text: StringDeserializer<Error> = text.into_deserializer();
                        visitor.visit_newtype_struct(text)
                    }
                    _ => visitor.visit_newtype_struct(self),
                }
            }

            fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
                match (&self, written(&self)) {
                    (Value::Text(_), _) | (_, None) => self.deserialize_any(visitor),
                    (_, Some(text)) => visitor.visit_string(text),
                }
            }

            fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
                self.deserialize_str(visitor)
            }

            fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
                match &self {
                    Value::Decimal(digits) => match digits.parse() {
                        Ok(v) => visitor.visit_f64(v),
                        Err(_) => Err(Error::custom(format_args!("{digits:?} is not a number"))),
                    },
                    _ => self.deserialize_any(visitor),
                }
            }

            fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
                self.deserialize_f64(visitor)
            }

            wide! {
                deserialize_i128 visit_i128 i128;
                deserialize_u128 visit_u128 u128;
            }

            fn deserialize_enum<V: Visitor<'de>>(
                self,
                name: &'static str,
                _: &'static [&'static str],
                visitor: V,
            ) -> Result<V::Value> {
                match self {
                    Value::Text(variant) => {
                        let variant = variant.as_str();
                        visitor.visit_enum(IntoDeserializer::<Error>::into_deserializer(variant))
                    }
                    Value::Map(map) if map.len() == 1 => {
                        let map = de::value::MapDeserializer::new($entries(map));
                        visitor.visit_enum(de::value::MapAccessDeserializer::new(map))
                    }
                    other => Err(Error::custom(format_args!(
                        "a {} for the enum {name}, instead of a variant's name or a map of one",
                        other.kind().name()
                    ))),
                }
            }

            forward_to_deserialize_any! {
                bool i8 i16 i32 i64 u8 u16 u32 u64 char bytes byte_buf unit unit_struct
                seq tuple tuple_struct map struct identifier ignored_any
            }
        }
    };
}

deserializer! { Value, given }
deserializer! { &'de Value, lent }

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::record::{Time, to_value};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Point,
        Circle(f64),
        Line(i32, i32),
        Box { w: u8, h: u8 },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Everything {
        yes: bool,
        wide: i128,
        big: u64,
        sign: char,
        text: String,
        none: Option<u8>,
        some: Option<Option<i8>>,
        unit: (),
        pair: (u8, String),
        shapes: Vec<Shape>,
        numbered: BTreeMap<u16, f32>,
        when: Time,
        any: Value,
    }

    fn everything() -> Everything {
        Everything {
            yes: true,
            wide: i128::MIN,
            big: u64::MAX,
            sign: 'ü',
            text: "text".into(),
            none: None,
            some: Some(Some(-1)),
            unit: (),
            pair: (7, "seven".into()),
            shapes: vec![
                Shape::Point,
                Shape::Circle(0.5),
                Shape::Line(1, -1),
                Shape::Box { w: 1, h: 2 },
            ],
            numbered: [(3, 1.5), (60_000, -2.0)].into(),
            when: Time::from_unix(1_000_000_000, 17).unwrap(),
            any: Value::List(vec![
                Value::Decimal("1.50".into()),
                Value::BigInt("-170141183460469231731687303715884105729".into()),
                Value::Bytes(vec![0, 255]),
                Value::Null,
            ]),
        }
    }

    #[test]
    fn every_shape_of_serde_comes_back() {
        let value = to_value(&everything()).unwrap();
        assert_eq!(Everything::deserialize(&value).unwrap(), everything());
        assert_eq!(from_value::<Everything>(value.clone()).unwrap(), everything());
        assert_eq!(to_value(&value).unwrap(), value);
        assert_eq!(from_value::<Value>(value.clone()).unwrap(), value);
        assert_eq!(Value::deserialize(&value).unwrap(), value);
    }

    #[test]
    fn text_is_lent_not_copied() {
        let value = Value::from("lent");
        let text = <&str>::deserialize(&value).unwrap();
        assert_eq!(text.as_ptr(), value.as_str().unwrap().as_ptr());
    }

    #[test]
    fn native_kinds_are_text_and_numbers_to_who_asks_for_those() {
        let when = Value::Time(Time::from_unix(0, 0).unwrap());
        assert_eq!(from_value::<String>(when).unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(from_value::<f64>(Value::Decimal("1.25".into())).unwrap(), 1.25);
        assert_eq!(
            from_value::<u128>(Value::BigInt("18446744073709551616".into())).unwrap(),
            1 << 64
        );
    }

    #[test]
    fn says_what_does_not_fit() {
        let e = from_value::<Everything>(Value::Int(1)).unwrap_err();
        assert!(e.to_string().contains("invalid type: integer `1`"), "{e}");
        let e =
            from_value::<(u8, u8)>(Value::List(vec![1.into(), 2.into(), 3.into()])).unwrap_err();
        assert!(e.to_string().contains("invalid length 3"), "{e}");
        let e = from_value::<i128>(Value::BigInt("1e9".into())).unwrap_err();
        assert!(e.to_string().contains("out of range"), "{e}");
        let e = to_value(&BTreeMap::from([([1u8], 1)])).unwrap_err();
        assert!(e.to_string().contains("a map with a list for a name"), "{e}");
    }
}
