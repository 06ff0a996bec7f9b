//! Screens of every kind of results, whatever is wrong with them, fit; what they say, the verdicts allow.

use std::sync::LazyLock;

use super::{
    super::tests::{
        fixtures::{cache, objects},
        formats,
        samples::stores,
        tenants::tenants,
    },
    *,
};
use steelyard_results::{Contender, FEWEST, Proof, derive::derive, schedule::Stopped};

const PLAIN: Look = Look { width: USUAL, styled: false, kept: true };

/// A run of each bench.
static RUNS: LazyLock<Vec<Results>> = LazyLock::new(|| {
    let mut runs = vec![
        formats(),
        objects(),
        stores(),
        cache(),
        tenants(&["sqlite"]),
        tenants(&["sqlite", "postgres", "mariadb"]),
    ];
    runs.iter_mut().for_each(derive);
    runs
});

/// Something that may be wrong with a run.
type Bend = (&'static str, fn(&mut Results), Derived);

/// Whether it changes what is derived from the rounds.
#[derive(PartialEq)]
enum Derived {
    Anew,
    Kept,
}
use Derived::{Anew, Kept};

const BENT: [Bend; 12] = [
    ("as it is", |_| {}, Kept),
    ("debug build", |r| drop(r.software.insert("opt-level".into(), "0".into())), Kept),
    ("broken off", |r| r.stopped = None, Kept),
    ("interrupted", |r| r.stopped = Some(Stopped::Interrupted), Kept),
    ("noisy", |r| r.probes.iter_mut().for_each(|p| p.steal = Some(0.5)), Anew),
    (
        "few rounds",
        |r| {
            r.cells.iter_mut().for_each(|c| c.rounds.retain(|round| round.start < 1));
        },
        Anew,
    ),
    ("nothing measured", |r| r.cells.iter_mut().for_each(|c| c.rounds.clear()), Anew),
    (
        "lossy",
        |r| {
            let lossy = Proof { records: 9, of: 9, equal: 1, ..Proof::default() };
            r.competitors.iter_mut().for_each(|c| c.proof = Some(lossy.clone()));
        },
        Kept,
    ),
    (
        "refused",
        |r| {
            let why = "no free connection within 5 s ".repeat(20);
            r.competitors.iter_mut().for_each(|c| c.refused = Some(why.clone()));
        },
        Kept,
    ),
    ("wide names", |r| rename(r, &"\u{56f3}\u{66f8}\u{9928}".repeat(30)), Kept),
    ("long names", |r| rename(r, &"a-very-long-name?with=options&".repeat(10)), Kept),
    (
        "many",
        |r| {
            let first = r.competitors[0].clone();
            for n in 0..100 {
                r.competitors.push(Contender { name: format!("more-{n}"), ..first.clone() });
            }
        },
        Kept,
    ),
];

/// Gives everybody another name, and the dataset too.
fn rename(results: &mut Results, by: &str) {
    for c in &mut results.competitors {
        for cell in results.cells.iter_mut().filter(|cell| cell.competitor == c.name) {
            cell.competitor += by;
        }
        if results.baseline == c.name {
            results.baseline += by;
        }
        c.name += by;
    }
    results.dataset.name += by;
}

#[test]
fn every_screen_fits() {
    for (what, bend, derived) in BENT {
        let mut runs = RUNS.clone();
        for run in &mut runs {
            bend(run);
            if derived == Anew {
                derive(run);
            }
        }
        let tour = [runs[0].clone(), runs[2].clone()];
        let alone = runs.iter().map(std::slice::from_ref);
        for shown in alone.chain([&tour[..]]) {
            for width in [0, 40, 47, 60, 80, 133, 400] {
                let text = screen(shown, Look { width, ..PLAIN });
                let wide = width.max(NARROWEST);
                let bench = &shown[0].bench;
                assert!(text.lines().count() <= LINES, "{what}, {bench}, {width}:\n{text}");
                for line in text.lines() {
                    assert!(lines::columns(line) <= wide, "{what}, {bench}, {width}: {line}");
                }
                assert!(!text.contains('\x1b'), "{what}, {bench}: codes of a terminal");
            }
        }
    }
}

#[test]
fn nothing_is_best_where_nothing_is_ranked() {
    for mut run in RUNS.clone() {
        run.cells.iter_mut().for_each(|c| c.rounds.retain(|r| (r.start as usize) < FEWEST - 1));
        // Sizes are what they are.
        run.competitors.iter_mut().for_each(|c| c.sizes.clear());
        derive(&mut run);
        let text = screen(std::slice::from_ref(&run), PLAIN);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(!words.contains(&"best") && !text.contains("fastest"), "{}:\n{text}", run.bench);
        assert!(text.contains("Nothing is ranked"), "{text}");
    }
}

#[test]
fn bold_and_dim_only_where_they_show() {
    let styled = screen(&RUNS[..1], Look { styled: true, ..PLAIN });
    assert!(styled.contains("\x1b[1mANSWER  \x1b[0m"), "{styled}");
    let bare = styled.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "");
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&bare), trimmed(&screen(&RUNS[..1], PLAIN)));
}

#[test]
fn screens_as_people_read_them() {
    let of = |run: &Results| screen(std::slice::from_ref(run), PLAIN);
    insta::assert_snapshot!("screen-formats", of(&RUNS[0]));
    insta::assert_snapshot!("screen-objects", of(&RUNS[1]));
    insta::assert_snapshot!("screen-stores", of(&RUNS[2]));
    insta::assert_snapshot!("screen-cache", of(&RUNS[3]));
    insta::assert_snapshot!("screen-tenants", of(&RUNS[4]));
    insta::assert_snapshot!("screen-tenants-three-stores", of(&RUNS[5]));
    let narrow = |run: &Results| screen(std::slice::from_ref(run), Look { width: 40, ..PLAIN });
    insta::assert_snapshot!("screen-formats-narrow", narrow(&RUNS[0]));
    insta::assert_snapshot!("screen-stores-narrow", narrow(&RUNS[2]));
    insta::assert_snapshot!("screen-tenants-narrow", narrow(&RUNS[4]));
    insta::assert_snapshot!("screen-tour", screen(&[RUNS[0].clone(), RUNS[2].clone()], PLAIN));
}
