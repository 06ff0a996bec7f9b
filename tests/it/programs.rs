//! What tests need of the machine they run on: servers, programs, real records. What is not there is a
//! [`Missing`], and [`need!`] leaves the test with it (`skips.rs`).

use std::path::{Path, PathBuf};

use steelyard::{
    ErrorKind,
    bench::stores::Target,
    server::{self, Server, Wish},
};

use crate::children::Command;
pub(crate) use crate::skips::need;
pub use crate::skips::{Missing, Need, skip};

/// A private server of this kind.
#[track_caller]
pub fn server(name: &str, wish: &Wish) -> Need<Server> {
    match server::named(name).expect("a server of this name").start(wish) {
        Ok(server) => Ok(server),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(Missing::new(e)),
        Err(e) => panic!("{e:?}"),
    }
}

/// Whether a private server of this kind could be started.
#[track_caller]
pub fn startable(name: &str) -> Need {
    match server::named(name).expect("a server of this name").find() {
        Some(_) => Ok(()),
        None => Err(Missing::new(format_args!("there is no {name} on this machine"))),
    }
}

/// Whether the server of what is measured could be started, if it has one.
#[track_caller]
pub fn of(target: &Target) -> Need {
    target.program().map_or(Ok(()), |program| startable(program.name))
}

/// The folder of real records, which `STEELYARD_TEST_DATA` names; `none` says that there is none and that
/// the tests of it may be left out.
#[track_caller]
pub fn real_records() -> Need<PathBuf> {
    match std::env::var_os("STEELYARD_TEST_DATA").filter(|folder| !folder.is_empty()) {
        Some(none) if none == "none" => {
            Err(Missing::allowed("STEELYARD_TEST_DATA=none: there are no real records"))
        }
        Some(folder) => Ok(folder.into()),
        None => Err(Missing::new("STEELYARD_TEST_DATA names no folder of real records")),
    }
}

/// The URL of a server with another login: `user:password`.
pub fn with_login(url: &str, login: &str) -> String {
    let (scheme, rest) = url.split_once("//").expect("a URL");
    let place = rest.split_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}//{login}@{place}")
}

/// The password in the URL of a server, whatever it is called there.
pub fn password(url: &str) -> Option<&str> {
    let login = url.split_once("//").and_then(|(_, rest)| rest.split_once('@'));
    let secret = url.split_once("secret_access_key=").map(|(_, rest)| rest.split('&').next());
    login.and_then(|(login, _)| Some(login.split_once(':')?.1)).or(secret.flatten())
}

/// Whether a program is on this machine.
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// What only root can do: nothing that can be installed lets another user do it.
#[track_caller]
pub fn root(what: &str) -> Need {
    match nix::unistd::geteuid().is_root() {
        true => Ok(()),
        false => Err(Missing::allowed(format_args!("not root: {what}"))),
    }
}

/// A program that a test needs.
#[track_caller]
pub fn found(program: &str) -> Need {
    match installed(program) {
        true => Ok(()),
        false => Err(Missing::new(format_args!("there is no {program} on this machine"))),
    }
}

/// A certificate for `localhost`, signed by nobody else, and its key, as files in a folder.
#[track_caller]
pub fn certificate(folder: &Path) -> Need<(String, String)> {
    found("openssl")?;
    let [certificate, key] = ["certificate", "key"].map(|n| folder.join(n).display().to_string());
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", &key])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", &certificate])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok((certificate, key))
}

/// Whether this process runs nothing but the test of this name. Where it does not, the test is run
/// in a process of its own, and must pass there: what is counted for a process (its peak of memory)
/// is otherwise that of all tests that run beside it.
#[track_caller]
pub fn alone(test: &str) -> bool {
    const ALONE: &str = "STEELYARD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        return true;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(ALONE, test)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    print!("{text}");
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && text.contains("1 passed"), "{test}, alone: {text}{said}");
    false
}

#[test]
fn a_test_that_is_left_out_is_counted_and_fails_where_everything_is_required() {
    let needs = "slabs::classes::they_are_those_of_the_server_for_any_settings";
    let folder = tempfile::tempdir().unwrap();
    let counted = folder.path().join("skips");
    let left_out = |required: &str| {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args([needs, "--exact", "--nocapture", "--test-threads=2"]);
        // Nothing is found on it.
        test.env("PATH", folder.path()).env("STEELYARD_SKIPS", &counted);
        test.env("STEELYARD_REQUIRE_SERVERS", required).output().unwrap()
    };
    let required = left_out("1");
    let said = String::from_utf8_lossy(&required.stderr).into_owned();
    assert!(!required.status.success(), "{said}");
    let why = "there is no memcached on this machine";
    assert!(said.contains(&format!("STEELYARD_REQUIRE_SERVERS=1, and {why}")), "{said}");
    assert!(!counted.exists());
    let allowed = left_out("0");
    assert!(allowed.status.success(), "{}", String::from_utf8_lossy(&allowed.stderr));
    assert_eq!(std::fs::read_to_string(&counted).unwrap(), format!("{needs}\t{why}\n"));
}
