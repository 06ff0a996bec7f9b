//! From the nodes of a pickle to serde.

use std::marker::PhantomData;

use serde::{
    de::{
        self, DeserializeSeed, Visitor,
        value::{BorrowedStrDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{
    machine, natives,
    tape::{Kind, Node, Tape},
    text::Text,
};
use crate::{
    Error, Result,
    format::objects::{
        limits::{Budget, deeper},
        name::{AsName, Key, ReadText},
        whole::Whole,
    },
    record::native::{BIGINT, DECIMAL, NativeText, TIME},
};

/// Reads one record by `seed`; `bytes` must hold it and nothing else. `T` says how text is handed
/// out.
pub(super) fn decode<'de, T: Text<'de>, S: DeserializeSeed<'de>>(
    seed: S,
    bytes: &'de [u8],
) -> Result<S::Value> {
    let mut tape = machine::run(bytes)?;
    let budget = std::mem::replace(&mut tape.budget, Budget::new(0));
    let root = tape.root;
    let mut values =
        Values { tape: &tape, budget, links: Vec::new(), depth: 0, text: PhantomData::<T> };
    seed.deserialize(Item { values: &mut values, n: root })
}

/// The values of a pickle, as they are read.
struct Values<'t, 'de, T> {
    tape: &'t Tape<'de>,
    budget: Budget,
    /// The lists and maps being read through links, from the outermost.
    links: Vec<u32>,
    depth: usize,
    text: PhantomData<T>,
}

/// One value: the node `n`.
struct Item<'a, 't, 'de, T> {
    values: &'a mut Values<'t, 'de, T>,
    n: u32,
}

impl<'t, 'de, T: Text<'de>> Values<'t, 'de, T> {
    #[inline]
    fn node(&self, n: u32) -> Node {
        self.tape.nodes[n as usize]
    }

    fn span(&self, node: Node) -> &'de [u8] {
        self.tape.span(node)
    }

    fn unescaped(&self, node: Node) -> &'t [u8] {
        &self.tape.unescaped[node.a as usize..][..node.b as usize]
    }

    fn whole(&self, node: Node) -> Result<Whole> {
        let bytes = self.span(node);
        match node.kind {
            Kind::Digits => Whole::from_digits(&String::from_utf8_lossy(bytes)),
            _ => Ok(Whole::from_twos_complement(bytes)),
        }
    }

    /// Reads the list or map at `n`, or linked to from it, by `read`.
    #[inline]
    fn inside<R>(&mut self, n: u32, read: impl FnOnce(&mut Self, Node) -> Result<R>) -> Result<R> {
        let node = self.node(n);
        if node.kind == Kind::Link || !self.links.is_empty() {
            return self.inside_link(node, read);
        }
        self.depth = deeper(self.depth)?;
        let done = read(self, node)?;
        self.depth -= 1;
        Ok(done)
    }

    fn inside_link<R>(
        &mut self,
        node: Node,
        read: impl FnOnce(&mut Self, Node) -> Result<R>,
    ) -> Result<R> {
        let mut target = node;
        if node.kind == Kind::Link {
            if self.links.contains(&node.a) {
                return Err(Error::malformed("an object inside itself"));
            }
            self.links.push(node.a);
            target = self.node(node.a);
        }
        self.budget.spend(1)?;
        self.depth = deeper(self.depth)?;
        let done = read(self, target)?;
        self.depth -= 1;
        if node.kind == Kind::Link {
            self.links.pop();
        }
        Ok(done)
    }

    #[inline]
    fn visit_list<V: Visitor<'de>>(&mut self, n: u32, visitor: V) -> Result<V::Value> {
        self.inside(n, |values, node| {
            let mut items = Items { values, next: node.a, hint: node.count };
            let read = visitor.visit_seq(&mut items)?;
            all_read(items.next, node)?;
            Ok(read)
        })
    }

    #[inline]
    fn visit_map<V: Visitor<'de>>(&mut self, n: u32, visitor: V) -> Result<V::Value> {
        self.inside(n, |values, node| {
            let mut items = Items { values, next: node.a, hint: node.count };
            let read = visitor.visit_map(&mut items)?;
            all_read(items.next, node)?;
            Ok(read)
        })
    }

    /// Hands a value to a visitor that takes anything.
    #[inline]
    fn visit<V: Visitor<'de>>(&mut self, n: u32, visitor: V) -> Result<V::Value> {
        let mut node = self.node(n);
        if !self.links.is_empty() {
            let cost = match node.kind {
                Kind::Int | Kind::Float | Kind::List | Kind::Map | Kind::Link => 1,
                Kind::Time | Kind::Naive | Kind::Date => 32,
                Kind::Maker | Kind::Delta | Kind::Zone => 1,
                _ => 1 + node.b as usize,
            };
            self.budget.spend(cost)?;
        }
        if node.kind == Kind::Link {
            node.kind = self.node(node.a).kind;
        }
        match node.kind {
            Kind::Text => T::visit(self.span(node), visitor),
            Kind::Map => self.visit_map(n, visitor),
            Kind::List => self.visit_list(n, visitor),
            Kind::Int => visitor.visit_i64(node.to_wide() as i64),
            Kind::Float => visitor.visit_f64(f64::from_bits(node.to_wide())),
            Kind::Null => visitor.visit_unit(),
            Kind::False => visitor.visit_bool(false),
            Kind::True => visitor.visit_bool(true),
            Kind::Bytes => visitor.visit_borrowed_bytes(self.span(node)),
            Kind::Either => T::visit(self.span(node), visitor),
            Kind::Long | Kind::Digits => self.whole(node)?.visit(visitor),
            Kind::Unescaped | Kind::UnescapedEither => {
                let bytes = self.unescaped(node);
                match std::str::from_utf8(bytes) {
                    Ok(text) => visitor.visit_str(text),
                    Err(_) => visitor.visit_bytes(bytes),
                }
            }
            Kind::Link => Err(Error::malformed("a link to a link")),
            _ => natives::visit(self.tape.item(node), visitor),
        }
    }
}

fn all_read(next: u32, node: Node) -> Result<()> {
    match next {
        0 => Ok(()),
        _ => Err(de::Error::invalid_length(node.count.into(), &"fewer, for the type wanted")),
    }
}

/// The items of a list, or the names and values of a map, from `next` on.
struct Items<'a, 't, 'de, T> {
    values: &'a mut Values<'t, 'de, T>,
    next: u32,
    hint: u16,
}

impl<'t, 'de, T: Text<'de>> Items<'_, 't, 'de, T> {
    #[inline]
    fn step(&mut self) -> Option<Item<'_, 't, 'de, T>> {
        let n = self.next;
        if n == 0 {
            return None;
        }
        self.next = self.values.node(n).next;
        Some(Item { values: self.values, n })
    }
}

impl<'de, T: Text<'de>> de::SeqAccess<'de> for Items<'_, '_, 'de, T> {
    type Error = Error;
    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        self.step().map(|item| seed.deserialize(item)).transpose()
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.hint.into())
    }
}

impl<'de, T: Text<'de>> de::MapAccess<'de> for Items<'_, '_, 'de, T> {
    type Error = Error;
    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        self.step().map(|item| seed.deserialize(Key(item))).transpose()
    }
    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        match self.step() {
            Some(item) => seed.deserialize(item),
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.hint.into())
    }
}

impl<'t, 'de, T: Text<'de>> Item<'_, 't, 'de, T> {
    #[inline]
    fn node(&self) -> Node {
        self.values.node(self.n)
    }

    fn read_float<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let node = self.node();
        let digits = match node.kind {
            Kind::Long | Kind::Digits => self.values.whole(node)?.into_digits(),
            Kind::Decimal => String::from_utf8_lossy(self.values.span(node)).into_owned(),
            _ => return self.values.visit(self.n, visitor),
        };
        if let Ok(v) = digits.parse() {
            return visitor.visit_f64(v);
        }
        self.values.visit(self.n, visitor)
    }
}

impl<'de, T: Text<'de>> ReadText<'de> for Item<'_, '_, 'de, T> {
    #[inline]
    fn read_text<V: Visitor<'de>>(self, key: bool, visitor: V) -> Result<V::Value> {
        let node = self.node();
        match node.kind {
            Kind::Text if self.values.links.is_empty() => T::visit(self.values.span(node), visitor),
            Kind::Bytes => <&str>::visit(self.values.span(node), visitor),
            Kind::Long | Kind::Digits => {
                visitor.visit_string(self.values.whole(node)?.into_digits())
            }
            Kind::Time | Kind::Decimal => {
                visitor.visit_string(natives::text(self.values.tape.item(node))?)
            }
            _ if key => self.values.visit(self.n, AsName { inner: visitor, numbers: true }),
            _ => self.values.visit(self.n, visitor),
        }
    }
    #[inline]
    fn read_key<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let node = self.node();
        match node.kind {
            Kind::Text if self.values.links.is_empty() => T::visit(self.values.span(node), visitor),
            _ => self.values.visit(self.n, AsName { inner: visitor, numbers: false }),
        }
    }
}

impl<'de, T: Text<'de>> de::Deserializer<'de> for Item<'_, '_, 'de, T> {
    type Error = Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.values.visit(self.n, visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.read_text(false, visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let node = self.node();
        match node.kind {
            Kind::Text | Kind::Either => visitor.visit_borrowed_bytes(self.values.span(node)),
            _ => self.values.visit(self.n, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.node().kind {
            Kind::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        let node = self.node();
        if let TIME | DECIMAL | BIGINT = name {
            let text = match node.kind {
                Kind::Int => (node.to_wide() as i64).to_string(),
                Kind::Long | Kind::Digits => self.values.whole(node)?.into_digits(),
                Kind::Time if name == TIME => {
                    let time = natives::time(node.to_wide() as i64)?;
                    return NativeText::from(time).deserialize_newtype_struct(TIME, visitor);
                }
                Kind::Decimal if name == DECIMAL => {
                    String::from_utf8_lossy(self.values.span(node)).into_owned()
                }
                _ => return visitor.visit_newtype_struct(self),
            };
            return visitor.visit_newtype_struct(StringDeserializer::new(text));
        }
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.node().kind {
            Kind::List => self.values.visit_list(self.n, visitor),
            _ => self.values.visit(self.n, visitor),
        }
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.node().kind {
            Kind::Map => self.values.visit_map(self.n, visitor),
            _ => self.values.visit(self.n, visitor),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let mut node = self.node();
        if node.kind == Kind::Link {
            node.kind = self.values.node(node.a).kind;
        }
        match node.kind {
            Kind::Map => self.values.inside(self.n, |values, node| {
                if node.count != 1 {
                    let what = "a map of one pair, from a variant to what it holds";
                    return Err(de::Error::invalid_length(node.count.into(), &what));
                }
                visitor.visit_enum(Variant(Items { values, next: node.a, hint: 1 }))
            }),
            Kind::Text => match std::str::from_utf8(self.values.span(node)) {
                Ok(variant) => visitor.visit_enum(BorrowedStrDeserializer::new(variant)),
                Err(_) => self.values.visit(self.n, visitor),
            },
            _ => self.values.visit(self.n, visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.read_float(visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.read_float(visitor)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let node = self.node();
        if let Kind::Long | Kind::Digits = node.kind
            && let Whole::U128(v) = self.values.whole(node)?
        {
            return visitor.visit_u128(v);
        }
        self.values.visit(self.n, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
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

/// A variant of an enum and what it holds.
struct Variant<'a, 't, 'de, T>(Items<'a, 't, 'de, T>);

impl<'a, 't, 'de, T: Text<'de>> de::EnumAccess<'de> for Variant<'a, 't, 'de, T> {
    type Error = Error;
    type Variant = Self;
    fn variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<(S::Value, Self)> {
        match de::MapAccess::next_key_seed(&mut self.0, seed)? {
            Some(variant) => Ok((variant, self)),
            None => Err(de::Error::custom("no variant")),
        }
    }
}

impl<'t, 'de, T: Text<'de>> Variant<'_, 't, 'de, T> {
    fn held(&mut self) -> Result<Item<'_, 't, 'de, T>> {
        self.0.step().ok_or_else(|| de::Error::custom("a variant without what it holds"))
    }
}

impl<'de, T: Text<'de>> de::VariantAccess<'de> for Variant<'_, '_, 'de, T> {
    type Error = Error;
    fn unit_variant(mut self) -> Result<()> {
        de::Deserialize::deserialize(self.held()?)
    }
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(self.held()?)
    }
    fn tuple_variant<V: Visitor<'de>>(mut self, _: usize, visitor: V) -> Result<V::Value> {
        de::Deserializer::deserialize_seq(self.held()?, visitor)
    }
    fn struct_variant<V: Visitor<'de>>(
        mut self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        de::Deserializer::deserialize_map(self.held()?, visitor)
    }
}
