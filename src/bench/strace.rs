//! System calls of other processes, seen from outside with strace, in passes that are not timed.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::Receiver,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{Error, Result};

/// How long strace may take to attach, and to print what was asked for.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// strace, attached.
pub struct Watch {
    child: Child,
    /// Its lines so far: the calls.
    lines: Receiver<String>,
}

impl Watch {
    /// Attaches to these processes and their threads, for the calls of these names, or all.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) where strace is not there, or may not.
    pub fn begin(processes: &[u32], calls: &str) -> Result<Watch> {
        let mut command = Command::new("strace");
        command.args(["-f", "-e", &format!("trace={calls}"), "-e", "signal=none"]);
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
        let watch = Watch { child, lines };
        let begin = Instant::now();
        let mut left = processes.len();
        while left > 0 {
            let patience = PATIENCE.saturating_sub(begin.elapsed());
            match watch.lines.recv_timeout(patience) {
                // "strace: Process 7 attached with 5 threads", or without.
                Ok(line) if line.contains("attached") => left -= 1,
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
    pub fn next(&mut self) -> Option<String> {
        self.lines.recv_timeout(PATIENCE).ok()
    }

    /// Detaches, and gives the lines that are left.
    ///
    /// # Errors
    /// Where it cannot be told to.
    pub fn end(mut self) -> Result<impl Iterator<Item = String>> {
        // Of the signals that make it detach the one that this program does not block: its children
        // inherit that.
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGQUIT)
            .map_err(std::io::Error::from)?;
        self.child.wait()?;
        Ok(std::iter::from_fn(move || self.lines.recv().ok()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The name of the call that a line is about: `[pid 7] fdatasync(3 <unfinished ...>`,
/// `fsync(4) = 0`; none where it is the end of one that was there before, or no call.
pub fn call(line: &str) -> Option<&str> {
    let call = match line.strip_prefix("[pid") {
        Some(rest) => rest.split_once("] ")?.1,
        None => line,
    };
    let (name, _) = call.split_once('(')?;
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(known)).then_some(name)
}
