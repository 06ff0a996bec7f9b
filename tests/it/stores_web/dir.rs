//! Folders of files: keys that trip, tables apart, files that are whole.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    record::Value,
    store::{Blob, KeyRange, Layout, Row},
};

use super::{contents, hostile_keys, key, open, row};

fn url(folder: &Path, options: &str) -> String {
    format!("dir:{}?{options}", folder.display())
}

#[tokio::test]
async fn keys_that_trip_come_back_in_order_and_stay_in_their_folder() {
    let around = tempfile::tempdir().unwrap();
    let folder = around.path().join("a folder");
    let place = open(&url(&folder, "table=../up&format=json&pool=1")).await;
    let mut rows: Vec<Row> = hostile_keys()
        .iter()
        .enumerate()
        .map(|(i, k)| row(k, [("n", Value::Int(i as i64))]))
        .collect();
    rows.push(row(&"😀".repeat(21), []));
    let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
    place.load(&rows).await.unwrap();
    let records = place.get(&keys).await.unwrap();
    assert!(rows.iter().zip(records).all(|(row, record)| record.as_ref() == Some(&row.record)));
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    let all: Vec<Row> = place.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap();
    assert_eq!(all, rows);
    let range = KeyRange { from: Some(key("a/")), until: Some(key("é")) };
    let some: Vec<Row> = place.scan(&range).await.unwrap().try_concat().await.unwrap();
    let want: Vec<Row> = rows.iter().filter(|row| range.contains(&row.key)).cloned().collect();
    assert_eq!(some, want);
    let mut parts = Vec::new();
    for range in place.split(100).await.unwrap() {
        let part: Vec<Row> = place.scan(&range).await.unwrap().try_concat().await.unwrap();
        parts.extend(part);
    }
    assert_eq!(parts, rows);

    let names = |path: &Path| {
        let entries = fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(around.path()), ["a folder"]);
    assert_eq!(names(&folder), [".2e.2e.2fup+"]);
    let table = folder.join(".2e.2e.2fup+");
    assert_eq!(names(&table).len(), rows.len());
    let mode = fs::metadata(table.join("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);

    // What is not ours is not seen, and not removed.
    fs::write(table.join("README.txt"), "somebody else's").unwrap();
    assert_eq!(place.count().await.unwrap(), rows.len() as u64);
    assert_eq!(
        place.remove(&[key("a"), key("a"), key("no"), key(&"x".repeat(999))]).await.unwrap(),
        1
    );
    place.drop_table().await.unwrap();
    assert_eq!(names(&table), ["README.txt"]);
    assert_eq!(place.count().await.unwrap(), 0);
    fs::remove_file(table.join("README.txt")).unwrap();
    place.drop_table().await.unwrap();
    assert!(names(&folder).is_empty());
    place.drop_table().await.unwrap();
}

#[tokio::test]
async fn names_that_are_too_long_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let place = open(&url(folder.path(), "")).await;
    for (text, fits) in [
        ("x".repeat(255), true),
        ("x".repeat(256), false),
        ("é".repeat(42), true),
        ("é".repeat(43), false),
    ] {
        let done = place.put(&[row("good", []), row(&text, [])]).await;
        match done {
            Ok(()) => assert!(fits),
            Err(error) => {
                assert!(!fits, "{error}");
                assert_eq!(error.kind(), ErrorKind::Invalid);
                assert!(error.to_string().contains("the limit of file systems is 255"), "{error}");
                assert_eq!(place.remove(&[key("good")]).await.unwrap(), 1, "of the time before");
            }
        }
    }
    assert!(place.table(&"é".repeat(50)).is_err());
}

#[tokio::test]
async fn files_are_whole_and_loads_overwrite_none() {
    let folder = tempfile::tempdir().unwrap();
    for durability in ["t1", "t3"] {
        let place = open(&url(
            folder.path(),
            &format!("layout=blob&durability={durability}&table={durability}"),
        ))
        .await;
        let description = place.describe().await.unwrap();
        assert_eq!(description.set.unwrap().name(), durability);
        let (blobs, _) = place.blobs().unwrap();
        let large = Blob { key: key("large"), bytes: contents(10 << 20) };
        blobs.load(std::slice::from_ref(&large)).await.unwrap();
        let small = |name: &str| Blob { key: key(name), bytes: vec![1] };
        for batch in [vec![small("b"), small("large")], vec![small("b"), small("b")]] {
            let error = blobs.load(&batch).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        }
        assert_eq!(blobs.count().await.unwrap(), 1, "nothing of a batch in conflict is written");
        assert!(blobs.get(&[key("large")]).await.unwrap()[0].as_ref() == Some(&large.bytes));

        // A reader sees all of the one or all of the other.
        let other = Blob { key: key("large"), bytes: vec![7; 5 << 20] };
        let write = async {
            for _ in 0..5 {
                blobs.put(std::slice::from_ref(&other)).await.unwrap();
                blobs.put(std::slice::from_ref(&large)).await.unwrap();
            }
        };
        let read = async {
            for _ in 0..20 {
                let bytes = blobs.get(&[key("large")]).await.unwrap().remove(0).unwrap();
                assert!(
                    bytes == large.bytes || bytes == other.bytes,
                    "half of one: {}",
                    bytes.len()
                );
            }
        };
        futures_util::future::join(write, read).await;
        let disk = place.describe().await.unwrap().disk.unwrap();
        assert!(disk >= 10 << 20, "{disk}");
    }
    for (options, want) in [
        ("durability=t0", "t1 (survives"),
        ("durability=t2", "t3 (durable"),
        ("layout=document", "no layout"),
        ("x=1", "unknown option"),
    ] {
        let error = steelyard::open(&url(folder.path(), options)).await.unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    }
    assert_eq!(steelyard::open("dir:").await.unwrap_err().kind(), ErrorKind::Invalid);
    // A table that was never made, and a file where a folder should be.
    let place = steelyard::open(&url(folder.path(), "table=none")).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 0);
    assert_eq!(place.put(&[row("a", [])]).await.unwrap_err().kind(), ErrorKind::NotFound);
    fs::write(folder.path().join("file"), "x").unwrap();
    let place = steelyard::open(&url(&folder.path().join("file"), "")).await.unwrap();
    let error = place.prepare(&Default::default()).await.unwrap_err();
    assert!(error.to_string().contains("file/records+"), "{error}");
}

#[tokio::test]
async fn tables_are_folders_by_their_names() {
    let around = tempfile::tempdir().unwrap();
    let folder = around.path().join("place");
    let place = open(&url(&folder, "table=b")).await;
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(place.tables().await.unwrap_err().kind(), ErrorKind::NotFound);
    // Files, links, and names that no table has.
    fs::create_dir_all(folder.join("plain")).unwrap();
    for no in [".61+", "!+", "+", "a b+", "~ff+"] {
        fs::create_dir(folder.join(no)).unwrap();
    }
    fs::write(folder.join("file+"), "").unwrap();
    std::os::unix::fs::symlink(around.path(), folder.join("link+")).unwrap();
    assert!(place.tables().await.unwrap().is_empty());
    for name in ["b", "../ü", "C"] {
        place.table(name).unwrap().prepare(&Layout::plain()).await.unwrap();
    }
    assert_eq!(place.tables().await.unwrap(), ["../ü", "C", "b"]);
    // What is listed is opened, also where the table that asks is none.
    assert_eq!(place.table("link").unwrap().tables().await.unwrap(), ["../ü", "C", "b"]);
}
