//! What the layouts of a driver can do, known without opening a store: the table of `steelyard stores --table`. The
//! contract suite of `tests/it/stores` opens each and holds it to what stands here.

use super::{Abilities, Shape};
use crate::record::Kind;

/// What one layout of a driver can do, with the settings that a server has by default.
#[derive(Debug)]
pub struct Facts {
    /// The layout.
    pub shape: Shape,
    /// What a store of it answers when it is opened. Of blobs: what the bytes allow; which kinds of value come back
    /// is the format's affair.
    pub abilities: Abilities,
    /// The kinds of value of which every one is refused. What is neither kept nor refused changes.
    pub refuses: &'static [Kind],
    /// How many maps and lists may lie in one another, the record counted as the first; none where that is not limited.
    pub levels: Option<usize>,
    /// The kinds of value that an index finds; empty where there are no indexes but that of the key.
    pub indexed: &'static [Kind],
    /// An index can be on a field of a map inside a record.
    pub nested: bool,
    /// Several statements can be one transaction ([`put_each`](super::Store::put_each)).
    pub transactions: bool,
}

impl Facts {
    /// A layout without limits, indexes and transactions: what it has is set beside this.
    pub(super) const fn of(shape: Shape, abilities: Abilities) -> Facts {
        Facts {
            shape,
            abilities,
            refuses: &[],
            levels: None,
            indexed: &[],
            nested: false,
            transactions: false,
        }
    }
}
