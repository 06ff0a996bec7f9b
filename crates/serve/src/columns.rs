//! Records as they go into files for other programs, and the columns of a file of rows: all fields that any record has, which is
//! known once each was looked at.

use std::collections::HashSet;

use steelyard_base::{Error, Result};
use steelyard_store::{
    format::{Format, Takes},
    record::{Document, Value},
    store::{Row, query::Path},
};

use crate::docs::revision_taken;

/// Columns of a file at most.
const MOST: usize = 4096;

/// A row as it goes into a file: with its key, where the format has room for it, and without its revision.
///
/// # Errors
/// Where it has a field with the name of the key.
pub(crate) fn record(row: Row, format: Format) -> Result<Document> {
    let Row { key, record: mut kept } = row;
    revision_taken(&mut kept);
    if format.info().takes == Takes::Marc {
        return Ok(kept);
    }
    if kept.get(Path::KEY).is_some() {
        let what =
            format!("has a field {:?} beside its id, which has that name in files", Path::KEY);
        return Err(Error::unsupported(what));
    }
    let mut record = Document::with_capacity(kept.len() + 1);
    record.push(Path::KEY, key.as_str());
    kept.into_iter().for_each(|(name, value)| record.push(name, value));
    Ok(record)
}

/// Names of fields, in the order in which they first come.
#[derive(Default)]
pub(crate) struct Columns {
    names: Vec<String>,
    seen: HashSet<String>,
}

impl Columns {
    /// Takes in the fields of a record.
    ///
    /// # Errors
    /// Of too many.
    pub(crate) fn add(&mut self, record: &Document) -> Result<()> {
        for (name, _) in record.iter() {
            if !self.seen.contains(name) {
                if self.names.len() == MOST {
                    let what = format!("a CSV file has {MOST} columns here at most; name fields");
                    return Err(Error::unsupported(what));
                }
                self.seen.insert(name.to_owned());
                self.names.push(name.to_owned());
            }
        }
        Ok(())
    }

    /// A record with every column, null where it lacks one.
    ///
    /// # Errors
    /// Of a field that is none of them.
    pub(crate) fn row(&self, mut record: Document) -> Result<Document> {
        let mut whole = Document::with_capacity(self.names.len());
        for name in &self.names {
            whole.push(name.as_str(), record.remove(name).unwrap_or(Value::Null));
        }
        match record.iter().next() {
            None => Ok(whole),
            Some((name, _)) => {
                let what = format!("the field {name:?} came after the columns were found");
                Err(Error::unsupported(what))
            }
        }
    }
}
