//! Tenants: who is asking, and the database that is theirs.
//!
//! A [`Principal`] is made by authentication alone (`auth`), and a [`TenantDb`] of a principal alone; there is no other way
//! to a collection, and nothing that a request names besides its key chooses the tenant.

mod admin;
mod apply;
mod backup;
mod database;
mod db;
mod export;
mod gather;
mod grant;
mod mover;
mod open;
mod quota;
mod transfer;

pub use admin::Tenants;
pub use apply::Applied;
pub(crate) use database::url as database_url;
pub(crate) use db::{Access, Collection, TenantDb};
pub(crate) use grant::{Grant, Grants, Principal};
pub use mover::{Course, Moved};
pub(crate) use open::Opened;
pub(crate) use quota::{OF_A_DOCUMENT, Room};
