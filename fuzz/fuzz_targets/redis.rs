//! Any bytes as what a Redis answers.
#![no_main]

mod server;

use server::{Begin, plain, try_client};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // Of its settings it says nothing.
    let settings = b"*0\r\n".repeat(6);
    for layout in ["document", "blob"] {
        let begin = Begin { greeting: Vec::new(), answers: vec![settings.clone()] };
        let url = |port| format!("redis://127.0.0.1:{port}?layout={layout}");
        try_client(url, begin, data, plain);
    }
});
