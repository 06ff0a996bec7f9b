//! Layout blob: `{_id: key, v: Binary}`. BSON has bytes of its own, so nothing is spelled in
//! Base64.

use std::sync::Arc;

use async_trait::async_trait;
use bson::{
    Bson, Document, RawDocument, RawDocumentBuf, doc,
    raw::{RawBinaryRef, RawBsonRef, cstr},
    spec::BinarySubtype,
};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};

use super::{
    ABILITIES,
    convert::{ID, check_key, check_size, malformed},
    table::{Table, key_of},
};
use crate::{
    Error, ErrorKind, Result,
    store::{Abilities, Blob, Blobs, Description, Explained, Key, KeyRange, Part, Request, Shape},
};

/// The field of the bytes.
const VALUE: &str = "v";
/// What is around the bytes and the key: lengths, names and types.
const AROUND: usize = 4 + (5 + 4 + 1) + (3 + 4 + 1) + 1;

/// Blobs in a collection.
pub(super) struct Bytes(pub Table);

/// The bytes of a document, whatever their subtype.
fn bytes(document: &RawDocument) -> Result<(Key, Vec<u8>)> {
    let key = key_of(document)?;
    match document.get(VALUE).map_err(malformed)? {
        Some(RawBsonRef::Binary(value)) => Ok((key, value.bytes.to_vec())),
        _ => Err(Error::malformed(format!("key {}: no bytes under {VALUE:?}", key.shown()))),
    }
}

/// Whether a document is a key and bytes, and nothing else.
pub(super) fn is_blob(document: &RawDocument) -> bool {
    let names = |found: bson::error::Result<(_, RawBsonRef<'_>)>| {
        let Ok((name, value)) = found else { return false };
        let name: &bson::raw::CStr = name;
        name.as_str() == ID || (name.as_str() == VALUE && matches!(value, RawBsonRef::Binary(_)))
    };
    document.iter().count() == 2 && document.iter().all(names)
}

/// That these are the bytes, whatever their subtype in the table of another program.
fn same(bytes: &[u8]) -> Document {
    let of = |subtype| Bson::Binary(bson::Binary { subtype, bytes: bytes.to_vec() });
    doc! {"$in": [of(BinarySubtype::Generic), of(BinarySubtype::BinaryOld)]}
}

fn documents(blobs: &[Blob]) -> Result<Vec<(&Key, RawDocumentBuf)>> {
    blobs.iter().map(document).collect()
}

fn document(Blob { key, bytes }: &Blob) -> Result<(&Key, RawDocumentBuf)> {
    check_key(key)?;
    check_size(key, key.len() + bytes.len() + AROUND)?;
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("_id"), key.as_str());
    let value = RawBinaryRef { subtype: BinarySubtype::Generic, bytes };
    document.append(cstr!("v"), RawBsonRef::Binary(value));
    Ok((key, document))
}

#[async_trait]
impl Blobs for Bytes {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(Bytes(self.0.sibling(name)?)))
    }

    fn part(&self, part: Part<'_>) -> Result<Option<Arc<dyn Blobs>>> {
        let table = self.0.part(part)?;
        Ok(table.map(|table| Arc::new(Bytes(table)) as Arc<dyn Blobs>))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.0.names().await
    }

    async fn prepare(&self) -> Result<()> {
        self.0.create().await?;
        match self.0.any().await? {
            Some(document) if !is_blob(&document) => Err(Error::new(
                ErrorKind::Conflict,
                "the collection holds documents; open it with ?layout=document, or name another",
            )),
            _ => Ok(()),
        }
    }

    fn check(&self, key: &Key, bytes: usize) -> Result<()> {
        check_key(key)?;
        check_size(key, key.len() + bytes + AROUND)
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        self.0.write(true, &documents(blobs)?).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        self.0.write(false, &documents(blobs)?).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.0.get(keys, bytes).await
    }

    async fn swap(&self, key: &Key, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        let blob = new.map(|bytes| Blob { key: key.clone(), bytes: bytes.to_vec() });
        let new = blob.as_ref().map(document).transpose()?.map(|(_, document)| document);
        match (old, new) {
            (None, None) => Ok(false),
            (None, Some(new)) => self.0.insert_absent(key, new).await,
            (Some(old), new) => {
                let condition = doc! {VALUE: same(old)};
                self.0.swap(key, condition, new.as_ref()).await
            }
        }
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.0.remove(keys).await
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let batches = self.0.scan(range, bytes);
        let blobs = |batch: Vec<(Key, Vec<u8>)>| {
            batch.into_iter().map(|(key, bytes)| Blob { key, bytes }).collect()
        };
        Ok(batches.map_ok(blobs).boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.0.count().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.0.split(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.0.drop().await
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.0.explained_by_keys(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.0.describe(Shape::Blob).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_around_the_bytes_is_counted() {
        let blob = Blob { key: Key::new("key").unwrap(), bytes: vec![1, 2] };
        let blobs = [blob];
        let documents = documents(&blobs).unwrap();
        assert_eq!(documents[0].1.as_bytes().len(), 3 + 2 + AROUND);
        assert!(is_blob(&documents[0].1));
        assert_eq!(bytes(&documents[0].1).unwrap().1, [1, 2]);
        for other in [bson::rawdoc! {"_id": "a"}, bson::rawdoc! {"_id": "a", "v": "text"}] {
            assert!(!is_blob(&other) && bytes(&other).is_err());
        }
    }
}
