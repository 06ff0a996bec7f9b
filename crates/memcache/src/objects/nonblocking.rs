//! Objects as values of a client that does not block.

use serde::{Serialize, de::DeserializeOwned};

use super::{OBJECT, decode, encode};
use crate::{AsyncClient, Expiry, Foreign, Result, format::Wrapped, protocol::How, value::Item};

/// A client that does not block, whose values are objects in a format.
pub struct AsyncObjects<'c> {
    client: &'c AsyncClient,
    format: Wrapped,
    foreign: Option<Foreign>,
}

impl AsyncClient {
    /// The same client, whose values are objects in a format.
    pub fn objects(&self, format: impl Into<Wrapped>) -> AsyncObjects<'_> {
        AsyncObjects { client: self, format: format.into(), foreign: None }
    }
}

impl AsyncObjects<'_> {
    /// The same, which reads values of another client too.
    pub fn reading(self, foreign: Foreign) -> Self {
        AsyncObjects { foreign: Some(foreign), ..self }
    }

    /// The object of a key.
    ///
    /// # Errors
    /// As those of [`Objects::get`](super::Objects::get).
    pub async fn get<T: DeserializeOwned>(&self, key: impl AsRef<[u8]>) -> Result<Option<T>> {
        let key = key.as_ref();
        let value = self.client.get(key).await?;
        value.map(|value| decode(&self.format, self.foreign, key, &value)).transpose()
    }

    /// Stores an object.
    ///
    /// # Errors
    /// As those of [`Objects::set`](super::Objects::set).
    pub async fn set<T: Serialize>(
        &self,
        key: impl AsRef<[u8]>,
        object: &T,
        expiry: impl Into<Expiry>,
    ) -> Result<()> {
        let bytes = encode(&self.format, key.as_ref(), object)?;
        let item = Item { bytes: &bytes, flags: OBJECT, expiry: expiry.into() };
        self.client.store(How::Set, key, item).await.map(drop)
    }
}
