//! All integration tests, in one binary.

mod iso2709;
mod real;
