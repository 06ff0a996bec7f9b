//! The progress of a bench, on the standard error. On a terminal: a line for the whole run, and one for each
//! phase of the current competitor, with its rate, or with the time it will take by what it took before.
//! Elsewhere, in a log: a line every 10 seconds.
//!
//! Nothing is printed while anything is timed (rule 11 of measuring): lines change between windows only, so
//! that the time left stands still meanwhile, and a line in a log waits for the end of a long window.

use std::{
    collections::HashMap,
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use steelyard::{
    bench::run::{Measured, Progress, Stage},
    report::visible,
};

use super::super::{interrupt, progress::grouped, say};

/// Where the standard error is no terminal, a line is printed after so long.
const EVERY: Duration = Duration::from_secs(10);

/// Lines on the standard error.
pub struct Lines {
    /// When the last line of a log was printed; `None` on a terminal.
    logged: Option<Instant>,
    all: MultiProgress,
    whole: ProgressBar,
    phases: Vec<ProgressBar>,
    told: Told,
}

impl Lines {
    /// None yet.
    pub fn new() -> Lines {
        let on_terminal = std::io::stderr().is_terminal();
        let target = match on_terminal {
            // The last of several changes in a row is the one that stays.
            true => ProgressDrawTarget::stderr_with_hz(255),
            false => ProgressDrawTarget::hidden(),
        };
        let all = MultiProgress::with_draw_target(target);
        interrupt::drawn(&all);
        let whole = all.add(ProgressBar::new(0));
        whole.set_style(style("{bar:20} {msg}"));
        let logged = (!on_terminal).then(Instant::now);
        Lines { logged, all, whole, phases: Vec::new(), told: Told::default() }
    }

    /// Shows where a run is. Called between timed windows only.
    pub fn tell(&mut self, p: &Progress<'_>) {
        if p.stage == Stage::Making {
            // Nothing is drawn where this is no terminal, and this is to be known there too.
            return self.all.suspend(|| say(format_args!("{}: {}", p.competitor, p.phase)));
        }
        if let Some(last) = &mut self.logged {
            if last.elapsed() >= EVERY {
                *last = Instant::now();
                say(format_args!("steelyard: {}; {}", whole(p), left(p)));
            }
            return;
        }
        self.whole.set_length(p.budget.ceil() as u64);
        self.whole.set_position(p.seconds as u64);
        self.whole.set_message(whole(p));
        self.told.hear(p);
        for line in self.phases.drain(self.told.lines.len().min(self.phases.len())..) {
            self.all.remove(&line);
        }
        while self.phases.len() < self.told.lines.len() {
            let line = self.all.add(ProgressBar::new_spinner());
            line.set_style(style("  {msg}"));
            self.phases.push(line);
        }
        for (line, text) in self.phases.iter().zip(&self.told.lines) {
            line.set_message(text.clone());
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        interrupt::undrawn();
        // An error here would hide what is to be said.
        let _ = self.all.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template of our own")
}

/// The line for the whole.
fn whole(p: &Progress<'_>) -> String {
    let stage = match p.stage {
        Stage::Making | Stage::Proving => "proving",
        Stage::Preparing => "preparing",
        Stage::WarmingUp => "warming up",
        Stage::Timing => "timing",
    };
    let (seconds, budget, round) = (p.seconds, p.budget, p.rounds + 1);
    let who = visible(&format!("{} {}", p.competitor, p.phase)).into_owned();
    format!("{seconds:.0} of at most {budget:.0} s, round {round}: {stage} {}", who.trim_end())
}

/// How long it may still take.
fn left(p: &Progress<'_>) -> String {
    let left = p.budget - p.seconds;
    match left > 0.0 {
        true => format!("at most {left:.0} s left, and the rest of a round"),
        false => "this round is the last".into(),
    }
}

/// What is said of phases, and what is remembered for it.
#[derive(Default)]
struct Told {
    /// A line for each phase of whoever has its turn.
    lines: Vec<String>,
    whose: String,
    /// Seconds each phase of each competitor took last.
    took: HashMap<(String, String), f64>,
}

impl Told {
    fn hear(&mut self, p: &Progress<'_>) {
        let competitor = visible(p.competitor);
        let phase = visible(p.phase);
        // Benches whose windows are milliseconds have no lines that anybody could read.
        if !p.long {
            return;
        }
        if self.whose != *competitor || p.stage != Stage::Timing {
            self.whose = competitor.clone().into_owned();
            self.lines.clear();
        }
        if p.stage != Stage::Timing {
            return;
        }
        let begin = format!("{competitor:24} {phase:16}");
        let key = (competitor.into_owned(), phase.into_owned());
        match p.measured {
            Some(measured) => {
                self.took.insert(key, measured.seconds);
                self.lines.pop();
                self.lines.push(format!("{begin} {}", rate(&measured)));
            }
            None => {
                let left = self.took.get(&key).map_or_else(String::new, |s| forecast(*s));
                self.lines.push(format!("{begin} {left}").trim_end().to_owned());
            }
        }
    }
}

/// `98,000 records/s`; the time where a rate says little.
fn rate(measured: &Measured<'_>) -> String {
    let Measured { units, unit, seconds } = *measured;
    match units > 1 && seconds > 0.0 {
        true => format!("{:>9} {unit}/s", grouped((units as f64 / seconds) as u64)),
        false => format!("{seconds:>9.3} s"),
    }
}

fn forecast(seconds: f64) -> String {
    match Duration::from_secs_f64(seconds.max(0.0)).as_secs() {
        0 => "less than a second left".into(),
        s if s < 60 => format!("about {} s left", s + 1),
        s => format!("about {}:{:02} min left", s / 60, s % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_have_lines_with_rates_and_forecasts() {
        let progress = |stage, competitor, phase, measured| Progress {
            stage,
            rounds: 1,
            cell: 0,
            cells: 2,
            competitor,
            phase,
            seconds: 14.0,
            budget: 120.0,
            long: true,
            measured,
        };
        let timing = |c, p, m| progress(Stage::Timing, c, p, m);
        let of = |units, seconds| Some(Measured { units, unit: "records", seconds });
        let mut told = Told::default();
        told.hear(&timing("sqlite", "load", None));
        assert!(told.lines[0].ends_with("load"), "{:?}", told.lines);
        told.hear(&timing("sqlite", "load", of(200_000, 2.5)));
        told.hear(&timing("sqlite", "settle", None));
        told.hear(&timing("sqlite", "settle", of(1, 0.125)));
        assert!(told.lines[0].ends_with("80,000 records/s"), "{:?}", told.lines);
        assert!(told.lines[1].ends_with("0.125 s"), "{:?}", told.lines);
        // Another's turn, and then again its own.
        told.hear(&progress(Stage::Preparing, "redis", "", None));
        assert!(told.lines.is_empty());
        told.hear(&timing("sqlite", "load", None));
        assert!(told.lines[0].ends_with("about 3 s left"), "{:?}", told.lines);
        let line = whole(&timing("sqlite", "load", None));
        assert_eq!(line, "14 of at most 120 s, round 2: timing sqlite load");
        assert_eq!(
            left(&timing("sqlite", "load", None)),
            "at most 106 s left, and the rest of a round"
        );
        let late = Progress { seconds: 121.0, ..timing("sqlite", "load", None) };
        assert_eq!(left(&late), "this round is the last");
        assert_eq!(forecast(0.2), "less than a second left");
        assert_eq!(forecast(125.0), "about 2:05 min left");
    }
}
