//! A spool for keys that a server lists in one go, until they are read.
//!
//! A listing has to be read as fast as the server writes it: it would hold a connection otherwise,
//! and memcached cuts one off that is read slowly. Many keys do not fit in steady memory, so beyond
//! a few mebibytes they go to a file that has no name and ends with its value.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Cursor, Read, Seek, Write},
};

use crate::{Error, Result, store::Key};

/// How much stays in memory.
const MEMORY: usize = 4 << 20;

/// Keys on their way in.
#[derive(Default)]
pub(crate) struct Spool {
    memory: Vec<u8>,
    file: Option<BufWriter<File>>,
    count: u64,
}

impl Spool {
    /// Puts a key by.
    ///
    /// # Errors
    /// Where there is no room for a file.
    pub(crate) fn push(&mut self, key: &Key) -> Result<()> {
        let len = u32::try_from(key.len()).map_err(|_| Error::invalid("a key of gigabytes"))?;
        self.memory.extend_from_slice(&len.to_le_bytes());
        self.memory.extend_from_slice(key.as_bytes());
        self.count += 1;
        if self.memory.len() > MEMORY {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(BufWriter::new(tempfile::tempfile()?)),
            };
            // Into the system's cache: no wait worth a thread of its own.
            file.write_all(&self.memory)?;
            self.memory.clear();
        }
        Ok(())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The keys, in the order they came.
    ///
    /// # Errors
    /// Of the file.
    pub(crate) fn read(self) -> Result<Spooled> {
        let memory = Cursor::new(self.memory);
        let source: Box<dyn Read + Send> = match self.file {
            None => Box::new(memory),
            Some(file) => {
                let mut file = file.into_inner().map_err(|e| Error::from(e.into_error()))?;
                file.rewind()?;
                Box::new(BufReader::new(file).chain(memory))
            }
        };
        Ok(Spooled { source, left: self.count })
    }
}

/// Keys on their way out.
pub(crate) struct Spooled {
    source: Box<dyn Read + Send>,
    left: u64,
}

impl Spooled {
    /// So many keys, fewer at the end.
    ///
    /// # Errors
    /// Of the file.
    pub(crate) fn take(&mut self, most: usize) -> Result<Vec<Key>> {
        let n = most.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let mut keys = Vec::with_capacity(n);
        for _ in 0..n {
            let mut len = [0; 4];
            self.source.read_exact(&mut len)?;
            let mut text = vec![0; u32::from_le_bytes(len) as usize];
            self.source.read_exact(&mut text)?;
            let text = String::from_utf8(text).map_err(|_| Error::malformed("a spoiled spool"))?;
            keys.push(Key::new(text)?);
            self.left -= 1;
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_in_order_also_through_a_file() {
        for (many, pad) in [(0, 0), (10, 3), (100_000, 50), (30, 1_000_000)] {
            let key = |i: usize| Key::new(format!("{i}{}", "x".repeat(pad))).unwrap();
            let mut spool = Spool::default();
            (0..many).for_each(|i| spool.push(&key(i)).unwrap());
            assert_eq!(spool.file.is_some(), many * pad > MEMORY);
            assert_eq!(spool.count(), many as u64);
            assert!(spool.memory.len() <= MEMORY);
            let mut spooled = spool.read().unwrap();
            let mut next = 0;
            loop {
                let keys = spooled.take(999).unwrap();
                if keys.is_empty() {
                    break;
                }
                for found in keys {
                    assert_eq!(found, key(next));
                    next += 1;
                }
            }
            assert_eq!(next, many);
        }
    }
}
