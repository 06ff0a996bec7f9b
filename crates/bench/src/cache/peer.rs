//! The bench's side of an adapter: `Peer` runs tasks, and [`Process`] is an adapter in a child process.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use super::{
    pin,
    protocol::{self, Done, Hello, LONGEST, PROTOCOL, Task},
};
use crate::{
    Error, Result,
    cleanup::{self, Due},
    stop::Stop,
};

/// How long an adapter may take to say its first line.
const GREETING: Duration = Duration::from_secs(20);
/// How long it may take for a task beyond what is planned.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked whether the run is to end while an adapter works.
const LOOK: Duration = Duration::from_millis(50);
/// How long it may take to end with its input.
const GRACE: Duration = Duration::from_millis(500);

/// Somebody who does tasks.
pub(super) trait Peer {
    /// Does a task.
    ///
    /// # Errors
    /// Where no answer came, or none that makes sense. That the task failed stands in the answer.
    fn ask(&mut self, task: &Task) -> Result<Done>;

    /// Its process, where it has one of its own.
    fn process(&self) -> Option<u32> {
        None
    }
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    pub path: PathBuf,
    pub args: Vec<String>,
}

/// An adapter that runs.
pub(super) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<std::io::Result<String>>,
    /// What it has complained of.
    log: PathBuf,
    stop: Stop,
    /// Until it is waited for.
    due: Option<Due>,
}

impl Process {
    /// Starts one on a processor and hears what it is. `log` is a file for what it complains of. Where `stop` is set it
    /// is no longer waited for.
    pub(super) fn start(
        program: &Program,
        cpu: Option<usize>,
        log: &Path,
        stop: &Stop,
    ) -> Result<(Process, Hello, bool)> {
        let name = program.path.display().to_string();
        let place = |e: std::io::Error| Error::from(e).in_place(name.as_str());
        let complaints = File::create(log).map_err(place)?;
        let mut command = Command::new(&program.path);
        command.args(&program.args).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C is ours: the round is ended, and they with it.
        command.process_group(0);
        let (child, pinned) = pin::on(cpu, || command.stderr(complaints).spawn());
        let mut child = child.map_err(place)?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| Error::unavailable("it is mute"))?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                // Never more than the longest line is read into memory.
                let read = output.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line);
                let line = match read {
                    Ok(0) => break,
                    Ok(_) if line.last() != Some(&b'\n') => break,
                    Ok(_) => Ok(String::from_utf8_lossy(&line).into_owned()),
                    Err(e) => Err(e),
                };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let (log, stop) = (log.to_path_buf(), stop.clone());
        let due = Some(cleanup::kills(&child));
        let mut process = Process { child, input, lines, log, stop, due };
        let hello: Hello = protocol::read(&process.hear(GREETING)?)?;
        if let Some(error) = &hello.error {
            return Err(Error::unavailable(error.clone()));
        }
        if hello.cache_client != PROTOCOL {
            return Err(Error::unsupported(format!(
                "{name} speaks version {} of the adapters' protocol, and {PROTOCOL} is wanted",
                hello.cache_client
            )));
        }
        Ok((process, hello, pinned))
    }

    /// The next line.
    fn hear(&mut self, patience: Duration) -> Result<String> {
        let begin = Instant::now();
        loop {
            self.stop.check()?;
            let left = patience.saturating_sub(begin.elapsed());
            match self.lines.recv_timeout(left.min(LOOK)) {
                Ok(line) => return Ok(line?),
                Err(RecvTimeoutError::Timeout) if left > LOOK => {}
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = patience.as_secs();
                    let what = format!("the adapter has said nothing for {seconds} s");
                    return Err(Error::unavailable(what));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let said = std::fs::read_to_string(&self.log).unwrap_or_default();
                    let last = said.trim_end().lines().next_back().unwrap_or("it gave no reason");
                    return Err(Error::unavailable(format!("the adapter ended: {last}")));
                }
            }
        }
    }
}

impl Peer for Process {
    fn ask(&mut self, task: &Task) -> Result<Done> {
        let line = protocol::line(task)?;
        if let Some(input) = &mut self.input {
            // One that has ended says why where it is heard.
            let _ = input.write_all(line.as_bytes()).and_then(|()| input.flush());
        }
        let planned = if task.rate > 0.0 { task.operations as f64 / task.rate } else { 0.0 };
        let planned = Duration::from_secs_f64(planned.min(86_400.0));
        protocol::read(&self.hear(PATIENCE + 2 * planned)?)
    }

    fn process(&self) -> Option<u32> {
        Some(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends with its input; one that does not is ended.
        drop(self.input.take());
        while !self.stop.is_set() && self.lines.recv_timeout(GRACE).is_ok() {}
        self.due = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<(Process, Hello, bool)> {
        let folder = tempfile::tempdir().unwrap();
        let program = Program { path: "sh".into(), args: vec!["-c".into(), script.into()] };
        Process::start(&program, None, &folder.path().join("log"), &Stop::default())
    }

    #[test]
    fn an_adapter_is_asked_and_answers() {
        let script = "echo '{\"cache_client\":1,\"client\":\"x\"}'; \
                      while read task; do echo '{\"operations\":3,\"elapsed_ns\":1}'; done";
        let (mut process, hello, _) = shell(script).unwrap();
        assert_eq!(hello.client, "x");
        assert_eq!(process.ask(&Task::default()).unwrap().operations, 3);
        assert_eq!(process.ask(&Task::default()).unwrap().elapsed_ns, 1);
    }

    #[test]
    fn one_that_is_none_says_why() {
        let error = |script: &str| shell(script).err().unwrap().to_string();
        assert!(error("echo '{\"error\":\"no module x\"}'; cat").contains("no module x"));
        assert!(error("echo '{\"cache_client\":7}'; cat").contains("version 7"));
        assert!(error("echo hello").contains("hello"));
        let program = Program { path: "/no/such/program".into(), args: Vec::new() };
        let folder = tempfile::tempdir().unwrap();
        let started = Process::start(&program, None, &folder.path().join("log"), &Stop::default());
        assert!(started.err().unwrap().to_string().contains("/no/such/program"));
        let folder = tempfile::tempdir().unwrap();
        let program =
            Program { path: "sh".into(), args: vec!["-c".into(), "echo gone >&2".into()] };
        let ended = Process::start(&program, None, &folder.path().join("log"), &Stop::default());
        assert!(ended.err().unwrap().to_string().contains("gone"));
    }
}
