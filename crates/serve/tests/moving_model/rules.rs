//! The rules that a check can leave out, one at a time, to show what each of them prevents.

/// A rule of the protocol; `moving.md` has the protocol as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A gateway counts the lease from before it asks for the row, not from when the row arrives.
    LeaseFromAsking,
    /// A gateway checks the lease again when the database has answered.
    SecondCheck,
    /// The second check is of the lease of the row that the request used, not of a newer row.
    LeaseOfRowUsed,
    /// A gateway that reads the row again acknowledges only if the row is active.
    ActiveAgain,
    /// A mover waits one lease before it copies.
    Wait,
    /// A mover that takes over waits, too.
    WaitAfterTakeOver,
    /// The wait is counted from the answer to the swap, not from before the swap was sent.
    WaitFromSwap,
    /// A mover that takes over copies to a new target.
    FreshTarget,
    /// A target is created after the row names it.
    NameBeforeCreating,
    /// A copy write that was not answered ends the run; it is not sent again to the same target.
    SendOnce,
    /// The copy is compared with the source.
    Comparison,
    /// The last write of the row is a compare-and-swap.
    ConditionalSwitch,
    /// A sweep lists the databases first and reads the row after that.
    ListBeforeRow,
}
