//! `--part i/n`: the parts are the whole, whatever parts the records in the file.

use steelyard::format::{Format, Takes};

use super::Desk;

#[test]
fn parts_together_are_the_whole_for_every_framing() {
    let desk = Desk::with_catalogue();
    desk.run("generate objects o.json -n 120").well();
    desk.run("copy o.json row.json --fields id,name,created_at").well();
    for format in Format::ALL {
        let source = if format.info().takes == Takes::Rows { "row.json" } else { "a.mrc" };
        let name = format.name();
        for wrap in ["", "+base64", "+zstd"] {
            for packing in ["", ".zst"] {
                let file = format!("b{packing}");
                desk.run(&format!("copy {source} {file} --to {name}{wrap}")).well();
                let lines = |part: &str| {
                    let args = format!("copy {file} - --from {name}{wrap} --to json {part}");
                    let ran = desk.run(&args).well();
                    let lines: Vec<String> = ran.text().lines().map(str::to_owned).collect();
                    let told = format!("{} records read, {0} written\n", lines.len());
                    assert_eq!(ran.err.replace("1 record ", "1 records "), told, "{args}");
                    lines
                };
                let mut whole = lines("");
                assert_eq!(whole.len(), 120);
                let counts: &[u64] =
                    if wrap.is_empty() && packing.is_empty() { &[1, 3, 7] } else { &[3] };
                for of in counts {
                    let parts: Vec<_> =
                        (1..=*of).map(|i| lines(&format!("--part {i}/{of}"))).collect();
                    assert!(parts.iter().all(|p| p.len() < 120 || *of == 1), "{name}{wrap}");
                    let mut together = parts.concat();
                    together.sort();
                    whole.sort();
                    assert!(together == whole, "{name}{wrap}{packing} in {of} parts");
                }
            }
        }
    }
}

#[test]
fn more_parts_than_records_leave_some_empty() {
    let desk = Desk::new();
    desk.run("generate users a.json -n 3").well();
    let parts: String = (1..=20)
        .map(|i| {
            desk.run(&format!("copy a.json - --to json -q --part {i}/20")).well().text().to_owned()
        })
        .collect();
    assert_eq!(parts.as_bytes(), desk.read("a.json"));
    // A pipe cannot be cut at byte borders; every n-th record is taken.
    let bytes = desk.read("a.json");
    let mut lines: Vec<String> = (1..=2)
        .flat_map(|i| {
            let ran =
                desk.run_on(&format!("copy - - --from json --to json -q --part {i}/2"), &bytes);
            ran.well().text().lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    lines.sort_by_key(|l| bytes.windows(l.len()).position(|w| w == l.as_bytes()));
    assert_eq!(lines.join("\n") + "\n", String::from_utf8(bytes).unwrap());
}
