//! `do = "find"`: asks queries and reads their answers in full.

use std::sync::Arc;

use serde::Deserialize;

use super::{
    super::{
        data::{Records, value},
        draws::Draws,
        expected::{Counts, Expected},
        operation::Op,
    },
    Info, Kind, fields,
};
use crate::{
    Error, Result,
    record::Value,
    results::Asked,
    store::{
        Filter, Query,
        query::{Order, Path, Test},
    },
    workload::{Draw, Options, Phase, bounds},
};

pub(super) const INFO: Info = Info {
    name: "find",
    about: "asks queries one by one and reads their answers in full; a field that is in no record is an \
            error",
    options: &[
        ("where", "which records (default all)"),
        (
            "range",
            "`{ field, width }`: of them, those whose whole number in `field` is in a range of so many, \
             drawn anew for each query",
        ),
        ("sort", "paths, a minus before one for descending"),
        ("limit", "how many records at most"),
        (
            "expect",
            "how many records an answer has; a query that no record fits is an error unless \
             `expect = 0`",
        ),
    ],
    example: "",
    read,
};

/// How many queries, where nobody says.
const USUAL: u64 = 100;

#[derive(Debug)]
struct Find {
    filter: Filter,
    range: Option<Range>,
    sort: Vec<(Path, Order)>,
    limit: Option<u64>,
    /// How many records every answer is meant to have, where the workload says; one at least where it
    /// does not.
    expect: Option<u64>,
}

/// A range of numbers, drawn anew for each query.
#[derive(Debug)]
struct Range {
    /// The field, which has whole numbers.
    field: Path,
    /// How many numbers are in the range.
    width: u64,
}

/// All whole numbers of a range's field, sorted.
struct Numbers(Vec<i64>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRange {
    field: String,
    width: u64,
}

fn read(options: &mut Options<'_>) -> Result<Arc<dyn Kind>> {
    let range = match options.take("range")? {
        None => None,
        Some(RawRange { width: 0, .. }) => {
            return Err(options.wrong("range", "a range of width 0 has no numbers"));
        }
        Some(RawRange { field, width }) => {
            Some(Range { field: options.checked("range", field.parse())?, width })
        }
    };
    Ok(Arc::new(Find {
        filter: options.filter()?.unwrap_or_default(),
        range,
        sort: options.sort()?,
        limit: options.number("limit", &bounds::COUNT)?,
        expect: options.take("expect")?,
    }))
}

impl Kind for Find {
    fn about(&self) -> String {
        let mut text = "Queries, their answers read in full".to_owned();
        let by = |(path, order): &(Path, Order)| match order {
            Order::Ascending => path.to_string(),
            Order::Descending => format!("{path} descending"),
        };
        if !self.sort.is_empty() {
            let sort: Vec<String> = self.sort.iter().map(by).collect();
            text += &format!(", sorted by {}", sort.join(", "));
        }
        match self.limit {
            Some(limit) => text + &format!(", the first {limit}"),
            None => text,
        }
    }

    fn unit(&self) -> &'static str {
        "queries"
    }

    fn one_by_one(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }

    fn reads(&self) -> Vec<Path> {
        let mut paths = fields(&self.filter);
        paths.extend(self.sort.iter().map(|(path, _)| path.clone()));
        paths.extend(self.range.iter().map(|range| range.field.clone()));
        paths
    }

    fn expected(&self, counts: &Counts<'_>) -> Expected {
        let fitting = counts.fitting(&self.filter);
        let Some(Range { field, .. }) = &self.range else {
            return Expected::Records((fitting.count() as u64).min(self.limit.unwrap_or(u64::MAX)));
        };
        let mut numbers: Vec<i64> = fitting
            .filter_map(|row| match value(&row.record, field.names()) {
                Some(Value::Int(n)) => Some(*n),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        Expected::of(Numbers(numbers))
    }

    fn check(
        &self,
        phase: &Phase,
        counts: &Counts<'_>,
        expected: &Expected,
    ) -> Result<Option<String>> {
        if let Some(range) = &self.range {
            only_whole_numbers(&phase.name, &range.field, counts)?;
        }
        let found = match expected.counted::<Numbers>() {
            Some(numbers) if numbers.0.is_empty() => Some(0),
            Some(_) => None,
            None => expected.records(),
        };
        match (found, self.expect) {
            (Some(0), None) => Err(Error::invalid(format!(
                "phase {}: no record fits {}, so only the search for nothing would be measured; where \
                 that is meant, say expect = 0 in the workload",
                phase.name, self.filter
            ))),
            (Some(found), Some(expect)) if found != expect => Err(Error::invalid(format!(
                "phase {}: an answer has {found} records, not {expect} as expect says",
                phase.name
            ))),
            _ => Ok(None),
        }
    }

    fn asked(&self, expected: &Expected) -> Option<Asked> {
        let mut condition = self.filter.to_string();
        if let Some(Range { field, width }) = &self.range {
            let within = format!("{field} in a range of {width}, drawn anew for each query");
            condition = match &self.filter {
                Filter::All => within,
                _ => format!("{condition}, {within}"),
            };
        }
        let by = |(path, order): &(Path, Order)| match order {
            Order::Ascending => path.to_string(),
            Order::Descending => format!("-{path}"),
        };
        let records = match (expected.counted::<Numbers>(), &self.range) {
            (Some(numbers), Some(range)) => {
                let mean = numbers.mean_in(range);
                Some(self.limit.map_or(mean, |limit| mean.min(limit as f64)))
            }
            _ => expected.records().map(|n| n as f64),
        };
        let sort = self.sort.iter().map(by).collect();
        Some(Asked { condition, sort, limit: self.limit, records })
    }

    fn drawn(&self, draws: &Draws<'_>) -> Result<Vec<Op>> {
        let mut draw = draws.random();
        let numbers = draws.expected.counted::<Numbers>();
        draws.all(USUAL, || {
            let (sort, limit) = (self.sort.clone(), self.limit);
            let mut query = Query { sort, limit, ..Query::new(self.filter.clone()) };
            let expected = match (&self.range, &numbers) {
                (None, _) => draws.expected.records(),
                (Some(range), Some(numbers)) => {
                    let (within, found) = numbers.drawn(range, &mut draw)?;
                    query.filter = query.filter.and(within);
                    Some(found.min(self.limit.unwrap_or(u64::MAX)))
                }
                (Some(Range { field, .. }), None) => {
                    return Err(Error::invalid(format!(
                        "a range of {field}, which an earlier phase has changed"
                    )));
                }
            };
            if draws.null {
                // It does not look, and answers with as many records as it is asked for.
                query.limit = expected.or(query.limit);
            }
            Ok(Op::Find(Box::new(query), expected))
        })
    }
}

impl Numbers {
    /// A range, and how many of the numbers are in it.
    fn drawn(&self, range: &Range, draw: &mut Draw) -> Result<(Filter, u64)> {
        let numbers = &self.0;
        let (Some(&least), Some(&most)) = (numbers.first(), numbers.last()) else {
            return Err(Error::invalid(format!("no record has a whole number in {}", range.field)));
        };
        let room = (most - least + 1 - range.width as i64).max(0) as u64;
        let low = least + draw.below(room + 1) as i64;
        let high = low + range.width as i64;
        let upto = |n: i64| numbers.partition_point(|number| *number < n);
        let within = Filter::And(vec![
            Filter::Field(range.field.clone(), Test::Ge(Value::Int(low))),
            Filter::Field(range.field.clone(), Test::Lt(Value::Int(high))),
        ]);
        Ok((within, (upto(high) - upto(low)) as u64))
    }

    /// How many of the numbers are in a range, in the mean.
    fn mean_in(&self, range: &Range) -> f64 {
        let span = self.0.first().zip(self.0.last());
        let span = span.map_or(1, |(least, most)| most - least + 1).max(1) as f64;
        self.0.len() as f64 * (range.width as f64 / span).min(1.0)
    }
}

/// A range is drawn among whole numbers, so nothing else may be in its field.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid), naming the first record where it is otherwise.
fn only_whole_numbers(phase: &str, field: &Path, counts: &Counts<'_>) -> Result<()> {
    let records: &Records = counts.records;
    for n in counts.numbers(records.count) {
        let document = records.document(n);
        let kind = match value(&document, field.names()) {
            None | Some(Value::Null | Value::Int(_)) => continue,
            Some(other) => other.kind().one(),
        };
        return Err(Error::invalid(format!(
            "phase {phase}: a range is of whole numbers, and {field} of record {} is {kind}; for such \
             values use where",
            n + 1
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::draws::tests::{drawn, small},
        *,
    };

    #[test]
    fn ranges_know_how_many_records_are_in_them() {
        for op in drawn("inserts", "range of 10 numbers") {
            let Op::Find(query, Some(expected)) = op else { panic!("{op:?}") };
            // 1,000 rows have 200 numbers of five pets each.
            assert_eq!(expected, 50, "{query:?}");
        }
    }

    #[test]
    fn ranges_know_all_numbers() {
        let (workload, _, expected) = small("inserts", 0.1);
        let at = workload.phases.iter().position(|p| p.name.starts_with("range")).unwrap();
        let numbers = expected[at].counted::<Numbers>().unwrap();
        assert_eq!((numbers.0.len(), numbers.0[4], numbers.0[5]), (2_000, 0, 1));
    }
}
