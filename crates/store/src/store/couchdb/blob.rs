//! Bytes as documents with one field, in Base64.

use std::sync::Arc;

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::{StreamExt, stream::BoxStream};

use super::{Couch, LARGEST_BLOB, answers::Found, database::Database, mango::Plan, write::Draft};
use crate::{
    Error, Result,
    record::Value,
    store::{
        Abilities, Blob, Blobs, Description, Key, KeyRange, Shape,
        blobs::{fits, named},
    },
};

/// The field.
const FIELD: &str = "blob";

/// A table of bytes.
pub(super) struct CouchBlobs {
    couch: Arc<Couch>,
    database: Database,
    abilities: Abilities,
}

impl CouchBlobs {
    pub(super) fn new(couch: Arc<Couch>, table: &str) -> Result<CouchBlobs> {
        // Base64 makes four bytes of three; a little is for the rest of the document.
        let abilities = Abilities { max_record: LARGEST_BLOB, ..couch.abilities() };
        Ok(CouchBlobs { database: couch.database(table)?, abilities, couch })
    }

    fn drafts<'a>(&self, blobs: &'a [Blob]) -> Result<Vec<Draft<'a>>> {
        let draft = |blob: &'a Blob| {
            self.check(&blob.key, blob.bytes.len())?;
            let text = STANDARD.encode(&blob.bytes);
            // Base64 has nothing that JSON would have to escape.
            Ok(Draft { key: &blob.key, fields: format!("{{\"{FIELD}\":\"{text}\"}}").into_bytes() })
        };
        blobs.iter().map(draft).collect()
    }
}

/// The bytes in a document.
fn bytes(found: Found) -> Result<Blob> {
    Ok(Blob { bytes: read(&found)?, key: found.key })
}

fn read(found: &Found) -> Result<Vec<u8>> {
    let wrong = |what: &str| named(Error::malformed(what), &found.key);
    let Some(Value::Text(text)) = found.record.get(FIELD) else {
        return Err(wrong(
            "a document without text in the field \"blob\", so not one of \
                          steelyard's",
        ));
    };
    STANDARD.decode(text).map_err(|_| wrong("the field \"blob\" is not Base64"))
}

#[async_trait]
impl Blobs for CouchBlobs {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(CouchBlobs::new(self.couch.clone(), name)?))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.couch.within("a list of databases", self.couch.tables()).await
    }

    fn check(&self, key: &Key, bytes: usize) -> Result<()> {
        self.couch.check_key(key)?;
        fits(&self.abilities, key, bytes)
    }

    async fn prepare(&self) -> Result<()> {
        self.couch.within("making a database", self.database.prepare("blob")).await
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        let drafts = self.drafts(blobs)?;
        self.couch.within("a put", self.database.put(&drafts)).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        let drafts = self.drafts(blobs)?;
        self.couch.within("a load", self.database.load(&drafts)).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        let found = self.couch.within("a get", self.database.get(keys)).await?;
        let bytes = |found: Option<Found>| Ok(found.map(bytes).transpose()?.map(|blob| blob.bytes));
        found.into_iter().map(bytes).collect()
    }

    async fn swap(&self, key: &Key, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        let blob = new.map(|bytes| Blob { key: key.clone(), bytes: bytes.to_vec() });
        let draft = self.drafts(blob.as_slice())?.pop();
        let swapped = async {
            match (old, &draft) {
                (None, None) => Ok(false),
                (None, Some(draft)) => self.database.put_absent(draft).await,
                (Some(old), draft) => {
                    let fits = |found: &Found| Ok(read(found)? == old);
                    let fields = draft.as_ref().map(|draft| &draft.fields[..]);
                    self.database.swap(key, fits, fields).await
                }
            }
        };
        self.couch.within("a conditional write", swapped).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.couch.within("a remove", self.database.remove(keys)).await
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let found = self.database.find(Plan::Range(range.clone()));
        let blobs =
            found.map(|batch| batch.and_then(|batch| batch.into_iter().map(bytes).collect()));
        Ok(blobs.boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.couch.within("a count", self.database.count()).await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.couch.within("a split", self.couch.split(&self.database, parts)).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.couch.within("a drop", self.database.drop()).await
    }

    async fn describe(&self) -> Result<Description> {
        let done = self.couch.describe(&self.database, Shape::Blob);
        self.couch.within("a description", done).await
    }
}
