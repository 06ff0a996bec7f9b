//! Requests to a CouchDB: so many at a time, each within its time, answers and refusals read.

use std::time::Duration;

use reqwest::{Method, StatusCode, header};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::{
    Error, ErrorKind, Result,
    store::{
        Common, Secret, Url,
        limits::{Limits, late, permit, unconnected},
        tls,
    },
};

/// A server.
pub(super) struct Http {
    client: reqwest::Client,
    /// `https://host:port`.
    base: String,
    login: Option<(String, Secret)>,
    /// As many as connections.
    permits: Semaphore,
    limits: Limits,
}

/// What a server answers: a status and a body.
pub(super) struct Answer {
    pub status: StatusCode,
    pub body: Vec<u8>,
}

/// How CouchDB says no.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Refusal {
    error: String,
    reason: serde_json::Value,
}

impl Http {
    pub fn new(url: &Url, common: &Common) -> Result<Http> {
        tls::ready();
        let secure = url.scheme == "couchdbs";
        let (host, port) = url.one_host(if secure { 6984 } else { 5984 })?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let scheme = if secure { "https" } else { "http" };
        let client = reqwest::Client::builder()
            .user_agent(concat!("steelyard/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(common.connect_timeout)
            .timeout(common.timeout)
            .pool_max_idle_per_host(common.pool)
            // Node closes idle connections after 5 seconds; one closed while we write fails.
            .pool_idle_timeout(Duration::from_secs(4))
            .tcp_nodelay(true)
            // A password goes nowhere but to the host it is for.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|e| Error::new(ErrorKind::Io, "no client for HTTP").with_source(e))?;
        let login = match (&url.user, &url.password) {
            (None, _) => None,
            (Some(user), Some(password)) => Some((user.clone(), password.clone())),
            (Some(user), None) => {
                return Err(Error::invalid(format!("user {user:?} has no password in the URL")));
            }
        };
        Ok(Http {
            client,
            base: format!("{scheme}://{host}:{port}"),
            login,
            permits: Semaphore::new(common.pool),
            limits: Limits::of(common),
        })
    }

    /// Asks, and reads the whole answer, whatever its status.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Answer> {
        let _permit = permit(&self.permits, self.limits.operation, self.limits.pool).await?;
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some((user, password)) = &self.login {
            request = request.basic_auth(user, Some(password.reveal()));
        }
        request = request.header(header::ACCEPT, "application/json");
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let answer = request.send().await.map_err(|e| self.failed(e))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|e| self.failed(e))?.to_vec();
        Ok(Answer { status, body })
    }

    /// A connection that could not be made, or broke, or took too long.
    fn failed(&self, error: reqwest::Error) -> Error {
        let error = error.without_url();
        let timed_out = match (error.is_timeout(), error.is_connect()) {
            (true, true) => Some(unconnected(self.limits.connect)),
            (true, false) => Some(late("a request", self.limits.operation)),
            (false, _) => None,
        };
        if let Some(timed_out) = timed_out {
            return timed_out.with_source(error);
        }
        let what = if error.is_connect() { "no connection" } else { "the connection broke" };
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Error::unavailable(format!("{what}: {cause}")).with_source(error)
    }

    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.ask(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Vec<u8>) -> Result<Answer> {
        self.ask(Method::POST, path, Some(body)).await
    }
}

impl Answer {
    /// What is in it, if the server did as it was asked.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        if !self.status.is_success() {
            return Err(self.refused());
        }
        serde_json::from_slice(&self.body)
            .map_err(|e| Error::malformed("an answer that is not CouchDB's").with_source(e))
    }

    /// Did as it was asked, or this error.
    pub fn done(&self) -> Result<()> {
        match self.status.is_success() {
            true => Ok(()),
            false => Err(self.refused()),
        }
    }

    /// The error a refusal is.
    pub fn refused(&self) -> Error {
        let Refusal { error, reason } = serde_json::from_slice(&self.body).unwrap_or_default();
        let reason = match &reason {
            serde_json::Value::String(reason) => reason.clone(),
            other => other.to_string(),
        };
        refusal(kind_of(self.status), &error, &reason, self.status.as_u16())
    }
}

fn kind_of(status: StatusCode) -> ErrorKind {
    match status.as_u16() {
        401 | 403 => ErrorKind::Denied,
        404 => ErrorKind::NotFound,
        409 | 412 => ErrorKind::Conflict,
        413 | 414 => ErrorKind::TooLarge,
        400..500 => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    }
}

fn refusal(kind: ErrorKind, error: &str, reason: &str, status: u16) -> Error {
    Error::new(kind, format!("the server says {error:?}, {reason:?} (status {status})"))
}

/// The error that one document of several was answered with.
pub(super) fn of_document(error: &str, reason: &str) -> Error {
    let (kind, status) = match error {
        "unauthorized" => (ErrorKind::Denied, 401),
        "forbidden" => (ErrorKind::Denied, 403),
        "conflict" => (ErrorKind::Conflict, 409),
        "document_too_large" | "too_large" => (ErrorKind::TooLarge, 413),
        "bad_request" | "doc_validation" | "illegal_docid" => (ErrorKind::Invalid, 400),
        _ => (ErrorKind::Unavailable, 500),
    };
    refusal(kind, error, reason, status)
}
