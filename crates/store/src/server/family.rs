//! The processes of a server: those that carry its mark in their environment, and those that come from one that
//! does.

use std::{fs, path::Path};

/// The variable that marks the processes of a server; its value is the server's folder.
pub(super) const MARK: &str = "STEELYARD_SERVER";

/// The processes of this folder, but for those that have ended.
pub(super) fn marked(folder: &Path) -> Vec<u32> {
    family(folder).into_iter().map(|process| process.pid).collect()
}

/// A process; a number that was given again is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    /// Its number.
    pub pid: u32,
    started: u64,
}

impl Process {
    /// The process of this number, if there is one that has not ended.
    pub(super) fn look(pid: u32) -> Option<Process> {
        Process::with_parent(pid).map(|(process, _)| process)
    }

    fn with_parent(pid: u32) -> Option<(Process, u32)> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // "pid (name) state parent …"; a name may hold anything. The 22nd is when it was started.
        let mut words = stat.rsplit_once(") ")?.1.split(' ');
        let ended = matches!(words.next()?, "Z" | "X");
        let parent = words.next()?.parse().ok()?;
        let started = words.nth(17)?.parse().ok()?;
        (!ended).then_some((Process { pid, started }, parent))
    }
}

/// Whether all threads of a process are stopped, or it has ended.
pub(super) fn stands_still(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        matches!(state, None | Some('T' | 'Z' | 'X'))
    })
}

/// The processes that carry the mark of this folder, and those that come from them.
pub(super) fn family(folder: &Path) -> Vec<Process> {
    let mark = format!("{MARK}={}", folder.display());
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Some((process, parent)) = Process::with_parent(pid) else { continue };
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        match environ.split(|&b| b == 0).any(|variable| variable == mark.as_bytes()) {
            true => found.push(process),
            false => others.push((process, parent)),
        }
    }
    grown(&mut found, others);
    found
}

/// Adds the children of these processes, and theirs, from the others with their parents.
fn grown(found: &mut Vec<Process>, mut others: Vec<(Process, u32)>) {
    let mut i = 0;
    while let Some(process) = found.get(i) {
        let pid = process.pid;
        let children = others.extract_if(.., |(_, parent)| *parent == pid);
        let children: Vec<_> = children.map(|(process, _)| process).collect();
        found.extend(children);
        i += 1;
    }
}

/// These processes, as far as they are there, and all that come from them.
pub(super) fn with_descendants(pids: Vec<u32>) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<_> = numbers.filter_map(Process::with_parent).collect();
    let (found, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(process, _)| pids.contains(&process.pid));
    let mut found: Vec<Process> = found.into_iter().map(|(process, _)| process).collect();
    grown(&mut found, others);
    found.into_iter().map(|process| process.pid).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        process::Command,
        thread,
        time::{Duration, Instant},
    };

    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn marks_find_the_processes_of_a_folder_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep").arg("60").env(MARK, folder.path()).spawn().unwrap();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        // Its environment is there when the program is.
        let begin = Instant::now();
        while marked(folder.path()).is_empty() && begin.elapsed() < PATIENCE {
            thread::yield_now();
        }
        assert_eq!(marked(folder.path()), [child.id()]);
        for child in [&mut child, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn children_without_the_mark_belong_to_the_family() {
        let folder = tempfile::tempdir().unwrap();
        // The child's environment is empty; the shell waits for it.
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "env -i sleep 60; true"])
            .env(MARK, folder.path())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while marked(folder.path()).len() < 2 && begin.elapsed() < PATIENCE {
            thread::yield_now();
        }
        let all = family(folder.path());
        assert_eq!(all.len(), 2, "{all:?}");
        for process in &all {
            assert_eq!(Process::look(process.pid), Some(*process));
            kill(Pid::from_raw(process.pid as i32), Signal::SIGKILL).unwrap();
        }
        shell.wait().unwrap();
        // Whoever waits for the other is not us.
        while !marked(folder.path()).is_empty() && begin.elapsed() < PATIENCE {
            thread::yield_now();
        }
        assert!(marked(folder.path()).is_empty());
    }
}
