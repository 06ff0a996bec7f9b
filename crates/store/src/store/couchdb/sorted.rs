//! The first N of the records that a server found, in the requested order.

use crate::store::{Query, Row};

/// Rows in the order of a query: no more of them are held than it wants, times two.
pub(super) struct Sorted {
    query: Query,
    limit: usize,
    rows: Vec<Row>,
}

impl Sorted {
    pub(super) fn new(query: Query) -> Sorted {
        let limit = query.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        Sorted { query, limit, rows: Vec::new() }
    }

    /// Takes more rows.
    pub(super) fn extend(&mut self, rows: Vec<Row>) {
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
    pub(super) fn rows(mut self) -> Vec<Row> {
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
    use crate::{
        record::{Document, Value},
        store::{Key, query::Path},
    };

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
