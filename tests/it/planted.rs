//! What somebody else put into the folder of a `dir:` store (links, pipes, sockets, folders) is neither followed nor
//! waited for.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
};

use futures_util::TryStreamExt;
use nix::{sys::stat::Mode, unistd::mkfifo};
use steelyard::{
    Error,
    record::dataset::Dataset,
    store::{self, Filter, Key, KeyRange, Layout, Row},
};

use crate::stores::places::run;

fn row(key: &str) -> Row {
    Row { key: Key::new(key).unwrap(), record: Dataset::Users.document(1, 1).expect("a record") }
}

/// A folder with a table `t` that has a record `good`, and beside it what must stay as it is.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let place = store::open(&url(folder.path())).await.unwrap();
        place.prepare(&Layout::plain()).await.unwrap();
        place.put(&[row("good")]).await.unwrap();
    });
    fs::write(folder.path().join("victim"), "{\"precious\":1}").unwrap();
    folder
}

fn url(folder: &Path) -> String {
    format!("dir:{}?table=t&format=json", folder.display())
}

/// What each operation says of the record `bad`.
fn said(folder: &Path) -> Vec<(&'static str, Option<Error>)> {
    let bad = [Key::new("bad").unwrap()];
    run(async {
        let place = store::open(&url(folder)).await.unwrap();
        let mut said = vec![
            ("get", place.get(&bad).await.err()),
            ("put", place.put(&[row("bad")]).await.err()),
            ("load", place.load(&[row("bad")]).await.err()),
            ("remove", place.remove(&bad).await.err()),
            ("delete", place.delete(&Filter::All).await.err()),
            ("count", place.count().await.err()),
        ];
        let each = async {
            place.scan(&KeyRange::all()).await?.try_collect::<Vec<_>>().await?;
            Ok::<_, Error>(())
        };
        said.push(("each", each.await.err()));
        said
    })
}

#[test]
fn records_that_are_no_files_are_errors() {
    type Plant = fn(&Path, &Path);
    let kinds: [(&str, Plant); 5] = [
        ("link", |at, victim| symlink(victim, at).unwrap()),
        ("dangling", |at, victim| symlink(victim.with_extension("none"), at).unwrap()),
        ("pipe", |at, _| mkfifo(at, Mode::S_IRWXU).unwrap()),
        ("socket", |at, _| drop(UnixListener::bind(at).unwrap())),
        ("folder", |at, _| fs::create_dir(at).unwrap()),
    ];
    for (kind, plant) in kinds {
        let folder = folder();
        let (victim, bad) = (folder.path().join("victim"), folder.path().join("t+/bad"));
        plant(&bad, &victim);
        let before = fs::symlink_metadata(&bad).unwrap().file_type();
        for (operation, error) in said(folder.path()) {
            let error =
                error.unwrap_or_else(|| panic!("{kind}: {operation} went well")).to_string();
            assert!(error.contains("t+/bad"), "{kind}: {operation}: {error}");
            assert!(!error.contains("precious"), "{kind}: {operation}: {error}");
        }
        assert_eq!(fs::symlink_metadata(&bad).unwrap().file_type(), before, "{kind}");
        assert_eq!(fs::read(&victim).unwrap(), b"{\"precious\":1}", "{kind}");
        assert!(!victim.with_extension("none").exists());
        assert!(folder.path().join("t+/good").exists(), "{kind}");
    }
}

#[test]
fn a_table_that_is_a_link_is_refused() {
    let (folder, other) = (folder(), tempfile::tempdir().unwrap());
    fs::write(other.path().join("bad"), "{\"precious\":1}").unwrap();
    fs::remove_dir_all(folder.path().join("t+")).unwrap();
    symlink(other.path(), folder.path().join("t+")).unwrap();
    for (operation, error) in said(folder.path()) {
        let error = error.unwrap_or_else(|| panic!("{operation} went well")).to_string();
        assert!(error.contains("is a link") && error.contains("t+"), "{operation}: {error}");
    }
    let refused = run(async {
        let place = store::open(&url(folder.path())).await.unwrap();
        [place.prepare(&Layout::plain()).await.err(), place.drop_table().await.err()]
    });
    for error in refused {
        assert!(error.unwrap().to_string().contains("is a link"));
    }
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
    assert_eq!(fs::read(other.path().join("bad")).unwrap(), b"{\"precious\":1}");
}

/// What is left of killed processes is swept; what only has such a name stays, and nothing is waited for.
#[test]
fn the_sweep_of_left_overs_waits_for_no_pipe_and_removes_no_link() {
    let folder = folder();
    let at = |name: &str| folder.path().join("t+").join(name);
    mkfifo(&at("+pipe"), Mode::S_IRWXU).unwrap();
    symlink(folder.path().join("victim"), at("+link")).unwrap();
    fs::write(at("+left"), "half").unwrap();
    run(async {
        let place = store::open(&url(folder.path())).await.unwrap();
        place.prepare(&Layout::plain()).await.unwrap();
    });
    assert!(!at("+left").exists());
    assert!(at("+pipe").exists() && fs::symlink_metadata(at("+link")).is_ok());
}
