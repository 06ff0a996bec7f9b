//! Any bytes as what a CouchDB answers.
#![no_main]

mod server;

use server::{Begin, page, try_client};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let welcome = br#"{"couchdb":"Welcome","version":"3.3.3","vendor":{"name":"x"}}"#;
    for layout in ["document", "blob"] {
        let begin = Begin { greeting: Vec::new(), answers: vec![page(welcome)] };
        let url = |port| format!("couchdb://u:p@127.0.0.1:{port}/d?layout={layout}");
        try_client(url, begin, data, page);
    }
});
