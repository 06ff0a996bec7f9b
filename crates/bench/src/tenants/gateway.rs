//! The gateway before the databases: configured, given its tenants, started and stopped. It is this program as a
//! process of its own (`PROGRAM serve --config`), as in production.

use std::{
    fs::{self, OpenOptions},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    TABLE,
    http::Client,
    people::FIELD,
    reach::Served,
    talk::{Says, Talk},
};
use crate::{Error, Result, stop::Stop};

/// How long a gateway may take to begin.
const BEGIN: Duration = Duration::from_secs(60);

/// A gateway that is configured.
pub(super) struct Gateway {
    program: PathBuf,
    config: PathBuf,
    /// A key of each tenant.
    keys: Arc<Vec<String>>,
}

/// A gateway that runs. It ends with its value.
pub(super) struct Running {
    talk: Talk,
    address: String,
    keys: Arc<Vec<String>>,
}

/// What a gateway is to have.
pub(super) struct Wanted<'a> {
    /// This program.
    pub program: &'a Path,
    /// An empty folder of its own, which nobody else may enter.
    pub folder: &'a Path,
    /// Where the databases are made.
    pub shard: &'a str,
    /// How many of them are open at once, at most.
    pub open: u64,
    pub tenants: u64,
    /// When making them is given up.
    pub until: Instant,
}

impl Gateway {
    /// Writes the configuration and adds the tenants; gives the names of their databases. `told` hears of each.
    ///
    /// # Errors
    /// Of the child that adds them; where it takes too long, or the run is to end.
    pub(super) fn install(
        wanted: &Wanted<'_>,
        stop: &Stop,
        told: &mut dyn FnMut(u64),
    ) -> Result<(Gateway, Vec<String>)> {
        let mut random = [0; 32];
        fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        write(&wanted.folder.join("secret"), &secret)?;
        let config = wanted.folder.join("steelyard.toml");
        write(&config, &configuration(wanted.folder, wanted.shard, wanted.open))?;
        let mut command = Command::new(wanted.program);
        command.args(["bench", "tenants-add", "--count", &wanted.tenants.to_string(), "--config"]);
        let talk = Talk::start(command.arg(&config), Says::Output)?;
        let (mut keys, mut databases) = (Vec::new(), Vec::new());
        while (keys.len() as u64) < wanted.tenants {
            let made = keys.len();
            let left = wanted.until.saturating_duration_since(Instant::now());
            let at = |e: Error| match stop.is_set() {
                true => e,
                false => e.in_place(format!("after {made} of {} databases", wanted.tenants)),
            };
            let line = talk.next(left, stop).map_err(at)?;
            // What it says where it fails is its last line.
            let line = line.ok_or_else(|| at(Error::unavailable("no more were made")))?;
            match line.split_once('\t') {
                Some((key, database)) => {
                    keys.push(key.to_owned());
                    databases.push(database.to_owned());
                }
                None => return Err(at(Error::unavailable(line))),
            }
            told(keys.len() as u64);
        }
        let keys = Arc::new(keys);
        Ok((Gateway { program: wanted.program.to_owned(), config, keys }, databases))
    }

    /// Starts it, and waits until it listens. It ends when its input does, however this process ends.
    ///
    /// # Errors
    /// Where it does not begin.
    pub(super) fn start(&self, stop: &Stop) -> Result<Running> {
        let mut command = Command::new(&self.program);
        command.args(["serve", "--log", "off", "--end-with-input", "--config"]).arg(&self.config);
        let talk = Talk::start(&mut command, Says::Errors)?;
        let mut said = Vec::new();
        loop {
            let Some(line) = talk.next(BEGIN, stop)? else {
                let what = format!("the gateway ended at once: {}", said.join(" "));
                return Err(Error::unavailable(what));
            };
            if let Some((_, address)) = line.split_once("serving on http://") {
                let keys = Arc::clone(&self.keys);
                return Ok(Running { talk, address: address.trim().to_owned(), keys });
            }
            said.push(line);
        }
    }
}

impl Running {
    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.talk.id()
    }

    /// A client of it.
    pub(super) fn client(&self) -> Served {
        Served {
            client: Client::new(self.address.clone()),
            keys: Arc::clone(&self.keys),
            patient: true,
        }
    }
}

/// Its configuration: the limits are out of the way, all else as usual.
fn configuration(folder: &Path, shard: &str, open: u64) -> String {
    // A string of TOML: URLs and paths have no other signs that would have to be escaped.
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    // Its path is from where a program is started, not from the file.
    let catalog = quoted(&format!("sqlite:{}", folder.join("catalog.db").display()));
    let shard = quoted(shard);
    format!(
        "catalog = \"{catalog}\"\nsecret_file = \"secret\"\n\
         [listen]\naddress = \"127.0.0.1:0\"\n\
         [shard.first]\nurl = \"{shard}\"\n\
         [limits]\nrequests_per_second = 1e9\nopen_databases = {open}\n\
         [collection.{TABLE}]\nindex = {{ {FIELD} = \"int\" }}\n"
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}
