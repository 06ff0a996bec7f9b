//! What a store can do and promise, known before anything is asked of it.

use std::{fmt, str::FromStr};

use super::query::Query;
use crate::{Error, Result, record::Kind};

/// What a store can do.
#[derive(Debug, Clone)]
pub struct Abilities {
    /// The name of the driver.
    pub driver: &'static str,
    /// The kinds of value that come back equal. Others change, as `loses` says, or are refused.
    pub keeps: &'static [Kind],
    /// What is lost, in a phrase a report can print; empty where nothing is.
    pub loses: &'static str,
    /// What of queries it cannot do, or not in the way that [`Query`] means it.
    pub cannot: &'static [Need],
    /// A batch is written whole or not at all.
    pub atomic: bool,
    /// [`scan`](super::Store::scan) goes in the order of keys.
    pub ordered: bool,
    /// The longest key, in bytes.
    pub max_key: usize,
    /// The largest record, in bytes as the store counts them.
    pub max_record: usize,
}

impl Abilities {
    /// Answers whether a query can be done.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported), naming what cannot.
    pub fn can(&self, query: &Query) -> Result<()> {
        let needs = query.needs();
        match self.cannot.iter().find(|need| needs.contains(need)) {
            None => Ok(()),
            Some(need) => {
                Err(Error::unsupported(format!("{} cannot {}", self.driver, need.phrase())))
            }
        }
    }
}

/// What a query may need of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// Finding records by anything but their keys.
    Find,
    /// Ordering records.
    Sort,
    /// Telling which of two texts comes first, in the order of their UTF-8 bytes.
    TextOrder,
    /// Telling a field that is null from one that is not there.
    Missing,
    /// Looking inside a map.
    Nested,
    /// What is true where something is not.
    Not,
}

impl Need {
    /// A phrase that fits after "cannot".
    fn phrase(self) -> &'static str {
        match self {
            Need::Find => "find records by their fields, only by key; `each` goes through them all",
            Need::Sort => "sort records",
            Need::TextOrder => "compare texts in the order of their UTF-8 bytes",
            Need::Missing => "tell a null from a field that is not there",
            Need::Nested => "look inside a map",
            Need::Not => "negate a condition",
        }
    }
}

/// How a record lies in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A document, which the store can look into: native, or a JSON column.
    Document,
    /// A typed column for each field.
    Columns,
    /// Bytes in a format, which the store cannot look into.
    Blob,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Shape; 3] = [Shape::Document, Shape::Columns, Shape::Blob];

    /// The one word it goes by.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Document => "document",
            Shape::Columns => "columns",
            Shape::Blob => "blob",
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Shape {
    type Err = Error;
    fn from_str(name: &str) -> Result<Shape> {
        Shape::ALL.into_iter().find(|shape| shape.name() == name).ok_or_else(|| {
            Error::invalid(format!("no layout {name:?}; known: document, columns, blob"))
        })
    }
}

/// What an acknowledged write has survived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Nothing: it is in memory.
    T0,
    /// The end of the store's process: the operating system has it.
    T1,
    /// A crash of the machine, but for the last moments.
    T2,
    /// A crash of the machine.
    T3,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Tier; 4] = [Tier::T0, Tier::T1, Tier::T2, Tier::T3];

    /// The one word it goes by.
    pub fn name(self) -> &'static str {
        match self {
            Tier::T0 => "t0",
            Tier::T1 => "t1",
            Tier::T2 => "t2",
            Tier::T3 => "t3",
        }
    }

    /// What it promises, in a phrase.
    pub fn promise(self) -> &'static str {
        match self {
            Tier::T0 => "volatile",
            Tier::T1 => "survives the end of the process",
            Tier::T2 => "bounded loss when the machine crashes",
            Tier::T3 => "durable when acknowledged",
        }
    }

    /// The error of a store that cannot promise this tier, naming those it can.
    pub fn refused(self, store: &str, can: &[Tier]) -> Error {
        let can: Vec<_> = can.iter().map(|tier| format!("{tier} ({})", tier.promise())).collect();
        Error::unsupported(format!(
            "{store} cannot promise durability {self} ({}); it can: {}",
            self.promise(),
            if can.is_empty() { "none".into() } else { can.join(", ") }
        ))
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tier {
    type Err = Error;
    fn from_str(name: &str) -> Result<Tier> {
        let lower = name.to_ascii_lowercase();
        Tier::ALL.into_iter().find(|tier| tier.name() == lower).ok_or_else(|| {
            Error::invalid(format!(
                "no durability {name:?}; known: t0 (volatile), t1 (survives the process), t2 (bounded loss), t3 (durable)"
            ))
        })
    }
}

/// What a store says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The product's name, as the server gives it where it does: `MariaDB`, `SQLite`.
    pub product: String,
    /// Its version.
    pub version: String,
    /// How records lie in it.
    pub shape: Shape,
    /// The format of blobs, with wraps.
    pub format: Option<String>,
    /// The durability asked for.
    pub asked: Option<Tier>,
    /// The durability its settings give, as read back from it; none where it does not tell.
    pub set: Option<Tier>,
    /// The settings that decide that, and other things worth knowing, as read back.
    pub settings: Vec<(String, String)>,
    /// Bytes on disk, where the store tells.
    pub disk: Option<u64>,
}
