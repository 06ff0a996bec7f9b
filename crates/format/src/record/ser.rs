//! Anything serde can describe, as a [`Value`].

use serde::{Serialize, ser};

use super::{
    Document, Time, Value,
    native::{BIGINT, DECIMAL, TIME},
};
use crate::{Error, Result};

/// The value that says what `record` says: maps and structs become [`Value::Map`], lists and
/// tuples [`Value::List`], an enum's variant its name or a map from its name.
///
/// Values and documents come back as they are; times, decimals and big integers keep their kind.
/// Types that look different to people and to machines are asked for the machine's form, so that
/// bytes stay bytes.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) where a map has keys that are no names, or the
/// record itself refuses.
///
/// ```
/// #[derive(serde::Serialize)]
/// struct Book { title: &'static str, pages: u32 }
/// let value = steelyard_format::record::to_value(&Book { title: "Weights", pages: 312 })?;
/// assert_eq!(value.as_map().unwrap().get("title").unwrap().as_str(), Some("Weights"));
/// # Ok::<(), steelyard_format::Error>(())
/// ```
pub fn to_value<T: Serialize + ?Sized>(record: &T) -> Result<Value> {
    record.serialize(ToValue)
}

struct ToValue;

/// A length hint comes from the caller's own data, yet never reserve much on a promise.
fn room(len: Option<usize>) -> usize {
    len.unwrap_or(0).min(1024)
}

impl ser::Serializer for ToValue {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = List;
    type SerializeTuple = List;
    type SerializeTupleStruct = List;
    type SerializeTupleVariant = List;
    type SerializeMap = Map;
    type SerializeStruct = Map;
    type SerializeStructVariant = Map;

    fn is_human_readable(&self) -> bool {
        false
    }
    fn serialize_bool(self, v: bool) -> Result<Value> {
        Ok(Value::Bool(v))
    }
    fn serialize_i8(self, v: i8) -> Result<Value> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_i16(self, v: i16) -> Result<Value> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_i32(self, v: i32) -> Result<Value> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_i64(self, v: i64) -> Result<Value> {
        Ok(Value::Int(v))
    }
    fn serialize_i128(self, v: i128) -> Result<Value> {
        Ok(Value::from_integer(v))
    }
    fn serialize_u8(self, v: u8) -> Result<Value> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_u16(self, v: u16) -> Result<Value> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_u32(self, v: u32) -> Result<Value> {
        Ok(Value::Int(v.into()))
    }
    fn serialize_u64(self, v: u64) -> Result<Value> {
        Ok(v.into())
    }
    fn serialize_u128(self, v: u128) -> Result<Value> {
        Ok(i64::try_from(v).map_or_else(|_| Value::BigInt(v.to_string().into()), Value::Int))
    }
    fn serialize_f32(self, v: f32) -> Result<Value> {
        Ok(Value::Float(v.into()))
    }
    fn serialize_f64(self, v: f64) -> Result<Value> {
        Ok(Value::Float(v))
    }
    fn serialize_char(self, v: char) -> Result<Value> {
        Ok(Value::Text(v.into()))
    }
    fn serialize_str(self, v: &str) -> Result<Value> {
        Ok(Value::Text(v.to_owned()))
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<Value> {
        Ok(Value::Bytes(v.to_owned()))
    }
    fn serialize_none(self) -> Result<Value> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value> {
        value.serialize(ToValue)
    }
    fn serialize_unit(self) -> Result<Value> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value> {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value> {
        Ok(Value::Text(variant.to_owned()))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value> {
        Ok(match (name, value.serialize(ToValue)?) {
            (TIME, Value::Text(text)) => Value::Time(text.parse::<Time>()?),
            (DECIMAL, Value::Text(digits)) => Value::Decimal(digits.into()),
            (BIGINT, Value::Text(digits)) => Value::BigInt(digits.into()),
            (_, value) => value,
        })
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value> {
        Ok(of_variant(variant, value.serialize(ToValue)?))
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<List> {
        Ok(List { items: Vec::with_capacity(room(len)), variant: None })
    }
    fn serialize_tuple(self, len: usize) -> Result<List> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<List> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<List> {
        Ok(List { items: Vec::with_capacity(room(Some(len))), variant: Some(variant) })
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Map> {
        Ok(Map { document: Document::with_capacity(room(len)), key: String::new(), variant: None })
    }
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Map> {
        self.serialize_map(Some(len))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Map> {
        Ok(Map { variant: Some(variant), ..self.serialize_map(Some(len))? })
    }
}

/// An enum's variant with what it holds: a map of one entry, as JSON has it.
fn of_variant(variant: &str, value: Value) -> Value {
    Value::Map(Document::from_iter([(variant, value)]))
}

struct List {
    items: Vec<Value>,
    variant: Option<&'static str>,
}

impl List {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.items.push(value.serialize(ToValue)?);
        Ok(())
    }
    fn done(self) -> Result<Value> {
        let list = Value::List(self.items);
        Ok(match self.variant {
            Some(variant) => of_variant(variant, list),
            None => list,
        })
    }
}

macro_rules! list {
    ($($as:ident $push:ident;)*) => {
        $(impl ser::$as for List {
            type Ok = Value;
            type Error = Error;
            fn $push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.push(value)
            }
            fn end(self) -> Result<Value> {
                self.done()
            }
        })*
    };
}

list! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

struct Map {
    document: Document,
    key: String,
    variant: Option<&'static str>,
}

impl Map {
    fn done(self) -> Result<Value> {
        let map = Value::Map(self.document);
        Ok(match self.variant {
            Some(variant) => of_variant(variant, map),
            None => map,
        })
    }
}

impl ser::SerializeMap for Map {
    type Ok = Value;
    type Error = Error;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.key = match key.serialize(ToValue)? {
            Value::Text(name) => name,
            Value::Int(n) => n.to_string(),
            Value::BigInt(digits) => digits.into(),
            Value::Bool(b) => b.to_string(),
            other => {
                let kind = other.kind().name();
                return Err(Error::unsupported(format!("a map with a {kind} for a name")));
            }
        };
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.document.push(std::mem::take(&mut self.key), value.serialize(ToValue)?);
        Ok(())
    }
    fn end(self) -> Result<Value> {
        self.done()
    }
}

macro_rules! fields {
    ($($as:ident)*) => {
        $(impl ser::$as for Map {
            type Ok = Value;
            type Error = Error;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<()> {
                self.document.push(name, value.serialize(ToValue)?);
                Ok(())
            }
            fn end(self) -> Result<Value> {
                self.done()
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }
