//! Reports on a copy while it runs and when it has ended, and writes rejected records.

use std::{
    fs::File,
    io::{BufWriter, Read, Seek, SeekFrom, Write},
    path::Path,
};

use serde::Serialize;
use steelyard::{
    Error, ErrorKind, Result,
    copy::{Counts, Follower, Reject, Source, Target},
    file::{Staged, open_own},
    marc::{Severity, Trouble},
};

use super::Args;
use crate::cli::{
    hidden::without_passwords,
    progress::{Progress, count, grouped},
};

/// How many troubles are printed before the rest is only counted.
const SHOWN: u64 = 20;

pub struct Report {
    name: String,
    progress: Progress,
    quiet: bool,
    told: u64,
    untold: u64,
    /// Some of the untold are rejected records.
    untold_rejects: bool,
    /// The hints that were given.
    hints: Vec<String>,
    pub rejects: Option<Rejects>,
    /// How far the copy has come.
    so_far: Counts,
}

/// What is left of a copy that ends with an error.
pub enum Left {
    /// What a file was before, under this name.
    Old(String),
    /// What was written to a pipe or a device.
    Some,
    /// Records in a store, and where the journal is, if there is one; whether the source can be read again.
    Stored { journal: Option<String>, again: bool },
}

impl Left {
    pub fn of(args: &Args, target: &Target) -> Left {
        match target {
            Target::File(sink) if sink.is_staged() => Left::Old(args.target.clone()),
            Target::File(_) => Left::Some,
            Target::Store(to) => {
                let journal = to.journal.as_ref().map(|j| j.path().display().to_string());
                Left::Stored { journal, again: args.source != "-" }
            }
        }
    }
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
        Report {
            name,
            progress,
            quiet,
            told: 0,
            untold: 0,
            untold_rejects: false,
            hints: Vec::new(),
            rejects: None,
            so_far: Counts::default(),
        }
    }

    /// Says something that is no trouble.
    pub fn note(&self, line: &str) {
        if !self.quiet {
            self.progress.say(line);
        }
    }

    /// The copy goes on behind these.
    pub fn resume(&mut self, counts: Counts) {
        self.so_far = counts;
    }

    /// Says how far the copy came that ended with this error, and how to go on.
    pub fn broken(&self, error: &Error, left: &Left) {
        let Counts { read, written, .. } = self.so_far;
        let refused = !(error.is_outage()
            || matches!(
                error.kind(),
                ErrorKind::Io | ErrorKind::Full | ErrorKind::Malformed | ErrorKind::Mismatch
            ));
        // What is refused at once was not begun.
        if read == 0 && refused {
            return;
        }
        let read = format!("{} read", count(read, "record"));
        let written = grouped(written);
        self.note(&match left {
            // How many were read is of no use: none of them stays.
            Left::Old(name) => format!("stopped; nothing was written to {name}"),
            Left::Some => format!("{read}, {written} written before it stopped"),
            Left::Stored { journal: Some(path), .. } => format!(
                "{read}, {written} written before it stopped; run the same command with --resume \
                 to continue from there (journal {path})"
            ),
            Left::Stored { journal: None, again: true } => format!(
                "{read}, {written} written before it stopped, perhaps some more; run the same \
                 command with --resume to write all of them again, and to be able to resume"
            ),
            Left::Stored { journal: None, again: false } => {
                format!("{read}, {written} written before it stopped, perhaps some more")
            }
        });
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

    /// What to do about it, once: many records may be rejected for the same reason.
    fn hint(&mut self, reject: &Reject) {
        let new = |hint: &&String| !self.quiet && !self.hints.contains(hint);
        if let Some(hint) = reject.hint.as_ref().filter(new) {
            self.progress.say(&format!("hint: {hint}"));
            self.hints.push(hint.clone());
        }
    }

    pub fn summary(&self, counts: &Counts) {
        if self.quiet {
            return;
        }
        if self.untold > 0 {
            let all = match (&self.rejects, self.untold_rejects) {
                (Some(_), true) => {
                    "the file of --rejects and its .reasons have all that were rejected".to_owned()
                }
                (None, true) => {
                    "--rejects FILE keeps all that were rejected, with the reasons".to_owned()
                }
                (_, false) => format!("`steelyard check {}` lists all", self.name),
            };
            self.progress.say(&format!("and {} more; {all}", grouped(self.untold)));
        }
        let mut line =
            format!("{} read, {} written", count(counts.read, "record"), grouped(counts.written));
        for (n, what) in [
            (counts.left_out, "left out"),
            (counts.repaired, "repaired"),
            (counts.faulty, "with errors"),
            (counts.rejected, "rejected"),
            (counts.duplicates, "duplicates"),
            (counts.verified, "verified"),
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
        self.so_far = *counts;
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
        self.untold_rejects |= !self.quiet && self.told == SHOWN;
        let shown = self.told < SHOWN;
        self.tell(|| {
            let Reject { record, reason, .. } = reject;
            format!("{name}: record {record}, {}: rejected: {reason}", place(reject))
        });
        if shown {
            self.hint(reject);
        }
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

/// What an earlier run has rejected is not all there: what follows would not make it whole.
fn lacking(path: &str) -> Error {
    let what = "it lacks records that the journal lists as rejected; restore it, or remove the \
                journal to copy from the beginning";
    Error::new(ErrorKind::Conflict, what).in_place(path)
}

/// The file of which `keep` bytes stay.
fn going_on(mut file: File, keep: u64, path: &str) -> Result<BufWriter<Kept>> {
    let in_place = |e: std::io::Error| Error::from(e).in_place(path);
    if file.metadata().map_err(in_place)?.len() < keep {
        return Err(lacking(path));
    }
    file.set_len(keep).map_err(in_place)?;
    file.seek(SeekFrom::End(0)).map_err(in_place)?;
    Ok(BufWriter::new(Kept::Going(file)))
}

impl Rejects {
    /// Files that are there when the copy is done.
    pub fn create(path: &str) -> Result<Rejects> {
        let keep = |file| BufWriter::new(Kept::Whole(file));
        let reasons = Staged::in_place_of_links(Path::new(&reasons(path)), false)?;
        let records = Staged::create(Path::new(path), false)?;
        Ok(Rejects { reasons: keep(reasons), records: keep(records) })
    }

    /// Files that go on behind so many bytes, and so many lines of reasons, of an earlier run.
    pub fn resume(path: &str, bytes: u64, lines: u64) -> Result<Rejects> {
        let open = |path: &str| {
            let advice = "remove it, or name another file with --rejects";
            open_own(Path::new(path), 0o666, "the file of rejected records", advice)
        };
        let (records, mut kept) = (open(path)?, open(&reasons(path))?);
        let mut text = Vec::new();
        kept.read_to_end(&mut text).map_err(|e| Error::from(e).in_place(reasons(path)))?;
        let mut ends = text.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1);
        let keep = match lines {
            0 => Some(0),
            n => ends.nth(n as usize - 1),
        };
        let keep = keep.ok_or_else(|| lacking(&reasons(path)))? as u64;
        Ok(Rejects {
            records: going_on(records, bytes, path)?,
            reasons: going_on(kept, keep, &reasons(path))?,
        })
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
        let reason = without_passwords(reason).replace('\n', " ");
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
    faulty: u64,
    rejected: u64,
    duplicates: u64,
    verified: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl From<Counts> for Summary {
    fn from(c: Counts) -> Self {
        Summary {
            read: c.read,
            written: c.written,
            left_out: c.left_out,
            repaired: c.repaired,
            faulty: c.faulty,
            rejected: c.rejected,
            duplicates: c.duplicates,
            verified: c.verified,
            bytes_in: c.bytes_in,
            bytes_out: c.bytes_out,
        }
    }
}
