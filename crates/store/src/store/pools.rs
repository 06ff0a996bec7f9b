//! One pool of connections for each server, however many of its databases, schemas or tenants are open.
//!
//! As many parts as the pool has connections keep one each, after their first operations. Beyond, a connection is set to what
//! the next operation is for, where it was last used for another (`USE` on MySQL, `search_path` and the setting of the tenant on
//! PostgreSQL), and the answer to that is waited for first; MongoDB names the database in each command. PostgreSQL cannot change
//! the database of a connection: there each database has a pool.

use std::{
    collections::HashMap,
    fmt::{self, Display},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OnceCell;

use super::{Databases, Place, Url, driver, open};
use crate::{Error, Result};

/// A part of what a URL leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part<'a> {
    /// The database of this name, in the place of that of the URL.
    Database(&'a str),
    /// The schema of this name, in the database of the URL.
    Schema(&'a str),
    /// What this tenant has of tables that tenants share. PostgreSQL shows a connection no others' rows; elsewhere it is
    /// only a share of the connections.
    Tenant(&'a str),
}

impl Part<'_> {
    /// The URL of this part alone, by that of the whole.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a database or a schema of a store that has none;
    /// [`Invalid`](crate::ErrorKind::Invalid) for a URL that is none.
    pub fn url(self, whole: &str) -> Result<String> {
        let has_none = |what: &str| {
            let scheme = whole.split(':').next().unwrap_or_default();
            Error::unsupported(format!("{scheme} has no {what}"))
        };
        let has_schemas = || Databases::has_schemas(whole);
        match self {
            Part::Database(name) => {
                Databases::own_url(whole, name)?.ok_or_else(|| has_none("databases"))
            }
            Part::Schema(_) if !has_schemas()? => Err(has_none("schemas")),
            Part::Schema(name) => Ok(with(whole, "schema", name)),
            Part::Tenant(name) if has_schemas()? => Ok(with(whole, "tenant", name)),
            Part::Tenant(_) => Ok(whole.to_owned()),
        }
    }
}

/// The URL with one more option.
fn with(url: &str, option: &str, value: impl Display) -> String {
    let join = if url.contains('?') { '&' } else { '?' };
    format!("{url}{join}{option}={value}")
}

/// Opens parts of servers, those of one server over one pool of `?pool` connections ([`Pools::CONNECTIONS`], where the URL does
/// not say). One part may have half of them at once, so that it leaves some to the others. Clones are the same.
#[derive(Clone, Default)]
pub struct Pools(Arc<Mutex<HashMap<String, Whole>>>);

/// What a URL leads to, opened once.
type Whole = Arc<OnceCell<Place>>;

impl fmt::Debug for Pools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pools")
    }
}

impl Pools {
    /// How many parts without connections of their own may be kept open in the place of one that has such: they take the
    /// memory of what is known of their tables only.
    pub const PARTS: u32 = 8;

    /// The connections of a pool that parts share, where the URL does not say how many.
    pub const CONNECTIONS: usize = 16;

    /// Opens a part of what this URL leads to. A store of this process (SQLite, folders) is opened by itself, and so is a
    /// part that can be reached by connections of its own only.
    ///
    /// # Errors
    /// As [`open`] and [`Part::url`]. Whether a database or a schema is there, the first operation finds.
    pub async fn open(&self, whole: &str, part: Part<'_>) -> Result<Place> {
        let own = part.url(whole)?;
        let url = Url::parse(&own)?;
        if driver(&url.scheme).is_none_or(super::Driver::is_embedded) {
            return open(&own).await;
        }
        let opened = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(whole.to_owned())
            .or_default()
            .clone();
        let shared = || async {
            let says = Url::parse(whole)?.take("pool").is_some();
            let more = (!says).then(|| with(whole, "pool", Pools::CONNECTIONS));
            open(more.as_deref().unwrap_or(whole)).await
        };
        let opened = opened.get_or_try_init(shared).await?;
        match opened.store.part(part)? {
            Some(store) => {
                let warnings = opened.warnings.clone();
                Ok(Place { store, url, warnings, is_part: true })
            }
            // Tables that tenants share need no other connections.
            None if own == whole => Ok(Place { is_part: true, ..opened.clone() }),
            None => open(&own).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_url() {
        let (database, schema, tenant) =
            (Part::Database("t1"), Part::Schema("t1"), Part::Tenant("t1"));
        for (part, whole, want) in [
            #[cfg(feature = "sqlite")]
            (database, "sqlite:/x/a.db?pool=1", Some("sqlite:/x/a.db.t1?pool=1")),
            #[cfg(feature = "postgres")]
            (schema, "postgres://h/db", Some("postgres://h/db?schema=t1")),
            #[cfg(feature = "postgres")]
            (schema, "postgres://h/db?pool=1", Some("postgres://h/db?pool=1&schema=t1")),
            #[cfg(feature = "postgres")]
            (tenant, "postgres://h/db", Some("postgres://h/db?tenant=t1")),
            #[cfg(feature = "mysql")]
            (tenant, "mysql://h/db", Some("mysql://h/db")),
            #[cfg(feature = "mysql")]
            (schema, "mysql://h/db", None),
            (tenant, "memory:", Some("memory:")),
            (schema, "memory:", None),
            (database, "memory:", None),
        ] {
            assert_eq!(part.url(whole).ok().as_deref(), want, "{part:?} of {whole}");
        }
    }
}
