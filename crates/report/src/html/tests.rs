//! What the page of fixed results says first, and what it must never say.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

use super::{
    super::{
        html,
        summary::{self, Place},
        svg,
        tests::{
            fixtures::{cache, objects},
            formats, samples,
        },
    },
    SCRIPT, SCRIPT_HASH,
};
use steelyard_results::{Proof, Results, Verdict, derive::derive};

/// A change of the script changes its hash; without that, browsers refuse it.
#[test]
fn the_policy_admits_the_script_of_the_page() {
    let hash = STANDARD.encode(Sha256::digest(format!("\n{SCRIPT}")));
    assert_eq!(SCRIPT_HASH, format!("sha256-{hash}"));
}

fn derived(mut results: Results) -> Results {
    derive(&mut results);
    results
}

/// One of each kind.
fn all() -> [Results; 4] {
    [derived(formats()), objects(), samples::stores(), cache()]
}

/// The text of a piece of HTML: without elements, and without what is not seen on a desktop.
fn text(html: &str) -> String {
    let mut out = String::new();
    let (mut rest, mut unseen) = (html, 0_usize);
    while let Some((before, after)) = rest.split_once('<') {
        if unseen == 0 {
            out.push_str(before);
        }
        let (tag, after) = after.split_once('>').unwrap_or((after, ""));
        let opens = !tag.starts_with('/') && tag.starts_with("span");
        if opens && (unseen > 0 || tag.contains("\"hidden\"") || tag.contains("\"op\"")) {
            unseen += 1;
        } else if tag == "/span" && unseen > 0 {
            unseen -= 1;
        }
        rest = after;
    }
    out.push_str(rest);
    let out = out.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn pieces<'a>(html: &'a str, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(from).skip(1).filter_map(move |piece| piece.split_once(to).map(|p| p.0))
}

/// Question, answer, warnings, and every row of the tables of bars.
fn outline(results: &Results) -> String {
    let page = html(results);
    let (head, rest) = page.split_once("<main").unwrap();
    let mut out = String::new();
    for h1 in pieces(head, "<h1>", "</h1>") {
        out.push_str(&format!("? {}\n", text(h1)));
    }
    for answer in pieces(head, "<p class=\"answer\">", "</p>") {
        out.push_str(&format!("= {}\n", text(answer)));
    }
    for chip in pieces(head, "<summary>", "</summary>") {
        out.push_str(&format!("! {}\n", text(chip)));
    }
    let glance = pieces(rest, "<section id=\"glance\"", "</section>").next().unwrap_or("");
    for row in pieces(glance, "<tr role=\"row\"", "</tr>") {
        let cells = row.replace("</th>", " | ").replace("</td>", " | ");
        let cells = format!("<tr{cells}");
        out.push_str(&format!("  {}\n", text(&cells).trim_end_matches([' ', '|'])));
    }
    for line in
        pieces(glance, "<ul class=\"legend\">", "</ul>").flat_map(|l| pieces(l, "<li>", "</li>"))
    {
        out.push_str(&format!("# {}\n", text(line)));
    }
    out
}

#[test]
fn what_a_reader_sees_first() {
    let [formats, objects, stores, cache] = all();
    insta::assert_snapshot!("front-formats", outline(&formats));
    insta::assert_snapshot!("front-objects", outline(&objects));
    insta::assert_snapshot!("front-stores", outline(&stores));
    insta::assert_snapshot!("front-cache", outline(&cache));
}

/// The signs of a rate that is marked, in a table of bars, in a card, and in a picture.
fn marks(results: &Results) -> usize {
    let page = html(results);
    let (_, body) = page.split_once("<main").unwrap();
    let (body, _) = body.split_once("<footer>").unwrap();
    let signs = [
        "class=\"best\"",
        "class=\"shared\"",
        "<span class=\"note\">best<",
        "<span class=\"note\">tied<",
        "<span class=\"note\">unclear<",
    ];
    let drawn = svg(results);
    let words = [" best</text>", " tied</text>", " unclear</text>"];
    signs.iter().map(|sign| body.matches(sign).count()).sum::<usize>()
        + words.iter().map(|word| drawn.matches(word).count()).sum::<usize>()
}

#[test]
fn nobody_is_best_where_verdicts_do_not_say_so() {
    for results in all() {
        let kind = results.bench.clone();
        assert!(marks(&results) > 0, "{kind}: the signs are found where there are any");
        for (starts, noisy) in [(1, false), (4, false), (4, true), (u32::MAX, true)] {
            let mut results = results.clone();
            for cell in &mut results.cells {
                cell.rounds.retain(|round| round.start < starts);
            }
            results.probes.iter_mut().for_each(|probe| probe.steal = noisy.then_some(0.2));
            let results = derived(results);
            assert_eq!(results.noise().1, noisy);
            assert_eq!(marks(&results), 0, "{kind}, {starts} starts, noisy: {noisy}");
            let page = html(&results);
            assert!(page.contains("Not ranked"), "{kind}, {starts} starts, noisy: {noisy}");
            assert!(page.contains("No rate is marked as best."), "{kind}");
            let answer = page.split("<p class=\"answer\">").nth(1).unwrap();
            let answer = answer.split("</p>").next().unwrap();
            assert!(!answer.contains("fastest"), "{kind}: {answer}");
        }
    }
}

/// Whoever is called best was shown to be faster than each of its group, and of whoever is behind a
/// faster one is known.
#[test]
fn places_are_those_of_verdicts() {
    let mut best = 0;
    for results in all() {
        for phase in &results.phases {
            let standings = summary::standings(&results, &phase.id);
            for group in summary::groups(&results) {
                for of in &group.members {
                    let Some(standing) = standings.get(&of.name) else { continue };
                    let answers: Vec<Verdict> = (group.members.iter())
                        .filter_map(|to| results.answer(&of.name, &to.name, &phase.id))
                        .map(|versus| versus.verdict)
                        .collect();
                    match standing.place {
                        Place::Best => {
                            best += 1;
                            assert!(answers.iter().all(|v| *v == Verdict::Faster), "{}", of.name);
                        }
                        Place::Tied => assert!(!answers.contains(&Verdict::CannotTell)),
                        Place::Behind => assert!(answers.contains(&Verdict::Slower), "{}", of.name),
                        Place::Undecided | Place::Unranked => {}
                    }
                }
            }
        }
    }
    assert!(best > 10, "{best}");
}

/// A format that changes records is not ranked with those that keep them, however fast it is.
#[test]
fn what_loses_records_is_never_best() {
    let mut results = formats();
    results.competitors[0].proof =
        Some(Proof { records: 100, of: 100, equal: 99, ..Proof::default() });
    let results = derived(results);
    let groups = summary::groups(&results);
    assert_eq!(groups.iter().map(|g| g.is_ranked()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(groups[1].members[0].name, "marc21");
    assert!(!summary::standings(&results, "decode").contains_key("marc21"));
    let said = outline(&results);
    assert!(said.contains("MARC 21 changes values") && !said.contains("= MARC 21"), "{said}");
    assert!(said.contains("not ranked"), "{said}");
}

/// Groups are those of durability, the highest first, and a page with several says of whom its answer is.
#[test]
fn stores_stand_in_groups_of_durability() {
    let said = outline(&samples::stores());
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    assert!(at("Survive a crash of the machine (T3)") < at("Keep records in memory only (T0)"));
    // Who promised more than it kept stands last.
    assert!(at("Keep records in memory only (T0)") < at("(T1): less than promised, not ranked"));
    assert!(said.contains("= Among stores that survive a crash of the machine (T3):"), "{said}");
}

/// The floor is no client, and nobody is slower or faster than it.
#[test]
fn the_floor_is_not_ranked() {
    let results = cache();
    for phase in &results.phases {
        assert!(!summary::standings(&results, &phase.id).contains_key("floor"), "{}", phase.id);
    }
    assert!(outline(&results).contains("No client: the least that a call can take"));
}

/// Every text of a results file that the front shows may mean something to a browser.
#[test]
fn no_text_of_results_is_markup() {
    let bad = "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&(%";
    for results in all() {
        let mut results = results;
        let names: Vec<String> = results.competitors.iter().map(|c| c.name.clone()).collect();
        let renamed = |name: &mut String| {
            if names.contains(name) {
                name.push_str(bad);
            }
        };
        results.competitors.iter_mut().for_each(|c| renamed(&mut c.name));
        results.cells.iter_mut().for_each(|c| renamed(&mut c.competitor));
        renamed(&mut results.baseline);
        for contrast in &mut results.contrasts {
            renamed(&mut contrast.of.0);
            renamed(&mut contrast.to.0);
        }
        for c in &mut results.competitors {
            c.sizes = c.sizes.iter().map(|(wrap, size)| (format!("{wrap}{bad}"), *size)).collect();
            if let Some(proof) = c.proof.as_mut() {
                (proof.equal, proof.first) = (0, Some(bad.into()));
            }
            if let Some(kept) = c.store.as_mut() {
                kept.product = bad.into();
                (kept.durability.broken, kept.durability.remark) = (true, Some(bad.into()));
            }
        }
        results.competitors[0].refused = Some(bad.into());
        for phase in &mut results.phases {
            for text in [&mut phase.name, &mut phase.table, &mut phase.about, &mut phase.unit] {
                text.push_str(bad);
            }
            if let Some(row) = phase.cache.as_mut() {
                row.row.push_str(bad);
            }
        }
        let data = &mut results.dataset;
        (data.name, data.kind, data.remarks) = (bad.into(), bad.into(), vec![bad.into()]);
        (results.started, results.machine.cpu) = (bad.into(), bad.into());
        if let Some(workload) = results.workload.as_mut() {
            workload.name = bad.into();
        }
        let results = derived(results);
        let page = html(&results);
        assert_eq!(page.matches("<script").count(), 2, "{}: its data and its own", results.bench);
        assert_eq!(page.matches("</script").count(), 2, "{}", results.bench);
        assert!(!page.contains("<img"), "{}", results.bench);
        assert_eq!(page.matches("<h1>").count(), 1);
    }
}

/// A table of bars is a table for who does not see it: heads with scopes, roles that stay when rows become
/// blocks, and no figure that only a bar tells.
#[test]
fn tables_of_bars_can_be_read_aloud() {
    for results in all() {
        let page = html(&results);
        for table in pieces(&page, "<table", "</table>") {
            assert!(table.contains("<caption"), "{table}");
            let heads = table.matches("<th ").count();
            assert_eq!(table.matches("<th scope=\"").count(), heads, "{table}");
            assert!(heads > 1 && !table.contains("<th>"), "{table}");
        }
        let bars = page.matches("class=\"bar\"").count();
        assert_eq!(
            page.matches("class=\"bar\" aria-hidden=\"true\"").count()
                + page.matches("aria-hidden=\"true\"><span class=\"bar\">").count(),
            bars
        );
        for matrix in pieces(&page, "<table class=\"matrix", "</table>") {
            let of = |what: &str| matrix.matches(what).count();
            assert_eq!(of("<td "), of("role=\"cell\""), "{matrix}");
            assert_eq!(of("<tr "), of("role=\"row\""), "{matrix}");
            // Each cell says something.
            for cell in pieces(matrix, "<td role=\"cell\"", "</td>").skip(1) {
                let said = text(&format!("<td{cell}"));
                assert!(!said.is_empty(), "{cell}");
            }
        }
    }
}
