//! A record written as a line of names and a line of values.
//!
//! The record is asked twice, once for its names and once for its values, so that nothing has to
//! be set aside.

use std::ops::Range;

use serde::{
    Serialize,
    ser::{self, Impossible},
};

use super::Cells;
use crate::{Error, Result};

pub(super) fn row<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    let names = out.len();
    for part in [Part::Names, Part::Values] {
        let start = out.len();
        let mut line = Line { out, part, cells: 0, names: names..start };
        record.serialize(Table(&mut line))?;
        match (line.cells, out.len() - start) {
            (0, _) => return Err(Error::unsupported("a CSV row cannot be an empty map")),
            // One empty cell would be an empty line, which readers skip.
            (1, 0) => out.extend_from_slice(b"\"\"\n"),
            _ => out.push(b'\n'),
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Names,
    Values,
}

/// The line being written.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    part: Part,
    cells: usize,
    /// Where the line of names lies in `out`, once it is there.
    names: Range<usize>,
}

impl Line<'_> {
    fn cell(&mut self, text: &str) {
        if self.cells > 0 {
            self.out.push(b',');
        }
        self.cells += 1;
        let bytes = text.as_bytes();
        // A byte order mark at the start of a file would not be taken for text.
        let marked = text.starts_with('\u{feff}');
        if memchr::memchr3(b'"', b',', b'\n', bytes).is_none() && !bytes.contains(&b'\r') && !marked
        {
            return self.out.extend_from_slice(bytes);
        }
        self.out.push(b'"');
        let mut from = 0;
        for quote in memchr::memchr_iter(b'"', bytes) {
            self.out.extend_from_slice(&bytes[from..=quote]);
            from = quote;
        }
        self.out.extend_from_slice(&bytes[from..]);
        self.out.push(b'"');
    }

    fn name<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<()> {
        match self.part {
            Part::Names => name.serialize(Cell(self)),
            Part::Values => Ok(()),
        }
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        match self.part {
            Part::Names => Ok(()),
            Part::Values => value.serialize(Cell(self)),
        }
    }
}

/// Refuses everything but what is named.
macro_rules! refuse {
    ($ok:ty, $refuse:ident: $($method:ident($($arg:ty),*) $what:literal;)*) => {
        $(fn $method(self, $(_: $arg),*) -> Result<$ok> {
            Err(self.$refuse($what))
        })*
    };
}

/// The record itself, which must be a map.
struct Table<'a, 'o>(&'a mut Line<'o>);

impl Table<'_, '_> {
    fn refusal(&self, what: &str) -> Error {
        Error::unsupported(format!("a CSV row is a map, not {what}"))
    }
}

impl<'a, 'o> ser::Serializer for Table<'a, 'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Entries<'a, 'o>;
    type SerializeStruct = Entries<'a, 'o>;
    type SerializeStructVariant = Impossible<(), Error>;

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<()> {
        Err(self.refusal("a variant"))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'a, 'o>> {
        Ok(Entries(self.0))
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries<'a, 'o>> {
        Ok(Entries(self.0))
    }
    refuse! { (), refusal:
        serialize_bool(bool) "a single value";
        serialize_i8(i8) "a single value";
        serialize_i16(i16) "a single value";
        serialize_i32(i32) "a single value";
        serialize_i64(i64) "a single value";
        serialize_u8(u8) "a single value";
        serialize_u16(u16) "a single value";
        serialize_u32(u32) "a single value";
        serialize_u64(u64) "a single value";
        serialize_f32(f32) "a single value";
        serialize_f64(f64) "a single value";
        serialize_char(char) "a single value";
        serialize_str(&str) "a single value";
        serialize_bytes(&[u8]) "a single value";
        serialize_none() "no value";
        serialize_unit() "no value";
        serialize_unit_struct(&'static str) "no value";
        serialize_unit_variant(&'static str, u32, &'static str) "a single value";
    }
    refuse! { Impossible<(), Error>, refusal:
        serialize_seq(Option<usize>) "a list";
        serialize_tuple(usize) "a list";
        serialize_tuple_struct(&'static str, usize) "a list";
        serialize_tuple_variant(&'static str, u32, &'static str, usize) "a variant";
        serialize_struct_variant(&'static str, u32, &'static str, usize) "a variant";
    }
}

struct Entries<'a, 'o>(&'a mut Line<'o>);

impl ser::SerializeStruct for Entries<'_, '_> {
    type Ok = ();
    type Error = Error;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        self.0.name(name)?;
        self.0.value(value)
    }
    fn end(self) -> Result<()> {
        Ok(())
    }
}

impl ser::SerializeMap for Entries<'_, '_> {
    type Ok = ();
    type Error = Error;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.0.name(key)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.0.value(value)
    }
    fn end(self) -> Result<()> {
        Ok(())
    }
}

/// One name or value of a row: anything that is a single text.
struct Cell<'a, 'o>(&'a mut Line<'o>);

impl Cell<'_, '_> {
    fn refusal(&self, what: &str) -> Error {
        let line = &self.0;
        match Cells::of(&line.out[line.names.clone()]).nth(line.cells) {
            Some(Ok(name)) if line.part == Part::Values => Error::unsupported(format!(
                "field {name:?} is {what}, which a CSV cell cannot hold"
            )),
            _ => Error::unsupported(format!("the name is {what}, which CSV cannot hold")),
        }
    }
    fn written(self, value: impl std::fmt::Display) -> Result<()> {
        // Numbers and the like have nothing in them to quote: straight into the line.
        use std::io::Write;
        if self.0.cells > 0 {
            self.0.out.push(b',');
        }
        self.0.cells += 1;
        write!(self.0.out, "{value}")?;
        Ok(())
    }
}

macro_rules! written {
    ($($method:ident $type:ty;)*) => {
        $(fn $method(self, v: $type) -> Result<()> {
            self.written(v)
        })*
    };
}

impl ser::Serializer for Cell<'_, '_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    written! {
        serialize_bool bool;
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
        serialize_i128 i128;
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_u64 u64;
        serialize_u128 u128;
        serialize_f32 f32;
        serialize_f64 f64;
    }
    fn serialize_char(self, v: char) -> Result<()> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, v: &str) -> Result<()> {
        self.0.cell(v);
        Ok(())
    }
    fn serialize_none(self) -> Result<()> {
        self.serialize_str("")
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<()> {
        self.serialize_str("")
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_str("")
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<()> {
        Err(self.refusal("a variant"))
    }
    refuse! { (), refusal: serialize_bytes(&[u8]) "bytes"; }
    refuse! { Impossible<(), Error>, refusal:
        serialize_seq(Option<usize>) "a list";
        serialize_tuple(usize) "a list";
        serialize_tuple_struct(&'static str, usize) "a list";
        serialize_tuple_variant(&'static str, u32, &'static str, usize) "a variant";
        serialize_map(Option<usize>) "a map";
        serialize_struct(&'static str, usize) "a map";
        serialize_struct_variant(&'static str, u32, &'static str, usize) "a variant";
    }
}
