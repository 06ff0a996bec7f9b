//! Inspects a text value before it is written.

use serde::{
    Serialize,
    ser::{Error as _, Impossible, Serializer},
};

use crate::{Error, Result};

/// A serializer that hands a value's text to a function and refuses every other kind of value.
pub(crate) struct OnText<F>(pub F);

/// What `value` is as text, seen by `look`; none where it is not text.
pub(crate) fn if_text<T: Serialize + ?Sized, R>(
    value: &T,
    look: impl FnOnce(&str) -> R,
) -> Option<R> {
    value.serialize(OnText(look)).ok()
}

fn no<R>() -> Result<R> {
    Err(Error::custom("not text"))
}

macro_rules! refuse {
    ($($method:ident($($type:ty),*);)*) => {
        $(fn $method(self, $(_: $type),*) -> Result<R> { no() })*
    };
}

impl<R, F: FnOnce(&str) -> R> Serializer for OnText<F> {
    type Ok = R;
    type Error = Error;
    type SerializeSeq = Impossible<R, Error>;
    type SerializeTuple = Impossible<R, Error>;
    type SerializeTupleStruct = Impossible<R, Error>;
    type SerializeTupleVariant = Impossible<R, Error>;
    type SerializeMap = Impossible<R, Error>;
    type SerializeStruct = Impossible<R, Error>;
    type SerializeStructVariant = Impossible<R, Error>;

    fn is_human_readable(&self) -> bool {
        false
    }
    fn serialize_str(self, v: &str) -> Result<R> {
        Ok(self.0(v))
    }
    fn serialize_char(self, v: char) -> Result<R> {
        Ok(self.0(v.encode_utf8(&mut [0; 4])))
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<R> {
        Ok(self.0(variant))
    }
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<R> {
        v.serialize(self)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Result<R> {
        v.serialize(self)
    }
    refuse! {
        serialize_bool(bool); serialize_f32(f32); serialize_f64(f64); serialize_bytes(&[u8]);
        serialize_i8(i8); serialize_i16(i16); serialize_i32(i32); serialize_i64(i64);
        serialize_u8(u8); serialize_u16(u16); serialize_u32(u32); serialize_u64(u64);
        serialize_i128(i128); serialize_u128(u128);
        serialize_none(); serialize_unit(); serialize_unit_struct(&'static str);
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<R> {
        no()
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq> {
        no()
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple> {
        no()
    }
    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct> {
        no()
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        no()
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap> {
        no()
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct> {
        no()
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant> {
        no()
    }
}
