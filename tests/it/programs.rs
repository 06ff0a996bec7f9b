//! Programs that live tests talk to. A test whose program is missing says so and passes, or fails
//! where `STEELYARD_REQUIRE_SERVERS=1`.

use std::{fmt::Display, path::Path, process::Command};

use steelyard::{
    ErrorKind,
    server::{self, Server, Wish},
};

/// Says that something is left out, and why.
#[track_caller]
pub fn skip(why: impl Display) {
    let required = std::env::var_os("STEELYARD_REQUIRE_SERVERS").is_some_and(|v| v == "1");
    assert!(!required, "STEELYARD_REQUIRE_SERVERS=1, and {why}");
    println!("skipped: {why}");
}

/// A private server of this kind; none where it is not on this machine.
#[track_caller]
pub fn server(name: &str, wish: &Wish) -> Option<Server> {
    match server::named(name).expect("a server of this name").start(wish) {
        Ok(server) => Some(server),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            skip(e);
            None
        }
        Err(e) => panic!("{e:?}"),
    }
}

/// Whether a program is on this machine.
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether a program that a test needs is on this machine.
#[track_caller]
pub fn found(program: &str) -> bool {
    let found = installed(program);
    if !found {
        skip(format_args!("there is no {program} on this machine"));
    }
    found
}

/// A certificate for `localhost`, signed by nobody else, and its key, as files in a folder; none
/// where there is nothing to make it with.
#[track_caller]
pub fn certificate(folder: &Path) -> Option<(String, String)> {
    if !found("openssl") {
        return None;
    }
    let [certificate, key] = ["certificate", "key"].map(|n| folder.join(n).display().to_string());
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", &key])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", &certificate])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some((certificate, key))
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
