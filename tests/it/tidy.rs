//! Holds the source to the rules of the house: which room may use which, who may print, what every
//! file begins with and how long it may be, where `unsafe` may stand.
//!
//! To let a room use another, or to add a room: the table below, and ARCHITECTURE.md.

mod named;
mod options;
mod packages;
mod skips;
mod source;

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    sync::{LazyLock, OnceLock},
};

use source::Source;

/// Crates that are one room: what they may use is in their Cargo.toml.
const WHOLE: [&str; 7] = [
    "crates/base/",
    "crates/bench/",
    "crates/marc/",
    "crates/memcache/",
    "crates/report/",
    "crates/results/",
    "crates/serve/",
];
/// The rooms of the other crates, and what each may use: another room, or a part of it.
const ROOMS: &[(&str, &[&str])] = &[
    ("durability", &["error"]),
    // `marc` in `dataset/catalogue` only.
    ("record", &["error", "marc"]),
    ("format", &["error", "record", "marc"]),
    ("link", &["error"]),
    ("file", &["error", "link", "record", "marc", "format"]),
    ("server", &["error", "durability"]),
    (
        "store",
        &["error", "timer", "link", "durability", "record", "marc", "format", "memcache", "server"],
    ),
    ("copy", &["error", "record", "marc", "format", "file", "store"]),
    (
        "cli",
        &[
            "error",
            "durability",
            "record",
            "marc",
            "format",
            "file",
            "link",
            "memcache",
            "server",
            "store",
            "copy",
            "bench",
            "report",
            "serve",
        ],
    ),
];

/// The room that prints, and the file that may before there is a room.
const PRINTS: [&str; 2] = ["src/cli/", "src/main.rs"];
/// Files that may have `unsafe` in them.
const UNSAFE: [&str; 2] = ["crates/marc/src/iso2709/simd.rs", "crates/bench/src/allocations.rs"];
/// The file by which tests start programs, and this one, which names what it looks for.
const CHILDREN: [&str; 2] = ["tests/it/children.rs", "tests/it/tidy.rs"];
/// No file is longer, in lines.
const LONGEST: usize = 600;

/// A source file as the rules see it.
struct File {
    /// Relative to the package, with `/`: `crates/marc/src/leader.rs`.
    name: String,
    text: String,
    source: OnceLock<Source>,
}

impl File {
    fn new(name: &str, text: &str) -> File {
        File { name: name.into(), text: text.into(), source: OnceLock::new() }
    }

    /// The text, taken apart; done once.
    fn source(&self) -> &Source {
        self.source.get_or_init(|| Source::new(&self.name, &self.text))
    }

    fn at(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.name)
    }
}

/// Not a program: an example, a benchmark, what builds a crate.
fn is_of_a_library(file: &File) -> bool {
    !file.name.starts_with("crates/") || file.name.contains("/src/")
}

/// Uses of another room that the table does not allow. Tests may use any: they are not built into
/// what uses the room. `tests` names files that hold only tests.
fn arrows(file: &File, tests: &HashSet<String>) -> Vec<String> {
    let whole = WHOLE.iter().any(|whole| file.name.starts_with(whole));
    if whole || !is_of_a_library(file) || tests.contains(&file.name) {
        return Vec::new();
    }
    let Some(room) = file.source().module.first() else {
        return Vec::new();
    };
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| name == room) else {
        return vec![file.at(1, format!("no room {room:?} in the table of tests/it/tidy.rs"))];
    };
    let mut found = Vec::new();
    for path in file.source().paths().into_iter().filter(|p| !p.test) {
        let mut target: Vec<&str> = path.segments.iter().map(String::as_str).collect();
        match target.first() {
            None => {
                found.push(file.at(path.line, "the whole crate is used; name the room"));
                continue;
            }
            // `crate::Error` and the like are re-exported from there.
            Some(first) if first.starts_with(char::is_uppercase) => target.insert(0, "error"),
            Some(_) => {}
        }
        let within = |part: &&str| {
            let part: Vec<&str> = part.split("::").collect();
            target.starts_with(&part)
        };
        if target[0] != room.as_str() && !allowed.iter().any(within) {
            let target = target.join("::");
            let known = if allowed.is_empty() { "nothing".into() } else { allowed.join(", ") };
            found.push(file.at(path.line, format!("{room} uses {target}; it may use {known}")));
        }
    }
    found
}

/// Prints outside the room that prints. `tests` names files that hold only tests.
fn prints(file: &File, tests: &HashSet<String>) -> Vec<String> {
    let may = PRINTS.iter().any(|p| file.name.starts_with(p)) || !is_of_a_library(file);
    if may || tests.contains(&file.name) {
        return Vec::new();
    }
    let tokens = &file.source().tokens;
    let calls = tokens.windows(2).filter(|w| {
        let prints = ["print", "println", "eprint", "eprintln", "dbg"];
        !w[0].test && w[1].text == "!" && prints.contains(&w[0].text.as_str())
    });
    calls.map(|w| file.at(w[0].line, format!("{}! outside src/cli", w[0].text))).collect()
}

/// A file that does not begin by saying what it is for.
fn headers(file: &File) -> Vec<String> {
    match file.text.starts_with("//! ") {
        true => Vec::new(),
        false => vec![file.at(1, "begin with //! and what this file is for")],
    }
}

fn lengths(file: &File) -> Vec<String> {
    match file.text.lines().count() {
        n if n > LONGEST => vec![file.at(n, format!("{n} lines; {LONGEST} at most: split it"))],
        _ => Vec::new(),
    }
}

fn unsafe_code(file: &File) -> Vec<String> {
    if UNSAFE.contains(&file.name.as_str()) {
        return Vec::new();
    }
    let words = file.source().tokens.iter().filter(|t| t.text == "unsafe");
    words.map(|t| file.at(t.line, "unsafe outside the list of tests/it/tidy.rs")).collect()
}

/// Programs that a test starts in a way of its own: they would hear no signals that this process ignores, and could keep
/// the test waiting for ever.
fn own_children(file: &File) -> Vec<String> {
    if CHILDREN.contains(&file.name.as_str()) {
        return Vec::new();
    }
    let texts: Vec<&str> = file.source().tokens.iter().map(|t| t.text.as_str()).collect();
    let of_std = |at: usize, name: &str| {
        let before = &texts[at.saturating_sub(60)..at];
        // In a path, or in the braces of a `use` of it.
        let process = before.iter().rposition(|text| *text == "process");
        process.is_some_and(|p| !before[p..].contains(&";") && !before[p..].contains(&"}"))
            && (name == "Command" || name == "Child")
    };
    let tokens = file.source().tokens.iter().enumerate();
    let found = tokens.filter(|(at, token)| of_std(*at, &token.text));
    let what = |name: &str| format!("std::process::{name}; use the one of tests/it/children.rs");
    found.map(|(_, token)| file.at(token.line, what(&token.text))).collect()
}

/// Paths that exist on one machine only.
fn homes(file: &File) -> Vec<String> {
    let homes = ["home", "root", "Users", "work"].map(|name| format!("/{name}/"));
    let mut found = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        let named = homes.iter().find(|home| {
            let before = line.find(home.as_str()).map(|at| &line[..at]);
            // A word before it makes it part of an address or a longer path.
            before
                .is_some_and(|b| !b.ends_with(|c: char| c.is_alphanumeric() || ".-_}".contains(c)))
        });
        if let Some(home) = named {
            found.push(file.at(i + 1, format!("a path under {home}")));
        }
    }
    found
}

/// Names of files that a module declares under `#[cfg(test)]`.
fn test_files(files: &[File]) -> HashSet<String> {
    let mut found = HashSet::new();
    for file in files {
        let own = file.name.trim_end_matches(".rs");
        let parent = ["/mod", "/lib", "/main"].iter().find_map(|name| own.strip_suffix(name));
        let folder = parent.unwrap_or(own);
        for name in file.source().test_modules() {
            found.insert(format!("{folder}/{name}.rs"));
            found.insert(format!("{folder}/{name}/mod.rs"));
        }
    }
    found
}

/// The source, read once for all tests.
static SRC: LazyLock<Vec<File>> =
    LazyLock::new(|| ["src", "crates"].iter().flat_map(|folder| files(folder)).collect());

/// All `.rs` files under `folder`.
fn files(folder: &str) -> Vec<File> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        // Not a skip: an example may be no folder.
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let path = entry.expect("a folder to read").path();
            if path.is_dir() && !path.ends_with("target") {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(&root.join(folder), &mut found);
    found.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a source file is text");
        let name = path.strip_prefix(root).expect("under the package").to_string_lossy();
        File::new(&name.replace('\\', "/"), &text)
    };
    found.into_iter().map(read).collect()
}

fn none(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn rooms_use_only_what_they_may() {
    let tests = test_files(&SRC);
    none(SRC.iter().flat_map(|f| arrows(f, &tests)).collect());
}

#[test]
fn only_the_command_line_prints() {
    let tests = test_files(&SRC);
    none(SRC.iter().flat_map(|f| prints(f, &tests)).collect());
}

#[test]
fn every_file_says_what_it_is_for_and_is_short() {
    assert!(SRC.len() > 10, "{} files found", SRC.len());
    none(SRC.iter().flat_map(|f| [headers(f), lengths(f)].concat()).collect());
}

#[test]
fn unsafe_stands_where_it_may() {
    none(SRC.iter().flat_map(unsafe_code).collect());
}

#[test]
fn programs_of_tests_hear_signals_and_have_a_deadline() {
    none(files("tests/it").iter().flat_map(own_children).collect());
}

#[test]
fn no_file_knows_a_machine() {
    let all = ["src", "crates", "tests", "benches", "examples", "fuzz"];
    none(all.iter().flat_map(|folder| files(folder)).flat_map(|f| homes(&f)).collect());
}

mod checks {
    use super::*;

    #[track_caller]
    fn caught(found: Vec<String>, what: &[&str]) {
        assert_eq!(found.len(), what.len(), "{found:?}");
        for (found, what) in found.iter().zip(what) {
            assert!(found.contains(what), "{found:?} has no {what:?}");
        }
    }

    #[test]
    fn arrows_are_found_however_they_are_written() {
        let in_room = |name: &str, text: &str| arrows(&File::new(name, text), &HashSet::new());
        let disk = |text: &str| in_room("crates/store/src/durability/disk/read.rs", text);
        caught(disk("use crate::format::Format;"), &["read.rs:1: durability uses format::Format"]);
        caught(
            disk("use crate::{\n  Error,\n  file::{self, Sink as S},\n};"),
            &[":3: durability uses file;", ":3: durability uses file::Sink"],
        );
        caught(
            disk("fn f() {\n  let x = crate::copy::run::<u8>(1);\n}"),
            &[":2: durability uses copy::run"],
        );
        caught(disk("use super::super::super::format;"), &["durability uses format"]);
        caught(disk("mod tests {\n use super::super::super::super::bench;\n}"), &["uses bench"]);
        caught(
            disk("fn f(x: crate::store::Key) -> super::super::super::cli::X {}"),
            &["store", "cli"],
        );
        caught(disk("use crate::*;"), &["the whole crate"]);
        caught(disk("use crate as all;"), &["the whole crate"]);
        caught(disk("use crate::record::Value;"), &["durability uses record::Value"]);
        caught(
            in_room("crates/store/src/server/x.rs", "use crate::{durability, copy};"),
            &["copy"],
        );
        caught(
            in_room("crates/store/src/server/x.rs", "use crate::store;"),
            &["server uses store;"],
        );
        caught(
            in_room("crates/format/src/record/mod.rs", "use super::format::Format;"),
            &["record uses format"],
        );
        caught(
            in_room("crates/store/src/server/x.rs", "use crate::record;"),
            &["it may use error"],
        );
        caught(in_room("src/cellar/wine.rs", ""), &["no room \"cellar\""]);
        caught(
            in_room("crates/store/src/file/mod.rs", "#[cfg(not(test))]\nmod x { use crate::cli; }"),
            &["cli"],
        );
    }

    #[test]
    fn arrows_that_may_be_are_left_alone() {
        for (name, text) in [
            ("crates/marc/src/xml/read.rs", "use crate::{Error, Result, record::Record};"),
            (
                "crates/store/src/copy/batch.rs",
                "use super::{Record, super::file}; use crate::marc::Field;",
            ),
            (
                "crates/store/src/durability/disk/read.rs",
                "// use crate::format;\n/* crate::cli */ const S: &str = \"crate::cli\";",
            ),
            (
                "crates/store/src/durability/disk/read.rs",
                "const S: &str = r#\"\"crate::cli\"#; const C: char = '\"';",
            ),
            (
                "crates/format/src/record/mod.rs",
                "pub(crate) use json::read; pub(super) fn f(&self) { self.x(); }",
            ),
            (
                "crates/format/src/record/mod.rs",
                "#[cfg(test)]\nmod tests {\n use super::format; use crate::cli;\n}",
            ),
            (
                "crates/format/src/format/json.rs",
                "use super::Framing; fn f<'a>(x: &'a str) { crate::my_macro!(x) }",
            ),
            ("crates/store/src/server/x.rs", "use crate::durability::{self, Tier};"),
            ("src/cli/mod.rs", "use crate::report::screen;"),
            ("src/main.rs", "use crate::cli;"),
        ] {
            none(arrows(&File::new(name, text), &HashSet::new()));
        }
    }

    #[test]
    fn prints_are_found_outside_tests() {
        let none_are_tests = HashSet::new();
        let found = |name: &str, text: &str| prints(&File::new(name, text), &none_are_tests);
        caught(
            found(
                "crates/store/src/copy/mod.rs",
                "fn f() {\n print!(\"a\");\n eprintln!(\"b\");\n dbg!(1);\n}",
            ),
            &["mod.rs:2: print!", "mod.rs:3: eprintln!", ":4: dbg!"],
        );
        caught(
            found(
                "crates/store/src/copy/mod.rs",
                "#[cfg(test)]\nmod tests { fn f() {} }\nfn g() { println!() }",
            ),
            &[":3: println!"],
        );
        caught(
            found("crates/store/src/copy/mod.rs", "#[cfg(not(test))]\nfn g() { println!() }"),
            &["println!"],
        );
        let fine =
            "#[cfg(test)]\n#[allow(x)]\nmod tests { #[test] fn f() { println!() } }\n// println!()";
        none(found("crates/store/src/copy/mod.rs", fine));
        none(found("crates/store/src/copy/mod.rs", "#[test]\nfn f() { println!(\"{}\", [1]) }"));
        none(found("src/cli/show.rs", "fn f() { println!() }"));

        let files = [
            File::new("crates/store/src/copy/mod.rs", "#[cfg(test)]\nmod tests;\nmod other;"),
            File::new("crates/store/src/copy/tests.rs", "fn f() { println!() }"),
            File::new("crates/store/src/copy/other.rs", "fn f() { println!() }"),
        ];
        let tests = test_files(&files);
        let found = files.iter().flat_map(|f| prints(f, &tests)).collect();
        caught(found, &["crates/store/src/copy/other.rs:1"]);
    }

    #[test]
    fn the_other_rules_can_fail() {
        let file = |text: &str| File::new("crates/store/src/copy/mod.rs", text);
        caught(headers(&file("use std::fs;\n//! late")), &["begin with //!"]);
        caught(headers(&file("")), &["begin with //!"]);
        none(headers(&file("//! Copies.")));
        caught(lengths(&file(&"\n".repeat(601))), &["601 lines"]);
        none(lengths(&file(&"\n".repeat(600))));
        caught(unsafe_code(&file("fn f() {\n unsafe { g() }\n}")), &[":2: unsafe"]);
        none(unsafe_code(&file("#![deny(unsafe_code)] // unsafe\nconst S: &str = \"unsafe\";")));
        none(unsafe_code(&File::new(UNSAFE[0], "unsafe fn f() {}")));
        let programs = "use std::{fs, process::{Child, Stdio}};\nfn f() { std::process::Command::new(\"x\"); }\n\
                        use std::process::Output; use crate::children::Command;";
        caught(
            own_children(&file(programs)),
            &["1: std::process::Child", "2: std::process::Command"],
        );
        let home = format!("const F: &str = \"/{}/me/x\";", "home");
        caught(homes(&file(&home)), &["a path under"]);
        none(homes(&file("const U: &str = \"http://example.com/home/x\"; // a/root/b")));
    }
}
