//! A request that was let in, as the functions that answer it see it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{body::Body, http::HeaderMap};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::percent_decode_str;
use steelyard_store::store::Key;

use super::Reached;
use crate::{
    gateway::Gateway,
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
    pub(crate) fn existing(&self) -> Result<Collection, Problem> {
        Ok(self.tenant.existing(self.collection()?)?)
    }

    /// The collection of the path, which is made if it is not there.
    pub(crate) async fn made(&self) -> Result<Collection, Problem> {
        self.tenant.made(self.collection()?).await
    }

    /// A query parameter.
    pub(crate) fn asked(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// A header, where it is text.
    pub(crate) fn header(&self, name: &str) -> Result<Option<&str>, Problem> {
        let value = self.headers.get(name).map(|value| value.to_str());
        value
            .transpose()
            .map_err(|_| Problem::invalid(format!("the header {name} is not plain text")))
    }

    /// The body, of so many bytes at most, within the time that bodies have.
    pub(crate) async fn body(&mut self, most: usize) -> Result<Bytes, Problem> {
        let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        whole(std::mem::replace(body, Body::empty()), most, self.gateway.arrival()).await
    }
}

/// A body, of so many bytes at most, within this time.
pub(crate) async fn whole(body: Body, most: usize, within: Duration) -> Result<Bytes, Problem> {
    let body = Limited::new(body, most);
    match tokio::time::timeout(within, body.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(e)) if e.is::<LengthLimitError>() => {
            Err(Problem::too_large(format!("the body is longer than {most} bytes")))
        }
        Ok(Err(_)) => Err(Problem::invalid("the body did not arrive whole")),
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
