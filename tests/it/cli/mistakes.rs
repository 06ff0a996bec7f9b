//! Slips of whoever types a command: what would be lost or wrong without a word is said.

use super::Desk;

#[test]
fn a_record_that_is_not_there_is_said() {
    let desk = Desk::with_catalogue();
    let shown = desk.run("show a.mrc 121");
    assert_eq!((shown.status, shown.text()), (Some(1), ""), "{shown:?}");
    assert!(shown.err.contains("a.mrc: no record 121; it has 120"), "{}", shown.err);
    // A range that begins within the file ends with it.
    assert_eq!(desk.run("show a.mrc 120-").status, Some(0));
}

#[test]
fn a_copy_into_memory_says_that_it_is_lost() {
    let desk = Desk::new();
    desk.write("a.json", "{\"a\":1}\n");
    for target in ["memory:", "memory:x", "sqlite:"] {
        let copied = desk.run(&format!("copy a.json {target}"));
        assert!(copied.err.contains("in the memory of this command"), "{target}: {}", copied.err);
    }
    assert!(!desk.run("copy a.json sqlite:a.db").err.contains("memory"));
}

#[test]
fn a_copy_whose_records_are_all_rejected_makes_no_database() {
    let desk = Desk::new();
    desk.write("a.json", "{\"a\":1}\n{\"a\":2}\n");
    desk.write("none.json", "");
    for layout in ["document", "columns", "blob"] {
        let copied = desk.run(&format!("copy a.json sqlite:a.db --key b --layout {layout}"));
        assert_eq!(copied.status, Some(1), "{layout}: {}", copied.err);
        assert!(!desk.path().join("a.db").exists(), "{layout}");
    }
    // A copy of nothing is a table without records.
    assert_eq!(desk.run("copy none.json sqlite:none.db").status, Some(0));
    assert_eq!(desk.run("each sqlite:none.db").status, Some(0));
}

#[test]
fn a_mistyped_field_is_named_with_the_nearest() {
    let desk = Desk::new();
    desk.write("a.json", "{\"name\":\"Bo\"}\n");
    desk.run("copy a.json sqlite:a.db").well();
    for line in ["copy a.json o.json --where nmae=Bo", "each sqlite:a.db --where nmae=Bo"] {
        let ran = desk.run(line);
        assert!(ran.err.contains("has no field nmae; did you mean name?"), "{line}: {}", ran.err);
    }
}

#[test]
fn results_that_cannot_be_written_are_found_before_the_run() {
    let desk = Desk::with_catalogue();
    let ran = desk.run("bench formats a.mrc --out none/x.json --rounds 1 --budget 1");
    assert_eq!((ran.status, ran.text()), (Some(3), ""), "{}", ran.err);
    assert!(ran.err.contains("none/x.json"), "{}", ran.err);
}
