//! Which of the records that a server found are those asked for, and in which order.

use crate::{
    record::{Document, Time, Value},
    store::{
        Filter, Key, Query, Row,
        query::{Path, Test},
    },
};

/// A filter over records whose times have become text.
pub(super) struct Matcher {
    query: Query,
    /// The paths that are compared with times.
    times: Vec<Path>,
}

impl Matcher {
    pub fn new(filter: Filter) -> Matcher {
        let mut times = Vec::new();
        paths_of_times(&filter, &mut times);
        Matcher { query: Query::new(filter), times }
    }

    /// Whether a record fits.
    pub fn fits(&self, key: &Key, record: &Document) -> bool {
        if self.times.is_empty() {
            return self.query.matches(key, record);
        }
        let mut record = record.clone();
        for path in &self.times {
            record = with_time(record, path.names());
        }
        self.query.matches(key, &record)
    }
}

fn paths_of_times(filter: &Filter, paths: &mut Vec<Path>) {
    let is_time = |value: &Value| matches!(value, Value::Time(_));
    match filter {
        Filter::All => {}
        Filter::And(all) | Filter::Or(all) => all.iter().for_each(|f| paths_of_times(f, paths)),
        Filter::Not(one) => paths_of_times(one, paths),
        Filter::Field(path, test) => {
            let time = match test {
                Test::Eq(v)
                | Test::Ne(v)
                | Test::Lt(v)
                | Test::Le(v)
                | Test::Gt(v)
                | Test::Ge(v) => is_time(v),
                Test::In(values) => values.iter().any(is_time),
                Test::Exists(_) | Test::Prefix(_) => false,
            };
            if time && !paths.contains(path) {
                paths.push(path.clone());
            }
        }
    }
}

/// The record with a time in the place of a text that is one.
fn with_time(record: Document, names: &[String]) -> Document {
    let Some((first, rest)) = names.split_first() else { return record };
    let changed = |name: String, value: Value| {
        let value = match value {
            Value::Text(text) if rest.is_empty() && name == *first => match text.parse::<Time>() {
                Ok(time) => Value::Time(time),
                Err(_) => Value::Text(text),
            },
            Value::Map(map) if name == *first => Value::Map(with_time(map, rest)),
            value => value,
        };
        (name, value)
    };
    record.into_iter().map(|(name, value)| changed(name, value)).collect()
}

/// Rows in the order of a query: no more of them are held than it wants, times two.
pub(super) struct Sorted {
    query: Query,
    limit: usize,
    rows: Vec<Row>,
}

impl Sorted {
    pub fn new(query: Query) -> Sorted {
        let limit = query.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        Sorted { query, limit, rows: Vec::new() }
    }

    /// Takes more rows.
    pub fn extend(&mut self, rows: Vec<Row>) {
        const SOME: usize = 1000;
        self.rows.extend(rows);
        if self.rows.len() > self.limit.saturating_mul(2).saturating_add(SOME) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.rows.sort_by(|a, b| self.query.order(a, b));
        self.rows.truncate(self.limit);
    }

    /// The first of them.
    pub fn rows(mut self) -> Vec<Row> {
        self.cut();
        for row in &mut self.rows {
            row.record = self.query.project(std::mem::take(&mut row.record));
        }
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_times_are_compared_as_times() {
        let matcher = |text: &str| Matcher::new(text.parse().unwrap());
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
            assert_eq!(matcher(filter).fits(&key, &record), want, "{filter}");
        }
    }

    #[test]
    fn the_first_rows_of_many_are_found_in_little_memory() {
        let path: Path = "n".parse().unwrap();
        let query = Query::default().sorted(path, crate::store::query::Order::Descending);
        let mut sorted = Sorted::new(query.limited(3));
        let number = |i: i64| i * 7919 % 10007;
        for part in 0..10i64 {
            let row = |i: i64| Row {
                key: Key::new(i.to_string()).unwrap(),
                record: Document::from_iter([("n", number(i))]),
            };
            sorted.extend((part * 1000..part * 1000 + 1000).map(row).collect());
            assert!(sorted.rows.len() <= 2006);
        }
        let mut want: Vec<i64> = (0..10_000).map(number).collect();
        want.sort_unstable_by(|a, b| b.cmp(a));
        let numbers: Vec<_> =
            sorted.rows().iter().map(|row| row.record.get("n").cloned()).collect();
        assert_eq!(numbers, [0, 1, 2].map(|i| Some(Value::Int(want[i]))));
    }
}
