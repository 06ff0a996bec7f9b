//! `couchdb://user:password@host:port/place` — CouchDB, and what speaks its protocol;
//! `couchdbs://` with TLS, which trusts the authorities of this machine or, with `?ca=file.pem`, those in that
//! file and no others. Each table is a database of its own (`name.rs` says which).
//!
//! - **document**: fields at the top of the document, `_id` is the key (`name.rs` has the
//!   exceptions). Fields that begin with `_`
//!   are CouchDB's own and refused; those that are there (`_rev`) are not shown.
//! - **blob**: the bytes in Base64 in the field `blob`. Not an attachment: a batch of those is not
//!   read in one request.
//!
//! A put asks for the revisions that are there and writes over them; where others were quicker it
//! asks again, some times, then it is a conflict that names the keys. A load asks for none, and
//! keys that are taken are the conflict.
//!
//! A conditional write names the revision that was read, over which the server writes or not; where somebody else was
//! quicker, the document is read again. In a cluster of several nodes CouchDB may accept two writers on two nodes, and keeps
//! both revisions: there the promise of one step does not hold.
//!
//! Numbers: servers in JavaScript, and clients that copies go to, have floating ones only, so whole
//! numbers beyond 2^53 are refused, 1.0 may come back as 1, and -0.0 as 0.
//!
//! Queries are answered by selectors and the indexes that `prepare` makes, and matched again here,
//! as CouchDB means some things differently (`mango.rs`): an order of texts, what is not there and
//! what is not so are looked for among all documents or all that have a text there. CouchDB cannot
//! sort without an index of just that order, and leaves out what has no such field: so records are
//! sorted here, which holds as many as the query's limit in memory, or all without a limit. A time
//! is text; a query that compares with a time reads texts as times.
//!
//! `?pool=8` is 8 requests at once. The crate has as many connections, but for moments in which one
//! that was used is on its way back and it makes another.
//!
//! CouchDB 3 has synced what it acknowledges: t3. express-pouchdb over its memory adapter says so,
//! and is t0.

mod answers;
mod blob;
mod database;
mod documents;
mod http;
mod mango;
mod name;
mod sorted;
mod write;

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use reqwest::Method;
use serde::Deserialize;

use self::{blob::CouchBlobs, database::Database, documents::Documents, http::Http};
use super::{
    Abilities, Client, Common, Description, Driver, Encoded, Facts, Key, KeyRange, Login, Need,
    Shape, Store, Url, blobs::CANNOT, json, within,
};
use crate::{Error, Result, durability::Tier, record::Kind};

pub(super) const DRIVER: Driver = Driver {
    name: "couchdb",
    aliases: &["couchdbs"],
    example: "couchdb://user:password@host:5984/place?table=orders",
    about: "CouchDB; couchdbs:// for TLS; one database per table, named place+table",
    shapes: &[Shape::Document, Shape::Blob],
    facts: &[
        Facts {
            refuses: &[Kind::Bytes, Kind::BigInt],
            levels: Some(json::LEVELS),
            indexed: &[Kind::Bool, Kind::Int, Kind::Float, Kind::Text],
            nested: true,
            ..Facts::of(Shape::Document, COUCHDB)
        },
        Facts::of(
            Shape::Blob,
            Abilities { loses: "", cannot: CANNOT, max_record: LARGEST_BLOB, ..COUCHDB },
        ),
    ],
    limits: "",
    tiers: &[Tier::T0, Tier::T3],
    clients: &[Client::Crate("reqwest")],
    servers: &["couchdb"],
    login: Login::Password,
    databases: None,
    open,
};

/// How often a write is tried again that others were quicker with.
const TRIES: u32 = 30;
/// Whole numbers up to here are the same in JavaScript.
const WHOLE: u64 = 1 << 53;
/// The largest document that CouchDB takes as it comes (its setting max_document_size).
const LARGEST: usize = 8_000_000;
/// The same of bytes, which are sent in Base64.
const LARGEST_BLOB: usize = LARGEST / 4 * 3 - 1000;

const COUCHDB: Abilities = Abilities {
    driver: "couchdb",
    keeps: &[Kind::Null, Kind::Bool, Kind::Int, Kind::Text, Kind::List, Kind::Map],
    loses: "whole numbers beyond 2^53 are refused, as are bytes, NaN and infinities; floats \
            without a fraction may come back as whole numbers, and -0.0 as 0; times become text; \
            decimals become floats of the same value, and those with more digits are refused",
    cannot: &[Need::Times],
    joins: false,
    atomic: false,
    conditional: true,
    ordered: true,
    max_key: 1 << 16,
    max_record: LARGEST,
};

/// Keys are in the order of UTF-16, which is not that of UTF-8.
const POUCHDB: Abilities = Abilities {
    keeps: &[Kind::Null, Kind::Bool, Kind::Int, Kind::Text, Kind::List],
    loses: "whole numbers beyond 2^53 are refused, as are bytes, NaN and infinities; floats \
            without a fraction come back as whole numbers, and -0.0 as 0; names that are whole \
            numbers move to the front; times become text; decimals become floats of the same \
            value, and those with more digits are refused",
    ordered: false,
    ..COUCHDB
};

fn open(mut url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let ca = url.take("ca");
        url.done()?;
        let place = std::mem::take(&mut url.path).trim_end_matches('/').to_owned();
        let http = Http::new(&url, &common, ca.as_deref())?;
        // Each request has its own limits; which of two that are the same passes first is chance.
        let limit = common.connect_timeout + common.timeout;
        let asked = within(limit, "the first question", Server::of(&http));
        let server = http.told(asked.await)?;
        if let Some(asked) = common.durability
            && server.tier != Some(asked)
        {
            return Err(asked.refused(&server.product, server.tier.as_slice()));
        }
        let couch = Arc::new(Couch { http: Arc::new(http), server, place, common });
        let table = couch.common.table.clone();
        Ok(match couch.common.shape("couchdb", DRIVER.shapes)? {
            Shape::Blob => {
                let blobs = Arc::new(CouchBlobs::new(couch.clone(), &table)?);
                Arc::new(Encoded::new(blobs, couch.common.blob_format())?) as Arc<dyn Store>
            }
            _ => Arc::new(Documents::new(couch, &table)?),
        })
    }
    .boxed()
}

/// What the tables of a place share.
struct Couch {
    http: Arc<Http>,
    server: Server,
    place: String,
    common: Common,
}

/// What a server says of itself.
struct Server {
    product: String,
    version: String,
    /// Whether it is in JavaScript.
    script: bool,
    tier: Option<Tier>,
    said: Vec<(String, String)>,
}

impl Server {
    async fn of(http: &Http) -> Result<Server> {
        #[derive(Deserialize)]
        struct Welcome {
            couchdb: Option<String>,
            #[serde(rename = "express-pouchdb")]
            pouchdb: Option<String>,
            #[serde(default)]
            version: String,
            #[serde(default, rename = "pouchdb-adapters")]
            adapters: Vec<String>,
            #[serde(default)]
            vendor: Vendor,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Vendor {
            name: String,
        }
        let answer = http.ask(Method::GET, "/", None).await?;
        let welcome: Welcome = answer.read()?;
        let mut said = Vec::new();
        if !welcome.vendor.name.is_empty() {
            said.push(("vendor".into(), welcome.vendor.name));
        }
        let (product, tier) = match (&welcome.couchdb, &welcome.pouchdb) {
            (_, Some(_)) => {
                said.push(("adapters".into(), welcome.adapters.join(",")));
                let memory = welcome.adapters.iter().all(|adapter| adapter == "memory");
                ("express-pouchdb", (memory && !welcome.adapters.is_empty()).then_some(Tier::T0))
            }
            (Some(_), None) => {
                // The first one synced later, unless its settings said otherwise.
                let major: u32 =
                    welcome.version.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                ("CouchDB", (major >= 2).then_some(Tier::T3))
            }
            (None, None) => return Err(Error::unavailable("the server is not CouchDB")),
        };
        let script = welcome.pouchdb.is_some();
        Ok(Server { product: product.into(), version: welcome.version, script, tier, said })
    }
}

impl Couch {
    fn database(&self, table: &str) -> Result<Database> {
        let name = name::of(&self.place, table)?;
        Ok(Database { http: self.http.clone(), script: self.server.script, name })
    }

    /// The tables of this place, in the order of their names' bytes. All databases of the server are listed for it: not
    /// every one that speaks CouchDB's protocol knows ranges of them.
    async fn tables(&self) -> Result<Vec<String>> {
        let databases: Vec<String> = self.http.get("/_all_dbs").await?.read()?;
        let table = |database: &String| name::table(&self.place, database);
        let mut tables: Vec<String> = databases.iter().filter_map(table).collect();
        tables.sort_unstable();
        tables.dedup();
        Ok(tables)
    }

    fn abilities(&self) -> Abilities {
        if self.server.script { POUCHDB } else { COUCHDB }
    }

    /// Waits for something, as long as an operation may take.
    async fn within<T>(&self, what: &str, done: impl Future<Output = Result<T>>) -> Result<T> {
        self.http.told(within(self.common.timeout, what, done).await)
    }

    /// Whether the server can have this key.
    fn check_key(&self, key: &Key) -> Result<()> {
        if self.server.script && key.starts_with('\u{ffff}') {
            let key = key.shown();
            return Err(Error::invalid(format!(
                "key {key}: PouchDB does not list keys with U+FFFF first"
            )));
        }
        Ok(())
    }

    /// The keys of a database in so many parts.
    async fn split(&self, database: &Database, parts: u32) -> Result<Vec<KeyRange>> {
        if self.server.script || parts < 2 {
            return super::blobs::one_part(&self.abilities(), parts);
        }
        let count = database.count().await?;
        let each = count.div_ceil(parts.into()).max(1);
        let mut borders = Vec::new();
        let mut place = each;
        while borders.len() + 1 < parts as usize && place < count {
            borders.extend(database.key_at(place).await?);
            place += each;
        }
        Ok(super::key::padded(borders, parts))
    }

    async fn describe(&self, database: &Database, shape: Shape) -> Result<Description> {
        #[derive(Deserialize)]
        struct Info {
            #[serde(default)]
            sizes: Sizes,
            disk_size: Option<u64>,
        }
        #[derive(Deserialize, Default)]
        struct Sizes {
            file: Option<u64>,
        }
        let answer = self.http.get(&database.path("")).await?;
        // A table that is not made yet has no size.
        let disk = match answer.read::<Info>() {
            Ok(info) => info.sizes.file.or(info.disk_size),
            Err(e) if e.kind() == crate::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let mut settings = self.server.said.clone();
        settings.push(("database".into(), database.name.clone()));
        Ok(Description {
            client: Client::Crate("reqwest"),
            product: self.server.product.clone(),
            version: self.server.version.clone(),
            shape,
            format: None,
            asked: self.common.durability,
            set: self.server.tier,
            bound: None,
            limit: None,
            settings,
            disk,
        })
    }
}
