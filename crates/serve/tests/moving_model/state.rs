//! A state of the model: the row, the databases, the processes and the requests.
//!
//! Time is kept as what is left of each lease and each wait. So a state has no clock in it, and
//! the model needs no last tick.

pub(crate) const RECORDS: usize = 2;
/// More than are in use at the same time; [`State::fresh`] fails where it is not enough.
pub(crate) const DATABASES: usize = 8;
pub(crate) const REQUESTS: usize = 4;

pub(crate) type Database = u8;
pub(crate) type Records = [History; RECORDS];

pub(crate) const EMPTY: Records = [History(0); RECORDS];

/// The writes that a record has taken, oldest first.
///
/// It is a whole history, not only the last value, so that the properties can see a write that
/// was lost, applied twice, or replaced by an older one. It is packed, four bits to a write,
/// because a check makes millions of them.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct History(u32);

impl History {
    fn len(self) -> u32 {
        (u32::BITS - self.0.leading_zeros()).div_ceil(4)
    }

    pub(crate) fn with(self, write: usize) -> History {
        assert!(self.len() < 8, "a history has room for eight writes");
        History(self.0 | (write as u32 + 1) << (4 * self.len()))
    }

    fn starts_with(self, other: History) -> bool {
        let beyond = u32::MAX.checked_shl(4 * other.len()).unwrap_or(0);
        self.0 & !beyond == other.0
    }

    pub(crate) fn writes(self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(move |at| (self.0 >> (4 * at) & 15) as usize - 1)
    }

    pub(crate) fn count(self, write: usize) -> usize {
        self.writes().filter(|w| *w == write).count()
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.writes()).finish()
    }
}

/// Whether the records are the earlier ones, or these and later writes after them.
pub(crate) fn continues(records: &Records, earlier: &Records) -> bool {
    records.iter().zip(earlier).all(|(record, earlier)| record.starts_with(*earlier))
}

/// The row of the catalog: active if it has no target, else moving.
///
/// The revision is not a number here: [`Mover::current`] says whether the one that a mover has read
/// is still that of the row. The epoch and the id of the mover are left out, as no rule reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) place: Database,
    pub(crate) target: Option<Database>,
}

/// A gateway's copy of the row; `left` is what is left of the lease, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum View {
    Nothing,
    /// The answer of the catalog, that the row is active, is on its way.
    Asked {
        place: Database,
        left: u8,
    },
    Held {
        place: Database,
        left: u8,
    },
}

/// A request of a client: a write of all records in one transaction, or a read of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    /// Not sent yet, or answered 503 and so free to be sent again.
    Waiting,
    /// On its way to the database; `left` is of the lease of the row that the gateway used.
    Sent {
        place: Database,
        left: u8,
    },
    /// The database has answered, the gateway has not answered yet. `newest`: the answer has
    /// everything in it that was acknowledged before the database gave it.
    Answered {
        place: Database,
        left: u8,
        answer: Records,
        newest: bool,
    },
    /// Answered "may or may not have been done" while still on its way to the database.
    Late(Database),
    Acknowledged,
    /// Answered "may or may not have been done", and no longer on its way.
    Unknown,
}

/// Why a mover drops a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Why {
    Moved,
    WentBack,
    Swept,
}

/// The next step of a mover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    /// It begins a run: a move, a take-over, a going back, or a sweep.
    Idle,
    /// It has read the row and swaps it. `left` is for checks without `Rule::WaitFromSwap`.
    Swap { left: u8 },
    /// It waits. When nothing is left, it creates the target and reads the first record.
    Wait { left: u8 },
    /// It writes a record that it has read to the target, and reads the next one.
    Write { record: usize, value: History },
    /// It compares a record of the source with that of the target.
    Compare { record: usize },
    /// It swaps the row to active, with the target as the place.
    Switch,
    /// It drops the target.
    Drop(Why),
    /// Sweep: it has found the target in the list of databases, and reads the row.
    LookUp,
    /// Sweep without `Rule::ListBeforeRow`: it has read the row, and lists the databases.
    ListLate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mover {
    pub(crate) step: Step,
    /// Whether the revision that it has read is still that of the row.
    pub(crate) current: bool,
    pub(crate) took_over: bool,
    pub(crate) source: Option<Database>,
    pub(crate) target: Option<Database>,
}

pub(crate) const IDLE: Mover =
    Mover { step: Step::Idle, current: false, took_over: false, source: None, target: None };

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) row: Row,
    /// None is a database that was dropped or not created yet.
    pub(crate) databases: [Option<Records>; DATABASES],
    pub(crate) gateways: [View; 2],
    pub(crate) movers: [Mover; 2],
    /// The writes, then the reads. They belong to no gateway: one gateway can have several.
    pub(crate) requests: [Request; REQUESTS],
    /// A copy write that is on its way after its mover ceased to wait for the answer.
    pub(crate) late_copy: Option<(Database, usize, History)>,
    /// The longest histories that an acknowledged answer has shown to a client.
    pub(crate) shown: Records,
    /// Whether an acknowledged answer has ever lacked or contradicted an earlier one.
    pub(crate) stale: bool,
}

impl State {
    /// The records of the database that the row names.
    pub(crate) fn place(&self) -> Records {
        self.databases[self.row.place as usize].unwrap_or(EMPTY)
    }

    /// Writes the row: a compare-and-swap that has succeeded.
    pub(crate) fn swap(&mut self, mover: usize, row: Row) {
        self.row = row;
        for other in &mut self.movers {
            other.current = false;
        }
        self.movers[mover].current = true;
    }

    /// An id that is not in use.
    pub(crate) fn fresh(&self) -> Database {
        (0..DATABASES as u8).find(|id| self.uses(*id) == 0).expect("DATABASES is large enough")
    }

    /// How often the id is in use, as [`State::ids`] counts.
    pub(crate) fn uses(&self, database: Database) -> usize {
        let mut count = 0;
        self.clone().ids(|id| count += usize::from(*id == database));
        count
    }

    /// Every id of a database that is in use, once for each use. Late writes are no uses, as
    /// nothing waits for them.
    pub(crate) fn ids(&mut self, mut each: impl FnMut(&mut Database)) {
        each(&mut self.row.place);
        self.row.target.iter_mut().for_each(&mut each);
        for mover in &mut self.movers {
            mover.source.iter_mut().for_each(&mut each);
            mover.target.iter_mut().for_each(&mut each);
        }
        for view in &mut self.gateways {
            if let View::Asked { place, .. } | View::Held { place, .. } = view {
                each(place);
            }
        }
        for request in &mut self.requests {
            if let Request::Sent { place, .. } | Request::Answered { place, .. } = request {
                each(place);
            }
        }
    }
}
