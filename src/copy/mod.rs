//! MOVING. Records from one place to another: read, choose, convert, write, count.

mod select;

pub use select::{Condition, Fields, Path};
