//! What a connection is set to: whose tables and whose rows the next statement sees.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{
    dialect::literal,
    table::{Lazy, TENANT_SETTING},
};
use crate::{
    Error, Result,
    store::{pool::Share, sql::quote},
};

/// What the connections are set to that are asked for one place.
#[derive(Default)]
pub(super) struct Setting {
    /// The statements for it, whatever a connection was set to before.
    pub text: String,
    /// How many connections it may have at once, where it shares them.
    pub share: Option<Share>,
    /// How often what was prepared for it was forgotten.
    age: AtomicU64,
}

impl Setting {
    /// That of a table's schema, and of a tenant.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a tenant that has a NUL in its name.
    pub(super) fn new(table: &Lazy, tenant: Option<&str>) -> Result<Setting> {
        let schema = match &table.names.schema {
            Some(schema) => format!("SET search_path = {};", quote(schema)),
            None => "RESET search_path;".to_owned(),
        };
        let tenant = match tenant {
            Some(tenant) if tenant.contains('\0') => {
                return Err(Error::invalid("a tenant with a NUL in its name"));
            }
            Some(tenant) => format!("SET {TENANT_SETTING} = {};", literal(tenant)),
            None => format!("RESET {TENANT_SETTING};"),
        };
        Ok(Setting { text: schema + &tenant, ..Setting::default() })
    }

    /// Whether a connection that is set to the one does for the other.
    pub(super) fn is_as(self: &Arc<Setting>, other: &Arc<Setting>) -> bool {
        Arc::ptr_eq(self, other) || self.text == other.text
    }

    /// What was prepared for it is prepared anew.
    pub(super) fn forget(&self) {
        self.age.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn age(&self) -> u64 {
        self.age.load(Ordering::Relaxed)
    }
}
