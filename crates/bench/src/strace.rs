//! System calls of other processes, seen from outside with strace, in passes that are not timed.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::Receiver,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::cleanup::{self, Due};
use crate::{Error, Result};

/// How long strace may take to attach, and to print what was asked for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// strace, attached.
pub(crate) struct Watch {
    child: Child,
    /// Its lines so far: the calls.
    lines: Receiver<String>,
    /// Until it is waited for.
    due: Option<Due>,
}

impl Watch {
    /// Attaches to these processes and their threads, for the calls of these names, or all.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) where strace is not there, or may not.
    pub(crate) fn begin(processes: &[u32], calls: &str) -> Result<Watch> {
        Watch::with(processes, calls, &[])
    }

    /// The same, with the file behind each descriptor and without what is written: `write(3</a/b>, ""...`.
    ///
    /// # Errors
    /// As [`begin`](Watch::begin).
    pub(crate) fn of_files(processes: &[u32], calls: &str) -> Result<Watch> {
        Watch::with(processes, calls, &["-y", "-s", "0"])
    }

    fn with(processes: &[u32], calls: &str, options: &[&str]) -> Result<Watch> {
        let mut command = Command::new("strace");
        command.args(["-f", "-e", &format!("trace={calls}"), "-e", "signal=none"]).args(options);
        for process in processes {
            command.args(["-p", &process.to_string()]);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Error::unavailable("strace cannot be started").with_source(e))?;
        let stderr = child.stderr.take().ok_or_else(|| Error::unavailable("strace is mute"))?;
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let due = Some(cleanup::kills(&child));
        let watch = Watch { child, lines, due };
        let begin = Instant::now();
        let mut left = processes.len();
        while left > 0 {
            let patience = PATIENCE.saturating_sub(begin.elapsed());
            match watch.lines.recv_timeout(patience) {
                // "strace: Process 7 attached with 5 threads", or without.
                Ok(line) if line.contains("attached") => left -= 1,
                // One that has ended since it was listed has nothing left to do.
                Ok(line) if line.contains("No such process") => left -= 1,
                Ok(line) if line.starts_with("strace:") => {
                    let what =
                        format!("strace may not look on: {}", line.trim_start_matches("strace: "));
                    return Err(Error::unavailable(what));
                }
                Ok(_) => {}
                Err(_) => return Err(Error::unavailable("strace did not attach")),
            }
        }
        Ok(watch)
    }

    /// Its next line, if it comes in time.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.lines.recv_timeout(PATIENCE).ok()
    }

    /// Its next line, if it comes within this time.
    pub(crate) fn next_within(&mut self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    /// Detaches, and gives the lines that are left.
    ///
    /// # Errors
    /// Where it cannot be told to.
    pub(crate) fn end(mut self) -> Result<impl Iterator<Item = String>> {
        // Of the signals that make it detach the one that this program does not block: its children
        // inherit that.
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGQUIT)
            .map_err(std::io::Error::from)?;
        self.due = None;
        self.child.wait()?;
        Ok(std::iter::from_fn(move || self.lines.recv().ok()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.due = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The name of the call that a line is about: `[pid 7] fdatasync(3 <unfinished ...>`,
/// `fsync(4) = 0`; none where it is the end of one that was there before, or no call.
pub(crate) fn call(line: &str) -> Option<&str> {
    let call = match line.strip_prefix("[pid") {
        Some(rest) => rest.split_once("] ")?.1,
        None => line,
    };
    let (name, _) = call.split_once('(')?;
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(known)).then_some(name)
}

/// A system call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The thread that made it; `None` where only one is watched.
    pub thread: Option<u32>,
    /// Its name.
    pub name: String,
    /// Its arguments, as far as they were known when it began.
    pub arguments: String,
    /// What it returned: `0`, `-1 EIO (Input/output error)`, `7</a/b>`.
    pub returned: String,
}

impl Call {
    /// Whether it did what it is for.
    pub(crate) fn succeeded(&self) -> bool {
        !self.returned.starts_with("-1 ") && !self.returned.starts_with('?')
    }

    /// The descriptor that is its first argument, and the file behind it: `3</a/b>`.
    pub(crate) fn file(&self) -> Option<(u32, &str)> {
        file(&self.arguments)
    }

    /// All descriptors among its arguments, and their files.
    pub(crate) fn files(&self) -> impl Iterator<Item = (u32, &str)> {
        self.arguments.split(", ").filter_map(file)
    }

    /// Whether the file behind its first argument has no name any more: `3</a/b>(deleted)`. One that
    /// has none yet (`O_TMPFILE`) is called by its number, `3</a/#7>(deleted)`.
    pub(crate) fn is_deleted(&self) -> bool {
        // The brackets of the call are off, and may have taken those of this along.
        let after = self.arguments.split_once('>').map_or("", |(_, after)| after);
        let Some((_, path)) = self.file() else { return false };
        let name = path.rsplit('/').next().unwrap_or_default();
        (after.starts_with("(deleted") || path.ends_with(" (deleted)")) && !name.starts_with('#')
    }
}

/// A descriptor and its file: `3</a/b>`.
pub(crate) fn file(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = text.split_once('<')?;
    Some((number.parse().ok()?, rest.split_once('>')?.0))
}

/// Makes calls of lines: strace breaks one in two where another thread comes between.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    begun: HashMap<Option<u32>, Call>,
}

impl Calls {
    /// The call that ends with this line, if one does.
    pub(crate) fn ended(&mut self, line: &str) -> Option<Call> {
        let (thread, text) = match line.strip_prefix("[pid") {
            Some(rest) => {
                let (number, text) = rest.split_once("] ")?;
                (number.trim().parse().ok(), text)
            }
            None => (None, line),
        };
        if let Some(rest) = text.strip_prefix("<... ") {
            let call = self.begun.remove(&thread)?;
            let returned = rest.rsplit_once(" = ")?.1.trim().to_owned();
            return Some(Call { returned, ..call });
        }
        let name = call(text)?.to_owned();
        let arguments = &text[name.len() + 1..];
        if let Some(arguments) = arguments.strip_suffix(" <unfinished ...>") {
            let (arguments, returned) = (arguments.to_owned(), String::new());
            self.begun.insert(thread, Call { thread, name, arguments, returned });
            return None;
        }
        let (arguments, returned) = arguments.rsplit_once(" = ")?;
        let arguments = arguments.trim_end().trim_end_matches(')').to_owned();
        Some(Call { thread, name, arguments, returned: returned.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_calls_are_joined() {
        let lines = [
            "strace: Process 7 attached with 5 threads",
            "[pid     9] fdatasync(3</a/b> <unfinished ...>",
            "[pid    10] pwrite64(4</a = (c), d>, \"\"..., 8192, 0) = 8192",
            "[pid     9] <... fdatasync resumed>)  = 0",
            "[pid     8] <... futex resumed>)  = 0",
            "[pid    10] fsync(5</a/d> <unfinished ...>",
            "[pid    10] <... fsync resumed>)  = -1 EIO (Input/output error)",
            "fsync(4<socket:[8]>)                  = -1 EINVAL (Invalid argument)",
            "msync(0x7f00, 4096, MS_SYNC)          = 0",
            "[pid 11] fsync(5 <unfinished ...>) = ?",
            "strace: Process 7 detached",
        ];
        let mut calls = Calls::default();
        let found: Vec<Call> = lines.iter().filter_map(|line| calls.ended(line)).collect();
        let told: Vec<_> =
            found.iter().map(|c| (c.thread, c.name.as_str(), c.file(), c.succeeded())).collect();
        assert_eq!(
            told,
            [
                (Some(10), "pwrite64", Some((4, "/a = (c), d")), true),
                (Some(9), "fdatasync", Some((3, "/a/b")), true),
                (Some(10), "fsync", Some((5, "/a/d")), false),
                (None, "fsync", Some((4, "socket:[8]")), false),
                (None, "msync", None, true),
                (Some(11), "fsync", None, false),
            ]
        );
        assert_eq!(file("9</srv/log>"), Some((9, "/srv/log")));
        let files = "copy_file_range(3</a>(deleted), NULL, 4</b>, NULL, 10, 0) = 10";
        let copied = calls.ended(files).unwrap();
        assert_eq!(copied.files().collect::<Vec<_>>(), [(3, "/a"), (4, "/b")]);
        assert!(copied.is_deleted() && !found[0].is_deleted());
        let unnamed = calls.ended("fsync(3</a/#7>(deleted)) = 0").unwrap();
        assert!(!unnamed.is_deleted());
    }
}
