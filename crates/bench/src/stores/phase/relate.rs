//! `do = "relate"`: goes from a record to those that belong to it, in each of the ways there are: what is
//! asked, and whether the answer is right.

use std::{collections::HashMap, slice, sync::Arc};

use async_trait::async_trait;

use super::{
    super::{
        answers::{Aside, Found},
        check::Answers,
        data::{Records, value},
        draws::Draws,
        expected::{Counts, Expected},
        operation::{Op, Operation, Outcome, Stores, drained, missing},
        statement,
        turn::{Done, Turn},
    },
    Info, Kind,
};
use crate::{
    Error, Result,
    record::{Document, Value},
    results::Statement,
    store::{
        Filter, Join, Joined, Key, Query, Request, Row,
        query::{Path, Test},
    },
    workload::{Phase, Word, missing as no_option},
};

pub(super) const INFO: Info = Info {
    name: "relate",
    about: "goes from records, drawn at random, to those that belong to them, one by one",
    options: &[
        ("by", "how they are found, see below"),
        ("to", "the table of what belongs to them (default `records`)"),
        ("field", "the field with the keys, see below"),
    ],
    example: "by = \"embedded\"\nfield = \"x\"",
    read: |options| {
        Ok(Arc::new(Relate {
            by: options.word("by")?.ok_or_else(|| no_option("by"))?,
            to: options.table("to")?,
            field: options.path("field")?,
        }))
    },
};

/// How many operations, where nobody says.
const USUAL: u64 = 2_000;

#[derive(Debug)]
struct Relate {
    by: Relation,
    /// The table of what belongs to a record.
    to: String,
    /// The field with the keys: of what belongs to the record, or of the record that it belongs to.
    field: Path,
}

/// How what belongs to a record is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// It is inside the record.
    Embedded,
    /// The record names the keys.
    References,
    /// Each names the record, in an indexed field: asked for after the record was read.
    Index,
    /// The same, asked for together with the record.
    Join,
    /// Each is kept as rows of a key/value table, of `id`, `name` and `value`, one of which names the
    /// record: asked for by that table joined with itself.
    Pairs,
}

impl Word for Relation {
    const WORDS: &[(&str, Relation)] = &[
        ("embedded", Relation::Embedded),
        ("references", Relation::References),
        ("index", Relation::Index),
        ("join", Relation::Join),
        ("pairs", Relation::Pairs),
    ];
}

/// What belongs to each key; nothing to those that are not among them.
struct Belonging(HashMap<String, Belong>);

#[async_trait(?Send)]
impl Kind for Relate {
    fn about(&self) -> String {
        let how = match self.by {
            Relation::Embedded => "which are inside it",
            Relation::References => "by the keys it names, in two queries",
            Relation::Index => "by a field of theirs, in two queries",
            Relation::Join => "by a field of theirs, joined in one query",
            Relation::Pairs => "put together of rows of a key/value table joined with itself",
        };
        format!("From a record to those that belong to it, {how}")
    }

    fn one_by_one(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }

    fn joins(&self) -> bool {
        matches!(self.by, Relation::Join | Relation::Pairs)
    }

    fn other_table(&self) -> Option<&str> {
        Some(&self.to)
    }

    fn needs<'a>(&'a self, own: &'a str) -> Vec<&'a str> {
        if self.by == Relation::Embedded { vec![own] } else { vec![own, &self.to] }
    }

    fn reads(&self) -> Vec<Path> {
        match self.by {
            Relation::Embedded | Relation::References => vec![self.field.clone()],
            Relation::Index | Relation::Join | Relation::Pairs => Vec::new(),
        }
    }

    fn expected(&self, counts: &Counts<'_>) -> Expected {
        let Some(to) = counts.untouched(&self.to) else { return Expected::Unknown };
        let documents = || counts.numbers(to.count).map(|n| to.document(n));
        Expected::of(Belonging(match self.by {
            Relation::Index | Relation::Join => naming(documents(), &self.field),
            Relation::Pairs => naming_in_pairs(documents, &self.field),
            Relation::Embedded | Relation::References => return Expected::Unknown,
        }))
    }

    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where nothing belongs to any record of the phase's table.
    fn check(
        &self,
        phase: &Phase,
        counts: &Counts<'_>,
        expected: &Expected,
    ) -> Result<Option<String>> {
        let Some(all) = expected.counted::<Belonging>() else { return Ok(None) };
        let records: &Records = counts.records;
        let named = |n| records.key(n).is_ok_and(|key| all.0.contains_key(&*key));
        if counts.numbers(records.count).any(named) || (counts.stop)() {
            return Ok(None);
        }
        Err(Error::invalid(format!(
            "phase {}: no record of {} has the key of one of {} in its field {}",
            phase.name, self.to, phase.table, self.field
        )))
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, expected: &Expected) -> Result<Done> {
        let to = turn.names.get(&self.to).map_or(&*self.to, String::as_str);
        let ops = self.operations(&turn.draws(phase, expected)?, to)?;
        if turn.null {
            // It does not look, and answers with as many records as it is asked for.
            let gets = ops.iter().map(|op| Op::Get(op.as_keys())).collect();
            return turn.one_by_one::<Op>(phase, gets).await;
        }
        turn.one_by_one(phase, ops).await
    }
}

impl Relate {
    /// The operations, where the store knows the other table by the name `to`.
    fn operations(&self, draws: &Draws<'_>, to: &str) -> Result<Vec<RelateOp>> {
        let mut draw = draws.random();
        let belonging = draws.expected.counted::<Belonging>();
        draws.all(USUAL, || {
            let key = draws.records.key(draw.draw())?;
            Ok(RelateOp::new(self.by, key, &self.field, to, belonging.as_deref()))
        })
    }
}

/// The fields of a row of a key/value table.
const ID: &str = "id";
const NAME: &str = "name";
const VALUE: &str = "value";
/// What it is called in an error.
const RELATE: &str = "relate";

/// What belongs to a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Belong {
    /// How many records.
    records: u64,
    /// In how many rows.
    rows: u64,
}

/// One such operation, ready to be sent.
#[derive(Debug, Clone)]
struct RelateOp {
    /// The key of the record.
    key: Key,
    /// The field with the keys.
    field: Path,
    how: How,
    /// What has to come, where that is known.
    expected: Option<Belong>,
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

impl RelateOp {
    /// Asks for what belongs to this key, in a table that the store knows by the name `to`.
    fn new(
        by: Relation,
        key: Key,
        field: &Path,
        to: &str,
        expected: Option<&Belonging>,
    ) -> RelateOp {
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
        let expected = expected.map(|all| all.0.get(&*key).copied().unwrap_or_default());
        RelateOp { key, field: field.clone(), how, expected }
    }

    /// As many keys as records come, for a store that answers without looking.
    fn as_keys(&self) -> Box<[Key]> {
        let come = match self.expected {
            Some(belong) if matches!(self.how, How::Pairs(_)) => belong.rows.max(1),
            Some(belong) => 1 + belong.records,
            None => 1,
        };
        vec![self.key.clone(); come as usize].into()
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

    /// Reads the record, and then what belongs to it.
    async fn one_by_one(&self, stores: &Stores, aside: &mut Aside) -> Result<Outcome> {
        let found = stores.table.get(slice::from_ref(&self.key)).await?;
        let Some(record) = found.into_iter().next().flatten() else {
            return Ok(missing(Some(&self.key)));
        };
        let mut rows = Vec::new();
        let belong = match &self.how {
            How::Ask => {
                let (read, first) =
                    drained(&**stores.other()?, &self.asked(), aside.wants()).await?;
                rows = first;
                read
            }
            How::Follow => {
                let Some(keys) = self.named(&record) else {
                    return Ok(Outcome::Missed("the record names no others".into()));
                };
                let found = stores.other()?.get(&keys).await?;
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

impl Operation for RelateOp {
    async fn send(&self, stores: &Stores, aside: &mut Aside) -> Result<Outcome> {
        let (joined, outcome) = match &self.how {
            How::Join(join) => {
                let joined = stores.table.join(join).await?;
                let outcome = self.joined(&joined);
                (joined, outcome)
            }
            How::Pairs(join) => {
                let joined = stores.other()?.join(join).await?;
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

    fn possible(&self, stores: &Stores) -> Result<()> {
        match &self.how {
            How::Join(_) | How::Pairs(_) => stores.table.abilities().can_join(),
            How::Get | How::Follow | How::Ask => Ok(()),
        }
    }

    fn answered<'t>(&self, found: Found, answers: &mut Answers<'t>) {
        let (own, other) = (answers.table, answers.other);
        match found {
            Found::Related(record, rows) => {
                answers.record(own, &self.key, record, RELATE);
                answers.rows(other, &rows, RELATE);
                if let How::Ask = self.how {
                    answers.query(other, self.asked(), rows);
                }
            }
            Found::Joined(all) => {
                // Of pairs, both are of the other table.
                let own = if let How::Pairs(_) = self.how { other } else { own };
                for one in all {
                    answers.record(own, &one.row.key, one.row.record, RELATE);
                    answers.rows(other, &one.others, RELATE);
                }
            }
            Found::Records(_) | Found::Rows(_) => {}
        }
    }

    async fn statements(&self, stores: &Stores) -> Vec<Statement> {
        let table = &*stores.table;
        let Ok(other) = stores.other() else { return Vec::new() };
        let by_name = match &self.how {
            How::Join(join) => return statement::of(table, Request::Join(join)).await,
            How::Pairs(join) => return statement::of(&**other, Request::Join(join)).await,
            How::Get => Vec::new(),
            How::Ask => statement::of(&**other, Request::Find(&self.asked())).await,
            How::Follow => {
                let found = table.get(slice::from_ref(&self.key)).await.unwrap_or_default();
                let record = found.into_iter().next().flatten().unwrap_or_default();
                let keys = self.named(&record).unwrap_or_default();
                statement::of(&**other, Request::Get(&keys)).await
            }
        };
        let mut all = statement::of(table, Request::Get(slice::from_ref(&self.key))).await;
        all.extend(by_name);
        all
    }
}

/// What belongs to each key, of records that name it in this field.
fn naming(records: impl Iterator<Item = Document>, field: &Path) -> HashMap<String, Belong> {
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
fn naming_in_pairs<I: Iterator<Item = Document>>(
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

    fn relate(by: Relation, all: HashMap<String, Belong>) -> RelateOp {
        let (key, field) = (Key::new("3").unwrap(), "owner".parse().unwrap());
        RelateOp::new(by, key, &field, "other", Some(&Belonging(all)))
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
