//! A request that was let in, as the functions that answer it see it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    body::Body,
    http::{HeaderMap, header},
};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use percent_encoding::percent_decode_str;
use steelyard_store::store::{Key, Store};
use tokio::sync::OwnedSemaphorePermit;

use super::Reached;
use crate::{
    gateway::Gateway,
    limits::{Shares, Weight},
    names::{self, CollectionName},
    problem::Problem,
    tenants::{Collection, TenantDb},
};

/// A request of a tenant.
pub(crate) struct Call {
    pub gateway: Arc<Gateway>,
    pub reached: Reached,
    pub tenant: TenantDb,
    pub headers: HeaderMap,
    /// In a lock that nobody waits for: a body can be sent to another thread, but not shared.
    pub(super) body: Mutex<Body>,
    pub(super) path: Vec<(String, String)>,
    pub(super) query: Vec<(String, String)>,
    /// What it has of bodies in memory.
    pub(super) weight: Weight,
    /// Its turn among the requests of its tenant, once all that its client sends is there.
    pub(super) turn: Option<OwnedSemaphorePermit>,
}

impl Call {
    /// A part of the path, decoded once.
    fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn collection(&self) -> Result<CollectionName, Problem> {
        Ok(CollectionName::new(self.part("collection"))?)
    }

    pub(crate) fn id(&self) -> Result<Key, Problem> {
        Ok(names::id(self.part("id"))?)
    }

    /// The collection of the path, which may not be there.
    pub(crate) async fn existing(&self) -> Result<Collection, Problem> {
        Ok(self.tenant.existing(self.collection()?).await?)
    }

    /// The collection of the path, which is made if it is not there, unless `refused` says why it should not be.
    pub(crate) async fn made(
        &self,
        refused: impl FnOnce(&dyn Store) -> Result<(), Problem> + Send,
    ) -> Result<Collection, Problem> {
        self.tenant.made(self.collection()?, refused).await
    }

    /// A query parameter.
    pub(crate) fn asked(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// A header, where it is text.
    pub(crate) fn header(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().map(|value| value.to_str());
        if values.next().is_some() {
            return Err(Problem::invalid(format!("the header {name} is there twice")));
        }
        value
            .transpose()
            .map_err(|_| Problem::invalid(format!("the header {name} is not plain text")))
    }

    /// The body, of so many bytes at most, within the time that bodies have.
    pub(crate) async fn body(&mut self, most: usize) -> Result<Bytes, Problem> {
        let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        let body = std::mem::replace(body, Body::empty());
        if self.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return Err(Problem::media_type("a body is taken as it is, without Content-Encoding"));
        }
        let body =
            whole(body, most, self.gateway.arrival(), |bytes| self.weight.add(bytes)).await?;
        self.take_turn().await;
        Ok(body)
    }

    /// Waits for its turn.
    pub(crate) async fn take_turn(&mut self) {
        if self.turn.is_none() {
            self.turn = self.tenant.turn(&self.gateway).await;
        }
    }

    /// Lets others of its tenant go on, while its client takes what there is.
    pub(crate) fn end_turn(&mut self) {
        self.turn = None;
    }

    /// The memory of what is to be answered, which grows.
    pub(crate) fn memory(&self) -> Memory {
        Memory(self.gateway.gate.weight(self.shares()))
    }

    /// What is to be answered, counted among the bytes of bodies until it is sent, where it is much.
    pub(crate) fn counted(&self, bytes: Vec<u8>) -> Result<Bytes, Problem> {
        match self.weighed(bytes.len())? {
            None => Ok(bytes.into()),
            Some(weight) => Ok(Bytes::from_owner(Counted { bytes, _weight: weight })),
        }
    }

    /// The same for a part of a stream: it waits until other answers are sent, as long as a client may take nothing.
    pub(crate) async fn counted_in_time(&self, bytes: Vec<u8>) -> Result<Bytes, Problem> {
        /// How often it is tried.
        const AGAIN: Duration = Duration::from_millis(20);
        let until = tokio::time::Instant::now() + self.gateway.arrival();
        loop {
            match self.weighed(bytes.len()) {
                Ok(None) => return Ok(bytes.into()),
                Ok(Some(weight)) => {
                    return Ok(Bytes::from_owner(Counted { bytes, _weight: weight }));
                }
                Err(problem) if tokio::time::Instant::now() > until => return Err(problem),
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }

    /// What so many bytes weigh; none where they are few.
    fn weighed(&self, bytes: usize) -> Result<Option<Weight>, Problem> {
        const MUCH: usize = 32 << 10;
        if bytes < MUCH {
            return Ok(None);
        }
        let mut weight = self.gateway.gate.weight(self.shares());
        weight.add(bytes).map(|()| Some(weight))
    }

    /// What its tenant and its key share.
    pub(crate) fn shares(&self) -> &Shares {
        &self.tenant.principal().grant().shares
    }
}

/// Memory of an answer, counted among the bytes of bodies.
pub(crate) struct Memory(Weight);

impl Memory {
    /// So many bytes more.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Problem> {
        self.0.add(bytes)
    }

    /// The body that was made, whose memory is counted until it is sent.
    pub(crate) fn until_sent(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Counted { bytes, _weight: self.0 })
    }
}

/// Bytes that are given back when they are sent.
struct Counted {
    bytes: Vec<u8>,
    _weight: Weight,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body, of so many bytes at most, within this time. `arrived` is told of each part.
pub(crate) async fn whole(
    mut body: Body,
    most: usize,
    within: Duration,
    mut arrived: impl FnMut(usize) -> Result<(), Problem>,
) -> Result<Bytes, Problem> {
    let longer = || Problem::too_large(format!("the body is longer than {most} bytes"));
    // What is said to be too long is not waited for.
    if body.size_hint().lower() > most as u64 {
        return Err(longer());
    }
    let collect = async {
        let (mut first, mut all) = (Bytes::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let broken = |_| Problem::invalid("the body did not arrive whole");
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            arrived(data.len())?;
            match first.len() + all.len() + data.len() {
                longest if longest > most => return Err(longer()),
                // Most come in one part, which is not copied.
                _ if first.is_empty() && all.is_empty() => first = data,
                _ => {
                    all.extend_from_slice(&std::mem::take(&mut first));
                    all.extend_from_slice(&data);
                }
            }
        }
        Ok(if all.is_empty() { first } else { all.into() })
    };
    match tokio::time::timeout(within, collect).await {
        Ok(body) => body,
        Err(_) => Err(Problem::invalid("the body did not arrive in time")),
    }
}

/// The parameters of a query string. A name may be there once.
pub(crate) fn parameters(
    query: Option<&str>,
    known: &[&str],
) -> Result<Vec<(String, String)>, Problem> {
    let mut all: Vec<(String, String)> = Vec::new();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            let decoded = percent_decode_str(&text).decode_utf8().map(|text| text.into_owned());
            decoded.map_err(|_| Problem::invalid("the query string is not UTF-8"))
        };
        let (name, value) = (decoded(name)?, decoded(value)?);
        if !known.contains(&&*name) {
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return Err(Problem::invalid(format!("unknown parameter {name:?}; known: {known}")));
        }
        if all.iter().any(|(other, _)| *other == name) {
            return Err(Problem::invalid(format!("the parameter {name:?} is there twice")));
        }
        all.push((name, value));
    }
    Ok(all)
}
