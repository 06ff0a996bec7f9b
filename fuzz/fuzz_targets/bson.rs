//! Any bytes as bson.
#![no_main]

mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::try_all(steelyard::format::Format::Bson, data));
