//! Programs that are shell scripts with results made beforehand: no time is taken.

use std::{fs, os::unix::fs::PermissionsExt};

use super::*;
use crate::{
    ErrorKind,
    results::{Contender, Phase, SCHEMA, Verdict},
    schedule::StopRule,
};

/// A folder with two programs.
struct Bench(tempfile::TempDir);

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A program that writes down how it was called, and copies the results made for its round.
    fn program(&self, name: &str, ns: impl Fn(u32) -> u64) -> PathBuf {
        for round in 0..8 {
            save::write(&round_of(ns(round)), &self.path(&format!("{name}-{}.json", 40 + round)))
                .unwrap();
        }
        self.script(
            name,
            r#"echo "$0 $*" >> "$(dirname "$0")/calls"
               while [ $# -gt 0 ]; do
                   case $1 in --seed) seed=$2;; --out) out=$2;; esac
                   shift
               done
               cp "$0-$seed.json" "$out""#,
        )
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

/// The results of a run of one round.
fn round_of(ns: u64) -> Results {
    let round = Round { ns, user_ns: ns, ..Round::default() };
    let cell = |competitor: &str| Cell {
        competitor: competitor.into(),
        phase: "decode".into(),
        units: 1000,
        settled: true,
        rounds: vec![round],
        ..Cell::default()
    };
    Results {
        schema: SCHEMA,
        bench: "formats".into(),
        baseline: "json".into(),
        competitors: ["json", "cbor"]
            .map(|name| Contender { name: name.into(), ..Contender::default() })
            .into(),
        phases: vec![Phase::new("decode", "table", 1000, "")],
        cells: vec![cell("json"), cell("cbor")],
        probes: vec![Probe { spin_ns: 1, spin_least_ns: 1, ..Probe::default() }],
        ..Results::default()
    }
}

fn options(new: PathBuf, old: PathBuf) -> Options<'static> {
    let stop = StopRule { max_rounds: 8, precision: 0.0, ..StopRule::default() };
    Options {
        new,
        old,
        args: ["bench", "formats"].map(OsString::from).into(),
        plan: Plan { seed: 40, resamples: 200, stop, ..Plan::default() },
        out: None,
        stop: &|| false,
    }
}

/// What a round takes on a machine where something else runs every now and then.
fn shared(round: u32) -> u64 {
    10_000_000 * [10u64, 34, 11, 10, 52, 23, 10, 12][round as usize] / 10
}

#[test]
fn two_programs_take_turns_and_their_rounds_are_pairs() {
    let bench = Bench(tempfile::tempdir().unwrap());
    let new = bench.program("new", |round| shared(round) * (1080 + u64::from(round % 3)) / 1000);
    let old = bench.program("old", shared);
    let out = bench.path("results.json");
    let options = Options { out: Some(out.clone()), ..options(new.clone(), old.clone()) };
    let mut told = Vec::new();
    let (new, old) =
        run(&options, &mut |p: Progress<'_>| told.push((p.rounds, p.competitor.to_owned())))
            .unwrap();
    assert_eq!((new.stopped, new.probes.len()), (Some(Stopped::Rounds), 8));
    // Each round both, each of them first as often as the other.
    for round in told.chunks(2) {
        assert!(round[0].0 == round[1].0 && round[0].1 != round[1].1, "{told:?}");
    }
    assert_eq!(told.chunks(2).filter(|round| round[0].1 == "new").count(), 4);
    let calls = fs::read_to_string(bench.path("calls")).unwrap();
    let seeds = |seed: u32| calls.matches(&format!("--seed {seed} ")).count();
    assert!((40..48).all(|seed| seeds(seed) == 2), "{calls}");
    assert!(calls.lines().all(|call| call.contains("bench formats --rounds 1 ")), "{calls}");
    // Eight per cent are seen through noise of 400.
    let compared = runs::compare(&new, &old);
    assert!(compared.interleaved && compared.pairs.len() == 2);
    for pair in &compared.pairs {
        assert_eq!(pair.versus.verdict, Verdict::Slower, "{pair:?}");
        assert!((pair.versus.ratio.middle - 1.081).abs() < 0.002, "{pair:?}");
    }
    assert_eq!(compared.regressions(0.05).len(), 2);
    // Files say the same again.
    let (new, old) = (save::read(&out).unwrap(), save::read(&beside(&out)).unwrap());
    assert_eq!(runs::compare(&new, &old), compared);
}

#[test]
fn the_same_program_twice_shows_no_difference() {
    let bench = Bench(tempfile::tempdir().unwrap());
    let luck = |round: u32, way: u32| shared(round) * u64::from(1000 + (round * way) % 7) / 1000;
    let new = bench.program("new", |round| luck(round, 3));
    let old = bench.program("old", |round| luck(round, 5));
    let (new, old) = run(&options(new, old), &mut |_| {}).unwrap();
    let compared = runs::compare(&new, &old);
    let verdicts: Vec<_> = compared.pairs.iter().map(|p| p.versus.verdict).collect();
    let differs = |v: &Verdict| matches!(v, Verdict::Slower | Verdict::Faster);
    assert!(!verdicts.iter().any(differs), "{:?}", compared.pairs);
}

#[test]
fn a_program_that_fails_is_named_with_what_it_said() {
    let bench = Bench(tempfile::tempdir().unwrap());
    let good = bench.program("new", shared);
    let failing = |text: &str| {
        let old = bench.script("old", text);
        run(&options(good.clone(), old), &mut |_| {}).unwrap_err()
    };
    let error = failing("echo 'no such option: --out' >&2; exit 2");
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(text.contains("/old: ") && text.contains("status 2 in round 1"), "{text}");
    assert!(text.ends_with("no such option: --out"), "{text}");
    // It says nothing, or writes what this program does not know.
    let error = failing("exit 0");
    assert!(error.to_string().contains("its results cannot be read"), "{error}");
    let newer = r#"while [ "$1" != --out ]; do shift; done; echo '{"schema": 99}' > "$2""#;
    let error = failing(newer);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(format!("{error:?}").contains("schema 99"), "{error:?}");
    let error = run(&options(good.clone(), bench.path("none")), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("cannot be started"), "{error}");
}

#[test]
fn the_older_results_lie_beside_the_newer_ones() {
    let of = |path: &str| beside(Path::new(path)).display().to_string();
    assert_eq!(of("a/results.json"), "a/results.old.json");
    assert_eq!(of("results.json.zst"), "results.old.json.zst");
    assert_eq!(of("results"), "results.old");
}
