//! Which of the fields named by `--fields` were found in any record.
//!
//! A field that no record has is a slip of the pen, or a path of another kind of record. It must not
//! end in a file of empty records.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::select::{Fields, Path};
use crate::{Result, marc::RecordRef, record::Document, store::query};

/// The fields that are looked for. All workers share it.
#[derive(Default)]
pub(super) struct Sought {
    fields: Vec<Field>,
    /// At least one record was looked at.
    looked: AtomicBool,
}

struct Field {
    path: Path,
    name: String,
    found: AtomicBool,
}

impl Sought {
    pub(super) fn new(fields: Option<&Fields>) -> Sought {
        let field = |path: &Path| {
            let (path, name) = (path.clone(), path.to_string());
            Field { path, name, found: AtomicBool::new(false) }
        };
        let fields = fields.map_or(Vec::new(), |fields| fields.paths().iter().map(field).collect());
        Sought { fields, looked: AtomicBool::new(false) }
    }

    /// The names of the fields, in the order given.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| &*field.name)
    }

    fn open(&self) -> impl Iterator<Item = &Field> {
        if !self.looked.load(Relaxed) {
            self.looked.store(true, Relaxed);
        }
        self.fields.iter().filter(|field| !field.found.load(Relaxed))
    }

    /// Notes the fields of a document, of which `kept` is what was asked for. `keyed` says that it
    /// has a key beside its fields, which is asked for as `_key`.
    pub(super) fn in_document(&self, kept: &Document, keyed: bool) {
        for field in self.open() {
            let is_key = keyed && field.name == query::Path::KEY;
            if is_key || kept.get(&field.name).is_some() {
                field.found.store(true, Relaxed);
            }
        }
    }

    /// Notes the fields of a MARC record.
    pub(super) fn in_marc(&self, record: RecordRef<'_>) -> Result<()> {
        for field in self.open() {
            if field.path.first_text(record)?.is_some() {
                field.found.store(true, Relaxed);
            }
        }
        Ok(())
    }

    /// At least one of them was found.
    pub(super) fn any(&self) -> bool {
        self.fields.iter().any(|field| field.found.load(Relaxed))
    }

    /// The fields that no record has; none where there was no record to look at.
    pub(super) fn missing(&self) -> Vec<String> {
        match self.looked.load(Relaxed) {
            false => Vec::new(),
            true => self.open().map(|field| field.name.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Value;

    #[test]
    fn fields_are_missing_that_no_record_has() {
        let fields: Fields = "name,age,city,_key".parse().unwrap();
        let sought = Sought::new(Some(&fields));
        assert_eq!(sought.missing(), [] as [&str; 0], "no record, no complaint");
        assert!(!sought.any());
        sought.in_document(&Document::from_iter([("name", Value::Null)]), false);
        assert_eq!(sought.missing(), ["age", "city", "_key"]);
        assert!(sought.any());
        sought.in_document(&Document::from_iter([("age", Value::Int(1))]), true);
        assert_eq!(sought.missing(), ["city"]);
    }
}
