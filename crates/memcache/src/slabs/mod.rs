//! How memcached's memory holds what is stored: a model, exact for memcached 1.6, and pure.
//!
//! memcached cuts pages of a mebibyte into chunks of one size, a class for each size. An item takes a
//! chunk of the first class it fits in; what is left of the chunk is lost, as is the end of the
//! page, and what a class has not filled of its last page. So what an item costs is a matter of
//! the classes.
//!
//! [`Settings`] are those of a server, [`Classes`] what it makes of them (slabs.c, `slabs_init`),
//! [`Item`] is what is stored, a [`Census`] many of them, a [`Load`] where they all are.
//! [`advice`] looks for settings that take fewer pages.
//!
//! Checked against memcached 1.6.18, class by class, item by item, page by page
//! (`tests/it/slabs`). Versions differ in one thing, the unit of `-o slab_chunk_max`: see
//! [`Settings::arguments`].
//!
//! This folder knows no client and no server. To add a setting: a field of [`Settings`], its rule in
//! `check`, its argument, and what it does in `classes.rs` or `item.rs`.

pub mod advice;
mod census;
mod classes;
mod item;
mod load;
mod settings;

pub use census::Census;
pub use classes::{Class, Classes};
pub use item::{Item, Placement};
pub use load::{Load, Usage};
pub use settings::Settings;

/// The size of a page, in bytes. It is the same whatever `-I` is.
pub const PAGE: u64 = 1 << 20;
/// What an item has before its key: `sizeof(item)`, in bytes.
pub const ITEM_HEADER: u64 = 48;
/// What a piece of a large item has before its bytes: `sizeof(item_chunk)`.
pub const CHUNK_HEADER: u64 = 48;
