//! Makes one state of those that no process and no client can tell apart.
//!
//! This is what makes the space finite without a limit on ticks, moves and kills: the id of a
//! database that is no longer in use is given to the next new one. Each step here is exact: it
//! leaves out only what has no effect on anything that a property reads.

use crate::{
    model::Moving,
    rules::Rule,
    state::{DATABASES, Database, EMPTY, IDLE, Request, State, Step, View},
};

impl Moving {
    /// Replaces the state by the one that stands for all that are like it.
    pub(crate) fn alike(&self, state: &mut State) {
        if self.reduced {
            self.end_unnoticed_runs(state);
            self.answer_early(state);
        }
        // Processes of one kind are interchangeable. So in a printed path, a gateway or mover can
        // have another number after each step.
        state.movers.sort();
        state.gateways.sort();
        state.requests[self.writes..].sort();
        forget_databases(state);
        if self.reduced {
            empty_unread_databases(state);
        }
    }

    /// Ends each run whose further steps have no effect on anything else.
    fn end_unnoticed_runs(&self, state: &mut State) {
        for at in 0..state.movers.len() {
            let mover = state.movers[at];
            let alone = || mover.target.is_none_or(|target| state.uses(target) == 1);
            let unnoticed = match mover.step {
                Step::Idle | Step::ListLate => false,
                // Its swap will fail.
                Step::Swap { .. } => !mover.current && alone(),
                // It copies to a target that only it uses, and its last swap will fail.
                Step::Wait { .. } | Step::Write { .. } | Step::Compare { .. } | Step::Switch => {
                    !mover.current && self.has(Rule::ConditionalSwitch) && alone()
                }
                Step::Drop(_) | Step::LookUp => alone(),
            };
            if unnoticed {
                state.movers[at] = IDLE;
            }
        }
    }

    /// Answers requests whose answer is certain, as the lease has run out.
    fn answer_early(&self, state: &mut State) {
        let lease_decides = self.has(Rule::SecondCheck) && self.has(Rule::LeaseOfRowUsed);
        if self.reads_again || !lease_decides {
            return;
        }
        for (at, request) in state.requests.iter_mut().enumerate() {
            let is_write = at < self.writes;
            *request = match request {
                Request::Answered { left: 0, .. } if is_write => Request::Unknown,
                Request::Sent { left: 0, .. } | Request::Answered { left: 0, .. } if !is_write => {
                    Request::Waiting
                }
                _ => continue,
            };
        }
    }
}

/// Forgets the databases that are not in use, and numbers the others in the order of their use.
fn forget_databases(state: &mut State) {
    let old = state.databases;
    let mut databases = [None; DATABASES];
    let mut numbers: [Option<Database>; DATABASES] = [None; DATABASES];
    let mut next = 0;
    state.ids(|id| {
        let before = *id as usize;
        *id = *numbers[before].get_or_insert_with(|| {
            databases[next as usize] = old[before];
            next += 1;
            next - 1
        });
    });
    for request in &mut state.requests {
        if let Request::Late(id) = *request {
            *request = numbers[id as usize].map_or(Request::Unknown, Request::Late);
        }
    }
    state.late_copy = state
        .late_copy
        .and_then(|(id, record, value)| numbers[id as usize].map(|number| (number, record, value)));
    state.databases = databases;
}

/// Empties the databases that will only be written to or dropped.
fn empty_unread_databases(state: &mut State) {
    let mut read = [false; DATABASES];
    read[state.row.place as usize] = true;
    for mover in &state.movers {
        if !matches!(mover.step, Step::Swap { .. } | Step::Drop(_) | Step::LookUp) {
            for id in mover.source.iter().chain(&mover.target) {
                read[*id as usize] = true;
            }
        }
    }
    for view in &state.gateways {
        if let View::Asked { place, .. } | View::Held { place, .. } = view {
            read[*place as usize] = true;
        }
    }
    for request in &state.requests {
        if let Request::Sent { place, .. } = request {
            read[*place as usize] = true;
        }
    }
    for (database, read) in state.databases.iter_mut().zip(read) {
        if !read && let Some(records) = database {
            *records = EMPTY;
        }
    }
}
