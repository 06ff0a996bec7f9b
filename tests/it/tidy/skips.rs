//! A test that leaves without a word has tested nothing, and nobody knows. What a test needs comes through
//! `need!` (`skips.rs`), which says and counts what is left out; this looks for other ways out.

use super::{File, files, none};

/// The ways that count, and what only answers a client and tests nothing.
const WAYS: [&str; 4] =
    ["tests/it/skips.rs", "tests/it/programs.rs", "tests/it/memcache/proxy.rs", "tests/it/tidy/"];

/// What has to stand beside a return that is no skip, with the reason.
const NOT_A_SKIP: &str = "// Not a skip";

/// Returns without a value, which end a test as if it had passed; skips that are printed and not counted;
/// servers that may not be there without saying why; variables that only `programs.rs` reads.
fn skips(file: &File) -> Vec<String> {
    if WAYS.iter().any(|way| file.name.starts_with(way)) {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let excused = |line: usize| {
        let near = lines[line.saturating_sub(2)..line].iter();
        near.rev().any(|text| text.contains(NOT_A_SKIP))
    };
    let tests = file.name.starts_with("tests/");
    let tokens = &file.source().tokens;
    let mut found = Vec::new();
    for pair in tokens.windows(2).filter(|pair| tests || pair[0].test) {
        let bare = pair[0].text == "return" && [";", "}", ","].contains(&pair[1].text.as_str());
        // In the library, where code and its tests stand together, what is known to be a skip.
        if bare && tests && !excused(pair[0].line) {
            let what = format!("a return without a word: need!(…), skip(…) or {NOT_A_SKIP}: why");
            found.push(file.at(pair[0].line, what));
        }
    }
    for answer in tokens.windows(5).filter(|answer| tests || answer[0].test) {
        let words = answer.iter().map(|token| token.text.as_str());
        if words.eq(["-", ">", "Option", "<", "Server"]) {
            let what = "Option<Server>, where a Need<Server> says why there is none";
            found.push(file.at(answer[0].line, what));
        }
    }
    for (i, line) in lines.iter().enumerate().filter(|_| tests || file.name.ends_with("tests.rs")) {
        if line.contains("\"skipped") {
            found.push(file.at(i + 1, "a skip that is printed and not counted"));
        }
        let reads = ["TEST_DATA\"", "REQUIRE_SERVERS\"", "SKIPS\""];
        if line.contains("env::var") && reads.iter().any(|name| line.contains(name)) {
            found.push(file.at(i + 1, "a variable that programs.rs and skips.rs read"));
        }
    }
    found
}

#[test]
fn no_test_leaves_without_a_word() {
    let all: Vec<File> =
        ["src", "crates", "tests"].iter().flat_map(|folder| files(folder)).collect();
    let needs = all.iter().filter(|file| file.text.contains("need!(")).count();
    assert!(needs > 20, "{needs} files with needs found");
    none(all.iter().flat_map(skips).collect());
}

#[test]
fn ways_out_are_found() {
    let skips = |name: &str, text: &str| skips(&File::new(name, text));
    let test = "tests/it/new.rs";
    for text in [
        "fn f() {\n let Some(server) = server() else { return };\n}",
        "fn f() {\n if !found() { return; }\n}",
        "fn f() {\n match server() { Some(s) => s,\n None => return, }\n}",
        "fn f() {\n println!(\"skipped: no server\");\n}",
        "fn f() -> Option<Server> {\n}",
        "fn f() {\n let folder = std::env::var_os(\"STEELYARD_TEST_DATA\");\n}",
    ] {
        assert_eq!(skips(test, text).len(), 1, "{text}");
        assert!(skips("tests/it/programs.rs", text).is_empty());
    }
    for text in [
        "fn f() {\n let server = need!(server());\n return 5;\n}",
        "fn f() {\n // Not a skip: all is done.\n return;\n}",
        "fn f() {\n return programs::skip(\"no server\");\n}",
        "// else { return }\nconst S: &str = \"return;\";",
    ] {
        none(skips(test, text));
    }
    let own = "#[cfg(test)]\nmod tests { fn start() -> Option<Server> {} }";
    assert_eq!(skips("crates/store/src/store/new.rs", own).len(), 1);
    none(skips("crates/store/src/store/new.rs", "fn start() -> Option<Server> { return; }"));
}
