//! The command line as people meet it: the built program, what it prints, how it ends.

mod alike;
mod bombs;
mod comparing;
mod conditions;
mod copying;
mod datasets;
mod encodings;
mod errors;
mod honest;
mod interrupted;
mod keeping;
mod long;
mod mistakes;
mod moving;
mod numbers;
mod pages;
mod parts;
mod reading;
mod rejects;
mod resuming;
mod screen;
mod secrets;
mod serving;
mod stopped;
mod terminal;
mod zeros;

use std::{
    ffi::OsStr, io::Write, os::unix::process::ExitStatusExt, path::Path, process::Stdio,
    sync::LazyLock,
};

use tempfile::TempDir;

use crate::children::Command;

/// The built program.
const STEELYARD: &str = env!("CARGO_BIN_EXE_steelyard");

/// How a run of it ended.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    /// The exit status; none where a signal ended it.
    status: Option<i32>,
    /// The signal that ended it.
    signal: Option<i32>,
    out: Vec<u8>,
    err: String,
}

impl Ran {
    /// Sees that all went well, with nothing to be found.
    #[track_caller]
    fn well(self) -> Ran {
        assert_eq!(self.status, Some(0), "{}", self.err);
        self
    }

    #[track_caller]
    fn text(&self) -> &str {
        std::str::from_utf8(&self.out).expect("text")
    }
}

/// A folder to run it in, so that paths can be short and messages the same everywhere.
struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    /// With `a.mrc`, a generated catalogue.
    fn with_catalogue() -> Desk {
        let desk = Desk::new();
        desk.write("a.mrc", &CATALOGUE[..]);
        desk
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), bytes).unwrap();
    }

    #[track_caller]
    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The names of all files, in order.
    fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> =
            names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program, ready to run here.
    fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(STEELYARD);
        command.args(args).current_dir(self.path()).env_remove("NO_COLOR").stdin(Stdio::null());
        // The last results are not those of whoever runs the tests.
        command.env("STEELYARD_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
        command
    }

    /// Runs it; arguments are parted by blanks.
    #[track_caller]
    fn run(&self, args: &str) -> Ran {
        self.run_on(args, b"")
    }

    /// Runs it with this on its standard input.
    #[track_caller]
    fn run_on(&self, args: &str, input: &[u8]) -> Ran {
        let mut command = self.command(args.split_whitespace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let done = std::thread::scope(|scope| {
            // It may end without having read all of it.
            scope.spawn(move || drop(stdin.write_all(input)));
            child.wait_with_output().unwrap()
        });
        ran(done)
    }
}

fn ran(done: std::process::Output) -> Ran {
    let err = String::from_utf8(done.stderr).expect("messages are text");
    Ran { status: done.status.code(), signal: done.status.signal(), out: done.stdout, err }
}

/// 120 records with the oddities of real catalogues.
static CATALOGUE: LazyLock<Vec<u8>> =
    LazyLock::new(|| Desk::new().run("generate catalogue --count 120 --seed 7").well().out);

/// The records of an ISO 2709 file.
fn records(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|b| *b == 0x1d).collect()
}
