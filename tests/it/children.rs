//! The programs that tests run. They hear signals, also where the tests themselves were started with some of them
//! ignored (`nohup`, `&` in a script), and no test waits for one for ever: what lives longer than [`PATIENCE`] is killed,
//! and its test fails with the command line and with what the program said so far.
//!
//! [`Command`] and [`Child`] have the names and the methods of those of the standard library, which no other file of
//! these tests uses (`tidy.rs`). A thread looks after all of them, and after the tests: one that runs for longer than
//! [`TEST`] ends all of them, with its name and what it waits for.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{self, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Output, Stdio},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// How long a program may live: several times what the slowest takes on a busy machine.
static PATIENCE: LazyLock<Duration> = LazyLock::new(|| {
    let seconds = std::env::var("STEELYARD_TEST_PATIENCE").ok().and_then(|s| s.parse().ok());
    Duration::from_secs(seconds.unwrap_or(600))
});
/// How long a test may run. Longer than all of them together: a thread that a test has left behind has the test's name.
static TEST: LazyLock<Duration> = LazyLock::new(|| 8 * *PATIENCE);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// A program to be run, whose process hears all signals that a terminal or a script sends.
pub struct Command {
    command: process::Command,
    program: OsString,
    /// Standard input, output and error, as far as they are to be something other than usual.
    set: [bool; 3],
    patience: Duration,
}

impl Command {
    pub fn new(program: impl AsRef<OsStr>) -> Command {
        // What is ignored here would be ignored there: a process inherits that.
        let mut command = process::Command::new("/usr/bin/env");
        command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(&program);
        let program = program.as_ref().to_owned();
        Command { command, program, set: [false; 3], patience: *PATIENCE }
    }

    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(arg);
        self
    }

    pub fn args<S: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = S>) -> &mut Self {
        self.command.args(args);
        self
    }

    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(name, value);
        self
    }

    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        self.command.envs(variables);
        self
    }

    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.command.env_remove(name);
        self
    }

    pub fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.command.current_dir(folder);
        self
    }

    pub fn stdin(&mut self, to: impl Into<Stdio>) -> &mut Self {
        self.command.stdin(to);
        self.set[0] = true;
        self
    }

    pub fn stdout(&mut self, to: impl Into<Stdio>) -> &mut Self {
        self.command.stdout(to);
        self.set[1] = true;
        self
    }

    pub fn stderr(&mut self, to: impl Into<Stdio>) -> &mut Self {
        self.command.stderr(to);
        self.set[2] = true;
        self
    }

    pub fn uid(&mut self, user: u32) -> &mut Self {
        self.command.uid(user);
        self
    }

    pub fn gid(&mut self, group: u32) -> &mut Self {
        self.command.gid(group);
        self
    }

    /// The same with so much time.
    pub fn within(&mut self, patience: Duration) -> &mut Self {
        self.patience = patience;
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) where there is no such program.
    pub fn spawn(&mut self) -> io::Result<Child> {
        let name = Path::new(&self.program);
        let is_word = name.components().count() == 1;
        if is_word && !crate::programs::installed(&self.program.to_string_lossy()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut child = self.command.spawn()?;
        let what: Vec<_> = self.command.get_args().skip(1).map(OsStr::to_string_lossy).collect();
        let watched = Watched::new(child.id(), what.join(" "), self.patience);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Child { stdin, stdout, stderr, child, watched })
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn).
    #[track_caller]
    pub fn output(&mut self) -> io::Result<Output> {
        let [stdin, stdout, stderr] = self.set;
        if !stdin {
            self.stdin(Stdio::null());
        }
        if !stdout {
            self.stdout(Stdio::piped());
        }
        if !stderr {
            self.stderr(Stdio::piped());
        }
        self.spawn()?.wait_with_output()
    }

    /// The same; what it says goes where this process' goes.
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn).
    #[track_caller]
    pub fn status(&mut self) -> io::Result<ExitStatus> {
        self.spawn()?.wait()
    }
}

/// A program that runs.
#[derive(Debug)]
pub struct Child {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    child: process::Child,
    watched: Watched,
}

impl Child {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it.
    ///
    /// # Errors
    /// Of the system.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Its status, where it has ended.
    ///
    /// # Errors
    /// Of the system.
    #[track_caller]
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = self.child.try_wait()?;
        ended.inspect(|_| self.watched.in_time("")).map_or(Ok(None), |status| Ok(Some(status)))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Of the system.
    #[track_caller]
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        let status = self.child.wait()?;
        self.watched.in_time("");
        Ok(status)
    }

    /// Waits for its end, and for that of what it says.
    ///
    /// # Errors
    /// Of the system.
    #[track_caller]
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (ended, ends) = mpsc::channel();
        let stdout = self.stdout.take().map(|from| collected(from, ended.clone()));
        let stderr = self.stderr.take().map(|from| collected(from, ended.clone()));
        drop(ended);
        let text = |of: &Option<Said>| of.as_ref().map_or_else(Vec::new, |said| lock(said).clone());
        // A process that it has started may keep its pipes open.
        while ends.recv_timeout(self.watched.left()) != Err(mpsc::RecvTimeoutError::Disconnected) {
            if self.watched.left().is_zero() {
                kill_all(self.child.id());
                self.watched.late.store(true, Ordering::Relaxed);
                break;
            }
        }
        let status = self.child.wait()?;
        self.watched.in_time(&String::from_utf8_lossy(&text(&stderr)));
        Ok(Output { status, stdout: text(&stdout), stderr: text(&stderr) })
    }
}

/// What a program has said so far.
type Said = Arc<Mutex<Vec<u8>>>;

fn collected(mut from: impl Read + Send + 'static, ended: mpsc::Sender<()>) -> Said {
    let said = Said::default();
    let into = Arc::clone(&said);
    thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            lock(&into).extend_from_slice(&bytes[..n]);
        }
        drop(ended);
    });
    said
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process that is killed where it lives too long.
#[derive(Debug)]
struct Watched {
    number: u64,
    until: Instant,
    patience: Duration,
    what: String,
    late: Arc<AtomicBool>,
}

/// The same as the thread has it that looks after all.
struct Entry {
    pid: u32,
    /// When it was started, in the system's count: a number may be given again.
    started: Option<u64>,
    until: Instant,
    what: String,
    test: String,
    late: Arc<AtomicBool>,
}

/// All programs that run.
static ALL: LazyLock<Mutex<HashMap<u64, Entry>>> = LazyLock::new(|| {
    thread::Builder::new().name("watchdog".into()).spawn(watch).expect("a thread");
    Mutex::default()
});

impl Watched {
    fn new(pid: u32, what: String, patience: Duration) -> Watched {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (late, until) = (Arc::new(AtomicBool::new(false)), Instant::now() + patience);
        let test = thread::current().name().unwrap_or("a thread of a test").to_owned();
        let (started, what) = (started(&format!("/proc/{pid}/stat")), what);
        let entry =
            Entry { pid, started, until, what: what.clone(), test, late: Arc::clone(&late) };
        lock(&ALL).insert(number, entry);
        Watched { number, until, patience, what, late }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// It has ended: by itself, or the test fails.
    #[track_caller]
    fn in_time(&self, said: &str) {
        lock(&ALL).remove(&self.number);
        let late = self.late.load(Ordering::Relaxed);
        let (seconds, what) = (self.patience.as_secs_f64(), &self.what);
        assert!(!late, "no end within {seconds} s of: {what}\nit said so far: {said}");
    }
}

fn watch() {
    loop {
        thread::park_timeout(LOOK);
        lock(&ALL).retain(|_, entry| {
            let lives = started(&format!("/proc/{}/stat", entry.pid)) == entry.started;
            if lives && entry.until <= Instant::now() && !entry.late.swap(true, Ordering::Relaxed) {
                // Not the test's own output, which is shown only once it ends.
                eprintln!("{}: killed, as it has not ended: {}", entry.test, entry.what);
                kill_all(entry.pid);
            }
            lives
        });
        if let Some((thread, seconds)) = oldest_thread().filter(|(_, age)| age > &TEST.as_secs())
            && let Some(test) = test_of(&thread)
        {
            let of_it = |entry: &&Entry| entry.test == test;
            let all = lock(&ALL);
            let runs: Vec<_> = all.values().filter(of_it).map(|entry| &*entry.what).collect();
            let waits = fs::read_to_string(thread.join("wchan")).unwrap_or_default();
            // Not by a macro: what those print in a thread that a test has started belongs to that test, and is not shown.
            let what =
                format!("{test} has run for {seconds} s: waits in {waits:?}; programs: {runs:?}");
            let _ = writeln!(io::stderr(), "{what}");
            process::exit(101);
        }
    }
}

/// When a process or a thread was started, in hundredths of a second after the system was.
fn started(stat: &str) -> Option<u64> {
    let stat = fs::read_to_string(stat).ok()?;
    // What has ended and is not waited for yet lives no more.
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    let ended = matches!(words.next()?, "Z" | "X");
    words.nth(18)?.parse().ok().filter(|_| !ended)
}

/// The thread of this process with the name of a test that has run for longest, and for how many seconds.
fn oldest_thread() -> Option<(std::path::PathBuf, u64)> {
    let now = fs::read_to_string("/proc/uptime").ok()?;
    let now = now.split('.').next()?.parse::<u64>().ok()?;
    let threads = fs::read_dir("/proc/self/task").ok()?.flatten().map(|entry| entry.path());
    let old = threads.filter_map(|thread| {
        let name = fs::read_to_string(thread.join("comm")).ok()?;
        let begun = started(thread.join("stat").to_str()?)? / 100;
        name.contains("::").then_some((thread, now.saturating_sub(begun)))
    });
    old.max_by_key(|(_, age)| *age)
}

/// The test whose thread this is: the system knows the beginning of its name only.
fn test_of(thread: &Path) -> Option<String> {
    let name = fs::read_to_string(thread.join("comm")).ok()?;
    let list = process::Command::new(std::env::current_exe().ok()?).arg("--list").output().ok()?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let mut fits = tests.filter(|test| test.starts_with(name.trim_end()));
    let first = fits.next()?.to_owned();
    Some(if fits.next().is_some() { format!("{}…", name.trim_end()) } else { first })
}

/// Kills a process and all that come from it, which may have its pipes.
fn kill_all(process: u32) {
    for one in [vec![process], descendants(process)].concat() {
        let _ = kill(Pid::from_raw(one.cast_signed()), Signal::SIGKILL);
    }
}

/// All processes that come from one.
pub fn descendants(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().map(|child| child.parse().unwrap());
    children.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// As after `nohup`, or `&` in a script: this test again, in a process that ignores signals.
    #[test]
    fn a_program_hears_signals_that_the_tests_ignore() {
        const INNER: &str = "STEELYARD_TEST_IGNORES";
        if std::env::var_os(INNER).is_none() {
            let this = std::env::current_exe().unwrap();
            let test = "children::tests::a_program_hears_signals_that_the_tests_ignore";
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' INT TERM HUP; exec \"$0\" \"$1\" --exact --nocapture"]);
            let ran = shell.arg(this).arg(test).env(INNER, "1").output().unwrap();
            let said = String::from_utf8_lossy(&ran.stdout);
            // Not a skip: the other process has tried it.
            return assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        }
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            assert_ne!(ignored & 1 << (signal as u32 - 1), 0, "the shell has it ignored");
            let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
            // Until then it is the program that has signals heard.
            let name = format!("/proc/{}/comm", child.id());
            while fs::read_to_string(&name).unwrap() != "sleep\n" {
                thread::yield_now();
            }
            kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(signal as i32));
        }
    }

    #[test]
    fn what_lives_too_long_is_killed_and_told_with_what_it_said() {
        let short = Duration::from_millis(300);
        let failed = |test: fn(&mut Command)| {
            let run = move || {
                let mut shell = Command::new("sh");
                shell.args(["-c", "echo half a word >&2; sleep 1000 & wait"]).within(short);
                test(shell.stderr(Stdio::piped()).stdin(Stdio::null()));
            };
            let panic = thread::spawn(run).join().unwrap_err();
            panic.downcast_ref::<String>().cloned().unwrap()
        };
        let said = failed(|shell| drop(shell.output()));
        assert!(said.contains("no end within 0.3 s of: sh -c"), "{said}");
        assert!(said.contains("half a word"), "{said}");
        let said = failed(|shell| drop(shell.spawn().unwrap().wait()));
        assert!(said.contains("no end within 0.3 s of: sh -c"), "{said}");
    }

    #[test]
    fn a_program_that_is_not_there_is_not_found() {
        let error = Command::new("no-such-program-at-all").spawn().map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
