//! `do = "mix"`: sends operations of several sorts, drawn by their shares.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    super::{data::Records, draws::Draws, operation::Op},
    Info, Kind,
};
use crate::{
    Result,
    record::{Document, Value},
    store::{
        Filter, Query, Row,
        query::{Order, Path, Test},
    },
    workload::{Draw, Options, Spread, Word},
};

pub(super) const INFO: Info = Info {
    name: "mix",
    about: "sends operations of several sorts one by one, drawn by their shares",
    options: &[
        ("shares", "`{ read, update, insert, scan, read-modify-write }`, of any sum"),
        ("keys", "which keys, see below (default `random`)"),
    ],
    example: "shares = { read = 1 }",
    read,
};

/// How many operations, where nobody says.
const USUAL: u64 = 2_000;
/// Records that a short scan reads, at most.
const SCAN: u64 = 100;

#[derive(Debug)]
struct Mix {
    /// Each sort's share, of 1 together.
    shares: Vec<(Sort, f64)>,
    spread: Spread,
}

/// A sort of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Reads one record.
    Read,
    /// Writes one that is there again.
    Update,
    /// Writes a new one.
    Insert,
    /// Reads up to 100 records in the order of keys.
    Scan,
    /// Reads one, changes it, writes it.
    ReadModifyWrite,
}

impl Word for Sort {
    const WORDS: &[(&str, Sort)] = &[
        ("read", Sort::Read),
        ("update", Sort::Update),
        ("insert", Sort::Insert),
        ("scan", Sort::Scan),
        ("read-modify-write", Sort::ReadModifyWrite),
    ];
}

fn read(options: &mut Options<'_>) -> Result<Arc<dyn Kind>> {
    let shares: BTreeMap<String, f64> = options.need("shares")?;
    let all: f64 = shares.values().sum();
    if !(all > 0.0 && all.is_finite() && shares.values().all(|s| *s >= 0.0)) {
        return Err(options.wrong("shares", "shares are numbers of 0 or more, and not all 0"));
    }
    let sorts = shares.iter().map(|(sort, share)| Ok((Sort::of(sort, "operation")?, share / all)));
    let shares = options.checked("shares", sorts.collect())?;
    Ok(Arc::new(Mix { shares, spread: options.spread()? }))
}

impl Kind for Mix {
    fn about(&self) -> String {
        "Operations drawn by their shares".into()
    }

    fn one_by_one(&self) -> bool {
        true
    }

    fn changes(&self) -> bool {
        true
    }

    /// Inserts alone need no records.
    fn needs<'a>(&'a self, own: &'a str) -> Vec<&'a str> {
        let inserts = |(sort, share): &(Sort, f64)| *sort == Sort::Insert || *share == 0.0;
        if self.shares.iter().all(inserts) { Vec::new() } else { vec![own] }
    }

    fn spread(&self) -> Option<&Spread> {
        Some(&self.spread)
    }

    fn drawn(&self, draws: &Draws<'_>) -> Result<Vec<Op>> {
        let (records, phase) = (draws.records, draws.phase);
        let mut draw = draws.of(&self.spread);
        // The points of a curve ask for the same keys, and each writes what no other wrote: a store that
        // sees that nothing changes writes nothing.
        let own = phase
            .name
            .bytes()
            .fold(draws.seed, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut news = Draw::new(Spread::Random, records.count, own);
        // With several workers a read may be sent before the insert of its record: then only records that
        // were there before are drawn.
        let alone = phase.concurrency == 1;
        let mut inserted = 0;
        draws.all(USUAL, || {
            let sort = self.sort(draw.unit());
            if sort == Sort::Insert {
                let row = records.row(records.count + draws.grown + inserted)?;
                inserted += 1;
                if alone {
                    draw.grow();
                }
                return Ok(Op::Insert(Box::new(row)));
            }
            let n = draw.draw();
            // The numbers by which the draw has grown are behind those that earlier phases have added.
            let n = if n < records.count { n } else { n + draws.grown };
            operation(sort, records, n, &mut draw, &mut news)
        })
    }
}

impl Mix {
    /// The sort of operation at a place from 0 to 1.
    fn sort(&self, mut at: f64) -> Sort {
        let found = self.shares.iter().find(|(_, share)| {
            at -= share;
            at < 0.0
        });
        found.or(self.shares.last()).map_or(Sort::Read, |share| share.0)
    }
}

/// An operation on record `n`.
fn operation(
    sort: Sort,
    records: &Records,
    n: u64,
    draw: &mut Draw,
    news: &mut Draw,
) -> Result<Op> {
    let key = records.key(n)?;
    // Another record of the same kind: what is written is not what is there.
    let other = |news: &mut Draw| records.document(2 * records.count + news.below(1 << 20));
    Ok(match sort {
        Sort::Read | Sort::Insert => Op::Get(Box::new([key])),
        Sort::Update => Op::Put(Box::new(Row { key, record: other(news) })),
        Sort::Scan => {
            let path: Path = Path::KEY.parse()?;
            let from = Filter::Field(path.clone(), Test::Ge(Value::from(&*key)));
            let query = Query::new(from).sorted(path, Order::Ascending);
            Op::Find(Box::new(query.limited(1 + draw.below(SCAN))), None)
        }
        Sort::ReadModifyWrite => {
            let record = other(news);
            let field = record.iter().next().map(|(name, value)| (name, value.clone()));
            Op::Change(key, Box::new(Document::from_iter(field)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::draws::{keys, tests::drawn},
        *,
    };

    #[test]
    fn mixes_have_their_shares_and_new_keys_once() {
        let ops = drawn("mixed", "D read latest");
        let new: Vec<&str> = (ops.iter())
            .filter_map(|op| match op {
                Op::Insert(row) => Some(&*row.key),
                _ => None,
            })
            .collect();
        assert!((2..30).contains(&new.len()), "{new:?} of {}", ops.len());
        assert_eq!(new[..2], ["503", "504"], "after 500 records and 3 of earlier phases");
        let ops = drawn("mixed", "F read-modify-write");
        let changes = ops.iter().filter(|op| matches!(op, Op::Change(..))).count();
        assert!((90..160).contains(&changes), "{changes} of {}", ops.len());
    }

    #[test]
    fn points_of_a_curve_write_to_the_same_keys_what_no_other_has_written() {
        let puts = |phase: &str| -> Vec<Row> {
            let row = |op: Op| match op {
                Op::Put(row) => *row,
                op => panic!("{op:?}"),
            };
            drawn("keep", phase).into_iter().map(row).collect()
        };
        let (one, sixteen) = (puts("writes x1"), puts("writes x16"));
        assert_eq!(keys(&one), keys(&sixteen));
        assert!(one.len() > 10 && one.iter().zip(&sixteen).all(|(a, b)| a.record != b.record));
    }
}
