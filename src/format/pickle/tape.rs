//! What a pickle makes: nodes that point into its bytes, and at one another.

use crate::format::objects::limits::Budget;

/// A value. What `a` and `b` mean depends on the kind.
#[derive(Debug, Clone, Copy)]
pub struct Node {
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
pub enum Kind {
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
}

impl Node {
    pub fn new(kind: Kind, a: u32, b: u32) -> Self {
        Node { kind, count: 0, next: 0, a, b }
    }

    /// An integer or the bits of a float.
    pub fn wide(kind: Kind, v: u64) -> Self {
        Node::new(kind, v as u32, (v >> 32) as u32)
    }

    pub fn to_wide(self) -> u64 {
        u64::from(self.a) | u64::from(self.b) << 32
    }
}

/// The values of a pickle.
pub struct Tape<'de> {
    pub input: &'de [u8],
    /// The first is not used: 0 stands for none.
    pub nodes: Vec<Node>,
    /// Texts that were written with escapes, one after another.
    pub unescaped: Vec<u8>,
    pub root: u32,
    /// What may still be spent on reading links.
    pub budget: Budget,
}
