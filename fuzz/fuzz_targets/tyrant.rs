//! Any bytes as what a Tokyo Tyrant answers.
#![no_main]

mod server;

use server::{Begin, plain, try_client};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for (kind, layout) in [("table", "document"), ("hash", "blob")] {
        let stat = format!("version\t1.1.41\npath\tx.tc\ntype\t{kind}\nrnum\t1\nsize\t100\n");
        let length = u32::try_from(stat.len()).expect("short").to_be_bytes();
        let answer = [&[0][..], &length, stat.as_bytes()].concat();
        let begin = Begin { greeting: Vec::new(), answers: vec![answer] };
        let url = |port| format!("tyrant://127.0.0.1:{port}?layout={layout}");
        try_client(url, begin, data, plain);
    }
});
