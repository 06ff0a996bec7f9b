//! How far a copy came, so that one that was ended early can be resumed.
//!
//! A file beside the source: its first line says what was being copied, and each further one how
//! far it had come. Before records are sent to a store, a line says how far they reach; after the
//! store has acknowledged them, another says that they are there. What was sent and not
//! acknowledged may be there or not, so it is sent again, in place of what is there: nothing is
//! lost, and nothing doubled.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::Counts;
use crate::{Error, ErrorKind, Result, format::Format};

/// A place in a source: a byte offset of a file, or a key of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mark {
    /// Up to this byte, not included.
    Offset(u64),
    /// Up to this key, included.
    Key(String),
}

/// What a copy is from, to, and how: a journal of another one is not gone on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    /// The source, and what tells whether it changed meanwhile.
    pub source: String,
    /// The target.
    pub target: String,
    /// What is chosen and how it is converted.
    pub options: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// The first line.
    Copy(Errand),
    /// Records up to here are on their way.
    Trying(Mark),
    /// Records up to here are in the store; so many, and so many bytes of rejected ones kept.
    Done(Mark, Counts, u64),
}

/// The journal of a copy.
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Where to go on, and what was counted until there.
    pub(super) done: Option<(Mark, Counts)>,
    /// How far records may be in the store already.
    pub(super) tried: Option<Mark>,
    /// How long the file of rejected records was.
    rejected: u64,
}

impl Journal {
    /// The journal at `path`: begun, or gone on with where there is one of the same errand.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where it is of another errand.
    pub fn open(path: &Path, errand: &Errand) -> Result<Journal> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(Error::from(e).in_place(path.display().to_string())),
        };
        // The last line may have been cut in the middle of writing it.
        let whole = text.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let mut lines = Vec::new();
        for line in text[..whole].split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            lines.push(Format::Json.decode::<Line>(line).map_err(|e| {
                let what = "not a journal of steelyard; remove it to copy from the beginning";
                Error::new(ErrorKind::Conflict, what)
                    .with_source(e)
                    .in_place(path.display().to_string())
            })?);
        }
        let mut journal = Journal {
            file: File::options().create(true).append(true).open(path)?,
            path: path.to_owned(),
            done: None,
            tried: None,
            rejected: 0,
        };
        let begun = !lines.is_empty();
        for line in lines {
            match line {
                Line::Copy(other) if other != *errand => {
                    let what = format!(
                        "the journal is of another copy (from {} to {}, {}); remove it to copy from the beginning",
                        other.source, other.target, other.options
                    );
                    let error = Error::new(ErrorKind::Conflict, what);
                    return Err(error.in_place(path.display().to_string()));
                }
                Line::Copy(_) => {}
                Line::Trying(mark) => journal.tried = Some(mark),
                Line::Done(mark, counts, rejected) => {
                    journal.done = Some((mark, counts));
                    journal.rejected = rejected;
                }
            }
        }
        journal.file.set_len(whole as u64)?;
        if !begun {
            journal.write(&Line::Copy(errand.clone()))?;
        }
        Ok(journal)
    }

    /// How many records were read until where it goes on; none where it begins.
    pub fn resumed(&self) -> Option<u64> {
        self.done.as_ref().map(|(_, counts)| counts.read)
    }

    /// How long the file of rejected records was when what is known to be done was done.
    pub fn rejected_bytes(&self) -> u64 {
        self.rejected
    }

    /// How many records were rejected until there.
    pub fn rejected_records(&self) -> u64 {
        self.done.as_ref().map_or(0, |(_, counts)| counts.rejected)
    }

    pub(super) fn trying(&mut self, mark: &Mark) -> Result<()> {
        self.write(&Line::Trying(mark.clone()))
    }

    pub(super) fn done(&mut self, mark: &Mark, counts: &Counts, rejected: u64) -> Result<()> {
        self.write(&Line::Done(mark.clone(), *counts, rejected))
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        let mut bytes = Vec::new();
        Format::Json.encode(line, &mut bytes)?;
        bytes.push(b'\n');
        let place = || self.path.display().to_string();
        self.file.write_all(&bytes).map_err(|e| Error::from(e).in_place(place()))
    }

    /// All is copied: the journal is of no more use.
    pub(super) fn finish(self) -> Result<()> {
        Ok(fs::remove_file(&self.path)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errand(source: &str) -> Errand {
        Errand { source: source.into(), target: "sqlite:b".into(), options: String::new() }
    }

    #[test]
    fn it_goes_on_where_the_last_whole_line_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let counts = Counts { read: 10, written: 10, ..Counts::default() };
        {
            let mut journal = Journal::open(&path, &errand("a")).unwrap();
            assert_eq!((&journal.done, &journal.tried), (&None, &None));
            journal.trying(&Mark::Offset(100)).unwrap();
            journal.done(&Mark::Offset(100), &counts, 7).unwrap();
            journal.trying(&Mark::Offset(200)).unwrap();
        }
        let mut text = fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"done\":[{\"off");
        fs::write(&path, text).unwrap();
        let journal = Journal::open(&path, &errand("a")).unwrap();
        assert_eq!(journal.done, Some((Mark::Offset(100), counts)));
        assert_eq!(
            (journal.tried.as_ref(), journal.rejected_bytes()),
            (Some(&Mark::Offset(200)), 7)
        );
        let error = Journal::open(&path, &errand("other")).err().unwrap();
        assert!(error.to_string().contains("of another copy"), "{error}");
        fs::write(&path, "poem\n").unwrap();
        assert!(Journal::open(&path, &errand("a")).is_err());
        journal.finish().unwrap();
        assert!(!path.exists());
    }
}
