//! Values that are objects: any serde type, through a format and its wraps.
//!
//! ```no_run
//! use steelyard_format::format::Format;
//! use steelyard_memcache::{Client, Expiry, Options};
//!
//! let client = Client::new(["cache1"], Options::default())?;
//! let users = client.objects(Format::Msgpack);
//! users.set("user:1", &("Ann", 42), Expiry::Never)?;
//! let user: Option<(String, u32)> = users.get("user:1")?;
//! # Ok::<(), steelyard_memcache::Error>(())
//! ```

use serde::{Serialize, de::DeserializeOwned};

use super::{
    Client, Expiry, Foreign,
    key::shown,
    protocol::How,
    value::{Item, Value},
};
use crate::{
    Error, Result,
    format::{Coder, Wrapped},
};

#[cfg(feature = "async")]
mod nonblocking;

#[cfg(feature = "async")]
pub use nonblocking::AsyncObjects;

/// The flag of a value that is an object in a format.
const OBJECT: u32 = 0x800;

/// A client whose values are objects in a format.
pub struct Objects<'c> {
    client: &'c Client,
    format: Wrapped,
    foreign: Option<Foreign>,
}

impl Client {
    /// The same client, whose values are objects in a format: `Format::Json`, `"msgpack+zstd"`.
    pub fn objects(&self, format: impl Into<Wrapped>) -> Objects<'_> {
        Objects { client: self, format: format.into(), foreign: None }
    }
}

/// The bytes of an object.
fn encode<T: Serialize>(format: &Wrapped, key: &[u8], object: &T) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let done = Coder::new(format.clone())?.encode(object, &mut bytes);
    done.map_err(|e| of(key, e))?;
    Ok(bytes)
}

/// The object of a value: ours where it is marked so, else that of the other client.
fn decode<T: DeserializeOwned>(
    format: &Wrapped,
    foreign: Option<Foreign>,
    key: &[u8],
    value: &Value,
) -> Result<T> {
    let read = match foreign {
        Some(foreign) if value.flags & OBJECT == 0 => foreign.read(value, 1 << 30),
        _ => Coder::new(format.clone())?.decode(&value.bytes),
    };
    read.map_err(|e| of(key, e))
}

fn of(key: &[u8], e: Error) -> Error {
    Error::new(e.kind(), format!("key {}: {}", shown(key), e.context())).with_source(e)
}

impl Objects<'_> {
    /// The same, which reads values of another client too.
    pub fn reading(self, foreign: Foreign) -> Self {
        Objects { foreign: Some(foreign), ..self }
    }

    /// The object of a key.
    ///
    /// # Errors
    /// Those of [`Client::get`]; [`Malformed`](crate::ErrorKind::Malformed) where it is no such
    /// object.
    pub fn get<T: DeserializeOwned>(&self, key: impl AsRef<[u8]>) -> Result<Option<T>> {
        let key = key.as_ref();
        let value = self.client.get(key)?;
        value.map(|value| decode(&self.format, self.foreign, key, &value)).transpose()
    }

    /// Stores an object.
    ///
    /// # Errors
    /// Those of [`Client::set`], and of the format.
    pub fn set<T: Serialize>(
        &self,
        key: impl AsRef<[u8]>,
        object: &T,
        expiry: impl Into<Expiry>,
    ) -> Result<()> {
        let bytes = encode(&self.format, key.as_ref(), object)?;
        let item = Item { bytes: &bytes, flags: OBJECT, expiry: expiry.into() };
        self.client.store(How::Set, key, item).map(drop)
    }
}
