//! `bench … --against OLD`: two builds of this program take turns in one run.
//!
//! In each round both run one round of the same bench, with the same seed, in balanced random order,
//! as processes of their own. Whatever else happens on the machine happens to both, so their rounds are
//! pairs, and their ratio holds where runs at different times could not be compared: on shared machines,
//! as those of continuous integration. What comes out is two results, one of each, for
//! [`compare`](super::runs::compare).

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use nix::sys::signal::Signal;

use super::{
    child,
    derive::derive,
    machine,
    results::{Cell, Disk, Plan, Probe, Results, Round},
    run::{Progress, Stage},
    runs, save,
    schedule::{Orders, Stopped},
    scratch::Scratch,
    stop::interrupted,
};
use crate::{Error, Result};

/// A program that is sent both clears away what is its own, and reports nothing.
const AT_ONCE: [Signal; 2] = [Signal::SIGTERM, Signal::SIGINT];
/// How many rounds the time allowed is divided among, to say how long one may take.
const ROUNDS: f64 = 8.0;

/// Which programs, and what they do.
pub struct Options<'a> {
    /// The newer program …
    pub new: PathBuf,
    /// … and the older one.
    pub old: PathBuf,
    /// The command line of the bench, from the word `bench` on, without its stop rule, seed, and output.
    pub args: Vec<OsString>,
    /// Seed, basis and stop rule of the whole.
    pub plan: Plan,
    /// The results of the newer program are written here after each round, those of the older one
    /// [`beside`] it.
    pub out: Option<PathBuf>,
    /// Whether to end now; the round that is under way is lost.
    pub stop: &'a dyn Fn() -> bool,
}

/// Which of the two.
const NAMES: [&str; 2] = ["new", "old"];

/// Where the results of the older program go: `results.old.json` for `results.json`.
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = match name.split_once('.') {
        Some((stem, endings)) => format!("{stem}.old.{endings}"),
        None => format!("{name}.old"),
    };
    path.with_file_name(name)
}

/// Runs both, and returns the results of the newer and of the older one.
///
/// # Errors
/// [`Unavailable`](crate::ErrorKind::Unavailable) where a program cannot be started or fails, with what it
/// printed; those of reading its results, as where they are of a newer schema.
pub fn run(
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Results, Results)> {
    let scratch = Scratch::new(None)?;
    let begin = Instant::now();
    let plan = &options.plan;
    let name = format!("{} {}", machine::now(), std::process::id());
    let programs = [&options.new, &options.old];
    let mut both: [Option<Results>; 2] = [None, None];
    let mut orders = Orders::new(2, plan.seed);
    let mut stopping = plan.stop.watch();
    for round in 0.. {
        let mut each_once = || -> Result<Vec<(usize, Results)>> {
            let one = |which: usize| {
                progress(Progress {
                    stage: Stage::Timing,
                    rounds: round,
                    competitor: NAMES[which],
                    seconds: begin.elapsed().as_secs_f64(),
                    budget: plan.stop.budget,
                    ..Progress::default()
                });
                let file = scratch.path().join(format!("{}.json", NAMES[which]));
                Ok((which, one_round(options, programs[which], &file, round)?))
            };
            orders.next_order().into_iter().map(one).collect()
        };
        let interrupted = match each_once() {
            // What one of them did has no pair.
            Err(_) if (options.stop)() && round > 0 => true,
            done => {
                for (place, (which, done)) in done?.into_iter().enumerate() {
                    let all = both[which].get_or_insert_with(|| blank(&done, plan, &name));
                    merge(all, done, round, place as u32);
                }
                (options.stop)()
            }
        };
        let [Some(new), Some(old)] = &mut both else { break };
        for results in [&mut *new, &mut *old] {
            results.seconds = begin.elapsed().as_secs_f64();
        }
        write(options, new, old)?;
        let narrow = || {
            let compared = runs::compare(new, old);
            compared.pairs.iter().all(|p| {
                let ratio = p.versus.ratio;
                ratio
                    .low
                    .zip(ratio.high)
                    .is_some_and(|(low, high)| 0.5 * (high / low).ln() <= plan.stop.precision)
            })
        };
        let why = match interrupted {
            true => Some(Stopped::Interrupted),
            false => {
                let seconds = begin.elapsed().as_secs_f64();
                stopping.ends(round + 1, Some(round + 1), seconds, narrow)
            }
        };
        if let Some(why) = why {
            (new.stopped, old.stopped) = (Some(why), Some(why));
            write(options, new, old)?;
            break;
        }
    }
    match both {
        [Some(new), Some(old)] => Ok((new, old)),
        _ => Err(interrupted()),
    }
}

fn write(options: &Options<'_>, new: &Results, old: &Results) -> Result<()> {
    let Some(path) = &options.out else { return Ok(()) };
    save::write(new, path)?;
    save::write(old, &beside(path))
}

/// One round by one program.
fn one_round(options: &Options<'_>, program: &Path, file: &Path, round: u32) -> Result<Results> {
    let plan = &options.plan;
    let seconds = (plan.stop.budget / (2.0 * ROUNDS)).max(1.0);
    let at = |e: Error| e.in_place(program.display().to_string());
    let mut command = Command::new(program);
    command
        .args(&options.args)
        .args(["--rounds", "1", "--format", "text"])
        .args(["--budget", &seconds.to_string()])
        .args(["--seed", &plan.seed.wrapping_add(u64::from(round)).to_string()])
        .arg("--out")
        .arg(file)
        // What one round measured is not what a later `report` is asked for.
        .env("STEELYARD_CACHE", file.parent().unwrap_or(file));
    let output = match child::output(&mut command, &AT_ONCE, options.stop) {
        Err(e) if (options.stop)() => return Err(e),
        output => {
            output.map_err(|e| at(Error::unavailable("it cannot be started").with_source(e)))?
        }
    };
    // 1 says that something was found: a store that is not here, a promise that is not kept.
    if !matches!(output.status.code(), Some(0 | 1)) {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        let what = match output.status.code() {
            Some(code) => format!("it ended with status {code} in round {}: {said}", round + 1),
            None => format!("it was ended by a signal in round {}: {said}", round + 1),
        };
        return Err(at(Error::unavailable(what)));
    }
    let read = save::read(file).map_err(|e| {
        let what = "its results cannot be read by this program";
        let hint = "is that program newer than this one, or so old that it has no --out?";
        at(Error::new(e.kind(), what).with_source(e).with_hint(hint))
    });
    // What is left of this round is not the next one's.
    let _ = std::fs::remove_file(file);
    read
}

/// The results of a program, with no round in them yet.
fn blank(first: &Results, plan: &Plan, name: &str) -> Results {
    let mut all = first.clone();
    all.plan = Plan { window_ns: first.plan.window_ns, ..plan.clone() };
    all.interleaved = Some(name.to_owned());
    all.stopped = None;
    all.probes.clear();
    for cell in &mut all.cells {
        cell.rounds.clear();
        (cell.latency, cell.tally, cell.summary) = (None, None, None);
    }
    // Sums of phases follow from their parts.
    let sums: Vec<String> =
        (all.phases.iter()).filter(|p| !p.sum_of.is_empty()).map(|p| p.id.clone()).collect();
    all.cells.retain(|cell| !sums.contains(&cell.phase));
    for contrast in &mut all.contrasts {
        contrast.versus = None;
    }
    for kept in all.competitors.iter_mut().filter_map(|c| c.store.as_mut()) {
        kept.disk.clear();
    }
    all
}

/// Adds a program's round to its results: fresh data, so a start of its own.
fn merge(all: &mut Results, done: Results, round: u32, place: u32) {
    let Results { cells, probes, competitors, .. } = done;
    for cell in cells {
        let same = |c: &&mut Cell| c.competitor == cell.competitor && c.phase == cell.phase;
        let Some(into) = all.cells.iter_mut().find(same) else { continue };
        for timed in &cell.rounds {
            let units = cell.units_of(timed);
            into.rounds.push(Round { start: round, round, place, units, ..*timed });
        }
        if let Some(latency) = cell.latency {
            match &mut into.latency {
                Some(all) => all.add(&latency),
                empty => *empty = Some(latency),
            }
        }
        if let Some(tally) = cell.tally {
            into.tally = Some(into.tally.unwrap_or_default().plus(tally));
        }
        into.refused = into.refused.take().or(cell.refused);
        into.settled = into.settled && cell.settled;
    }
    for competitor in competitors {
        let into = all.competitors.iter_mut().find(|c| c.name == competitor.name);
        let disks = competitor.store.map(|kept| kept.disk).unwrap_or_default();
        if let Some(into) = into.and_then(|row| row.store.as_mut()) {
            into.disk.extend(disks.into_iter().map(|disk| Disk { start: round, ..disk }));
        }
    }
    all.probes.extend(probes.into_iter().map(|probe| Probe { round, ..probe }));
    derive(all);
}

#[cfg(test)]
mod tests;
