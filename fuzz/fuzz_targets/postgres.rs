//! Any bytes as what a PostgreSQL answers once it has let one in.
#![no_main]

mod server;

use server::{Begin, plain, try_client};

const READY: &[u8] = b"Z\0\0\0\x05I";

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let welcome = [b"R\0\0\0\x08\0\0\0\0", READY].concat();
    let set = [b"C\0\0\0\x08SET\0", READY].concat();
    let begin = Begin { greeting: Vec::new(), answers: vec![welcome, set] };
    let url = |port| format!("postgres://u:p@127.0.0.1:{port}/d?client=own&tls=false");
    try_client(url, begin, data, plain);
});
