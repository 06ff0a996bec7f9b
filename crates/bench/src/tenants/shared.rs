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
    Ok(Arc::new(Prefix::new(Arc::clone(table), tenant)?))
}

/// The layout of the shared table.
pub(super) fn layout() -> Layout {
    own_layout()
}

/// The layout of a table that is one tenant's.
pub(super) fn own_layout() -> Layout {
    Layout::plain().with_index(Path::new([FIELD]), Kind::Int)
}

/// What a page says of it.
pub(super) const ABOUT: &str = "one table; a key is tenant/key, and the index is on the field and the whole key, so that an equality \
     and the tenant's range of keys are one stretch of it";
