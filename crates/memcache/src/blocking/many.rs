//! Operations on many keys.
//!
//! Keys come in portions; of each, every server gets its own at once, and all are read as they
//! come. Memory is that of a portion, however many keys there are.

use std::{borrow::Cow, cell::RefCell};

use super::{
    Client,
    connection::{Deadline, wait},
    pool::Lease,
};
use crate::{
    Error, Result, answers,
    calls::{self, Packed},
    cluster::Sorted,
    compress::unpack,
    expiry::Expiry,
    failure::Failure,
    key::Form,
    late::Late,
    portion::Portions,
    protocol::{Answer, Call, Exchange, GetMany, How, Many, Sent, reply::Marks},
    statistics::add,
    value::{Failed, Item, Value, View},
};

/// Work on one server that is under way.
struct Lane<'c, E> {
    at: usize,
    lease: Lease<'c>,
    exchange: E,
    sent: bool,
    answered: bool,
    done: Option<Result<(), Failure>>,
}

/// # Operations on many keys
///
/// A key that cannot be, or whose server is away, fails alone. The client's time is that for each
/// portion of some hundreds of keys.
impl Client {
    /// Reads many values and hands each to `each` as it comes: number and key, and the value or
    /// none. In no order.
    pub fn get_each<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
        mut each: impl FnMut(usize, &K, Result<Option<View<'_>>>),
    ) {
        let (late, mut first) = (Late::default(), 0);
        for keys in Portions::new(keys.into_iter(), |_: &K| 0) {
            self.get_portion(&keys, &late, &mut |n, found| each(first + n, &keys[n], found));
            first += keys.len();
        }
    }

    /// Reads many values: for each key its value, or none, or why it could not be read.
    pub fn get_multi<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        let mut values: Vec<_> = keys.iter().map(|_| Ok(None)).collect();
        self.get_each(keys, |n, _, found| {
            values[n] = found.map(|found| found.map(View::into_value));
        });
        values
    }

    fn get_portion<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        late: &Late,
        each: &mut dyn FnMut(usize, Result<Option<View<'_>>>),
    ) {
        let cluster = &self.shared.cluster;
        let mut sorted = cluster.sort(keys.iter().map(AsRef::as_ref));
        late.refuse(&mut sorted);
        let mut found = vec![false; keys.len()];
        for numbers in sorted.servers.values_mut() {
            // Those in Base64 are asked for otherwise, and last.
            numbers.sort_by_key(|(_, form)| *form == Form::Coded);
        }
        let mut hits = 0;
        {
            let seen = RefCell::new((&mut *each, &mut found, &mut hits));
            let view = |n: usize, bytes: &[u8], marks: Marks| {
                let (each, found, hits) = &mut *seen.borrow_mut();
                found[n] = true;
                **hits += 1;
                if cluster.options.compression.is_none() {
                    return each(
                        n,
                        Ok(Some(View { bytes: Cow::Borrowed(bytes), flags: marks.flags })),
                    );
                }
                let whole = unpack(bytes.to_vec(), marks.flags, cluster.options.max_value);
                each(n, whole.map(|(bytes, flags)| Some(View { bytes: bytes.into(), flags })));
            };
            let key = |n: usize| keys[n].as_ref();
            self.on_servers(
                &mut sorted,
                late,
                |sent, numbers| GetMany::new(sent, numbers, key, view),
                GetMany::unanswered,
                |n, error| {
                    let (each, found, _) = &mut *seen.borrow_mut();
                    found[n] = true;
                    each(n, Err(error));
                },
            );
        }
        add(&cluster.counters.hits, hits);
        let mut misses = 0;
        for (n, found) in found.iter().enumerate() {
            if !found {
                misses += 1;
                each(n, Ok(None));
            }
        }
        add(&cluster.counters.misses, misses);
    }

    /// Stores many values; what failed is told. What is stored is stored, whatever failed.
    #[must_use = "it tells which keys failed"]
    pub fn set_multi<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        items: impl IntoIterator<Item = (K, V)>,
        expiry: impl Into<Expiry>,
    ) -> Vec<Failed> {
        self.store_multi(How::Set, items, expiry.into())
    }

    /// Stores those of many values that are not there yet; what failed is told, of them those that
    /// are there with [`Conflict`](crate::ErrorKind::Conflict).
    #[must_use = "it tells which keys failed"]
    pub fn add_multi<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        items: impl IntoIterator<Item = (K, V)>,
        expiry: impl Into<Expiry>,
    ) -> Vec<Failed> {
        self.store_multi(How::Add, items, expiry.into())
    }

    fn store_multi<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        how: How,
        items: impl IntoIterator<Item = (K, V)>,
        expiry: Expiry,
    ) -> Vec<Failed> {
        let cluster = &self.shared.cluster;
        let mut failed = Vec::new();
        let (late, mut first) = (Late::default(), 0);
        for items in Portions::new(items.into_iter(), |(_, value): &(K, V)| value.as_ref().len()) {
            let mut refused = |n: usize, error| {
                let key = items[n].0.as_ref().to_vec();
                failed.push(Failed { number: first + n, key, error });
            };
            let mut packed = Vec::with_capacity(items.len());
            for (n, (_, value)) in items.iter().enumerate() {
                let item = Item::new(value.as_ref(), expiry);
                packed.push(Packed::new(cluster, item).map_err(|e| refused(n, e)).ok());
            }
            let call = |n: usize| {
                let packed: Option<&Packed<'_>> = packed[n].as_ref();
                packed.map(|packed| packed.call(how, items[n].0.as_ref(), None))
            };
            let keys = items.iter().map(|(key, _)| key.as_ref());
            self.call_portion(keys, &late, &call, &mut |n, done| {
                done.and_then(answers::stored).unwrap_or_else(|e| refused(n, e));
            });
            first += items.len();
        }
        failed
    }

    /// Deletes many values: how many there were, and what failed.
    #[must_use = "it tells which keys failed"]
    pub fn delete_multi<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> (u64, Vec<Failed>) {
        let (mut count, mut failed, mut first) = (0, Vec::new(), 0);
        let late = Late::default();
        for keys in Portions::new(keys.into_iter(), |_: &K| 0) {
            let call = |n: usize| Some(calls::delete(keys[n].as_ref()));
            let sent = keys.iter().map(AsRef::as_ref);
            self.call_portion(sent, &late, &call, &mut |n, done| match done {
                Ok(Some(Answer::Done)) => count += 1,
                Ok(_) => {}
                Err(error) => {
                    let key = keys[n].as_ref().to_vec();
                    failed.push(Failed { number: first + n, key, error });
                }
            });
            first += keys.len();
        }
        (count, failed)
    }

    /// Makes a call of each key of a portion. `call` gives none where there is nothing to do.
    fn call_portion<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        late: &Late,
        call: &dyn Fn(usize) -> Option<Call<'k>>,
        each: &mut dyn FnMut(usize, Result<Option<Answer>>),
    ) {
        let cluster = &self.shared.cluster;
        let mut sorted = cluster.sort(keys);
        late.refuse(&mut sorted);
        for numbers in sorted.servers.values_mut() {
            numbers.retain(|(n, _)| call(*n).is_some());
        }
        sorted.nowhere.drain(..).for_each(|n| each(n, Ok(None)));
        let mut writes = 0;
        {
            let seen = RefCell::new((&mut *each, &mut writes));
            let answered = |n: usize, answer: Result<Answer>| {
                let (each, writes) = &mut *seen.borrow_mut();
                **writes += 1;
                each(n, answer.map(Some));
            };
            let call = |n: usize| call(n).expect("those without were left out");
            self.on_servers(
                &mut sorted,
                late,
                |sent, numbers| Many::new(sent, numbers, call, answered),
                Many::unanswered,
                |n, error| (seen.borrow_mut().0)(n, Err(error)),
            );
        }
        add(&cluster.counters.writes, writes);
    }

    /// Runs an exchange on each server that has keys of a portion, side by side, and tells what
    /// failed.
    fn on_servers<'s, E: Exchange>(
        &'s self,
        sorted: &'s mut Sorted,
        late: &Late,
        make: impl Fn(Sent<'s>, &'s [(usize, Form)]) -> E,
        unanswered: impl Fn(&E) -> &'s [(usize, Form)],
        mut failed: impl FnMut(usize, Error),
    ) {
        let cluster = &self.shared.cluster;
        let deadline = Deadline::new(self.timeout);
        sorted.refused.drain(..).for_each(|(n, error)| failed(n, error));
        let mut lanes: Vec<Lane<'s, E>> = Vec::with_capacity(sorted.servers.len());
        for (&at, numbers) in &mut sorted.servers {
            let (lease, dialect) = match self.shared.lease(at, &deadline) {
                Ok(leased) => leased,
                Err(e) => {
                    late.note(at, &cluster.nodes[at].name, &e);
                    let again = || {
                        Error::new(e.kind(), e.context()).in_place(cluster.nodes[at].name.clone())
                    };
                    numbers.iter().for_each(|(n, _)| failed(*n, again()));
                    continue;
                }
            };
            if dialect == crate::protocol::Dialect::Classic {
                numbers.retain(|(n, form)| {
                    if *form == Form::Coded {
                        let what = "a key with spaces or control characters needs memcached 1.6.10 or later";
                        failed(*n, Error::unsupported(what).in_place(cluster.nodes[at].name.clone()));
                    }
                    *form != Form::Coded
                });
            }
            if !numbers.is_empty() {
                let exchange = make(cluster.sent(dialect), numbers);
                lanes.push(Lane { at, lease, exchange, sent: false, answered: false, done: None });
            }
        }
        // One server is the usual case, and needs no watching of several.
        if let [lane] = &mut lanes[..] {
            let run = self.shared.run(lane.at, &mut lane.lease, &mut lane.exchange, deadline);
            if let Err(e) = run {
                let name = &cluster.nodes[lane.at].name;
                late.note(lane.at, name, &e);
                for (n, _) in unanswered(&lane.exchange) {
                    failed(*n, Error::new(e.kind(), e.context()).in_place(name.clone()));
                }
                return;
            }
            lane.done = Some(Ok(()));
        } else {
            side_by_side(&mut lanes, &deadline);
        }
        for mut lane in lanes {
            let done = match lane.done.take() {
                Some(Err(failure)) => Some(self.once_more(&mut lane, failure, deadline)),
                done => done,
            };
            match done {
                Some(Ok(())) => {
                    cluster.note_answer(lane.at);
                    lane.lease.give_back();
                }
                Some(Err(failure)) => {
                    let node = &cluster.nodes[lane.at];
                    late.note(lane.at, &node.name, &failure.error(node));
                    for (n, _) in unanswered(&lane.exchange) {
                        failed(*n, failure.error(node));
                    }
                }
                None => unreachable!("side by side ends with all of them"),
            }
        }
    }

    /// After a failure beside others: once more, alone, where that may be.
    #[cold]
    fn once_more<E: Exchange>(
        &self,
        lane: &mut Lane<'_, E>,
        failure: Failure,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        lane.lease.connection = None;
        let again = matches!(failure, Failure::Closed(_)) && lane.exchange.again();
        let run = |lane: &mut Lane<'_, E>| {
            let mut connection = self.shared.open(lane.at, &deadline)?;
            connection.run(&mut lane.exchange, deadline, super::Until::Answered)?;
            lane.lease.connection = Some(connection);
            Ok(())
        };
        let failure = match again {
            true => match run(lane) {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            },
            false => failure,
        };
        self.shared.note(lane.at, &failure, deadline.limit);
        Err(failure)
    }
}

/// Runs exchanges with several servers at once.
fn side_by_side<E: Exchange>(lanes: &mut [Lane<'_, E>], deadline: &Deadline) {
    fn push<E: Exchange>(lane: &mut Lane<'_, E>) {
        let connection = lane.lease.connection.as_mut().expect("a lane has a connection");
        match connection.push(&mut lane.exchange) {
            Ok(sent) => lane.sent = sent,
            Err(failure) => lane.done = Some(Err(failure)),
        }
    }
    for lane in lanes.iter_mut() {
        let connection = lane.lease.connection.as_mut().expect("a lane has a connection");
        connection.begin(&mut lane.exchange);
        push(lane);
    }
    loop {
        let mut open: Vec<_> = lanes.iter_mut().filter(|lane| lane.done.is_none()).collect();
        if open.is_empty() {
            return;
        }
        let ready = deadline.left().and_then(|left| {
            let mut wishes = Vec::with_capacity(open.len());
            for lane in &open {
                let connection = lane.lease.connection.as_ref().expect("a lane has a connection");
                wishes.push(connection.wish(lane.sent));
            }
            wait(&mut wishes, left)
        });
        let ready = match ready {
            Ok(ready) => ready,
            Err(_) => {
                let late = || Some(Err(Failure::Late(deadline.limit)));
                open.iter_mut().for_each(|lane| lane.done = late());
                return;
            }
        };
        for (lane, ready) in open.into_iter().zip(ready) {
            use nix::poll::PollFlags;
            let connection = lane.lease.connection.as_mut().expect("a lane has a connection");
            if ready.intersects(!PollFlags::POLLOUT) {
                match connection.pull(&mut lane.exchange) {
                    Ok(Some(true)) => lane.answered = true,
                    Ok(_) => {}
                    Err(failure) => lane.done = Some(Err(failure)),
                }
            }
            if lane.done.is_none() && !lane.sent && ready.contains(PollFlags::POLLOUT) {
                push(lane);
            }
            if lane.done.is_none() && lane.sent && lane.answered {
                lane.done = Some(Ok(()));
            }
        }
    }
}
