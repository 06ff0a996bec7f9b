//! A model of moving a tenant's database between shards while gateways write to it, and a check of
//! every state that it can reach. `docs/moving.md` has the protocol in words.
//!
//! `model.rs` has the steps of gateways and movers, `state.rs` what they act on, `properties.rs`
//! what must hold, and `rules.rs` the rules that a check can leave out. Each rule is left out in
//! one check, which must then find a state where a property does not hold: a check that finds
//! nothing proves something only if it can find something.
//!
//! The numbers of states are asserted, so that a change of the model which makes it visit less is
//! noticed. `docs/moving.md` quotes them. `--nocapture` prints them, and the path that each missing rule
//! leads to. A check has one thread, as its paths are then the shortest ones.

mod alike;
mod model;
mod properties;
mod rules;
mod state;

use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use model::{Action, Moving};
use properties::{KEPT, NEWEST, THERE, WHOLE};
use rules::Rule;
use state::Request;

/// The whole protocol. There is no bound on ticks, moves, kills, sweeps and the number of reads.
const PROTOCOL: Moving = Moving {
    gateways: 2,
    movers: 2,
    writes: 2,
    reads: 1,
    lease: 1,
    sweeps: true,
    reads_again: false,
    without: None,
    reduced: true,
};

/// Large enough for what a missing rule leads to.
const SMALL: Moving = Moving { gateways: 1, writes: 1, reads: 0, sweeps: false, ..PROTOCOL };

/// Visits every state. Returns the properties that are broken in one of them, and those that must
/// be the case in some state and are in none.
fn broken(model: &Moving, states: usize) -> Vec<&'static str> {
    let start = Instant::now();
    let checker = model.clone().checker().spawn_bfs().join();
    println!(
        "{} states, {} steps, {} deep, {:.1} s: {model:?}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        start.elapsed().as_secs_f64()
    );
    let found = checker.discoveries();
    let broken = model.properties().into_iter().filter(|property| {
        found.contains_key(property.name) != (property.expectation == Expectation::Sometimes)
    });
    let broken = broken.map(|property| property.name).collect();
    assert_eq!(checker.unique_state_count(), states, "states (broken: {broken:?})");
    broken
}

fn holds(model: &Moving, states: usize) {
    assert_eq!(broken(model, states), [""; 0]);
}

/// Finds a state where the property does not hold, and prints the path to it.
fn leads_to(property: &'static str, model: Moving) {
    let name = format!("without {:?}", model.without);
    let only = HasDiscoveries::AnyOf([property].into());
    let checker = model.checker().finish_when(only).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{name}: {property}"));
    println!("{name}, not: {property} ({} states)", checker.unique_state_count());
    for action in path.into_actions() {
        println!("    {action:?}");
    }
}

#[test]
fn the_protocol_holds() {
    holds(&PROTOCOL, 285_241);
}

#[test]
fn it_holds_with_three_writes() {
    holds(&Moving { writes: 3, reads: 0, sweeps: false, ..PROTOCOL }, 563_163);
}

#[test]
fn it_holds_with_a_lease_of_two_ticks() {
    holds(&Moving { lease: 2, reads: 0, ..PROTOCOL }, 210_257);
}

#[test]
fn it_holds_where_gateways_read_the_row_again() {
    holds(&Moving { reads_again: true, writes: 1, ..PROTOCOL }, 149_026);
    holds(&Moving { reads_again: true, reads: 0, sweeps: false, ..PROTOCOL }, 84_778);
}

/// Without what `alike.rs` leaves out, in a space that is small enough for it.
#[test]
fn it_holds_where_nothing_is_left_out() {
    holds(&Moving { reduced: false, writes: 1, reads: 0, sweeps: false, ..PROTOCOL }, 177_891);
}

/// `cargo test --release --test moving_model -- --ignored` takes two to three minutes.
#[test]
#[ignore = "takes minutes"]
fn it_holds_in_larger_spaces() {
    holds(&Moving { lease: 2, ..PROTOCOL }, 1_544_777);
    holds(&Moving { writes: 3, ..PROTOCOL }, 6_449_406);
    holds(&Moving { reads_again: true, ..PROTOCOL }, 6_720_562);
}

#[test]
fn each_rule_of_gateways_is_needed() {
    let without = |rule| Moving { without: Some(rule), ..SMALL };
    leads_to(KEPT, without(Rule::LeaseFromAsking));
    leads_to(KEPT, without(Rule::SecondCheck));
    leads_to(NEWEST, Moving { reads: 1, ..without(Rule::SecondCheck) });
    leads_to(KEPT, without(Rule::LeaseOfRowUsed));
    leads_to(KEPT, Moving { reads_again: true, ..without(Rule::ActiveAgain) });
}

#[test]
fn each_rule_of_movers_is_needed() {
    let without = |rule| Moving { without: Some(rule), ..SMALL };
    leads_to(KEPT, without(Rule::Wait));
    leads_to(KEPT, without(Rule::WaitAfterTakeOver));
    leads_to(KEPT, without(Rule::WaitFromSwap));
    leads_to(KEPT, without(Rule::FreshTarget));
    leads_to(KEPT, without(Rule::SendOnce));
    leads_to(KEPT, without(Rule::ConditionalSwitch));
    leads_to(THERE, Moving { sweeps: true, ..without(Rule::NameBeforeCreating) });
    leads_to(THERE, Moving { sweeps: true, ..without(Rule::ListBeforeRow) });
}

/// Without it, every acknowledged write is still kept. What breaks are writes that were answered
/// "may or may not have been done": one can end up done by half.
#[test]
fn the_comparison_is_needed_for_whole_writes_only() {
    let model = Moving { without: Some(Rule::Comparison), sweeps: false, ..PROTOCOL };
    leads_to(WHOLE, Moving { writes: 1, reads: 0, ..model.clone() });
    assert_eq!(broken(&model, 150_580), [WHOLE]);
}

/// A write that was answered "may or may not have been done" can be done after a newer one that was
/// acknowledged. This takes no move, so no rule of moving can prevent it. A client to which it
/// matters writes on condition of what is there.
#[test]
fn an_unanswered_write_can_come_last() {
    let model = Moving { writes: 2, movers: 0, ..SMALL };
    let mut state = model.init_states().remove(0);
    for action in [
        Action::AskForRow { gateway: 1 },
        Action::RowArrives { gateway: 1 },
        Action::Send { gateway: 1, request: 0 },
        Action::GiveUp { request: 0 },
        Action::Send { gateway: 1, request: 1 },
        Action::DatabaseAnswers { request: 1 },
        Action::AnswerClient { request: 1 },
        Action::LateWriteArrives { request: 0 },
    ] {
        let mut actions = Vec::new();
        model.actions(&state, &mut actions);
        assert!(actions.contains(&action), "{action:?} in {state:?}");
        state = model.next_state(&state, action).expect("each of them changes the state");
    }
    assert_eq!(state.requests[..2], [Request::Unknown, Request::Acknowledged]);
    assert!(state.place()[0].writes().eq([1, 0]));
}
