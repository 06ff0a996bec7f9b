//! What the catalog has of a tenant.

use std::fmt;

use serde::{Deserialize, Serialize};
use steelyard_base::{Error, Result};

use crate::{
    config::{Limits, rate},
    random,
};

/// The name of a database: a prefix and 128 random bits, and nothing that anybody typed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DatabaseId(Box<str>);

/// What the names begin with, so that an operator sees whose they are.
const PREFIX: &str = "steelyard_";

impl DatabaseId {
    /// One that no database has.
    ///
    /// # Errors
    /// Where the system has no random bytes.
    pub fn fresh() -> Result<DatabaseId> {
        Ok(DatabaseId(format!("{PREFIX}{}", random::hex::<16>()?).into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A catalog that somebody changed by hand cannot name another database than one that was made here.
impl TryFrom<String> for DatabaseId {
    type Error = Error;
    fn try_from(text: String) -> Result<DatabaseId> {
        let digits = text.strip_prefix(PREFIX).unwrap_or_default();
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        match digits.len() == 32 && digits.chars().all(is_hex) {
            true => Ok(DatabaseId(text.into())),
            false => Err(Error::malformed(format!("{text:?} is no name of a tenant's database"))),
        }
    }
}

impl From<DatabaseId> for String {
    fn from(id: DatabaseId) -> String {
        id.0.into()
    }
}

/// Whether a tenant is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// It is.
    Active,
    /// It can be read, and not written.
    Frozen,
    /// Its records are on their way to another database; neither read nor written until they are there.
    Moving {
        /// Who moves it: a random name of that run.
        mover: String,
        /// The shard it goes to.
        shard: String,
        /// The database there, which this run makes.
        database: DatabaseId,
    },
    /// It was removed; its name is not used again.
    Removed,
}

impl State {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            State::Active => "active",
            State::Frozen => "frozen",
            State::Moving { .. } => "moving",
            State::Removed => "removed",
        }
    }
}

/// A tenant, as the catalog has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TenantRow {
    /// What operators call it.
    pub name: String,
    /// The shard that has its database.
    pub shard: String,
    /// Its database there; of a shard that is one place of its own, its marker.
    pub database: DatabaseId,
    /// How often the place or state changed.
    pub epoch: u64,
    /// Whether it is served.
    pub state: State,
    /// Limits of its own.
    #[serde(default)]
    pub limits: TenantLimits,
    /// When it was added, in RFC 3339.
    pub created: String,
    /// Databases that were the tenant's, or were to be, and are to be dropped.
    #[serde(default)]
    pub abandoned: Vec<Abandoned>,
}

/// A database that nobody uses any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Abandoned {
    /// The shard that has it.
    pub shard: String,
    /// The database.
    pub database: DatabaseId,
}

/// Limits of one tenant, in place of those of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TenantLimits {
    /// Requests a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// Collections at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections: Option<u64>,
    /// Bytes of its database at most; 0 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl TenantLimits {
    /// Whether these are limits.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(given) = self.requests_per_second {
            rate("requests_per_second", given)?;
        }
        // What a catalog can keep.
        match [self.collections, self.bytes].into_iter().flatten().max() {
            Some(most) if most > i64::MAX as u64 => {
                Err(Error::invalid(format!("{most}: a limit is {} at most", i64::MAX)))
            }
            _ => Ok(()),
        }
    }

    /// Requests a second: its own, or those that all have.
    pub(crate) fn rate(&self, all: &Limits) -> f64 {
        self.requests_per_second.unwrap_or(all.requests_per_second)
    }

    /// Collections at most: its own, or those that all have.
    pub(crate) fn collections(&self, all: &Limits) -> u64 {
        self.collections.unwrap_or(all.collections)
    }

    /// Bytes of its database at most: its own, or those that all have; 0 for no limit.
    pub(crate) fn bytes(&self, all: &Limits) -> u64 {
        self.bytes.unwrap_or(all.tenant_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_databases_are_ours_alone() {
        let id = DatabaseId::fresh().unwrap();
        assert_eq!(DatabaseId::try_from(id.to_string()).unwrap(), id);
        let long = format!("{PREFIX}{}", "0".repeat(33));
        let upper = format!("{PREFIX}{}", "A".repeat(32));
        for text in ["", "mysql", "steelyard_", "../x", &long, &upper, &format!("x{id}")] {
            assert!(DatabaseId::try_from(text.to_owned()).is_err(), "{text:?}");
        }
    }
}
