//! `steelyard report NEW OLD`: what it prints, and when it fails a build.

use serde_json::Value;

use super::Desk;

/// A desk with a small run, `new.json`, and the same when every json window took `tenths` tenths of
/// the time.
fn desk(tenths: u64) -> Desk {
    let desk = Desk::new();
    let text = include_str!("../../../docs/results/formats.json");
    let mut run: Value = serde_json::from_str(text).unwrap();
    let kept = |v: &Value, what: &str| ["json", "marc21"].contains(&v[what].as_str().unwrap());
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

#[test]
fn a_slowdown_fails_a_build_that_asks_for_it() {
    let desk = desk(8);
    let ran = desk.run("report new.json old.json").well();
    assert!(ran.text().contains("2 are slower: json "), "{}", ran.text());
    let ran = desk.run("report new.json old.json --fail-on-regression 5%");
    assert_eq!(ran.status, Some(1));
    assert_eq!(ran.err.matches("became slower by more than 5 %").count(), 2, "{}", ran.err);
    assert!(ran.text().contains("2 are slower: json "), "the report is printed all the same");
    // Not beyond the limit, and not slower at all.
    desk.run("report new.json old.json --fail-on-regression 40").well();
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
    assert_eq!(ran.status, Some(1));
    assert_eq!(ran.err, "nothing can be compared with the run of 2020-01-01T00:00:00Z\n");
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
