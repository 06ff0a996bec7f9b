//! What a record can hold.

use super::{Document, Time};

/// Anything a record can hold.
///
/// Equality is equality of what is kept: floats compare by bits, so NaN equals itself and 0.0
/// differs from -0.0; an `Int` never equals a `Float`.
#[derive(Debug, Clone)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// A whole number beyond 64 bits, as decimal digits with an optional leading `-`.
    BigInt(Box<str>),
    /// A binary floating-point number of 64 bits.
    Float(f64),
    /// An exact decimal number, as digits with optional sign, point and exponent.
    Decimal(Box<str>),
    /// Unicode text.
    Text(String),
    /// Bytes that are not text.
    Bytes(Vec<u8>),
    /// A moment.
    Time(Time),
    /// Values in order.
    List(Vec<Value>),
    /// Names with values, in order.
    Map(Document),
}

/// The kinds of [`Value`], for declarations of what a format keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Null,
    Bool,
    Int,
    BigInt,
    Float,
    Decimal,
    Text,
    Bytes,
    Time,
    List,
    Map,
}

impl Kind {
    /// Every kind, in the order of [`Value`]'s variants.
    pub const ALL: [Kind; 11] = [
        Kind::Null,
        Kind::Bool,
        Kind::Int,
        Kind::BigInt,
        Kind::Float,
        Kind::Decimal,
        Kind::Text,
        Kind::Bytes,
        Kind::Time,
        Kind::List,
        Kind::Map,
    ];

    /// The kind's name in tables and messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::BigInt => "bigint",
            Kind::Float => "float",
            Kind::Decimal => "decimal",
            Kind::Text => "text",
            Kind::Bytes => "bytes",
            Kind::Time => "time",
            Kind::List => "list",
            Kind::Map => "map",
        }
    }

    /// The name as a sentence has it: `an int`, `text`.
    pub fn one(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "a bool",
            Kind::Int => "an int",
            Kind::BigInt => "a bigint",
            Kind::Float => "a float",
            Kind::Decimal => "a decimal",
            Kind::Text => "text",
            Kind::Bytes => "bytes",
            Kind::Time => "a time",
            Kind::List => "a list",
            Kind::Map => "a map",
        }
    }
}

impl Value {
    /// What kind of value this is.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::BigInt(_) => Kind::BigInt,
            Value::Float(_) => Kind::Float,
            Value::Decimal(_) => Kind::Decimal,
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
            Value::Time(_) => Kind::Time,
            Value::List(_) => Kind::List,
            Value::Map(_) => Kind::Map,
        }
    }

    /// The whole number `n`, as `Int` where it fits in 64 bits, else as `BigInt`.
    pub fn from_integer(n: i128) -> Value {
        i64::try_from(n).map_or_else(|_| Value::BigInt(n.to_string().into()), Value::Int)
    }

    /// Whether both are equal but for the order of names in maps.
    pub fn same_in_any_order(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Map(a), Value::Map(b)) => a.same_in_any_order(b),
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_in_any_order(b))
            }
            _ => self == other,
        }
    }

    /// The text, where it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(s) => Some(s),
            _ => None,
        }
    }

    /// The document, where it is a map.
    pub fn as_map(&self) -> Option<&Document> {
        match self {
            Value::Map(m) => Some(m),
            _ => None,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::BigInt(a), Value::BigInt(b)) | (Value::Decimal(a), Value::Decimal(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::Time(a), Value::Time(b)) => a == b,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Map(a), Value::Map(b)) => a == b,
            _ => false,
        }
    }
}

macro_rules! from {
    ($($from:ty => $to:expr),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from(v: $from) -> Value {
                #[allow(clippy::redundant_closure_call)]
                ($to)(v)
            }
        })*
    };
}

from! {
    bool => Value::Bool,
    i64 => Value::Int,
    i32 => |v| Value::Int(i64::from(v)),
    u32 => |v| Value::Int(i64::from(v)),
    u64 => |v| Value::from_integer(i128::from(v)),
    f64 => Value::Float,
    String => Value::Text,
    &str => |v: &str| Value::Text(v.to_owned()),
    Vec<u8> => Value::Bytes,
    Time => Value::Time,
    Vec<Value> => Value::List,
    Document => Value::Map,
}
