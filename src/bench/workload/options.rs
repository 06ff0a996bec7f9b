//! A phase as it stands in a file: all keys that one may have, and what each of them must be like.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Spread, bounds};
use crate::{
    Error, Result,
    record::Document,
    store::{
        Filter,
        query::{Order, Path},
    },
};

/// All keys that a phase may have; which of them belong to what it does, `act` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPhase {
    pub name: String,
    pub r#do: String,
    pub table: Option<String>,
    pub count: Option<u64>,
    pub published: Option<u64>,
    pub seconds: Option<f64>,
    pub pace: Option<RawPace>,
    pub concurrency: Option<OneOrMore<u32>>,
    pub cache: Option<OneOrMore<f64>>,
    pub way: Option<String>,
    pub batch: Option<usize>,
    pub index: Option<Vec<String>>,
    pub keys: Option<RawSpread>,
    pub r#where: Option<RawFilter>,
    pub range: Option<RawRange>,
    pub sort: Option<Vec<String>>,
    pub limit: Option<u64>,
    pub expect: Option<u64>,
    pub by: Option<String>,
    pub to: Option<String>,
    pub field: Option<String>,
    pub set: Option<Document>,
    pub shares: Option<BTreeMap<String, f64>>,
    pub times: Option<u32>,
    pub writes: Option<u64>,
}

/// A number, or the numbers of a curve.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a list of numbers")]
pub(super) enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

/// A filter as document databases write it, or as people do: `status=open`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a condition such as \"age>=90\" or a map such as { age = 90 }")]
pub(super) enum RawFilter {
    Text(String),
    All(Vec<String>),
    Map(Document),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub(super) enum RawPace {
    Free,
    Fixed(f64),
    Poisson(f64),
    Share(f64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub(super) enum RawSpread {
    File,
    Random,
    Zipfian,
    Latest,
    Hot { records: f64, operations: f64 },
    Trace(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRange {
    pub field: String,
    pub width: u64,
}

/// `birthdate` is ascending, `-birthdate` descending.
pub(super) fn sort(text: &str) -> Result<(Path, Order)> {
    Ok(match text.strip_prefix('-') {
        Some(path) => (path.parse()?, Order::Descending),
        None => (text.parse()?, Order::Ascending),
    })
}

impl RawPhase {
    /// How many operations at once: one number, or those of a curve.
    pub fn concurrency(&mut self) -> Result<Vec<u32>> {
        let all = match self.concurrency.take() {
            None => vec![1],
            Some(OneOrMore::One(n)) => vec![n],
            Some(OneOrMore::More(all)) => all,
        };
        match all.iter().find(|n| !bounds::CONCURRENCY.contains(*n)) {
            Some(n) => Err(Error::invalid(format!("concurrency = {n}: 1 to 10000"))),
            None if all.is_empty() => Err(Error::invalid("concurrency = []: no number")),
            None => Ok(all),
        }
    }

    /// The sizes of the server's cache, as shares of the data; none where it is as it is.
    pub fn room(&mut self) -> Result<Vec<f64>> {
        let all = match self.cache.take() {
            None => return Ok(Vec::new()),
            Some(OneOrMore::One(share)) => vec![share],
            Some(OneOrMore::More(all)) => all,
        };
        match all.iter().find(|share| !(**share > 0.0 && share.is_finite())) {
            Some(share) => {
                Err(Error::invalid(format!("cache = {share}: a share of the data's size, above 0")))
            }
            None => Ok(all),
        }
    }

    pub fn batch(&mut self) -> Result<Option<usize>> {
        match self.batch.take() {
            Some(0) => Err(Error::invalid("a batch of 0 records")),
            batch => Ok(batch),
        }
    }

    pub fn spread(&mut self) -> Result<Spread> {
        Ok(match self.keys.take() {
            None | Some(RawSpread::Random) => Spread::Random,
            Some(RawSpread::File) => Spread::File,
            Some(RawSpread::Zipfian) => Spread::Zipfian,
            Some(RawSpread::Latest) => Spread::Latest,
            Some(RawSpread::Hot { records, operations }) => {
                if !(records > 0.0 && records <= 1.0 && (0.0..=1.0).contains(&operations)) {
                    return Err(Error::invalid("shares of hot keys are between 0 and 1"));
                }
                Spread::Hot { records, operations }
            }
            Some(RawSpread::Trace(file)) if file.is_empty() => {
                return Err(Error::invalid("keys = { trace = \"\" }: the name of a file"));
            }
            Some(RawSpread::Trace(file)) => Spread::Trace(file.into()),
        })
    }

    pub fn filter(&mut self) -> Result<Option<Filter>> {
        let parsed = self.r#where.take().map(|raw| match raw {
            RawFilter::Text(text) => text.parse(),
            RawFilter::All(texts) => {
                texts.iter().try_fold(Filter::All, |all, text| Ok(all.and(text.parse()?)))
            }
            RawFilter::Map(document) => Filter::from_document(&document),
        });
        parsed.transpose()
    }

    /// A key that nobody took.
    pub fn left(&self) -> Option<&'static str> {
        let left = [
            (self.way.is_some(), "way"),
            (self.batch.is_some(), "batch"),
            (self.index.is_some(), "index"),
            (self.keys.is_some(), "keys"),
            (self.r#where.is_some(), "where"),
            (self.range.is_some(), "range"),
            (self.sort.is_some(), "sort"),
            (self.limit.is_some(), "limit"),
            (self.expect.is_some(), "expect"),
            (self.by.is_some(), "by"),
            (self.to.is_some(), "to"),
            (self.field.is_some(), "field"),
            (self.set.is_some(), "set"),
            (self.shares.is_some(), "shares"),
            (self.times.is_some(), "times"),
            (self.writes.is_some(), "writes"),
        ];
        left.into_iter().find(|l| l.0).map(|l| l.1)
    }
}
