//! What the formats of program objects (Ruby Marshal, Python pickle) share: whole numbers of any
//! size, keys of any kind as names, repeated keys as links, dates, and limits.
//!
//! It must not know either format.

pub(super) mod calendar;
pub(super) mod keys;
pub(super) mod limits;
pub(super) mod name;
pub(super) mod text;
pub(super) mod whole;
