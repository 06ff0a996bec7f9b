//! Places that are files: opening them by name and content, packing, splitting, writing safely.
//!
//! [`Frames`] reads the records of a file one after another, whatever it is packed with; a
//! [`Sink`] writes them. What a file is, its name and its first bytes say ([`Packing`], format),
//! unless the caller does ([`Reading`], [`Writing`]). Unpacking runs in threads of its own, in
//! several where the file has parts that can be found without unpacking; packing does so always.
//! Memory stays the same however large the file.
//!
//! This room knows [`format`](mod@crate::format) and [`error`](crate::error), and nothing of what
//! records mean. To add a packing: a variant of [`Packing`] with its names, its way in
//! (`unpack.rs`) and its way out (`pack.rs`).

mod frames;
mod kind;
mod lanes;
mod own;
mod pack;
mod part;
mod shown;
mod sink;
mod staged;
mod sweep;
mod unpack;

pub use frames::{Frame, Frames, Reading};
pub use kind::Packing;
pub use own::open_own;
pub use pack::Packer;
pub use part::Part;
pub use shown::Shown;
pub use sink::{Sink, Writing, Written};
pub use staged::Staged;
pub use unpack::Unpacker;

/// How many threads to unpack or pack with, where nobody says: all there are, up to eight, which
/// is more than one reader or writer of records can keep up with.
fn usual_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(8))
}
