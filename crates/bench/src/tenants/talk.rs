//! A child program that says lines: our own program, as a gateway, as what holds SQLite's databases, or as what adds
//! tenants. It ends with its value.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    Error, Result,
    cleanup::{self, Due},
    stop::Stop,
};

/// How often somebody who waits for a line looks whether the run is to end.
const LOOK: Duration = Duration::from_millis(20);
/// How long a program may take to end in good order.
const GRACE: Duration = Duration::from_secs(5);

/// Which of its outputs has the lines; the other one is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Output,
    Errors,
}

/// The child.
pub(super) struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    _due: Due,
}

impl Talk {
    /// # Errors
    /// Where it cannot be started.
    pub(super) fn start(command: &mut Command, says: Says) -> Result<Talk> {
        let (out, err) = match says {
            Says::Output => (Stdio::piped(), Stdio::null()),
            Says::Errors => (Stdio::null(), Stdio::piped()),
        };
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::piped()).stdout(out).stderr(err).process_group(0).spawn();
        let mut child = child.map_err(|e| Error::from(e).in_place(program))?;
        let due = cleanup::kills(&child);
        let input = child.stdin.take();
        let pipe: Option<Box<dyn Read + Send>> = match says {
            Says::Output => child.stdout.take().map(|pipe| Box::new(pipe) as _),
            Says::Errors => child.stderr.take().map(|pipe| Box::new(pipe) as _),
        };
        let (told, lines) = mpsc::channel();
        thread::Builder::new().name("bench lines".into()).spawn(move || {
            // Until its end, whether anybody listens or not: a pipe that is full would hold it up.
            for line in BufReader::new(pipe.unwrap_or_else(nothing)).lines() {
                let Ok(line) = line else { break };
                let _ = told.send(line);
            }
        })?;
        Ok(Talk { child, input, lines, _due: due })
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Says a line to it.
    ///
    /// # Errors
    /// Where it has ended.
    pub(super) fn say(&mut self, line: &str) -> Result<()> {
        let ended = || Error::unavailable("a child of the bench ended before it was asked to");
        let input = self.input.as_mut().ok_or_else(ended)?;
        input.write_all(format!("{line}\n").as_bytes()).map_err(|e| ended().with_source(e))
    }

    /// The next line that it says; none where it has ended.
    ///
    /// # Errors
    /// Where the run is to end, or nothing comes in time.
    pub(super) fn next(&self, within: Duration, stop: &Stop) -> Result<Option<String>> {
        let begin = Instant::now();
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => stop.check()?,
            }
            if begin.elapsed() > within {
                let seconds = within.as_secs();
                let what = format!("a child of the bench said nothing within {seconds} s");
                return Err(Error::unavailable(what));
            }
        }
    }
}

fn nothing() -> Box<dyn Read + Send> {
    Box::new(std::io::empty())
}

impl Drop for Talk {
    /// In good order, if it does not take too long: a database is closed as its users close it.
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > GRACE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(30);

    #[test]
    fn lines_come_one_by_one_and_an_end_is_one() {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo a; read x; echo \"$x!\"; echo lost >&2"]);
        let stop = Stop::default();
        let mut talk = Talk::start(&mut shell, Says::Output).unwrap();
        assert_eq!(talk.next(SHORT, &stop).unwrap().as_deref(), Some("a"));
        let late = talk.next(Duration::from_millis(30), &stop).unwrap_err();
        assert!(late.to_string().contains("within"), "{late}");
        talk.say("b").unwrap();
        assert_eq!(talk.next(SHORT, &stop).unwrap().as_deref(), Some("b!"));
        assert_eq!(talk.next(SHORT, &stop).unwrap(), None);
        stop.set();
        let mut shell = Command::new("/bin/sh");
        let talk = Talk::start(shell.args(["-c", "sleep 600"]), Says::Errors).unwrap();
        assert!(talk.next(SHORT, &stop).is_err());
        assert!(Talk::start(&mut Command::new("/no/such/program"), Says::Errors).is_err());
    }
}
