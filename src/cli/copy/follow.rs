//! What is told of a copy while it runs and when it is done, and where rejected records go.

use std::{
    fs::{self, File},
    io::{BufWriter, Seek, SeekFrom, Write},
    path::Path,
};

use serde::Serialize;
use steelyard::{
    Error, Result,
    copy::{Counts, Follower, Reject, Source},
    file::Staged,
    marc::{Severity, Trouble},
};

use super::Args;
use crate::cli::progress::{Progress, count, grouped};

/// How many troubles are printed before the rest is only counted.
const SHOWN: u64 = 20;

pub struct Report {
    name: String,
    progress: Progress,
    quiet: bool,
    told: u64,
    untold: u64,
    pub rejects: Option<Rejects>,
}

impl Report {
    pub fn new(args: &Args, source: &Source) -> Report {
        let quiet = args.quiet || args.json;
        let size = match source {
            Source::File(frames) => frames.size(),
            Source::Store(_) => None,
        };
        let name = match source {
            Source::File(_) => args.source.clone(),
            Source::Store(from) => from.name.clone(),
        };
        let progress = Progress::bytes(size, quiet);
        Report { name, progress, quiet, told: 0, untold: 0, rejects: None }
    }

    /// Says something that is no trouble.
    pub fn note(&self, line: &str) {
        if !self.quiet {
            self.progress.say(line);
        }
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.quiet {
            return;
        }
        if self.told < SHOWN {
            self.told += 1;
            self.progress.say(&line());
        } else {
            self.untold += 1;
        }
    }

    pub fn summary(&self, counts: &Counts) {
        if self.quiet {
            return;
        }
        if self.untold > 0 {
            let line = format!(
                "and {} more; `steelyard check {}` lists all",
                grouped(self.untold),
                self.name
            );
            self.progress.say(&line);
        }
        let mut line =
            format!("{} read, {} written", count(counts.read, "record"), grouped(counts.written));
        for (n, what) in [
            (counts.left_out, "left out"),
            (counts.repaired, "repaired"),
            (counts.rejected, "rejected"),
            (counts.verified, "read back and the same"),
        ] {
            if n > 0 {
                line += &format!(", {} {what}", grouped(n));
            }
        }
        self.progress.say(&line);
    }
}

impl Follower for Report {
    fn counts(&mut self, counts: &Counts) {
        self.progress.at(counts.bytes_in, || count(counts.read, "record"));
    }

    fn trouble(&mut self, trouble: &Trouble) {
        if trouble.kind.severity() > Severity::Note {
            let name = self.name.clone();
            self.tell(|| format!("{name}: {trouble}"));
        }
    }

    fn reject(&mut self, reject: &Reject) -> Result<()> {
        let name = self.name.clone();
        self.tell(|| {
            let Reject { record, reason, .. } = reject;
            format!("{name}: record {record}, {}: rejected: {reason}", place(reject))
        });
        match &mut self.rejects {
            Some(rejects) => rejects.add(reject),
            None => Ok(()),
        }
    }

    fn rejected_bytes(&mut self) -> Result<u64> {
        self.rejects.as_mut().map_or(Ok(0), Rejects::bytes)
    }
}

/// Where a rejected record is from, as far as it is known.
fn place(reject: &Reject) -> String {
    match &reject.key {
        Some(key) if reject.offset == 0 => format!("key {}", key.shown()),
        _ => format!("byte {}", reject.offset),
    }
}

/// Rejected records as they stood, and beside them a line for each with its place and the reason.
pub struct Rejects {
    records: BufWriter<Kept>,
    reasons: BufWriter<Kept>,
}

/// A file that is there when it is whole, or one that is there at once and can be gone on with.
enum Kept {
    Whole(Staged),
    Going(File),
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Kept::Whole(file) => file.write(bytes),
            Kept::Going(file) => file.write(bytes),
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Kept::Whole(file) => file.flush(),
            Kept::Going(file) => file.flush(),
        }
    }
}

fn reasons(path: &str) -> String {
    format!("{path}.reasons")
}

impl Rejects {
    /// Files that are there when the copy is done.
    pub fn create(path: &str) -> Result<Rejects> {
        let create = |path: &str| {
            Staged::create(Path::new(path), false).map(|file| BufWriter::new(Kept::Whole(file)))
        };
        Ok(Rejects { reasons: create(&reasons(path))?, records: create(path)? })
    }

    /// Files that go on behind so many bytes, and so many lines of reasons, of an earlier run.
    pub fn resume(path: &str, bytes: u64, lines: u64) -> Result<Rejects> {
        let open = |path: &str, keep: u64| {
            let open = || -> Result<_> {
                let mut file =
                    File::options().create(true).write(true).truncate(false).open(path)?;
                file.set_len(keep)?;
                file.seek(SeekFrom::End(0))?;
                Ok(BufWriter::new(Kept::Going(file)))
            };
            open().map_err(|e| e.in_place(path))
        };
        let text = fs::read(reasons(path)).unwrap_or_default();
        let mut ends = text.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1);
        let keep = match lines {
            0 => 0,
            n => ends.nth(n as usize - 1).unwrap_or(text.len()),
        };
        Ok(Rejects { records: open(path, bytes)?, reasons: open(&reasons(path), keep as u64)? })
    }

    /// How many bytes of records are there, for good.
    fn bytes(&mut self) -> Result<u64> {
        for file in [&mut self.records, &mut self.reasons] {
            file.flush()?;
        }
        match self.records.get_mut() {
            Kept::Going(file) => Ok(file.stream_position()?),
            Kept::Whole(_) => Ok(0),
        }
    }

    fn add(&mut self, reject: &Reject) -> Result<()> {
        self.records.write_all(&reject.bytes)?;
        // Lines stay lines.
        if !reject.bytes.ends_with(b"\x1d") && !reject.bytes.ends_with(b"\n") {
            self.records.write_all(b"\n")?;
        }
        let Reject { record, reason, .. } = reject;
        // A line each, whatever the reason quotes.
        let reason = reason.replace('\n', " ");
        writeln!(self.reasons, "record {record}, {}: {reason}", place(reject))?;
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        for file in [self.records, self.reasons] {
            match file.into_inner().map_err(|e| Error::from(e.into_error()))? {
                Kept::Whole(file) => file.commit()?,
                Kept::Going(file) => drop(file),
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
pub struct Summary {
    read: u64,
    written: u64,
    left_out: u64,
    repaired: u64,
    rejected: u64,
    verified: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl From<Counts> for Summary {
    fn from(c: Counts) -> Self {
        let Counts { read, written, left_out, rejected, repaired, verified, bytes_in, bytes_out } =
            c;
        Summary { read, written, left_out, repaired, rejected, verified, bytes_in, bytes_out }
    }
}
