//! The README's examples of keeping records, as they stand there.

use super::{Desk, STEELYARD};
use crate::children::Command;

#[test]
fn the_readme_does_what_it_shows() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let (_, keeping) = readme.split_once("## Keeping records").unwrap();
    let (_, block) = keeping.split_once("```console\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let commands: Vec<_> = block.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(commands.len() >= 8, "{block}");
    let desk = Desk::new();
    for command in commands {
        // The program that was built here, by its name.
        let line = command.replace("steelyard ", &format!("{STEELYARD} "));
        let done =
            Command::new("sh").args(["-ec", &line]).current_dir(desk.path()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{command}: {said}");
        if command.contains(" get ") {
            assert!(String::from_utf8_lossy(&done.stdout).starts_with(r#"{"_key":"bob17","#));
        }
        if command.contains(" each ") {
            assert_eq!(String::from_utf8_lossy(&done.stdout).lines().count(), 3);
        }
    }
    assert!(!desk.read("people.msgpack").is_empty());
}
