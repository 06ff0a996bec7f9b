//! Private, throw-away servers: found on this machine, started on a free loopback port in a folder
//! of their own, stopped and removed.
//!
//! A [`Program`] is one kind of server; [`PROGRAMS`] is the table of what there is. [`Program::start`] gives
//! a [`Server`], which ends with its value, also in a panic, and also when this process is killed
//! (`process.rs` says how). It touches no process it did not start.
//!
//! This room knows no store and no client: it gives a URL.
//!
//! To add a server: one file with a [`Program`], and a line in [`PROGRAMS`].

mod couchdb;
mod environment;
mod family;
mod ferretdb;
mod find;
mod folder;
mod group;
mod listener;
mod mariadb;
mod memcached;
mod mongodb;
mod postgres;
mod private;
mod process;
mod ready;
mod redis;
mod runner;
mod s3;
mod shared;
mod sweep;
mod template;
mod tyrant;
mod watchman;

use std::{
    borrow::Cow,
    fs,
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

pub use folder::{data_folder, elsewhere};
pub use listener::{Address, listeners};
pub use private::PrivateFolder;
pub use process::{Server, no_more};
pub use runner::Runner;

use crate::{Error, ErrorKind, Result, durability::Tier};

/// A kind of server.
pub struct Program {
    /// The one word it goes by.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What must be found to start it: names of programs, the first that is there is taken.
    pub binaries: &'static [&'static str],
    /// The arguments that make it print its version.
    pub version: &'static [&'static str],
    /// How to install it, for people.
    pub install: &'static str,
    /// The tiers of durability it can be started with, the usual one first.
    pub tiers: &'static [Tier],
    /// The settings of its own that it can be started with.
    pub settings: Settings,
    /// Whether it can be talked to by a unix socket.
    pub sockets: bool,
    /// How the size of its cache is set, where it has one beside the data.
    pub cache: Option<Cache>,
    /// Says which processes to start.
    pub plan: fn(&mut Plan) -> Result<()>,
}

/// Which settings of its own a server can be started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    /// These.
    Known(&'static [&'static str]),
    /// Any: the server itself refuses what it does not know.
    Any,
}

/// How the size of a server's cache is set: by arguments to its first process.
#[derive(Clone, Copy)]
pub struct Cache {
    /// No less than this, in bytes.
    pub least: u64,
    /// The arguments for so many bytes, which go before others of the same name.
    pub args: fn(u64) -> Vec<String>,
}

/// Every kind of server there is.
pub static PROGRAMS: &[Program] = &[
    mariadb::PROGRAM,
    postgres::PROGRAM,
    redis::PROGRAM,
    memcached::PROGRAM,
    mongodb::PROGRAM,
    ferretdb::PROGRAM,
    couchdb::PROGRAM,
    s3::PROGRAM,
    tyrant::PROGRAM,
];

/// Options for starting a server.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// The durability of acknowledged writes; the server's usual one where none is named.
    pub tier: Option<Tier>,
    /// Megabytes of memory for its caches; a small amount where none is named.
    pub memory: Option<u64>,
    /// The URL is to be one by a unix socket, not by a port of the loopback address.
    pub socket: bool,
    /// Settings of the server's own, by name: `engine=myisam`.
    pub settings: Vec<(String, String)>,
}

/// How to start a server, filled in by its [`Program`]: the processes to start, one after another, and the URL.
pub struct Plan {
    /// The program that was found.
    pub binary: PathBuf,
    /// The folder for all that is the server's, empty; nobody else may enter it.
    pub folder: PathBuf,
    /// A password of this server's own, for servers that ask for one: 32 digits of hexadecimal.
    pub password: String,
    /// Who runs it, where that is somebody else than this process's user.
    pub runner: Option<Runner>,
    /// What is asked.
    pub wish: Wish,
    /// What to start, in order; each must be ready before the next is started.
    pub launches: Vec<Launch>,
    /// Where a client finds it.
    pub url: String,
    /// The folder whose size is that of the data.
    pub data: PathBuf,
}

impl Plan {
    /// The tier asked for, or the usual one.
    pub fn tier(&self, usual: Tier) -> Tier {
        self.wish.tier.unwrap_or(usual)
    }

    /// A setting of the server's own.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.wish.settings.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Where this process is root's, has a user of its own run the server, and gives it the server's folder; in a
    /// container without numbers for such, the first of these users that there is. Root runs it where there is
    /// none of them either, and where the program lies in a folder that others may not enter.
    ///
    /// # Errors
    /// Where the folder cannot be given away.
    pub fn leave_root(&mut self, users: &[&str]) -> Result<()> {
        match self.binary.parent().is_some_and(runner::open_to_all) {
            true => self.leave_root_by_descriptor(users),
            false => Ok(()),
        }
    }

    /// The same, wherever the program lies: what is a single file can be started
    /// [by descriptor](Launch::by_descriptor).
    ///
    /// # Errors
    /// Where the folder cannot be given away.
    pub fn leave_root_by_descriptor(&mut self, users: &[&str]) -> Result<()> {
        self.runner = Runner::own().or_else(|| Runner::first(users));
        self.give(&self.folder)
    }

    /// Makes a file or folder that of who runs the server.
    fn give(&self, path: &Path) -> Result<()> {
        Ok(self.runner.map_or(Ok(()), |runner| runner.give(path))?)
    }

    /// Makes a folder inside the server's, which only the server may enter.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn make_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        self.give(&folder)?;
        Ok(folder)
    }

    /// Writes a file inside the server's folder, which only the server may read.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        self.give(&path)?;
        Ok(path)
    }

    /// Runs a program to its end: what prepares the data folder.
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable) with what it printed, where it fails.
    pub fn run(&self, launch: &Launch) -> Result<()> {
        process::run(launch, &self.folder, self.runner)
    }
}

/// A process of a server.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub binary: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment, beyond ours.
    pub env: Vec<(String, String)>,
    /// Files with passwords, which are there until it is ready.
    pub secrets: Vec<(PathBuf, String)>,
    /// Started as root: it gives up root's rights by itself.
    pub as_root: bool,
    /// The program is a single file, which is opened by us and started from there: its user need not reach it.
    pub by_descriptor: bool,
    /// How it shows that it is ready.
    pub ready: Ready,
    /// The signal that makes it stop in good order.
    pub stop: Stop,
}

impl Launch {
    /// A process that stops on SIGTERM.
    pub fn new(binary: impl Into<PathBuf>, ready: Ready) -> Launch {
        Launch {
            binary: binary.into(),
            args: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            as_root: false,
            by_descriptor: false,
            ready,
            stop: Stop::Terminate,
        }
    }

    /// The same with a file that it reads while it begins, which only its user may read.
    pub fn secret(mut self, path: &Path, text: impl Into<String>) -> Launch {
        self.secrets.push((path.to_owned(), text.into()));
        self
    }

    /// The same, which a user can run who does not reach the program.
    pub fn by_descriptor(self) -> Launch {
        Launch { by_descriptor: true, ..self }
    }

    /// The same with one more argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Launch {
        self.args.push(arg.into());
        self
    }

    /// The same with more arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Launch {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }
}

/// How a process shows that it is ready.
#[derive(Debug, Clone)]
pub enum Ready {
    /// It ends by itself, in good order.
    Ends,
    /// It answers on this port of the loopback address: it is sent `ask`, if that is anything, and
    /// has to send something that begins with `answer`.
    Answers {
        /// The port.
        port: u16,
        /// What it is asked; nothing where the server speaks first.
        ask: Cow<'static, [u8]>,
        /// What its answer begins with; nothing where any answer will do.
        answer: &'static [u8],
    },
    /// The same at a unix socket.
    AnswersAt {
        /// Where it is.
        socket: PathBuf,
        /// As of [`Answers`](Ready::Answers).
        ask: Cow<'static, [u8]>,
        /// As of [`Answers`](Ready::Answers).
        answer: &'static [u8],
    },
}

/// How a process is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

/// The kind of server of this name.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid), naming those there are.
pub fn named(name: &str) -> Result<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name).ok_or_else(|| {
        let known: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        Error::invalid(format!("unknown server {name:?}; known: {}", known.join(", ")))
    })
}

impl Program {
    /// Where it is on this machine, if it is.
    pub fn find(&self) -> Option<PathBuf> {
        self.binaries.iter().find_map(|name| find::program(name))
    }

    /// What it says its version is; none where it says nothing.
    pub fn version_of(&self, binary: &Path) -> Option<String> {
        find::version(binary, self.version)
    }

    /// Refuses settings that it does not have.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid), naming those it has.
    pub fn check(&self, settings: &[(String, String)]) -> Result<()> {
        let Settings::Known(known) = self.settings else { return Ok(()) };
        let Some((name, _)) = settings.iter().find(|(n, _)| !known.contains(&n.as_str())) else {
            return Ok(());
        };
        let there_are = match known {
            [] => "it has none".to_owned(),
            known => format!("known: {}", known.join(", ")),
        };
        Err(Error::invalid(format!("{} has no setting {name:?}; {there_are}", self.name)))
    }

    /// Starts one, and waits until it answers.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for a setting it does not have;
    /// [`NotFound`](ErrorKind::NotFound) with how to install it, where it is not on this machine;
    /// [`Unsupported`](ErrorKind::Unsupported) for a tier it cannot promise;
    /// [`Unavailable`](ErrorKind::Unavailable) with the end of its log, where it does not start;
    /// [`Conflict`](ErrorKind::Conflict) where other programs took its port each time it was tried.
    pub fn start(&self, wish: &Wish) -> Result<Server> {
        self.check(&wish.settings)?;
        if let Some(tier) = wish.tier
            && !self.tiers.contains(&tier)
        {
            return Err(tier.refused(self.name, self.tiers));
        }
        if wish.socket && !self.sockets {
            let can = PROGRAMS.iter().filter(|program| program.sockets).map(|program| program.name);
            let can: Vec<_> = can.collect();
            return Err(Error::unsupported(format!(
                "{} by a unix socket; those that can: {}",
                self.name,
                can.join(", ")
            )));
        }
        let binary = self.find().ok_or_else(|| {
            let what = format!("{} is not installed; to install it: {}", self.name, self.install);
            Error::new(ErrorKind::NotFound, what)
        })?;
        let start = || Server::start(self, binary.clone(), wish).map_err(|e| e.in_place(self.name));
        let mut started = start();
        for _ in 1..STARTS {
            match &started {
                // Another program took the port between the choice of it and the start.
                Err(e) if e.kind() == ErrorKind::Conflict => started = start(),
                _ => break,
            }
        }
        started
    }
}

/// How often a server is started, each time with another port, where other programs take its port.
const STARTS: usize = 3;
/// How long a server may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to stop in good order, before it is killed.
const GRACE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_a_server_does_not_have_is_refused() {
        let check = |server: &str, setting: &str| {
            let settings = [(setting.to_owned(), "1".to_owned())];
            named(server).unwrap().check(&settings).map_err(|e| e.to_string())
        };
        assert_eq!(check("mariadb", "engine"), Ok(()));
        assert_eq!(check("postgres", "work_mem"), Ok(()));
        let refused = check("mariadb", "engin").unwrap_err();
        assert!(refused.contains("\"engin\"; known: engine, binlog, general_log"), "{refused}");
        assert!(check("redis", "engine").unwrap_err().contains("it has none"));
        for program in PROGRAMS.iter().filter(|p| p.settings != Settings::Any) {
            assert!(program.check(&[("nonsense".into(), String::new())]).is_err());
        }
    }
}
