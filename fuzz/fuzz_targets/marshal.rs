//! Any bytes as marshal.
#![no_main]

mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::try_all(steelyard::format::Format::Marshal, data));
