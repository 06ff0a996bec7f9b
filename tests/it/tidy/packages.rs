//! A crate is published as its folder, and nothing beside that: what its source names lies in it. (A link in it will do:
//! the package has a copy of what it leads to.)

use super::{File, SRC, none};

/// Files outside of the crate that a source file includes, has as a module, or looks for from the crate's folder.
fn outside(file: &File) -> Vec<String> {
    // `crates/NAME/src/…`: how many folders lie between the file and that of its crate.
    let Some(depth) = file.name.matches('/').count().checked_sub(2) else { return Vec::new() };
    if !file.name.starts_with("crates/") {
        return Vec::new();
    }
    let tokens = &file.source().tokens;
    let found = tokens.iter().enumerate().filter(|(at, token)| {
        let before: Vec<_> = tokens[..*at].iter().rev().take(4).map(|t| t.text.as_str()).collect();
        let depth = match before[..] {
            ["(", "!", "include_str" | "include_bytes" | "include", ..]
            | ["=", "path", "[", ..] => depth,
            [",", ")", "\"", "(", ..] if tokens[at - 4 - 2].text == "env" => 0,
            _ => return false,
        };
        let literal = token.literal.trim_matches('"').trim_start_matches('/');
        literal.split('/').take_while(|part| *part == "..").count() > depth
    });
    let what = |literal: &str| format!("{literal} is outside of the crate, and not in its package");
    found.map(|(_, token)| file.at(token.line, what(&token.literal))).collect()
}

#[test]
fn crates_name_no_file_outside_of_them() {
    none(SRC.iter().flat_map(outside).collect());
}

#[test]
fn a_file_outside_of_a_crate_is_found() {
    let found = |name: &str, text: &str| outside(&File::new(name, text)).len();
    for (name, text, wrong) in [
        ("crates/a/src/lib.rs", "const A: &str = include_str!(\"../../x\");", 1),
        ("crates/a/src/lib.rs", "const A: &str = include_str!(\"../x\");", 0),
        ("crates/a/src/b/c.rs", "const A: &[u8] = include_bytes!(\"../../x\");", 0),
        ("crates/a/src/b/c.rs", "const A: &[u8] = include_bytes!(\"../../../x\");", 1),
        ("crates/a/src/lib.rs", "#[path = \"../../x.rs\"] mod x;", 1),
        ("crates/a/src/lib.rs", "#[path = \"x.rs\"] mod x;", 0),
        ("crates/a/src/b.rs", "f(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../x\"));", 1),
        ("crates/a/src/b.rs", "f(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/x/../y\"));", 0),
        ("crates/a/src/b.rs", "symlink(\"../../x\", y);", 0),
        ("src/lib.rs", "const A: &str = include_str!(\"../README.md\");", 0),
    ] {
        assert_eq!(found(name, text), wrong, "{name}: {text}");
    }
}
