//! Stores behind HTTP and in folders, on real servers: what is special about each.

mod couchdb;
mod dir;
mod lying;
mod s3;

use steelyard::{
    record::{Document, Value},
    server::{Server, Wish},
    store::{Key, Place, Row},
};

use crate::programs::{self, Need};

fn server(name: &str) -> Need<Server> {
    programs::server(name, &Wish::default())
}

async fn open(url: &str) -> Place {
    let place = steelyard::open(url).await.expect(url);
    place.prepare(&Default::default()).await.expect(url);
    place
}

fn key(text: &str) -> Key {
    Key::new(text).expect("not empty")
}

fn row(name: &str, record: impl IntoIterator<Item = (&'static str, Value)>) -> Row {
    Row { key: key(name), record: record.into_iter().collect::<Document>() }
}

/// Keys that trip whoever pastes them into something.
fn hostile_keys() -> Vec<Key> {
    let mut keys: Vec<Key> = [
        "a",
        "a/b",
        "a/b/c",
        "a//b",
        "/",
        "/a",
        "a/",
        ".",
        "..",
        "../../etc/passwd",
        ".a",
        "a.b",
        "%2F",
        "a%2Fb",
        "%00",
        "a b",
        " ",
        "a+b",
        "a&b=c",
        "a?b#c",
        "\"quoted\"",
        "it's",
        "<xml>&amp;",
        "a\r\nb",
        "a\tb",
        "\u{1}",
        "nul\0nul",
        "\0",
        "é",
        "e\u{301}",
        "ÿ",
        "z\u{ff}z",
        "中文",
        "\u{d7ff}",
        "\u{e000}",
        "\u{fb01}",
        "\u{fffd}",
        "😀",
        "a😀",
        "👩‍👩‍👧",
        "\u{10ffff}",
        "A",
        "Z",
        "a\\b",
        "$key",
        "-",
        "--x",
        "~",
        "*",
        "`id`",
        "$(id)",
        "'; drop table records; --",
        "con",
        "a:b",
        "x@y",
        "_design",
        "_design/x",
        "_",
        "^",
        "^1",
        "00",
        "0",
        "constructor",
    ]
    .iter()
    .map(|text| key(text))
    .collect();
    keys.push(key(&"k".repeat(80)));
    keys
}

/// So many bytes, the same every time, that no compressor makes smaller.
fn contents(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(&mut next).flatten().take(bytes).collect()
}
