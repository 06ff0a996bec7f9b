//! A gateway on a socket, as clients see it.

// What modules of a program of tests share is `pub` as in a library.
#![allow(unreachable_pub)]

mod client;
mod documents;
mod hostile;
mod limits;
mod login;
mod model;
mod moves;
mod operators;
mod page;
mod page_files;
mod replicas;
mod shards;
mod shares;
mod tenants;
