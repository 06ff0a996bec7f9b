//! Writes that are not waited for, until a barrier.

use super::{Client, Until, connection::Deadline, pool::Lease};
use crate::{
    Result,
    calls::{self, Packed},
    cluster::Route,
    expiry::Expiry,
    protocol::{Call, Dialect, How, Loss, Quiet},
    statistics::add,
    value::Item,
};

/// From so many bytes on, what is gathered is sent.
const ENOUGH: usize = 16 << 10;

/// Writes that are gathered and sent without waiting for answers. What fails is told at the
/// [`barrier`](NoBlock::barrier); without one, nobody knows what was done, and what is gathered
/// yet is not sent.
///
/// ```no_run
/// # use steelyard_memcache::{Client, Options, Expiry};
/// # let client = Client::new(["cache1"], Options::default())?;
/// let mut writes = client.noblock();
/// for n in 0..1000 {
///     writes.set(format!("key{n}"), b"value", Expiry::Never)?;
/// }
/// let lost = writes.barrier();
/// assert!(lost.is_empty());
/// # Ok::<(), steelyard_memcache::Error>(())
/// ```
#[must_use = "barrier() reports what failed"]
pub struct NoBlock<'c> {
    client: &'c Client,
    lanes: Vec<Option<Lane<'c>>>,
    losses: Vec<Loss>,
}

struct Lane<'c> {
    lease: Lease<'c>,
    dialect: Dialect,
    quiet: Quiet,
}

impl Client {
    /// Writes that are not waited for. It holds a connection to each server it writes to.
    pub fn noblock(&self) -> NoBlock<'_> {
        let lanes = self.shared.pools.iter().map(|_| None).collect();
        NoBlock { client: self, lanes, losses: Vec::new() }
    }
}

impl NoBlock<'_> {
    /// Stores a value.
    ///
    /// # Errors
    /// What is known beforehand: a key that cannot be, a server that is away.
    #[inline]
    pub fn set(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: impl Into<Expiry>,
    ) -> Result<()> {
        self.store(How::Set, key, Item::new(value.as_ref(), expiry))
    }

    /// Stores a value with flags in any way.
    ///
    /// # Errors
    /// As those of [`set`](NoBlock::set).
    #[inline]
    pub fn store(&mut self, how: How, key: impl AsRef<[u8]>, item: Item<'_>) -> Result<()> {
        let packed = Packed::new(&self.client.shared.cluster, item)?;
        self.add(packed.call(how, key.as_ref(), None))
    }

    /// Deletes a value, if there is one.
    ///
    /// # Errors
    /// As those of [`set`](NoBlock::set).
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(calls::delete(key.as_ref()))
    }

    /// Keeps a value for so long from now on, if there is one.
    ///
    /// # Errors
    /// As those of [`set`](NoBlock::set).
    pub fn touch(&mut self, key: impl AsRef<[u8]>, expiry: impl Into<Expiry>) -> Result<()> {
        self.add(calls::touch(key.as_ref(), expiry.into()))
    }

    #[inline]
    fn add(&mut self, call: Call<'_>) -> Result<()> {
        let shared = &self.client.shared;
        let cluster = &shared.cluster;
        let form = cluster.keys.form(call.key)?;
        let (at, call) = match cluster.route(call.key) {
            Route::To(at) => (at, call),
            Route::Gutter(at) => (at, cluster.for_gutter(call)),
            Route::Nowhere => return Ok(()),
            Route::Dead(at) => return Err(cluster.nodes[at].is_dead()),
        };
        let lane = match &mut self.lanes[at] {
            Some(lane) => lane,
            empty => {
                let (lease, dialect) = shared.lease(at, &Deadline::new(self.client.timeout))?;
                empty.insert(Lane { lease, dialect, quiet: Quiet::default() })
            }
        };
        if lane.dialect == Dialect::Classic {
            let possible = call.possible(form, lane.dialect);
            possible.map_err(|e| e.in_place(cluster.nodes[at].name.clone()))?;
        }
        lane.quiet.add(&call, form, &cluster.sent(lane.dialect));
        if lane.quiet.out.len() >= ENOUGH {
            self.run(at, Until::Sent);
        }
        Ok(())
    }

    /// Sends what is gathered for a server, or all of it and reads what it says.
    fn run(&mut self, at: usize, until: Until) {
        let shared = &self.client.shared;
        let Some(lane) = &mut self.lanes[at] else { return };
        if until == Until::Answered {
            lane.quiet.finish();
            if lane.quiet.settled() {
                return;
            }
        }
        let connection = lane.lease.connection.as_mut().expect("a lease that was opened");
        let deadline = Deadline::new(self.client.timeout);
        if let Err(failure) = connection.run(&mut lane.quiet, deadline, until) {
            shared.note(at, &failure, deadline.limit);
            add(&shared.cluster.counters.discarded, 1);
            lane.quiet.fail(&|| failure.error(&shared.cluster.nodes[at]));
            self.losses.append(&mut lane.quiet.take_losses());
            // The next write opens another.
            self.lanes[at] = None;
        }
    }

    /// Sends what is left, waits until all is done, and tells what was not.
    #[must_use = "it tells which writes failed"]
    pub fn barrier(&mut self) -> Vec<Loss> {
        for at in 0..self.lanes.len() {
            self.run(at, Until::Answered);
            if let Some(lane) = &mut self.lanes[at] {
                self.client.shared.cluster.note_answer(at);
                let name = &self.client.shared.cluster.nodes[at].name;
                let losses = lane.quiet.take_losses().into_iter();
                let placed = |loss: Loss| Loss { error: loss.error.in_place(name.clone()), ..loss };
                self.losses.extend(losses.map(placed));
            }
        }
        std::mem::take(&mut self.losses)
    }
}

impl Drop for NoBlock<'_> {
    fn drop(&mut self) {
        for lane in self.lanes.iter_mut().filter_map(Option::take) {
            // Who awaits something yet would read it as the answer to the next call.
            if lane.quiet.settled() {
                lane.lease.give_back();
            }
        }
    }
}
