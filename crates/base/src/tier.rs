//! The four tiers of durability.

use std::{fmt, str::FromStr};

use crate::{Error, Result};

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
                "unknown durability {name:?}; known: t0 (volatile), t1 (survives the process), t2 \
                 (bounded loss), t3 (durable)"
            ))
        })
    }
}
