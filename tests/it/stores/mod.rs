//! Every kind of store, held to the meaning of its operations.
//!
//! `places.rs` walks the table of drivers: a new one is tried in each of its layouts, in private
//! servers where it needs any, without a line here. `contract.rs` is what each must do, bare and
//! inside every wrapper; `queries.rs`, `model.rs` and `hostile.rs` compare with what the same
//! operations do to records in memory, with seeds. `naive.rs` is a store with faults, to show that
//! all this can fail. `flooding.rs` has servers that send without end.
//!
//! `STEELYARD_STORES=sqlite,redis` tries only these; `STEELYARD_SEED=7` draws other records,
//! queries and operations. What cannot be tried for want of a server says `skipped`, and fails
//! where `STEELYARD_REQUIRE_SERVERS=1`.

mod broken;
mod clients;
mod conditional;
mod conditions;
mod contract;
mod copies;
mod counts;
mod flooding;
mod floods;
mod hints;
mod hostile;
mod joins;
mod late;
mod model;
pub mod naive;
mod others;
mod parts;
pub mod places;
mod proxy;
mod queries;
mod reached;
mod relational;
mod sizes;
mod told;
