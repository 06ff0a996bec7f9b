//! Operations on many keys.
//!
//! Keys come in portions; of each, every server gets its own at once, and all are read as they
//! come. Memory is that of a portion, however many keys there are.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use futures_util::future::join_all;

use super::{AsyncClient, connection::Deadline};
use crate::{
    Error, Result, answers,
    calls::{self, Packed},
    cluster::Sorted,
    compress::unpack,
    expiry::Expiry,
    key::Form,
    late::Late,
    portion::Portions,
    protocol::{Answer, Call, Dialect, Exchange, GetMany, How, Many, Sent, reply::Marks},
    statistics::add,
    value::{Failed, Item, Value, View},
};

/// What is done with what is found.
type Each<'e> = dyn FnMut(usize, Result<Option<View<'_>>>) + Send + 'e;
/// What is done with answers.
type Answered<'e> = dyn FnMut(usize, Result<Option<Answer>>) + Send + 'e;

/// # Operations on many keys
///
/// A key that cannot be, or whose server is away, fails alone. The client's time is that for each
/// portion of some hundreds of keys.
impl AsyncClient {
    /// Reads many values and hands each to `each` as it comes: number and key, and the value or
    /// none. In no order.
    pub async fn get_each<K: AsRef<[u8]> + Send + Sync>(
        &self,
        keys: impl IntoIterator<Item = K, IntoIter: Send>,
        mut each: impl FnMut(usize, &K, Result<Option<View<'_>>>) + Send,
    ) {
        let (late, mut first) = (Late::default(), 0);
        for keys in Portions::new(keys.into_iter(), |_: &K| 0) {
            self.get_portion(&keys, &late, &mut |n, found| each(first + n, &keys[n], found)).await;
            first += keys.len();
        }
    }

    /// Reads many values: for each key its value, or none, or why it could not be read.
    pub async fn get_multi<K: AsRef<[u8]> + Sync>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        let mut values: Vec<_> = keys.iter().map(|_| Ok(None)).collect();
        self.get_each(keys, |n, _, found| {
            values[n] = found.map(|found| found.map(View::into_value));
        })
        .await;
        values
    }

    async fn get_portion<K: AsRef<[u8]> + Sync>(
        &self,
        keys: &[K],
        late: &Late,
        each: &mut Each<'_>,
    ) {
        let cluster = &self.shared.cluster;
        let mut sorted = cluster.sort(keys.iter().map(AsRef::as_ref));
        late.refuse(&mut sorted);
        for numbers in sorted.servers.values_mut() {
            // Those in Base64 are asked for otherwise, and last.
            numbers.sort_by_key(|(_, form)| *form == Form::Coded);
        }
        // All of it is one task's: nobody ever waits for the lock.
        let seen = Mutex::new((each, vec![false; keys.len()], 0));
        let view = |n: usize, bytes: &[u8], marks: Marks| {
            let (each, found, hits) = &mut *seen.lock().unwrap_or_else(PoisonError::into_inner);
            found[n] = true;
            *hits += 1;
            if cluster.options.compression.is_none() {
                return each(n, Ok(Some(View { bytes: Cow::Borrowed(bytes), flags: marks.flags })));
            }
            let whole = unpack(bytes.to_vec(), marks.flags, cluster.options.max_value);
            each(n, whole.map(|(bytes, flags)| Some(View { bytes: bytes.into(), flags })));
        };
        let key = |n: usize| keys[n].as_ref();
        let failed = |n: usize, error: Error| {
            let (each, found, _) = &mut *seen.lock().unwrap_or_else(PoisonError::into_inner);
            found[n] = true;
            each(n, Err(error));
        };
        self.on_servers(
            &mut sorted,
            late,
            |sent, numbers| GetMany::new(sent, numbers, key, view),
            GetMany::unanswered,
            failed,
        )
        .await;
        let (each, found, hits) = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
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
    pub async fn set_multi<K: AsRef<[u8]> + Send + Sync, V: AsRef<[u8]> + Send + Sync>(
        &self,
        items: impl IntoIterator<Item = (K, V), IntoIter: Send>,
        expiry: impl Into<Expiry>,
    ) -> Vec<Failed> {
        self.store_multi(How::Set, items, expiry.into()).await
    }

    /// Stores those of many values that are not there yet; what failed is told, of them those that
    /// are there with [`Conflict`](crate::ErrorKind::Conflict).
    #[must_use = "it tells which keys failed"]
    pub async fn add_multi<K: AsRef<[u8]> + Send + Sync, V: AsRef<[u8]> + Send + Sync>(
        &self,
        items: impl IntoIterator<Item = (K, V), IntoIter: Send>,
        expiry: impl Into<Expiry>,
    ) -> Vec<Failed> {
        self.store_multi(How::Add, items, expiry.into()).await
    }

    async fn store_multi<K: AsRef<[u8]> + Send + Sync, V: AsRef<[u8]> + Send + Sync>(
        &self,
        how: How,
        items: impl IntoIterator<Item = (K, V), IntoIter: Send>,
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
            let mut done = |n: usize, done: Result<Option<Answer>>| {
                done.and_then(answers::stored).unwrap_or_else(|e| refused(n, e));
            };
            self.call_portion(cluster.sort(keys), &late, &call, &mut done).await;
            first += items.len();
        }
        failed
    }

    /// Deletes many values: how many there were, and what failed.
    #[must_use = "it tells which keys failed"]
    pub async fn delete_multi<K: AsRef<[u8]> + Send + Sync>(
        &self,
        keys: impl IntoIterator<Item = K, IntoIter: Send>,
    ) -> (u64, Vec<Failed>) {
        let (mut count, mut failed, mut first) = (0, Vec::new(), 0);
        let late = Late::default();
        for keys in Portions::new(keys.into_iter(), |_: &K| 0) {
            let call = |n: usize| Some(calls::delete(keys[n].as_ref()));
            let mut done = |n: usize, done: Result<Option<Answer>>| match done {
                Ok(Some(Answer::Done)) => count += 1,
                Ok(_) => {}
                Err(error) => {
                    let key = keys[n].as_ref().to_vec();
                    failed.push(Failed { number: first + n, key, error });
                }
            };
            let sorted = self.shared.cluster.sort(keys.iter().map(AsRef::as_ref));
            self.call_portion(sorted, &late, &call, &mut done).await;
            first += keys.len();
        }
        (count, failed)
    }

    /// Makes a call of each key of a portion. `call` gives none where there is nothing to do.
    async fn call_portion<'k>(
        &self,
        mut sorted: Sorted,
        late: &Late,
        call: &(dyn Fn(usize) -> Option<Call<'k>> + Sync),
        each: &mut Answered<'_>,
    ) {
        late.refuse(&mut sorted);
        for numbers in sorted.servers.values_mut() {
            numbers.retain(|(n, _)| call(*n).is_some());
        }
        sorted.nowhere.drain(..).for_each(|n| each(n, Ok(None)));
        let seen = Mutex::new((each, 0));
        let answered = |n: usize, answer: Result<Answer>| {
            let (each, writes) = &mut *seen.lock().unwrap_or_else(PoisonError::into_inner);
            *writes += 1;
            each(n, answer.map(Some));
        };
        let call = |n: usize| call(n).expect("those without were left out");
        let failed = |n: usize, error: Error| {
            (seen.lock().unwrap_or_else(PoisonError::into_inner).0)(n, Err(error));
        };
        self.on_servers(
            &mut sorted,
            late,
            |sent, numbers| Many::new(sent, numbers, call, answered),
            Many::unanswered,
            failed,
        )
        .await;
        let writes = seen.into_inner().unwrap_or_else(PoisonError::into_inner).1;
        add(&self.shared.cluster.counters.writes, writes);
    }

    /// Runs an exchange on each server that has keys of a portion, side by side, and tells what
    /// failed.
    async fn on_servers<'s, E: Exchange + Send>(
        &'s self,
        sorted: &'s mut Sorted,
        late: &Late,
        make: impl Fn(Sent<'s>, &'s [(usize, Form)]) -> E + Sync,
        unanswered: impl Fn(&E) -> &'s [(usize, Form)] + Sync,
        failed: impl Fn(usize, Error) + Sync,
    ) {
        let cluster = &self.shared.cluster;
        let deadline = Deadline::new(self.timeout);
        sorted.refused.drain(..).for_each(|(n, error)| failed(n, error));
        let servers: &mut BTreeMap<usize, Vec<(usize, Form)>> = &mut sorted.servers;
        let (make, unanswered, failed) = (&make, &unanswered, &failed);
        let lanes = servers.iter_mut().map(|(&at, numbers)| async move {
            let fail = |numbers: &[(usize, Form)], e: &Error| {
                late.note(at, &cluster.nodes[at].name, e);
                for (n, _) in numbers {
                    let name = cluster.nodes[at].name.clone();
                    failed(*n, Error::new(e.kind(), e.context()).in_place(name));
                }
            };
            let (mut lease, dialect) = match self.shared.lease(at, &deadline).await {
                Ok(leased) => leased,
                Err(e) => return fail(numbers, &e),
            };
            if dialect == Dialect::Classic {
                let what =
                    "a key with spaces or control characters needs memcached 1.6.10 or later";
                let old = Error::unsupported(what);
                numbers.retain(|number| {
                    if number.1 == Form::Coded {
                        fail(&[*number], &old);
                    }
                    number.1 != Form::Coded
                });
            }
            if numbers.is_empty() {
                return lease.give_back();
            }
            let mut exchange = make(cluster.sent(dialect), numbers);
            match self.shared.run(at, &mut lease, &mut exchange, deadline).await {
                Ok(()) => lease.give_back(),
                Err(e) => fail(unanswered(&exchange), &e),
            }
        });
        join_all(lanes).await;
    }
}
