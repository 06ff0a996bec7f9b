//! The page of a report as it lies on a screen: nothing cut off, nothing over anything else, no scrolling
//! sideways, on a phone, a tablet and a desktop, with folds closed and open.
//!
//! A script put into a copy of the page looks at the boxes of all texts and bars.

use std::{fs, path::Path};

use super::{folder, made, rendered_in, samples};
use crate::programs::{Need, need};

/// Windows of a phone, a tablet and a desktop.
const WIDTHS: [u32; 3] = [390, 800, 1280];

/// Says what is wrong, in the root's `data-layout`.
const LOOK: &str = r#"
const wrong = [];
const seen = e => e.checkVisibility() && !e.closest('.hidden,.skip,.barred>figcaption,desc,title');
const scrolls = e => e.closest('.scroll,pre');
const name = (box) => `${box.name} at ${Math.round(box.left)},${Math.round(box.top)}`;
function look(state) {
  const say = text => wrong.push(`${state}: ${text}`);
  const wide = document.documentElement;
  if (wide.scrollWidth > innerWidth) say(`the page is ${wide.scrollWidth} wide`);
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!node.data.trim() || !seen(parent) || parent.closest('script,style') || scrolls(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const r of range.getClientRects()) {
      if (r.width < 1 || r.height < 1) continue;
      boxes.push({name: node.data.trim().slice(0, 30), node, left: r.left, right: r.right,
        top: r.top + scrollY, bottom: r.bottom + scrollY});
    }
  }
  for (const bar of document.querySelectorAll('.bar')) {
    if (!seen(bar)) continue;
    const r = bar.getBoundingClientRect();
    boxes.push({name: 'a bar', node: bar, left: r.left, right: r.right, top: r.top + scrollY, bottom: r.bottom + scrollY});
    if (r.width < 20) say(`${name(boxes.at(-1))} is ${r.width} wide`);
  }
  if (boxes.length < 20) say(`only ${boxes.length} boxes`);
  for (const box of boxes) {
    if (box.left < -0.5 || box.right > innerWidth + 0.5) say(`cut: ${name(box)} to ${Math.round(box.right)}`);
  }
  for (const e of document.body.querySelectorAll('*')) {
    if (!seen(e) || scrolls(e) || e.closest('svg')) continue;
    const cuts = getComputedStyle(e).overflowX !== 'visible';
    if (cuts && e.scrollWidth > e.clientWidth + 1) say(`cut: ${e.tagName} ${e.textContent.slice(0, 30)}`);
  }
  // The boxes of letters are higher than the letters.
  const [across, down] = [1.5, 4];
  boxes.sort((a, b) => a.top - b.top);
  boxes.forEach((a, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom - down; j++) {
      const b = boxes[j];
      const over = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      if (a.node !== b.node && over > across) say(`${name(a)} lies over ${name(b)}`);
    }
  });
  return boxes.length;
}
const closed = look('closed');
document.querySelectorAll('details').forEach(d => d.open = true);
const open = look('open');
parent.document.documentElement.dataset.layout = JSON.stringify({width: innerWidth, closed, open, wrong: wrong.slice(0, 12)});
"#;

/// What the script said of a page in a window of this width.
fn looked(page: &Path, width: u32) -> Need<serde_json::Value> {
    let text = fs::read_to_string(page).unwrap();
    // The page's own policy would not let another script run.
    let (before, policy) = text.split_once("script-src '").expect("a policy");
    let (_, after) = policy.split_once('\'').unwrap();
    let open = format!("{before}script-src 'unsafe-inline'{after}");
    let copy = folder()
        .join(format!("{}-{width}.html", page.file_stem().unwrap_or_default().to_string_lossy()));
    let page = open.replace("</body>", &format!("<script>{LOOK}</script></body>"));
    // In a frame, as no window of Chromium is narrower than 500 pixels.
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame =
        format!("<iframe style=\"width:{width}px;height:900px;border:0\" srcdoc=\"{page}\">");
    fs::write(&copy, format!("<!DOCTYPE html><meta charset=\"utf-8\">{frame}</iframe>")).unwrap();
    let dom = rendered_in(&copy, 1400)?.dom;
    let (_, said) = dom.split_once("data-layout=\"").expect("the script ran");
    let said = said.split('"').next().unwrap().replace("&quot;", "\"").replace("&amp;", "&");
    Ok(serde_json::from_str(&said).unwrap())
}

fn lies_well(name: &str, results: &[&Path]) {
    let page = made(name, results);
    for width in WIDTHS {
        let said = need!(looked(&page, width));
        assert_eq!(said["width"], width, "{name}: the window");
        let nothing = said["wrong"].as_array().is_some_and(Vec::is_empty);
        assert!(nothing, "{name} at {width}: {:#}", said["wrong"]);
        assert!(said["open"].as_u64() > said["closed"].as_u64(), "{name}: nothing was folded");
    }
}

/// Pages of runs that were made: of every bench, noisy ones and one of a single start.
#[test]
fn nothing_is_cut_and_nothing_overlaps() {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/results");
    for file in [
        "formats.json",
        "objects.json.zst",
        "cache.json.zst",
        "documents.json.zst",
        "inserts.json.zst",
        "inserts-published.json.zst",
        "objects-stores.json.zst",
        "objects-couchdb.json.zst",
    ] {
        let name = file.split('.').next().unwrap();
        lies_well(&format!("layout-{name}"), &[&stored.join(file)]);
    }
}

/// Curves, latencies under load, names as long as they get.
#[test]
fn long_names_and_charts_have_room() {
    let mut results = samples::stores();
    let old = results.competitors[1].name.clone();
    let long = "a-name-that-was-given-on-the-command-line-and-never-ends_and_has_no_space";
    results.competitors[1].name = long.into();
    results
        .cells
        .iter_mut()
        .filter(|c| c.competitor == old)
        .for_each(|c| c.competitor = long.into());
    results.dataset.remarks = vec!["Unbroken".repeat(30)];
    let path = folder().join("layout-long.json");
    super::save::write(&results, &path).unwrap();
    lies_well("layout-long", &[&path]);
}

/// The checks above can fail.
#[test]
fn a_page_that_lies_badly_is_found_out() {
    let page = folder().join("layout-bad.html");
    let bad = "<!doctype html><meta http-equiv=Content-Security-Policy \
        content=\"script-src 'none'\"><body style=margin:0>\
        <p style=width:2000px>too wide</p><p style=\"margin:0;height:0\">one</p><p style=margin:0>two</p>\
        <div style=\"width:40px;overflow:hidden;white-space:nowrap\">this is cut somewhere</div></body>";
    fs::write(&page, bad).unwrap();
    let wrong = need!(looked(&page, 800))["wrong"].to_string();
    for found in ["the page is 2000 wide", "cut: DIV", "one at 0", "lies over"] {
        assert!(wrong.contains(found), "{found}: {wrong}");
    }
}
