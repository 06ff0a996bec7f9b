//! Writing and deleting documents, many in a request, and what becomes of each.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use serde_json::json;

use super::{
    TRIES,
    answers::{Found, Listing, Written},
    database::{Database, MANY, MUCH},
    http::of_document,
    name,
};
use crate::{
    Error, ErrorKind, Result,
    store::{
        Key,
        blobs::{changing, named},
    },
};

/// A document to write: its key, and the JSON of a map with its fields.
pub(super) struct Draft<'a> {
    pub key: &'a Key,
    pub fields: Vec<u8>,
}

/// A document in a request: over which revision, and what is in it; nothing is a deletion.
struct Write<'a> {
    key: &'a Key,
    revision: Option<&'a str>,
    fields: Option<&'a [u8]>,
}

/// What becomes of a document in a request that writes several.
enum Fate {
    Done,
    Conflict,
}

impl Database {
    /// Writes documents in place of those with the same keys; of several with one key, the last.
    pub(super) async fn put(&self, drafts: &[Draft<'_>]) -> Result<()> {
        let mut last = HashMap::with_capacity(drafts.len());
        for (at, draft) in drafts.iter().enumerate() {
            last.insert(draft.key, at);
        }
        let drafts: Vec<&Draft> = drafts
            .iter()
            .enumerate()
            .filter(|(at, draft)| last[draft.key] == *at)
            .map(|(_, draft)| draft)
            .collect();
        for part in parts(&drafts) {
            let mut open = part.to_vec();
            for attempt in 0..TRIES {
                let keys: Vec<&Key> = open.iter().map(|draft| draft.key).collect();
                let revisions = self.revisions(&keys).await?;
                let writes = open.iter().map(|draft| {
                    let revision = revisions.get(draft.key).map(String::as_str);
                    Write { key: draft.key, revision, fields: Some(&draft.fields) }
                });
                open = self.conflicts(writes, &open).await?;
                if open.is_empty() {
                    break;
                }
                pause(attempt).await;
            }
            if !open.is_empty() {
                let keys: Vec<_> = open.iter().map(|draft| draft.key).collect();
                let what = format!("were changed by other clients meanwhile, {TRIES} times");
                return Err(conflict(&keys, part.len(), &what));
            }
        }
        Ok(())
    }

    /// Writes documents whose keys are new.
    pub(super) async fn load(&self, drafts: &[Draft<'_>]) -> Result<()> {
        let mut seen = HashSet::with_capacity(drafts.len());
        let twice: Vec<_> =
            drafts.iter().map(|draft| draft.key).filter(|key| !seen.insert(*key)).collect();
        if !twice.is_empty() {
            return Err(conflict(&twice, drafts.len(), "occur twice; nothing was written"));
        }
        let all: Vec<&Draft> = drafts.iter().collect();
        let mut taken = Vec::new();
        for part in parts(&all) {
            let writes = part.iter().map(|draft| Write {
                key: draft.key,
                revision: None,
                fields: Some(&draft.fields),
            });
            taken.extend(self.conflicts(writes, part).await?);
        }
        match taken.is_empty() {
            true => Ok(()),
            false => {
                let keys: Vec<_> = taken.iter().map(|draft| draft.key).collect();
                Err(conflict(&keys, drafts.len(), "already exist; the others were written"))
            }
        }
    }

    /// Writes a document if there is none of its key, and says whether it did. One that was deleted is none.
    pub(super) async fn put_absent(&self, draft: &Draft<'_>) -> Result<bool> {
        let write = Write { key: draft.key, revision: None, fields: Some(&draft.fields) };
        Ok(matches!(self.write(&[write]).await?[..], [Fate::Done]))
    }

    /// Puts a document in the place of the one that is there, or deletes that, if it fits; says whether it did. The
    /// revision that was read has to be there still.
    pub(super) async fn swap(
        &self,
        key: &Key,
        fits: impl Fn(&Found) -> Result<bool>,
        fields: Option<&[u8]>,
    ) -> Result<bool> {
        for attempt in 0..TRIES {
            let found = self.get(std::slice::from_ref(key)).await?.pop().flatten();
            let Some(found) = found else { return Ok(false) };
            if !fits(&found)? {
                return Ok(false);
            }
            let write = Write { key, revision: Some(&found.revision), fields };
            if let [Fate::Done] = self.write(&[write]).await?[..] {
                return Ok(true);
            }
            // Others write, too; what is there now may fit still.
            pause(attempt).await;
        }
        Err(changing(key, TRIES as usize))
    }

    /// Writes, and says which of `all` were in conflict.
    async fn conflicts<'w, T: Copy>(
        &self,
        writes: impl Iterator<Item = Write<'w>>,
        all: &[T],
    ) -> Result<Vec<T>> {
        let writes: Vec<_> = writes.collect();
        let fates = self.write(&writes).await?;
        let pairs = all.iter().zip(fates);
        Ok(pairs.filter(|(_, fate)| matches!(fate, Fate::Conflict)).map(|(one, _)| *one).collect())
    }

    /// One request.
    async fn write(&self, writes: &[Write<'_>]) -> Result<Vec<Fate>> {
        let text = |text: &str, out: &mut Vec<u8>| {
            serde_json::to_writer(out, text).map_err(|e| Error::invalid(e.to_string()))
        };
        let mut body = b"{\"docs\":[".to_vec();
        for (at, Write { key, revision, fields }) in writes.iter().enumerate() {
            body.extend_from_slice(if at > 0 { b",{\"_id\":" } else { b"{\"_id\":" });
            text(&name::id(key), &mut body)?;
            if let Some(revision) = revision {
                body.extend_from_slice(b",\"_rev\":");
                text(revision, &mut body)?;
            }
            match fields {
                None => body.extend_from_slice(b",\"_deleted\":true}"),
                Some(b"{}") => body.push(b'}'),
                Some(fields) => {
                    body.push(b',');
                    body.extend_from_slice(&fields[1..]);
                }
            }
        }
        body.extend_from_slice(b"]}");
        let answer = self.http.post(&self.path("/_bulk_docs"), body).await?;
        let written: Vec<Written> = answer.read().map_err(|e| self.missing(e))?;
        let mut fates: HashMap<&str, &Written> =
            written.iter().map(|written| (&*written.id, written)).collect();
        writes
            .iter()
            .map(|Write { key, .. }| {
                let Some(Written { error, reason, .. }) = fates.remove(&*name::id(key)) else {
                    let what = format!("key {}: missing from the server's answer", key.shown());
                    return Err(Error::unavailable(what));
                };
                match error.as_deref() {
                    None => Ok(Fate::Done),
                    Some("conflict") => Ok(Fate::Conflict),
                    Some(error) => {
                        let error = of_document(error, reason.as_deref().unwrap_or_default());
                        Err(named(error, key))
                    }
                }
            })
            .collect()
    }

    /// The revisions of those of these documents that are there.
    async fn revisions(&self, keys: &[&Key]) -> Result<HashMap<Key, String>> {
        let keys: Vec<_> = keys.iter().map(|key| name::id(key)).collect();
        let (listing, _): (Listing, _) = self.post("/_all_docs", &json!({ "keys": keys })).await?;
        Ok(listing.revisions().collect())
    }

    /// Deletes the documents of these keys, and says how many there were.
    pub(super) async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let mut keys: Vec<&Key> = keys.iter().collect();
        keys.sort_unstable();
        keys.dedup();
        let mut removed = 0;
        for part in keys.chunks(MANY) {
            let mut open = part.to_vec();
            for attempt in 0..TRIES {
                let revisions = self.revisions(&open).await?;
                open.retain(|key| revisions.contains_key(*key));
                let writes = open.iter().map(|key| Write {
                    key,
                    revision: Some(&revisions[key]),
                    fields: None,
                });
                let left = self.conflicts(writes, &open).await?;
                removed += (open.len() - left.len()) as u64;
                open = left;
                if open.is_empty() {
                    break;
                }
                pause(attempt).await;
            }
            if !open.is_empty() {
                let what = format!("were changed by other clients meanwhile, {TRIES} times");
                return Err(conflict(&open, part.len(), &what));
            }
        }
        Ok(removed)
    }

    /// Deletes documents as they were found, and gives back those that were changed since.
    pub(super) async fn remove_found<'f>(&self, found: &[&'f Found]) -> Result<Vec<&'f Found>> {
        let mut changed = Vec::new();
        for part in found.chunks(MANY) {
            let writes = part.iter().map(|one| Write {
                key: &one.key,
                revision: Some(&one.revision),
                fields: None,
            });
            changed.extend(self.conflicts(writes, part).await?);
        }
        Ok(changed)
    }
}

/// Waits a little, at random and longer each time, so that writers who fight come apart.
pub(super) async fn pause(attempt: u32) {
    let most = Duration::from_millis(1 << attempt.min(6));
    let random = RandomState::new().build_hasher().finish();
    tokio::time::sleep(most.mul_f64(random as f64 / u64::MAX as f64)).await;
}

/// The parts of a write that are one request each.
fn parts<'d, 'a>(drafts: &'d [&'d Draft<'a>]) -> Vec<&'d [&'d Draft<'a>]> {
    let mut parts = Vec::new();
    let (mut begin, mut bytes) = (0, 0);
    for (at, draft) in drafts.iter().enumerate() {
        let more = draft.fields.len() + draft.key.len();
        if at > begin && (bytes + more > MUCH || at - begin >= MANY) {
            parts.push(&drafts[begin..at]);
            (begin, bytes) = (at, 0);
        }
        bytes += more;
    }
    if begin < drafts.len() {
        parts.push(&drafts[begin..]);
    }
    parts
}

/// The error that names the keys that were in conflict.
pub(super) fn conflict(keys: &[&Key], of: usize, what: &str) -> Error {
    const SHOWN: usize = 10;
    let mut names: Vec<_> = keys.iter().take(SHOWN).map(|key| key.shown()).collect();
    if keys.len() > SHOWN {
        names.push(format!("and {} more", keys.len() - SHOWN));
    }
    let what = format!("{} of {of} keys {what}: {}", keys.len(), names.join(", "));
    Error::new(ErrorKind::Conflict, what)
}
