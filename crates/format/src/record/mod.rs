//! The data model of records, independent of any format and any store.
//!
//! A [`Value`] is anything a record can hold; a [`Document`] is an ordered map of them. Every
//! format turns them into bytes and back, every store keeps them, and [`dataset`] makes some from
//! a seed. This room knows only [`error`](crate::error); it does no I/O.
//!
//! To add a kind of value: a variant in [`Value`], its line in [`Kind`], and its passage through
//! serde in `native.rs`; the formats' declarations of what they keep then have to name it.

pub mod dataset;
mod de;
mod document;
pub mod native;
pub mod number;
mod ser;
mod time;
mod value;

pub use de::from_value;
pub(crate) use de::spelled_name;
pub use document::Document;
pub use ser::to_value;
pub use time::Time;
pub use value::{Kind, Value};
