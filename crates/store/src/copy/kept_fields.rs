//! Only some of the fields of records that are read and not copied (`each --fields`), by the rules of a copy.

use super::{
    convert::marc_record,
    output,
    select::{Fields, Path},
    sought::Sought,
};
use crate::{
    Result,
    format::has_marc_shape,
    marc::Record,
    record::{Document, Value},
    store::query,
};

/// Keeps some fields of each record, and knows which of them no record had.
pub struct KeptFields {
    fields: Fields,
    sought: Sought,
    /// All records have the same columns.
    rows: bool,
    kept: Record,
}

impl KeptFields {
    /// For a format of rows, what a record does not have is null.
    pub fn new(fields: Fields, rows: bool) -> KeptFields {
        let sought = Sought::new(Some(&fields));
        KeptFields { fields, sought, rows, kept: Record::default() }
    }

    /// The names, if a store can cut documents to them: top-level ones, that mean nothing in a MARC record.
    pub fn names(&self) -> Option<Vec<String>> {
        let plain = |path: &Path| {
            let name = path.to_string();
            (!name.contains('.') && !path.is_marc() && name != query::Path::KEY).then_some(name)
        };
        self.fields.paths().iter().map(plain).collect()
    }

    /// What is kept of a record: of a MARC record, in whatever store it lies, by MARC paths.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where it looks like a MARC record and is none.
    pub fn keep(&mut self, document: Document) -> Result<Document> {
        if has_marc_shape(&document) && self.fields.check_marc().is_ok() {
            let record = marc_record(document)?;
            self.sought.in_marc(record.as_ref())?;
            if self.rows {
                return self.fields.row(record.as_ref());
            }
            self.fields.keep_marc(record.as_ref(), &mut self.kept)?;
            return output::document(self.kept.as_ref(), false, &mut Vec::new());
        }
        let mut kept = self.fields.keep(&document);
        self.sought.in_document(&kept, true);
        if self.rows {
            let column =
                |name: &str| (name.to_owned(), kept.get(name).cloned().unwrap_or(Value::Null));
            let names = self.sought.names().filter(|name| *name != query::Path::KEY);
            kept = names.map(column).collect();
        }
        Ok(kept)
    }

    /// The fields that none of the records had; none where there was no record.
    pub fn missing(&self) -> Vec<String> {
        self.sought.missing()
    }
}
