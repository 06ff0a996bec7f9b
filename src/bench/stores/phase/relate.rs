//! From a record to those that belong to it, in each of the ways there are: what is asked, and
//! whether what came is right.

use std::collections::HashMap;

use super::{
    answers::{Aside, Found},
    data::value,
    drive::{Outcome, Stores, drained, missing},
    expected::Expected,
    statement,
};
use crate::{
    Error, Result,
    bench::{results::Statement, workload::Relation},
    record::{Document, Value},
    store::{
        Filter, Join, Joined, Key, Query, Request, Row,
        query::{Path, Test},
    },
};

/// The fields of a row of a key/value table.
pub(super) const ID: &str = "id";
const NAME: &str = "name";
const VALUE: &str = "value";

/// What belongs to a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Belong {
    /// How many records.
    pub records: u64,
    /// In how many rows.
    pub rows: u64,
}

/// One such operation, ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Relate {
    /// Whose.
    pub key: Key,
    /// The field with the keys.
    field: Path,
    how: How,
    /// What has to come, where that is known.
    pub expected: Option<Belong>,
}

#[derive(Debug, Clone)]
enum How {
    /// Reads the record, which holds all.
    Get,
    /// Reads the record, and those whose keys it names.
    Follow,
    /// Reads the record, and asks for those that name it.
    Ask,
    /// Asks for both at once.
    Join(Box<Join>),
    /// Asks a key/value table, joined with itself, for all rows of those that name it.
    Pairs(Box<Join>),
}

impl Relate {
    /// What asks for what belongs to this key, in a table that the store knows by the name `to`.
    pub fn new(by: Relation, key: Key, field: &Path, to: &str, expected: &Expected) -> Relate {
        let of_name = |name: &str, value: &str| {
            Filter::Field(Path::new([name]), Test::Eq(Value::from(value)))
        };
        let how = match by {
            Relation::Embedded => How::Get,
            Relation::References => How::Follow,
            Relation::Index => How::Ask,
            Relation::Join => How::Join(Box::new(Join {
                filter: of_name(Path::KEY, &key),
                on: Path::new([Path::KEY]),
                table: to.to_owned(),
                field: field.clone(),
            })),
            Relation::Pairs => How::Pairs(Box::new(Join {
                filter: of_name(NAME, &field.to_string()).and(of_name(VALUE, &key)),
                on: Path::new([ID]),
                table: to.to_owned(),
                field: Path::new([ID]),
            })),
        };
        let expected = match expected {
            Expected::Belonging(all) => Some(all.get(&*key).copied().unwrap_or_default()),
            _ => None,
        };
        Relate { key, field: field.clone(), how, expected }
    }

    /// As many keys as records come, for a store that answers without looking.
    pub fn as_keys(&self) -> Box<[Key]> {
        let come = match self.expected {
            Some(belong) if matches!(self.how, How::Pairs(_)) => belong.rows.max(1),
            Some(belong) => 1 + belong.records,
            None => 1,
        };
        vec![self.key.clone(); come as usize].into()
    }

    /// Whether the store can do that.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported), saying why not.
    pub fn possible(&self, stores: &Stores) -> Result<()> {
        match &self.how {
            How::Join(_) | How::Pairs(_) => stores.table.abilities().can_join(),
            How::Get | How::Follow | How::Ask => Ok(()),
        }
    }

    /// The statements it takes.
    pub async fn statements(&self, stores: &Stores) -> Vec<Statement> {
        let table = &*stores.table;
        let Ok(other) = other(stores) else { return Vec::new() };
        let by_name = match &self.how {
            How::Join(join) => return statement::of(table, Request::Join(join)).await,
            How::Pairs(join) => return statement::of(&**other, Request::Join(join)).await,
            How::Get => Vec::new(),
            How::Ask => statement::of(&**other, Request::Find(&self.asked())).await,
            How::Follow => {
                let found = table.get(std::slice::from_ref(&self.key)).await.unwrap_or_default();
                let record = found.into_iter().next().flatten().unwrap_or_default();
                let keys = self.named(&record).unwrap_or_default();
                statement::of(&**other, Request::Get(&keys)).await
            }
        };
        let mut all = statement::of(table, Request::Get(std::slice::from_ref(&self.key))).await;
        all.extend(by_name);
        all
    }

    /// The query for those that name the record.
    fn asked(&self) -> Query {
        let test = Test::Eq(Value::from(&*self.key));
        Query::new(Filter::Field(self.field.clone(), test))
    }

    /// The keys that a record names; none where it has no list of them.
    fn named(&self, record: &Document) -> Option<Vec<Key>> {
        let Some(Value::List(names)) = value(record, self.field.names()) else { return None };
        let key = |name: &Value| Key::new(name.as_str()?.to_owned()).ok();
        Some(names.iter().filter_map(key).collect())
    }

    /// Sends it, waits for all of the answer, and looks whether it is the right one.
    pub async fn send(&self, stores: &Stores, aside: &mut Aside) -> Result<Outcome> {
        let (joined, outcome) = match &self.how {
            How::Join(join) => {
                let joined = stores.table.join(join).await?;
                let outcome = self.joined(&joined);
                (joined, outcome)
            }
            How::Pairs(join) => {
                let joined = other(stores)?.join(join).await?;
                let outcome = self.put_together(&joined);
                (joined, outcome)
            }
            How::Get | How::Follow | How::Ask => return self.one_by_one(stores, aside).await,
        };
        if aside.wants() {
            aside.put(Found::Joined(joined));
        }
        Ok(outcome)
    }

    /// Reads the record, and then what belongs to it.
    async fn one_by_one(&self, stores: &Stores, aside: &mut Aside) -> Result<Outcome> {
        let found = stores.table.get(std::slice::from_ref(&self.key)).await?;
        let Some(record) = found.into_iter().next().flatten() else {
            return Ok(missing(Some(&self.key)));
        };
        let mut rows = Vec::new();
        let belong = match &self.how {
            How::Ask => {
                let (read, first) =
                    drained(&**other(stores)?, &self.asked(), aside.wants()).await?;
                rows = first;
                read
            }
            How::Follow => {
                let Some(keys) = self.named(&record) else {
                    return Ok(Outcome::Missed("the record names no others".into()));
                };
                let found = other(stores)?.get(&keys).await?;
                let belong = match found.iter().position(Option::is_none) {
                    Some(at) => return Ok(missing(keys.get(at))),
                    None => found.len() as u64,
                };
                if aside.wants() {
                    let row = |(key, record): (Key, Option<Document>)| {
                        record.map(|record| Row { key, record })
                    };
                    rows = keys.into_iter().zip(found).filter_map(row).collect();
                }
                belong
            }
            _ => 0,
        };
        if aside.wants() {
            aside.put(Found::Related(record, rows));
        }
        Ok(match self.expected {
            Some(expected) if expected.records != belong => self.wrong(belong, expected.records),
            _ => Outcome::Done(1 + belong),
        })
    }

    /// The query for what belongs to it, where it is asked for in a question of its own.
    pub fn question(&self) -> Option<Query> {
        matches!(self.how, How::Ask).then(|| self.asked())
    }

    /// Whether its rows lie in the other table only.
    pub fn is_of_pairs(&self) -> bool {
        matches!(self.how, How::Pairs(_))
    }

    fn wrong(&self, came: u64, expected: u64) -> Outcome {
        let key = self.key.shown();
        Outcome::Missed(format!("{came} records belong to {key} instead of {expected}"))
    }

    fn of_another(&self, record: &Document) -> bool {
        value(record, self.field.names()).and_then(Value::as_str) != Some(&*self.key)
    }

    fn joined(&self, all: &[Joined]) -> Outcome {
        let mut came = 0;
        for one in all {
            let wrong = one.row.key != self.key
                || one.others.iter().any(|other| self.of_another(&other.record));
            if wrong {
                let key = self.key.shown();
                return Outcome::Missed(format!("what belongs to another came for {key}"));
            }
            came += one.others.len() as u64;
        }
        match self.expected {
            Some(expected) if expected.records != came => self.wrong(came, expected.records),
            _ => Outcome::Done(1 + came),
        }
    }

    /// Each answer is a record in rows.
    fn put_together(&self, all: &[Joined]) -> Outcome {
        let mut rows = 0;
        for one in all {
            let mut record = Document::with_capacity(one.others.len());
            for row in &one.others {
                let (name, value) = (row.record.get(NAME), row.record.get(VALUE));
                if let (Some(Value::Text(name)), Some(value)) = (name, value) {
                    record.insert(name.as_str(), value.clone());
                }
            }
            if self.of_another(&record) || record.len() != one.others.len() {
                let id = one.row.record.get(ID).and_then(Value::as_str).unwrap_or_default();
                return Outcome::Missed(format!("the rows of {id:?} make another record"));
            }
            rows += one.others.len() as u64;
        }
        let came = Belong { records: all.len() as u64, rows };
        match self.expected {
            Some(expected) if expected.records != came.records => {
                self.wrong(came.records, expected.records)
            }
            Some(expected) if expected.rows != rows => {
                Outcome::Missed(format!("{rows} rows came instead of {}", expected.rows))
            }
            _ => Outcome::Done(rows),
        }
    }
}

fn other(stores: &Stores) -> Result<&std::sync::Arc<dyn crate::store::Store>> {
    stores.other.as_ref().ok_or_else(|| Error::invalid("a relation to no table"))
}

/// What belongs to each key, of records that name it in this field.
pub(super) fn naming(
    records: impl Iterator<Item = Document>,
    field: &Path,
) -> HashMap<String, Belong> {
    let mut all: HashMap<String, Belong> = HashMap::new();
    for record in records {
        if let Some(Value::Text(key)) = value(&record, field.names()) {
            let belong = all.entry(key.clone()).or_default();
            *belong = Belong { records: belong.records + 1, rows: belong.rows + 1 };
        }
    }
    all
}

/// The same of rows of a key/value table, which are gone through twice.
pub(super) fn naming_in_pairs<I: Iterator<Item = Document>>(
    rows: impl Fn() -> I,
    field: &Path,
) -> HashMap<String, Belong> {
    let text = |row: &Document, name: &str| match row.get(name) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let field = field.to_string();
    let mut all: HashMap<String, Belong> = HashMap::new();
    let mut whose: HashMap<String, String> = HashMap::new();
    for row in rows().filter(|row| text(row, NAME).as_ref() == Some(&field)) {
        if let (Some(id), Some(key)) = (text(&row, ID), text(&row, VALUE)) {
            all.entry(key.clone()).or_default().records += 1;
            whose.insert(id, key);
        }
    }
    for row in rows() {
        let key = text(&row, ID).and_then(|id| whose.get(&id));
        if let Some(belong) = key.and_then(|key| all.get_mut(key)) {
            belong.rows += 1;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::dataset::{families, pairs};

    fn row(key: u64, record: Document) -> Row {
        Row { key: Key::new(key.to_string()).unwrap(), record }
    }

    fn relate(by: Relation, all: HashMap<String, Belong>) -> Relate {
        let (key, field) = (Key::new("3").unwrap(), "owner".parse().unwrap());
        Relate::new(by, key, &field, "other", &Expected::Belonging(all.into()))
    }

    fn said(outcome: Outcome) -> String {
        match outcome {
            Outcome::Done(items) => format!("{items} read"),
            Outcome::Missed(what) => what,
        }
    }

    #[test]
    fn a_join_has_to_give_all_and_no_others() {
        let field = "owner".parse().unwrap();
        let all = naming((0..100).map(|n| families::pet(1, n)), &field);
        assert_eq!((all.len(), all["3"]), (20, Belong { records: 5, rows: 5 }));
        let relate = relate(Relation::Join, all);
        let joined = |key, pets: std::ops::Range<u64>| Joined {
            row: row(key, families::keeper(1, key)),
            others: pets.map(|n| row(n, families::pet(1, n))).collect(),
        };
        assert_eq!(said(relate.joined(&[joined(3, 15..20)])), "6 read");
        assert!(said(relate.joined(&[joined(3, 15..19)])).contains("4 records belong to \"3\""));
        assert!(said(relate.joined(&[])).contains("0 records belong"));
        assert!(said(relate.joined(&[joined(3, 16..21)])).contains("to another"));
        assert!(said(relate.joined(&[joined(4, 15..20)])).contains("to another"));
    }

    #[test]
    fn rows_of_a_key_value_table_have_to_make_the_records() {
        let field = "owner".parse().unwrap();
        let all = naming_in_pairs(|| (0..300).map(|n| pairs::pair(1, n)), &field);
        assert_eq!((all.len(), all["3"]), (20, Belong { records: 5, rows: 15 }));
        let relate = relate(Relation::Pairs, all);
        let pair = |n| row(n, pairs::pair(1, n));
        let of = |id: u64| Joined {
            row: pair(3 * id),
            others: (3 * id..3 * id + 3).map(pair).collect(),
        };
        let mut right: Vec<Joined> = (15..20).map(of).collect();
        assert_eq!(said(relate.put_together(&right)), "15 read");
        right[2].others.pop();
        assert!(said(relate.put_together(&right)).contains("14 rows came instead of 15"));
        assert!(said(relate.put_together(&right[3..])).contains("2 records belong"));
        right[2] = of(20);
        assert!(said(relate.put_together(&right)).contains("another record"));
    }
}
