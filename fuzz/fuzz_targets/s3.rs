//! Any bytes as what an S3 answers.
#![no_main]

mod server;

use server::{Begin, page, try_client};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let list = b"<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>";
    let begin = Begin { greeting: Vec::new(), answers: vec![page(list)] };
    let url = |port| {
        let keys = "access_key_id=k&secret_access_key=s&region=x";
        format!("s3://b/p?endpoint=http://127.0.0.1:{port}&{keys}")
    };
    try_client(url, begin, data, page);
});
