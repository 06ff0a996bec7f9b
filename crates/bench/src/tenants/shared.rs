//! How a table that all tenants share is laid out, and what of it is one tenant's. Nothing else knows.

use std::sync::Arc;

use super::people::FIELD;
use crate::{
    Result,
    record::Kind,
    store::{Layout, Store, query::Path, wrappers::Prefix},
};

/// What of the shared table is a tenant's.
///
/// # Errors
/// Where its name leaves no room for a key.
pub(super) fn part(table: &Arc<dyn Store>, tenant: &str) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(Prefix::tenant(Arc::clone(table), tenant)?))
}

/// The layout of the shared table.
pub(super) fn layout() -> Layout {
    own_layout().shared()
}

/// The layout of a table that is one tenant's.
pub(super) fn own_layout() -> Layout {
    Layout::plain().with_index(Path::new([FIELD]), Kind::Int)
}

/// What a page says of it.
pub(super) const ABOUT: &str = "one table; a record has its tenant in its key and in a field, with which the index on \
     the age begins; the field is put into each record that is written and taken out of each that is read, which is in \
     the times";
