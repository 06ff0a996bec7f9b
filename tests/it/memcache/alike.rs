//! The blocking and the asynchronous client have the same methods with the same parameters.

use std::{collections::BTreeMap, fs, path::Path};

/// The public methods of the client in a folder, by the type they are of: each with its parameters and result, as
/// written, without what the two differ in by nature.
fn methods(folder: &str) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/memcache/src").join(folder);
    let mut found = BTreeMap::new();
    for file in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let mut of = None;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("impl") {
                let name = line.trim_start_matches("impl").trim_end_matches('{').trim();
                let name = name.replace("Async", "").replace("<'_>", "");
                of = Some(name).filter(|name| ["Client", "NoBlock"].contains(&name.as_str()));
            }
            let line = line.trim().replacen("pub async fn", "pub fn", 1);
            let (Some(of), Some(rest)) = (&of, line.strip_prefix("pub fn ")) else { continue };
            let mut signature = rest.to_owned();
            while !signature.ends_with('{') {
                signature += lines.next().expect("a body").trim();
            }
            let end = signature.find(['<', '(']).expect("parameters");
            let mut plain = signature[end..].replace("Async", "");
            // Futures go from thread to thread; a list of methods in one line and one in several are the same.
            for bound in [" + Send + Sync", " + Send", " + Sync", ", IntoIter: Send", "where"] {
                plain = plain.replace(bound, "");
            }
            plain.retain(|c| !c.is_whitespace());
            let plain = plain.replace(",)", ")").replace(",>", ">");
            found.insert(format!("{of}::{}", &signature[..end]), plain);
        }
    }
    found
}

#[test]
fn both_clients_have_the_same_methods() {
    let (blocking, asynchronous) = (methods("blocking"), methods("nonblocking"));
    assert!(blocking.len() > 30, "only {} methods were found", blocking.len());
    for (name, of) in &blocking {
        let other = asynchronous.get(name);
        assert_eq!(other, Some(of), "{name}: blocking on the right");
    }
    for name in asynchronous.keys() {
        assert!(blocking.contains_key(name), "{name} is in the asynchronous client only");
    }
}
