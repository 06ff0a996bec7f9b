//! A format in the run: its data, and what it does in each phase.

use std::{cell::RefCell, fs, hint::black_box, path::PathBuf, rc::Rc};

use super::{
    files::{self, Pack, Place},
    plan::Task,
    records::Item,
};
use crate::{
    Error, ErrorKind, Result,
    format::{Format, Wrapped, framing::Framer},
    layout::{Laid, shift},
    results::{Phase, Proof},
    run::{Competitor, Counts},
    stop::Stop,
};

/// A format that takes part.
pub(super) struct Contender<'a, I> {
    pub format: Format,
    records: &'a [I],
    folder: PathBuf,
    threads: usize,
    encoded: Laid,
    out: Vec<u8>,
    record: Shared<I>,
    start: u32,
    /// How many of the records come back equal.
    equal: u64,
    /// Why it cannot be put into files.
    unfiled: Option<String>,
    /// Ends a window within a record.
    pub stop: Stop,
}

/// The record that is read into. All contenders share one, as one reads at a time: a large record takes several times
/// its bytes, which each would have for itself.
pub(super) type Shared<I> = Rc<RefCell<I>>;

/// Which records a format does not return as they were.
pub(super) struct Proved {
    pub proof: Proof,
    /// Those it cannot write, or not read back.
    pub refused: Vec<usize>,
    /// Those that come back different, in whatever way.
    pub changed: Vec<usize>,
}

/// Writes every record, reads it back and compares it by value (rule 1).
///
/// # Errors
/// Where the run is to end.
pub(super) fn prove<I: Item>(format: Format, records: &[I], stop: &Stop) -> Result<Proved> {
    let mut proof = Proof {
        records: records.len() as u64,
        of: records.len() as u64,
        declared: format.info().loses.to_owned(),
        ..Proof::default()
    };
    let (mut refused, mut changed) = (Vec::new(), Vec::new());
    let mut first_reordered = None;
    let (mut bytes, mut back) = (Vec::new(), I::empty());
    for (i, record) in records.iter().enumerate() {
        stop.check()?;
        bytes.clear();
        let mut note = |text: String| {
            proof.first.get_or_insert_with(|| format!("record {}: {text}", i + 1));
        };
        if let Err(e) = record.encode(format, &mut bytes) {
            note(e.chain());
            refused.push(i);
        } else if let Err(e) = back.decode(format, &bytes) {
            note(format!("written, but not read back: {}", e.chain()));
            refused.push(i);
        } else if back != *record {
            changed.push(i);
            if record.is_reordered(&back) {
                proof.reordered += 1;
                let text = || format!("record {}: {}", i + 1, record.difference(&back));
                first_reordered.get_or_insert_with(text);
            } else {
                note(record.difference(&back));
            }
        }
    }
    proof.first = proof.first.or(first_reordered);
    proof.refused = refused.len() as u64;
    proof.equal = proof.records - proof.refused - changed.len() as u64;
    Ok(Proved { proof, refused, changed })
}

impl<'a, I: Item> Contender<'a, I> {
    /// A contender that keeps its files in `folder`, which must be its own, and of whose records
    /// `equal` were seen to come back equal; it reads into `record`.
    pub(super) fn new(
        format: Format,
        records: &'a [I],
        equal: u64,
        folder: PathBuf,
        threads: usize,
        record: Shared<I>,
    ) -> Self {
        Contender {
            format,
            records,
            folder,
            threads,
            encoded: Laid::default(),
            out: Vec::new(),
            record,
            start: 0,
            equal,
            unfiled: None,
            stop: Stop::default(),
        }
    }

    /// Writes a file in each of `packs`, and reads it back and compares it too. Returns the size of
    /// each (of all records' bytes, where the format has no files).
    pub(super) fn put_into_files(&mut self, packs: &[Pack]) -> Result<Vec<(Pack, u64)>> {
        let mut sizes = Vec::new();
        fs::create_dir_all(&self.folder)?;
        if let Err(e) = Framer::new(&Wrapped::from(self.format)) {
            self.unfiled = Some(e.chain());
            let length = self.laid(0)?.len();
            return Ok(vec![(Pack::Plain, length as u64)]);
        }
        for &pack in packs {
            let master = self.master(pack)?;
            master.write(self.records.iter())?;
            sizes.push((pack, fs::metadata(master.path())?.len()));
            let (mut at, mut equal) = (0, 0);
            let record = &mut *self.record.borrow_mut();
            let read = master.read(u64::MAX, record, |r| {
                equal += u64::from(self.records.get(at).is_some_and(|w| w == r));
                at += 1;
            })?;
            // What is lossy in memory is lossy here, in the same records.
            if (read.done, equal) != (self.records.len() as u64, self.equal) {
                let of = self.records.len();
                let text = format!(
                    "{} of {of} records come back from a {} file, {equal} of them equal; in memory {} do",
                    read.done,
                    pack.name(),
                    self.equal
                );
                return Err(Error::new(ErrorKind::Mismatch, text));
            }
        }
        Ok(sizes)
    }

    fn laid(&self, start: u32) -> Result<Laid> {
        Laid::out(start, self.records, |record, out| {
            self.stop.check()?;
            record.encode(self.format, out)
        })
    }

    /// A file of this contender's.
    fn place(&self, name: &str, pack: Pack) -> Result<Place> {
        let name = files::name(&self.folder.join(format!("{name}-{}", pack.name())))?;
        let (format, threads, stop) = (self.format, self.threads, self.stop.clone());
        Ok(Place { name, format, pack, threads, stop })
    }

    /// What was written when the round trip was proved; each start copies it to a new place.
    fn master(&self, pack: Pack) -> Result<Place> {
        self.place("master", pack)
    }

    /// What is read on a start.
    fn copy(&self, pack: Pack, start: u32) -> Result<Place> {
        self.place(&format!("copy{start}"), pack)
    }

    /// What is written in a window.
    fn written(&self, pack: Pack) -> Result<Place> {
        self.place("written", pack)
    }

    fn decode(&mut self, units: u64) -> Result<Counts> {
        let mut counts = Counts::default();
        let record = &mut *self.record.borrow_mut();
        for bytes in self.encoded.spans().cycle().take(units as usize) {
            self.stop.check()?;
            record.decode(self.format, bytes)?;
            black_box(&*record);
            counts.done += 1;
            counts.items += record.parts();
            counts.bytes += bytes.len() as u64;
        }
        Ok(counts)
    }

    fn encode(&mut self, units: u64) -> Result<Counts> {
        let shift = shift(self.start);
        let mut counts = Counts::default();
        for record in self.records.iter().cycle().take(units as usize) {
            self.stop.check()?;
            self.out.truncate(shift);
            record.encode(self.format, &mut self.out)?;
            black_box(self.out.as_slice());
            counts.done += 1;
            counts.items += record.parts();
            counts.bytes += (self.out.len() - shift) as u64;
        }
        Ok(counts)
    }

    /// Reads files until so many records have come, from the beginning each time.
    fn read(&mut self, pack: Pack, units: u64) -> Result<Counts> {
        let place = self.copy(pack, self.start)?;
        let record = &mut *self.record.borrow_mut();
        passes(units, self.records.len(), |some| {
            place.read(some, record, |r| {
                black_box(r);
            })
        })
    }

    fn write(&self, pack: Pack, units: u64) -> Result<Counts> {
        let place = self.written(pack)?;
        passes(units, self.records.len(), |some| place.write(self.records[..some as usize].iter()))
    }
}

/// Does whole passes, or a part of one, until `units` are done.
fn passes(units: u64, pass: usize, mut one: impl FnMut(u64) -> Result<Counts>) -> Result<Counts> {
    let mut sum = Counts::default();
    while sum.done < units {
        let counts = one((units - sum.done).min(pass as u64))?;
        if counts.done == 0 {
            break;
        }
        sum.done += counts.done;
        sum.items += counts.items;
        sum.bytes += counts.bytes;
    }
    Ok(sum)
}

impl<I: Item> Competitor for Contender<'_, I> {
    fn refuses(&self, phase: &Phase) -> Option<String> {
        match Task::of(phase) {
            Ok(Task::Read(_) | Task::Write(_)) => self.unfiled.clone(),
            Ok(Task::Decode | Task::Encode) => None,
            Err(e) => Some(e.chain()),
        }
    }

    fn prepare(&mut self, start: u32) -> Result<()> {
        self.encoded = Laid::default();
        self.encoded = self.laid(start)?;
        self.out = vec![0; shift(start)];
        for pack in Pack::ALL {
            let master = self.master(pack)?;
            if master.path().exists() {
                let old = self.copy(pack, self.start)?;
                fs::copy(master.path(), self.copy(pack, start)?.path())?;
                if start != self.start {
                    fs::remove_file(old.path())?;
                }
            }
        }
        self.start = start;
        Ok(())
    }

    fn run(&mut self, phase: &Phase, units: u64) -> Result<Counts> {
        match Task::of(phase)? {
            Task::Decode => self.decode(units),
            Task::Encode => self.encode(units),
            Task::Read(pack) => self.read(pack, units),
            Task::Write(pack) => self.write(pack, units),
        }
    }

    fn tidy(&mut self, phase: &Phase) -> Result<()> {
        match Task::of(phase)? {
            Task::Write(pack) => Ok(fs::remove_file(self.written(pack)?.path())?),
            _ => Ok(()),
        }
    }
}

/// What the loops cost without the formats: the same records, looked at and not touched.
pub(super) struct Null<'a, I> {
    records: &'a [I],
    laid: Laid,
    stop: Stop,
}

impl<'a, I: Item> Null<'a, I> {
    pub(super) fn new(records: &'a [I], stop: Stop) -> Self {
        Null { records, laid: Laid::default(), stop }
    }
}

impl<I: Item> Competitor for Null<'_, I> {
    fn prepare(&mut self, start: u32) -> Result<()> {
        let stand_in = |_, out: &mut Vec<u8>| {
            out.extend_from_slice(&[b'x'; 64]);
            Ok(())
        };
        self.laid = Laid::out(start, self.records, stand_in)?;
        Ok(())
    }

    fn run(&mut self, phase: &Phase, units: u64) -> Result<Counts> {
        let mut counts = Counts::default();
        match Task::of(phase)? {
            Task::Decode | Task::Read(_) => {
                for bytes in self.laid.spans().cycle().take(units as usize) {
                    self.stop.check()?;
                    counts.bytes += black_box(bytes).len() as u64;
                    counts.done += 1;
                }
            }
            Task::Encode | Task::Write(_) => {
                for record in self.records.iter().cycle().take(units as usize) {
                    self.stop.check()?;
                    black_box(record);
                    counts.done += 1;
                }
            }
        }
        Ok(counts)
    }
}
