//! `do = "absent"`: reads by keys that no record has, as a check for duplicates does for new records.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    super::{
        answers::Aside,
        data::Records,
        draws::Draws,
        expected::{Counts, Expected},
        operation::{Op, Operation, Outcome, Stores},
        statement,
        turn::{Done, Turn},
    },
    Info, Kind,
};
use crate::{
    Error, Result,
    results::Statement,
    store::{Key, Request},
    workload::{Phase, Spread},
};

pub(super) const INFO: Info = Info {
    name: "absent",
    about: "reads by keys that no record has, each next to one that a record has",
    options: &[
        ("keys", "next to which keys, see below (default `random`)"),
        ("batch", "how many keys at a time (default 1)"),
    ],
    example: "",
    read: |options| Ok(Arc::new(Absent { spread: options.spread()?, batch: options.batch(1)? })),
};

#[derive(Debug)]
struct Absent {
    spread: Spread,
    batch: usize,
}

/// A text that no key ends with. Added to the key of a record it makes a key that no record has, and that
/// is next to the record's in key order: a store cannot answer from the range of its keys alone.
struct Suffix(String);

impl Suffix {
    /// For these keys.
    fn of(keys: impl Iterator<Item = Key>) -> Suffix {
        let at_end = |key: Key| key.len() - key.trim_end_matches('~').len();
        Suffix("~".repeat(1 + keys.map(at_end).max().unwrap_or(0)))
    }
}

/// One read, ready to be sent.
#[derive(Debug)]
struct ReadAbsent(Box<[Key]>);

#[async_trait(?Send)]
impl Kind for Absent {
    fn about(&self) -> String {
        match self.batch {
            1 => "Reads by keys that no record has".into(),
            batch => format!("Reads by keys that no record has, {batch} at a time"),
        }
    }

    fn unit(&self) -> &'static str {
        if self.batch == 1 { "keys" } else { "operations" }
    }

    fn one_by_one(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }

    fn spread(&self) -> Option<&Spread> {
        Some(&self.spread)
    }

    fn expected(&self, counts: &Counts<'_>) -> Expected {
        let records: &Records = counts.records;
        Expected::of(Suffix::of(counts.numbers(records.count).filter_map(|n| records.key(n).ok())))
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, expected: &Expected) -> Result<Done> {
        let ops = self.operations(&turn.draws(phase, expected)?)?;
        if turn.null {
            // It finds whatever it is asked for, so it is asked for nothing.
            let none = ops.iter().map(|_| Op::Get(Box::new([]))).collect();
            return turn.one_by_one::<Op>(phase, none).await;
        }
        turn.one_by_one(phase, ops).await
    }
}

impl Absent {
    fn operations(&self, draws: &Draws<'_>) -> Result<Vec<ReadAbsent>> {
        let records = draws.records;
        let suffix = draws.expected.counted::<Suffix>().unwrap_or_else(|| {
            // Earlier phases have changed the table, and may have added to it.
            let all = 0..records.count + draws.grown;
            Arc::new(Suffix::of(all.filter_map(|n| records.key(n).ok())))
        });
        let mut draw = draws.of(&self.spread);
        draws.all(records.count.clamp(1, 10_000), || {
            let key = |_| Key::new(format!("{}{}", records.key(draw.draw())?, suffix.0));
            Ok(ReadAbsent((0..self.batch).map(key).collect::<Result<_>>()?))
        })
    }
}

impl Operation for ReadAbsent {
    async fn send(&self, stores: &Stores, _: &mut Aside) -> Result<Outcome> {
        let found = stores.table.get(&self.0).await?;
        Ok(match found.iter().position(Option::is_some) {
            Some(at) => {
                let key = self.0.get(at).map_or_else(String::new, |key| key.shown());
                Outcome::Missed(format!(
                    "a record came for key {key}, which none was written under"
                ))
            }
            None => Outcome::Done(0),
        })
    }

    fn possible(&self, stores: &Stores) -> Result<()> {
        let most = stores.table.abilities().max_key;
        match self.0.iter().find(|key| key.len() > most) {
            Some(key) => {
                let what = format!("key {} has {} bytes, {most} at most", key.shown(), key.len());
                Err(Error::unsupported(what))
            }
            None => Ok(()),
        }
    }

    async fn statements(&self, stores: &Stores) -> Vec<Statement> {
        statement::of(&*stores.table, Request::Get(&self.0)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::Document,
        store::{self, Row},
    };

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    #[test]
    fn a_suffix_is_one_that_no_key_ends_with() {
        let of = |keys: &[&str]| Suffix::of(keys.iter().map(|text| key(text))).0;
        assert_eq!((of(&["1", "2"]), of(&["1", "1~", "~~a~~"])), ("~".into(), "~~~".into()));
    }

    #[tokio::test]
    async fn a_record_that_comes_for_an_absent_key_is_seen() {
        let place = store::open("memory:").await.unwrap();
        let stores = Stores { table: Arc::clone(place.store()), other: None };
        let read = ReadAbsent([key("1~"), key("2~")].into());
        let mut aside = Aside::of(1, 1);
        assert!(matches!(read.send(&stores, &mut aside).await, Ok(Outcome::Done(0))));
        place.put(&[Row { key: key("2~"), record: Document::new() }]).await.unwrap();
        match read.send(&stores, &mut aside).await {
            Ok(Outcome::Missed(what)) => assert!(what.contains("\"2~\""), "{what}"),
            _ => panic!("it is not seen"),
        }
        let long = ReadAbsent([key(&"k".repeat(place.abilities().max_key + 1))].into());
        assert!(long.possible(&stores).unwrap_err().to_string().contains("at most"));
    }
}
