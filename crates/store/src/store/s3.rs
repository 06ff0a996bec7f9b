//! `s3://bucket/prefix?endpoint=http://127.0.0.1:9000` — an object for each blob, in Amazon's S3 and
//! what speaks its protocol.
//!
//! What the URL does not say is taken from the usual variables (`AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT` …). An endpoint with `https://` is trusted by the
//! authorities of this machine or, with `?ca=file.pem`, by those in that file and no others. An object is named
//! `prefix/table+/key`, table and key written so that any has a name, in the order of keys
//! (`names.rs`). Prefixes do not end with `+`, and nothing of ours lies deeper: so the table `b` of
//! the prefix `a` holds nothing of the prefix `a/b`.
//!
//! `?pool=8` is 8 requests at once. The crate's HTTP client keeps 8 idle connections, but opens another
//! while one that was used is not back in its pool yet, so for moments there are more.
//!
//! There are no conditional writes: the protocol puts an object under a condition (`If-Match`), but not every server does so,
//! and the crate deletes none under one.
//!
//! Amazon keeps what it has acknowledged (t3). Of any other server its URL says: `?server_tier=t1`.

mod errors;
mod listening;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{
    FutureExt, StreamExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use object_store::{
    BackoffConfig, ClientOptions, ObjectMeta, ObjectStoreExt, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey},
    list::{PaginatedListOptions, PaginatedListStore},
    path::Path,
};
use reqwest::Certificate;

use self::{
    errors::{CONNECTING, failed, found, of},
    listening::Listening,
};
use super::{
    Abilities, Blob, Blobs, Client, Common, Description, Driver, Encoded, Facts, Key, KeyRange,
    Login, Shape, Store, Url,
    blobs::{CANNOT, fits, named},
    hidden,
    key::padded,
    limits::{Limits, late, unconnected},
    names,
    net::tls,
    onward::{Dry, Onward},
    pool::{Pool, Turn, Turns},
    within,
};
use crate::{Error, ErrorKind, Result, durability::Tier};

pub(super) const DRIVER: Driver = Driver {
    name: "s3",
    aliases: &[],
    example: "s3://bucket/prefix?endpoint=http://127.0.0.1:9000&region=us-east-1&\
              access_key_id=&secret_access_key=&session_token=&virtual_host=false&ca=&\
              disable_bulk_delete=false&server_tier=",
    about: "Amazon S3 and compatible servers; one object per record",
    shapes: &[Shape::Blob],
    facts: &[Facts::of(Shape::Blob, ABILITIES)],
    limits: "keys are shorter by the name of the folder, and have 255 bytes where objects are files",
    tiers: &Tier::ALL,
    clients: &[Client::Crate("object_store")],
    servers: &["s3"],
    login: Login::Key,
    databases: None,
    open,
};

/// Bytes in the name of an object at Amazon, table and all.
const LONGEST: usize = 1024;
/// Bytes that a key may take elsewhere: most others keep objects as files.
const LONGEST_OF_A_FILE: usize = 255;
/// The largest object that is kept and read: it is in memory as a whole.
const LARGEST: usize = 1_000_000_000;

const ABILITIES: Abilities = Abilities {
    driver: "s3",
    keeps: &[],
    loses: "",
    cannot: CANNOT,
    joins: false,
    atomic: false,
    conditional: false,
    ordered: true,
    max_key: LONGEST,
    max_record: LARGEST,
};
/// Objects that are read at once at most, and their bytes.
const MANY: usize = 1000;
const MUCH: u64 = 8 << 20;

fn open(mut url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let place = Arc::new(Place::new(&mut url, common)?);
        let table = place.common.table.clone();
        let format = place.common.blob_format();
        let blobs = S3::new(place, &table)?;
        // Whether the bucket is there, and ours to read.
        blobs.page(None, None).await?;
        blobs.place.check_tier()?;
        Ok(Arc::new(Encoded::new(Arc::new(blobs), format)?) as Arc<dyn Store>)
    }
    .boxed()
}

/// What the tables of a bucket share.
struct Place {
    client: AmazonS3,
    /// How many requests at once; the client has a pool of its own.
    turns: Turns,
    bucket: String,
    prefix: String,
    /// Whether it is Amazon's own.
    amazon: bool,
    vouched: Option<Tier>,
    /// What the server says it is.
    product: Arc<Mutex<Option<String>>>,
    common: Common,
}

/// The key of an object of a folder; none where its name is none of ours.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) for an object of another folder, which was not asked for: nothing may
/// read or delete it.
fn in_folder(folder: &str, object: &Path) -> Result<Option<Key>> {
    let below = object.as_ref().strip_prefix(folder.trim_matches('/'));
    match below.and_then(|below| below.strip_prefix('/')) {
        Some(name) => Ok(names::decode(name)),
        None => Err(Error::malformed(format!(
            "the server lists {:?}, which is not in the folder {folder:?} that it was asked for",
            object.as_ref()
        ))),
    }
}

impl Place {
    fn new(url: &mut Url, common: Common) -> Result<Place> {
        let named = url.option("access_key_id").is_some_and(|key| !key.is_empty());
        let mut builder = AmazonS3Builder::from_env();
        for (name, key) in [
            ("endpoint", AmazonS3ConfigKey::Endpoint),
            ("region", AmazonS3ConfigKey::Region),
            ("access_key_id", AmazonS3ConfigKey::AccessKeyId),
            ("secret_access_key", AmazonS3ConfigKey::SecretAccessKey),
            ("session_token", AmazonS3ConfigKey::Token),
            ("disable_bulk_delete", AmazonS3ConfigKey::DisableBulkDelete),
        ] {
            if let Some(value) = url.take(name).filter(|value| !value.is_empty()) {
                builder = builder.with_config(key, value);
            }
        }
        if let Some(secret) = &url.password {
            builder = builder.with_secret_access_key(secret.reveal());
        }
        // Those of the variables, too.
        for key in [AmazonS3ConfigKey::SecretAccessKey, AmazonS3ConfigKey::Token] {
            if let Some(secret) = builder.get_config_value(&key) {
                hidden::remember(&secret);
            }
        }
        // Else the client would ask for one at the address of Amazon's own machines.
        if named && builder.get_config_value(&AmazonS3ConfigKey::SecretAccessKey).is_none() {
            let what = "access_key_id has no secret: secret_access_key in the URL, ?password_file=, \
                        STEELYARD_PASSWORD or AWS_SECRET_ACCESS_KEY";
            return Err(Error::new(ErrorKind::Denied, what));
        }
        let ca = url.take("ca").filter(|ca| !ca.is_empty());
        if let Some(virtual_host) = url.take_flag("virtual_host")? {
            builder = builder.with_virtual_hosted_style_request(virtual_host);
        }
        let vouched = url.take_parsed("server_tier")?;
        url.done()?;
        let [(bucket, None)] = &*url.hosts else {
            return Err(Error::invalid("s3: expects one bucket, as in s3://bucket/prefix"));
        };
        let prefix = url.path.trim_matches('/').to_owned();
        if let Err(e) = Path::parse(&prefix) {
            return Err(
                Error::invalid(format!("the prefix {prefix:?} is not a path")).with_source(e)
            );
        }
        if prefix.split('/').any(|segment| segment.ends_with(names::OTHER)) {
            let what = format!("the prefix {prefix:?}: names with + last are those of tables");
            return Err(Error::invalid(what));
        }
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        if endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://")) {
            builder = builder.with_allow_http(true);
        }
        let insecure = endpoint.as_ref().is_some_and(|endpoint| !endpoint.starts_with("https:"));
        if insecure && ca.is_some() {
            return Err(Error::invalid("?ca= needs an endpoint with https://"));
        }
        tls::ready();
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("steelyard/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(common.connect_timeout)
            .timeout(common.timeout)
            .pool_max_idle_per_host(common.pool);
        if let Some(ca) = &ca {
            let wrong = |e: reqwest::Error| Error::invalid(format!("?ca={ca}: {e}"));
            let authorities = Certificate::from_pem_bundle(&tls::pem(ca)?).map_err(wrong)?;
            http = http.tls_certs_only(authorities);
        }
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_millis(500),
            ..BackoffConfig::default()
        };
        let retry = RetryConfig { backoff, max_retries: 2, retry_timeout: common.timeout / 2 };
        let product = Arc::new(Mutex::new(None));
        let listening = Listening { client: listening::client(http)?, product: product.clone() };
        let client = builder
            .with_bucket_name(bucket)
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .with_retry(retry)
            // Not every server has the request that deletes several.
            .with_disable_bulk_delete(true)
            .with_http_connector(listening)
            .build()
            .map_err(|e| Error::invalid(e.to_string()).with_source(e))?;
        Ok(Place {
            client,
            turns: Turns::new(
                Limits::of(&common),
                endpoint.as_deref().map(place).unwrap_or_default(),
            ),
            bucket: bucket.clone(),
            prefix,
            amazon: endpoint.is_none(),
            vouched,
            product,
            common,
        })
    }

    /// The tier that somebody vouches for.
    fn tier(&self) -> Option<Tier> {
        self.vouched.or(self.amazon.then_some(Tier::T3))
    }

    fn check_tier(&self) -> Result<()> {
        match self.common.durability {
            Some(asked) if self.tier() != Some(asked) => Err(asked
                .refused("this server, by what ?server_tier= says of it,", self.tier().as_slice())),
            _ => Ok(()),
        }
    }

    async fn turn(&self) -> Result<Turn<'_>> {
        Pool::turn(&self.turns).await
    }
}

/// The host and port of an endpoint, for errors.
fn place(endpoint: &str) -> String {
    let (scheme, rest) = endpoint.split_once("://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => host.to_owned(),
        _ => format!("{host}:{}", if scheme == "https" { 443 } else { 80 }),
    }
}

/// A table.
struct S3 {
    place: Arc<Place>,
    /// What all its objects' names begin with, without the slash after it.
    folder: String,
    abilities: Abilities,
}

impl S3 {
    fn new(place: Arc<Place>, table: &str) -> Result<S3> {
        let slash = if place.prefix.is_empty() { "" } else { "/" };
        let folder = format!("{}{slash}{}{}", place.prefix, names::encode(table), names::OTHER);
        let longest_segment = names::encode(table).len() + names::OTHER.len_utf8();
        if folder.len() + 1 >= LONGEST || longest_segment > LONGEST_OF_A_FILE {
            return Err(Error::invalid(format!("table {table:?}: its name is too long for S3")));
        }
        let abilities = Abilities {
            // Of characters that stand for themselves.
            max_key: match place.amazon {
                true => LONGEST - folder.len() - 1,
                false => LONGEST_OF_A_FILE.min(LONGEST - folder.len() - 1),
            },
            ..ABILITIES
        };
        Ok(S3 { place, folder, abilities })
    }

    /// The name of a key's object.
    fn object(&self, key: &Key) -> Result<Path> {
        let name = format!("{}/{}", self.folder, names::encode(key));
        Path::parse(&name).map_err(|e| named(Error::invalid(e.to_string()), key))
    }

    async fn within<T>(&self, what: &str, done: impl Future<Output = Result<T>>) -> Result<T> {
        let Limits { connect, operation, .. } = *self.place.turns.limits();
        let done = within(operation, what, done).await;
        done.map_err(|e| {
            let e = match (e.is_timeout(), e.context()) {
                (true, text) if text.starts_with(CONNECTING) => unconnected(connect).with_source(e),
                // One request's limit is the whole operation's.
                (true, text) if !text.starts_with("no ") => late(what, operation).with_source(e),
                _ => e,
            };
            match e.is_outage() || e.kind() == ErrorKind::Malformed {
                true => e.in_place(self.place.turns.place()),
                false => e,
            }
        })
    }

    /// The results of all these, in their order; some are at work at a time.
    async fn all<'s, T: Send + 's>(
        &'s self,
        what: &str,
        works: Vec<BoxFuture<'s, Result<T>>>,
    ) -> Result<Vec<T>> {
        let works = stream::iter(works).buffered(self.place.common.pool);
        self.within(what, works.try_collect()).await
    }

    /// A page of the list of the table's objects, with their keys, in order: after this key or, further on, from the
    /// token that came with the page before; and the token of the next page, if there is one.
    async fn page(
        &self,
        after: Option<&Key>,
        token: Option<String>,
    ) -> Result<(Vec<(Key, ObjectMeta)>, Option<String>)> {
        let after = after.map(|key| self.object(key)).transpose()?;
        let options = PaginatedListOptions {
            offset: after.map(|after| after.to_string()),
            page_token: token,
            ..PaginatedListOptions::default()
        };
        let prefix = format!("{}/", self.folder.trim_matches('/'));
        let page = async {
            let _turn = self.place.turn().await?;
            let page = self.place.client.list_paginated(Some(&prefix), options).await;
            let page = page.map_err(failed)?;
            let mut objects = Vec::with_capacity(page.result.objects.len());
            for object in page.result.objects {
                if let Some(key) = in_folder(&self.folder, &object.location)? {
                    objects.push((key, object));
                }
            }
            Ok((objects, page.page_token.filter(|token| !token.is_empty())))
        };
        self.within("a list", page).await
    }

    /// The keys in a range with what is known of their objects, in order.
    fn listed(&self, range: &KeyRange) -> BoxStream<'_, Result<(Key, ObjectMeta)>> {
        let range = range.clone();
        Box::pin(async_stream::try_stream! {
            // A list begins after a key: the first one is looked at by itself.
            if let Some(from) = range.from.as_ref().filter(|from| range.contains(from)) {
                let object = self.object(from)?;
                let head = self.within("a head", async {
                    let _turn = self.place.turn().await?;
                    found(self.place.client.head(&object).await)
                }).await?;
                if let Some(head) = head {
                    yield (from.clone(), head);
                }
            }
            let place = |e: Error| e.in_place(self.place.turns.place());
            let (mut keys, mut tokens) = (Onward::new(), Onward::new());
            let (mut token, mut dry) = (None, Dry::new(self.place.turns.limits().operation));
            'pages: loop {
                let page = dry.wait(self.page(range.from.as_ref(), token.take())).await?;
                let (objects, next) = page;
                let came = objects.len();
                for (key, object) in objects {
                    keys.at(&key, "a list").map_err(place)?;
                    if !range.contains(&key) {
                        break 'pages;
                    }
                    yield (key, object);
                }
                let Some(next) = next else { break };
                tokens.at(&next, "a list").map_err(place)?;
                dry.came(came).map_err(place)?;
                token = Some(next);
            }
        })
    }

    async fn write(&self, blob: &Blob) -> Result<()> {
        let object = self.object(&blob.key)?;
        let _turn = self.place.turn().await?;
        let done = self.place.client.put(&object, blob.bytes.clone().into()).await;
        done.map(drop).map_err(|e| of(&blob.key, failed(e)))
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        let object = self.object(key)?;
        let _turn = self.place.turn().await?;
        let get = async {
            let answer = self.place.client.get(&object).await?;
            answer.bytes().await
        };
        let bytes = found(get.await).map_err(|e| of(key, e))?;
        Ok(bytes.map(Into::into))
    }

    /// The key's object, if there is one.
    async fn there(&self, key: &Key) -> Result<Option<Path>> {
        let object = self.object(key)?;
        let _turn = self.place.turn().await?;
        let head = found(self.place.client.head(&object).await).map_err(|e| of(key, e))?;
        Ok(head.map(|_| object))
    }

    /// Deletes these, each by a request, as not every server has one for several. (The crate's own
    /// way would send 20 at once, whatever `?pool` says.)
    async fn delete(&self, objects: Vec<Path>) -> Result<()> {
        let one = |object: Path| {
            async move {
                let _turn = self.place.turn().await?;
                self.place.client.delete(&object).await.map_err(failed)
            }
            .boxed()
        };
        let each: Vec<BoxFuture<'_, Result<()>>> = objects.into_iter().map(one).collect();
        stream::iter(each).buffer_unordered(self.place.common.pool).try_collect().await
    }

    async fn keys(&self, range: &KeyRange) -> Result<u64> {
        let mut count = 0;
        let mut keys = self.listed(range);
        while keys.try_next().await?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

#[async_trait]
impl Blobs for S3 {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(S3::new(self.place.clone(), name)?))
    }

    /// A bucket needs nothing more.
    async fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn check(&self, key: &Key, bytes: usize) -> Result<()> {
        let (name, longest) = (names::encode(key).len(), self.abilities.max_key);
        if name > longest {
            return Err(Error::invalid(format!(
                "key {}: as the name of an object it has {name} bytes; the limit is {longest}",
                key.shown()
            )));
        }
        fits(&self.abilities, key, bytes)
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        blobs.iter().try_for_each(|blob| self.check(&blob.key, blob.bytes.len()))?;
        // Of several with one key the last: side by side, any might come last.
        let mut seen = BTreeSet::new();
        let mut last: Vec<&Blob> =
            blobs.iter().rev().filter(|blob| seen.insert(&blob.key)).collect();
        last.reverse();
        self.all("a put", last.into_iter().map(|blob| self.write(blob).boxed()).collect()).await?;
        Ok(())
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.all("a get", keys.iter().map(|key| self.read(key).boxed()).collect()).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let keys: BTreeSet<&Key> = keys.iter().collect();
        // To delete what is not there is no error, and no answer.
        let looks = keys.into_iter().map(|key| self.there(key).boxed()).collect();
        let there: Vec<_> = self.all("a remove", looks).await?.into_iter().flatten().collect();
        let count = there.len() as u64;
        self.within("a remove", self.delete(there)).await?;
        Ok(count)
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let mut listed = self.listed(range);
        Ok(Box::pin(async_stream::try_stream! {
            // Few at first: whoever leaves early has not waited for many.
            let (mut over, mut many) = (false, MANY / 16);
            while !over {
                let (mut keys, mut bytes) = (Vec::new(), 0);
                while keys.len() < many && bytes < MUCH {
                    match listed.try_next().await? {
                        Some((key, object)) => {
                            bytes = object.size.saturating_add(bytes);
                            keys.push(key);
                        }
                        None => {
                            over = true;
                            break;
                        }
                    }
                }
                many = MANY.min(many * 2);
                let found = self.get(&keys).await?;
                let batch: Vec<Blob> = keys
                    .into_iter()
                    .zip(found)
                    // One may have been deleted since.
                    .filter_map(|(key, bytes)| bytes.map(|bytes| Blob { key, bytes }))
                    .collect();
                if !batch.is_empty() {
                    yield batch;
                }
            }
        }))
    }

    async fn count(&self) -> Result<u64> {
        self.keys(&KeyRange::all()).await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        let count = self.keys(&KeyRange::all()).await?;
        let each = count.div_ceil(parts.max(1).into()).max(1);
        let mut borders = Vec::new();
        let all = KeyRange::all();
        let mut keys = self.listed(&all).enumerate();
        while let Some((at, key)) = keys.next().await {
            let (key, _) = key?;
            if at > 0 && (at as u64).is_multiple_of(each) && borders.len() + 1 < parts as usize {
                borders.push(key);
            }
        }
        Ok(padded(borders, parts))
    }

    async fn drop_table(&self) -> Result<()> {
        let all = KeyRange::all();
        let objects = self.listed(&all).map_ok(|(_, object)| object.location);
        let mut objects = objects.try_chunks(MANY);
        while let Some(objects) = objects.try_next().await.map_err(|e| e.1)? {
            self.within("a drop", self.delete(objects)).await?;
        }
        Ok(())
    }

    async fn describe(&self) -> Result<Description> {
        let product = self.place.product.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut settings = vec![
            ("bucket".into(), self.place.bucket.clone()),
            ("folder".into(), self.folder.clone()),
        ];
        if let Some(tier) = self.place.vouched {
            settings.push(("server_tier, as the URL says".into(), tier.to_string()));
        }
        Ok(Description {
            client: Client::Crate("object_store"),
            product: product.unwrap_or_else(|| "S3".into()),
            // None of them tells.
            version: String::new(),
            shape: Shape::Blob,
            format: None,
            asked: self.place.common.durability,
            set: self.place.amazon.then_some(Tier::T3),
            bound: None,
            limit: None,
            settings,
            disk: None,
        })
    }
}
