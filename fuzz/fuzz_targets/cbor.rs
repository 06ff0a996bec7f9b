//! Any bytes as cbor; MARC records are read alike the short way and through serde.
#![no_main]

mod common;

use steelyard::format::Format;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    common::try_all(Format::Cbor, data);
    common::marc_agrees(Format::Cbor, data);
});
