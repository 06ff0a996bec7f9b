//! Any bytes as base64, gzip and zstd around a record: unwrapped within the limit, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steelyard::format::Wrap;

fuzz_target!(|data: &[u8]| {
    for wrap in [Wrap::Base64, Wrap::Base64Lines, Wrap::Gzip(1), Wrap::Zstd(1)] {
        let mut out = Vec::new();
        if wrap.unwrap(data, 1 << 16, &mut out).is_ok() {
            assert!(out.len() <= 1 << 16);
        }
        let (mut wrapped, mut back) = (Vec::new(), Vec::new());
        wrap.wrap(data, &mut wrapped).expect("any bytes can be wrapped");
        wrap.unwrap(&wrapped, 1 << 20, &mut back).expect("what it wrapped itself");
        assert_eq!(back, data);
    }
});
