//! What must hold in every state, and what must be the case in some state.

use stateright::Property;

use crate::{
    model::Moving,
    state::{Request, State, Step, View, Why, continues},
};

pub(crate) const KEPT: &str = "every acknowledged write is in the database that the row names";
pub(crate) const ONCE: &str = "no write is in a record twice";
pub(crate) const REFUSED: &str = "a write that was answered 503 was not done";
pub(crate) const STAYS: &str = "what an acknowledged answer has shown is not lost or changed";
pub(crate) const NEWEST: &str = "an acknowledged answer shows what was acknowledged before it";
pub(crate) const WHOLE: &str = "a write of two records is done in both or in neither";
pub(crate) const THERE: &str = "the database that the row names is there";
pub(crate) const LEASED: &str = "while its lease holds, a copy of the row names the right database";

pub(crate) fn properties() -> Vec<Property<Moving>> {
    type P = Property<Moving>;
    vec![
        P::always(KEPT, |model, state| {
            let place = state.place();
            (0..model.writes).all(|write| {
                state.requests[write] != Request::Acknowledged
                    || place.iter().all(|record| record.count(write) > 0)
            })
        }),
        P::always(ONCE, |model, state| {
            let place = state.place();
            (0..model.writes).all(|write| place.iter().all(|record| record.count(write) <= 1))
        }),
        P::always(REFUSED, |model, state| {
            let place = state.place();
            (0..model.writes).all(|write| {
                state.requests[write] != Request::Waiting
                    || place.iter().all(|record| record.count(write) == 0)
            })
        }),
        // This includes the order: no older write replaces what was acknowledged.
        P::always(STAYS, |_, state| continues(&state.place(), &state.shown)),
        P::always(NEWEST, |_, state| !state.stale),
        P::always(WHOLE, |_, state| {
            let [first, second] = state.place();
            first == second
        }),
        P::always(THERE, |_, state| state.databases[state.row.place as usize].is_some()),
        P::always(LEASED, |_, state| {
            let place = state.row.place;
            let names_it = |view: &View| match view {
                View::Held { place: named, .. } => *named == place,
                _ => true,
            };
            let used_it = |request: &Request| match request {
                Request::Sent { place: named, left } => *left == 0 || *named == place,
                _ => true,
            };
            state.gateways.iter().all(names_it) && state.requests.iter().all(used_it)
        }),
        P::sometimes("a move completes", |_, state| drops(state, Why::Moved, false)),
        P::sometimes("a take-over completes", |_, state| drops(state, Why::Moved, true)),
        P::sometimes("a going back completes", |_, state| drops(state, Why::WentBack, false)),
        P::sometimes("a write is on its way to a database that was left", |model, state| {
            state.requests[..model.writes].iter().any(|request| match request {
                Request::Sent { place, .. } => {
                    *place != state.row.place && state.row.target.is_none()
                }
                _ => false,
            })
        }),
        P::sometimes("a write is on its way to a database that was dropped", |model, state| {
            state.requests[..model.writes].iter().any(|request| match request {
                Request::Sent { place, .. } => state.databases[*place as usize].is_none(),
                _ => false,
            })
        }),
        P::sometimes("a write is answered: may or may not have been done", |model, state| {
            state.requests[..model.writes].contains(&Request::Unknown)
        }),
    ]
}

fn drops(state: &State, why: Why, took_over: bool) -> bool {
    state.movers.iter().any(|m| m.step == Step::Drop(why) && m.took_over == took_over)
}
