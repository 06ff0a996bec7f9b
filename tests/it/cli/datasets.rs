//! The built-in datasets: the same from the same seed, and through the formats that keep them.

use serde_json::Value;

use super::Desk;

const DATASETS: [&str; 3] = ["users", "people", "objects"];

#[test]
fn a_seed_says_all() {
    let desk = Desk::new();
    for dataset in DATASETS.into_iter().chain(["catalogue"]) {
        let make = |rest: &str| desk.run(&format!("generate {dataset} -n 40 {rest}")).well().out;
        let first = make("--seed 5");
        assert_eq!(make("--seed 5"), first, "{dataset}");
        // Users are always the same ones.
        assert_eq!(make("--seed 6") == first, dataset == "users", "{dataset}");
        let fewer = desk.run(&format!("generate {dataset} -n 10 --seed 5")).well().out;
        assert!(first.starts_with(&fewer), "{dataset}: fewer records are the first of more");
    }
    let file = desk.run("generate people b.msgpack.gz -n 7").well();
    assert_eq!((file.out.len(), file.err.as_str()), (0, "7 records of people in msgpack\n"));
    assert_eq!(desk.run("generate people b.msgpack.gz -n 7 --quiet").well().err, "");
    let small = desk.run("generate catalogue -n 200 --mean-bytes 1000 --no-oddities").well().out;
    assert!((150_000..250_000).contains(&small.len()), "{}", small.len());
}

#[test]
fn datasets_come_back_from_the_formats() {
    let desk = Desk::new();
    for dataset in DATASETS {
        desk.run(&format!("generate {dataset} a.json -n 60")).well();
        let whole = desk.read("a.json");
        let values: Vec<Value> =
            whole.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect();
        assert_eq!(values.len(), 60);
        for format in ["json", "sonic", "msgpack", "cbor", "bson", "marshal", "pickle", "csv"] {
            // Rows have no lists.
            let row = values
                .iter()
                .all(|v| v.as_object().unwrap().values().all(|v| !v.is_array() && !v.is_object()));
            let there = desk.run(&format!("copy a.json b --to {format}"));
            if format == "csv" && !row {
                assert_eq!(there.status, Some(1), "{dataset}");
                assert!(there.err.contains("0 written, 60 rejected"), "{}", there.err);
                continue;
            }
            assert_eq!(there.status, Some(0), "{dataset} {format}: {}", there.err);
            desk.run(&format!("copy b c.json --from {format}")).well();
            let back = desk.read("c.json");
            if format == "csv" {
                // All is text there.
                let text = |v: &Value| match v {
                    Value::String(s) => s.clone(),
                    other => other.to_string(),
                };
                let lines = back.split(|b| *b == b'\n').filter(|l| !l.is_empty());
                for (line, value) in lines.zip(&values) {
                    let row: serde_json::Map<String, Value> = serde_json::from_slice(line).unwrap();
                    let value = value.as_object().unwrap();
                    assert!(
                        row.iter()
                            .map(|(k, v)| (k, text(v)))
                            .eq(value.iter().map(|(k, v)| (k, text(v))))
                    );
                }
                continue;
            }
            assert!(back == whole, "{dataset} through {format}");
        }
    }
}

#[test]
fn documents_are_chosen_by_their_fields() {
    let desk = Desk::new();
    desk.run("generate people a.json -n 200").well();
    let read = |args: &str| -> Vec<Value> {
        let ran = desk.run(args).well();
        ran.text().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    };
    let all = read("copy a.json - --to json -q");
    let old = all.iter().filter(|p| p["age"].as_u64() >= Some(70)).count();
    assert!(old > 0 && old < 200);
    let found = read("copy a.json - --to json -q --where age>=70 --fields name,age");
    assert_eq!(found.len(), old);
    for person in &found {
        assert!(person["age"].as_u64() >= Some(70));
        assert_eq!(person.as_object().unwrap().len(), 2);
    }
}
