//! Converts protocol answers into results for the caller. `None` stands for a call that was not sent because its server
//! is dead, where that counts as a miss.

use super::{
    cluster::Cluster,
    protocol::Answer,
    value::{Swap, Value},
};
use crate::{Error, ErrorKind, Result};

#[cold]
fn odd(answer: &Answer) -> Error {
    Error::malformed(format!("unexpected answer from the server: {answer:?}"))
}

pub(crate) fn value(cluster: &Cluster, answer: Option<Answer>) -> Result<Option<Value>> {
    match answer {
        Some(Answer::Found(found)) => cluster.value(found).map(Some),
        Some(Answer::Miss) | None => Ok(None),
        Some(other) => Err(odd(&other)),
    }
}

/// Of one of many values that were to be stored.
///
/// # Errors
/// [`Conflict`](ErrorKind::Conflict) where its key is taken.
pub(crate) fn stored(answer: Option<Answer>) -> Result<()> {
    match answer {
        Some(Answer::Done) | None => Ok(()),
        Some(Answer::NotStored) => Err(Error::new(ErrorKind::Conflict, "the key already exists")),
        Some(other) => Err(odd(&other)),
    }
}

/// Whether something was done; what went nowhere is.
pub(crate) fn done(answer: Option<Answer>) -> Result<bool> {
    match answer {
        Some(Answer::Done) | None => Ok(true),
        Some(Answer::Miss | Answer::NotStored | Answer::Exists) => Ok(false),
        Some(other) => Err(odd(&other)),
    }
}

/// Whether something was there; for what went nowhere nothing is.
pub(crate) fn was_there(answer: Option<Answer>) -> Result<bool> {
    match answer {
        None => Ok(false),
        some => done(some),
    }
}

pub(crate) fn swap(answer: Option<Answer>) -> Result<Swap> {
    match answer {
        Some(Answer::Done) | None => Ok(Swap::Stored),
        Some(Answer::Exists) => Ok(Swap::Changed),
        Some(Answer::Miss | Answer::NotStored) => Ok(Swap::Gone),
        Some(other) => Err(odd(&other)),
    }
}

pub(crate) fn number(answer: Option<Answer>) -> Result<Option<u64>> {
    match answer {
        Some(Answer::Number(number)) => Ok(Some(number)),
        Some(Answer::Miss | Answer::NotStored) | None => Ok(None),
        Some(other) => Err(odd(&other)),
    }
}

pub(crate) fn text(answer: Option<Answer>) -> Result<Option<String>> {
    match answer {
        Some(Answer::Text(text)) => Ok(Some(text)),
        Some(Answer::Miss) | None => Ok(None),
        Some(other) => Err(odd(&other)),
    }
}
