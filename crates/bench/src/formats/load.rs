//! Getting records to weigh: from a file, or from the seeded catalogue.

use super::Records;
use crate::{
    Error, Result,
    file::{Frames, Reading},
    format::{Coder, Format, Takes},
    marc::{
        Record, Severity,
        encoding::{Encoding, encoding, to_utf8},
        iso2709, worst,
    },
    random::Random,
    record::{Document, dataset::catalogue::Catalogue},
    results::Dataset,
    stop::Stop,
};

/// How many records are weighed where nobody says how many. All formats' bytes are held in memory,
/// some 30 KB for a MARC record of the usual size.
pub const USUAL: u64 = 20_000;

/// Makes `count` records of the built-in catalogue, of 1,650 bytes on average as published.
///
/// # Errors
/// [`Unavailable`](crate::ErrorKind::Unavailable) where `stop` is set.
pub fn catalogue(count: u64, seed: u64, stop: &Stop) -> Result<(Records, Dataset)> {
    let catalogue = Catalogue::new(seed).mean_bytes(1_650)?;
    let record = |n| stop.check().map(|()| settled(catalogue.record(n)));
    let records = (0..count).map(record).collect::<Result<_>>()?;
    let dataset = Dataset {
        name: format!("generated catalogue, seed {seed}"),
        records: count,
        of: count,
        ..Dataset::default()
    };
    Ok((Records::Marc(records), dataset))
}

/// Reads the records of files; of more than `limit`, a random sample in the order of the files.
/// MARC records in MARC-8 become UTF-8, because no other format has a word for MARC-8. Whatever was
/// left out or changed stands in the dataset's remarks.
///
/// # Errors
/// Where a file cannot be read, or there is no record in any;
/// [`Unavailable`](crate::ErrorKind::Unavailable) where `stop` is set.
pub fn read(
    names: &[String],
    reading: &Reading,
    limit: u64,
    seed: u64,
    stop: &Stop,
) -> Result<(Records, Dataset)> {
    let mut tally = Tally::new(limit, seed);
    let (mut records, mut documents) = (Vec::new(), Vec::new());
    let mut record = Record::new();
    let mut marc = None;
    for name in names {
        let mut frames = Frames::open(name, reading)?;
        let format = frames.format().format;
        let mut coder = Coder::new(frames.format().clone())?;
        while let Some(frame) = frames.next()? {
            stop.check()?;
            tally.seen += 1;
            if frame.bad.is_some() {
                tally.bad += 1;
                continue;
            }
            // Formats that hold anything may hold MARC records: the first record tells.
            let is_marc = *marc.get_or_insert_with(|| match format.info().takes {
                Takes::Marc => true,
                Takes::Rows => false,
                Takes::Anything | Takes::Maps => {
                    coder.decode_marc(frame.bytes, &mut record).is_ok()
                }
            });
            let kept = match is_marc {
                true => tally
                    .marc(&mut coder, format, frame.bytes, &mut record)
                    .map(|read| tally.keep(&mut records, read)),
                false => (coder.decode::<Document>(frame.bytes).ok())
                    .map(|read| tally.keep(&mut documents, read)),
            };
            tally.bad += u64::from(kept.is_none());
        }
    }
    let records = match marc {
        Some(true) => Records::Marc(in_order(records)),
        _ => Records::Documents(in_order(documents)),
    };
    if records.is_empty() {
        let text = match tally.seen {
            0 => "no records in it".to_owned(),
            n => format!("none of its {n} records can be read"),
        };
        return Err(Error::invalid(text).in_place(names.join(", ")));
    }
    Ok((records, tally.dataset(names)))
}

fn in_order<T>(mut kept: Vec<(u64, T)>) -> Vec<T> {
    kept.sort_by_key(|k| k.0);
    kept.into_iter().map(|k| k.1).collect()
}

/// What was met on the way.
struct Tally {
    limit: usize,
    random: Random,
    seen: u64,
    bad: u64,
    good: u64,
    repaired: u64,
    faulty: u64,
    recoded: u64,
}

impl Tally {
    fn new(limit: u64, seed: u64) -> Self {
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let random = Random::new(seed);
        Tally { limit, random, seen: 0, bad: 0, good: 0, repaired: 0, faulty: 0, recoded: 0 }
    }

    fn marc(
        &mut self,
        coder: &mut Coder,
        format: Format,
        bytes: &[u8],
        record: &mut Record,
    ) -> Option<Record> {
        let mut troubles = Vec::new();
        format.read_marc(coder.unwrap(bytes).ok()?, record, &mut troubles).ok()?;
        let worst = worst(&troubles).map(|t| t.kind.severity());
        let mut read = record.clone();
        if encoding(record.as_ref()) == Encoding::Marc8 {
            to_utf8(record.as_ref(), false, &mut read, &mut troubles).ok()?;
            self.recoded += 1;
        }
        self.repaired += u64::from(worst == Some(Severity::Repaired));
        self.faulty += u64::from(worst > Some(Severity::Repaired));
        Some(settled(read))
    }

    /// Keeps the record, or puts it in the place of another, so that in the end each had the same
    /// chance (Vitter's algorithm R).
    fn keep<T>(&mut self, kept: &mut Vec<(u64, T)>, record: T) {
        self.good += 1;
        match kept.len() < self.limit {
            true => kept.push((self.good, record)),
            false => {
                if let Some(slot) = kept.get_mut(self.random.below(self.good) as usize) {
                    *slot = (self.good, record);
                }
            }
        }
    }

    fn dataset(&self, names: &[String]) -> Dataset {
        let mut remarks = Vec::new();
        let mut say = |n: u64, one: &str, many: &str| {
            if n > 0 {
                remarks.push(format!("{n} {}.", if n == 1 { one } else { many }));
            }
        };
        say(
            self.bad,
            "record could not be read and is left out (`steelyard check` says why)",
            "records could not be read and are left out (`steelyard check` says why)",
        );
        say(self.repaired, "record had to be repaired", "records had to be repaired");
        say(
            self.faulty,
            "record has errors that cannot be repaired (`steelyard check` says which)",
            "records have errors that cannot be repaired (`steelyard check` says which)",
        );
        say(
            self.recoded,
            "record was turned from MARC-8 to UTF-8",
            "records were turned from MARC-8 to UTF-8",
        );
        let short = |name: &String| name.rsplit('/').next().unwrap_or(name).to_owned();
        Dataset {
            name: names.iter().map(short).collect::<Vec<_>>().join(", "),
            records: self.good.min(self.limit as u64),
            of: self.good,
            remarks,
            unreadable: self.bad,
            ..Dataset::default()
        }
    }
}

/// The record with the lengths in its leader as ISO 2709 writes them, which is what comes back.
fn settled(mut record: Record) -> Record {
    record.set_leader(iso2709::leader(record.as_ref()));
    record
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_of_marc_records_is_sampled_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mrc");
        let none = Stop::default();
        let (all, dataset) = catalogue(300, 1, &none).unwrap();
        assert_eq!((all.len(), dataset.of), (300, 300));
        let Records::Marc(all) = all else { panic!("MARC records") };
        let mut bytes = Vec::new();
        all.iter().for_each(|r| iso2709::write(r.as_ref(), &mut bytes));
        bytes.extend_from_slice(b"00030not a record at all......\x1d");
        fs::write(&path, &bytes).unwrap();
        let names = [path.to_str().unwrap().to_owned()];

        let (some, dataset) = read(&names, &Reading::default(), 50, 7, &none).unwrap();
        assert_eq!((some.len(), dataset.of, dataset.name.as_str()), (50, 300, "a.mrc"));
        assert_eq!(
            dataset.remarks,
            ["1 record could not be read and is left out (`steelyard check` says why)."]
        );
        let Records::Marc(some) = some else { panic!("MARC records") };
        let places: Vec<_> =
            some.iter().map(|s| all.iter().position(|a| a == s).unwrap()).collect();
        assert!(places.is_sorted() && places[49] > 150, "{places:?}");
        let (whole, _) = read(&names, &Reading::default(), 1000, 7, &none).unwrap();
        assert_eq!(whole.len(), 300);
    }

    #[test]
    fn documents_and_marc_in_json_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            let names = [path.to_str().unwrap().to_owned()];
            read(&names, &Reading::default(), 10, 1, &Stop::default())
        };
        let (records, _) = file("a.json", "{\"a\":1}\n{\"a\":2}\n").unwrap();
        assert!(matches!(records, Records::Documents(d) if d.len() == 2));
        let leader = "00000nam a2200000 i 4500";
        let line = format!("{{\"leader\":\"{leader}\",\"fields\":[{{\"001\":\"x\"}}]}}\n");
        let (records, _) = file("b.json", &line).unwrap();
        assert!(matches!(records, Records::Marc(r) if r.len() == 1));
        assert!(file("c.json", "").is_err());
    }
}
