//! Files that the documents name exist: a document that is not kept true is found here.

use std::{fs, path::Path};

/// Folders that names of files are relative to, beside that of the document. A name that begins with a crate's
/// (`bench/run.rs`) is a file of its source.
const ROOTS: [&str; 8] = [
    "",
    "docs/",
    "src/",
    "crates/",
    "crates/store/src/",
    "crates/store/src/store/",
    "crates/format/src/",
    "crates/bench/src/stores/",
];

/// Names of source files between backticks, with a folder in them.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|name| {
        let ends = [".rs", ".py", ".toml", ".md", ".c"].iter().any(|end| name.ends_with(end));
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c));
        ends && plain && name.contains('/') && !name.starts_with('/')
    })
}

fn exists(root: &Path, document: &Path, name: &str) -> bool {
    let in_source = name.split_once('/').map(|(first, rest)| format!("crates/{first}/src/{rest}"));
    let beside = document.parent().is_some_and(|folder| folder.join(name).exists());
    beside
        || ROOTS.iter().any(|folder| root.join(format!("{folder}{name}")).exists())
        || in_source.is_some_and(|name| root.join(name).exists())
}

/// Lines of Rust examples that rustdoc hides and everything else shows: whoever pastes the example gets them, too.
fn hidden(text: &str) -> Vec<usize> {
    let mut fence: Option<bool> = None;
    let mut found = Vec::new();
    for (n, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), fence) {
            (Some(language), None) => fence = Some(language.starts_with("rust")),
            (Some(_), Some(_)) => fence = None,
            (None, Some(true)) if line == "#" || line.starts_with("# ") => found.push(n + 1),
            _ => {}
        }
    }
    found
}

#[test]
fn examples_can_be_pasted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![root.join("README.md")];
    let list = |folder: &str| fs::read_dir(root.join(folder)).unwrap().map(|e| e.unwrap().path());
    documents.extend(list("docs").filter(|path| path.extension().is_some_and(|e| e == "md")));
    documents.extend(list("crates").map(|path| path.join("README.md")));
    let mut found = Vec::new();
    for document in &documents {
        let lines = hidden(&fs::read_to_string(document).unwrap());
        found.extend(lines.iter().map(|n| format!("{}:{n}", document.display())));
    }
    assert!(found.is_empty(), "hidden lines:\n{}", found.join("\n"));
    assert!(documents.len() > 15, "{documents:?}");
    let example = "```sh\n# x\n```\n```rust\n# use x;\n#[a]\nfn f() {}\n#\n```\n# Title\n";
    assert_eq!(hidden(example), [5, 8]);
}

#[test]
fn files_that_documents_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    documents.extend(docs.filter(|path| path.extension().is_some_and(|end| end == "md")));
    let mut missing = Vec::new();
    for document in &documents {
        let text = fs::read_to_string(document).unwrap();
        let lost = named(&text).filter(|name| !exists(root, document, name));
        missing.extend(lost.map(|name| format!("{}: {name}", document.display())));
    }
    assert!(missing.is_empty(), "no such files:\n{}", missing.join("\n"));
    assert!(!exists(root, &documents[0], "bench/nothing.rs"));
    assert_eq!(named("`a/b.rs` b/c.rs `x y/z.rs` `d.rs`").collect::<Vec<_>>(), ["a/b.rs"]);
}
