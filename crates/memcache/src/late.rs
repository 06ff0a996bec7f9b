//! Servers that timed out during a call on many keys: nothing more of the call is sent to them, so that it waits for
//! the timeout once for each server, however many portions its keys come in.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::cluster::Sorted;
use crate::{Error, ErrorKind};

/// The servers that were late in one call.
#[derive(Default)]
pub(super) struct Late(Mutex<BTreeMap<usize, (String, String)>>);

impl Late {
    fn get(&self) -> MutexGuard<'_, BTreeMap<usize, (String, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a failure on a server.
    pub(crate) fn note(&self, at: usize, name: &str, error: &Error) {
        if error.is_timeout() {
            self.get().entry(at).or_insert_with(|| (name.to_owned(), error.context().to_owned()));
        }
    }

    /// Takes the keys of late servers out of a portion, as refused.
    pub(crate) fn refuse(&self, sorted: &mut Sorted) {
        for (at, (name, why)) in &*self.get() {
            for (n, _) in sorted.servers.remove(at).into_iter().flatten() {
                let what = format!("not sent after an earlier failure: {why}");
                let error = Error::new(ErrorKind::Timeout, what).in_place(name.clone());
                sorted.refused.push((n, error));
            }
        }
    }
}
