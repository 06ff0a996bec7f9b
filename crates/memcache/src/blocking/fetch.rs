//! `fetch`: reads a value, or computes and stores a missing one; of several concurrent readers, one computes it.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::Client;
use crate::{
    Error, ErrorKind, Result,
    calls::{self, Packed},
    protocol::{Answer, How},
    value::{Fetch, Lease},
};

/// The pause between two looks at a value that somebody else makes: it doubles to the last.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

impl Client {
    /// The value of a key; where there is none it is made by `make`, stored, and kept for that
    /// long. Of many who ask at once one makes it, and the others wait for it. Where the cache is
    /// away the value is made all the same.
    ///
    /// ```no_run
    /// # use steelyard_memcache::{Client, Options};
    /// # use std::time::Duration;
    /// # fn render() -> Vec<u8> { Vec::new() }
    /// # let client = Client::new(["cache1"], Options::default())?;
    /// let page = client.fetch(b"page:1", Duration::from_secs(60), || Ok::<_, steelyard_memcache::Error>(render()))?;
    /// # Ok::<(), steelyard_memcache::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `make`, and [`Invalid`](ErrorKind::Invalid) or [`TooLarge`](ErrorKind::TooLarge) for
    /// a key that cannot be.
    pub fn fetch<E: From<Error>>(
        &self,
        key: impl AsRef<[u8]>,
        expiry: impl Into<crate::Expiry>,
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        self.fetch_with(key, Fetch::new(expiry), make)
    }

    /// The same with more to choose. Servers before 1.6.10 let everybody who misses make it.
    ///
    /// # Errors
    /// As those of [`fetch`](Client::fetch).
    pub fn fetch_with<E: From<Error>>(
        &self,
        key: impl AsRef<[u8]>,
        fetch: Fetch,
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        let key = key.as_ref();
        self.shared.cluster.keys.form(key)?;
        let begun = Instant::now();
        let mut pause = PAUSES[0];
        let (cas, empty) = loop {
            match self.ask(key, &fetch) {
                Ok(Lease::Use(found)) => match self.shared.cluster.value(found) {
                    Ok(value) => return Ok(value.bytes),
                    // What cannot be unpacked is made anew.
                    Err(_) => break (0, false),
                },
                Ok(Lease::Make { cas, empty }) => break (cas, empty),
                Ok(Lease::Wait) if begun.elapsed() + pause < fetch.wait => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES[1]);
                }
                // The cache is away, or whoever makes it has not come back.
                Ok(Lease::Wait) | Err(_) => break (0, false),
            }
        };
        match make() {
            Ok(bytes) => {
                // A value that could not be stored is a value all the same.
                let cas = (cas != 0).then_some(cas);
                let item = calls::fetched(&bytes, &fetch);
                if let Ok(packed) = Packed::new(&self.shared.cluster, item) {
                    let _ = self.call(&packed.call(How::Set, key, cas));
                }
                Ok(bytes)
            }
            Err(e) => {
                // Somebody else may try now.
                if empty {
                    let _ = self.call(&calls::delete_if(key, cas));
                }
                Err(e)
            }
        }
    }

    fn ask(&self, key: &[u8], fetch: &Fetch) -> Result<Lease> {
        let answer = match self.call(&calls::fetch(key, fetch)) {
            Err(e) if e.kind() == ErrorKind::Unsupported => self.call(&calls::get(key))?,
            answer => answer?,
        };
        Ok(match answer {
            Some(Answer::Found(found)) => Lease::of(found),
            _ => Lease::Make { cas: 0, empty: false },
        })
    }
}
