//! Any bytes as the line format.
#![no_main]

mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::try_all(steelyard::format::Format::Line, data));
