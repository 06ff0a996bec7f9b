//! `steelyard slabs`.

use steelyard::memcache::{Expiry, slabs::Settings};

use super::started;
use crate::{
    children::Command,
    programs::{self, need},
};

fn slabs(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_steelyard"))
        .arg("slabs")
        .args(args)
        .output()
        .expect("our own program");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn classes_are_printed_and_wrong_settings_refused() {
    let (code, out, _) = slabs(&["classes", "--factor", "1.5"]);
    assert_eq!(code, 0);
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["1", "96", "10922"]);
    assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["2", "144", "7281"]);
    assert!(lines.last().unwrap().contains("524288"));
    for wrong in [
        &["classes", "--factor", "0.5"][..],
        &["classes", "--slab-sizes", "200-100"],
        &["classes", "--max-chunk", "300k"],
        &["classes", "--max-item", "x"],
    ] {
        assert_eq!(slabs(wrong).0, 2, "{wrong:?}");
    }
}

#[test]
fn records_are_weighed_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.json");
    let mut text = String::new();
    for n in 0..20_000 {
        let body = "x".repeat(n % 900);
        text += &format!("{{\"id\":\"user:{n}\",\"body\":\"{body}\"}}\n");
    }
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let (code, out, err) = slabs(&[file, "--key", "id"]);
    assert_eq!(code, 0, "{err}");
    for part in [
        "20 000",
        "keys and values",
        "headers of items",
        "What other settings come to",
        "The fewest pages",
        "slab_sizes=",
    ] {
        assert!(out.replace(',', " ").contains(part), "{part:?} is not in\n{out}");
    }
    let (_, page, _) = slabs(&[file, "--key", "id", "--form", "html"]);
    for part in
        ["<!doctype html>", "Sizes of items", "class=\"bar\"", "items by the chunk they fit in"]
    {
        assert!(page.contains(part), "{part:?} is not in the page");
    }
    let (_, json, _) = slabs(&[file, "--key", "id", "--form", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let classes = json["classes"].as_array().unwrap();
    let items: u64 = classes.iter().map(|class| class["items"].as_u64().unwrap()).sum();
    assert_eq!((items, json["items"].as_u64()), (20_000, Some(20_000)));
    let (_, csv, _) = slabs(&[file, "--key", "id", "--form", "csv"]);
    assert_eq!(csv.lines().count(), classes.len() + 1);
    let (_, keyless, _) = slabs(&[file]);
    assert!(keyless.contains("without a key"), "{keyless}");
    let (_, thin, _) = slabs(&[file, "--key", "id", "--factor", "1.05", "--memory", "4"]);
    assert!(thin.contains("63 classes run out") && thin.contains("pages are needed"), "{thin}");
    need!(programs::found("memcached"));
    let (code, out, err) = slabs(&[file, "--key", "id", "--factor", "1.1", "--verify"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("every class and page as in the model"), "{out}");
}

#[test]
fn a_server_that_runs_is_weighed() {
    let settings = Settings { factor: 1.125, ..Settings::default() };
    let (server, client) = need!(started(&settings));
    for n in 0..5000 {
        client.set(format!("key {n}"), vec![b'x'; n % 1000], Expiry::Never).unwrap();
    }
    let (code, out, err) = slabs(&[server.url()]);
    assert_eq!(code, 0, "{err}");
    // It says that its factor is 1.12, and its classes say that it is not.
    assert!(out.contains("-f 1.125") && out.contains("listed"), "{out}");
    let pages: u64 = super::shown(&client, "total_pages").iter().map(|(_, pages)| pages).sum();
    assert!(out.contains(&format!(" {pages} pages of 1 MB")), "{out}");
    let (code, _, err) = slabs(&["memcached://127.0.0.1:1"]);
    assert!(code == 3 && err.contains("127.0.0.1:1"), "{err}");
}
