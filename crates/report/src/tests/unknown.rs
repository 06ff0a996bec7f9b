//! Tests that a page omits what is not known: figures that do not scale, processor time of servers that are not ours,
//! ranks where there are none.

use super::*;
use steelyard_results::{Disk, IndexCost};

fn noisy(mut results: Results, noisy: bool) -> Results {
    results.probes.iter_mut().for_each(|probe| probe.steal = noisy.then_some(0.2));
    derive(&mut results);
    assert_eq!(results.noise().1, noisy, "{}", results.bench);
    results
}

fn section<'a>(page: &'a page::Page, title: &str) -> &'a page::Section {
    let found = page.sections.iter().find(|section| section.title == title);
    found.unwrap_or_else(|| panic!("{}: no {title:?}", page.title))
}

/// The cells of a column, those of a row with `name` in it only; none where there is no such column.
fn column(section: &page::Section, head: &str, name: &str) -> Vec<String> {
    let table = &section.table;
    let Some(at) = table.columns.iter().position(|c| c.head == head) else { return Vec::new() };
    let rows = table.rows.iter().filter(|row| row.iter().any(|cell| cell == name));
    rows.map(|row| row[at].clone()).collect()
}

/// The same store with twice the records takes as much for a million, though its logs and caches are
/// as large for any number.
#[test]
fn what_is_fixed_is_not_scaled_up_to_a_million_records() {
    let of = |records: u64| {
        let mut results = samples::stores();
        let kept = results.competitors[1].store.as_mut().unwrap();
        kept.disk = (0..12)
            .map(|start| Disk {
                start,
                records,
                data: records * 400,
                logs: 50_331_648,
                memory_empty: 60_000_000,
                memory: 75_000_000 + records * 100,
            })
            .collect();
        results.competitors.retain(|c| c.name == "postgres");
        results.baseline = "postgres".into();
        derive(&mut results);
        let page = page(&results);
        let space = section(&page, "Disk and memory");
        assert!(space.about.contains("from 10,000 records on"), "{}", space.about);
        assert!(space.about.contains("from 100,000 records on"), "{}", space.about);
        let of = |head: &str| column(space, head, "postgres").pop();
        (of("data MB/million"), of("memory MB/million"))
    };
    assert_eq!(of(9_999), (None, None));
    assert_eq!(of(10_000), (Some("400".into()), None));
    assert_eq!(of(20_000), of(10_000));
    assert_eq!(of(200_000), (Some("400".into()), Some("175".into())));
}

/// Of three, two cannot be told apart and the third is slower: it is named, too.
#[test]
fn who_is_slower_than_those_that_cannot_be_told_apart_is_named() {
    let mut results = samples::stores();
    let mut random = Random::new(8);
    for cell in results.cells.iter_mut().filter(|c| c.phase == "query") {
        let ns = if cell.competitor == "sqlite" { 9e9 } else { 1e8 };
        for round in &mut cell.rounds {
            round.ns = (ns * (0.3 * random.normal()).exp()) as u64;
            (round.user_ns, round.system_ns) = (round.ns / 3, 0);
            round.server = round.server.map(|s| ServerUse { user_ns: 0, system_ns: 0, ..s });
        }
    }
    for (is_noisy, wanted) in [(false, "; slower: sqlite "), (true, "; more: sqlite ")] {
        let page = text(&noisy(results.clone(), is_noisy));
        let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, unclear) = flat.split_once("cannot tell: query (").expect("an answer");
        let unclear = &unclear[..=unclear.find(')').unwrap()];
        assert!(unclear.contains("mariadb") && unclear.contains(wanted), "{unclear}");
        assert!(unclear.ends_with(" times)"), "how much slower: {unclear}");
    }
}

/// Where times are elapsed and ranks are of processor time, both are said.
#[test]
fn a_legend_says_of_which_time_a_first_is() {
    for results in [samples::stores(), objects(), cache()] {
        for is_noisy in [false, true] {
            let page = page(&noisy(results.clone(), is_noisy));
            let fastest = page.lead.iter().any(|s| s.contains("is the fastest"));
            assert!(!(is_noisy && fastest), "{:?}", page.lead);
            let firsts = page.sections.iter().filter(|s| s.table.shows(" 1st"));
            let mut seen = 0;
            for section in firsts {
                seen += 1;
                let legend = section.footnotes.iter().find(|f| f.starts_with("1st:")).unwrap();
                let by_processor = legend.contains("take less processor time");
                assert_eq!(by_processor, is_noisy, "{}: {legend}", page.title);
                assert_eq!(legend.contains("be faster"), !is_noisy, "{}: {legend}", page.title);
                let elapsed = section.about.contains("of elapsed time");
                assert_eq!(elapsed, is_noisy, "{}: {}", page.title, section.about);
            }
            assert!(seen > 0, "{}: nobody is first", page.title);
            if let Some(rank) = page.notes.iter().find(|n| n.starts_with("rank:")) {
                assert_eq!(rank.contains("take less processor time"), is_noisy, "{rank}");
            }
        }
    }
}

/// A server that is not ours has no processor time, and so no part in what is said of that.
#[test]
fn a_server_by_url_has_no_processor_time() {
    let mut results = samples::stores();
    let kept = results.competitors[2].store.as_mut().unwrap();
    (kept.server, kept.connection) = (None, "TCP".into());
    for (phase, kind) in results.phases.iter_mut().zip(["load", "find", "get", "delete"]) {
        phase.kind = kind.into();
    }
    for cell in results.cells.iter_mut().filter(|c| c.competitor == "mariadb") {
        cell.rounds.iter_mut().for_each(|round| round.server = None);
    }
    for (rounds, is_noisy) in [(12, false), (12, true), (3, false), (3, true)] {
        let mut results = results.clone();
        results.cells.iter_mut().for_each(|cell| cell.rounds.truncate(rounds));
        let results = noisy(results, is_noisy);
        let page = page(&results);
        let cost = section(&page, "What a million operations cost");
        for head in ["server CPU s", "CPU s", "written MB"] {
            let all = column(cost, head, "mariadb");
            assert!(all.len() > 2 && all.iter().all(|text| text == "-"), "{head}: {all:?}");
            let others = column(cost, head, "postgres");
            // Written is told of 1,000 operations or more only, and few queries were asked.
            let few = usize::from(head == "written MB");
            let unknown = others.iter().filter(|text| **text == "-").count();
            assert_eq!(unknown, few, "{head}: {others:?}");
        }
        assert!(column(cost, "client CPU s", "mariadb").iter().all(|text| text != "-"));
        // No answer, rank or ratio rests on the client's part alone.
        let judged = |cell: &Cell| {
            let asked = matches!(&*cell.phase, "create" | "query" | "get" | "delete");
            asked.then(|| cell.summary.as_ref().unwrap().clone())
        };
        for summary in results.cells.iter().filter(|c| c.competitor == "mariadb").filter_map(judged)
        {
            let any = summary.group > 0 || summary.versus.is_some();
            assert_eq!(any && rounds > 4, !is_noisy && rounds > 4, "{summary:?}");
            assert!(!is_noisy || !any, "{summary:?}");
        }
        let family = results.family.as_ref().unwrap();
        let named = family.pairs.iter().any(|p| p.of.0 == "mariadb" || p.to.0 == "mariadb");
        assert_eq!(named, !is_noisy);
        let (told, rest): (Vec<&String>, Vec<&String>) =
            page.lead.iter().partition(|said| said.contains("µs of CPU"));
        assert_eq!(told.is_empty(), !is_noisy, "{told:?}");
        assert!(
            told.iter().all(|said| !said.replace("mariadb?", "").contains("mariadb")),
            "{told:?}"
        );
        let why = "Not compared, as the processor time of a server that is not private is not known: \
                   mariadb.";
        assert_eq!(rest.iter().any(|said| *said == why), is_noisy, "{rest:?}");
    }
}

/// What an index adds to a write has an interval, or says that there is none.
#[test]
fn what_an_index_adds_to_a_write_has_an_interval() {
    let of = |starts: u32| {
        let mut results = samples::stores();
        results.phases.truncate(1);
        results.phases[0].kind = "index".into();
        results.cells.retain(|cell| cell.phase == "create");
        for cell in &mut results.cells {
            cell.rounds.truncate(starts as usize);
            for (n, round) in cell.rounds.iter_mut().enumerate() {
                let with_ns = [800_000, 830_000, 790_000, 860_000, 820_000][n % 5];
                let cost = IndexCost { bytes: None, writes: 9, without_ns: 1_000_000, with_ns };
                round.index = Some(cost);
            }
        }
        derive(&mut results);
        results.family.as_mut().unwrap().autocorrelation = 0.0;
        let page = page(&results);
        let of_sqlite = column(section(&page, "What an index costs"), "a write takes", "sqlite");
        of_sqlite.into_iter().next().unwrap()
    };
    // ln of the five: mean -0.1994, error 0.0149; Student's t with 4 degrees of freedom is 2.776.
    assert_eq!(of(5), "0.82 ±0.04 times");
    assert!(of(4).ends_with("±? times"), "{}", of(4));
    assert!(!of(12).contains(number::UNKNOWN) && of(12).contains('±'), "{}", of(12));
}

/// Ranks are explained where there are any, and nowhere else.
#[test]
fn what_is_said_of_ranks_stands_where_there_are_ranks() {
    for results in [formats(), objects(), samples::stores(), cache(), tenants(&["postgres"])] {
        for rounds in [1, 3, usize::MAX] {
            for is_noisy in [false, true] {
                let mut results = results.clone();
                results.cells.iter_mut().for_each(|cell| cell.rounds.truncate(rounds));
                let results = noisy(results, is_noisy);
                let page = page(&results);
                let ranks = page.sections.iter().any(|section| {
                    let at = section.table.columns.iter().position(|c| c.head == "rank");
                    let shows = |at| section.table.rows.iter().any(|row| row[at] != number::NONE);
                    at.is_some_and(shows) || section.table.shows(" 1st")
                });
                let about = format!("{}, {rounds} rounds, noisy: {is_noisy}", page.title);
                let legend = page.notes.iter().any(|note| note.starts_with("rank:"));
                let tells = matches!(&*results.bench, "formats" | "stores");
                assert_eq!(legend, ranks && tells, "{about}");
                let said = page.lead.iter().any(|said| said.contains("ranks, ratios and answers"));
                assert_eq!(said, ranks && is_noisy, "{about}: {:?}", page.lead);
            }
        }
    }
}

#[test]
fn one_comparison_is_one() {
    let mut results = formats();
    results.phases.truncate(1);
    results.contrasts.clear();
    results.competitors.retain(|c| ["marc21", "json"].contains(&&*c.name));
    results.cells.retain(|c| c.phase == "decode" && ["marc21", "json"].contains(&&*c.competitor));
    derive(&mut results);
    let notes = page(&results).notes.join("\n");
    assert!(notes.contains("1 comparison is decided, so that"), "{notes}");
}

/// A curve says how stores compare at each point, and explains a knee only where the rounds tell of one.
#[test]
fn a_curve_has_verdicts_and_a_knee_where_that_is_known() {
    let mut results = samples::stores();
    for (phase, at_once) in results.phases.iter_mut().zip([1, 4]) {
        (phase.kind, phase.of, phase.pace) = ("get".into(), Some("reads".into()), None);
        (phase.size, phase.concurrency) = (Some(at_once), at_once as u32);
    }
    for is_noisy in [false, true] {
        let results = noisy(results.clone(), is_noisy);
        let page = page(&results);
        let curve = section(&page, "reads: by how many at once");
        assert_eq!(curve.about.contains("knee:"), !is_noisy, "{}", curve.about);
        let knees = curve.table.rows.iter().flatten().filter(|cell| *cell == "knee").count();
        assert_eq!(knees > 0, !is_noisy, "{:?}", curve.table.rows);
        let of = tables::share_of_baseline(&results);
        let beside = column(curve, &of, "postgres");
        assert!(beside.len() == 2 && beside.iter().all(|text| text != "-"), "{beside:?}");
    }
}
