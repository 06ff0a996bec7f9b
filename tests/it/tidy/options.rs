//! A library knows nothing of the command line: what its errors say is true for whoever calls it. Options of the
//! command line are named in hints ([`Error::with_hint`](steelyard::Error::with_hint)), which the command line prints.

use std::collections::HashSet;

use super::{File, SRC, none, test_files};

/// Crates whose texts are all read by people at the command line: their subject is a run of it.
const OF_THE_COMMAND_LINE: [&str; 2] = ["src/", "crates/report/"];
/// Programs that take such options themselves.
const PROGRAMS: [&str; 1] = ["crates/store/src/server/"];
/// What stands before a hint in its statement.
const HINTS: [&str; 4] = ["with_hint", "hint", "advice", "ADVICE"];

/// Options of a command line in sentences of a library, but for hints. `tests` names files that hold only tests.
fn options(file: &File, tests: &HashSet<String>) -> Vec<String> {
    let others = OF_THE_COMMAND_LINE.iter().chain(&PROGRAMS);
    let library =
        file.name.contains("/src/") && !others.into_iter().any(|o| file.name.starts_with(o));
    if !library || tests.contains(&file.name) {
        return Vec::new();
    }
    let tokens = &file.source().tokens;
    let is_hint = |at: usize| {
        let ends = |text: &str| [";", "{", "}"].contains(&text);
        let before = tokens[..at].iter().rev().take_while(|token| !ends(&token.text));
        before.into_iter().any(|token| HINTS.contains(&token.text.as_str()))
    };
    let found = tokens
        .iter()
        .enumerate()
        .filter(|(at, token)| !token.test && names_an_option(&token.literal) && !is_hint(*at));
    let what =
        |text: &str| format!("{text} names an option; say what is wrong, and the option in a hint");
    found.map(|(_, token)| file.at(token.line, what(&token.literal))).collect()
}

/// Whether a sentence names an option. What is one word is an argument of a program.
fn names_an_option(literal: &str) -> bool {
    let is_text = literal.ends_with('"') || literal.ends_with('#');
    let body = literal.trim_start_matches(['b', 'c', 'r', '#']).trim_matches(['"', '#']);
    let option = |word: &str| {
        let word = word.trim_start_matches(['`', '(', '\'', '"', '\\']);
        word.strip_prefix("--")
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    let mut words = body.split_whitespace();
    is_text && words.clone().count() > 1 && words.any(option)
}

#[test]
fn libraries_name_options_in_hints_only() {
    let tests = test_files(&SRC);
    none(SRC.iter().flat_map(|file| options(file, &tests)).collect());
}

#[test]
fn an_option_in_an_error_is_found() {
    let found = |name: &str, text: &str| options(&File::new(name, text), &HashSet::new()).len();
    let library = "crates/store/src/copy/key.rs";
    for text in [
        "fn f() { Err(Error::invalid(\"no key; name it with --key\")) }",
        "fn f() { Err(Error::invalid(format!(\"no {x}; --no-keys leaves keys out\"))) }",
        "fn f() { let what = \"no key, \\\n   (--key names it)\"; }",
        "fn f() { let what = r#\"say \"--key x\"\"#; }",
        "fn f() { let hint = \"x\"; Err(Error::invalid(\"say --key\")) }",
    ] {
        assert_eq!(found(library, text), 1, "{text}");
    }
    for text in [
        "fn f() { Err(Error::invalid(\"no key\").with_hint(\"name it with --key\")) }",
        "fn f() { let hint = format!(\"name it with --key {x}\"); }",
        "const ADVICE: &str = \"name it with --key\";",
        "fn f() { command.arg(\"--key\").arg(\"--key=a\") } // say --key",
        "fn f() { \"a -- b --- c\" }",
        "#[test] fn f() { assert!(x.contains(\"say --key\")) }",
    ] {
        assert_eq!(found(library, text), 0, "{text}");
    }
    assert_eq!(found("src/cli/copy/mod.rs", "const A: &str = \"say --key\";"), 0);
    assert_eq!(found("crates/report/src/marks.rs", "const A: &str = \"say --key\";"), 0);
}
