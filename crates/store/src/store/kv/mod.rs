//! What the stores share that know keys and values and little else: tables within one space of
//! keys, records as fields of text, answers that are none.
//!
//! This folder knows no driver and no protocol.

mod answers;
mod flat;
mod namespace;
mod portion;
mod spool;

#[cfg_attr(not(feature = "redis"), allow(unused_imports))]
pub(super) use answers::as_many;
pub(super) use answers::out_of_step;
pub(super) use flat::{Field, Flat, LEVELS, SCALARS, seconds};
#[cfg_attr(not(feature = "redis"), allow(unused_imports))]
pub(super) use flat::{KINDS, kinds_of_text};
pub(super) use namespace::Namespace;
pub(super) use portion::{Portion, chunks};
pub(super) use spool::Spool;
