//! A table as it is, its statements, and rows of it.

use mysql_async::{Row as Cells, Value as Cell};

use super::{
    dialect::{Dialect, quote},
    read::values,
    values::{Column, Type},
};
use crate::{
    Error, Result,
    record::{Document, Value},
    store::{
        Key, Row, Shape, json,
        sql::{
            BlobColumn, Dialect as _, Fields, Guard, Side, Sql, Table, not_a_key,
            row::{about, of_field, whole},
        },
    },
};

/// A table as it is.
pub(super) struct Schema {
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
    pub fields: Fields<Column>,
    pub writes: Writes,
    /// It has triggers that may change what is written.
    pub triggers: bool,
    /// The columns of the body, by their number, that may change what is put into them.
    pub changing: Vec<usize>,
    /// Those that are looked at after a write: these, and those of unique indexes beside the key's.
    pub looked: Vec<usize>,
    /// Each row that is replaced stays as one of the past (`WITH SYSTEM VERSIONING`), and is counted.
    pub versioned: bool,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    AsTheyAre,
    /// Looking afterwards that each key is there as it was given. The table may take it for another key, which
    /// it then overwrites: by its collation or type, or as another index is unique, too.
    Looking,
    /// Not at all, and why.
    Never(&'static str),
}

impl Schema {
    pub(super) fn name(&self) -> String {
        quote(&self.table.name)
    }

    /// The key's column, quoted.
    pub(super) fn key_name(&self) -> String {
        quote(&self.fields.key.name)
    }

    /// The key compares as keys do.
    pub(super) fn key_is_exact(&self) -> bool {
        !self.dialect.inexact.contains(&self.key_name())
    }

    /// The key as text, in whose order keys are.
    pub(super) fn key_by_bytes(&self) -> String {
        self.dialect.by_bytes(&self.key_name())
    }

    /// The columns that are read: the key, then the body.
    pub(super) fn what(&self) -> String {
        self.what_of("")
    }

    /// The same of a table that has another name in the statement.
    pub(super) fn what_of(&self, of: &str) -> String {
        let mut what = self.key_what_of(of);
        for column in &self.fields.body {
            what += ", ";
            what += &column.read(of);
        }
        what
    }

    /// The key as it is read.
    pub(super) fn key_what(&self) -> String {
        self.key_what_of("")
    }

    fn key_what_of(&self, of: &str) -> String {
        let (key, name) = (&self.fields.key, self.key_name());
        match key.holds {
            Type::Other => format!("CAST({of}{name} AS CHAR)"),
            _ => key.read(of),
        }
    }

    /// What a key is compared with, where it is looked for: what is found has to be looked at again, since the
    /// column may take several keys for one.
    pub(super) fn key_sought_in(&self) -> String {
        match self.fields.key.holds {
            // As numbers they are not compared exactly.
            Type::Other => self.key_by_bytes(),
            _ => self.key_name(),
        }
    }

    /// The place of a key that is looked for. A set of characters without some character in the key cannot be compared
    /// with it: then another key is looked for, which is not the one that was meant, and told apart afterwards.
    pub(super) fn place(&self) -> String {
        let Column { holds, unicode, collation, .. } = &self.fields.key;
        match (holds, collation.split_once('_')) {
            (Type::Chars(..) | Type::Text(_), Some((set, _))) if !unicode => {
                format!("CONVERT(? USING {set}) COLLATE {collation}")
            }
            _ => "?".into(),
        }
    }

    /// The condition that the key is one of so many that are bound.
    pub(super) fn key_is_one_of(&self, count: usize) -> String {
        let (key, place) = (self.key_sought_in(), self.place());
        match count {
            1 => format!("{key} = {place}"),
            n => format!("{key} IN ({})", vec![&*place; n].join(", ")),
        }
    }

    /// The condition that the key is this one, byte for byte, and what it binds; none where the table cannot have it.
    pub(super) fn is_key(&self, key: &Key) -> Option<(String, Vec<Cell>)> {
        let sought = self.key_sought(key)?;
        let is = self.key_is_one_of(1);
        Some(match self.key_is_exact() {
            true => (is, vec![sought]),
            // Text that is only nearly the same is not meant.
            false => {
                let text = Cell::Bytes(key.as_bytes().to_vec());
                (format!("{is} AND {} = ?", self.key_by_bytes()), vec![sought, text])
            }
        })
    }

    /// The condition of a conditional write beside that on the key, and what it binds.
    ///
    /// # Errors
    /// As [`Table::is_as`].
    fn condition(&self, guard: Guard<'_>) -> Result<Sql> {
        let mut sql = Sql::new(&self.dialect, "");
        let body = || {
            let column = &self.fields.body[0];
            let name = quote(&column.name);
            match &column.holds {
                Type::Bytes(..) => BlobColumn { bytes: Some(name), text: None },
                _ => BlobColumn { bytes: None, text: Some(self.dialect.by_bytes(&name)) },
            }
        };
        self.table.is_as(&self.dialect, guard, body, &mut sql)?;
        Ok(sql)
    }

    /// The statement that begins so, of the row of a key if it is as the guard says, and what it binds after `before`;
    /// none where the table cannot have the key.
    ///
    /// # Errors
    /// As [`Table::is_as`].
    pub(super) fn of_key_if(
        &self,
        begin: &str,
        before: &[Cell],
        key: &Key,
        guard: Guard<'_>,
    ) -> Result<Option<(String, Vec<Cell>)>> {
        let sql = self.condition(guard)?;
        let Some((is, sought)) = self.is_key(key) else { return Ok(None) };
        let values = before.iter().cloned().chain(sought).chain(values(&sql));
        Ok(Some((format!("{begin} WHERE {is} AND ({})", sql.text), values.collect())))
    }

    /// The beginning of the statement that writes the body of a row.
    pub(super) fn update_body(&self) -> String {
        let mut sets: Vec<_> =
            self.fields.body.iter().map(|column| format!("{} = ?", quote(&column.name))).collect();
        if sets.is_empty() {
            let key = self.key_name();
            sets.push(format!("{key} = {key}"));
        }
        format!("UPDATE {} SET {}", self.name(), sets.join(", "))
    }

    /// The table in a join, by the name it has there.
    pub(super) fn side(&self, of: &str) -> Side<'_> {
        let (table, dialect, what) = (&self.table, &self.dialect, self.what_of(of));
        Side {
            table,
            dialect,
            what,
            key_is_text: matches!(self.fields.key.holds, Type::Chars(..) | Type::Text(_)),
        }
    }

    /// Columns that are written: the key, then the body.
    pub(super) fn written(&self) -> String {
        let names: Vec<_> = self.fields.all().map(|column| quote(&column.name)).collect();
        names.join(", ")
    }

    /// The number of a column that may change what a row has for it, if there is one.
    pub(super) fn may_change(&self, row: &[Cell]) -> Option<usize> {
        let is_sure = |i: usize| row.get(i + 1).is_none_or(|cell| self.fields.body[i].keeps(cell));
        self.changing.iter().copied().find(|i| !is_sure(*i))
    }

    /// How many of them there are.
    pub(super) fn width(&self) -> usize {
        1 + self.fields.body.len()
    }

    /// What to do where the key is there already.
    pub(super) fn update(&self) -> String {
        let maria = self.dialect.maria;
        let set = |column: &Column| {
            let name = quote(&column.name);
            match maria {
                true => format!("{name} = VALUES({name})"),
                false => format!("{name} = new.{name}"),
            }
        };
        let mut sets: Vec<_> = self.fields.body.iter().map(set).collect();
        if sets.is_empty() {
            sets.push(set(&self.fields.key));
        }
        let named = if maria { "" } else { " AS new" };
        format!("{named} ON DUPLICATE KEY UPDATE {}", sets.join(", "))
    }

    /// The key as what is written.
    pub(super) fn key_cell(&self, key: &Key) -> Result<Cell> {
        match self.fields.key.holds {
            Type::Int(..) | Type::Year => self.fields.key.cell(&Value::from_integer(whole(key)?)),
            Type::Chars(..) | Type::Text(_) => self.fields.key.text(key),
            _ => {
                self.fields.key.bytes(key.len())?;
                Ok(Cell::Bytes(key.as_bytes().to_vec()))
            }
        }
    }

    /// Whether the column of whole records holds these bytes.
    ///
    /// # Errors
    /// Where it does not.
    pub(super) fn body_holds(&self, bytes: &[u8]) -> Result<()> {
        let column = &self.fields.body[0];
        let held = match column.holds {
            Type::Chars(_, true) if bytes.ends_with(b" ") => {
                Err(Error::invalid("ends in a space, which its column of type CHAR would lose"))
            }
            _ => column.bytes(bytes.len()),
        };
        held.map_err(|e| of_field(e, &column.name))
    }

    /// The key as what is looked for; none where the table cannot have it.
    pub(super) fn key_sought(&self, key: &Key) -> Option<Cell> {
        self.key_cell(key).ok()
    }

    /// A row as it was read.
    pub(super) fn row(&self, cells: Cells) -> Result<Row> {
        self.row_of(cells.unwrap().into_iter())
    }

    /// The same from its cells.
    pub(super) fn row_of(&self, mut cells: impl Iterator<Item = Cell>) -> Result<Row> {
        let key = self.key_of(cells.next())?;
        let record = self.record(&key, cells).map_err(|e| about(e, &key))?;
        Ok(Row { key, record })
    }

    /// The key and the bytes of a row with a single body.
    pub(super) fn blob(&self, cells: Cells) -> Result<(Key, Vec<u8>)> {
        let mut cells = cells.unwrap().into_iter();
        let key = self.key_of(cells.next())?;
        let bytes = bytes(cells.next()).map_err(|e| about(e, &key))?;
        Ok((key, bytes))
    }

    /// The key in a cell.
    pub(super) fn key_of(&self, cell: Option<Cell>) -> Result<Key> {
        match cell {
            Some(Cell::Int(n)) => Key::new(n.to_string()),
            Some(Cell::UInt(n)) => Key::new(n.to_string()),
            Some(Cell::Bytes(bytes)) => match String::from_utf8(bytes) {
                Ok(text) if text.is_empty() => Err(self.no_key("an empty text")),
                Ok(text) => Key::new(text),
                Err(_) => Err(self.no_key("text that is not UTF-8")),
            },
            _ => Err(self.no_key("NULL")),
        }
    }

    fn no_key(&self, is: &str) -> Error {
        not_a_key(&self.table.key, is)
    }

    /// The record in the cells that follow the key's.
    pub(super) fn record(
        &self,
        key: &Key,
        mut cells: impl Iterator<Item = Cell>,
    ) -> Result<Document> {
        if self.fields.shape != Shape::Columns {
            return json::read(&bytes(cells.next())?);
        }
        self.fields.read(
            || Ok(key.clone()),
            |_, column| match cells.next() {
                Some(cell) => column.value(cell).map_err(|e| of_field(e, &column.name)),
                None => Ok(None),
            },
        )
    }
}

fn bytes(cell: Option<Cell>) -> Result<Vec<u8>> {
    match cell {
        Some(Cell::Bytes(bytes)) => Ok(bytes),
        Some(Cell::NULL) | None => Err(Error::malformed("NULL instead of bytes")),
        Some(_) => Err(Error::malformed("a number instead of bytes")),
    }
}

/// How many bytes a cell takes on its way, or a little more.
pub(super) fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Bytes(bytes) => bytes.len() + 9,
        _ => 16,
    }
}

/// Whether a document nests deeper than so many levels, itself counted.
pub(super) fn deeper(record: &Document, levels: usize) -> bool {
    fn inside(value: &Value, levels: usize) -> bool {
        match value {
            Value::Map(map) => deeper(map, levels),
            Value::List(list) => levels == 0 || list.iter().any(|v| inside(v, levels - 1)),
            _ => false,
        }
    }
    levels == 0 || record.iter().any(|(_, v)| inside(v, levels - 1))
}
