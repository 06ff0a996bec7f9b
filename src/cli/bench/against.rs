//! `--against OLD_BINARY`: this program and another build of it take turns.

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, Stdio},
};

use steelyard::{
    Error, Result,
    bench::{against, results::Plan, run::Progress, runs, save},
};

use super::{
    super::{
        Outcome, interrupt, last, print,
        report::{Form, gate},
    },
    Common,
    progress::Lines,
};

/// Options with a value that are the whole run's, not those of each round.
const OURS: [&str; 7] =
    ["--against", "--fail-on-regression", "--out", "--format", "--rounds", "--budget", "--seed"];

pub fn run(common: &Common, old: &Path) -> Result<Outcome> {
    let args = for_each_round(std::env::args_os().skip(1));
    if args.iter().any(|arg| arg == "-") {
        let what =
            "--against reads the records in every round, which standard input does not allow";
        return Err(Error::invalid(what));
    }
    let new = std::env::current_exe().map_err(|e| Error::from(e).in_place("this program"))?;
    is_a_build(old)?;
    common.out.as_deref().map_or(Ok(()), save::check)?;
    let stop = interrupt::at_first();
    let options = against::Options {
        new,
        // A name without a folder would be looked for in the PATH.
        old: old.canonicalize().map_err(|e| Error::from(e).in_place(old.display().to_string()))?,
        args,
        plan: common.plan(Plan::default(), None),
        out: common.out.clone(),
        stop: &|| stop.is_set(),
    };
    let mut lines = Lines::new();
    let both = against::run(&options, &mut |p: Progress<'_>| lines.tell(&p));
    drop(lines);
    let (new, old) = both?;
    let comparisons = [runs::compare(&new, &old)];
    last::keep(&[new.clone(), old]);
    print(common.format.unwrap_or(Form::Text).of_runs(&comparisons))?;
    let read = if new.dataset.unreadable > 0 { Outcome::Found } else { Outcome::Well };
    Ok(common.fail_on_regression.map_or(read, |limit| gate(&comparisons, limit)))
}

/// Whether a program is another build of this one, by what it says of its version.
///
/// # Errors
/// [`Invalid`](steelyard::ErrorKind::Invalid), naming it and what it has to be.
fn is_a_build(old: &Path) -> Result<()> {
    let named = |why: String| {
        let what = "--against is for another build of steelyard, such as the one before a change";
        Error::invalid(format!("{what}: {why}")).in_place(old.display().to_string())
    };
    let path = old.canonicalize().map_err(|e| named(format!("there is no such program ({e})")))?;
    let said = Command::new(path).arg("--version").stdin(Stdio::null()).output();
    let said = said.map_err(|e| named(format!("it cannot be started ({e})")))?;
    match said.stdout.starts_with(b"steelyard ") {
        true => Ok(()),
        false => Err(named("it does not answer to --version as steelyard does".into())),
    }
}

/// The command line without what is the whole run's.
fn for_each_round(mut args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    // `--out`, `--out=x`, and not `--outer`.
    let ends = |rest: &str| rest.is_empty() || rest.starts_with('=');
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy().into_owned();
        // How the report is printed is the whole run's, too.
        if text == "--full" {
            continue;
        }
        match OURS.into_iter().find(|name| text.strip_prefix(name).is_some_and(ends)) {
            Some(name) if name.len() == text.len() => drop(args.next()),
            Some(_) => {}
            None => kept.push(arg),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_the_bench_and_not_the_rules_of_the_whole() {
        let of = |line: &str| {
            let kept = for_each_round(line.split(' ').map(OsString::from));
            kept.iter().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            of("bench formats a.mrc --against ../old --budget=60 --formats json,cbor --cpu"),
            "bench formats a.mrc --formats json,cbor --cpu"
        );
        assert_eq!(
            of("bench keep --seed 4 --on redis --out x.json --fail-on-regression 5% --rounds 9"),
            "bench keep --on redis"
        );
        assert_eq!(of("bench mine.toml --format html"), "bench mine.toml");
    }
}
