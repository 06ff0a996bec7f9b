//! The model: which steps are possible in a state, and the state after each.
//!
//! Where steps of the protocol are one step here, the model allows more than the protocol does, so
//! what holds here holds there:
//!
//! - A process that is stopped, or killed and not started again, is one that is not scheduled.
//! - The catalog reads a row in the step in which it is asked. That is the latest moment from
//!   which a lease may be counted.
//! - A swap is answered in its own step. So a mover waits no longer than the rule demands.
//! - A gateway checks the lease and sends the request in one step. A gateway that is stopped
//!   between the two is the same as a request that is on its way for long.
//! - A mover that goes back while it copies is one that is killed and begins anew.

use stateright::{Model, Property};

use crate::{
    properties::properties,
    rules::Rule,
    state::{
        DATABASES, Database, EMPTY, IDLE, Mover, RECORDS, REQUESTS, Request, Row, State, Step,
        View, Why, continues,
    },
};

/// The protocol and the bounds of a check.
#[derive(Clone, Debug)]
pub(crate) struct Moving {
    pub(crate) gateways: usize,
    pub(crate) movers: usize,
    /// How many writes there are in all.
    pub(crate) writes: usize,
    /// How many reads can be on their way at the same time. Their number has no bound.
    pub(crate) reads: usize,
    /// How many ticks a lease lasts.
    pub(crate) lease: u8,
    /// Whether movers also sweep, that is drop databases that the row does not name.
    pub(crate) sweeps: bool,
    /// Whether a gateway whose lease has run out reads the row again before it answers.
    pub(crate) reads_again: bool,
    pub(crate) without: Option<Rule>,
    /// Whether steps without effect are left out (`alike.rs`).
    pub(crate) reduced: bool,
}

/// One step of a process, of a message, or of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    AskForRow { gateway: usize },
    RowArrives { gateway: usize },
    Send { gateway: usize, request: usize },
    DatabaseAnswers { request: usize },
    AnswerClient { request: usize },
    GiveUp { request: usize },
    LateWriteArrives { request: usize },
    ReadRow { mover: usize },
    GoOn { mover: usize, step: Step },
    GoBack { mover: usize },
    FindInList { mover: usize, database: Database },
    SendCopyAgain { mover: usize },
    Kill { mover: usize, copy_is_sent: bool },
    LateCopyArrives,
}

impl Moving {
    pub(crate) fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    fn tick(&self, state: &mut State) {
        for view in &mut state.gateways {
            match view {
                View::Nothing => {}
                // Without the rule, a row that is on its way does not grow old.
                View::Asked { .. } if !self.has(Rule::LeaseFromAsking) => {}
                View::Asked { left, .. } | View::Held { left, .. } => {
                    *left -= 1;
                    if *left == 0 {
                        *view = View::Nothing;
                    }
                }
            }
        }
        for request in &mut state.requests {
            if let Request::Sent { left, .. } | Request::Answered { left, .. } = request {
                *left = left.saturating_sub(1);
            }
        }
        for mover in &mut state.movers {
            if let Step::Swap { left } | Step::Wait { left } = &mut mover.step {
                *left = left.saturating_sub(1);
            }
        }
    }

    /// The request arrives at the database, in time or late.
    fn database_answers(&self, state: &mut State, request: usize) {
        let now = state.requests[request];
        let (Request::Sent { place, .. } | Request::Late(place)) = now else {
            unreachable!("only what was sent arrives")
        };
        state.requests[request] = match (&mut state.databases[place as usize], now) {
            // It was not done, and as the id is never used again, it will not be: 503.
            (None, Request::Sent { .. }) => Request::Waiting,
            (None, _) => Request::Unknown,
            (Some(records), _) => {
                if request < self.writes {
                    *records = records.map(|record| record.with(request));
                }
                match now {
                    Request::Sent { place, left } => Request::Answered {
                        place,
                        left,
                        answer: *records,
                        newest: continues(records, &state.shown),
                    },
                    _ => Request::Unknown,
                }
            }
        };
    }

    /// The gateway checks the lease again and answers the client.
    fn answer_client(&self, state: &mut State, request: usize) {
        let Request::Answered { place, left, answer, newest } = state.requests[request] else {
            unreachable!("the database has answered")
        };
        let holds = left > 0
            || !self.has(Rule::SecondCheck)
            || !self.has(Rule::LeaseOfRowUsed)
                && state.gateways.iter().any(|view| matches!(view, View::Held { .. }));
        let row = state.row;
        let is_still_there = self.reads_again
            && row.place == place
            && (row.target.is_none() || !self.has(Rule::ActiveAgain));
        let acknowledges = holds || is_still_there;
        if acknowledges {
            let is_longest = continues(&answer, &state.shown);
            state.stale |= !newest || !is_longest && !continues(&state.shown, &answer);
            if is_longest {
                state.shown = answer;
            }
        }
        state.requests[request] = match (request < self.writes, acknowledges) {
            // The next read uses the same slot.
            (false, _) => Request::Waiting,
            (true, true) => Request::Acknowledged,
            (true, false) => Request::Unknown,
        };
    }

    /// Swaps the row to moving: the first step of a move or of a take-over.
    fn begin(&self, state: &mut State, mover: usize, counted: u8) -> Step {
        if !state.movers[mover].current {
            return Step::Idle;
        }
        let row = state.row;
        let took_over = row.target.is_some();
        let target = match row.target {
            Some(old) if !self.has(Rule::FreshTarget) => old,
            _ => state.movers[mover].target.unwrap_or_else(|| state.fresh()),
        };
        state.swap(mover, Row { target: Some(target), ..row });
        let me = &mut state.movers[mover];
        *me = Mover { source: Some(row.place), target: Some(target), took_over, ..*me };
        let waits = self.has(Rule::Wait) && (self.has(Rule::WaitAfterTakeOver) || !took_over);
        let left = if self.has(Rule::WaitFromSwap) { self.lease } else { counted };
        Step::Wait { left: if waits { left } else { 0 } }
    }

    /// One step of a run between the wait and the switch.
    fn copy(&self, state: &mut State, mover: usize) -> Step {
        let me = state.movers[mover];
        let (Some(from), Some(to)) = (me.source, me.target) else {
            unreachable!("a copy has a source and a target")
        };
        if me.step == (Step::Wait { left: 0 }) {
            state.databases[to as usize] = Some(EMPTY);
        }
        let source = state.databases[from as usize];
        // A database is dropped after the row was swapped, so the last swap of this run would fail.
        let (Some(source), Some(target)) = (source, &mut state.databases[to as usize]) else {
            return Step::Idle;
        };
        match me.step {
            Step::Write { record, value } => {
                target[record] = value;
                let next = record + 1;
                if next < RECORDS {
                    return Step::Write { record: next, value: source[next] };
                }
                if self.has(Rule::Comparison) { Step::Compare { record: 0 } } else { Step::Switch }
            }
            Step::Compare { record } if source[record] == target[record] => {
                if record + 1 < RECORDS {
                    Step::Compare { record: record + 1 }
                } else {
                    Step::Switch
                }
            }
            // The wait is over, or the comparison has found a difference.
            _ => {
                *target = EMPTY;
                Step::Write { record: 0, value: source[0] }
            }
        }
    }

    fn go_on(&self, state: &mut State, mover: usize) {
        let me = state.movers[mover];
        let drop = |target, why| Mover { step: Step::Drop(why), target, ..IDLE };
        let next = match me.step {
            Step::Swap { left } => self.begin(state, mover, left),
            Step::Switch if me.current || !self.has(Rule::ConditionalSwitch) => {
                let place = me.target.unwrap_or(state.row.place);
                state.swap(mover, Row { place, target: None });
                state.movers[mover] =
                    Mover { took_over: me.took_over, ..drop(me.source, Why::Moved) };
                return;
            }
            Step::Drop(_) => {
                state.databases[me.target.map_or(0, usize::from)] = None;
                Step::Idle
            }
            Step::LookUp if me.target != Some(state.row.place) && me.target != state.row.target => {
                state.movers[mover] = drop(me.target, Why::Swept);
                return;
            }
            Step::Wait { .. } | Step::Write { .. } | Step::Compare { .. } => {
                self.copy(state, mover)
            }
            Step::Idle | Step::Switch | Step::LookUp | Step::ListLate => Step::Idle,
        };
        state.movers[mover] =
            if next == Step::Idle { IDLE } else { Mover { step: next, ..state.movers[mover] } };
    }

    fn gateway_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let (writes, reads) = state.requests.split_at(self.writes);
        let write = writes.iter().position(|r| *r == Request::Waiting);
        let read = reads.iter().position(|r| *r == Request::Waiting).map(|at| writes.len() + at);
        for gateway in distinct(&state.gateways, self.gateways) {
            match state.gateways[gateway] {
                View::Nothing => actions.push(Action::AskForRow { gateway }),
                View::Asked { .. } => actions.push(Action::RowArrives { gateway }),
                View::Held { .. } => {
                    actions.push(Action::AskForRow { gateway });
                    for request in write.into_iter().chain(read) {
                        actions.push(Action::Send { gateway, request });
                    }
                }
            }
        }
        for (request, now) in state.requests.iter().enumerate() {
            match now {
                Request::Sent { .. } => actions
                    .extend([Action::DatabaseAnswers { request }, Action::GiveUp { request }]),
                Request::Answered { .. } => actions.push(Action::AnswerClient { request }),
                Request::Late(_) => actions.push(Action::LateWriteArrives { request }),
                Request::Waiting | Request::Acknowledged | Request::Unknown => {}
            }
        }
    }

    fn mover_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let there = (0..DATABASES as u8).filter(|d| state.databases[*d as usize].is_some());
        for mover in distinct(&state.movers, self.movers) {
            let me = &state.movers[mover];
            let step = me.step;
            match step {
                Step::Idle => {
                    actions.push(Action::ReadRow { mover });
                    if self.sweeps {
                        actions.extend(
                            there.clone().map(|database| Action::FindInList { mover, database }),
                        );
                    }
                    continue;
                }
                Step::Wait { left } if left > 0 => {}
                Step::ListLate => actions.extend(
                    there
                        .clone()
                        .filter(|d| me.source != Some(*d) && me.target != Some(*d))
                        .map(|database| Action::FindInList { mover, database }),
                ),
                _ => actions.push(Action::GoOn { mover, step }),
            }
            if matches!(step, Step::Swap { .. }) && me.current && state.row.target.is_some() {
                actions.push(Action::GoBack { mover });
            }
            actions.push(Action::Kill { mover, copy_is_sent: false });
            if matches!(step, Step::Write { .. }) && state.late_copy.is_none() {
                actions.push(Action::Kill { mover, copy_is_sent: true });
                if !self.has(Rule::SendOnce) {
                    actions.push(Action::SendCopyAgain { mover });
                }
            }
        }
    }

    /// The mover ceases to wait for the answer to its copy write.
    fn leave_copy(&self, state: &mut State, mover: usize) {
        let me = state.movers[mover];
        if let (Step::Write { record, value }, Some(target)) = (me.step, me.target) {
            state.late_copy = Some((target, record, value));
        }
    }
}

/// The last `count` of the processes, which are sorted, but of those in the same state one only.
///
/// A check with fewer processes than a state has room for leaves those at the front idle.
fn distinct<T: PartialEq>(all: &[T], count: usize) -> impl Iterator<Item = usize> {
    let first = all.len() - count;
    (first..all.len()).filter(move |at| *at == first || all[*at] != all[*at - 1])
}

impl Model for Moving {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut databases = [None; DATABASES];
        databases[0] = Some(EMPTY);
        let mut requests = [Request::Unknown; REQUESTS];
        requests[..self.writes + self.reads].fill(Request::Waiting);
        vec![State {
            row: Row { place: 0, target: None },
            databases,
            gateways: [View::Nothing; 2],
            movers: [IDLE; 2],
            requests,
            late_copy: None,
            shown: EMPTY,
            stale: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        self.gateway_actions(state, actions);
        self.mover_actions(state, actions);
        if state.late_copy.is_some() {
            actions.push(Action::LateCopyArrives);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Tick => self.tick(&mut state),
            Action::AskForRow { gateway } => {
                // If the row is moving, the gateway answers 503, which changes nothing here.
                state.gateways[gateway] = match state.row {
                    Row { place, target: None } => View::Asked { place, left: self.lease },
                    Row { .. } => View::Nothing,
                };
            }
            Action::RowArrives { gateway } => {
                if let View::Asked { place, left } = state.gateways[gateway] {
                    state.gateways[gateway] = View::Held { place, left };
                }
            }
            Action::Send { gateway, request } => {
                if let View::Held { place, left } = state.gateways[gateway] {
                    state.requests[request] = Request::Sent { place, left };
                }
            }
            Action::DatabaseAnswers { request } | Action::LateWriteArrives { request } => {
                self.database_answers(&mut state, request);
            }
            Action::AnswerClient { request } => self.answer_client(&mut state, request),
            Action::GiveUp { request } => {
                if let Request::Sent { place, .. } = state.requests[request] {
                    let is_write = request < self.writes;
                    state.requests[request] =
                        if is_write { Request::Late(place) } else { Request::Waiting };
                }
            }
            Action::ReadRow { mover } => {
                let left = if self.has(Rule::WaitFromSwap) { 0 } else { self.lease };
                let mut target = None;
                if !self.has(Rule::NameBeforeCreating) {
                    let database = state.fresh();
                    state.databases[database as usize] = Some(EMPTY);
                    target = Some(database);
                }
                state.movers[mover] =
                    Mover { step: Step::Swap { left }, current: true, target, ..IDLE };
            }
            Action::GoOn { mover, .. } => self.go_on(&mut state, mover),
            Action::GoBack { mover } => {
                let target = state.row.target;
                state.swap(mover, Row { target: None, ..before.row });
                state.movers[mover] = Mover { step: Step::Drop(Why::WentBack), target, ..IDLE };
            }
            Action::FindInList { mover, database } => {
                let me = &mut state.movers[mover];
                let target = Some(database);
                *me = if me.step == Step::ListLate {
                    Mover { step: Step::Drop(Why::Swept), target, ..IDLE }
                } else if self.has(Rule::ListBeforeRow) {
                    Mover { step: Step::LookUp, target, ..IDLE }
                } else {
                    let Row { place, target } = state.row;
                    Mover { step: Step::ListLate, source: Some(place), target, ..IDLE }
                };
            }
            Action::SendCopyAgain { mover } => {
                self.leave_copy(&mut state, mover);
            }
            Action::Kill { mover, copy_is_sent } => {
                if copy_is_sent {
                    self.leave_copy(&mut state, mover);
                }
                state.movers[mover] = IDLE;
            }
            Action::LateCopyArrives => {
                if let Some((database, record, value)) = state.late_copy.take()
                    && let Some(records) = &mut state.databases[database as usize]
                {
                    records[record] = value;
                }
            }
        }
        self.alike(&mut state);
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties()
    }
}
