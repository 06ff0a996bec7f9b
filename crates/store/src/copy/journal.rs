//! How far a copy came, so that one that was ended early can be resumed.
//!
//! A file beside the source: its first line says what was being copied, and each further one how
//! far it had come. Before records are sent to a store, a line says how far they reach; after the
//! store has acknowledged them, another says that they are there. What was sent and not
//! acknowledged may be there or not, so it is sent again, in place of what is there: nothing is
//! lost, and nothing doubled.

use std::{
    fs::{self, File, TryLockError},
    io::{Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::Counts;
use crate::{Error, ErrorKind, Result, file::open_own, format::Format};

/// A place in a source: a byte offset of a file, or a key of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mark {
    /// Up to this byte, not included.
    Offset(u64),
    /// Up to this key, included.
    Key(String),
}

/// The source, target and options of a copy. A journal resumes only a copy with the same errand.
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
    /// Whether the target was empty when the copy began.
    Empty(bool),
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
    /// Whether the target was empty when the copy began; none where nothing was sent yet.
    pub(super) empty: Option<bool>,
    /// How long the file of rejected records was.
    rejected: u64,
}

impl Journal {
    /// The journal at `path`: begun, or gone on with where there is one of the same errand. Until
    /// it is dropped, nobody else can open it.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where it is of another errand, or a copy that is under way
    /// has it; [`Denied`](ErrorKind::Denied) where it is no file of this user.
    pub fn open(path: &Path, errand: &Errand) -> Result<Journal> {
        let in_place = |e: Error| e.in_place(path.display().to_string());
        let mut file = locked(path).map_err(in_place)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|e| in_place(e.into()))?;
        // The last line may have been cut in the middle of writing it.
        let whole = text.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let read = text[..whole].split(|&b| b == b'\n').enumerate();
        let mut lines = Vec::new();
        for (i, line) in read.filter(|(_, line)| !line.is_empty()) {
            let line = Format::Json.decode::<Line>(line).ok();
            // The first line says whose journal it is, and no other one does.
            let line = line.filter(|line| lines.is_empty() == matches!(line, Line::Copy(_)));
            lines.push(line.ok_or_else(|| in_place(damaged(i + 1)))?);
        }
        let mut journal = Journal {
            file,
            path: path.to_owned(),
            done: None,
            tried: None,
            empty: None,
            rejected: 0,
        };
        let begun = !lines.is_empty();
        for line in lines {
            match line {
                Line::Copy(other) if other != *errand => {
                    let what = format!(
                        "the journal belongs to another copy, from {} to {}{}{}; remove it to \
                         copy from the beginning",
                        other.source,
                        other.target,
                        if other.options.is_empty() { "" } else { ", with " },
                        other.options
                    );
                    let error = Error::new(ErrorKind::Conflict, what);
                    return Err(error.in_place(path.display().to_string()));
                }
                Line::Copy(_) => {}
                Line::Empty(empty) => journal.empty = Some(empty),
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

    /// The counts up to the point where the copy resumes; none where it begins.
    pub fn resumed(&self) -> Option<Counts> {
        self.done.as_ref().map(|(_, counts)| *counts)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file of rejected records when the last batch was acknowledged.
    pub fn rejected_bytes(&self) -> u64 {
        self.rejected
    }

    /// How many records had been rejected by then.
    pub fn rejected_records(&self) -> u64 {
        self.done.as_ref().map_or(0, |(_, counts)| counts.rejected)
    }

    pub(super) fn was_empty(&mut self, empty: bool) -> Result<()> {
        self.empty = Some(empty);
        self.write(&Line::Empty(empty))
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

    /// All is copied: the journal is of no more use. It is locked until its name is gone.
    pub(super) fn finish(self) -> Result<()> {
        Ok(fs::remove_file(&self.path)?)
    }
}

/// The error of a line that is none of a journal, counted from 1.
fn damaged(line: usize) -> Error {
    let what = format!(
        "line {line} is damaged, or from another version of steelyard; remove the file to copy \
         from the beginning"
    );
    Error::new(ErrorKind::Conflict, what)
}

/// The file at `path`, which nobody else has open as a journal.
fn locked(path: &Path) -> Result<File> {
    const ADVICE: &str = "remove it, or name another journal with --journal";
    const TRIES: usize = 100;
    // A program that this process is just starting (a server) holds a copy of the lock until it runs.
    const GRACE: Duration = Duration::from_millis(200);
    let begin = Instant::now();
    for _ in 0..TRIES {
        let file = open_own(path, 0o600, "the journal", ADVICE)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begin.elapsed() < GRACE => {
                thread::sleep(GRACE / 20);
                continue;
            }
            Err(TryLockError::WouldBlock) => {
                let hint = "wait until it ends, or name another journal with --journal";
                let what = "another copy is using this journal";
                return Err(Error::new(ErrorKind::Conflict, what).with_hint(hint));
            }
            // A file system without locks has none to offer.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        // Whoever had it may have removed it meanwhile: then it is a file without a name.
        let (ours, there) = (file.metadata()?, fs::symlink_metadata(path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(file);
        }
    }
    Err(Error::new(ErrorKind::Conflict, "other copies keep removing this journal"))
}

#[cfg(test)]
mod tests {
    use nix::unistd::geteuid;

    use super::*;

    fn errand(source: &str) -> Errand {
        Errand { source: source.into(), target: "sqlite:b".into(), options: String::new() }
    }

    #[test]
    fn what_somebody_else_put_there_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        std::os::unix::fs::symlink(at("victim"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let mut planted = vec!["link", "dangling", "pipe", "socket"];
        if geteuid().is_root() {
            fs::write(at("others"), "").unwrap();
            std::os::unix::fs::chown(at("others"), Some(65_533), None).unwrap();
            planted.push("others");
        }
        for name in planted {
            let error = Journal::open(&at(name), &errand("a")).err().expect(name);
            assert_eq!(error.kind(), ErrorKind::Denied, "{name}: {error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "precious");
        assert!(!at("nowhere").exists());
        drop(Journal::open(&at("own"), &errand("a")).unwrap());
        assert_eq!(fs::metadata(at("own")).unwrap().mode() & 0o777, 0o600);
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
            journal.was_empty(true).unwrap();
            journal.done(&Mark::Offset(100), &counts, 7).unwrap();
            journal.trying(&Mark::Offset(200)).unwrap();
        }
        let mut text = fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"done\":[{\"off");
        fs::write(&path, text).unwrap();
        let journal = Journal::open(&path, &errand("a")).unwrap();
        assert_eq!(
            (&journal.done, journal.empty),
            (&Some((Mark::Offset(100), counts)), Some(true))
        );
        assert_eq!(
            (journal.tried.as_ref(), journal.rejected_bytes()),
            (Some(&Mark::Offset(200)), 7)
        );
        for other in ["a", "other"] {
            let error = Journal::open(&path, &errand(other)).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            assert!(error.to_string().contains("another copy is using this journal"), "{error}");
        }
        drop(journal);
        let error = Journal::open(&path, &errand("other")).err().unwrap();
        assert!(error.to_string().contains("belongs to another copy"), "{error}");
        let journal = Journal::open(&path, &errand("a")).unwrap();
        journal.finish().unwrap();
        assert!(!path.exists());
        fs::write(&path, "poem\n").unwrap();
        assert!(Journal::open(&path, &errand("a")).is_err());
    }
}
