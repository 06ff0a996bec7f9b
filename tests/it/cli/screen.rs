//! What a bench prints by default fits on one screen, and the full report is kept.

use std::os::unix::fs::PermissionsExt;

use super::{Desk, Ran, ran};

/// Runs the program with a cache folder of the desk's own.
fn run(desk: &Desk, args: &str) -> Ran {
    let mut command = desk.command(args.split_whitespace());
    command.env("STEELYARD_CACHE", desk.path().join("cache"));
    ran(command.output().unwrap())
}

/// What it prints where all is well.
#[track_caller]
fn said(desk: &Desk, args: &str) -> String {
    run(desk, args).well().text().to_owned()
}

#[test]
fn a_bench_answers_on_one_screen_and_report_has_the_rest() {
    let desk = Desk::with_catalogue();
    let early = run(&desk, "report");
    assert_eq!(early.status, Some(3), "{}", early.err);
    assert!(early.err.contains("no results are kept yet"), "{}", early.err);

    let bench = "bench formats a.mrc --formats json,marc21 --rounds 1 --no-compressed --out r.json";
    let screen = said(&desk, bench);
    assert!(screen.lines().count() <= 45, "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    for part in ["Formats: ", "ANSWER  Nothing is ranked", "steelyard report"] {
        assert!(screen.contains(part), "no {part:?}: {screen}");
    }

    let full = said(&desk, "report");
    assert!(full.lines().count() > 20 && !full.contains("ANSWER"), "{full}");
    assert_eq!(full, said(&desk, "report r.json"));
    // Only the user who ran it can read it.
    let mode = std::fs::metadata(desk.path().join("cache")).unwrap().permissions().mode();
    assert_eq!(mode & 0o77, 0, "{mode:o}");

    // A form that is asked for is the whole report, and --full is that as text.
    let forms = said(&desk, &format!("{bench} --full"));
    assert!(forms.lines().count() > 20 && !forms.contains("ANSWER"), "{forms}");
    let both = run(&desk, &format!("{bench} --full --format text"));
    assert_eq!(both.status, Some(2), "{}", both.err);
}

#[test]
fn runs_that_belong_together_are_one_file() {
    let desk = Desk::with_catalogue();
    said(&desk, "bench formats a.mrc --formats json --rounds 1 --no-compressed --out a.json");
    let one = String::from_utf8(desk.read("a.json")).unwrap();
    desk.write("both.json", format!("[{one},{one}]"));
    let single = said(&desk, "report a.json");
    let both = said(&desk, "report both.json");
    assert!(both.lines().count() > single.lines().count(), "{both}");
    for form in ["markdown", "html", "svg", "csv"] {
        let said = said(&desk, &format!("report both.json --format {form}"));
        assert!(!said.is_empty(), "{form}");
    }
    let heads = said(&desk, "report both.json --format csv");
    assert_eq!(heads.matches("bench,competitor,phase").count(), 1, "{heads}");
    // They are compared one by one.
    let compared = run(&desk, "report both.json a.json");
    assert_eq!(compared.status, Some(3), "{}", compared.err);
    assert!(compared.err.contains("2 runs"), "{}", compared.err);
}
