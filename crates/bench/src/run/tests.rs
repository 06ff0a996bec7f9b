//! Tests of the runner on a simulated processor that it shares with another process: the same competitor under two
//! names must come out the same, whatever its warm-ups measured.

use std::{cell::RefCell, rc::Rc};

use super::*;
use crate::{
    accounting::Usage,
    instruments::Work,
    random::Random,
    results::{Clock, Contender, Plan, Probe},
    schedule::StopRule,
};

/// How long each of two processes that share a processor has it.
const SLICE: u64 = 4_000_000;

/// A processor that another process uses as well, slice by slice.
struct Shared {
    /// Nanoseconds since the beginning …
    at: u64,
    /// … of which this process had so many.
    worked: u64,
    /// What is left of this process's slice.
    left: u64,
    random: Random,
}

type Processor = Rc<RefCell<Shared>>;

impl Shared {
    /// Works for so long, and waits for its turn when its slice is over.
    fn work(&mut self, ns: u64) {
        let mut rest = ns;
        while rest > self.left {
            rest -= self.left;
            self.at += self.left + SLICE;
            self.left = SLICE;
        }
        self.left -= rest;
        self.at += rest;
        self.worked += ns;
    }
}

struct Instrument(Processor);

impl Instruments for Instrument {
    fn now(&mut self) -> u64 {
        self.0.borrow().at
    }
    fn clock(&mut self) -> Clock {
        Clock { read_ns: 25.0, step_ns: 1.0 }
    }
    fn time(&mut self, work: Work<'_>) -> Result<(Counts, Usage)> {
        let mut before = self.0.borrow_mut();
        // Between windows some of its slice is used up.
        before.left = before.random.below(SLICE);
        let (at, worked) = (before.at, before.worked);
        drop(before);
        let counts = work()?;
        let after = self.0.borrow();
        let user_ns = after.worked - worked;
        Ok((counts, Usage { ns: after.at - at, user_ns, ..Usage::default() }))
    }
    fn weigh(&mut self, work: Work<'_>) -> Result<(Counts, Memory)> {
        Ok((work()?, Memory::default()))
    }
    fn probe(&mut self, round: u32) -> Probe {
        Probe { round, spin_ns: 1, spin_least_ns: 1, ..Probe::default() }
    }
}

/// Takes so many nanoseconds an operation, always.
struct Steadily(Processor, u64);

impl Competitor for Steadily {
    fn prepare(&mut self, _: u32) -> Result<()> {
        Ok(())
    }
    fn run(&mut self, _: &Phase, units: u64) -> Result<Counts> {
        self.0.borrow_mut().work(units * self.1);
        Ok(Counts { done: units, items: 3 * units, bytes: units })
    }
}

/// A run of competitors of these costs, the null one's last, in passes of `pass` operations.
fn shared(seed: u64, costs: &[u64], pass: u64, plan: Plan) -> Results {
    let random = Random::new(seed);
    let processor = Rc::new(RefCell::new(Shared { at: 0, worked: 0, left: SLICE, random }));
    let names = ["a", "again", "slow"].into_iter().take(costs.len() - 1).chain(["null"]);
    let mut results = Results {
        plan: Plan { seed, resamples: 500, ..plan },
        baseline: "a".into(),
        phases: vec![Phase::new("decode", "table", pass, "simulated")],
        ..Results::default()
    };
    let mut entries = Vec::new();
    for (name, cost) in names.zip(costs) {
        let null = name == "null";
        results.competitors.push(Contender { name: name.into(), null, ..Contender::default() });
        let competitor = Box::new(Steadily(Rc::clone(&processor), *cost));
        entries.push(Entry { name: name.into(), competitor });
    }
    let mut watch = Watch { progress: &mut |_| {}, save: &mut |_| Ok(()), stop: &|| false };
    run(&mut results, &mut entries, &mut Instrument(processor), &mut watch).unwrap();
    results
}

/// A pass of 3 ms: in one slice, or in two.
const PASS: u64 = 3000;

#[test]
fn the_same_under_two_names_has_the_same_windows_and_is_no_slower() {
    let mut far = 0;
    for seed in 0..40 {
        let results = shared(seed, &[1000, 1000, 5000, 1], PASS, Plan::default());
        let [a, again, slow, null] =
            ["a", "again", "slow", "null"].map(|name| results.cell(name, "decode").unwrap());
        for (n, round) in a.rounds.iter().enumerate() {
            let units = a.units_of(round);
            for other in [again, slow, null] {
                assert_eq!(other.units_of(&other.rounds[n]), units, "round {n} of {seed}");
            }
            // The quickest takes 50 ms of the processor's time, and the elapsed time is longer.
            assert!(round.user_ns >= 25_000_000 && round.ns >= 50_000_000, "{round:?}");
        }
        let ratio = again.summary.as_ref().unwrap().versus.unwrap().ratio;
        far += usize::from((ratio.middle - 1.0).abs() > 0.05);
        let ratio = slow.summary.as_ref().unwrap().versus.unwrap().ratio;
        assert!((ratio.middle / 5.0 - 1.0).abs() < 0.1, "{ratio:?}");
    }
    assert!(far <= 2, "{far} of 40 runs have the same competitor over 5 % from itself");
}

#[test]
fn a_budget_that_is_short_has_room_for_six_starts_and_says_so() {
    let stop = StopRule { budget: 6.0, precision: 0.0, ..StopRule::default() };
    let results = shared(1, &[1000, 40_000, 1], PASS, Plan { stop, ..Plan::default() });
    let starts = results.cell("a", "decode").unwrap().rounds.last().unwrap().start + 1;
    let told = &results.settings["Windows"];
    assert!((5..=12).contains(&starts), "{starts} starts; {told}");
    assert!(told.contains("has room for 6 starts only with shorter windows"), "{told}");
    let roomy = shared(1, &[1000, 40_000, 1], PASS, Plan::default());
    assert!(!roomy.settings["Windows"].contains("shorter"), "{:?}", roomy.settings);
}
