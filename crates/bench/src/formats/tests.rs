//! The workload of formats, run on a few small records.

use super::*;
use crate::{
    marc::Record,
    record::{Document, Time, Value},
    schedule::StopRule,
};

fn quick() -> Plan {
    Plan {
        window_ns: 100_000,
        warm_up_ns: 20_000,
        resamples: 200,
        stop: StopRule { min_starts: 2, max_rounds: 4, ..StopRule::default() },
        ..Plan::default()
    }
}

fn records() -> Records {
    let record = |n: usize| {
        let mut r = Record::new();
        r.push_plain(*b"001", n.to_string().as_bytes()).unwrap();
        let title = format!("Weights and measures, volume {n} \u{e9}");
        r.push_data(*b"245", *b"10", &[(b'a', title.as_bytes())]).unwrap();
        r
    };
    Records::Marc((0..50).map(record).collect())
}

#[test]
fn marc_records_are_weighed_in_every_format_that_takes_them() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results.json");
    let records = records();
    let mut seen = 0;
    let results = run(
        &Options {
            plan: quick(),
            folder: Some(folder.path().into()),
            out: Some(out.clone()),
            formats: ["marc21", "json", "msgpack", "csv"].map(|f| Format::named(f).unwrap()).into(),
            ..Options::new(&records)
        },
        &mut |_| seen += 1,
    )
    .unwrap();
    assert_eq!(results.baseline, "marc21");
    assert!(seen > 50, "{seen}");
    // The file has the same, and nothing else is left in the folder.
    assert_eq!(save::read(&out).unwrap(), results);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    let json = results.competitor("json").unwrap();
    assert_eq!(json.proof.as_ref().unwrap().equal, 50);
    assert!(json.sizes[""] > json.sizes["gzip"]);
    let csv = results.competitor("csv").unwrap();
    assert!(csv.refused.is_some(), "{csv:?}");
    assert!(results.cell("csv", "decode").is_none());

    let (marc, json) =
        (results.cell("marc21", "decode").unwrap(), results.cell("json", "decode").unwrap());
    assert_eq!(marc.items / marc.units, 2);
    assert_eq!(marc.items / marc.units, json.items / json.units);
    assert_eq!(marc.rounds.len(), results.probes.len());
    for id in ["roundtrip", "read", "file-roundtrip", "write-gzip", "read-zstd"] {
        let s = results.cell("msgpack", id).unwrap().summary.as_ref().unwrap();
        // Four rounds are too few to rank.
        assert!(s.ns.middle > 0.0 && s.versus.is_some() && s.group == 0, "{id}: {s:?}");
    }
    assert_eq!(results.cell("json", "read").unwrap().bytes % json_file(&results), 0);
    assert!(results.contrasts.iter().all(|c| c.versus.is_some()));
    assert!(results.cell("json", "decode").unwrap().memory.unwrap().allocations.is_some());
}

fn json_file(results: &Results) -> u64 {
    // What the framing adds, a line break, is not the record's.
    results.competitor("json").unwrap().sizes[""] - 50
}

#[test]
fn documents_show_what_is_lost() {
    let document = |n: i64| {
        let moment = Time::from_unix(n, 0).unwrap();
        Document::from_iter([("n", Value::Int(n)), ("at", Value::Time(moment))])
    };
    let records = Records::Documents((0..20).map(document).collect());
    let options = Options { plan: quick(), compressed: false, ..Options::new(&records) };
    let results = run(&options, &mut |_| {}).unwrap();
    assert_eq!(results.baseline, "json");
    let proof = results.competitor("json").unwrap().proof.clone().unwrap();
    assert_eq!((proof.records, proof.equal), (20, 0));
    assert_eq!(proof.first.as_deref(), Some("record 1: at: time became text"));
    assert!(results.competitor("marc21").unwrap().refused.is_some());
    assert_eq!(results.competitor("bson").unwrap().proof.as_ref().unwrap().equal, 20);
    assert!(results.phase("read-gzip").is_none());
}

#[test]
fn the_method_can_be_tried_on_this_machine() {
    let records = records();
    let formats = vec![Format::Marc21];
    let options = Options { plan: quick(), formats, trial: true, ..Options::new(&records) };
    let results = run(&options, &mut |_| {}).unwrap();
    for id in ["decode", "write-zstd", "file-roundtrip"] {
        let cell = |name: &str| results.cell(name, id).unwrap().summary.clone().unwrap();
        assert!(cell("again").versus.is_some() && cell("slowed").versus.is_some());
    }
}

#[test]
fn what_cannot_be_done_is_said_first() {
    let none = Records::Documents(Vec::new());
    assert!(run(&Options::new(&none), &mut |_| {}).is_err());
    let records = Records::Documents(vec![Document::from_iter([("a", 1i64)])]);
    let options = Options { baseline: Some(Format::Marc21), ..Options::new(&records) };
    let error = run(&options, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("marc21 cannot be the baseline"), "{error}");
}

#[test]
fn records_that_one_format_cannot_hold_are_left_out_for_all() {
    let Records::Marc(mut list) = records() else { unreachable!() };
    // XML has no word for this character; JSON has.
    list[7].push_plain(*b"500", b"a\x02b").unwrap();
    let records = Records::Marc(list);
    let formats = ["marc21", "marcxml"].map(|f| Format::named(f).unwrap()).into();
    let options = Options { plan: quick(), formats, trial: true, ..Options::new(&records) };
    let results = run(&options, &mut |_| {}).unwrap();
    assert_eq!((results.dataset.records, results.dataset.of), (49, 50));
    assert!(
        results.dataset.remarks[0].starts_with("1 record is left out"),
        "{:?}",
        results.dataset
    );
    let xml = results.competitor("marcxml").unwrap();
    assert_eq!((xml.proof.as_ref().unwrap().equal, xml.refused.is_none()), (49, true));
    for cell in results.cells.iter().filter(|c| c.phase == "decode") {
        assert_eq!(cell.units % 49, 0, "{}", cell.competitor);
    }
}

/// Longer than files may have records: which format makes it so long is that format's trouble alone.
#[test]
fn a_format_that_cannot_put_a_record_into_a_file_stops_no_other() {
    const MAX: usize = crate::format::framing::MAX_RECORD;
    // JSON writes a line break as two bytes, MessagePack as one.
    let text = "\n".repeat(MAX / 2 + 1);
    let records = Records::Documents(vec![Document::from_iter([("t", Value::Text(text))])]);
    let formats = ["json", "msgpack"].map(|f| Format::named(f).unwrap()).into();
    let stop = StopRule { min_starts: 1, max_rounds: 1, ..StopRule::default() };
    let plan = Plan { stop, ..quick() };
    let options = Options { plan, formats, compressed: false, ..Options::new(&records) };
    let results = run(&options, &mut |_| {}).unwrap();
    let json = results.competitor("json").unwrap();
    let why = json.refused.as_deref().unwrap();
    assert_eq!(why, format!("in a file, record 1: a record of over {MAX} bytes"));
    assert_eq!(results.baseline, "msgpack");
    assert!(results.cell("json", "decode").is_none());
    assert!(results.cell("msgpack", "decode").is_some());
}
