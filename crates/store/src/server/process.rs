//! Processes of a server: started, watched, frozen, stopped, and all they left removed.
//!
//! However this process ends (in good order, in a panic, by Ctrl-C, by SIGKILL), a watchman
//! (`watchman.rs`) kills what is left and removes the folder. All processes of a server carry a
//! mark in their environment, or come from one that does (PostgreSQL writes over the environment of
//! its processes), and only those are ever signalled: a number that the system gave to somebody else
//! meanwhile is not.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    mem,
    os::{
        fd::AsRawFd,
        unix::{
            fs::{OpenOptionsExt, fchown},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError, TryLockError},
    thread,
    time::{Duration, Instant},
};

use nix::{
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    sys::signal::{SigSet, SigmaskHow, Signal, kill},
    unistd::Pid,
};

use super::{
    Cache, GRACE, Launch, PATIENCE, Plan, Program, Ready, Runner, Stop, Wish, data_folder,
    environment,
    family::{MARK, Process, family, marked, stands_still, with_descendants},
    group::Group,
    listener,
    private::PrivateFolder,
    ready::{self, Door},
    shared, sweep,
    watchman::watch,
};
use crate::{Error, Result, durability::Tier};

/// A running server, which is stopped and removed with its value.
pub struct Server {
    name: &'static str,
    url: String,
    tier: Option<Tier>,
    folder: PathBuf,
    /// The same, open: removed by way of this.
    own: PrivateFolder,
    /// Shows others that this process lives.
    _lock: File,
    data: PathBuf,
    launches: Vec<Launch>,
    runner: Option<Runner>,
    /// How the size of its cache is set, and the arguments of its first process without that.
    cache: (Option<Cache>, Vec<String>),
    children: Vec<Child>,
    watchman: Option<Child>,
    /// Files in memory that its processes had when they were killed.
    memory: Vec<PathBuf>,
    /// Removed last, when nothing is in it.
    group: Option<Group>,
}

/// Held while there is a folder of a server that no watchman knows.
static MAKING: Mutex<()> = Mutex::new(());

/// For a process that is about to end: waits until every folder of a server has its watchman, and lets no other be made.
pub fn no_more() {
    const TRIES: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 0..TRIES {
        match MAKING.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            // To the end of the process.
            Ok(making) => return mem::forget(making),
            Err(TryLockError::Poisoned(making)) => return mem::forget(making.into_inner()),
        }
    }
}

impl Server {
    pub(super) fn start(program: &Program, binary: PathBuf, wish: &Wish) -> Result<Server> {
        // Short: paths of sockets have 108 bytes at most.
        let parent = data_folder();
        sweep::once(&parent);
        let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let own = PrivateFolder::make(&parent, sweep::NAME)?;
        let lock = own.lock()?;
        let folder = own.path().to_owned();
        let group = folder.file_name().and_then(Group::new);
        let watchman = watch(&own, group.as_ref());
        drop(making);
        let mut server = Server {
            name: program.name,
            url: String::new(),
            tier: wish.tier,
            data: folder.clone(),
            folder,
            own,
            _lock: lock,
            launches: Vec::new(),
            runner: None,
            cache: (program.cache, Vec::new()),
            children: Vec::new(),
            watchman: Some(watchman?),
            memory: Vec::new(),
            group,
        };
        let mut plan = Plan {
            binary,
            folder: server.folder.clone(),
            password: uuid::Uuid::new_v4().simple().to_string(),
            runner: None,
            wish: wish.clone(),
            launches: Vec::new(),
            url: String::new(),
            data: server.folder.clone(),
        };
        (program.plan)(&mut plan)?;
        (server.launches, server.runner) = (plan.launches, plan.runner);
        (server.url, server.data) = (plan.url, plan.data);
        server.cache.1 = server.launches.first().map_or_else(Vec::new, |first| first.args.clone());
        server.launch()?;
        Ok(server)
    }

    /// Starts the processes one after another.
    fn launch(&mut self) -> Result<()> {
        for launch in &self.launches {
            let (door, ask, answer) = match &launch.ready {
                Ready::Ends => {
                    run(launch, &self.folder, self.runner)?;
                    continue;
                }
                Ready::Answers { port, ask, answer } => (Door::Port(*port), ask, answer),
                Ready::AnswersAt { socket, ask, answer } => (Door::Socket(socket), ask, answer),
            };
            let secrets = Secrets::write(launch, self.runner)?;
            let log = self.folder.join(format!("{}.log", self.children.len()));
            let child = self.begin(launch, &log);
            let mut child = child.map_err(|e| e.in_place(launch.binary.display().to_string()))?;
            let (pid, user) = (child.id(), self.runner.and_then(Runner::alone));
            let family = || [marked(&self.folder), with_descendants(vec![pid])].concat();
            let whose = |port| listener::whose(port, user, family);
            let ready =
                ready::wait_for(door, ask, answer, PATIENCE, whose, || match child.try_wait()? {
                    None => Ok(()),
                    Some(status) => Err(Error::unavailable(format!(
                        "it ended at once ({status}): {}",
                        end_of(&log)
                    ))),
                });
            self.children.push(child);
            ready?;
            // It has read them.
            drop(secrets);
        }
        Ok(())
    }

    /// Starts a process, in the control group where there is one.
    fn begin(&self, launch: &Launch, log: &Path) -> Result<Child> {
        let reached = Reached::new(launch, self.runner)?;
        let Some(group) = &self.group else {
            let alone = alone(&reached.path);
            return Ok(spawn(&mut command(alone, launch, &self.folder, self.runner, log)?)?);
        };
        let waiting = Group::waiting(&reached.path);
        let mut child = spawn(&mut command(waiting, launch, &self.folder, self.runner, log)?)?;
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

    /// Stops all its processes (SIGSTOP) until [`thaw`](Server::thaw), and waits until they have stopped: on a
    /// busy machine a signal reaches a process of many threads late.
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
        if !self.runs_alone() {
            self.memory.extend(all.iter().flat_map(|process| shared::files_of(process.pid)));
        }
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
    /// As [`Program::start`]; [`Conflict`](crate::ErrorKind::Conflict) where another program has taken
    /// the port meanwhile.
    pub fn restart(&mut self) -> Result<()> {
        if !self.children.is_empty() {
            self.halt(GRACE);
        }
        self.launch().map_err(|e| e.in_place(self.name))
    }

    /// Shuts it down cleanly; its data stays, for [`restart`](Server::restart).
    pub fn rest(&mut self) {
        self.halt(GRACE);
    }

    /// The same, with so much time before it is killed: one that has written many files syncs them first.
    pub fn rest_within(&mut self, grace: Duration) {
        self.halt(grace);
    }

    /// The size of its cache in bytes from the next start on, its usual one where none is named; says
    /// how large it will be.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where it has no cache beside the data.
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

    /// Whether nobody else's processes run as its user.
    fn runs_alone(&self) -> bool {
        self.runner.and_then(Runner::alone).is_some()
    }

    /// Stops the processes in good order, the last first.
    fn halt(&mut self, grace: Duration) {
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
                if begin.elapsed() > grace {
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                thread::sleep(Duration::from_millis(2));
            }
        }
        self.kill();
    }

    /// Kills it and removes its folder; dropping it does the same.
    pub fn stop(self) {}
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its data go with it: there is nothing that it would have to write before.
        self.kill();
        match self.runner.and_then(Runner::alone) {
            Some(user) => shared::remove_all_of(user),
            None => shared::remove(&self.data, &self.memory),
        }
        let _ = self.own.remove();
        let group = self.group.take().map(|group| group.path().to_owned());
        let is_left = |path: &Path| path.symlink_metadata().is_ok();
        let left = is_left(&self.folder) || group.is_some_and(|group| is_left(&group));
        if let Some(mut watchman) = self.watchman.take() {
            if !left && marked(&self.folder).is_empty() {
                // It has nothing to do, and would look for it for long on a busy machine.
                let _ = watchman.kill();
            }
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

/// Files with passwords, which are there while a process begins.
struct Secrets<'l>(&'l Launch);

impl Secrets<'_> {
    fn write(launch: &Launch, runner: Option<Runner>) -> Result<Secrets<'_>> {
        // From the first of them on all are removed.
        let written = Secrets(launch);
        for (path, text) in &launch.secrets {
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
            if let Some(Runner { user, group }) = runner {
                fchown(&file, Some(user), Some(group))?;
            }
            file.write_all(text.as_bytes())?;
        }
        Ok(written)
    }
}

impl Drop for Secrets<'_> {
    fn drop(&mut self) {
        for (path, _) in &self.0.secrets {
            let _ = fs::remove_file(path);
        }
    }
}

/// Where a program is found by the user who runs it: where it is or, if that is a folder only root may enter, by way
/// of a file that is open here and stays open until it was started.
struct Reached {
    path: PathBuf,
    _open: Option<File>,
}

impl Reached {
    fn new(launch: &Launch, runner: Option<Runner>) -> Result<Reached> {
        if runner.is_none() || !launch.by_descriptor {
            return Ok(Reached { path: launch.binary.clone(), _open: None });
        }
        let open = File::open(&launch.binary)?;
        fcntl(&open, FcntlArg::F_SETFD(FdFlag::empty())).map_err(io::Error::from)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        Ok(Reached { path, _open: Some(open) })
    }
}

/// A program that reads nothing.
fn alone(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command.stdin(Stdio::null());
    command
}

/// The command of a launch, its output into a log.
fn command(
    mut command: Command,
    launch: &Launch,
    folder: &Path,
    runner: Option<Runner>,
    log: &Path,
) -> Result<Command> {
    let output = own_file(File::options().create(true).append(true).mode(0o600), log)?;
    environment::clear(&mut command, folder);
    command
        .args(&launch.args)
        .env(MARK, folder)
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdout(output.try_clone()?)
        .stderr(output)
        // Ctrl-C is for us, not for it.
        .process_group(0);
    if let Some(Runner { user, group }) = runner.filter(|_| !launch.as_root) {
        command.uid(user).gid(group);
    }
    Ok(command)
}

/// Opens a file in the server's folder. That is the server's: a link that it put there is not followed, and no pipe
/// waited for.
fn own_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = options.custom_flags(flags.bits()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!("{} is not a file", path.display()))),
    }
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

/// Runs a launch to its end.
pub(super) fn run(launch: &Launch, folder: &Path, runner: Option<Runner>) -> Result<()> {
    let log = folder.join("prepare.log");
    let place = || launch.binary.display().to_string();
    let _secrets = Secrets::write(launch, runner)?;
    let command = command(alone(&launch.binary), launch, folder, runner, &log);
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
    let mut text = Vec::new();
    if let Ok(mut file) = own_file(File::options().read(true), log) {
        let _ = file.read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.len() {
        0 => "it printed nothing".into(),
        n => lines[n.saturating_sub(5)..].join(" | "),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::ErrorKind;

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
    fn a_log_that_the_server_has_put_a_link_or_a_pipe_in_place_of_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("secret"), "hush").unwrap();
        std::os::unix::fs::symlink(at("secret"), at("link")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for name in ["link", "pipe"] {
            assert_eq!(end_of(&at(name)), "it printed nothing", "{name}");
            let launch = Launch::new("true", Ready::Ends);
            let made = command(Command::new("true"), &launch, folder.path(), None, &at(name));
            assert!(made.is_err(), "{name}");
        }
        assert_eq!(end_of(&at("secret")), "hush");
    }

    #[test]
    fn what_fails_says_what_it_printed() {
        let (launch, folder) = program("echo no such disk >&2; exit 3");
        let error = run(&launch, folder.path(), None).unwrap_err();
        assert!(error.to_string().contains("no such disk"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
