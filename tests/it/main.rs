//! All integration tests, in one binary.

mod cache;
mod cli;
mod durability;
mod files;
mod formats;
mod framing;
mod in_process;
mod iso2709;
mod marc8;
mod marcxml;
mod memcache;
mod network;
mod noise;
mod own;
mod page;
mod plans;
mod programs;
mod real;
mod ruby_python;
mod slabs;
mod stores;
#[cfg(feature = "redis")]
mod stores_kv;
#[cfg(feature = "mongodb")]
mod stores_mongodb;
#[cfg(feature = "mysql")]
mod stores_mysql;
#[cfg(feature = "postgres")]
mod stores_postgres;
mod stores_web;
mod tidy;
mod workloads;
