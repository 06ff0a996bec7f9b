//! Records from files and to files, one by one, by the `file` room: what a program would use.

use std::path::Path;

use super::records::Item;
use crate::{
    Error, Result,
    file::{Frames, Packing, Reading, Sink, Writing},
    format::{Coder, Format, Wrap, Wrapped},
    run::Counts,
    stop::Stop,
};

/// What is around a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pack {
    Plain,
    Gzip,
    Zstd,
}

impl Pack {
    pub(super) const ALL: [Pack; 3] = [Pack::Plain, Pack::Gzip, Pack::Zstd];

    /// The name of the wrap; nothing for none.
    pub(super) fn name(self) -> &'static str {
        match self {
            Pack::Plain => "",
            Pack::Gzip => "gzip",
            Pack::Zstd => "zstd",
        }
    }

    /// With the level that the tool of this name has.
    fn packing(self) -> Result<Packing> {
        Ok(match self {
            Pack::Plain => Packing::Plain,
            named => match named.name().parse()? {
                Wrap::Gzip(level) => Packing::Gzip(level),
                Wrap::Zstd(level) => Packing::Zstd(level),
                _ => Packing::Plain,
            },
        })
    }
}

/// A file of records: where, in what format, packed how, with how many threads.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub name: String,
    pub format: Format,
    pub pack: Pack,
    pub threads: usize,
    /// Ends reading and writing within a record.
    pub stop: Stop,
}

impl Place {
    pub(super) fn path(&self) -> &Path {
        Path::new(&self.name)
    }

    /// Reads its first `limit` records, each into `record`.
    pub(super) fn read<I: Item>(
        &self,
        limit: u64,
        record: &mut I,
        mut each: impl FnMut(&I),
    ) -> Result<Counts> {
        let wrapped = Wrapped::from(self.format);
        let reading = Reading {
            format: Some(wrapped.clone()),
            packing: Some(self.pack.packing()?),
            threads: self.threads,
            ..Reading::default()
        };
        let mut frames = Frames::open(&self.name, &reading)?;
        let mut coder = Coder::new(wrapped)?;
        let mut counts = Counts::default();
        while counts.done < limit {
            self.stop.check()?;
            let Some(frame) = frames.next()? else { break };
            if let Some(bad) = frame.bad {
                return Err(bad);
            }
            record.read(&mut coder, frame.bytes)?;
            each(record);
            counts.done += 1;
            counts.items += record.parts();
            counts.bytes += frame.bytes.len() as u64;
        }
        Ok(counts)
    }

    /// Writes the records to it and closes it, unsynced. The bytes counted are those before packing.
    pub(super) fn write<'a, I: Item + 'a>(
        &self,
        records: impl Iterator<Item = &'a I>,
    ) -> Result<Counts> {
        let writing = Writing {
            format: Some(Wrapped::from(self.format)),
            packing: Some(self.pack.packing()?),
            sync: false,
            threads: self.threads,
        };
        let mut sink = Sink::create(&self.name, &writing)?;
        let mut counts = Counts::default();
        for record in records {
            self.stop.check()?;
            record.put(&mut sink)?;
            counts.items += record.parts();
        }
        let written = sink.finish()?;
        Ok(Counts { done: written.records, bytes: written.bytes, ..counts })
    }
}

/// The name of a file, as the `file` room takes it.
pub(super) fn name(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::invalid(format!("{}: a path that is not UTF-8", path.display())))
}
