//! Writes the collections of one tenant to files that other programs read.

use std::{os::unix::fs::MetadataExt, path::Path};

use nix::unistd::geteuid;

use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::{
    file::{Sink, Writing},
    format::{Takes, Wrapped},
    link,
    record::Document,
    store::query,
};

use super::{Tenants, transfer};
use crate::{
    catalog::State,
    docs::REVISION,
    names::{CollectionName, TenantName},
};

impl Tenants {
    /// Writes each collection of a tenant to a file of a folder, `COLLECTION.FORMAT`, without revisions; the id of a
    /// document is its field `_key`, where the format has room for it. What is written meanwhile may or may not be in it.
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
        std::fs::create_dir_all(folder).map_err(at)?;
        if std::fs::metadata(folder).map_err(at)?.uid() != geteuid().as_raw() {
            let what =
                "another user owns the folder, and could read and replace what is written to it";
            let e = Error::new(ErrorKind::Denied, what).in_place(folder.display().to_string());
            return Err(e.with_hint("name a folder of your own, or one that is not there"));
        }
        let with_key = format.format.info().takes != Takes::Marc;
        let mut open: Option<(String, Sink)> = None;
        let mut records = 0;
        transfer::each(&database, async |table, rows| {
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
                let mut record = Document::with_capacity(row.record.len() + 1);
                if with_key {
                    record.push(query::Path::KEY, row.key.as_str());
                }
                for (name, value) in row.record {
                    if name != REVISION {
                        record.push(name, value);
                    }
                }
                sink.put(&record)?;
            }
            Ok(())
        })
        .await?;
        if let Some((_, sink)) = open {
            sink.finish()?;
        }
        Ok(records)
    }
}
