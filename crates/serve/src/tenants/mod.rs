//! Tenants: who is asking, and the database that is theirs.
//!
//! A [`Principal`] is made by authentication alone (`auth`), and a [`TenantDb`] of a principal alone; there is no other way
//! to a collection, and nothing that a request names besides its key chooses the tenant.

mod admin;
mod db;
mod grant;
mod open;

pub use admin::Tenants;
pub(crate) use db::{Access, Collection, TenantDb};
pub(crate) use grant::{Grant, Grants, Principal};
pub(crate) use open::{Opened, database_url};
