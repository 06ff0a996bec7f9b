//! The page of a report as a browser meets it: headless Chromium renders the page of each bench.
//!
//! The pages stay in the folder `page` of cargo's temporary one, to be looked at.

use std::{
    fs,
    path::{Path, PathBuf},
};

use steelyard::bench::{results as measured, save};

use crate::{
    children::Command,
    programs::{self, Need, need},
};

mod layout;

#[path = "../../crates/report/samples/stores.rs"]
mod samples;

/// The built program.
const STEELYARD: &str = env!("CARGO_BIN_EXE_steelyard");

/// What a browser made of a page.
struct Rendered {
    /// The document after its script ran.
    dom: String,
    /// What it said on its console: errors, and what its policy did not allow.
    console: Vec<String>,
}

/// Renders a page with no network to speak of.
fn rendered(page: &Path) -> Need<Rendered> {
    rendered_in(page, 1280)
}

/// The same in a window so many pixels wide.
fn rendered_in(page: &Path, width: u32) -> Need<Rendered> {
    programs::found("chromium")?;
    let profile = tempfile::tempdir().unwrap();
    let done = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args(["--enable-logging=stderr", "--v=0", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    Ok(Rendered {
        dom: String::from_utf8(done.stdout).unwrap(),
        console: said.lines().filter(|l| l.contains("CONSOLE")).map(str::to_owned).collect(),
    })
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Makes the page of these results.
fn made(name: &str, results: &[&Path]) -> PathBuf {
    let page = folder().join(format!("{name}.html"));
    let made = Command::new(STEELYARD)
        .arg("report")
        .args(results)
        .args(["--format", "html"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::write(&page, &made.stdout).unwrap();
    page
}

/// Makes the page of these results and renders it: charts and tables expected in the document.
fn looks_right(name: &str, results: &[&Path], charts: usize, tables: usize) {
    let page = made(name, results);
    let Rendered { dom, console } = need!(rendered(&page));
    assert!(console.is_empty(), "{name}: {console:?}");
    assert_eq!(dom.matches("role=\"img\"").count(), charts, "{name}: charts");
    assert_eq!(dom.matches("<table").count(), tables, "{name}: tables");
    // Each chart has a title and a description, and each figure a caption.
    for part in ["<desc id=", "<title id="] {
        assert_eq!(dom.matches(part).count(), charts, "{name}: {part}");
    }
    let figures = dom.matches("<figure").count();
    assert!(figures >= charts, "{name}: {figures} figures");
    assert_eq!(dom.matches("<figcaption").count(), figures, "{name}: captions");
    for landmark in ["<header>", "<nav ", "<main id=\"main\">", "<footer>", "class=\"skip\""] {
        assert_eq!(dom.matches(landmark).count(), 1, "{name}: {landmark}");
    }
    assert_eq!(dom.matches("<h1>").count(), 1, "{name}: one question");
    // Nothing points outside, and its script ran.
    let outside: Vec<&str> = dom.match_indices("http").map(|(at, _)| &dom[at..at + 12]).collect();
    let outside: Vec<&&str> =
        outside.iter().filter(|u| u.starts_with("http:") || u.starts_with("https:")).collect();
    assert!(outside.is_empty(), "{name}: {outside:?}");
    assert!(dom.contains("href=\"blob:") && dom.contains("href=\"data:text/csv"), "{name}");
}

#[test]
fn the_page_of_formats() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/results/formats.json");
    looks_right("formats", &[&results], 2, 23);
}

#[test]
fn the_page_of_objects() {
    let results = folder().join("objects.json");
    let bench = "bench objects --counts 100,200,300,400 --formats json,msgpack,marshal --budget 6";
    let done =
        Command::new(STEELYARD).args(bench.split(' ')).arg("--out").arg(&results).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    looks_right("objects", &[&results], 12, 8);
}

#[test]
fn the_page_of_stores() {
    let results = folder().join("stores.json");
    save::write(&samples::stores(), &results).unwrap();
    looks_right("stores", &[&results], 4, 16);
}

#[test]
fn the_page_of_two_runs() {
    let (new, old) = (folder().join("new.json"), folder().join("old.json"));
    let mut results = samples::stores();
    save::write(&results, &new).unwrap();
    results.started = "2025-12-01T03:04:05Z".into();
    results.software.insert("steelyard".into(), "0.0.9".into());
    for cell in results.cells.iter_mut().filter(|c| c.competitor == "postgres") {
        cell.rounds.iter_mut().for_each(|r| r.ns = r.ns * 10 / 12);
    }
    save::write(&results, &old).unwrap();
    looks_right("compared", &[&new, &old], 4, 3);
}

/// The checks above can fail.
#[test]
fn a_page_that_is_broken_is_found_out() {
    let page = folder().join("broken.html");
    let text = "<!doctype html><meta http-equiv=Content-Security-Policy \
        content=\"default-src 'none'; script-src 'unsafe-inline'\">\
        <img src=\"https://example.invalid/x.png\"><script>nothing.here()</script>";
    fs::write(&page, text).unwrap();
    let Rendered { console, .. } = need!(rendered(&page));
    assert!(console.iter().any(|l| l.contains("not defined")), "{console:?}");
    assert!(console.iter().any(|l| l.contains("Content Security Policy")), "{console:?}");
}
