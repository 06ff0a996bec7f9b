//! All integration tests, in one binary.

mod files;
mod formats;
mod framing;
mod iso2709;
mod marc8;
mod marcxml;
mod real;
mod ruby_python;
#[cfg(feature = "postgres")]
mod stores_postgres;
mod tidy;
