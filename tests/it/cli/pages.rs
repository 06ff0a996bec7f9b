//! The pages of the documentation: their commands are run and must print what stands below them, every other command is
//! one that the command line understands, and links lead somewhere.
//!
//! A block ```` ```console ```` has commands, `$ …`, each with all that it prints, errors included. A line `…` stands for any
//! lines; a line that ends with `…` for one that begins so. The blocks of a page run in order in one folder.
//! `INSTA_UPDATE=always` writes what is printed now into the pages, cut as it was: look at the difference.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Desk, STEELYARD};
use crate::children::Command;

/// The pages whose blocks of commands are run.
const RUN: [&str; 2] = ["README.md", "docs/marc.md"];
const ANY: &str = "…";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page that people read, relative to the package.
fn pages() -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![PathBuf::new(), "docs".into()];
    let crates = fs::read_dir(root().join("crates")).unwrap();
    folders.extend(crates.map(|entry| Path::new("crates").join(entry.unwrap().file_name())));
    for folder in folders {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if path.extension().is_some_and(|e| e == "md") {
                all.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    all.sort();
    assert!(RUN.iter().all(|page| all.iter().any(|name| name == page)), "{all:?}");
    all
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"))
}

/// A command and what stands below it.
struct Shown<'a> {
    command: &'a str,
    lines: Vec<&'a str>,
}

/// A page, taken apart: text as it is, and blocks of commands.
enum Piece<'a> {
    Text(&'a str),
    Commands(Vec<Shown<'a>>),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    const BEGIN: &str = "```console\n";
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, block) = rest.split_at(at + BEGIN.len());
        let end = block.find("```").expect("a block ends");
        pieces.push(Piece::Text(before));
        let mut commands: Vec<Shown<'_>> = Vec::new();
        for line in block[..end].lines() {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push(Shown { command, lines: Vec::new() }),
                (None, Some(last)) => last.lines.push(line),
                (None, None) => panic!("a block begins with a command: {line:?}"),
            }
        }
        pieces.push(Piece::Commands(commands));
        rest = &block[end..];
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// What a command prints in a folder, errors included.
fn printed(desk: &Desk, command: &str) -> String {
    let programs = Path::new(STEELYARD).parent().unwrap().to_str().unwrap();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let done = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(desk.path())
        .envs([("PATH", &*path), ("LC_ALL", "C")])
        .env_remove("NO_COLOR")
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).expect("text");
    // 1: something was found.
    assert!(matches!(done.status.code(), Some(0 | 1)), "{command}: {:?}: {text}", done.status);
    text
}

/// Spaces at the ends of lines are not kept by editors.
fn same_line(shown: &str, line: &str) -> bool {
    match shown.strip_suffix(ANY) {
        Some(begin) => line.starts_with(begin.trim_end()),
        None => shown.trim_end() == line.trim_end(),
    }
}

fn agrees(shown: &[&str], lines: &[&str]) -> bool {
    match (shown, lines) {
        ([], lines) => lines.is_empty(),
        ([first, rest @ ..], _) if *first == ANY => {
            (0..=lines.len()).any(|n| agrees(rest, &lines[n..]))
        }
        ([first, rest @ ..], [line, lines @ ..]) => same_line(first, line) && agrees(rest, lines),
        _ => false,
    }
}

/// What is printed, cut where the page cut what was printed before.
fn cut(shown: &[&str], lines: &[&str]) -> Vec<String> {
    let short = |at: usize, line: &str| match shown.get(at).and_then(|s| s.strip_suffix(ANY)) {
        Some(begin) if !begin.is_empty() && line.chars().count() > begin.chars().count() => {
            line.chars().take(begin.chars().count()).chain(ANY.chars()).collect()
        }
        _ => line.trim_end().to_owned(),
    };
    let kept = |(at, line): (usize, &&str)| short(at, line);
    match shown.iter().position(|line| *line == ANY) {
        Some(head) if lines.len() + 1 > shown.len() => {
            let tail = shown.len() - head - 1;
            let after = lines.len() - tail;
            let end = lines[after..].iter().enumerate().map(|(at, l)| short(head + 1 + at, l));
            let begin = lines[..head].iter().enumerate().map(kept);
            begin.chain([ANY.to_owned()]).chain(end).collect()
        }
        _ => lines.iter().enumerate().map(kept).collect(),
    }
}

/// Runs the commands of a page: the page as it should be, and what differs.
fn run_page(page: &str) -> (String, Vec<String>) {
    let desk = Desk::new();
    let text = read(page);
    let (mut now, mut faults) = (String::new(), Vec::new());
    for piece in pieces(&text) {
        let commands = match piece {
            Piece::Text(text) => {
                now += text;
                continue;
            }
            Piece::Commands(commands) => commands,
        };
        for Shown { command, lines } in commands {
            now += &format!("$ {command}\n");
            let printed = printed(&desk, command);
            let found: Vec<&str> = printed.lines().collect();
            let right = match agrees(&lines, &found) {
                true => lines.iter().map(|line| (*line).to_owned()).collect(),
                false => {
                    faults.push(format!("$ {command}\n{printed}"));
                    cut(&lines, &found)
                }
            };
            right.iter().for_each(|line| now += &format!("{line}\n"));
        }
    }
    (now, faults)
}

/// Whether pages are to be written anew.
fn updates() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always")
}

#[test]
fn the_pages_print_what_they_show() {
    let update = updates();
    for page in RUN {
        let (now, faults) = run_page(page);
        if update && !faults.is_empty() {
            fs::write(root().join(page), now).unwrap();
            continue;
        }
        let faults = faults.join("\n");
        assert!(
            faults.is_empty(),
            "{page}: INSTA_UPDATE=always writes what is printed now:\n{faults}"
        );
    }
}

/// The table of abilities on its page is that of the code.
#[test]
fn the_table_of_stores_is_that_of_the_code() {
    const PAGE: &str = "docs/stores.md";
    const BEGIN: &str = "<!-- steelyard stores --table --format markdown -->\n";
    const END: &str = "<!-- end of the table -->";
    let desk = Desk::new();
    let table = desk.run("stores --table --format markdown").well();
    let page = read(PAGE);
    let (before, rest) = page.split_once(BEGIN).expect("the table begins");
    let (shown, after) = rest.split_once(END).expect("the table ends");
    if updates() && shown != table.text() {
        fs::write(root().join(PAGE), [before, BEGIN, table.text(), END, after].concat()).unwrap();
        return; // Not a skip: the page is what the code says now.
    }
    let line = shown.lines().zip(table.text().lines()).find(|(shown, now)| shown != now);
    let is_same = shown == table.text();
    assert!(is_same, "{PAGE} is stale (INSTA_UPDATE=always writes it anew): {line:?}");
}

#[test]
fn what_a_page_shows_is_compared() {
    let lines = ["one", "two and more ", "three", "four"];
    for right in [
        &["one", "two and more", "three", "four"][..],
        &["one", "two…", "three", "four"],
        &["…"],
        &["one", "…", "four"],
        &["…", "three", "…"],
    ] {
        assert!(agrees(right, &lines), "{right:?}");
    }
    for wrong in
        [&["one"][..], &["one", "…", "five"], &["two…", "…"], &[], &["one", "…", "one", "four"]]
    {
        assert!(!agrees(wrong, &lines), "{wrong:?}");
    }
    assert_eq!(cut(&["a", "…", "z"], &lines), ["one", "…", "four"]);
    assert_eq!(cut(&["aaa", "tw…", "…"], &lines), ["one", "tw…", "…"]);
    assert_eq!(cut(&[], &lines), ["one", "two and more", "three", "four"]);
}

/// The words of a command, up to where the shell takes over.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Whether the command line understands a command, which is not run.
#[track_caller]
pub(super) fn understood(desk: &Desk, place: &str, command: &str) {
    // Of a command that goes on in the next line, the first line.
    let words = words(command.trim_end_matches('\\'));
    let done = desk.command(words[1..].iter().map(String::as_str).chain(["--help"])).output();
    let super::Ran { status, err, .. } = super::ran(done.unwrap());
    assert_eq!(status, Some(0), "{place}: {command}: {err}");
}

/// The commands of a page, in blocks of any kind.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines);
    let lines = lines.map(|line| line.strip_prefix("$ ").unwrap_or(line));
    lines.filter(|line| line.starts_with("steelyard "))
}

#[test]
fn every_command_of_a_page_is_understood() {
    let desk = Desk::new();
    let mut seen = 0;
    for page in pages() {
        for command in commands(&read(&page)) {
            understood(&desk, &page, command);
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
}

#[test]
#[should_panic(expected = "--wher")]
fn a_command_that_is_not_understood_is_found() {
    understood(&Desk::new(), "a page", "steelyard copy a.mrc b.mrc --wher 245 | less");
}

/// The name of a heading in links, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The targets of a page's links to other pages.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target).filter(|target| !target.contains("://")).collect()
}

#[test]
fn links_of_pages_lead_somewhere() {
    let mut seen = 0;
    for page in pages() {
        for link in links(&read(&page)) {
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let folder = Path::new(&page).parent().unwrap();
            let target = match file {
                "" => PathBuf::from(&page),
                file => folder.join(file),
            };
            let path = root().join(&target);
            assert!(path.exists(), "{page}: {link}");
            seen += 1;
            if !part.is_empty() {
                let text = fs::read_to_string(&path).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                assert!(headings.any(|line| anchor(line) == part), "{page}: {link}");
            }
        }
    }
    assert!(seen > 10, "{seen}");
}
