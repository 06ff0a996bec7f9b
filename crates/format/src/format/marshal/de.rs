//! From Marshal to serde: straight from the bytes, text borrowed, nothing in between.

use serde::{
    de::{
        self, DeserializeSeed, IntoDeserializer, Visitor,
        value::{BorrowedStrDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{
    CLASS, STRUCT,
    reader::{Head, Reader, Tail},
    text::{Charset, Text},
};
use crate::{
    Error, Result,
    format::objects::{
        name::{AsName, Key, ReadText},
        whole::Whole,
    },
    record::native::{BIGINT, DECIMAL, Native, TIME},
};

/// Reads one record by `seed`; `bytes` must hold it and nothing else. `T` says how
/// text is handed out.
pub(super) fn decode<'de, T: Text<'de>, S: DeserializeSeed<'de>>(
    seed: S,
    bytes: &'de [u8],
) -> Result<S::Value> {
    let mut reader = Reader::<T>::new(bytes)?;
    let read = seed.deserialize(&mut reader).map_err(|e| match e.place().offset {
        Some(_) => e,
        None => e.at(reader.pos as u64),
    })?;
    match bytes.len() - reader.pos {
        0 => Ok(read),
        more => Err(reader.wrong(reader.pos, format!("{more} bytes after the record"))),
    }
}

/// Text as its charset promises, else bytes.
fn visit_text<'de, V: Visitor<'de>>(
    bytes: &'de [u8],
    charset: Charset,
    visitor: V,
) -> Result<V::Value> {
    let text = match charset {
        Charset::Utf8 => true,
        Charset::Ascii => bytes.is_ascii(),
        Charset::Binary | Charset::Other => false,
    };
    match std::str::from_utf8(bytes) {
        Ok(text_) if text => visitor.visit_borrowed_str(text_),
        _ => visitor.visit_borrowed_bytes(bytes),
    }
}

impl<'de, T: Text<'de>> Reader<'de, T> {
    /// Hands a value to a visitor that takes anything.
    #[inline]
    fn visit<V: Visitor<'de>>(&mut self, head: Head<'de>, visitor: V) -> Result<V::Value> {
        match head {
            Head::Nil => visitor.visit_unit(),
            Head::Bool(v) => visitor.visit_bool(v),
            Head::Int(v) => visitor.visit_i64(v),
            Head::Big(negative, bytes) => Whole::from_magnitude(negative, bytes).visit(visitor),
            Head::Float(v) => visitor.visit_f64(v),
            Head::Text(bytes, charset) => visit_text(bytes, charset, visitor),
            Head::Time(v) => visitor.visit_enum(Native::new(TIME, v.to_string())),
            Head::Decimal(text) => visitor.visit_enum(Native::new(DECIMAL, text)),
            Head::List(len, tail) => self.visit_list(len, tail, visitor),
            Head::Hash(len, tail) => self.visit_hash(len, tail, visitor),
            head => self.visit_members(head, true, visitor),
        }
    }

    #[inline]
    fn visit_list<V: Visitor<'de>>(
        &mut self,
        len: usize,
        tail: Tail,
        visitor: V,
    ) -> Result<V::Value> {
        self.deeper()?;
        let mut items = Items { reader: self, left: len };
        let read = visitor.visit_seq(&mut items)?;
        let left = items.left;
        self.all_read(len, left)?;
        self.finish(tail)?;
        Ok(read)
    }

    #[inline]
    fn visit_hash<V: Visitor<'de>>(
        &mut self,
        len: usize,
        tail: Tail,
        visitor: V,
    ) -> Result<V::Value> {
        self.deeper()?;
        let mut pairs = Pairs { reader: self, left: len };
        let read = visitor.visit_map(&mut pairs)?;
        let left = pairs.left;
        self.all_read(len, left)?;
        self.finish(tail)?;
        Ok(read)
    }

    fn all_read(&self, len: usize, left: usize) -> Result<()> {
        match left {
            0 => Ok(()),
            _ => Err(de::Error::invalid_length(len, &"fewer, for the type wanted")),
        }
    }

    /// Hands an object of Ruby to a visitor, as a map; the class comes first, if it is wanted.
    fn visit_members<V: Visitor<'de>>(
        &mut self,
        head: Head<'de>,
        class_wanted: bool,
        visitor: V,
    ) -> Result<V::Value> {
        let utf8 = |bytes| Part::Text(bytes, Charset::Utf8);
        let (class, then, variables, tail) = match head {
            Head::Object(class, n, tail) => ((CLASS, utf8(class)), [None; 2], n, tail),
            Head::Struct(class, n, tail) => ((STRUCT, utf8(class)), [None; 2], n, tail),
            Head::Dump(class, dump, charset) => {
                let dump = Part::Text(dump, charset);
                ((CLASS, utf8(class)), [Some(("^dump", dump)), None], 0, Tail::default())
            }
            Head::Data(class, tail) => {
                ((CLASS, utf8(class)), [Some(("^data", Part::Here)), None], 0, tail)
            }
            Head::Regexp(source, charset, options) => {
                // A source without an encoding is text as a rule: try.
                let charset = if charset == Charset::Binary { Charset::Utf8 } else { charset };
                let source = ("^source", Part::Text(source, charset));
                let options = ("^options", Part::Int(options));
                let class = (CLASS, utf8(b"Regexp"));
                (class, [Some(source), Some(options)], 0, Tail::default())
            }
            Head::Named(kind, name) => {
                let class = (CLASS, utf8(kind.as_bytes()));
                (class, [Some(("^name", utf8(name))), None], 0, Tail::default())
            }
            head => return self.visit(head, visitor),
        };
        let parts = [class_wanted.then_some(class), then[0], then[1]];
        let fixed = parts.iter().flatten().count();
        self.deeper()?;
        let mut members = Members { reader: self, parts, now: None, fixed, variables };
        let read = visitor.visit_map(&mut members)?;
        let left = members.fixed + members.variables;
        self.all_read(fixed + variables, left)?;
        self.finish(tail)?;
        Ok(read)
    }
}

/// The elements of an array.
struct Items<'a, 'de, T> {
    reader: &'a mut Reader<'de, T>,
    left: usize,
}

impl<'de, T: Text<'de>> de::SeqAccess<'de> for Items<'_, 'de, T> {
    type Error = Error;
    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The keys and values of a hash.
struct Pairs<'a, 'de, T> {
    reader: &'a mut Reader<'de, T>,
    left: usize,
}

impl<'de, T: Text<'de>> de::MapAccess<'de> for Pairs<'_, 'de, T> {
    type Error = Error;
    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(Key(&mut *self.reader)).map(Some)
    }
    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.reader)
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// A part of an object that is not one of its variables.
#[derive(Clone, Copy)]
enum Part<'de> {
    Text(&'de [u8], Charset),
    Int(u8),
    /// The value that follows in the bytes.
    Here,
}

/// An object as a map: some parts by name, then its variables.
struct Members<'a, 'de, T> {
    reader: &'a mut Reader<'de, T>,
    parts: [Option<(&'static str, Part<'de>)>; 3],
    /// The part whose value comes next; none for a variable.
    now: Option<Part<'de>>,
    fixed: usize,
    variables: usize,
}

impl<'de, T: Text<'de>> de::MapAccess<'de> for Members<'_, 'de, T> {
    type Error = Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if let Some((name, part)) = self.parts.iter_mut().find_map(Option::take) {
            self.fixed -= 1;
            self.now = Some(part);
            return seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some);
        }
        if self.variables == 0 {
            return Ok(None);
        }
        self.variables -= 1;
        let name = self.reader.symbol()?;
        let name = name.strip_prefix(b"@").unwrap_or(name);
        match std::str::from_utf8(name) {
            Ok(name) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            Err(_) => seed.deserialize(name.into_deserializer()).map(Some),
        }
    }
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        match self.now.take() {
            None | Some(Part::Here) => seed.deserialize(&mut *self.reader),
            Some(Part::Int(v)) => seed.deserialize(v.into_deserializer()),
            Some(Part::Text(bytes, charset)) => seed.deserialize(Spelled(bytes, charset)),
        }
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.fixed + self.variables)
    }
}

/// Text that stands somewhere else.
struct Spelled<'de>(&'de [u8], Charset);

impl<'de> de::Deserializer<'de> for Spelled<'de> {
    type Error = Error;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visit_text(self.0, self.1, visitor)
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, T: Text<'de>> Reader<'de, T> {
    fn other_text<V: Visitor<'de>>(&mut self, key: bool, visitor: V) -> Result<V::Value> {
        match self.head()? {
            // Binary strings are common in Ruby for what is text.
            Head::Text(bytes, charset) if charset != Charset::Other => {
                visit_text(bytes, Charset::Utf8, visitor)
            }
            Head::Time(v) => visitor.visit_string(v.to_string()),
            Head::Decimal(text) => visitor.visit_string(text),
            Head::Big(negative, bytes) => {
                visitor.visit_string(Whole::from_magnitude(negative, bytes).into_digits())
            }
            head if key => self.visit(head, AsName { inner: visitor, numbers: true }),
            head => self.visit(head, visitor),
        }
    }

    /// Asked for a type by the name of a native kind: its text.
    fn read_native<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let text = match self.head()? {
            Head::Time(v) => v.to_string(),
            Head::Decimal(text) => text,
            Head::Int(v) => v.to_string(),
            Head::Big(negative, bytes) => Whole::from_magnitude(negative, bytes).into_digits(),
            Head::Text(bytes, _) => String::from_utf8_lossy(bytes).into_owned(),
            head => return self.visit(head, visitor),
        };
        visitor.visit_newtype_struct(StringDeserializer::new(text))
    }

    fn read_float<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let text = match self.head()? {
            Head::Decimal(text) => text,
            Head::Big(negative, bytes) => Whole::from_magnitude(negative, bytes).into_digits(),
            head => return self.visit(head, visitor),
        };
        match text.parse() {
            Ok(v) => visitor.visit_f64(v),
            Err(_) => visitor.visit_string(text),
        }
    }
}

impl<'de, T: Text<'de>> ReadText<'de> for &mut Reader<'de, T> {
    #[inline]
    fn read_text<V: Visitor<'de>>(self, key: bool, visitor: V) -> Result<V::Value> {
        match self.common_text()? {
            Some(text) => text.visit(visitor),
            None => self.other_text(key, visitor),
        }
    }

    #[inline]
    fn read_key<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.common_text()? {
            Some(text) => text.visit(visitor),
            None => {
                let head = self.head()?;
                self.visit(head, AsName { inner: visitor, numbers: false })
            }
        }
    }
}

impl<'de, T: Text<'de>> de::Deserializer<'de> for &mut Reader<'de, T> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(text) = self.common_text()? {
            return text.visit(visitor);
        }
        let head = self.head()?;
        self.visit(head, visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.read_text(false, visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.head()? {
            Head::Text(bytes, _) => visitor.visit_borrowed_bytes(bytes),
            head => self.visit(head, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.peek() == Some(b'0') {
            self.pos += 1;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        match name {
            TIME | DECIMAL | BIGINT => self.read_native(visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(len) = self.plain(b'[', 1)? {
            return self.visit_list(len, Tail::default(), visitor);
        }
        let head = self.head()?;
        self.visit(head, visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(len) = self.plain(b'{', 2)? {
            return self.visit_hash(len, Tail::default(), visitor);
        }
        let head = self.head()?;
        self.visit(head, visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if let Some(len) = self.plain(b'{', 2)? {
            return self.visit_hash(len, Tail::default(), visitor);
        }
        match self.head()? {
            Head::Hash(len, tail) => self.visit_hash(len, tail, visitor),
            head => {
                let class_wanted = fields.iter().any(|f| [CLASS, STRUCT].contains(f));
                self.visit_members(head, class_wanted, visitor)
            }
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.head()? {
            Head::Text(bytes, _) => visitor.visit_enum(Variant::<T>::Unit(bytes)),
            Head::Hash(1, tail) => {
                self.deeper()?;
                let read = visitor.visit_enum(Variant::Holding(&mut *self))?;
                self.finish(tail)?;
                Ok(read)
            }
            head => self.visit(head, visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.read_float(visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.read_float(visitor)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.head()? {
            Head::Big(negative, bytes) => match Whole::from_magnitude(negative, bytes) {
                Whole::U128(v) => visitor.visit_u128(v),
                whole => whole.visit(visitor),
            },
            head => self.visit(head, visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    forward_to_deserialize_any! { bool i8 i16 i32 i64 i128 u8 u16 u32 u64 unit unit_struct }
}

/// A variant of an enum: its name alone, or in a hash of one pair.
enum Variant<'a, 'de, T> {
    Unit(&'de [u8]),
    Holding(&'a mut Reader<'de, T>),
}

impl<'a, 'de, T: Text<'de>> de::EnumAccess<'de> for Variant<'a, 'de, T> {
    type Error = Error;
    type Variant = Held<'a, 'de, T>;
    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Held<'a, 'de, T>)> {
        match self {
            Variant::Unit(name) => {
                Ok((seed.deserialize(Spelled(name, Charset::Utf8))?, Held(None)))
            }
            Variant::Holding(reader) => {
                Ok((seed.deserialize(Key(&mut *reader))?, Held(Some(reader))))
            }
        }
    }
}

/// What a variant holds.
struct Held<'a, 'de, T>(Option<&'a mut Reader<'de, T>>);

impl<'a, 'de, T: Text<'de>> Held<'a, 'de, T> {
    fn reader(self) -> Result<&'a mut Reader<'de, T>> {
        self.0.ok_or_else(|| de::Error::custom("the name of a variant without what it holds"))
    }
}

impl<'de, T: Text<'de>> de::VariantAccess<'de> for Held<'_, 'de, T> {
    type Error = Error;
    fn unit_variant(self) -> Result<()> {
        match self.0 {
            Some(reader) => de::Deserialize::deserialize(reader),
            None => Ok(()),
        }
    }
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        seed.deserialize(self.reader()?)
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        de::Deserializer::deserialize_seq(self.reader()?, visitor)
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        de::Deserializer::deserialize_struct(self.reader()?, "", fields, visitor)
    }
}
