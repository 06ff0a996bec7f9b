//! `steelyard report NEW OLD`: what it prints, and when it fails a build.

use serde_json::Value;

use super::Desk;

/// A desk with a small run, `new.json`, and the same when every json window took `tenths` tenths of
/// the time.
fn desk(tenths: u64) -> Desk {
    let desk = Desk::new();
    let text = include_str!("../../../docs/results/formats.json");
    let mut run: Value = serde_json::from_str(text).unwrap();
    let kept =
        |v: &Value, what: &str| ["json", "marc21", "null"].contains(&v[what].as_str().unwrap());
    run["phases"].as_array_mut().unwrap().truncate(2);
    run["contrasts"] = Value::Array(Vec::new());
    let phases = [run["phases"][0]["id"].clone(), run["phases"][1]["id"].clone()];
    let cells = run["cells"].as_array_mut().unwrap();
    cells.retain(|c| kept(c, "competitor") && phases.contains(&c["phase"]));
    run["competitors"].as_array_mut().unwrap().retain(|c| kept(c, "name"));
    desk.write("new.json", run.to_string());
    run["started"] = "2020-01-01T00:00:00Z".into();
    for cell in run["cells"].as_array_mut().unwrap() {
        if cell["competitor"] == "json" {
            for round in cell["rounds"].as_array_mut().unwrap() {
                for time in ["ns", "user_ns", "system_ns"] {
                    round[time] = (round[time].as_u64().unwrap() * tenths / 10).into();
                }
            }
        }
    }
    desk.write("old.json", run.to_string());
    run["machine"]["cpu"] = "another".into();
    desk.write("elsewhere.json", run.to_string());
    desk
}

/// The same with a change to the older run.
fn changed(tenths: u64, change: impl Fn(&mut Value)) -> Desk {
    let desk = desk(tenths);
    let mut run: Value = serde_json::from_slice(&desk.read("old.json")).unwrap();
    change(&mut run);
    desk.write("old.json", run.to_string());
    desk
}

#[test]
fn a_slowdown_fails_a_build_that_asks_for_it() {
    let desk = desk(8);
    let ran = desk.run("report new.json old.json").well();
    assert!(ran.text().contains("2 are slower: json "), "{}", ran.text());
    let ran = desk.run("report new.json old.json --fail-on-regression 5%");
    assert_eq!(ran.status, Some(1));
    assert_eq!(ran.err.matches("became slower by more than 5 %").count(), 2, "{}", ran.err);
    assert!(ran.text().contains("2 are slower: json "), "the report is printed all the same");
    // What it could see, of each comparison: less than these rounds vary is not seen.
    assert_eq!(ran.err.matches("could not have seen less than ").count(), 4, "{}", ran.err);
    // Not beyond the limit, and not slower at all.
    let ran = desk.run("report new.json old.json --fail-on-regression 40").well();
    assert!(ran.err.contains("it would have seen "), "{}", ran.err);
    desk.run("report old.json new.json --fail-on-regression 5%").well();
    desk.run("report new.json new.json --fail-on-regression 0%").well();
    // Any of several.
    let ran = desk.run("report new.json new.json old.json --fail-on-regression 5%");
    assert_eq!(ran.status, Some(1));
}

#[test]
fn runs_that_cannot_be_compared_pass_for_nothing() {
    let desk = desk(8);
    let ran = desk.run("report new.json elsewhere.json").well();
    assert!(ran.text().contains("not comparable"), "{}", ran.text());
    let ran = desk.run("report new.json elsewhere.json --fail-on-regression 5%");
    assert_eq!(ran.status, Some(4));
    let begin =
        "not comparable with the run of 2020-01-01 00:00 UTC: the runs differ in processor (";
    assert!(ran.err.starts_with(begin), "{}", ran.err);
    // A regression beside it is still one.
    let ran = desk.run("report new.json elsewhere.json old.json --fail-on-regression 5%");
    assert_eq!(ran.status, Some(1));
}

/// What it printed, however its lines are broken.
fn flat(ran: &super::Ran) -> String {
    ran.text().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn runs_whose_controls_differ_are_not_compared() {
    // The null competitor took 1.5 times as long in one phase.
    let desk = changed(8, |run| {
        let phase = run["phases"][0]["id"].clone();
        for cell in run["cells"].as_array_mut().unwrap() {
            if cell["competitor"] == "null" && cell["phase"] == phase {
                for round in cell["rounds"].as_array_mut().unwrap() {
                    for time in ["ns", "user_ns", "system_ns"] {
                        round[time] = (round[time].as_u64().unwrap() * 3 / 2).into();
                    }
                }
            }
        }
    });
    let ran = desk.run("report new.json old.json").well();
    let said = "the control (null competitor in decode) differed by 33 %";
    assert!(flat(&ran).contains(said), "{}", ran.text());
    let ran = desk.run("report old.json new.json --fail-on-regression 5%");
    assert_eq!(ran.status, Some(4), "{}", ran.err);
    assert!(ran.err.starts_with("2 of 4 not comparable with the run of "), "{}", ran.err);

    // The whole machine was slower.
    let desk = changed(10, |run| {
        for probe in run["probes"].as_array_mut().unwrap() {
            for time in ["spin_ns", "spin_least_ns"] {
                probe[time] = (probe[time].as_u64().unwrap() * 12 / 10).into();
            }
        }
    });
    let ran = desk.run("report new.json old.json --fail-on-regression 5%");
    assert_eq!(ran.status, Some(4), "{}", ran.err);
    assert!(flat(&ran).contains("(a loop of arithmetic) differed by 17 %"), "{}", ran.text());
    assert!(flat(&ran).contains("--against OLD_BINARY"), "{}", ran.text());
}

#[test]
fn a_noisy_run_is_not_compared() {
    let desk = changed(8, |run| {
        for probe in run["probes"].as_array_mut().unwrap() {
            probe["others"] = 0.4.into();
        }
    });
    let ran = desk.run("report new.json old.json --fail-on-regression 5%");
    assert_eq!(ran.status, Some(4), "{}", ran.err);
    let said = "not comparable: something else used the machine during the older run.";
    assert!(flat(&ran).contains(said), "{}", ran.text());
}

/// Another build that takes its turns: this one, by a script.
fn against(script: &str) -> Desk {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let version = "[ \"$1\" = --version ] && { echo steelyard 0.0; exit; }";
    desk.write("old", format!("#!/bin/sh\n{version}\n{script}\n"));
    let path = desk.path().join("old");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    desk
}

const OBJECTS: &str = "bench objects --counts 20 --formats json,cbor --wraps base64";

#[test]
fn two_builds_take_turns() {
    let desk = against(&format!("echo \"$*\" >> calls; exec {} \"$@\"", super::STEELYARD));
    let args = format!("{OBJECTS} --against ./old --rounds 3 --budget 300 --seed 5 --out r.json");
    let ran = desk.run(&args).well();
    assert!(ran.text().contains("in turns"), "{}", ran.text());
    let calls = String::from_utf8(desk.read("calls")).unwrap();
    let begin = format!("{OBJECTS} --rounds 1 ");
    assert!(calls.lines().count() == 3 && calls.lines().all(|c| c.starts_with(&begin)), "{calls}");
    // The rounds of both are kept, and give the same report again.
    assert_eq!(desk.names(), ["calls", "old", "r.json", "r.old.json"]);
    let again = desk.run("report r.json r.old.json").well();
    assert_eq!(again.text(), ran.text());
}

#[test]
fn a_build_that_cannot_take_turns_is_named() {
    let desk = against("echo 'error: unexpected argument' >&2; exit 2");
    let ran = desk.run(&format!("{OBJECTS} --against ./old --rounds 2 --budget 4"));
    assert_eq!(ran.status, Some(3), "{}", ran.err);
    assert!(ran.err.contains("/old: it ended with status 2 in round 1: error: "), "{}", ran.err);
    for (args, answer) in [
        ("bench --against ./old".to_owned(), "needs a bench"),
        (format!("{OBJECTS} --fail-on-regression 5%"), "--against"),
        ("bench formats - --against ./old".to_owned(), "standard input"),
    ] {
        let ran = desk.run_on(&args, b"{\"a\":1}\n");
        assert_eq!(ran.status, Some(2), "{args}: {}", ran.err);
        assert!(ran.err.contains(answer), "{args}: {}", ran.err);
    }
}

#[test]
fn every_form_has_its_comparison() {
    let desk = desk(8);
    for (form, begin) in [
        ("markdown", "# formats: "),
        ("csv", "bench,competitor,phase,"),
        ("svg", "<svg "),
        ("html", "<!doctype html>"),
        ("json", "["),
    ] {
        let ran = desk.run(&format!("report new.json old.json --format {form}")).well();
        assert!(ran.text().starts_with(begin), "{form}: {}", ran.text());
    }
    let ran = desk.run("report new.json --format html").well();
    assert!(ran.text().ends_with("</html>\n"));
}

#[test]
fn what_is_asked_wrongly_is_answered() {
    let desk = desk(8);
    for (args, answer) in [
        ("report new.json --fail-on-regression 5%", "OLD"),
        ("report new.json old.json --fail-on-regression much", "no percentage"),
        ("report new.json old.json --fail-on-regression=-5", "no percentage"),
    ] {
        let ran = desk.run(args);
        assert_eq!(ran.status, Some(2), "{args}");
        assert!(ran.err.contains(answer), "{args}: {}", ran.err);
    }
    let other = String::from_utf8(desk.read("old.json")).unwrap();
    let other = other.replace("\"bench\":\"formats\"", "\"bench\":\"objects\"");
    desk.write("objects.json", other);
    let ran = desk.run("report new.json objects.json");
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains("objects.json: "), "{}", ran.err);
}
