//! What somebody else put into the folder of a `dir:` store (links, pipes, sockets, folders) is neither followed nor
//! waited for; nor are links that another user put into a folder where everybody may make files.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, lchown, symlink},
        net::UnixListener,
    },
    path::Path,
    process::Stdio,
};

use futures_util::TryStreamExt;
use nix::{sys::stat::Mode, unistd::mkfifo};
use steelyard::{
    Error,
    record::dataset::Dataset,
    store::{self, Filter, Key, KeyRange, Layout, Row},
};

use crate::{
    children::Command,
    programs::{self, need},
    stores::places::run,
};

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

/// Another user, who plants.
const OTHER: u32 = 65_533;

/// A folder as /tmp, in which `owner` has made links by these names to `file`, `new` and `folder` of a folder of ours.
fn shared(owner: u32) -> (tempfile::TempDir, tempfile::TempDir) {
    let (shared, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(ours.path().join("file"), "precious").unwrap();
    fs::create_dir(ours.path().join("folder")).unwrap();
    for name in ["file", "new", "folder"] {
        plant(&shared.path().join(name), &ours.path().join(name), owner);
    }
    fs::write(shared.path().join("a.json"), "{\"_key\":\"a\",\"n\":1}\n").unwrap();
    (shared, ours)
}

fn plant(link: &Path, to: &Path, owner: u32) {
    symlink(to, link).unwrap();
    lchown(link, Some(owner), None).unwrap();
}

/// Runs the program in a folder, with a record on its standard input; its status and what it said.
fn ran(folder: &Path, args: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steelyard"));
    command.args(args.split_whitespace()).current_dir(folder).stdout(Stdio::null());
    command.env("STEELYARD_CACHE", folder.join("cache"));
    let record = fs::File::open(folder.join("a.json")).unwrap();
    let done = command.stdin(record).stderr(Stdio::piped()).output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

/// Every way of the command line to a file or folder that it makes. `AT` is where.
const WAYS: [&str; 14] = [
    "put sqlite:AT",
    "copy a.json sqlite:AT",
    "get sqlite:AT a",
    "put dir:AT",
    "copy a.json dir:AT",
    "get dir:AT a",
    "copy a.json AT --to json",
    "copy a.json AT --to json+gzip",
    "copy a.json own.json --rejects AT",
    "copy a.json sqlite:own.db --resume --journal AT",
    "copy a.json sqlite:own.db --resume --journal own.journal --rejects AT",
    "generate people --count 3 AT --to json",
    "bench keep --on memory --rounds 1 --scale 0.01 --no-audit --out AT",
    "man AT",
];

#[test]
fn links_that_others_planted_in_a_shared_folder_are_not_followed() {
    need!(programs::root("a link of another user"));
    for way in WAYS {
        let (shared, ours) = shared(OTHER);
        for at in ["file", "new", "folder", "folder/new"] {
            let args = way.replace("AT", at);
            let (status, said) = ran(shared.path(), &args);
            assert_eq!(status, Some(3), "{args}: {said}");
            assert!(said.contains("is a link"), "{args}: {said}");
            assert_eq!(fs::read(ours.path().join("file")).unwrap(), b"precious", "{args}");
            assert!(!ours.path().join("new").exists(), "{args}");
            assert_eq!(fs::read_dir(ours.path().join("folder")).unwrap().count(), 0, "{args}");
            // What names something else goes on from there.
            let _ = fs::remove_file(shared.path().join("own.journal"));
        }
    }
}

#[test]
fn links_of_our_own_are_followed() {
    need!(programs::root("a link of another user"));
    let (shared, ours) = shared(0);
    for (args, made) in [
        ("put sqlite:new", "new"),
        ("put sqlite:folder/a.db", "folder/a.db"),
        ("put dir:folder", "folder/records+/a"),
        ("copy a.json file --to json", "file"),
        ("man folder", "folder/steelyard-copy.1"),
    ] {
        let (status, said) = ran(shared.path(), args);
        assert_eq!(status, Some(0), "{args}: {said}");
        let made = fs::metadata(ours.path().join(made)).unwrap_or_else(|e| panic!("{args}: {e}"));
        assert_ne!(made.len(), 8, "{args}");
    }
}

/// What SQLite makes beside a database, under names that everybody knows.
#[test]
fn links_beside_a_database_are_not_followed() {
    need!(programs::root("a link of another user"));
    for (end, to) in [("-wal", "file"), ("-wal", "new"), ("-journal", "new"), ("-shm", "new")] {
        let (shared, ours) = shared(OTHER);
        let link = shared.path().join(format!("own.db{end}"));
        plant(&link, &ours.path().join(to), OTHER);
        let (status, said) = ran(shared.path(), "put sqlite:own.db");
        assert_eq!(fs::read(ours.path().join("file")).unwrap(), b"precious", "{end}: {said}");
        assert!(!ours.path().join("new").exists(), "{end} {to}: {status:?} {said}");
    }
}
