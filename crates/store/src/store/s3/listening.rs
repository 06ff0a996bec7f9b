//! HTTP clients that note the server's product and limit the size of its answers.
//!
//! The crate reserves as many bytes as the server says an object has, and reads lists and error answers to their end.
//! So each answer is read here first, up to a limit. Two more checks are made here: a truncated list must have a
//! continuation token, as the crate takes a list without one for the last page; and a part of an object is refused
//! where the whole was requested.
//!
//! Requests are signed for one origin, and go to no other, wherever a server redirects them.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures_util::TryStreamExt;
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    },
};
use reqwest::{StatusCode, redirect};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::LARGEST;
use crate::{Error, store::net::append};

/// How many bytes a list or a refusal may have: a list names a thousand objects.
const SAID: usize = 16 << 20;

/// How much of answers with more bytes than [`SAID`] is held while they are read, in units of this: that of the
/// largest object.
const UNIT: usize = 1 << 20;
const UNITS: u32 = LARGEST.div_ceil(UNIT) as u32;

/// What the error says.
pub(super) const TOO_LONG: &str = "the server's answer has more bytes than are read";
/// What errors of answers begin with that are none to what was asked.
pub(super) const WRONG: &str = "the server's answer is invalid";
/// How many times a request may be sent on.
const ONWARD: usize = 5;

/// Makes clients that listen to what the server says it is.
#[derive(Debug)]
pub(super) struct Listening {
    /// What speaks HTTP, by [`client`].
    pub client: reqwest::Client,
    pub product: Arc<Mutex<Option<String>>>,
}

/// A client for HTTP that goes on to no other origin.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where there cannot be one.
pub(super) fn client(builder: reqwest::ClientBuilder) -> crate::Result<reqwest::Client> {
    let onward = redirect::Policy::custom(|attempt| {
        let origin = |url: &reqwest::Url| url.origin();
        match attempt.previous() {
            [first, ..] if origin(first) != origin(attempt.url()) => {
                let (host, port) =
                    (attempt.url().host_str(), attempt.url().port_or_known_default());
                let to = format!("{}:{}", host.unwrap_or_default(), port.unwrap_or_default());
                attempt.error(format!(
                    "{WRONG}: it redirects to another server, {to}, which the request is not signed for"
                ))
            }
            before if before.len() > ONWARD => {
                attempt.error(format!("{WRONG}: it redirects {ONWARD} times"))
            }
            _ => attempt.follow(),
        }
    });
    let built = builder.redirect(onward).build();
    built.map_err(|e| Error::invalid("cannot start the HTTP client").with_source(e))
}

impl HttpConnector for Listening {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = HttpClient::new(self.client.clone());
        let room = Semaphore::new(UNITS as usize);
        Ok(HttpClient::new(Listener { client, product: self.product.clone(), room }))
    }
}

#[derive(Debug)]
struct Listener {
    client: HttpClient,
    product: Arc<Mutex<Option<String>>>,
    /// For large answers that are read at the same time.
    room: Semaphore,
}

#[async_trait]
impl HttpService for Listener {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let method = request.method().as_str().to_owned();
        let lists = request.uri().query().is_some_and(|query| query.contains("list-type"));
        let whole = !request.headers().contains_key("range");
        let answer = self.client.execute(request).await?;
        if let Some(name) = answer.headers().get("server").and_then(|name| name.to_str().ok()) {
            let mut product = self.product.lock().unwrap_or_else(PoisonError::into_inner);
            if product.as_deref() != Some(name) {
                *product = Some(name.to_owned());
            }
        }
        // One with a body is not sent on, and those that are have not come back with this.
        if answer.status().is_redirection()
            && let Some(to) = answer.headers().get("location")
        {
            // What is behind it may be a signature.
            let to = to.to_str().unwrap_or_default().split('?').next().unwrap_or_default();
            let status = answer.status().as_u16();
            return Err(wrong(format!("status {status}, a redirect to {to}")));
        }
        let gets = method == "GET" && answer.status().is_success();
        if gets && whole && answer.status() != StatusCode::OK {
            let status = answer.status().as_u16();
            return Err(wrong(format!("status {status} for a request of the whole object")));
        }
        let object = gets && !lists;
        let most = if object { LARGEST } else { SAID };
        let sound = |body: &[u8]| match gets && lists {
            true => goes_on(body),
            false => Ok(()),
        };
        read(answer, most, method == "HEAD", &self.room, sound).await
    }
}

/// Whether a list that goes on says where.
fn goes_on(list: &[u8]) -> Result<(), HttpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct List {
        #[serde(default)]
        is_truncated: bool,
        #[serde(default)]
        next_continuation_token: Option<String>,
    }
    // What is no list at all the crate says better.
    let Ok(list) = quick_xml::de::from_reader::<_, List>(list) else { return Ok(()) };
    match list.next_continuation_token.is_none_or(|next| next.is_empty()) {
        true if list.is_truncated => Err(wrong(
            "a list with IsTruncated but no NextContinuationToken, so the rest cannot be requested",
        )),
        _ => Ok(()),
    }
}

/// The answer with its body, which may have `most` bytes and has to be `sound`. That to a head says how many there would be, and has
/// none.
async fn read(
    answer: HttpResponse,
    most: usize,
    head: bool,
    room: &Semaphore,
    sound: impl FnOnce(&[u8]) -> Result<(), HttpError>,
) -> Result<HttpResponse, HttpError> {
    let (parts, body) = answer.into_parts();
    let said = parts.headers.get("content-length").and_then(|length| length.to_str().ok());
    let said: Option<u64> = said.and_then(|length| length.parse().ok());
    if !head && said.is_some_and(|length| length > most as u64) {
        return Err(too_long(most));
    }
    // What it may come to, where the server does not say.
    let length = said.map_or(most, |length| (length as usize).min(most));
    let (mut all, mut chunks, mut held) = (Vec::new(), body.bytes_stream(), None);
    while let Some(chunk) = chunks.try_next().await? {
        if held.is_none() && all.len() + chunk.len() > SAID {
            let units = length.div_ceil(UNIT) as u32;
            held = Some(room.acquire_many(units).await.expect("it is never closed"));
        }
        if !append(&mut all, &chunk, most) {
            return Err(too_long(most));
        }
    }
    sound(&all)?;
    Ok(HttpResponse::from_parts(parts, all.into()))
}

/// An error of an answer that is none to what was asked, after which nothing is asked again.
fn wrong(what: impl std::fmt::Display) -> HttpError {
    let text = format!("{WRONG}: {what}");
    HttpError::new(HttpErrorKind::Decode, io::Error::new(io::ErrorKind::InvalidData, text))
}

/// An error after which nothing is asked again.
fn too_long(most: usize) -> HttpError {
    let text = format!("{TOO_LONG}: {most} at most");
    HttpError::new(HttpErrorKind::Decode, io::Error::new(io::ErrorKind::InvalidData, text))
}
