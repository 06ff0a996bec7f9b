//! Backs one tenant up into a file of records, in any format that keeps all of them, and restores it as a new tenant.
//!
//! The file is a head, then for each table its records, then an end with their number; without that end it is no backup.

use std::{path::Path, time::Duration};

use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::{
    file::{Frames, Reading, Sink, Writing},
    format::Coder,
    link,
    record::{self, Document, Value},
    store::{Key, Row},
};

use super::{
    Tenants,
    transfer::{self, Filling, Tally},
};
use crate::{
    catalog::{State, TenantLimits, TenantRow, now},
    names::{CollectionName, TenantName},
};

/// The version of what is in a backup.
const VERSION: i64 = 1;
/// Records that are put at once.
const BATCH: usize = 1000;

impl Tenants {
    /// Writes all records of a tenant to a file, whose name tells its format. If `freeze`, the tenant can only be read
    /// meanwhile, so that the backup is of one moment; `wait` is called for the lease. Else what is written meanwhile may
    /// or may not be in it. Says how many records it has.
    ///
    /// # Errors
    /// Of the catalog, the store and the file, which is then as it was before.
    pub async fn backup(
        &self,
        name: &TenantName,
        file: &str,
        freeze: bool,
        wait: impl AsyncFn(Duration),
    ) -> Result<u64> {
        let row = self.catalog.known(name).await?.row;
        link::private(Path::new(file))?;
        match row.state {
            State::Active if freeze => {
                self.freeze(name).await?;
                wait(self.config.lease()).await;
                let written = self.written(&row, file).await;
                // Whatever became of the file.
                let thawed = self.thaw(name).await;
                written.and_then(|records| thawed.map(|()| records))
            }
            State::Active | State::Frozen => self.written(&row, file).await,
            _ => Err(Error::new(
                ErrorKind::Conflict,
                format!("tenant {:?} is being moved or was removed", row.name),
            )),
        }
    }

    async fn written(&self, row: &TenantRow, file: &str) -> Result<u64> {
        let database = self.database(row).await?;
        let mut sink = Sink::create(file, &Writing { sync: true, ..Writing::default() })?;
        let head: [(&str, Value); 4] = [
            ("steelyard_backup", VERSION.into()),
            ("tenant", (&*row.name).into()),
            ("created", now()?.into()),
            ("limits", record::to_value(&row.limits)?),
        ];
        let (mut tally, mut coder) = (Tally::default(), Coder::new(sink.format().clone())?);
        let mut bytes = Vec::new();
        let written = async {
            sink.put(&Document::from_iter(head))?;
            transfer::each(&database, async |table, rows| {
                if rows.is_empty() {
                    sink.put(&Document::from_iter([("table", table)]))?;
                }
                for row in rows {
                    tally.add(table, &row.key, &row.record)?;
                    let key = row.key.shown();
                    let line = line(table, row);
                    // A backup that changes values is none.
                    bytes.clear();
                    coder.encode_document(&line, &mut bytes)?;
                    if coder.decode_document(&bytes)? != line {
                        let what =
                            format!("key {key} of {table} cannot be kept in {}", sink.format());
                        let hint = "a file whose name ends in .cbor.zst keeps every kind of value";
                        return Err(Error::unsupported(what).with_hint(hint));
                    }
                    sink.put(&line)?;
                }
                Ok(())
            })
            .await?;
            let end = i64::try_from(tally.records).unwrap_or(i64::MAX);
            let end: [(&str, Value); 2] = [("end", end.into()), ("sum", tally.sum().into())];
            sink.put(&Document::from_iter(end))
        };
        match written.await {
            Ok(()) => sink.finish().map(|_| tally.records),
            Err(e) => {
                sink.leave()?;
                Err(e)
            }
        }
    }

    /// Makes a tenant of a backup: a new one, under the name given and with the limits of the one that was backed up, which is in
    /// the catalog once it is whole. Says how many
    /// records it has; none where `stop` ended it before.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed) where the file is no whole backup, [`Conflict`](ErrorKind::Conflict) where the
    /// name is taken; of the stores. There is no such tenant then.
    pub async fn restore(
        &self,
        name: &TenantName,
        on: Option<&str>,
        file: &str,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<u64>> {
        let mut row = self.placed(name, on, TenantLimits::default()).await?;
        let filled = tokio::select! {
            biased;
            filled = self.filled(&row, file) => filled.map(Some),
            () = stop => Ok(None),
        };
        match filled {
            Ok(Some((records, limits))) => {
                row.limits = limits;
                self.enter(row).await.map(|_| Some(records))
            }
            ended => {
                self.drop_placed(&row).await?;
                ended.map(|_| None)
            }
        }
    }

    /// Fills a tenant's database from a backup, and says how many records that were, and the limits of the tenant that was backed up.
    async fn filled(&self, row: &TenantRow, file: &str) -> Result<(u64, TenantLimits)> {
        let database = self.database(row).await?;
        let mut frames = Frames::open(file, &Reading::default())?;
        let mut coder = Coder::new(frames.format().clone())?;
        let layouts = self.config.layouts()?;
        let mut filling = Filling::new(&database, &layouts);
        let (mut table, mut waiting, mut end) = (String::new(), Vec::new(), None);
        let mut head = None;
        while let Some(frame) = frames.next()? {
            let at = |e: Error| e.at(frame.offset).at_record(frame.number).in_place(file);
            if let Some(bad) = frame.bad {
                return Err(bad);
            }
            let line = coder.decode_document(frame.bytes).map_err(at)?;
            let part = Part::of(line).and_then(|part| match (&part, head.is_some(), &end) {
                (Part::Head(_), false, None)
                | (Part::Table(_) | Part::Row(..) | Part::End(..), true, None) => Ok(part),
                _ => Err(Error::malformed("this is not in the place where a backup has it")),
            });
            match part.map_err(at)? {
                Part::Head(limits) => head = Some(limits),
                Part::Table(name) => {
                    if !waiting.is_empty() {
                        filling.put(&table, &std::mem::take(&mut waiting)).await?;
                    }
                    filling.put(&name, &[]).await?;
                    table = name;
                }
                Part::Row(name, row) if name == table => {
                    waiting.push(row);
                    if waiting.len() == BATCH {
                        filling.put(&table, &std::mem::take(&mut waiting)).await?;
                    }
                }
                Part::Row(..) => return Err(at(Error::malformed("a record before its table"))),
                Part::End(records, sum) => end = Some((records, sum)),
            }
        }
        if !waiting.is_empty() {
            filling.put(&table, &waiting).await?;
        }
        let records = filling.tally.records;
        match end {
            Some((end, sum)) if end == records => {
                if sum.is_some_and(|sum| sum != filling.tally.sum()) {
                    let what =
                        "the records are not those that were backed up: the file was changed";
                    return Err(Error::malformed(what).in_place(file));
                }
                if transfer::tally(&database).await? != filling.tally {
                    let what = "what was restored is not what is in the file; the store may keep other kinds of value";
                    return Err(Error::new(ErrorKind::Mismatch, what).in_place(file));
                }
                Ok((records, head.unwrap_or_default()))
            }
            Some((end, _)) => {
                let what = format!("the backup says that it has {end} records, and has {records}");
                Err(Error::malformed(what).in_place(file))
            }
            None => {
                Err(Error::malformed("the backup is cut short: its end is missing").in_place(file))
            }
        }
    }
}

fn line(table: &str, row: Row) -> Document {
    let parts: [(&str, Value); 3] = [
        ("table", table.into()),
        ("key", row.key.as_str().into()),
        ("record", Value::Map(row.record)),
    ];
    Document::from_iter(parts)
}

/// A part of a backup.
enum Part {
    Head(TenantLimits),
    Table(String),
    Row(String, Row),
    /// How many records there are, and the sum of their hashes.
    End(u64, Option<String>),
}

impl Part {
    fn of(mut line: Document) -> Result<Part> {
        if let Some(version) = line.get("steelyard_backup") {
            return match version {
                Value::Int(version) if *version == VERSION => {
                    let limits = line.remove("limits").map(record::from_value).transpose()?;
                    Ok(Part::Head(limits.unwrap_or_default()))
                }
                _ => Err(Error::unsupported("a backup of another version")),
            };
        }
        if let Some(Value::Int(records)) = line.get("end") {
            let sum = line.get("sum").and_then(|sum| sum.as_str()).map(str::to_owned);
            return Ok(Part::End(u64::try_from(*records).unwrap_or(u64::MAX), sum));
        }
        let table = match line.remove("table") {
            // The tenant's collections, and the gateway's tables beside them.
            Some(Value::Text(name))
                if CollectionName::new(name.trim_start_matches('_')).is_ok() =>
            {
                name
            }
            _ => return Err(Error::malformed("no part of a backup")),
        };
        match (line.remove("key"), line.remove("record")) {
            (None, None) => Ok(Part::Table(table)),
            (Some(Value::Text(key)), Some(Value::Map(record))) => {
                Ok(Part::Row(table, Row { key: Key::new(key)?, record }))
            }
            _ => Err(Error::malformed("no part of a backup")),
        }
    }
}
