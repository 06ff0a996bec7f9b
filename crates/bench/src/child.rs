//! Child programs that run to completion, or until the run is stopped.

use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{cleanup, stop::interrupted};
use crate::Result;

/// How often a program is looked at, and whether it is to end.
const LOOK: Duration = Duration::from_millis(10);

/// Runs a program to its end and returns what it printed on its standard error. Where `stop` holds before that, it and
/// what it has started are sent these signals. It gets no Ctrl-C of its own.
///
/// # Errors
/// [`Unavailable`](crate::ErrorKind::Unavailable) where the run is to end; where it cannot be started.
pub(super) fn output(
    command: &mut Command,
    signals: &'static [Signal],
    stop: &dyn Fn() -> bool,
) -> Result<Output> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let group = Pid::from_raw(-(child.id() as i32));
    let end = move || {
        for signal in signals {
            let _ = kill(group, *signal);
        }
    };
    let due = cleanup::due(end);
    let mut stderr = child.stderr.take();
    let said = thread::spawn(move || {
        let mut said = Vec::new();
        let read = stderr.as_mut().map(|stderr| stderr.read_to_end(&mut said));
        read.unwrap_or(Ok(0)).map(|_| said)
    });
    let mut stopped = false;
    while !has_ended(&child)? {
        if stop() && !stopped {
            stopped = true;
            end();
        }
        thread::sleep(LOOK);
    }
    // Its number is its own until it is waited for.
    drop(due);
    let status = child.wait()?;
    if stopped {
        return Err(interrupted());
    }
    let said = said.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok(Output { status, stdout: Vec::new(), stderr: said })
}

/// Whether a child has ended; it is still to be waited for.
fn has_ended(child: &Child) -> io::Result<bool> {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    Ok(waitid(Id::Pid(Pid::from_raw(child.id() as i32)), flags)? != WaitStatus::StillAlive)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn shell(script: &str, stop: &dyn Fn() -> bool) -> Result<Output> {
        output(Command::new("/bin/sh").args(["-c", script]), &[Signal::SIGKILL], stop)
    }

    #[test]
    fn a_program_is_run_to_its_end_or_ended() {
        let done = shell("echo a word >&2; exit 3", &|| false).unwrap();
        assert_eq!((done.status.code(), &*done.stderr), (Some(3), &b"a word\n"[..]));
        let begin = Instant::now();
        let error = shell("exec sleep 600", &|| true).unwrap_err();
        assert!(error.to_string().contains("interrupted"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(60));
        assert!(output(&mut Command::new("/no/such/program"), &[], &|| false).is_err());
    }
}
