//! How values pass through serde, including those for which serde has no type.
//!
//! Serde knows no times, no decimals and no whole numbers beyond 128 bits. They travel under
//! agreed names ([`TIME`], [`DECIMAL`], [`BIGINT`]):
//!
//! - *Out*: `serialize_newtype_struct(NAME, &text)`. A format that has the thing natively looks at
//!   the name and writes its own kind; every other format passes the text through.
//! - *In*: a format that meets its native kind calls `visitor.visit_enum(`[`Native`]`)` when it is
//!   asked for *any* value; the variant's name says what it is. When it is asked for a newtype
//!   struct of that name, or for text, it hands over the text.
//!
//! The text of a time is RFC 3339, of a decimal and a big integer its digits.
//!
//! JSON has numbers of any length, and serde no way to say one. So its writer asks whether the text
//! that it is given is a number ([`is_number`]), and leaves out the quotes; and its reader asks whether
//! a value was read from a float ([`floats`]), which may have had more digits than that.

use std::{cell::Cell, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, IntoDeserializer, Visitor},
    forward_to_deserialize_any,
};

use super::{Document, Time, Value, number};

/// The name a [`Time`] travels under.
pub const TIME: &str = "steelyard::Time";
/// The name a decimal number travels under.
pub const DECIMAL: &str = "steelyard::Decimal";
/// The name a whole number beyond 128 bits travels under.
pub const BIGINT: &str = "steelyard::BigInt";

/// The floats that values were read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Floats {
    /// There were none.
    None,
    /// None is zero, or so near to it that it has fewer digits than others.
    Usual,
    /// One is.
    Tiny,
}

thread_local! {
    static FLOATS: Cell<Floats> = const { Cell::new(Floats::None) };
    static NUMBER: Cell<bool> = const { Cell::new(false) };
}

/// The floats that values were read from on this thread since this was last asked.
pub fn floats() -> Floats {
    FLOATS.replace(Floats::None)
}

/// Whether the text that is just being written is a number, spelled as JSON spells one.
pub fn is_number() -> bool {
    NUMBER.get()
}

/// The digits of a number on their way out.
struct Digits<'a>(&'a str);

impl Serialize for Digits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Set back even where the serializer panics.
        struct Written;
        impl Drop for Written {
            fn drop(&mut self) {
                NUMBER.set(false);
            }
        }
        NUMBER.set(number::is_json(self.0));
        let _written = Written;
        serializer.serialize_str(self.0)
    }
}

/// A native value on its way in: the name it travels under, and its text.
pub struct Native<E> {
    name: &'static str,
    text: NativeText<E>,
}

impl<E> Native<E> {
    /// `name` is one of [`DECIMAL`], [`BIGINT`], [`TIME`].
    pub fn new(name: &'static str, text: String) -> Self {
        Native { name, text: NativeText(Said::Text(text), PhantomData) }
    }

    /// A time, whose text is made only where text is asked for.
    pub fn time(time: Time) -> Self {
        Native { name: TIME, text: time.into() }
    }
}

impl<'de, E: de::Error> de::EnumAccess<'de> for Native<E> {
    type Error = E;
    type Variant = NativeText<E>;
    fn variant_seed<V: de::DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, NativeText<E>), E> {
        let name = seed.deserialize(IntoDeserializer::<E>::into_deserializer(self.name))?;
        Ok((name, self.text))
    }
}

/// The text of a [`Native`] value, as a deserializer. A [`Time`] that is asked for is handed over
/// without text between.
pub struct NativeText<E>(Said, PhantomData<E>);

enum Said {
    Text(String),
    Time(Time),
}

impl<E> From<Time> for NativeText<E> {
    fn from(time: Time) -> Self {
        NativeText(Said::Time(time), PhantomData)
    }
}

impl<E> NativeText<E> {
    fn into_text(self) -> String {
        match self.0 {
            Said::Text(text) => text,
            Said::Time(time) => time.to_string(),
        }
    }
}

impl<'de, E: de::Error> Deserializer<'de> for NativeText<E> {
    type Error = E;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_string(self.into_text())
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, E> {
        match self.0 {
            Said::Time(time) if name == TIME => visitor.visit_i128(time.to_nanos()),
            _ => visitor.visit_newtype_struct(self),
        }
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_some(self)
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, E: de::Error> de::VariantAccess<'de> for NativeText<E> {
    type Error = E;
    fn unit_variant(self) -> Result<(), E> {
        Err(E::custom("a native value has a payload"))
    }
    fn newtype_variant_seed<T: de::DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, E> {
        seed.deserialize(self)
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, E> {
        Err(E::custom("a native value is not a tuple"))
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, E> {
        Err(E::custom("a native value is not a struct"))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(TIME, &Text(self))
    }
}

/// Writes a displayable thing as text without making a string of it first.
struct Text<'a, T>(&'a T);

impl<T: fmt::Display> Serialize for Text<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;
        impl<'de> Visitor<'de> for TimeVisitor {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Time, E> {
                v.parse().map_err(E::custom)
            }
            /// Nanoseconds since 1970, from [`NativeText`].
            fn visit_i128<E: de::Error>(self, v: i128) -> Result<Time, E> {
                Time::from_nanos(v).map_err(E::custom)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<Time, D::Error> {
                d.deserialize_str(TimeVisitor)
            }
        }
        deserializer.deserialize_newtype_struct(TIME, TimeVisitor)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // Not unit: some formats write that as an empty list.
            Value::Null => serializer.serialize_none(),
            Value::Bool(v) => serializer.serialize_bool(*v),
            Value::Int(v) => serializer.serialize_i64(*v),
            Value::BigInt(digits) => match digits.parse::<u64>() {
                Ok(v) => serializer.serialize_u64(v),
                Err(_) => serializer.serialize_newtype_struct(BIGINT, &Digits(digits)),
            },
            Value::Float(v) => serializer.serialize_f64(*v),
            Value::Decimal(digits) => serializer.serialize_newtype_struct(DECIMAL, &Digits(digits)),
            Value::Text(v) => serializer.serialize_str(v),
            Value::Bytes(v) => serializer.serialize_bytes(v),
            Value::Time(v) => v.serialize(serializer),
            Value::List(v) => v.serialize(serializer),
            Value::Map(v) => v.serialize(serializer),
        }
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DocumentVisitor;
        impl<'de> Visitor<'de> for DocumentVisitor {
            type Value = Document;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of names to values")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Document, A::Error> {
                read_document(map)
            }
        }
        deserializer.deserialize_map(DocumentVisitor)
    }
}

fn read_document<'de, A: de::MapAccess<'de>>(mut map: A) -> Result<Document, A::Error> {
    // A hint comes from the bytes: never reserve more than it could cost us to be lied to.
    let mut document = Document::with_capacity(map.size_hint().unwrap_or(0).min(64));
    while let Some((Name(name), value)) = map.next_entry::<Name, Value>()? {
        document.push(name, value);
    }
    Ok(document)
}

/// A map's key as text: formats with whole numbers or symbols for keys are met half-way.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name: text or a whole number")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Name, E> {
                Ok(Name(v.to_owned()))
            }
            fn visit_string<E: de::Error>(self, v: String) -> Result<Name, E> {
                Ok(Name(v))
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Name, E> {
                Ok(Name(v.to_string()))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Name, E> {
                Ok(Name(v.to_string()))
            }
        }
        deserializer.deserialize_any(NameVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
        Value::deserialize(d)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
        Value::deserialize(d)
    }
    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Int(v))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_i128<E>(self, v: i128) -> Result<Value, E> {
        Ok(Value::from_integer(v))
    }
    #[inline]
    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        let floats = if v.abs() < f64::MIN_POSITIVE { Floats::Tiny } else { Floats::Usual };
        FLOATS.set(FLOATS.get().max(floats));
        Ok(Value::Float(v))
    }
    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::Text(v.to_owned()))
    }
    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::Text(v))
    }
    fn visit_bytes<E>(self, v: &[u8]) -> Result<Value, E> {
        Ok(Value::Bytes(v.to_owned()))
    }
    fn visit_byte_buf<E>(self, v: Vec<u8>) -> Result<Value, E> {
        Ok(Value::Bytes(v))
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(64));
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Value::List(list))
    }
    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
        read_document(map).map(Value::Map)
    }
    fn visit_enum<A: de::EnumAccess<'de>>(self, data: A) -> Result<Value, A::Error> {
        use de::{Error as _, VariantAccess};
        let (name, payload) = data.variant::<String>()?;
        let text = |payload: A::Variant| payload.newtype_variant::<String>().map(String::into);
        match name.as_str() {
            TIME => payload.newtype_variant().map(Value::Time),
            DECIMAL => text(payload).map(Value::Decimal),
            BIGINT => text(payload).map(Value::BigInt),
            _ => Err(A::Error::custom(format_args!("an unknown native kind {name:?}"))),
        }
    }
}
