//! One database: documents read, listed and found, whatever they are for, and the database itself.

use std::sync::Arc;

use futures_util::{StreamExt, stream, stream::BoxStream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{
    answers::{Found, Listing, found},
    http::Http,
    mango::Plan,
    name,
};
use crate::{
    Error, ErrorKind, Result,
    record::Document,
    store::{
        Key, KeyRange, counts,
        net::{Fewer, is_too_long},
        onward::{Dry, Onward},
    },
};

/// A database of a server.
pub(super) struct Database {
    pub http: Arc<Http>,
    /// Whether the server is one in JavaScript (PouchDB's).
    pub script: bool,
    /// Its name.
    pub name: String,
}

/// Documents in a request.
pub(super) const MANY: usize = 1000;
/// Bytes in a request or an answer, about.
pub(super) const MUCH: usize = 4 << 20;
/// The last text in the order of JavaScript, but for some that begin with it: such keys are refused.
const LAST: &str = "\u{ffff}";

/// All but what stands for itself everywhere in a path.
const CODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Whether the name of a document can stand in a path: it is short, and nothing between reads dots or
/// control characters as something else.
fn fits_path(name: &str) -> bool {
    name.len() <= 500 && !name.chars().any(char::is_control) && ![".", ".."].contains(&name)
}

fn other_keys() -> Error {
    Error::malformed("CouchDB returned other keys than requested")
}

/// A document that is the one of this key.
fn asked_for(key: &Key, found: Option<Found>) -> Result<Option<Found>> {
    match found {
        Some(other) if other.key != *key => Err(other_keys()),
        found => Ok(found),
    }
}

impl Database {
    /// The path of something in it.
    pub(super) fn path(&self, what: &str) -> String {
        format!("/{}{what}", utf8_percent_encode(&self.name, CODED))
    }

    /// Adds which database it is about, where there is none of that name.
    pub(super) fn missing(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::NotFound => {
                let what = format!("no database {:?}; prepare creates it", self.name);
                Error::new(ErrorKind::NotFound, what).with_source(error)
            }
            _ => error,
        }
    }

    pub(super) async fn post<T: for<'a> Deserialize<'a>>(
        &self,
        what: &str,
        body: &Json,
    ) -> Result<(T, usize)> {
        let body = serde_json::to_vec(body).map_err(|e| Error::invalid(e.to_string()))?;
        let answer = self.http.post(&self.path(what), body).await?;
        Ok((answer.read().map_err(|e| self.missing(e))?, answer.body.len()))
    }

    /// The document of one key, which is asked for by its name.
    async fn get_one(&self, name: &str) -> Result<Option<Found>> {
        #[derive(Deserialize)]
        struct Missing {
            reason: String,
        }
        let name = utf8_percent_encode(name, CODED);
        let answer = self.http.get(&self.path(&format!("/{name}"))).await?;
        if answer.status == StatusCode::NOT_FOUND {
            let missing: Option<Missing> = serde_json::from_slice(&answer.body).ok();
            // Else it is the database that is missing.
            if missing.is_some_and(|m| ["missing", "deleted"].contains(&m.reason.as_str())) {
                return Ok(None);
            }
        }
        found(answer.read().map_err(|e| self.missing(e))?, self.script)
    }

    /// The documents of these keys, in their order.
    pub(super) async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Found>>> {
        if let [key] = keys
            && let name = name::id(key)
            && fits_path(&name)
        {
            return Ok(vec![asked_for(key, self.get_one(&name).await?)?]);
        }
        let mut all = Vec::with_capacity(keys.len());
        for keys in keys.chunks(MANY) {
            let mut asked = Fewer::new(keys);
            while let Some(part) = asked.next() {
                let wanted: Vec<_> = part.iter().map(name::id).collect();
                let body = json!({ "keys": wanted, "include_docs": true });
                let listing: Listing = match self.post("/_all_docs", &body).await {
                    Ok((listing, _)) => listing,
                    Err(e) => {
                        asked.after(keys, e)?;
                        continue;
                    }
                };
                if listing.rows.len() != part.len() {
                    return Err(other_keys());
                }
                for (key, line) in part.iter().zip(listing.rows) {
                    all.push(asked_for(key, line.found(self.script)?)?);
                }
            }
        }
        Ok(all)
    }

    /// The documents in a range of keys, some at a time, in the server's order; all the documents'
    /// bytes, or only their keys and revisions.
    pub(super) fn list(&self, range: KeyRange, whole: bool) -> BoxStream<'_, Result<Vec<Found>>> {
        // JavaScript orders UTF-16: as UTF-8 does, as long as nothing is beyond its surrogates.
        let said = |bound: &Key| !self.script || bound.chars().all(|c| c <= '\u{d7ff}');
        let until = match range.until.clone().filter(said) {
            Some(until) => Some(Json::from(name::id(&until))),
            // Without an end, PouchDB ends at keys that begin with ÿ.
            None => self.script.then(|| Json::from(LAST)),
        };
        let mut from = range.from.clone().filter(said).map(|from| name::id(&from).into_owned());
        let mut limit = MANY / 4;
        let mut walk = Onward::new();
        let mut dry = Dry::new(self.http.limit());
        Box::pin(async_stream::try_stream! {
            loop {
                if let Some(from) = &from {
                    walk.at(from, "_all_docs")?;
                }
                // One more than wanted: where to go on.
                let mut body = json!({ "limit": limit + 1, "include_docs": whole });
                if let Some(from) = &from {
                    body["startkey"] = from.as_str().into();
                }
                if let Some(until) = &until {
                    body["endkey"] = until.clone();
                    body["inclusive_end"] = false.into();
                }
                let page = dry.wait(self.post("/_all_docs", &body)).await;
                let (mut listing, bytes): (Listing, _) = match page {
                    // Large documents: fewer at a time.
                    Err(e) if limit > 1 && is_too_long(&e) => {
                        limit /= 2;
                        walk = Onward::new();
                        continue;
                    }
                    page => page?,
                };
                let next = match listing.rows.len() > limit {
                    true => listing.rows.pop().and_then(|line| line.id),
                    false => None,
                };
                limit = fit(bytes, listing.rows.len());
                let mut batch = Vec::with_capacity(listing.rows.len());
                for line in listing.rows {
                    let one = if whole { line.found(self.script)? } else { line.named() };
                    batch.extend(one.filter(|one| range.contains(&one.key)));
                }
                let came = batch.len();
                if !batch.is_empty() {
                    yield batch;
                }
                if next.is_none() {
                    break;
                }
                dry.came(came).map_err(|e| self.http.placed(e))?;
                from = next;
            }
        })
    }

    /// The documents that a plan finds, some at a time: those that fit, and perhaps more.
    pub(super) fn find(&self, plan: Plan) -> BoxStream<'_, Result<Vec<Found>>> {
        match plan {
            Plan::Nothing => stream::empty().boxed(),
            Plan::Range(range) => self.list(range, true),
            Plan::Keys(keys) => self.chosen(keys),
            Plan::Find(selector) => self.selected(selector),
        }
    }

    fn chosen(&self, keys: Vec<Key>) -> BoxStream<'_, Result<Vec<Found>>> {
        // Smaller steps than a request may have: these are held at once.
        let steps: Vec<Vec<Key>> = keys.chunks(MANY / 4).map(<[Key]>::to_vec).collect();
        stream::iter(steps)
            .then(async |keys| Ok(self.get(&keys).await?.into_iter().flatten().collect()))
            .boxed()
    }

    fn selected(&self, selector: Json) -> BoxStream<'_, Result<Vec<Found>>> {
        #[derive(Deserialize)]
        struct Page {
            docs: Vec<Document>,
            bookmark: Option<String>,
            warning: Option<Json>,
        }
        let mut limit = MANY / 4;
        let mut dry = Dry::new(self.http.limit());
        Box::pin(async_stream::try_stream! {
            let (mut bookmark, mut walk): (Option<String>, _) = (None, Onward::new());
            loop {
                let mut body = json!({ "selector": selector, "limit": limit });
                if let Some(bookmark) = &bookmark {
                    body["bookmark"] = bookmark.as_str().into();
                }
                let found_page = dry.wait(self.post("/_find", &body)).await;
                let (mut page, bytes): (Page, _) = match found_page {
                    Err(e) if limit > 1 && is_too_long(&e) => {
                        limit /= 2;
                        continue;
                    }
                    page => page?,
                };
                if self.script && page.warning.is_some() {
                    // No index: PouchDB goes through all documents, and ends at keys that begin
                    // with ÿ. So do we, but to the end.
                    let mut all = self.list(KeyRange::all(), true);
                    while let Some(batch) = all.next().await {
                        yield batch?;
                    }
                    break;
                }
                let full = page.docs.len() >= limit;
                bookmark = page.bookmark.filter(|mark| mark != "nil" && !mark.is_empty());
                if let Some(bookmark) = bookmark.as_ref().filter(|_| full) {
                    walk.at(bookmark, "_find")?;
                }
                if full && bookmark.is_none() {
                    // A server without bookmarks: it is asked for the keys, and then by those.
                    let body = json!({ "selector": selector, "limit": i32::MAX, "fields": ["_id"] });
                    let (all, _): (Page, _) = self.post("/_find", &body).await?;
                    page.docs.clear();
                    let mut keys = Vec::with_capacity(all.docs.len());
                    for document in all.docs {
                        let id = document.get("_id").and_then(|id| id.as_str());
                        keys.extend(id.and_then(|id| name::key(id.to_owned())));
                    }
                    let mut steps = self.chosen(keys);
                    while let Some(batch) = steps.next().await {
                        yield batch?;
                    }
                    break;
                }
                limit = fit(bytes, page.docs.len());
                let mut batch = Vec::with_capacity(page.docs.len());
                for document in page.docs {
                    batch.extend(found(document, self.script)?);
                }
                let came = batch.len();
                if !batch.is_empty() {
                    yield batch;
                }
                if !full {
                    break;
                }
                dry.came(came).map_err(|e| self.http.placed(e))?;
            }
        })
    }

    /// How many documents there are, but for those that hold indexes.
    pub(super) async fn count(&self) -> Result<u64> {
        #[derive(Deserialize)]
        struct Counts {
            doc_count: u64,
        }
        let answer = self.http.get(&self.path("")).await?;
        let counts: Counts = answer.read().map_err(|e| self.missing(e))?;
        let body = json!({ "startkey": "_design/", "endkey": "_design0" });
        let (designs, _): (Listing, _) = self.post("/_all_docs", &body).await?;
        let count = counts::records("a question about the database", counts.doc_count);
        let count = count.map_err(|e| self.http.placed(e))?;
        Ok(count.saturating_sub(designs.rows.len() as u64))
    }

    /// The key of the document at this place in the order of keys; none where that is an index.
    pub(super) async fn key_at(&self, place: u64) -> Result<Option<Key>> {
        let (listing, _): (Listing, _) =
            self.post("/_all_docs", &json!({ "skip": place, "limit": 1 })).await?;
        Ok(listing.rows.into_iter().next().and_then(|line| line.id).and_then(name::key))
    }

    /// Makes it, if it is not there, for documents of this layout.
    pub(super) async fn prepare(&self, layout: &str) -> Result<()> {
        const NOTE: &str = "/_local/steelyard";
        if self.http.get(&self.path("")).await?.status == StatusCode::NOT_FOUND {
            let answer = self.http.ask(Method::PUT, &self.path(""), None).await?;
            // Somebody else may have been quicker.
            if answer.status != StatusCode::PRECONDITION_FAILED {
                answer.done()?;
            }
        }
        const TRIES: usize = 10;
        #[derive(Deserialize)]
        struct Note {
            layout: String,
        }
        // Whoever is quicker has written it by then.
        for _ in 0..TRIES {
            let answer = self.http.get(&self.path(NOTE)).await?;
            let what = match answer.status {
                StatusCode::NOT_FOUND => None,
                _ => Some(answer.read::<Note>()?.layout),
            };
            match what {
                Some(there) if there == layout => return Ok(()),
                Some(there) => return Err(self.other_layout(&there, layout)),
                None => {}
            }
            if self.count().await? > 0 {
                // Somebody else's documents are documents.
                return match layout == "document" {
                    true => Ok(()),
                    false => Err(self.other_layout("document", layout)),
                };
            }
            let note = serde_json::to_vec(&json!({ "layout": layout })).unwrap_or_default();
            let answer = self.http.ask(Method::PUT, &self.path(NOTE), Some(note)).await?;
            if answer.status != StatusCode::CONFLICT {
                return answer.done();
            }
        }
        let what = format!("{NOTE} of {:?} appears and disappears", self.name);
        Err(Error::malformed(what))
    }

    fn other_layout(&self, there: &str, layout: &str) -> Error {
        let what = format!("database {:?} has layout {there}, not {layout}", self.name);
        Error::new(ErrorKind::Conflict, what)
    }

    /// Makes an index on a field.
    pub(super) async fn index(&self, field: &str) -> Result<()> {
        let name = format!("steelyard-{field}");
        let index = json!({
            "index": { "fields": [field] }, "type": "json", "ddoc": name, "name": name,
        });
        let _: (Json, _) = self.post("/_index", &index).await?;
        Ok(())
    }

    pub(super) async fn drop(&self) -> Result<()> {
        let answer = self.http.ask(Method::DELETE, &self.path(""), None).await?;
        match answer.status {
            StatusCode::NOT_FOUND => Ok(()),
            _ => answer.done(),
        }
    }
}

/// How many documents to ask for next, so that an answer has about as many bytes as it should.
fn fit(bytes: usize, documents: usize) -> usize {
    match documents {
        0 => MANY,
        n => (MUCH / (bytes / n).max(1)).clamp(1, MANY),
    }
}
