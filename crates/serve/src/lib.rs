//! An authenticated HTTP gateway before any store, with a database for each tenant.
//!
//! - [`run`] serves a [`Gateway`] on a listener until it is told to stop; the caller owns socket and stop signal.
//! - [`Config`] is all it is told before; [`Catalog`] has the tenants and their keys.
//! - [`Tenants`] adds, freezes, lists and removes tenants.
//!
//! This crate knows stores and formats, and nothing of measuring or the command line. It prints nothing: what there is to
//! tell goes to `tracing`.

mod catalog;
mod clock;
mod columns;
mod config;
mod docs;
mod gateway;
mod http;
mod limits;
mod login;
mod metrics;
mod names;
mod page;
mod problem;
mod quick;
mod random;
mod tally;
mod tenants;

pub use catalog::{
    Abandoned, ApiKey, Catalog, DatabaseId, KeyRow, Pepper, Scope, State, TenantLimits, TenantRow,
};
pub use clock::Clock;
pub use config::{CollectionShape, Config, Limits, Listen, Shard, TenantLayout};
pub use gateway::{Gateway, run};
#[cfg(feature = "tls")]
pub use http::Certificates;
pub use http::Socket;
pub use login::UserName;
pub use names::{CollectionName, TenantName};
pub use quick::Quick;
pub use steelyard_base::{Error, ErrorKind, Result};
pub use tenants::{Applied, Course, Moved, Tenants};

/// Every route of tenants.
const ROUTES: &[&http::Route] = docs::ROUTES;

// The example of the README is compiled and run.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
