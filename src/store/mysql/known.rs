//! A table as it is, its statements, and rows of it.

use mysql_async::{Row as Cells, Value as Cell};

use super::{
    dialect::{Dialect, quote},
    values::{Column, Type, suits},
};
use crate::{
    Error, ErrorKind, Result,
    record::{Document, Value},
    store::{
        Key, Layout, Row, Shape, json,
        query::Path,
        sql::{Dialect as _, Table, no_text_key},
    },
};

/// A table as it is.
pub struct Known {
    pub table: Table,
    pub dialect: Dialect,
    /// `SELECT` of key and body.
    pub select: String,
    /// The same of one key.
    pub get_one: String,
    /// `INSERT` of one row, in place of what is there.
    pub put_one: String,
    /// `LOAD DATA` can be trusted with it: all text is in UTF-8, and no type is a special one.
    pub by_file: bool,
    pub shape: Shape,
    pub key: Column,
    /// The key is also a field of the record.
    pub key_is_field: bool,
    pub body: Vec<Column>,
}

impl Known {
    pub fn name(&self) -> String {
        quote(&self.table.name)
    }

    /// The key's column, quoted.
    pub fn key_name(&self) -> String {
        quote(&self.key.name)
    }

    /// The key compares as keys do.
    pub fn key_is_exact(&self) -> bool {
        !self.dialect.inexact.contains(&self.key_name())
    }

    /// The key as text, in whose order keys are.
    pub fn key_by_bytes(&self) -> String {
        self.dialect.by_bytes(&self.key_name())
    }

    /// The columns that are read: the key, then the body.
    pub fn what(&self) -> String {
        self.what_of("")
    }

    /// The same of a table that has another name in the statement.
    pub fn what_of(&self, of: &str) -> String {
        let mut what = self.key_what_of(of);
        for column in &self.body {
            what += ", ";
            what += of;
            what += &quote(&column.name);
        }
        what
    }

    /// The key as it is read.
    pub fn key_what(&self) -> String {
        self.key_what_of("")
    }

    fn key_what_of(&self, of: &str) -> String {
        let name = self.key_name();
        match self.key.holds {
            Type::Int(..) | Type::Chars(..) | Type::Text(_) | Type::Bytes(..) => {
                format!("{of}{name}")
            }
            _ => format!("CAST({of}{name} AS CHAR)"),
        }
    }

    /// Where a path is that of the key, the key has to be text.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where it is not.
    pub fn text_key(&self, path: &Path) -> Result<()> {
        let is_text = matches!(self.key.holds, Type::Chars(..) | Type::Text(_));
        no_text_key(path.is_key() && !is_text, &self.table)
    }

    /// Columns that are written: the key, then the body.
    pub fn written(&self) -> String {
        let names: Vec<_> = std::iter::once(&self.key)
            .chain(&self.body)
            .map(|column| quote(&column.name))
            .collect();
        names.join(", ")
    }

    /// How many of them there are.
    pub fn width(&self) -> usize {
        1 + self.body.len()
    }

    /// What to do where the key is there already.
    pub fn update(&self) -> String {
        let maria = self.dialect.maria;
        let set = |column: &Column| {
            let name = quote(&column.name);
            match maria {
                true => format!("{name} = VALUES({name})"),
                false => format!("{name} = new.{name}"),
            }
        };
        let mut sets: Vec<_> = self.body.iter().map(set).collect();
        if sets.is_empty() {
            sets.push(set(&self.key));
        }
        let named = if maria { "" } else { " AS new" };
        format!("{named} ON DUPLICATE KEY UPDATE {}", sets.join(", "))
    }

    /// The key as what is written.
    pub fn key_cell(&self, key: &Key) -> Result<Cell> {
        match self.key.holds {
            Type::Int(..) => match key.parse::<i128>() {
                Ok(n) if n.to_string() == **key => self.key.cell(&Value::from_integer(n)),
                _ => Err(Error::invalid(format!(
                    "column {:?} is for keys that are whole numbers",
                    self.key.name
                ))),
            },
            Type::Chars(..) | Type::Text(_) => self.key.cell(&Value::from(key.as_str())),
            _ => {
                self.key.bytes(key.len())?;
                Ok(Cell::Bytes(key.as_bytes().to_vec()))
            }
        }
    }

    /// The key as what is looked for; none where the table cannot have it.
    pub fn key_sought(&self, key: &Key) -> Option<Cell> {
        self.key_cell(key).ok()
    }

    /// The columns asked for have to be there.
    pub fn must_have(&self, layout: &Layout) -> Result<()> {
        if self.shape != Shape::Columns {
            return Ok(());
        }
        let table = &self.table.name;
        for wanted in &layout.columns {
            if self.key_is_field && wanted.name == self.key.name {
                continue;
            }
            let conflict = |what: String| Err(Error::new(ErrorKind::Conflict, what));
            match self.body.iter().find(|column| column.name == wanted.name) {
                Some(column) if suits(column.holds.kind(), wanted.kind) => {}
                Some(column) => {
                    return conflict(format!(
                        "column {:?} of table {table:?} holds {}, not {}",
                        column.name,
                        column.holds.kind().name(),
                        wanted.kind.name()
                    ));
                }
                None => {
                    let column = &wanted.name;
                    return conflict(format!(
                        "table {table:?} is there, without a column {column:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    pub fn columns(&self, row: &Row, cells: &mut Vec<Cell>) -> Result<()> {
        let mut used = 0;
        if self.key_is_field
            && let Some(value) = row.record.get(&self.key.name)
        {
            used += 1;
            if Key::of(&row.record, &self.key.name).ok().as_ref() != Some(&row.key) {
                let (name, kind) = (&self.key.name, value.kind().name());
                let what = format!("field {name:?} is the key's column, and holds another {kind}");
                return Err(Error::invalid(what));
            }
        }
        for column in &self.body {
            let value = row.record.get(&column.name);
            used += usize::from(value.is_some());
            cells.push(column.cell(value.unwrap_or(&Value::Null))?);
        }
        if used < row.record.len() {
            let unknown = row.record.iter().map(|(name, _)| name).find(|name| {
                let is_key = self.key_is_field && *name == self.key.name;
                !is_key && !self.body.iter().any(|c| c.name == *name)
            });
            return Err(Error::invalid(match unknown {
                Some(name) => format!("the table has no column for the field {name:?}"),
                None => "a field stands in it twice".into(),
            }));
        }
        Ok(())
    }

    /// A row as it was read.
    pub fn row(&self, cells: Cells) -> Result<Row> {
        self.row_of(cells.unwrap().into_iter())
    }

    /// The same from its cells.
    pub fn row_of(&self, mut cells: impl Iterator<Item = Cell>) -> Result<Row> {
        let key = self.key_of(cells.next())?;
        let record = self.record(&key, cells).map_err(|e| about(e, &key))?;
        Ok(Row { key, record })
    }

    /// The key and the bytes of a row with a single body.
    pub fn blob(&self, cells: Cells) -> Result<(Key, Vec<u8>)> {
        let mut cells = cells.unwrap().into_iter();
        let key = self.key_of(cells.next())?;
        let bytes = bytes(cells.next()).map_err(|e| about(e, &key))?;
        Ok((key, bytes))
    }

    /// The key in a cell.
    pub fn key_of(&self, cell: Option<Cell>) -> Result<Key> {
        match cell {
            Some(Cell::Int(n)) => Key::new(n.to_string()),
            Some(Cell::UInt(n)) => Key::new(n.to_string()),
            Some(Cell::Bytes(bytes)) => match String::from_utf8(bytes) {
                Ok(text) => Key::new(text),
                Err(_) => Err(Error::malformed("a key that is no UTF-8")),
            },
            _ => Err(Error::malformed("NULL for a key")),
        }
    }

    /// The record in the cells that follow the key's.
    pub fn record(&self, key: &Key, mut cells: impl Iterator<Item = Cell>) -> Result<Document> {
        if self.shape != Shape::Columns {
            return json::read(&bytes(cells.next())?);
        }
        let mut record = Document::with_capacity(self.body.len() + 1);
        if self.key_is_field {
            let number = matches!(self.key.holds, Type::Int(..)).then(|| key.parse::<i128>().ok());
            let key =
                number.flatten().map_or_else(|| Value::from(key.as_str()), Value::from_integer);
            record.push(self.key.name.clone(), key);
        }
        for (column, cell) in self.body.iter().zip(cells) {
            if let Some(value) = column.value(cell)? {
                record.push(column.name.clone(), value);
            }
        }
        Ok(record)
    }
}

fn bytes(cell: Option<Cell>) -> Result<Vec<u8>> {
    match cell {
        Some(Cell::Bytes(bytes)) => Ok(bytes),
        Some(Cell::NULL) | None => Err(Error::malformed("NULL, where bytes should be")),
        Some(_) => Err(Error::malformed("a number, where bytes should be")),
    }
}

/// The error, saying which record it is about.
pub fn about(error: Error, key: &Key) -> Error {
    let shown = format!("key {}: ", key.shown());
    match error.context().starts_with(&shown) {
        true => error,
        false => Error::new(error.kind(), shown + error.context()),
    }
}

/// How many bytes a cell takes on its way, or a little more.
pub fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Bytes(bytes) => bytes.len() + 9,
        _ => 16,
    }
}

/// Whether a document nests deeper than so many levels, itself counted.
pub fn deeper(record: &Document, levels: usize) -> bool {
    fn inside(value: &Value, levels: usize) -> bool {
        match value {
            Value::Map(map) => deeper(map, levels),
            Value::List(list) => levels == 0 || list.iter().any(|v| inside(v, levels - 1)),
            _ => false,
        }
    }
    levels == 0 || record.iter().any(|(_, v)| inside(v, levels - 1))
}
