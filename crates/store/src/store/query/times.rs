//! Times in stores that keep them as texts.
//!
//! The order of such texts is not that of the times: `.` comes before `Z`, and another program may have written
//! `+01:00`. So no database is asked to compare them ([`Need::Times`](crate::store::Need::Times)): the records are
//! read, as if their times were times ([`Matcher`]).

use std::borrow::Cow;

use super::{
    Filter, Test,
    look::{Check, Part, Step},
};
use crate::{
    record::{Document, Kind, Time, Value},
    store::Key,
};

/// A filter over records whose times may have become texts: what is compared with a time is read as one, where
/// it is the text of a time.
pub struct Matcher {
    filter: Filter,
    /// What is compared with times.
    times: Vec<Vec<Step>>,
}

impl Matcher {
    /// For records of a store that keeps only values of these kinds as they are.
    pub fn new(filter: Filter, keeps: &[Kind]) -> Matcher {
        let mut times = Vec::new();
        if !keeps.contains(&Kind::Time) {
            compared_with_times(&filter, &mut times);
        }
        Matcher { filter, times }
    }

    /// What it was made of.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Whether a record fits; with its key, where it has one.
    pub fn fits(&self, key: Option<&Key>, record: &Document) -> bool {
        self.filter.fits_document(key, &self.read(record))
    }

    /// The record with times in the place of texts that are compared with times.
    pub fn read<'r>(&self, record: &'r Document) -> Cow<'r, Document> {
        if self.times.is_empty() {
            return Cow::Borrowed(record);
        }
        let mut value = Value::Map(record.clone());
        for steps in &self.times {
            read(&mut value, steps);
        }
        match value {
            Value::Map(record) => Cow::Owned(record),
            _ => unreachable!("it was made of a record"),
        }
    }
}

fn compared_with_times(filter: &Filter, paths: &mut Vec<Vec<Step>>) {
    let mut add = |test: &Test, steps: Vec<Step>| {
        let is_time = |value: &Value| matches!(value, Value::Time(_));
        if test.values().iter().any(is_time) && !paths.contains(&steps) {
            paths.push(steps);
        }
    };
    match filter {
        Filter::All => {}
        Filter::And(all) | Filter::Or(all) => {
            all.iter().for_each(|one| compared_with_times(one, paths));
        }
        Filter::Not(one) => compared_with_times(one, paths),
        Filter::Field(path, test) => add(test, Step::of(path)),
        Filter::Look(look) => {
            if let (Part::Document(steps), Check::Value(test)) = (&look.part, &look.check) {
                add(test, steps.clone());
            }
        }
    }
}

fn read(value: &mut Value, steps: &[Step]) {
    match (steps, value) {
        ([], value) => {
            if let Some(Ok(time)) = value.as_str().map(str::parse::<Time>) {
                *value = Value::Time(time);
            }
        }
        ([Step::Name(name), rest @ ..], Value::Map(map)) => {
            if let Some(value) = map.get_mut(name) {
                read(value, rest);
            }
        }
        ([Step::Each, rest @ ..], Value::List(list)) => {
            list.iter_mut().for_each(|value| read(value, rest));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::query::Hints;

    #[test]
    fn texts_that_are_times_are_compared_as_times() {
        let matcher = |text: &str| Matcher::new(text.parse().unwrap(), &[Kind::Text]);
        let key = Key::new("k").unwrap();
        let record = Document::from_iter([
            ("at", Value::from("2009-02-13T23:31:30.5Z")),
            ("in", Value::Map(Document::from_iter([("at", "2009-02-13T23:31:30Z")]))),
            ("no", Value::from("yesterday")),
        ]);
        for (filter, want) in [
            (r#"{"at": {"$gt": {"$date": "2009-02-13T23:31:30Z"}}}"#, true),
            (r#"{"at": {"$lt": {"$date": "2009-02-13T23:31:30Z"}}}"#, false),
            (r#"{"in.at": {"$date": "2009-02-14T00:31:30+01:00"}}"#, true),
            (r#"{"no": {"$lt": {"$date": "2009-02-13T23:31:30Z"}}}"#, false),
            (r#"{"in.at": "2009-02-13T23:31:30Z"}"#, true),
        ] {
            assert_eq!(matcher(filter).fits(Some(&key), &record), want, "{filter}");
        }
    }

    #[test]
    fn texts_of_times_need_no_hint() {
        let filter: Filter =
            r#"{"at": {"$gt": {"$date": "2030-01-01T00:00:00Z"}}}"#.parse().unwrap();
        for (keeps, told) in [(&[Kind::Text][..], 0), (&Kind::ALL, 1)] {
            let mut hints = Hints::new(&filter);
            let matcher = Matcher::new(filter.clone(), keeps);
            let record = Document::from_iter([("at", "2020-01-01T00:00:00Z")]);
            hints.see(None, &matcher.read(&record));
            assert_eq!(hints.told().len(), told, "{:?}", hints.told());
        }
    }
}
