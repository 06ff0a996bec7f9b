//! The operations of a phase, drawn before the clock runs: keys, queries and records are ready.

use super::{data::Records, drive::Op, expected::Expected, relate::Relate};
use crate::{
    Error, Result,
    bench::{
        schedule::Limit,
        workload::{Act, Draw, Kind, Phase, Range, Spread, Workload},
    },
    record::{Document, Value},
    store::{
        Filter, Key, Query, Row,
        query::{Order, Path, Test},
    },
};

/// Operations of a window that ends by the clock: drawn once, and sent round and round.
const ROUND: u64 = 20_000;
/// Operations of a trace, at most, where nobody says how many.
const TRACED: u64 = 1_000_000;
/// Records that a short scan reads, at most.
const SCAN: u64 = 100;

/// How many operations a phase has where neither it nor the command line says.
fn usual(phase: &Phase, of: &Records) -> u64 {
    let records = of.count;
    match &phase.act {
        Act::Find { .. } => 100,
        Act::Get { spread, .. } if of.trace(spread).is_some() => {
            // A long trace says the same from its beginning.
            of.trace(spread).map_or(0, |trace| trace.len() as u64).min(TRACED)
        }
        Act::Get { .. } => records.clamp(1, 10_000),
        _ => 2_000,
    }
}

/// The operations of a phase on a table that has grown by so many records so far, and how many
/// records they add to it. The store knows the table of what belongs to records by the name `to`.
pub(super) fn ops(
    phase: &Phase,
    records: &Records,
    expected: &Expected,
    grown: u64,
    to: &str,
    seed: u64,
) -> Result<(Vec<Op>, u64)> {
    let count = match phase.limit {
        Some(Limit::Count(n)) => n,
        Some(Limit::Seconds(_)) => ROUND,
        None => usual(phase, records),
    };
    let mut inserted = 0;
    let ops = match &phase.act {
        Act::Get { spread, batch } => {
            let mut draw = records.draw(spread, seed);
            let mut op = || -> Result<Op> {
                let keys = (0..*batch).map(|_| records.key(draw.draw()));
                Ok(Op::Get(keys.collect::<Result<_>>()?))
            };
            (0..count).map(|_| op()).collect::<Result<_>>()?
        }
        Act::Find { filter, range, sort, most, .. } => {
            let mut finds = Finds { filter, range: range.as_ref(), sort, most: *most, expected };
            let mut draw = Draw::new(Spread::Random, records.count, seed);
            (0..count).map(|_| finds.next(&mut draw)).collect::<Result<_>>()?
        }
        Act::Relate { by, field, .. } => {
            let mut draw = Draw::new(Spread::Random, records.count, seed);
            let mut op = || -> Result<Op> {
                let key = records.key(draw.draw())?;
                Ok(Op::Relate(Box::new(Relate::new(*by, key, field, to, expected))))
            };
            (0..count).map(|_| op()).collect::<Result<_>>()?
        }
        Act::Update { spread, set } => {
            let mut draw = records.draw(spread, seed);
            let mut op = || -> Result<Op> {
                let mut row = records.row(draw.draw())?;
                for (name, value) in set.iter() {
                    row.record.insert(name, value.clone());
                }
                Ok(Op::Put(Box::new(row)))
            };
            (0..count).map(|_| op()).collect::<Result<_>>()?
        }
        Act::Mix { shares, spread } => {
            let mut draw = records.draw(spread, seed);
            // The points of a curve ask for the same keys, and each writes what no other wrote: a store that
            // sees that nothing changes writes nothing.
            let own = phase
                .name
                .bytes()
                .fold(seed, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            let mut news = Draw::new(Spread::Random, records.count, own);
            // Who reads beside others may come before them: then only what was there is drawn.
            let alone = phase.concurrency == 1;
            let mut op = || -> Result<Op> {
                let mut at = draw.unit();
                let kind = shares.iter().find(|(_, share)| {
                    at -= share;
                    at < 0.0
                });
                let kind = kind.or(shares.last()).map_or(Kind::Read, |share| share.0);
                if kind == Kind::Insert {
                    let row = records.row(records.count + grown + inserted)?;
                    inserted += 1;
                    if alone {
                        draw.grow();
                    }
                    return Ok(Op::Put(Box::new(row)));
                }
                let n = draw.draw();
                // What the draw has grown by lies behind what earlier phases have added.
                let n = if n < records.count { n } else { n + grown };
                mixed(kind, records, n, &mut draw, &mut news)
            };
            (0..count).map(|_| op()).collect::<Result<_>>()?
        }
        _ => Vec::new(),
    };
    match ops.is_empty() {
        true => Err(Error::invalid("a phase of no operations")),
        false => Ok((ops, inserted)),
    }
}

/// An operation of a mix on record `n`.
fn mixed(kind: Kind, records: &Records, n: u64, draw: &mut Draw, news: &mut Draw) -> Result<Op> {
    let key = records.key(n)?;
    // Another record of the same kind: what is written is not what is there.
    let other = |news: &mut Draw| records.document(2 * records.count + news.below(1 << 20));
    Ok(match kind {
        Kind::Read | Kind::Insert => Op::Get(Box::new([key])),
        Kind::Update => Op::Put(Box::new(Row { key, record: other(news) })),
        Kind::Scan => {
            let from = Filter::Field(key_path()?, Test::Ge(Value::from(&*key)));
            let query = Query::new(from).sorted(key_path()?, Order::Ascending);
            Op::Find(Box::new(query.limited(1 + draw.below(SCAN))), None)
        }
        Kind::ReadModifyWrite => {
            let record = other(news);
            let field = record.iter().next().map(|(name, value)| (name, value.clone()));
            Op::Change(key, Box::new(Document::from_iter(field)))
        }
    })
}

/// Of each phase that updates, what has to be said of records that hold already what it sets: a store
/// may do nothing for those.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) where all records do.
pub(super) fn unchanged(workload: &Workload, records: &[(String, Records)]) -> Result<Vec<String>> {
    let mut told = Vec::new();
    for phase in &workload.phases {
        let Act::Update { set, .. } = &phase.act else { continue };
        let Some((_, of)) = records.iter().find(|r| r.0 == phase.table) else { continue };
        let holds = |n: &u64| {
            let record = of.document(*n);
            set.iter().all(|(name, value)| record.get(name) == Some(value))
        };
        match (0..of.count).filter(holds).count() as u64 {
            0 => {}
            all if all == of.count => {
                return Err(Error::invalid(format!(
                    "phase {}: every record holds already what it sets: nothing would be written",
                    phase.name
                )));
            }
            some => told.push(format!(
                "{}: {:.0} % of the records held already what it sets; a store may write nothing for \
                 them",
                phase.name,
                100.0 * some as f64 / of.count as f64
            )),
        }
    }
    Ok(told)
}

fn key_path() -> Result<Path> {
    Path::KEY.parse()
}

/// So many writes to records that are there: each is given what another one has, and then what it had.
pub(super) fn in_place(records: &Records, writes: u64, seed: u64) -> Result<Vec<Op>> {
    let mut draw = Draw::new(Spread::Random, records.count, seed);
    let mut ops = Vec::with_capacity(writes as usize);
    for _ in 0..writes.div_ceil(2) {
        let (n, by) = (draw.draw(), 1 + draw.below(records.count.saturating_sub(1)));
        for by in [by, 0] {
            ops.push(Op::Put(Box::new(records.shifted(n, by)?)));
        }
    }
    Ok(ops)
}

/// The queries of a phase.
struct Finds<'a> {
    filter: &'a Filter,
    range: Option<&'a Range>,
    sort: &'a [(Path, Order)],
    most: Option<u64>,
    expected: &'a Expected,
}

impl Finds<'_> {
    fn next(&mut self, draw: &mut Draw) -> Result<Op> {
        let mut query = Query { sort: self.sort.to_vec(), limit: self.most, ..Query::default() };
        query.filter = self.filter.clone();
        let expected = match (self.range, self.expected) {
            (None, Expected::Records(n)) => Some(*n),
            (Some(range), Expected::Numbers(numbers)) => {
                let (low, found) = drawn(range, numbers, draw)?;
                let high = low + range.width as i64;
                let within = Filter::And(vec![
                    Filter::Field(range.field.clone(), Test::Ge(Value::Int(low))),
                    Filter::Field(range.field.clone(), Test::Lt(Value::Int(high))),
                ]);
                query.filter = query.filter.and(within);
                Some(found.min(self.most.unwrap_or(u64::MAX)))
            }
            (Some(range), _) => {
                let field = &range.field;
                return Err(Error::invalid(format!(
                    "a range of {field}, which an earlier phase has changed"
                )));
            }
            (None, _) => None,
        };
        Ok(Op::Find(Box::new(query), expected))
    }
}

/// Where a range begins, and how many of these numbers, which are sorted, lie in it.
fn drawn(range: &Range, numbers: &[i64], draw: &mut Draw) -> Result<(i64, u64)> {
    let (Some(&least), Some(&most)) = (numbers.first(), numbers.last()) else {
        return Err(Error::invalid(format!("no record has a whole number in {}", range.field)));
    };
    let room = (most - least + 1 - range.width as i64).max(0) as u64;
    let low = least + draw.below(room + 1) as i64;
    let upto = |n: i64| numbers.partition_point(|number| *number < n);
    Ok((low, (upto(low + range.width as i64) - upto(low)) as u64))
}

/// The keys of rows, for reading them back.
pub(super) fn keys(rows: &[Row]) -> Vec<Key> {
    rows.iter().map(|row| row.key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::stores::expected::expected;

    fn made(name: &str, phase: &str) -> (Vec<Op>, u64) {
        let workload = Workload::named(name).unwrap().scaled(0.05);
        let records: Vec<_> = (workload.tables.iter())
            .map(|table| (table.name.clone(), Records::new(table, None, 1).unwrap()))
            .collect();
        let expected = expected(&workload, &records, &|| false);
        let at = workload.phases.iter().position(|p| p.name == phase).unwrap();
        let phase = &workload.phases[at];
        let records = &records.iter().find(|r| r.0 == phase.table).unwrap().1;
        ops(phase, records, &expected[at], 3, "other", 7).unwrap()
    }

    #[test]
    fn ranges_know_how_many_records_lie_in_them() {
        let (ops, _) = made("inserts", "range of 10 numbers");
        for op in &ops {
            let Op::Find(query, Some(expected)) = op else { panic!("{op:?}") };
            // 1,000 rows hold 200 numbers of five pets each.
            assert_eq!(*expected, 50, "{query:?}");
        }
    }

    #[test]
    fn mixes_have_their_shares_and_new_keys_once() {
        let (ops, inserted) = made("mixed", "d");
        let puts: Vec<&str> = (ops.iter())
            .filter_map(|op| match op {
                Op::Put(row) => Some(&*row.key),
                _ => None,
            })
            .collect();
        assert_eq!(puts.len() as u64, inserted);
        assert!((2..30).contains(&inserted), "{inserted} of {}", ops.len());
        assert_eq!(puts[..2], ["503", "504"], "after 500 records and 3 of earlier phases");
        let (ops, _) = made("mixed", "f");
        let changes = ops.iter().filter(|op| matches!(op, Op::Change(..))).count();
        assert!((90..160).contains(&changes), "{changes} of {}", ops.len());
    }

    #[test]
    fn points_of_a_curve_write_to_the_same_keys_what_no_other_has_written() {
        let puts = |phase: &str| -> Vec<Row> {
            let (ops, _) = made("keep", phase);
            let row = |op: Op| match op {
                Op::Put(row) => *row,
                op => panic!("{op:?}"),
            };
            ops.into_iter().map(row).collect()
        };
        let (one, sixteen) = (puts("writes x1"), puts("writes x16"));
        assert_eq!(keys(&one), keys(&sixteen));
        assert!(one.len() > 10 && one.iter().zip(&sixteen).all(|(a, b)| a.record != b.record));
    }

    #[test]
    fn updates_that_change_nothing_are_told_or_refused() {
        let text = |value: &str| {
            format!(
                "name = \"x\"\nabout = \"x\"\n[table.records]\ndataset = \"people\"\ncount = 100\n\
                 [[phase]]\nname = \"load\"\ndo = \"load\"\n\
                 [[phase]]\nname = \"set\"\ndo = \"update\"\nset = {{ {value} }}\n"
            )
        };
        let of = |value: &str| {
            let workload = Workload::parse(&text(value)).unwrap();
            let table = &workload.tables[0];
            let records = vec![(table.name.clone(), Records::new(table, None, 1).unwrap())];
            unchanged(&workload, &records)
        };
        assert_eq!(of("\"is_admin?\" = 7").unwrap(), Vec::<String>::new());
        let some = of("\"is_admin?\" = true").unwrap();
        assert!(some.len() == 1 && some[0].contains("% of the records held already"), "{some:?}");
        let all = of("name = \"Bob Jones\"").unwrap_err();
        assert!(all.to_string().contains("phase set: every record holds already"), "{all}");
    }
}
