//! Clients for HTTP that listen to what the server says it is, and that read no more than there is use for.
//!
//! The crate makes room for as many bytes as the server says an object has, and reads lists and refusals
//! to their end. So each answer is read here, up to a limit, before the crate sees it.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures_util::TryStreamExt;
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
        HttpService, ReqwestConnector,
    },
};
use tokio::sync::Semaphore;

use super::LARGEST;
use crate::store::net::append;

/// How many bytes a list or a refusal may have: a list names a thousand objects.
const SAID: usize = 16 << 20;

/// How much of answers with more bytes than [`SAID`] is held while they are read, in units of this: that of the
/// largest object.
const UNIT: usize = 1 << 20;
const UNITS: u32 = LARGEST.div_ceil(UNIT) as u32;

/// What the error says.
pub const TOO_LONG: &str = "the server's answer has more bytes than are read";

/// Makes clients that listen to what the server says it is.
#[derive(Debug)]
pub struct Listening(pub Arc<Mutex<Option<String>>>);

impl HttpConnector for Listening {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        let room = Semaphore::new(UNITS as usize);
        Ok(HttpClient::new(Listener { client, product: self.0.clone(), room }))
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
        let answer = self.client.execute(request).await?;
        if let Some(name) = answer.headers().get("server").and_then(|name| name.to_str().ok()) {
            let mut product = self.product.lock().unwrap_or_else(PoisonError::into_inner);
            if product.as_deref() != Some(name) {
                *product = Some(name.to_owned());
            }
        }
        let object = method == "GET" && !lists && answer.status().is_success();
        read(answer, if object { LARGEST } else { SAID }, method == "HEAD", &self.room).await
    }
}

/// The answer with its body, which may have `most` bytes. That to a head says how many there would be, and has
/// none.
async fn read(
    answer: HttpResponse,
    most: usize,
    head: bool,
    room: &Semaphore,
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
    Ok(HttpResponse::from_parts(parts, all.into()))
}

/// An error after which nothing is asked again.
fn too_long(most: usize) -> HttpError {
    let text = format!("{TOO_LONG}: {most} at most");
    HttpError::new(HttpErrorKind::Decode, io::Error::new(io::ErrorKind::InvalidData, text))
}
