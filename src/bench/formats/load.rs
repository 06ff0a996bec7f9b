//! Getting records to weigh: from a file, or from the seeded catalogue.

use super::Records;
use crate::{
    Error, Result,
    bench::{random::Random, results::Dataset},
    file::{Frames, Reading},
    format::{Coder, Format, Takes},
    marc::{
        Record, Severity,
        encoding::{Encoding, encoding, to_utf8},
        iso2709,
        sample::Catalogue,
    },
    record::Document,
};

/// Makes `count` records of the built-in catalogue.
pub fn catalogue(count: u64, seed: u64) -> (Records, Dataset) {
    let catalogue = Catalogue::new(seed);
    let records = (0..count).map(|n| settled(catalogue.record(n))).collect();
    let dataset = Dataset {
        name: format!("the sample catalogue, seed {seed}"),
        records: count,
        of: count,
        ..Dataset::default()
    };
    (Records::Marc(records), dataset)
}

/// Reads the records of a file; of more than `limit`, a random sample in the order of the file.
/// MARC records in MARC-8 become UTF-8, because no other format has a word for MARC-8. Whatever was
/// left out or changed stands in the dataset's remarks.
///
/// # Errors
/// Where the file cannot be read, or has no record in it.
pub fn read(name: &str, reading: &Reading, limit: u64, seed: u64) -> Result<(Records, Dataset)> {
    let mut frames = Frames::open(name, reading)?;
    let format = frames.format().format;
    let mut coder = Coder::new(frames.format().clone())?;
    let mut tally =
        Tally { limit: limit.max(1) as usize, random: Random::new(seed), ..Tally::default() };
    // Formats that hold anything may hold MARC records: the first record tells.
    let mut marc = match format.info().takes {
        Takes::Marc => Some(true),
        Takes::Rows => Some(false),
        Takes::Anything | Takes::Maps => None,
    };
    let (mut records, mut documents) = (Vec::new(), Vec::new());
    let mut record = Record::new();
    while let Some(frame) = frames.next()? {
        tally.seen += 1;
        if frame.bad.is_some() {
            tally.bad += 1;
            continue;
        }
        let is_marc =
            *marc.get_or_insert_with(|| coder.decode_marc(frame.bytes, &mut record).is_ok());
        if is_marc {
            match tally.marc(&mut coder, format, frame.bytes, &mut record) {
                Some(read) => tally.keep(&mut records, read),
                None => tally.bad += 1,
            }
        } else {
            match coder.decode::<Document>(frame.bytes) {
                Ok(read) => tally.keep(&mut documents, read),
                Err(_) => tally.bad += 1,
            }
        }
    }
    let records = match marc {
        Some(true) => Records::Marc(tally.in_order(records)),
        _ => Records::Documents(tally.in_order(documents)),
    };
    if records.is_empty() {
        let text = match tally.seen {
            0 => "no records in it".to_owned(),
            n => format!("none of its {n} records can be read as {}", format.name()),
        };
        return Err(Error::invalid(text).in_place(name));
    }
    Ok((records, tally.dataset(name)))
}

/// What was met on the way.
struct Tally {
    limit: usize,
    random: Random,
    seen: u64,
    bad: u64,
    good: u64,
    repaired: u64,
    recoded: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            limit: 1,
            random: Random::new(0),
            seen: 0,
            bad: 0,
            good: 0,
            repaired: 0,
            recoded: 0,
        }
    }
}

impl Tally {
    fn marc(
        &mut self,
        coder: &mut Coder,
        format: Format,
        bytes: &[u8],
        record: &mut Record,
    ) -> Option<Record> {
        let mut troubles = Vec::new();
        format.read_marc(coder.unwrap(bytes).ok()?, record, &mut troubles).ok()?;
        let repaired = troubles.iter().any(|t| t.kind.severity() > Severity::Note);
        let mut read = record.clone();
        if encoding(record.as_ref()) == Encoding::Marc8 {
            to_utf8(record.as_ref(), false, &mut read, &mut troubles).ok()?;
            self.recoded += 1;
        }
        self.repaired += u64::from(repaired);
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

    fn in_order<T>(&self, mut kept: Vec<(u64, T)>) -> Vec<T> {
        kept.sort_by_key(|k| k.0);
        kept.into_iter().map(|k| k.1).collect()
    }

    fn dataset(&self, name: &str) -> Dataset {
        let mut remarks = Vec::new();
        let mut say = |n: u64, one: &str, many: &str| {
            if n > 0 {
                remarks.push(format!("{n} {}.", if n == 1 { one } else { many }));
            }
        };
        say(
            self.bad,
            "record could not be read and is left out",
            "records could not be read and are left out",
        );
        say(self.repaired, "record had to be repaired", "records had to be repaired");
        say(
            self.recoded,
            "record was turned from MARC-8 to UTF-8",
            "records were turned from MARC-8 to UTF-8",
        );
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        Dataset {
            name,
            records: self.good.min(self.limit as u64),
            of: self.good,
            remarks,
            ..Dataset::default()
        }
    }
}

/// The record with the lengths in its leader as ISO 2709 writes them, which is what comes back.
fn settled(record: Record) -> Record {
    let (mut bytes, mut back) = (Vec::new(), Record::new());
    iso2709::write(record.as_ref(), &mut bytes);
    match Format::Marc21.decode_marc(&bytes, &mut back) {
        Ok(()) => back,
        Err(_) => record,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_of_marc_records_is_sampled_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mrc");
        let (all, dataset) = catalogue(300, 1);
        assert_eq!((all.len(), dataset.of), (300, 300));
        let Records::Marc(all) = all else { panic!("MARC records") };
        let mut bytes = Vec::new();
        all.iter().for_each(|r| iso2709::write(r.as_ref(), &mut bytes));
        bytes.extend_from_slice(b"00030not a record at all......\x1d");
        fs::write(&path, &bytes).unwrap();
        let name = path.to_str().unwrap();

        let (some, dataset) = read(name, &Reading::default(), 50, 7).unwrap();
        assert_eq!((some.len(), dataset.of, dataset.name.as_str()), (50, 300, "a.mrc"));
        assert_eq!(dataset.remarks, ["1 record could not be read and is left out."]);
        let Records::Marc(some) = some else { panic!("MARC records") };
        let places: Vec<_> =
            some.iter().map(|s| all.iter().position(|a| a == s).unwrap()).collect();
        assert!(places.is_sorted() && places[49] > 150, "{places:?}");
        let (whole, _) = read(name, &Reading::default(), 1000, 7).unwrap();
        assert_eq!(whole.len(), 300);
    }

    #[test]
    fn documents_and_marc_in_json_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            read(path.to_str().unwrap(), &Reading::default(), 10, 1)
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
