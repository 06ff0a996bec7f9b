//! Requests to a CouchDB: so many at a time, each within its time, answers and refusals read.

use std::time::Duration;

use reqwest::{Certificate, Method, StatusCode, header};
use serde::Deserialize;

use crate::{
    Error, ErrorKind, Result,
    store::{
        Common, Secret, Url,
        limits::{Limits, late, unconnected, unreached},
        net::{SEVERAL, append, tls, too_long},
        pool::{Pool, Turns},
    },
};

/// A server.
pub(super) struct Http {
    client: reqwest::Client,
    /// `https://host:port`.
    base: String,
    login: Option<(String, Secret)>,
    /// How many requests at once; the client has a pool of its own.
    turns: Turns,
}

/// How many bytes the text of a refusal may have.
const SAID: usize = 1 << 20;
/// What a value of an answer takes, about, beside its bytes.
const VALUE: usize = 48;

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
    pub(super) fn new(url: &Url, common: &Common, ca: Option<&str>) -> Result<Http> {
        tls::ready();
        let secure = url.scheme == "couchdbs";
        let authorities = match ca {
            Some(_) if !secure => {
                return Err(Error::invalid("?ca= needs TLS; write couchdbs://"));
            }
            Some(ca) => Some(
                Certificate::from_pem_bundle(&tls::pem(ca)?)
                    .map_err(|e| Error::invalid(format!("?ca={ca}: {e}")))?,
            ),
            None => None,
        };
        let (host, port) = url.one_host(if secure { 6984 } else { 5984 })?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let scheme = if secure { "https" } else { "http" };
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("steelyard/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(common.connect_timeout)
            .timeout(common.timeout)
            .pool_max_idle_per_host(common.pool)
            // Node closes idle connections after 5 seconds; one closed while we write fails.
            .pool_idle_timeout(Duration::from_secs(4))
            .tcp_nodelay(true)
            // A password goes nowhere but to the host it is for.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if let Some(authorities) = authorities {
            client = client.tls_certs_only(authorities);
        }
        let client = client.build().map_err(|e| {
            Error::new(ErrorKind::Io, "cannot start the HTTP client").with_source(e)
        })?;
        let login = match (&url.user, &url.password) {
            (None, _) => None,
            (Some(user), Some(password)) => Some((user.clone(), password.clone())),
            (Some(user), None) => {
                let what = "in the URL, in ?password_file=, or in STEELYARD_PASSWORD";
                return Err(Error::invalid(format!("user {user:?} has no password: {what}")));
            }
        };
        Ok(Http {
            client,
            base: format!("{scheme}://{host}:{port}"),
            login,
            turns: Turns::new(Limits::of(common), format!("{host}:{port}")),
        })
    }

    /// Asks, and reads the whole answer, whatever its status.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let _turn = Pool::turn(&self.turns).await?;
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some((user, password)) = &self.login {
            request = request.basic_auth(user, Some(password.reveal()));
        }
        request = request.header(header::ACCEPT, "application/json");
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let mut answer = request.send().await.map_err(|e| self.failed(e))?;
        let status = answer.status();
        let most = if status.is_success() { SEVERAL } else { SAID };
        let too_long = || too_long("a request", most).in_place(self.turns.place());
        if answer.content_length().is_some_and(|length| length > most as u64) {
            return Err(too_long());
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|e| self.failed(e))? {
            if !append(&mut body, &chunk, most) {
                return Err(too_long());
            }
        }
        // Read as JSON it takes more, mostly for each of many short values.
        let values = memchr::memchr_iter(b',', &body).count();
        match body.len() + values * VALUE > 2 * SEVERAL {
            true => Err(too_long()),
            false => Ok(Answer { status, body }),
        }
    }

    /// How long an operation may take.
    pub(super) fn limit(&self) -> Duration {
        self.turns.limits().operation
    }

    /// The error of an answer, which names the server.
    pub(super) fn placed(&self, e: Error) -> Error {
        e.in_place(self.turns.place())
    }

    /// What was done, and, where the server is the trouble, its name.
    pub(super) fn told<T>(&self, done: Result<T>) -> Result<T> {
        done.map_err(|e| match e.is_outage() {
            true => e.in_place(self.turns.place()),
            false => e,
        })
    }

    /// A connection that could not be made, or broke, or took too long.
    fn failed(&self, error: reqwest::Error) -> Error {
        let error = error.without_url();
        let limits = self.turns.limits();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let ours = match (error.is_timeout(), error.is_connect()) {
            (true, true) => unconnected(limits.connect),
            (true, false) => late("a request", limits.operation),
            (false, true) => unreached(cause),
            (false, false) => Error::unavailable(format!("the connection broke: {cause}")),
        };
        ours.in_place(self.turns.place())
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answer> {
        self.ask(Method::GET, path, None).await
    }

    pub(super) async fn post(&self, path: &str, body: Vec<u8>) -> Result<Answer> {
        self.ask(Method::POST, path, Some(body)).await
    }
}

impl Answer {
    /// What is in it, if the server did as it was asked.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        if !self.status.is_success() {
            return Err(self.refused());
        }
        serde_json::from_slice(&self.body)
            .map_err(|e| Error::malformed("unexpected answer from CouchDB").with_source(e))
    }

    /// Did as it was asked, or this error.
    pub(super) fn done(&self) -> Result<()> {
        match self.status.is_success() {
            true => Ok(()),
            false => Err(self.refused()),
        }
    }

    /// The error a refusal is.
    pub(super) fn refused(&self) -> Error {
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
        507 => ErrorKind::Full,
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
