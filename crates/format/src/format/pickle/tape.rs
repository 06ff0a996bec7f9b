//! The parse result of a pickle: nodes that refer to ranges of its bytes, and to one another.

use super::natives::{self, Item, Maker};
use crate::format::objects::limits::Budget;

/// A value. What `a` and `b` mean depends on the kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub kind: Kind,
    /// How many items a list or map has, or 65,535.
    pub count: u16,
    /// The item after it in the list or map it is in; 0 for none.
    pub next: u32,
    pub a: u32,
    pub b: u32,
}

/// What a [`Node`] is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Null,
    False,
    True,
    /// `a` and `b` are the low and high half.
    Int,
    Float,
    /// From offset `a` of the pickle, `b` bytes in two's complement.
    Long,
    /// From offset `a` of the pickle, `b` decimal digits.
    Digits,
    /// From offset `a` of the pickle, `b` bytes.
    Text,
    /// A string of Python 2, which may be either.
    Either,
    Bytes,
    /// From offset `a` of the unescaped text, `b` bytes.
    Unescaped,
    UnescapedEither,
    /// From the node `a` to the node `b`, by `next`; none where `a` is 0.
    List,
    /// The same, names and values by turns.
    Map,
    /// The list or map at node `a`.
    Link,
    /// Microseconds since 1970, UTC.
    Time,
    /// Microseconds since 1970 on a clock nobody knows the zone of.
    Naive,
    /// Days since 1970.
    Date,
    /// From offset `a` of the pickle, `b` bytes: digits, sign, point, exponent.
    Decimal,
    /// What may be called: its number in `natives`.
    Maker,
    /// Microseconds of a `timedelta`.
    Delta,
    /// Microseconds by which a `timezone` is before UTC.
    Zone,
}

impl Node {
    pub(super) fn new(kind: Kind, a: u32, b: u32) -> Self {
        Node { kind, count: 0, next: 0, a, b }
    }

    /// An integer or the bits of a float.
    pub(super) fn wide(kind: Kind, v: u64) -> Self {
        Node::new(kind, v as u32, (v >> 32) as u32)
    }

    pub(super) fn to_wide(self) -> u64 {
        u64::from(self.a) | u64::from(self.b) << 32
    }
}

/// The values of a pickle.
pub(super) struct Tape<'de> {
    pub input: &'de [u8],
    /// The first is not used: 0 stands for none.
    pub nodes: Vec<Node>,
    /// Texts that were written with escapes, one after another.
    pub unescaped: Vec<u8>,
    pub root: u32,
    /// What may still be spent on reading links.
    pub budget: Budget,
}

impl<'de> Tape<'de> {
    /// The text at node `n`, if it is text that stands in the pickle as it is.
    pub(super) fn text(&self, n: u32) -> Option<&'de [u8]> {
        let node = self.nodes[n as usize];
        matches!(node.kind, Kind::Text | Kind::Either).then(|| self.span(node))
    }

    /// The bytes of the pickle that a node stands for.
    pub(super) fn span(&self, node: Node) -> &'de [u8] {
        &self.input[node.a as usize..][..node.b as usize]
    }

    /// What comes of calling `maker` with the tuple at node `arguments`, as a node; none where Python
    /// would not have written that.
    pub(super) fn call(&self, maker: Maker, arguments: u32) -> Option<Node> {
        let mut tuple = self.nodes[arguments as usize];
        if tuple.kind == Kind::Link {
            tuple = self.nodes[tuple.a as usize];
        }
        let count = usize::from(tuple.count);
        if tuple.kind != Kind::List || count > 3 {
            return None;
        }
        let (mut items, mut next) = ([Item::Other; 3], tuple.a);
        for item in &mut items[..count] {
            let node = self.nodes[next as usize];
            (*item, next) = (self.item(node), node.next);
        }
        let (kind, number) = match natives::call(maker, &items[..count])? {
            Item::Time(micros) => (Kind::Time, micros),
            Item::Naive(micros) => (Kind::Naive, micros),
            Item::Date(days) => (Kind::Date, days),
            Item::Delta(micros) => (Kind::Delta, micros),
            Item::Zone(micros) => (Kind::Zone, micros),
            // Its digits are those of its only argument.
            Item::Decimal(_) => {
                let digits = self.nodes[tuple.a as usize];
                return Some(Node::new(Kind::Decimal, digits.a, digits.b));
            }
            _ => return None,
        };
        Some(Node::wide(kind, number as u64))
    }

    /// A node as an argument, or as what came of a call.
    pub(super) fn item(&self, node: Node) -> Item<'de> {
        let number = node.to_wide() as i64;
        match node.kind {
            Kind::Text => Item::Text(self.span(node)),
            Kind::Bytes | Kind::Either => Item::Bytes(self.span(node)),
            Kind::Int => Item::Int(number),
            Kind::Time => Item::Time(number),
            Kind::Naive => Item::Naive(number),
            Kind::Date => Item::Date(number),
            Kind::Decimal => Item::Decimal(self.span(node)),
            Kind::Delta => Item::Delta(number),
            Kind::Zone => Item::Zone(number),
            _ => Item::Other,
        }
    }
}
