//! Processes of a server: started, watched, frozen, stopped, and all they left removed.
//!
//! Each server has a watchman: a shell that waits on a pipe whose other end this process holds.
//! However this process ends (in good order, in a panic, by Ctrl-C, by SIGKILL), the pipe closes,
//! and the watchman kills what is left and removes the folder. All processes of a server carry a
//! mark in their environment, or come from one that does (PostgreSQL writes over the environment of
//! its processes), and only those are ever signalled: a number that the system gave to somebody else
//! meanwhile is not.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{SigSet, SigmaskHow, Signal, kill},
    unistd::{Pid, User},
};

use super::{
    Cache, GRACE, Launch, PATIENCE, Plan, Program, Ready, Stop, Wish, data_folder,
    group::Group,
    ready::{self, Door},
};
use crate::{Error, ErrorKind, Result, durability::Tier};

/// The variable that marks the processes of a server; its value is the server's folder.
const MARK: &str = "STEELYARD_SERVER";

/// A running server, which is stopped and removed with its value.
pub struct Server {
    name: &'static str,
    url: String,
    tier: Option<Tier>,
    folder: PathBuf,
    data: PathBuf,
    launches: Vec<Launch>,
    /// How the size of its cache is set, and the arguments of its first process without that.
    cache: (Option<Cache>, Vec<String>),
    children: Vec<Child>,
    watchman: Option<Child>,
    /// Removed last, when nothing is in it.
    group: Option<Group>,
}

impl Server {
    pub(super) fn start(program: &Program, binary: PathBuf, wish: &Wish) -> Result<Server> {
        // Short: paths of sockets have 108 bytes at most.
        let folder =
            tempfile::Builder::new().prefix("steelyard-").tempdir_in(data_folder())?.keep();
        let group = folder.file_name().and_then(Group::new);
        let watchman = watch(&folder, group.as_ref());
        let mut server = Server {
            name: program.name,
            url: String::new(),
            tier: wish.tier,
            data: folder.clone(),
            folder,
            launches: Vec::new(),
            cache: (program.cache, Vec::new()),
            children: Vec::new(),
            watchman: Some(watchman?),
            group,
        };
        let mut plan = Plan {
            binary,
            folder: server.folder.clone(),
            wish: wish.clone(),
            launches: Vec::new(),
            url: String::new(),
            data: server.folder.clone(),
        };
        (program.plan)(&mut plan)?;
        (server.launches, server.url, server.data) = (plan.launches, plan.url, plan.data);
        server.cache.1 = server.launches.first().map_or_else(Vec::new, |first| first.args.clone());
        server.launch()?;
        Ok(server)
    }

    /// Starts the processes one after another.
    fn launch(&mut self) -> Result<()> {
        for launch in &self.launches {
            let (door, ask, answer) = match &launch.ready {
                Ready::Ends => {
                    run(launch, &self.folder)?;
                    continue;
                }
                Ready::Answers { port, ask, answer } => (Door::Port(*port), ask, answer),
                Ready::AnswersAt { socket, ask, answer } => (Door::Socket(socket), ask, answer),
            };
            let log = self.folder.join(format!("{}.log", self.children.len()));
            let child = self.begin(launch, &log);
            let mut child = child.map_err(|e| e.in_place(launch.binary.display().to_string()))?;
            let ready =
                ready::wait_for(door, ask, answer, PATIENCE, || match child.try_wait()? {
                    None => Ok(()),
                    Some(status) => Err(Error::unavailable(format!(
                        "it ended at once ({status}): {}",
                        end_of(&log)
                    ))),
                });
            self.children.push(child);
            ready?;
        }
        Ok(())
    }

    /// Starts a process, in the control group where there is one.
    fn begin(&self, launch: &Launch, log: &Path) -> Result<Child> {
        let Some(group) = &self.group else {
            return Ok(spawn(&mut command(alone(launch), launch, &self.folder, log)?)?);
        };
        let waiting = Group::waiting(&launch.binary);
        let mut child = spawn(&mut command(waiting, launch, &self.folder, log)?)?;
        if let Err(e) = group.admit(&mut child) {
            // It was not let go on, and ends.
            let _ = child.wait();
            return Err(e.into());
        }
        Ok(child)
    }

    /// The kind of server.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Where a client finds it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The tier of durability it was asked for.
    pub fn tier(&self) -> Option<Tier> {
        self.tier
    }

    /// The folder of its data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The numbers of all its processes, also those that its processes started.
    pub fn processes(&self) -> Vec<u32> {
        marked(&self.folder)
    }

    /// The processor time of all its processes so far, those that have ended too, in user mode and in
    /// the kernel; none where no control group counts it.
    pub fn used(&self) -> Option<(Duration, Duration)> {
        self.group.as_ref()?.used()
    }

    /// Makes all its processes stand still (SIGSTOP) until [`thaw`](Server::thaw). They do when this
    /// returns: on a busy machine a signal comes to a process of many threads late.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        let begin = Instant::now();
        while !marked(&self.folder).into_iter().all(stands_still) && begin.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets its processes go on.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills all its processes (SIGKILL); its data stays, for [`restart`](Server::restart).
    pub fn kill(&mut self) {
        let all = family(&self.folder);
        for process in &all {
            let _ = kill(Pid::from_raw(process.pid as i32), Signal::SIGKILL);
        }
        for mut child in self.children.drain(..) {
            // Also one that has lost its mark: it is ours as long as it is not waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
        // Those that its processes started are not ours to wait for, but gone in a moment.
        let begin = Instant::now();
        let left = || {
            let there = |process: &Process| Process::look(process.pid).as_ref() == Some(process);
            all.iter().any(there) || !marked(&self.folder).is_empty()
        };
        while left() && begin.elapsed() < GRACE {
            self.signal(Signal::SIGKILL);
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Starts it again after [`kill`](Server::kill), with the same data on the same port.
    ///
    /// # Errors
    /// As [`Program::start`].
    pub fn restart(&mut self) -> Result<()> {
        if !self.children.is_empty() {
            self.halt();
        }
        self.launch().map_err(|e| e.in_place(self.name))
    }

    /// Stops it in good order; its data stays, for [`restart`](Server::restart).
    pub fn rest(&mut self) {
        self.halt();
    }

    /// The size of its cache in bytes from the next start on, its usual one where none is named; says
    /// how large it will be.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where it has no cache beside the data.
    pub fn limit_cache(&mut self, bytes: Option<u64>) -> Result<Option<u64>> {
        let (Some(cache), plain) = &self.cache else {
            let what = format!("{} has no cache beside its data that could be limited", self.name);
            return Err(Error::unsupported(what));
        };
        let given = bytes.map(|bytes| bytes.max(cache.least));
        if let Some(first) = self.launches.first_mut() {
            first.args.clone_from(plain);
            first.args.extend(given.map_or_else(Vec::new, cache.args));
        }
        Ok(given)
    }

    fn signal(&self, signal: Signal) {
        for pid in marked(&self.folder) {
            let _ = kill(Pid::from_raw(pid as i32), signal);
        }
    }

    /// Stops the processes in good order, the last first.
    fn halt(&mut self) {
        // One that stands still hears nothing.
        self.thaw();
        let stops: Vec<Stop> = self
            .launches
            .iter()
            .filter(|launch| !matches!(launch.ready, Ready::Ends))
            .map(|launch| launch.stop)
            .collect();
        let mut children: Vec<_> = self.children.drain(..).zip(stops).collect();
        while let Some((mut child, stop)) = children.pop() {
            let signal = match stop {
                Stop::Terminate => Signal::SIGTERM,
                Stop::Interrupt => Signal::SIGINT,
            };
            // Ours, and not yet waited for: its number is still its own.
            let _ = kill(Pid::from_raw(child.id() as i32), signal);
            let begin = Instant::now();
            while matches!(child.try_wait(), Ok(None)) {
                if begin.elapsed() > GRACE {
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                thread::sleep(Duration::from_millis(2));
            }
        }
        self.kill();
    }

    /// Stops it and removes its folder; dropping it does the same.
    pub fn stop(self) {}
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt();
        let _ = fs::remove_dir_all(&self.folder);
        if let Some(mut watchman) = self.watchman.take() {
            // Its pipe closes; it finds nothing left to do.
            drop(watchman.stdin.take());
            let _ = watchman.wait();
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({} at {})", self.name, self.url)
    }
}

/// Starts the shell that cleans up after us.
fn watch(folder: &Path, group: Option<&Group>) -> Result<Child> {
    const SCRIPT: &str = r#"
        trap '' INT TERM HUP
        read -r _
        for round in 1 2 3; do
            for environ in /proc/[0-9]*/environ; do
                pid=${environ#/proc/}; pid=${pid%/environ}
                [ "$pid" != "$$" ] && tr '\0' '\n' < "$environ" 2>/dev/null |
                    grep -qxF "$1=$2" &&
                    kill -KILL "$pid" $(cat /proc/"$pid"/task/*/children 2>/dev/null)
            done
            rm -rf -- "$2"
            [ -z "$3" ] || rmdir "$3"
            [ -e "$2" ] || [ -e "$3" ] || break
        done"#;
    let watchman = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "steelyard-watchman", MARK])
        .arg(folder)
        .args(group.map(Group::path))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    watchman.map_err(|e| Error::new(ErrorKind::Io, "no /bin/sh to watch a server").with_source(e))
}

/// A program that reads nothing.
fn alone(launch: &Launch) -> Command {
    let mut command = Command::new(&launch.binary);
    command.stdin(Stdio::null());
    command
}

/// The command of a launch, its output into a log.
fn command(mut command: Command, launch: &Launch, folder: &Path, log: &Path) -> Result<Command> {
    let output = File::options().create(true).append(true).open(log)?;
    command
        .args(&launch.args)
        .env(MARK, folder)
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdout(output.try_clone()?)
        .stderr(output)
        // Ctrl-C is for us, not for it.
        .process_group(0);
    if let (Some(user), true) = (launch.user, nix::unistd::geteuid().is_root()) {
        let user = user_of(user)?;
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    Ok(command)
}

/// Starts a program that hears every signal. What is blocked here (the command line waits for
/// signals on a thread of its own, and blocks them on all others) would be blocked there too, and a
/// server that does not see to that itself could not be told to stop.
fn spawn(command: &mut Command) -> io::Result<Child> {
    let blocked = SigSet::empty().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let child = command.spawn();
    blocked.thread_set_mask()?;
    child
}

/// A user of this machine.
pub(super) fn user_of(name: &str) -> Result<User> {
    match User::from_name(name) {
        Ok(Some(user)) => Ok(user),
        _ => Err(Error::new(ErrorKind::NotFound, format!("no user {name:?} on this machine"))),
    }
}

/// Runs a launch to its end.
pub(super) fn run(launch: &Launch, folder: &Path) -> Result<()> {
    let log = folder.join("prepare.log");
    let place = || launch.binary.display().to_string();
    let command = command(alone(launch), launch, folder, &log);
    let status = command?.status().map_err(|e| Error::from(e).in_place(place()))?;
    match status.success() {
        true => Ok(()),
        false => {
            let what = format!("it failed ({status}): {}", end_of(&log));
            Err(Error::unavailable(what).in_place(place()))
        }
    }
}

/// The last lines of a log.
fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.len() {
        0 => "it printed nothing".into(),
        n => lines[n.saturating_sub(5)..].join(" | "),
    }
}

/// The processes of this folder, but for those that have ended.
fn marked(folder: &Path) -> Vec<u32> {
    family(folder).into_iter().map(|process| process.pid).collect()
}

/// A process; a number that was given again is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: u32,
    started: u64,
}

impl Process {
    /// The process of this number, if there is one that has not ended.
    fn look(pid: u32) -> Option<Process> {
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
fn stands_still(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        matches!(state, None | Some('T' | 'Z' | 'X'))
    })
}

/// The processes that carry the mark of this folder, and those that come from them.
fn family(folder: &Path) -> Vec<Process> {
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
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn program(script: &'static str) -> (Launch, tempfile::TempDir) {
        let launch = Launch::new("/bin/sh", Ready::Ends).args(["-c", script]);
        (launch, tempfile::tempdir().unwrap())
    }

    #[test]
    fn a_program_hears_what_is_blocked_here() {
        let blocked = SigSet::from(Signal::SIGTERM);
        blocked.thread_block().unwrap();
        let mut child = spawn(Command::new("sleep").arg("60")).unwrap();
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::SIGTERM as i32));
        assert!(SigSet::thread_get_mask().unwrap().contains(Signal::SIGTERM), "as it was");
        blocked.thread_unblock().unwrap();
    }

    #[test]
    fn what_fails_says_what_it_printed() {
        let (launch, folder) = program("echo no such disk >&2; exit 3");
        let error = run(&launch, folder.path()).unwrap_err();
        assert!(error.to_string().contains("no such disk"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }

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
        assert!(marked(folder.path()).is_empty());
    }

    #[test]
    fn the_watchman_kills_what_is_left_and_removes_the_folder() {
        let folder = tempfile::Builder::new().prefix("steelyard-").tempdir().unwrap().keep();
        fs::write(folder.join("data"), "x").unwrap();
        let mut watchman = watch(&folder, None).unwrap();
        let mut child = Command::new("sleep").arg("60").env(MARK, &folder).spawn().unwrap();
        while marked(&folder).is_empty() {
            thread::yield_now();
        }
        drop(watchman.stdin.take());
        watchman.wait().unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!folder.exists());
    }
}
