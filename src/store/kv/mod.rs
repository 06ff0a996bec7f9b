//! What the stores share that know keys and values and little else: tables within one space of
//! keys, records as fields of text, and, for those whose protocol is spoken here,
//! connections.
//!
//! This folder knows no driver and no protocol.

mod flat;
mod namespace;
mod portion;
mod spool;
mod wire;

pub(super) use flat::{Field, Flat, SCALARS, seconds};
pub(super) use namespace::Namespace;
pub(super) use portion::{Portion, chunks};
pub(super) use spool::Spool;
#[cfg_attr(not(feature = "redis"), allow(unused_imports))]
pub(super) use wire::as_many;
pub(super) use wire::{Address, Limits, Pool, Socket, out_of_step};
