//! All integration tests, in one binary.

mod cache;
mod children;
mod cli;
mod durability;
mod files;
mod formats;
mod framing;
mod gateway;
mod in_process;
mod iso2709;
mod marc8;
mod marcxml;
mod memcache;
mod network;
mod noise;
mod numbers;
mod own;
mod page;
mod plans;
mod planted;
mod private;
mod programs;
mod real;
mod recovery;
mod ruby_python;
mod skips;
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
mod tenants;
mod tidy;
#[cfg(all(feature = "couchdb", feature = "s3", feature = "redis", feature = "memcache-tls"))]
mod tls;
mod workloads;
