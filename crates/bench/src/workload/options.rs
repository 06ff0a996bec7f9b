//! The options of a phase in a workload file: each is read by its name, as a value of the expected type. Errors name
//! the option and its line.

use std::{fmt::Display, ops::RangeInclusive};

use serde::{Deserialize, de::DeserializeOwned};
use toml::{
    Spanned,
    de::{DeValue, ValueDeserializer},
};

use super::{
    Spread, Table, Word, bounds,
    parse::{line, nearest, plain},
};
use crate::{
    Error, Result,
    record::Document,
    store::{
        Filter,
        query::{Order, Path},
    },
};

/// The table of phases that name none.
const TABLE: &str = "records";

/// The options of one phase.
pub(crate) struct Options<'t> {
    text: &'t str,
    /// The tables that there are.
    tables: &'t [Table],
    all: Vec<Given<'t>>,
}

/// An option that the file has.
struct Given<'t> {
    name: String,
    /// Where it stands, in bytes.
    at: usize,
    /// Taken out when it is asked for.
    value: Option<Spanned<DeValue<'t>>>,
}

/// A number, or the numbers of a curve.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a list of numbers")]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

/// A filter as document databases write it, or as people do: `status=open`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a condition such as \"age>=90\" or a map such as { age = 90 }")]
enum RawFilter {
    Text(String),
    All(Vec<String>),
    Map(Document),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum RawSpread {
    File,
    Random,
    Zipfian,
    Latest,
    Hot { records: f64, operations: f64 },
    Trace(String),
}

impl<'t> Options<'t> {
    pub(super) fn new(
        text: &'t str,
        tables: &'t [Table],
        given: impl Iterator<Item = (String, usize, Spanned<DeValue<'t>>)>,
    ) -> Options<'t> {
        let mut all: Vec<Given<'_>> =
            given.map(|(name, at, value)| Given { name, at, value: Some(value) }).collect();
        all.sort_by_key(|given| given.at);
        Options { text, tables, all }
    }

    /// An option; none where the phase does not have it.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), with its line, where it is of another type.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<Option<T>> {
        let found = self.all.iter_mut().find(|given| given.name == name);
        let Some(value) = found.and_then(|given| given.value.take()) else { return Ok(None) };
        let whole = value.span();
        match T::deserialize(ValueDeserializer::from(value)) {
            Ok(value) => Ok(Some(value)),
            Err(e) => {
                let at = e.span().unwrap_or(whole).start;
                let error = Error::invalid(format!("{name}: {}", plain(&e)));
                Err(error.in_place(format!("line {}", line(self.text, at))))
            }
        }
    }

    /// An option that the phase has to have.
    ///
    /// # Errors
    /// As [`take`](Options::take); [`Invalid`](crate::ErrorKind::Invalid) where it is missing.
    pub(crate) fn need<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T> {
        self.take(name)?.ok_or_else(|| missing(name))
    }

    /// What an option has to be; `e` says what is wrong with it.
    ///
    /// # Errors
    /// The same, with the option's line.
    pub(crate) fn checked<T>(&self, name: &str, value: Result<T>) -> Result<T> {
        value.map_err(|e| self.at(name, e))
    }

    /// An error, at an option's line.
    pub(crate) fn at(&self, name: &str, error: Error) -> Error {
        match self.all.iter().find(|given| given.name == name) {
            Some(given) => error.in_place(format!("line {}", line(self.text, given.at))),
            None => error,
        }
    }

    /// An error that says what an option has to be.
    pub(crate) fn wrong(&self, name: &str, what: impl Display) -> Error {
        self.at(name, Error::invalid(what.to_string()))
    }

    /// A number within bounds.
    ///
    /// # Errors
    /// As [`take`](Options::take); [`Invalid`](crate::ErrorKind::Invalid) where it is outside.
    pub(crate) fn number<T>(
        &mut self,
        name: &'static str,
        of: &RangeInclusive<T>,
    ) -> Result<Option<T>>
    where
        T: DeserializeOwned + PartialOrd + Display + Copy,
    {
        let number = self.take(name)?;
        let within = number.map(|n| bounds::within(name, n, of)).transpose();
        self.checked(name, within)
    }

    /// Numbers within bounds: one, or those of a curve; none where the phase does not have the option.
    ///
    /// # Errors
    /// As [`number`](Options::number); [`Invalid`](crate::ErrorKind::Invalid) for an empty list.
    pub(crate) fn numbers<T>(
        &mut self,
        name: &'static str,
        of: &RangeInclusive<T>,
    ) -> Result<Vec<T>>
    where
        T: DeserializeOwned + PartialOrd + Display + Copy,
    {
        let all = match self.take(name)? {
            None => return Ok(Vec::new()),
            Some(OneOrMore::One(n)) => vec![n],
            Some(OneOrMore::More(all)) => all,
        };
        if all.is_empty() {
            return Err(self.wrong(name, format!("{name} = []: no number")));
        }
        let within = all.into_iter().map(|n| bounds::within(name, n, of)).collect();
        self.checked(name, within)
    }

    /// `batch`, how many records at a time.
    ///
    /// # Errors
    /// As [`number`](Options::number).
    pub(crate) fn batch(&mut self, usual: usize) -> Result<usize> {
        Ok(self.number("batch", &bounds::BATCH)?.unwrap_or(usual))
    }

    /// One of the words that there are.
    ///
    /// # Errors
    /// As [`take`](Options::take); [`Invalid`](crate::ErrorKind::Invalid), naming the words that are known.
    pub(crate) fn word<W: Word>(&mut self, name: &'static str) -> Result<Option<W>> {
        let word: Option<String> = self.take(name)?;
        let known = word.map(|word| W::of(&word, name)).transpose();
        self.checked(name, known)
    }

    /// The name of a table that there is.
    ///
    /// # Errors
    /// As [`take`](Options::take); [`Invalid`](crate::ErrorKind::Invalid) where there is none of this name.
    pub(crate) fn table(&mut self, name: &'static str) -> Result<String> {
        let table = self.take(name)?.unwrap_or_else(|| TABLE.to_owned());
        let known: Vec<&str> = self.tables.iter().map(|table| table.name.as_str()).collect();
        match known.contains(&table.as_str()) {
            true => Ok(table),
            false => Err(self.wrong(
                name,
                format!("there is no [table.{table}]{}", did_you_mean(&table, &known)),
            )),
        }
    }

    /// A path to a field.
    ///
    /// # Errors
    /// As [`need`](Options::need); [`Invalid`](crate::ErrorKind::Invalid) for what is no path.
    pub(crate) fn path(&mut self, name: &'static str) -> Result<Path> {
        let path: String = self.need(name)?;
        self.checked(name, path.parse())
    }

    /// Paths to fields.
    ///
    /// # Errors
    /// As [`path`](Options::path).
    pub(crate) fn paths(&mut self, name: &'static str) -> Result<Vec<Path>> {
        let names: Vec<String> = self.need(name)?;
        self.checked(name, names.iter().map(|name| name.parse()).collect())
    }

    /// `sort`: `birthdate` is ascending, `-birthdate` descending.
    ///
    /// # Errors
    /// As [`paths`](Options::paths).
    pub(crate) fn sort(&mut self) -> Result<Vec<(Path, Order)>> {
        let names: Vec<String> = self.take("sort")?.unwrap_or_default();
        let by = |text: &String| {
            Ok(match text.strip_prefix('-') {
                Some(path) => (path.parse()?, Order::Descending),
                None => (text.parse()?, Order::Ascending),
            })
        };
        self.checked("sort", names.iter().map(by).collect())
    }

    /// `where`, which records.
    ///
    /// # Errors
    /// As [`take`](Options::take); [`Invalid`](crate::ErrorKind::Invalid) for what is no condition.
    pub(crate) fn filter(&mut self) -> Result<Option<Filter>> {
        let parsed = match self.take("where")? {
            None => return Ok(None),
            Some(RawFilter::Text(text)) => text.parse(),
            Some(RawFilter::All(texts)) => {
                texts.iter().try_fold(Filter::All, |all, text| Ok(all.and(text.parse()?)))
            }
            Some(RawFilter::Map(document)) => Filter::from_document(&document),
        };
        self.checked("where", parsed).map(Some)
    }

    /// `keys`, how operations spread over the records.
    ///
    /// # Errors
    /// As [`take`](Options::take); [`Invalid`](crate::ErrorKind::Invalid) for shares that are none.
    pub(crate) fn spread(&mut self) -> Result<Spread> {
        Ok(match self.take("keys")? {
            None | Some(RawSpread::Random) => Spread::Random,
            Some(RawSpread::File) => Spread::File,
            Some(RawSpread::Zipfian) => Spread::Zipfian,
            Some(RawSpread::Latest) => Spread::Latest,
            Some(RawSpread::Hot { records, operations }) => {
                if !(records > 0.0 && records <= 1.0 && (0.0..=1.0).contains(&operations)) {
                    return Err(self.wrong("keys", "the shares of hot keys are between 0 and 1"));
                }
                Spread::Hot { records, operations }
            }
            Some(RawSpread::Trace(file)) if file.is_empty() => {
                return Err(self.wrong("keys", "keys = { trace = \"\" }: the name of a file"));
            }
            Some(RawSpread::Trace(file)) => Spread::Trace(file.into()),
        })
    }

    /// The names of the options that the phase has, as they are written.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|given| given.name.as_str())
    }
}

/// The error of an option that a phase has to have.
pub(crate) fn missing(name: &str) -> Error {
    Error::invalid(format!("option {name:?} is missing"))
}

/// A proposal for what is not among the known words, where one of them is like it.
pub(super) fn did_you_mean(word: &str, known: &[&str]) -> String {
    nearest(word, known).map_or(String::new(), |near| format!("; did you mean {near:?}?"))
}
