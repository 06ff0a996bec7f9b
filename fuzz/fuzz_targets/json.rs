//! Any bytes as json.
#![no_main]

mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::try_all(steelyard::format::Format::Json, data));
