//! A collection, and what both layouts do with it.

use std::{collections::HashMap, sync::Arc};

use async_stream::try_stream;
use bson::{Document, RawDocument, RawDocumentBuf, doc, raw::RawBsonRef};
use futures_util::{Stream, StreamExt, stream::BoxStream};
use mongodb::{
    Client, Collection,
    options::{CollectionOptions, WriteConcern},
};

use super::{
    connect,
    convert::{ID, id, malformed},
    error::{never_connected, ours},
    filter::Find,
    write::{self, Matching, Write},
};
use crate::{
    Error, Result,
    durability::{Bound, Tier},
    store::{
        Client as Speaks, Common, Description, Key, KeyRange, Part, Shape, TENANT, counts,
        key::padded,
        limits::{Limits, unconnected},
        net::{SEVERAL, too_long},
        onward::{Dry, Onward},
        pool::{Pool, Share, Turns},
        within,
    },
};

/// How many documents are asked for at a time.
const BATCH: u32 = 1000;
/// How many keys are named in one question.
const KEYS: usize = 1000;

/// What the tables of a place share.
#[derive(Clone)]
pub(super) struct Server {
    client: Client,
    database: String,
    concern: Option<WriteConcern>,
    /// Whether inserts go in order.
    ordered: bool,
    /// How many operations at once; the client has a pool of its own.
    turns: Arc<Turns>,
    /// How many of them, where others share them.
    share: Option<Share>,
    common: Common,
}

/// A collection. What it makes of a document, who asks says.
pub(super) struct Table {
    server: Arc<Server>,
    collection: Collection<RawDocumentBuf>,
}

impl Server {
    /// An error, as other stores tell it: servers are looked for as long as connecting may take.
    fn told(&self, e: Error) -> Error {
        let e = match never_connected(&e) {
            true => unconnected(self.common.connect_timeout).with_source(e),
            false => e,
        };
        match e.is_outage() {
            true => e.in_place(self.turns.place()),
            false => e,
        }
    }
}

impl Table {
    pub(super) async fn open(
        client: Client,
        database: String,
        ordered: bool,
        place: String,
        common: Common,
    ) -> Result<Table> {
        let concern = connect::concern(common.durability)?;
        let name = common.table.clone();
        let turns = Turns::new(Limits::of(&common), place);
        let (turns, share) = (Arc::new(turns), None);
        let server = Arc::new(Server { client, database, concern, ordered, turns, share, common });
        let table = Table::new(server.clone(), &name)?;
        let greeted = connect::greet(&server.client, &server.database, &server.common).await;
        greeted.map_err(|e| server.told(e))?;
        Ok(table)
    }

    fn new(server: Arc<Server>, name: &str) -> Result<Table> {
        connect::check_table(&server.database, name)?;
        let options = CollectionOptions::builder().write_concern(server.concern.clone()).build();
        let database = server.client.database(&server.database);
        let collection = database.collection_with_options(name, options);
        Ok(Table { server, collection })
    }

    /// Another collection of the same database.
    pub(super) fn sibling(&self, name: &str) -> Result<Table> {
        Table::new(self.server.clone(), name)
    }

    /// The collection of the same name in another part of the server.
    pub(super) fn part(&self, part: Part<'_>) -> Result<Option<Table>> {
        let database = match part {
            Part::Database(name) => name,
            Part::Tenant(_) => &self.server.database,
            Part::Schema(_) => return Ok(None),
        };
        connect::check_database(database)?;
        let (database, share) = (database.to_owned(), Some(Share::of(&self.server.turns)));
        let server = Server { database, share, ..(*self.server).clone() };
        Table::new(Arc::new(server), self.name()).map(Some)
    }

    /// The name of the collection.
    pub(super) fn name(&self) -> &str {
        self.collection.name()
    }

    /// Sends a command that is about the database.
    pub(super) async fn ask(&self, command: Document) -> Result<Document> {
        let database = self.server.client.database(&self.server.database);
        self.within("a question about itself", async { database.run_command(command).await }).await
    }

    /// What the collections of the database take with their indexes, without what is free in their files, where the server says
    /// how much that is: FerretDB does not.
    pub(super) async fn database_bytes(&self) -> Result<Option<u64>> {
        let stats = self.ask(doc! {"dbStats": 1, "freeStorage": 1}).await?;
        let bytes = |name| u64::try_from(write::number(&stats, name)).ok();
        let free = bytes("totalFreeStorageSize").unwrap_or(0);
        let all = |records: u64| records + bytes("indexSize").unwrap_or(0);
        Ok(bytes("storageSize").map(|records| all(records).saturating_sub(free)))
    }

    async fn within<T>(
        &self,
        what: &str,
        done: impl Future<Output = mongodb::error::Result<T>>,
    ) -> Result<T> {
        self.in_turn(what, async { done.await.map_err(ours) }).await
    }

    async fn in_turn<T>(&self, what: &str, done: impl Future<Output = Result<T>>) -> Result<T> {
        let done = async {
            let _turn = Pool::turn_of(&*self.server.turns, self.server.share.as_ref()).await?;
            done.await
        };
        let done = within(self.server.common.timeout, what, done).await;
        done.map_err(|e| self.server.told(e))
    }

    /// The names of the collections of the database, in the order of their bytes: no views, nor what `table` does not open.
    pub(super) async fn names(&self) -> Result<Vec<String>> {
        let database = self.server.client.database(&self.server.database);
        let list = async {
            let command = doc! {"listCollections": 1, "nameOnly": true, "cursor": {}};
            let mut cursor = database.run_cursor_command(command).await.map_err(ours)?;
            let (mut names, mut bytes) = (Vec::new(), 0);
            while cursor.advance().await.map_err(ours)? {
                let document = cursor.current();
                bytes += document.as_bytes().len();
                if bytes > SEVERAL {
                    return Err(too_long("listCollections", SEVERAL));
                }
                names.extend(listed(&self.server.database, document)?.map(str::to_owned));
            }
            names.sort_unstable();
            Ok(names)
        };
        // One deadline for all batches.
        self.in_turn("listCollections", list).await.map_err(|e| match e.kind() {
            crate::ErrorKind::Malformed => self.placed(e),
            _ => e,
        })
    }

    /// Makes the collection, unless it is there.
    pub(super) async fn create(&self) -> Result<()> {
        let database = self.server.client.database(&self.server.database);
        let command = doc! {"create": self.collection.name()};
        match self.within("create", async { database.run_command(command).await }).await {
            // NamespaceExists.
            Err(e) if e.kind() == crate::ErrorKind::Conflict => Ok(()),
            made => made.map(drop),
        }
    }

    /// Makes an index on a path and the key, in the order of sorted queries, unless it is there.
    pub(super) async fn index(&self, path: &str, shared: bool) -> Result<()> {
        let keys = match shared {
            true => doc! {TENANT: 1, path: 1, ID: 1},
            false => doc! {path: 1, ID: 1},
        };
        let index = mongodb::IndexModel::builder().keys(keys).build();
        let made = async { self.collection.create_index(index).await };
        self.within("createIndexes", made).await.map(drop)
    }

    /// A document of the collection, any.
    pub(super) async fn any(&self) -> Result<Option<RawDocumentBuf>> {
        let one = async { self.collection.find_one(doc! {}).await };
        self.within("find", one).await
    }

    /// Writes documents with their keys.
    pub(super) async fn write(
        &self,
        replace: bool,
        documents: &[(&Key, RawDocumentBuf)],
    ) -> Result<()> {
        let how = match replace {
            true => Write::Replace,
            false => Write::Insert { ordered: self.server.ordered },
        };
        let concern = self.server.concern.as_ref();
        let written = write::write(&self.collection, how, concern, documents);
        self.in_turn("a write", written).await
    }

    /// Writes a document if there is none of its key, and says whether it did.
    pub(super) async fn insert_absent(&self, key: &Key, document: RawDocumentBuf) -> Result<bool> {
        /// How often: each time, somebody else has written one and deleted it again.
        const TRIES: usize = 8;
        let documents = [(key, document)];
        let mut tries = 0;
        loop {
            tries += 1;
            match self.write(false, &documents).await {
                Ok(()) => return Ok(true),
                Err(e) if e.kind() == crate::ErrorKind::Conflict => {
                    // Another index may be unique, too.
                    let one = async { self.collection.find_one(doc! {ID: key.as_str()}).await };
                    if self.within("find", one).await?.is_some() {
                        return Ok(false);
                    }
                    if tries == TRIES {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Replaces the document of a key, or without another deletes it, if it is one that matches; says whether it did.
    pub(super) async fn swap(
        &self,
        key: &Key,
        condition: Document,
        document: Option<&RawDocumentBuf>,
    ) -> Result<bool> {
        let matching = Matching { key, condition };
        let concern = self.server.concern.as_ref();
        let swapped = write::swap(&self.collection, concern, matching, document);
        self.in_turn("a conditional write", swapped).await.map_err(|e| match e.kind() {
            crate::ErrorKind::Malformed => self.placed(e),
            _ => e,
        })
    }

    /// What a question finds, in the batches that the server sends.
    pub(super) fn find<'a, T: Send + 'a>(
        &'a self,
        find: Find,
        make: fn(&RawDocument) -> Result<T>,
    ) -> impl Stream<Item = Result<Vec<T>>> + Send + 'a {
        try_stream! {
            if find.limit != Some(0) {
                let limit = find.limit.and_then(|limit| i64::try_from(limit).ok());
                let mut asked = self.collection.find(find.filter).batch_size(BATCH);
                if !find.order.is_empty() {
                    // Sorting may take more memory than a server gives it.
                    asked = asked.sort(find.order).allow_disk_use(true);
                }
                if let Some(limit) = limit {
                    asked = asked.limit(limit);
                }
                if let Some(fields) = find.fields {
                    asked = asked.projection(fields);
                }
                let mut cursor = self.within("find", asked.batch()).await?;
                let mut dry = Dry::new(self.server.common.timeout);
                loop {
                    let next = self.within("find", async { cursor.next().await.transpose() });
                    let Some(batch) = dry.wait(next).await? else { break };
                    let rows = made(&batch, make)?;
                    dry.came(rows.len()).map_err(|e| self.placed(e))?;
                    if !rows.is_empty() {
                        yield rows;
                    }
                }
            }
        }
    }

    /// Shows `see` each document that comes out of a pipeline.
    pub(super) async fn piped(
        &self,
        pipeline: Vec<Document>,
        mut see: impl FnMut(&RawDocument) -> Result<()>,
    ) -> Result<()> {
        let asked = self.collection.aggregate(pipeline).batch_size(BATCH);
        let asked = asked.with_type::<RawDocumentBuf>();
        let mut cursor = self.within("aggregate", async { asked.await }).await?;
        while self.within("aggregate", cursor.advance()).await? {
            see(cursor.current())?;
        }
        Ok(())
    }

    /// What lies in a range of keys, in their order. Each page is a question of its own, which goes
    /// on after the last key: no cursor has to live while what came is worked on.
    pub(super) fn scan<'a, T: Send + 'a>(
        &'a self,
        range: &KeyRange,
        make: fn(&RawDocument) -> Result<(Key, T)>,
    ) -> BoxStream<'a, Result<Vec<(Key, T)>>> {
        let range = range.clone();
        try_stream! {
            if range.is_all() {
                self.keys_are_text().await?;
            }
            let (mut ids, mut walk) = (in_range(&range), Onward::new());
            loop {
                let filter = if ids.is_empty() { doc! {} } else { doc! {ID: ids.clone()} };
                let page = Find {
                    filter,
                    order: doc! {ID: 1},
                    limit: Some(BATCH.into()),
                    fields: None,
                };
                let mut count = 0;
                let mut last = None;
                let mut batches = Box::pin(self.find(page, make));
                while let Some(batch) = batches.next().await {
                    let batch = batch?;
                    count += batch.len();
                    last = batch.last().map(|(key, _)| key.clone());
                    yield batch;
                }
                match last {
                    Some(last) if count >= BATCH as usize => {
                        walk.at(&last, "find")?;
                        ids.remove("$gte");
                        ids.insert("$gt", last.as_str());
                    }
                    _ => break,
                }
            }
        }
        .boxed()
    }

    /// Comparisons of keys find texts only; others would be passed over without a word.
    async fn keys_are_text(&self) -> Result<()> {
        for direction in [1, -1] {
            self.key_at(doc! {}, direction, 0).await?;
        }
        Ok(())
    }

    /// The key so many places from the first, or from the last.
    async fn key_at(&self, ids: Document, direction: i32, skip: u64) -> Result<Option<Key>> {
        let filter = if ids.is_empty() {
            ids
        } else {
            doc! {ID: ids}
        };
        let find = self.collection.find_one(filter).projection(doc! {ID: 1});
        let find = find.sort(doc! {ID: direction}).skip(skip);
        let found = self.within("find", async { find.await }).await?;
        found.as_deref().map(key_of).transpose()
    }

    /// As [`Store::split`](crate::store::Store::split): each border is counted from the one before.
    pub(super) async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.keys_are_text().await?;
        let count = self.count().await?;
        let mut borders = Vec::new();
        let (mut ids, mut at) = (Document::new(), 0);
        for part in 1..u64::from(parts) {
            let wanted = (u128::from(count) * u128::from(part) / u128::from(parts)) as u64;
            if wanted == at {
                continue;
            }
            let Some(border) = self.key_at(ids, 1, wanted - at).await? else { break };
            ids = doc! {"$gte": border.as_str()};
            at = wanted;
            borders.push(border);
        }
        Ok(padded(borders, parts))
    }

    /// What is stored under these keys, in their order.
    pub(super) async fn get<T: Send + Clone>(
        &self,
        keys: &[Key],
        make: fn(&RawDocument) -> Result<(Key, T)>,
    ) -> Result<Vec<Option<T>>> {
        match keys {
            [_] => self.got(keys, make).await,
            // One deadline for all portions and what of them comes in several batches.
            _ => within(self.server.common.timeout, "a get", self.got(keys, make)).await,
        }
    }

    async fn got<T: Send + Clone>(
        &self,
        keys: &[Key],
        make: fn(&RawDocument) -> Result<(Key, T)>,
    ) -> Result<Vec<Option<T>>> {
        let mut found: HashMap<Key, T> = HashMap::with_capacity(keys.len());
        for keys in keys.chunks(KEYS) {
            let find = Find { filter: among(keys), ..Find::default() };
            let mut batches = Box::pin(self.find(find, make));
            while let Some(batch) = batches.next().await {
                found.extend(batch?);
            }
        }
        // Mostly each is asked for once.
        Ok(match keys {
            [key] => vec![found.remove(key)],
            keys => keys.iter().map(|key| found.get(key).cloned()).collect(),
        })
    }

    /// Deletes what fits, and says how many those were.
    pub(super) async fn delete(&self, filter: Document) -> Result<u64> {
        let gone = async { self.collection.delete_many(filter).await };
        let count = self.within("delete", gone).await?.deleted_count;
        counts::records("delete", count).map_err(|e| self.placed(e))
    }

    /// The error of an answer, which names the server.
    fn placed(&self, e: Error) -> Error {
        e.in_place(self.server.turns.place())
    }

    /// Deletes what is stored under these keys, and says how many there were.
    pub(super) async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let removed = async {
            let mut count = 0;
            for keys in keys.chunks(KEYS) {
                let removed = self.delete(among(keys)).await?;
                count += counts::of_keys("delete", keys, removed).map_err(|e| self.placed(e))?;
            }
            counts::of_keys("delete", keys, count).map_err(|e| self.placed(e))
        };
        // One deadline for all portions.
        within(self.server.common.timeout, "a remove", removed).await
    }

    /// Counted, where the server's statistics would be quicker and wrong.
    pub(super) async fn count(&self) -> Result<u64> {
        let count = async { self.collection.count_documents(doc! {}).await };
        let count = self.within("count", count).await?;
        counts::records("count", count).map_err(|e| self.placed(e))
    }

    /// Deletes the collection.
    pub(super) async fn drop(&self) -> Result<()> {
        self.within("drop", async { self.collection.drop().await }).await
    }

    /// What the server says of itself.
    pub(super) async fn describe(&self, shape: Shape) -> Result<Description> {
        let build = self.ask(doc! {"buildInfo": 1}).await?;
        let text = |document: &Document, name| document.get_str(name).map(str::to_owned).ok();
        let speaks = text(&build, "version").unwrap_or_default();
        let concern = self.server.concern.as_ref();
        let mut settings = vec![("write concern".to_owned(), write::shown(concern))];
        let ferretdb = build.get_document("ferretdb").ok();
        let (product, version, set) = match ferretdb {
            Some(own) => {
                settings.push(("speaks as".into(), format!("MongoDB {speaks}")));
                // It takes write concerns and does nothing about them; what PostgreSQL behind it
                // does, it does not tell.
                let version = text(own, "version").unwrap_or_default();
                // Whose figures these are, too: `PostgreSQL 18.1 (Debian …) on x86_64 …`.
                let below = text(own, "postgresql").unwrap_or_default();
                let below: Vec<&str> = below.split(' ').take(2).collect();
                let product = match below.join(" ") {
                    below if below.is_empty() => "FerretDB on PostgreSQL".to_owned(),
                    below => format!("FerretDB on {below}"),
                };
                (product, version.trim_start_matches('v').to_owned(), None)
            }
            None => {
                // Who may not ask is not told.
                let status = self.ask(doc! {"serverStatus": 1}).await.unwrap_or_default();
                let engine = status.get_document("storageEngine").ok();
                let persistent = engine.and_then(|engine| engine.get_bool("persistent").ok());
                if let Some(name) = engine.and_then(|engine| text(engine, "name")) {
                    settings.push(("storage engine".into(), name));
                }
                let journal = concern.and_then(|concern| concern.journal).unwrap_or(false);
                let set = persistent.map(|persistent| match (persistent, journal) {
                    (false, _) => Tier::T0,
                    (true, false) => Tier::T2,
                    (true, true) => Tier::T3,
                });
                ("MongoDB".to_owned(), speaks, set)
            }
        };
        Ok(Description {
            client: Speaks::Crate("mongodb"),
            product,
            version,
            shape,
            format: None,
            asked: self.server.common.durability,
            set,
            // The journal is synced ten times a second, unless storage.journal.commitIntervalMs says else.
            bound: (set == Some(Tier::T2))
                .then_some(Bound::Time(std::time::Duration::from_millis(100))),
            limit: None,
            settings,
            disk: self.database_bytes().await.unwrap_or_default(),
        })
    }
}

/// What keys of a range compare with; nothing where it is all.
pub(super) fn in_range(range: &KeyRange) -> Document {
    let mut ids = Document::new();
    if let Some(from) = &range.from {
        ids.insert("$gte", from.as_str());
    }
    if let Some(until) = &range.until {
        ids.insert("$lt", until.as_str());
    }
    ids
}

/// The name in a line of `listCollections`; none where it is that of a view, or one that `table` does not open.
fn listed<'d>(database: &str, line: &'d RawDocument) -> Result<Option<&'d str>> {
    let name = line.get_str("name").map_err(malformed)?;
    let is_view = line.get_str("type").is_ok_and(|kind| kind == "view");
    Ok((!is_view && connect::check_table(database, name).is_ok()).then_some(name))
}

/// The documents of these keys.
pub(super) fn among(keys: &[Key]) -> Document {
    match keys {
        [key] => doc! {ID: key.as_str()},
        keys => doc! {ID: {"$in": keys.iter().map(|key| key.as_str()).collect::<Vec<_>>()}},
    }
}

/// What the documents of a batch are.
fn made<T>(
    batch: &mongodb::raw_batch_cursor::RawBatch,
    make: fn(&RawDocument) -> Result<T>,
) -> Result<Vec<T>> {
    let documents = batch.doc_slices().map_err(ours)?;
    let one = |document: bson::error::Result<RawBsonRef<'_>>| match document.map_err(malformed)? {
        RawBsonRef::Document(document) => make(document),
        _ => Err(Error::malformed("the server sent something else than a document")),
    };
    documents.into_iter().map(one).collect()
}

/// The key of a document.
pub(super) fn key_of(document: &RawDocument) -> Result<Key> {
    match document.get(ID).map_err(malformed)? {
        Some(value) => id(value),
        None => Err(Error::malformed("a document without an _id")),
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn what_is_no_table_is_not_listed() {
        for (name, kind, is_table) in [
            ("orders", "collection", true),
            ("a.b", "collection", true),
            ("weather", "timeseries", true),
            ("seen", "view", false),
            ("system.views", "collection", false),
            ("system.buckets.weather", "collection", false),
            ("a$b", "collection", false),
        ] {
            let line = rawdoc! {"name": name, "type": kind};
            assert_eq!(listed("test", &line).unwrap(), is_table.then_some(name), "{name}");
        }
        // What does not say is a collection.
        assert_eq!(listed("test", &rawdoc! {"name": "a"}).unwrap(), Some("a"));
        assert!(listed("test", &rawdoc! {"name": 5}).is_err());
    }
}
