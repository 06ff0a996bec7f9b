//! What the stores share that know keys and values and little else: tables within one space of
//! keys, records as fields of text, finding by key, and, for those whose protocol is spoken here,
//! connections.
//!
//! This folder knows no driver and no protocol.

mod find;
mod flat;
mod namespace;
mod portion;
mod spool;
mod wire;

pub(super) use find::{find, keys_of};
pub(super) use flat::{Field, Flat, SCALARS, seconds};
pub(super) use namespace::Namespace;
pub(super) use portion::{Portion, chunks};
pub(super) use spool::Spool;
pub(super) use wire::{Address, Limits, Pool, Socket, out_of_step};

use super::Key;
use crate::Error;

/// The error, saying which record it is about.
pub(super) fn named(error: Error, key: &Key) -> Error {
    Error::new(error.kind(), format!("key {}: {}", key.shown(), error.context())).with_source(error)
}
