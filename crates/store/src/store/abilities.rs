//! What a store can do and promise, known before anything is asked of it.

use std::{fmt, str::FromStr};

use super::query::Query;
use crate::{
    Error, Result,
    durability::{Bound, Limit, Tier},
    record::Kind,
};

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
    /// It can join two tables in one request ([`Store::join`](super::Store::join)).
    pub joins: bool,
    /// A batch is written whole or not at all.
    pub atomic: bool,
    /// It writes and deletes a record if what is under the key is as expected, in one step
    /// ([`Store::put_if`](super::Store::put_if), [`Store::remove_if`](super::Store::remove_if)).
    pub conditional: bool,
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
        // Declared here for all, as it is true of all.
        let cannot = [Need::Look];
        match self.cannot.iter().chain(&cannot).find(|need| needs.contains(need)) {
            None => Ok(()),
            Some(need) => {
                Err(Error::unsupported(format!("{} cannot {}", self.driver, need.phrase())))
            }
        }
    }

    /// The kinds of values that comparisons find as what they are, for a [`Matcher`](super::query::Matcher): where the
    /// store compares times itself no text is one; where it cannot, those that are not kept have become texts.
    pub fn compared(&self) -> &'static [Kind] {
        match [Need::Find, Need::Times].iter().any(|need| self.cannot.contains(need)) {
            true => self.keeps,
            false => &Kind::ALL,
        }
    }

    /// Answers whether there are conditional writes.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported), naming the store.
    pub fn can_conditional(&self) -> Result<()> {
        match self.conditional {
            true => Ok(()),
            false => {
                let what = format!("{} has no conditional writes", self.driver);
                let hint = "`steelyard stores --table` lists the stores that have them";
                Err(Error::unsupported(what).with_hint(hint))
            }
        }
    }

    /// Answers whether tables can be joined.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported), saying who can.
    pub fn can_join(&self) -> Result<()> {
        match self.joins {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "{} cannot join two tables in one query; mongodb and the SQL stores can, in the \
                 layouts document and columns",
                self.driver
            ))),
        }
    }
}

/// What a query may need of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
    /// Looking at a record for more than comparisons: what a text contains, patterns, counts, lengths, elements
    /// of lists, parts of MARC records. No store does.
    Look,
    /// Comparing with times what is kept as a text.
    Times,
    /// Comparing with numbers of more than 34 digits, which the decimals of IEEE 754 have.
    Digits,
}

impl Need {
    /// A phrase that fits after "cannot".
    fn phrase(self) -> &'static str {
        match self {
            Need::Find => "find records by their fields, only by key",
            Need::Sort => "sort records",
            Need::TextOrder => "compare texts in the order of their UTF-8 bytes",
            Need::Missing => "tell null from a missing field",
            Need::Nested => "look inside a map",
            Need::Not => "negate a condition",
            Need::Look => {
                "test what a text contains, patterns, counts, lengths, elements of lists and parts of MARC records"
            }
            Need::Times => "compare texts as times",
            Need::Digits => "compare with a number of more than 34 digits",
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
            Error::invalid(format!("unknown layout {name:?}; known: document, columns, blob"))
        })
    }
}

/// Whose code speaks to a store. What is measured through it includes that code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Steelyard's own.
    Own,
    /// That of a crate, by its name.
    Crate(&'static str),
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Client::Own => "own",
            Client::Crate(name) => name,
        })
    }
}

/// What a store says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Whose code speaks to it.
    pub client: Client,
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
    /// What limits the loss, where that is t2 and the store says.
    pub bound: Option<Bound>,
    /// A setting that makes it less than its syncs would give; it is in `set` already.
    pub limit: Option<Limit>,
    /// The settings that decide that, and other things worth knowing, as read back.
    pub settings: Vec<(String, String)>,
    /// Bytes on disk, where the store tells.
    pub disk: Option<u64>,
}
