//! A record on its way to the bson crate's serializer, native kinds made BSON's own.

use serde::{
    Serialize, Serializer,
    ser::{self, Error as _},
};

use crate::record::{
    Time, Value,
    native::{DECIMAL, TIME},
    to_value,
};

/// Writes itself as the record it wraps does, through [`Filter`].
pub(super) struct Natively<'a, T: ?Sized>(pub &'a T);

impl<T: Serialize + ?Sized> Serialize for Natively<'_, T> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Filter(serializer))
    }
}

/// Passes everything on to a serializer, what is nested too, but for the native kinds.
struct Filter<S>(S);

macro_rules! pass {
    ($($method:ident $type:ty;)*) => {
        $(#[inline]
        fn $method(self, v: $type) -> Result<S::Ok, S::Error> {
            self.0.$method(v)
        })*
    };
}

impl<S: Serializer> Serializer for Filter<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Filter<S::SerializeSeq>;
    type SerializeTuple = Filter<S::SerializeTuple>;
    type SerializeTupleStruct = Filter<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Filter<S::SerializeTupleVariant>;
    type SerializeMap = Filter<S::SerializeMap>;
    type SerializeStruct = Filter<S::SerializeStruct>;
    type SerializeStructVariant = Filter<S::SerializeStructVariant>;

    pass! {
        serialize_bool bool;
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_f32 f32;
        serialize_f64 f64;
        serialize_char char;
        serialize_str &str;
        serialize_bytes &[u8];
        serialize_unit_struct &'static str;
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
    fn serialize_u64(self, v: u64) -> Result<S::Ok, S::Error> {
        match i64::try_from(v) {
            Ok(v) => self.0.serialize_i64(v),
            Err(_) => self.0.collect_str(&v),
        }
    }
    fn serialize_i128(self, v: i128) -> Result<S::Ok, S::Error> {
        match i64::try_from(v) {
            Ok(v) => self.0.serialize_i64(v),
            Err(_) => self.0.collect_str(&v),
        }
    }
    fn serialize_u128(self, v: u128) -> Result<S::Ok, S::Error> {
        match i64::try_from(v) {
            Ok(v) => self.0.serialize_i64(v),
            Err(_) => self.0.collect_str(&v),
        }
    }
    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Natively(value))
    }
    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }
    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        if name != TIME && name != DECIMAL {
            return self.0.serialize_newtype_struct(name, &Natively(value));
        }
        let Value::Text(text) = to_value(value).map_err(S::Error::custom)? else {
            return Err(S::Error::custom(format_args!("a {name} that is not text")));
        };
        if name == TIME {
            let (seconds, nanoseconds) = text.parse::<Time>().map_err(S::Error::custom)?.to_unix();
            let millis = seconds * 1000 + i64::from(nanoseconds / 1_000_000);
            return bson::DateTime::from_millis(millis).serialize(self.0);
        }
        // The crate refuses to round, so what it takes is exact.
        match text.parse::<bson::Decimal128>() {
            Ok(decimal) => decimal.serialize(self.0),
            Err(_) => self.0.serialize_str(&text),
        }
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_variant(name, index, variant, &Natively(value))
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(len).map(Filter)
    }
    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(len).map(Filter)
    }
    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, len).map(Filter)
    }
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.0.serialize_tuple_variant(name, index, variant, len).map(Filter)
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(len).map(Filter)
    }
    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        self.0.serialize_struct(name, len).map(Filter)
    }
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.0.serialize_struct_variant(name, index, variant, len).map(Filter)
    }
}

macro_rules! nested {
    ($($as:ident $method:ident ($($key:ident: $type:ty)?);)*) => {
        $(impl<S: ser::$as> ser::$as for Filter<S> {
            type Ok = S::Ok;
            type Error = S::Error;
            #[inline]
            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: $type,)?
                value: &T,
            ) -> Result<(), S::Error> {
                self.0.$method($($key,)? &Natively(value))
            }
            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        })*
    };
}

nested! {
    SerializeSeq serialize_element ();
    SerializeTuple serialize_element ();
    SerializeTupleStruct serialize_field ();
    SerializeTupleVariant serialize_field ();
    SerializeStruct serialize_field (name: &'static str);
    SerializeStructVariant serialize_field (name: &'static str);
}

impl<S: ser::SerializeMap> ser::SerializeMap for Filter<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(key)
    }
    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Natively(value))
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}
