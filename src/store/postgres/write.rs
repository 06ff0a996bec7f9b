//! Writing: `INSERT … ON CONFLICT` of arrays for rows that may be there, binary `COPY` for rows that
//! are new.
//!
//! Rows are put in the order of their keys, so that two who put the same keys wait for each other
//! and do not deadlock. All is checked and encoded before the first byte is sent.

use futures_util::FutureExt;

use super::{
    PostgreSql, error,
    rows::{self, Columns, Entry},
    table::{self, Known},
};
use crate::{Error, ErrorKind, Result, store::Key};

/// What is sent at once, in bytes, about: a statement's values have to fit into 1 GB.
const AT_ONCE: usize = 64 << 20;

/// Bytes before the rows of a binary `COPY`: a signature, no flags, no extension.
const BEGIN: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// After them: no more columns.
const END: [u8; 2] = (-1i16).to_be_bytes();

impl PostgreSql {
    pub(super) async fn put_entries<E: Entry>(&self, entries: &[E]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let known = self.known().await?;
        if let [one] = entries {
            return self.insert(&known, &[one], true).await;
        }
        // The last of equal keys stays: the sort is stable.
        let mut sorted: Vec<&E> = entries.iter().collect();
        sorted.sort_by_key(|entry| entry.key());
        let last = |i: &usize| sorted.get(i + 1).is_none_or(|next| next.key() != sorted[*i].key());
        // Those that are replaced at once are checked like the others.
        let replaced = (0..sorted.len()).filter(|i| !last(i));
        for i in replaced {
            rows::write(&known, sorted[i], &mut Vec::new())?;
        }
        let kept: Vec<&E> = (0..sorted.len()).filter(last).map(|i| sorted[i]).collect();
        self.insert(&known, &kept, true).await
    }

    /// Each entry by a statement of its own, all in one transaction.
    pub(super) async fn put_each_entry<E: Entry>(&self, entries: &[E]) -> Result<()> {
        let known = self.known().await?;
        let mut connection = self.pool.get().await?;
        // What is not committed ends with the connection.
        connection.batch("BEGIN").await?;
        connection.begin();
        for entry in entries {
            let mut one = Columns::new(&known);
            one.push(&known, entry)?;
            self.noted(connection.execute(&known.say.put_one, &one.bound(&known)).await)?;
        }
        connection.batch("COMMIT").await?;
        connection.end();
        Ok(())
    }

    pub(super) async fn load_entries<E: Entry>(&self, entries: &[E]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let known = self.known().await?;
        let keys = || entries.iter().map(|entry| entry.key());
        let loaded = match &known.say.copy {
            Some(copy) if entries.len() > 1 => {
                let mut buffer = Vec::with_capacity(entries.len() * 128);
                buffer.extend(BEGIN);
                let columns = known.fields.len() as i16 + 1;
                for entry in entries {
                    buffer.extend(columns.to_be_bytes());
                    rows::write(&known, entry, &mut buffer)?;
                }
                buffer.extend(END);
                let mut connection = self.pool.get().await?;
                self.noted(connection.copy_in(copy, buffer).await).map(drop)
            }
            _ => self.insert(&known, &entries.iter().collect::<Vec<_>>(), false).await,
        };
        match loaded {
            Err(e) if error::code(&e) == Some("23505") => Err(self.taken(keys(), e).await),
            Err(e) => Err(match error::row(&e).and_then(|row| keys().nth(row - 1)) {
                Some(key) => {
                    let what = format!("key {}: {}", key.shown(), e.context());
                    Error::new(e.kind(), what).with_source(e)
                }
                None => e,
            }),
            Ok(()) => Ok(()),
        }
    }

    async fn insert<E: Entry>(&self, known: &Known, entries: &[&E], replace: bool) -> Result<()> {
        let mut groups = vec![Columns::new(known)];
        for entry in entries {
            if groups.last().is_some_and(|group| group.size() > AT_ONCE) {
                groups.push(Columns::new(known));
            }
            groups.last_mut().expect("never empty").push(known, *entry)?;
        }
        let statement = |group: &Columns| match (group.rows, replace) {
            (1, true) => &known.say.put_one,
            (_, true) => &known.say.put_many,
            (1, false) => &known.say.insert_one,
            (_, false) => &known.say.insert_many,
        };
        if groups.len() == 1
            && let Some(group) = groups.pop()
        {
            let statement = statement(&group);
            return self.noted(self.pool.execute(statement, &group.bound(known)).await).map(drop);
        }
        let in_one = async {
            let mut connection = self.pool.get().await?;
            // What is not committed ends with the connection.
            connection.batch("BEGIN").await?;
            connection.begin();
            for group in groups {
                let statement = statement(&group);
                self.noted(connection.execute(statement, &group.bound(known)).await)?;
            }
            connection.batch("COMMIT").await?;
            connection.end();
            Ok(())
        };
        // Apart, so that what is usual stays small.
        in_one.boxed().await
    }

    pub(super) async fn removed(&self, keys: &[Key]) -> Result<u64> {
        if keys.is_empty() {
            return Ok(0);
        }
        let known = self.known().await?;
        let keys = [table::keys(&known, keys)];
        self.noted(self.pool.execute(&known.say.remove, &keys).await)
    }

    /// The error for keys that are taken, with the first of them.
    async fn taken<'k>(
        &self,
        keys: impl Iterator<Item = &'k Key> + Clone + Send,
        e: Error,
    ) -> Error {
        let mut sorted: Vec<&Key> = keys.clone().collect();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let what = match twice {
            Some(key) => format!("key {}: it is twice in the batch", key.shown()),
            None => {
                let asked: Vec<Key> = keys.cloned().collect();
                let there = match self.found(&asked, |_, row| rows::key_of(row)).await {
                    Ok(there) => there.into_iter().flatten().next(),
                    Err(_) => None,
                };
                match there {
                    Some(key) => format!("key {}: it is taken", key.shown()),
                    // Of another unique index, or gone again.
                    None => e.context().to_owned(),
                }
            }
        };
        Error::new(ErrorKind::Conflict, what).with_source(e)
    }
}
