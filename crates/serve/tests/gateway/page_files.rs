//! Files that the page gives out.

use serde_json::{Value, json};

use super::{
    client::Running,
    page::{bulk, page, session},
};

#[tokio::test]
async fn files_have_what_the_api_has() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    let session = session(&gateway, &gateway.a).await;
    let document = |i: usize| match i {
        // A field that only one of the last has.
        1490 => json!({ "n": i, "rare": "a \"quoted\", line\nand another" }),
        _ => {
            json!({ "n": i, "half": i as f64 / 2.0, "yes": i.is_multiple_of(2), "none": null, "t": "ü,\"'" })
        }
    };
    let documents: Vec<_> = (0..1500).map(|i| (format!("k{i:04}"), document(i))).collect();
    bulk(&gateway, &gateway.a, "c", &documents).await;
    let each = gateway.get(&gateway.a, "/v1/docs/c:each").await.is(200).lines();
    assert_eq!(each.len(), 1500);
    let want: Vec<Value> = each
        .iter()
        .map(|line| {
            let mut document = line["doc"].clone();
            document["_key"] = line["id"].clone();
            document
        })
        .collect();
    let jsonl = page(&gateway, &session, "/c/c/export?format=jsonl").await.is(200);
    assert_eq!(jsonl.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(jsonl.lines(), want);

    let csv = page(&gateway, &session, "/c/c/export?format=csv").await.is(200);
    assert_eq!(csv.header("content-disposition"), Some("attachment; filename=\"c.csv\""));
    let rows = csv_rows(&csv.text());
    assert_eq!(rows[0], ["_key", "half", "n", "none", "t", "yes", "rare"]);
    assert_eq!(rows.len(), 1501);
    for (row, want) in rows[1..].iter().zip(&want) {
        for (name, cell) in rows[0].iter().zip(row) {
            let text = match &want[name] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            // 3.0 is written 3.
            let same = *cell == text || cell.parse::<f64>().ok() == want[name].as_f64();
            assert!(same, "{name}: {cell:?}, not {text:?}");
        }
    }
    // A part of it, in order.
    let path = "/c/c/export?format=csv&where=n%3C20&sort=-n&fields=n,t";
    let rows = csv_rows(&page(&gateway, &session, path).await.is(200).text());
    assert_eq!((rows.len(), &rows[1][..2]), (21, &["k0019".to_owned(), "19".to_owned()][..]));
    for format in ["msgpack", "cbor", "bson", "pickle", "marshal"] {
        let path = format!("/c/c/export?format={format}");
        assert!(page(&gateway, &session, &path).await.is(200).body.len() > 10_000, "{format}");
    }
    // What a format cannot hold is told before anything is sent.
    gateway.put(&gateway.a, "/v1/docs/c/z", "", r#"{"list":[1]}"#).await.is(201);
    for format in ["csv", "marc21", "marcxml", "line"] {
        let answer = page(&gateway, &session, &format!("/c/c/export?format={format}")).await;
        let text = answer.is(422).text();
        assert!(text.contains("cannot hold the record"), "{format}: {text}");
    }
    page(&gateway, &session, "/c/c/export?format=csv&fields=n").await.is(200);
    for wrong in ["", "sonic", "json5"] {
        page(&gateway, &session, &format!("/c/c/export?format={wrong}")).await.is(400);
    }
    for format in ["jsonl", "csv"] {
        let none = page(&gateway, &session, &format!("/c/nothing/export?format={format}")).await;
        assert_eq!(none.is(200).text(), "");
    }
}

#[tokio::test]
async fn marc_records_go_into_files_of_marc() {
    let gateway = Running::start("").await;
    let session = session(&gateway, &gateway.a).await;
    let record = |i: usize| {
        json!({ "leader": "00000nam a2200000 a 4500", "fields": [
            { "001": format!("ocm{i}") },
            { "245": { "ind1": "1", "ind2": "0", "subfields": [{ "a": "The balance" }] } },
        ] })
    };
    let documents: Vec<_> = (0..3).map(|i| (format!("r{i}"), record(i))).collect();
    bulk(&gateway, &gateway.a, "c", &documents).await;
    let shown = page(&gateway, &session, "/c/c").await.is(200).text();
    assert!(shown.contains("value=\"marc21\"") && !shown.contains("value=\"csv\""), "{shown}");
    let of = async |format: &str| {
        page(&gateway, &session, &format!("/c/c/export?format={format}")).await.is(200)
    };
    let marc21 = of("marc21").await;
    assert_eq!(marc21.header("content-disposition"), Some("attachment; filename=\"c.mrc\""));
    assert_eq!(marc21.body.iter().filter(|byte| **byte == 0x1d).count(), 3);
    let xml = of("marcxml").await.text();
    assert!(
        xml.matches("<record").count() == 3 && xml.trim_end().ends_with("</collection>"),
        "{xml}"
    );
    assert_eq!(of("line").await.text().matches("The balance").count(), 3);
}

/// Reads CSV (RFC 4180).
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty() && !quoted, "a row that does not end");
    rows
}
