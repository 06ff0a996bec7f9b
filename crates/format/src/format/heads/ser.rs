//! From serde to bytes.

use std::marker::PhantomData;

use serde::ser::{self, Error as _, Serialize, Serializer};

use super::Heads;
use crate::{
    Error, Result,
    format::objects::{limits::deeper, text::if_text},
    record::native::{BIGINT, DECIMAL, TIME},
};

/// Writes one record.
pub struct Writer<'o, H> {
    out: &'o mut Vec<u8>,
    depth: usize,
    heads: PhantomData<H>,
}

impl<'o, H: Heads> Writer<'o, H> {
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Writer { out, depth: 0, heads: PhantomData }
    }

    #[inline]
    fn text(&mut self, text: &str) -> Result<()> {
        H::TEXT.put(text.len(), self.out)?;
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// A number of more than 64 bits: of the format's own kind, or text.
    fn wide(&mut self, digits: &str) -> Result<()> {
        match H::put_native(BIGINT, digits, self.out)? {
            true => Ok(()),
            false => self.text(digits),
        }
    }
}

macro_rules! whole {
    ($($method:ident $type:ty, $put:ident;)*) => {
        $(#[inline]
        fn $method(self, v: $type) -> Result<()> {
            H::$put(v.into(), self.out);
            Ok(())
        })*
    };
}

impl<'a, 'o, H: Heads> Serializer for &'a mut Writer<'o, H> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'a, 'o, H>;
    type SerializeTuple = Compound<'a, 'o, H>;
    type SerializeTupleStruct = Compound<'a, 'o, H>;
    type SerializeTupleVariant = Compound<'a, 'o, H>;
    type SerializeMap = Compound<'a, 'o, H>;
    type SerializeStruct = Compound<'a, 'o, H>;
    type SerializeStructVariant = Compound<'a, 'o, H>;

    fn is_human_readable(&self) -> bool {
        false
    }

    whole! {
        serialize_i8 i8, put_int;
        serialize_i16 i16, put_int;
        serialize_i32 i32, put_int;
        serialize_i64 i64, put_int;
        serialize_u8 u8, put_uint;
        serialize_u16 u16, put_uint;
        serialize_u32 u32, put_uint;
        serialize_u64 u64, put_uint;
    }

    fn serialize_bool(self, v: bool) -> Result<()> {
        self.out.push(H::FALSE + u8::from(v));
        Ok(())
    }
    fn serialize_i128(self, v: i128) -> Result<()> {
        match (i64::try_from(v), u64::try_from(v)) {
            (Ok(v), _) => self.serialize_i64(v),
            (_, Ok(v)) => self.serialize_u64(v),
            _ => self.wide(&v.to_string()),
        }
    }
    fn serialize_u128(self, v: u128) -> Result<()> {
        match u64::try_from(v) {
            Ok(v) => self.serialize_u64(v),
            Err(_) => self.wide(&v.to_string()),
        }
    }
    fn serialize_f32(self, v: f32) -> Result<()> {
        self.out.push(H::FLOAT32);
        self.out.extend_from_slice(&v.to_be_bytes());
        Ok(())
    }
    fn serialize_f64(self, v: f64) -> Result<()> {
        self.out.push(H::FLOAT32 + 1);
        self.out.extend_from_slice(&v.to_be_bytes());
        Ok(())
    }
    fn serialize_char(self, v: char) -> Result<()> {
        self.text(v.encode_utf8(&mut [0; 4]))
    }
    #[inline]
    fn serialize_str(self, v: &str) -> Result<()> {
        self.text(v)
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<()> {
        H::BYTES.put(v.len(), self.out)?;
        self.out.extend_from_slice(v);
        Ok(())
    }
    fn serialize_none(self) -> Result<()> {
        self.out.push(H::NULL);
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<()> {
        self.serialize_none()
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_none()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.text(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        if ![TIME, DECIMAL, BIGINT].contains(&name) {
            return value.serialize(self);
        }
        let out = &mut *self.out;
        let written = if_text(value, |text| match H::put_native(name, text, out) {
            Ok(false) => {
                H::TEXT.put(text.len(), out)?;
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            other => other.map(drop),
        });
        written.unwrap_or_else(|| Err(Error::custom(format_args!("a {name} that is not text"))))
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        H::MAP.put(1, self.out)?;
        self.text(variant)?;
        self.depth = deeper(self.depth)?;
        value.serialize(&mut *self)?;
        self.depth -= 1;
        Ok(())
    }
    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Compound<'a, 'o, H>> {
        Compound::begin(self, false, len)
    }
    fn serialize_tuple(self, len: usize) -> Result<Compound<'a, 'o, H>> {
        Compound::begin(self, false, Some(len))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, 'o, H>> {
        Compound::begin(self, false, Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'o, H>> {
        Compound::holding(self, variant, false, len)
    }
    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Compound<'a, 'o, H>> {
        Compound::begin(self, true, len)
    }
    #[inline]
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, 'o, H>> {
        Compound::begin(self, true, Some(len))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'o, H>> {
        Compound::holding(self, variant, true, len)
    }
}

/// A list or map being written.
pub struct Compound<'a, 'o, H> {
    writer: &'a mut Writer<'o, H>,
    /// Values or pairs so far.
    count: usize,
    planned: Planned,
    /// How many levels it is: two inside a map of one, from the name of a variant.
    levels: usize,
}

/// How many values or pairs a list or map is to have.
enum Planned {
    /// So many: its head says so.
    Count(usize),
    /// Not known: the count is filled in here, at the end.
    FilledIn(usize),
}

impl<'a, 'o, H: Heads> Compound<'a, 'o, H> {
    #[inline]
    fn begin(writer: &'a mut Writer<'o, H>, map: bool, len: Option<usize>) -> Result<Self> {
        writer.depth = deeper(writer.depth)?;
        let planned = match (len, map) {
            (Some(len), true) => H::MAP.put(len, writer.out).map(|()| Planned::Count(len))?,
            (Some(len), false) => H::LIST.put(len, writer.out).map(|()| Planned::Count(len))?,
            (None, map) => {
                let sizes = if map { H::MAP } else { H::LIST };
                writer.out.extend_from_slice(&[sizes.before16 + 1, 0, 0, 0, 0]);
                Planned::FilledIn(writer.out.len() - 4)
            }
        };
        Ok(Compound { writer, count: 0, planned, levels: 1 })
    }

    /// One inside a map of a single pair, from the name of a variant.
    fn holding(
        writer: &'a mut Writer<'o, H>,
        variant: &str,
        map: bool,
        len: usize,
    ) -> Result<Self> {
        writer.depth = deeper(writer.depth)?;
        H::MAP.put(1, writer.out)?;
        writer.text(variant)?;
        Ok(Compound { levels: 2, ..Self::begin(writer, map, Some(len))? })
    }

    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.count += 1;
        value.serialize(&mut *self.writer)
    }

    #[inline]
    fn finish(self) -> Result<()> {
        self.writer.depth -= self.levels;
        match self.planned {
            Planned::Count(planned) if planned == self.count => Ok(()),
            Planned::Count(planned) => Err(Error::custom(format_args!(
                "a list or map that announced {planned} values and had {}",
                self.count
            ))),
            Planned::FilledIn(at) => {
                let count = u32::try_from(self.count).map_err(|_| {
                    Error::unsupported(format!("a list or map of {} values", self.count))
                })?;
                self.writer.out[at..at + 4].copy_from_slice(&count.to_be_bytes());
                Ok(())
            }
        }
    }
}

macro_rules! elements {
    ($($trait:ident $method:ident ($($key:ident)?);)*) => {
        $(impl<H: Heads> ser::$trait for Compound<'_, '_, H> {
            type Ok = ();
            type Error = Error;
            #[inline]
            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<()> {
                $(self.writer.text($key)?;)?
                self.element(value)
            }
            #[inline]
            fn end(self) -> Result<()> {
                self.finish()
            }
        })*
    };
}

elements! {
    SerializeSeq serialize_element ();
    SerializeTuple serialize_element ();
    SerializeTupleStruct serialize_field ();
    SerializeTupleVariant serialize_field ();
    SerializeStruct serialize_field (key);
    SerializeStructVariant serialize_field (key);
}

impl<H: Heads> ser::SerializeMap for Compound<'_, '_, H> {
    type Ok = ();
    type Error = Error;
    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        key.serialize(&mut *self.writer)
    }
    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.element(value)
    }
    #[inline]
    fn end(self) -> Result<()> {
        self.finish()
    }
}
