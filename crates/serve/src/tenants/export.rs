//! Writes the collections of one tenant to files that other programs read.

use std::{collections::HashMap, os::unix::fs::MetadataExt, path::Path};

use nix::unistd::geteuid;

use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::{
    file::{Sink, Writing},
    format::{Takes, Wrapped},
    link,
};

use super::{Tenants, database::Database, transfer};
use crate::{
    catalog::State,
    columns::{Columns, record},
    names::{CollectionName, TenantName},
};

impl Tenants {
    /// Writes each collection of a tenant to a file of a folder, `COLLECTION.FORMAT`, without revisions; the id of a
    /// document is its field `_key`, where the format has room for it. CSV has a column for each field
    /// that any has. What is written meanwhile may or may not be in it.
    /// Says how many records there are.
    ///
    /// # Errors
    /// Of the catalog, the store and the files.
    pub async fn export(&self, name: &TenantName, folder: &Path, format: &Wrapped) -> Result<u64> {
        let row = self.catalog.known(name).await?.row;
        if !matches!(row.state, State::Active | State::Frozen) {
            let what = format!("tenant {:?} is being moved or was removed", row.name);
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        let database = self.database(&row).await?;
        let at = |e: std::io::Error| Error::from(e).in_place(folder.display().to_string());
        let was_there = folder.exists();
        std::fs::create_dir_all(folder).map_err(at)?;
        if std::fs::metadata(folder).map_err(at)?.uid() != geteuid().as_raw() {
            let what =
                "another user owns the folder, and could read and replace what is written to it";
            let e = Error::new(ErrorKind::Denied, what).in_place(folder.display().to_string());
            return Err(e.with_hint("name a folder of your own, or one that is not there"));
        }
        let written = written(&database, folder, format).await;
        if written.is_err() && !was_there {
            // If nothing is in it.
            let _ = std::fs::remove_dir(folder);
        }
        written
    }
}

async fn written(database: &Database, folder: &Path, format: &Wrapped) -> Result<u64> {
    // Before the first row of a file the columns of all are known.
    let mut columns: HashMap<String, Columns> = HashMap::new();
    if format.format.info().takes == Takes::Rows {
        transfer::each(database, async |table, rows| {
            let columns = columns.entry(table.to_owned()).or_default();
            rows.into_iter().try_for_each(|row| columns.add(&record(row, format.format)?))
        })
        .await?;
    }
    let mut open: Option<(String, Sink)> = None;
    let mut records = 0;
    transfer::each(database, async |table, rows| {
        if CollectionName::new(table).is_err() {
            return Ok(());
        }
        if open.as_ref().is_none_or(|(name, _)| name != table) {
            if let Some((_, sink)) = open.take() {
                sink.finish()?;
            }
            let path = folder.join(format!("{table}.{format}"));
            link::private(&path)?;
            let path = path
                .to_str()
                .ok_or_else(|| Error::invalid("the name of the folder is not UTF-8"))?;
            let writing = Writing { format: Some(format.clone()), ..Writing::default() };
            open = Some((table.to_owned(), Sink::create(path, &writing)?));
        }
        let Some((_, sink)) = &mut open else { return Ok(()) };
        for row in rows {
            records += 1;
            let record = record(row, format.format)?;
            sink.put(&match columns.get(table) {
                Some(columns) => columns.row(record)?,
                None => record,
            })?;
        }
        Ok(())
    })
    .await?;
    if let Some((_, sink)) = open {
        sink.finish()?;
    }
    Ok(records)
}
