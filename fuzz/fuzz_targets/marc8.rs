//! Any bytes as MARC-8 become UTF-8; what was read without fault is written and read again equal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steelyard::marc::marc8::{Decoder, Encoder};

fuzz_target!(|data: &[u8]| {
    for nfc in [false, true] {
        let decoder = Decoder { nfc, ..Decoder::default() };
        let (mut text, mut faults) = (Vec::new(), 0);
        decoder.decode(data, &mut text, &mut |at, _| {
            assert!(at <= data.len());
            faults += 1;
        });
        let text = String::from_utf8(text).expect("UTF-8 comes out");
        let mut bytes = Vec::new();
        Encoder::default().encode(&text, &mut bytes, &mut |_, _| ());
        if nfc && faults == 0 {
            let mut again = Vec::new();
            decoder.decode(&bytes, &mut again, &mut |_, _| ());
            assert_eq!(String::from_utf8(again).expect("UTF-8 comes out"), text);
        }
    }
});
