//! Numbers of any length from file to file, into stores and out of them, by the program itself.

use steelyard::{
    format::Format,
    record::{Document, Value, number},
    store::{Filter, Key, Query},
};

use super::Desk;
use crate::numbers::EDGES;

fn key(i: usize) -> String {
    format!("n{i:02}")
}

/// A desk with `a.json`, each of whose records has one of the numbers.
fn desk() -> Desk {
    let desk = Desk::new();
    let line = |(i, edge): (usize, &&str)| format!("{{\"k\":\"{}\",\"v\":{edge}}}\n", key(i));
    desk.write("a.json", EDGES.iter().enumerate().map(line).collect::<String>());
    desk
}

/// The keys and numbers of lines of JSON.
fn numbers(lines: &[u8]) -> Vec<(String, Value)> {
    let read = |line: &[u8]| {
        let record: Document = Format::Json.decode(line).unwrap();
        let key = record.get("k").or_else(|| record.get("_key")).unwrap();
        (key.as_str().unwrap().to_owned(), record.get("v").unwrap().clone())
    };
    let mut found: Vec<_> =
        lines.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(read).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn edge(key: &str) -> Value {
    let i: usize = key[1..].parse().unwrap();
    number::of_json(EDGES[i]).unwrap()
}

#[test]
fn from_file_to_file_every_digit_stays() {
    let desk = desk();
    let all: Vec<_> = (0..EDGES.len()).map(|i| (key(i), edge(&key(i)))).collect();
    for file in ["b.json", "b.json.gz", "b.json.zst"] {
        desk.run(&format!("copy a.json {file}")).well();
        desk.run(&format!("copy {file} c.json")).well();
        assert_eq!(numbers(&desk.read("c.json")), all, "{file}");
    }
    // As others spell it, where they hold numbers of any length.
    for format in ["cbor", "pickle", "marshal"] {
        desk.run(&format!("copy a.json b.{format} --to {format}")).well();
        desk.run(&format!("copy b.{format} c.json --from {format}")).well();
        for (key, found) in numbers(&desk.read("c.json")) {
            let same = number::compare(&found, &edge(&key));
            assert!(same.is_some_and(|o| o.is_eq()), "{format}: {:?} is {found:?}", edge(&key));
        }
    }
}

#[test]
fn in_a_store_a_number_is_the_same_or_refused_by_name() {
    for (store, whole) in [
        ("dir:s?format=json", true),
        ("sqlite:s.db?layout=blob&format=cbor", true),
        ("sqlite:s.db?layout=document", false),
    ] {
        let desk = desk();
        let copied = desk.run(&format!("copy a.json {store} --key k --verify"));
        assert_eq!(copied.status, Some(if whole { 0 } else { 1 }), "{store}: {}", copied.err);
        let kept = numbers(&desk.run(&format!("each {store}")).well().out);
        for (key, found) in &kept {
            let same = number::compare(found, &edge(key));
            assert!(same.is_some_and(|o| o.is_eq()), "{store}: {:?} is {found:?}", edge(key));
        }
        for (i, edge) in EDGES.iter().enumerate() {
            let is_kept = kept.iter().any(|(k, _)| *k == key(i));
            let told = copied.err.contains("more digits than the store compares");
            assert!(is_kept || !whole && told, "{store}: {edge}: {}", copied.err);
        }
        for edge in EDGES {
            for operator in ["=", "<", ">="] {
                let condition = format!("v{operator}{edge}");
                let query = Query::new(condition.parse::<Filter>().unwrap());
                let found = desk.run(&format!("each {store} --where {condition}"));
                if whole && found.status != Some(0) {
                    assert!(found.err.contains("only by key"), "{}", found.err);
                    continue;
                }
                let found = numbers(&found.well().out);
                let fits = |(key, value): &&(String, Value)| {
                    let record = Document::from_iter([("v", value.clone())]);
                    query.matches(&Key::new(key.as_str()).unwrap(), &record)
                };
                let want: Vec<_> = kept.iter().filter(fits).cloned().collect();
                assert_eq!(found, want, "{store}: {condition}");
            }
        }
    }
}
