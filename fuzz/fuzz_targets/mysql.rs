//! Any bytes as what a MySQL answers once it has let one in.
#![no_main]

mod server;

use server::{Begin, plain, try_client};

/// A packet with its length and number.
fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("short").to_le_bytes();
    [&length[..3], &[number], body].concat()
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let greeting = [
        &b"\x0a8.0.30\0\x01\0\0\0abcdefgh\0"[..],
        // What it can do, its collation, its state, what else it can do, the length of the nonce.
        &[0xff, 0xf7, 45, 2, 0, 0xff, 0x81, 21],
        &[0; 10],
        b"abcdefghijkl\0mysql_native_password\0",
    ];
    let fine = [0, 0, 0, 2, 0, 0, 0];
    let begin = Begin {
        greeting: packet(0, &greeting.concat()),
        answers: vec![packet(2, &fine), packet(1, &fine)],
    };
    let url = |port| format!("mysql://u:p@127.0.0.1:{port}/d?client=own");
    try_client(url, begin, data, plain);
});
