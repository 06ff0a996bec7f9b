//! PostgreSQL.
//!
//! Making a data folder takes a second, so it is a copy of a template. PostgreSQL refuses to be root, and what
//! prepares its data refuses to be a user without an account, so where we are root that sees a list of accounts
//! with the server's own in it.

use std::{fs, path::Path};

use super::{
    Cache, Launch, Plan, Program, Ready, Runner, Settings, Stop, find, ready::free_port, template,
};
use crate::{Error, ErrorKind, Result, durability::Tier};

/// Its own cache, in pages of 8 KiB, 16 at least.
pub(super) const CACHE: Cache = Cache {
    least: 16 * 8192,
    args: |bytes| vec!["-c".into(), format!("shared_buffers={}", bytes / 8192)],
};

pub(super) const PROGRAM: Program = Program {
    name: "postgres",
    about: "PostgreSQL; settings: any of its own, as wal_level=minimal",
    binaries: &["postgres"],
    version: &["--version"],
    install: "apt-get install postgresql",
    tiers: &[Tier::T3, Tier::T2, Tier::T1, Tier::T0],
    settings: Settings::Any,
    sockets: true,
    cache: Some(CACHE),
    plan,
};

/// Who runs it where we are root, as whom it refuses to run.
const USERS: &[&str] = &["postgres", "nobody"];

/// Whom it knows, who may do everything, programs of the system among it: so there is a password.
const USER: &str = "test";

/// What it is asked: the first message of protocol 3.0, as user `test`, for database `postgres`. It
/// says R for welcome once it takes connections, and E before.
const STARTUP: &[u8] = b"\0\0\0\x25\0\x03\0\0user\0test\0database\0postgres\0\0";

fn plan(plan: &mut Plan) -> Result<()> {
    let port = free_port()?;
    plan.leave_root(USERS)?;
    if plan.runner.is_some() && with_account(plan, &Launch::new("true", Ready::Ends)).is_err() {
        // No list of accounts can be put in the place of the system's here.
        plan.runner = Runner::first(USERS);
        plan.give(&plan.folder)?;
    }
    let data = plan.folder.join("data");
    let version = PROGRAM.version_of(&plan.binary).unwrap_or_default();
    template::provide(plan, &data, template(&version), || install(plan, &data))?;
    lock(plan, &data)?;

    let (fsync, commit) = match plan.tier(Tier::T3) {
        Tier::T3 => ("on", "on"),
        Tier::T2 => ("on", "off"),
        // The log is written at each commit, and never synced.
        Tier::T1 => ("off", "on"),
        Tier::T0 => ("off", "off"),
    };
    let mut launch =
        Launch::new(&plan.binary, Ready::Answers { port, ask: STARTUP.into(), answer: b"R" });
    launch = launch.args(["-D", &data.display().to_string(), "-p", &port.to_string()]);
    launch = launch.args(["-h", "127.0.0.1", "-k", &plan.folder.display().to_string()]);
    let mut settings = vec![
        format!("shared_buffers={}MB", plan.wish.memory.unwrap_or(128)),
        format!("fsync={fsync}"),
        format!("synchronous_commit={commit}"),
    ];
    settings.extend(plan.wish.settings.iter().map(|(name, value)| format!("{name}={value}")));
    for setting in settings {
        launch = launch.args(["-c".to_owned(), setting]);
    }
    // What is terminated waits for its clients; what is interrupted hangs up on them.
    launch.stop = Stop::Interrupt;
    plan.launches.push(launch);
    plan.url = format!("postgres://{USER}:{}@127.0.0.1:{port}/postgres", plan.password);
    if plan.wish.socket {
        // It is in the folder, and named for the port.
        plan.url += &format!("?socket={}", plan.folder.display());
    }
    plan.data = data;
    Ok(())
}

/// The name of the template of this version.
fn template(version: &str) -> Option<String> {
    // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
    let number = version.split(") ").nth(1)?.split_whitespace().next()?;
    Some(template::name("postgres", number))
}

/// Lets nobody in who does not know the password of this start, which is set before the server listens.
fn lock(plan: &Plan, data: &Path) -> Result<()> {
    let hosts = "local all all scram-sha-256\nhost all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(data.join("pg_hba.conf"), hosts)?;
    let sql = plan.folder.join("password.sql");
    // Its standalone backend reads statements, a line each. What it writes need not be synced: the server
    // that comes after it reads the same files.
    const SCRIPT: &str = "exec \"$0\" --single -D \"$1\" -c fsync=off \
                          -c password_encryption=scram-sha-256 postgres < \"$2\"";
    let launch = Launch::new("/bin/sh", Ready::Ends).args(["-c", SCRIPT]);
    let launch = launch.secret(&sql, format!("ALTER ROLE {USER} PASSWORD '{}'\n", plan.password));
    let launch = launch.args([&plan.binary, data, &*sql].map(|path| path.display().to_string()));
    with_account(plan, &launch)
}

fn install(plan: &Plan, data: &Path) -> Result<()> {
    let real = plan.binary.canonicalize()?;
    let beside = |path: &Path| path.parent().map(|folder| folder.join("initdb"));
    let initdb = [&plan.binary, &real]
        .into_iter()
        .filter_map(|path| beside(path))
        .find(|path| path.is_file())
        .or_else(|| find::program("initdb"))
        .ok_or_else(|| {
            let what = format!("there is no initdb beside {}", real.display());
            Error::new(ErrorKind::NotFound, what)
        })?;
    let mut launch = Launch::new(initdb, Ready::Ends);
    launch = launch.args(["-D".to_owned(), data.display().to_string()]);
    launch = launch.args(["-U", USER, "-A", "reject", "-E", "UTF8", "--locale=C", "--no-sync"]);
    with_account(plan, &launch)
}

/// Runs a program to its end, as the user of the server. If that has no account, the program sees a list of
/// accounts that has it, and only the program does: the list is mounted in a namespace of its own.
fn with_account(plan: &Plan, launch: &Launch) -> Result<()> {
    let Some(Runner { user, group }) = plan.runner.filter(|runner| !runner.has_account()) else {
        return plan.run(launch);
    };
    const SCRIPT: &str = "mount --bind \"$1\" /etc/passwd && user=$2 group=$3 && shift 3 && \
                          exec setpriv --reuid \"$user\" --regid \"$group\" --clear-groups -- \"$@\"";
    let accounts = plan.folder.join("accounts");
    let text = format!("root:x:0:0::/:/bin/sh\nsteelyard:x:{user}:{group}::/:/bin/sh\n");
    let mut seen = Launch::new("unshare", Ready::Ends);
    seen = seen.args(["--mount", "--propagation", "private", "--", "/bin/sh", "-c", SCRIPT, "sh"]);
    seen = seen.args([accounts.display().to_string(), user.to_string(), group.to_string()]);
    seen = seen.arg(launch.binary.display().to_string()).args(launch.args.iter().cloned());
    seen.secrets.clone_from(&launch.secrets);
    seen = seen.secret(&accounts, text);
    seen.as_root = true;
    plan.run(&seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_startup_message_says_its_length() {
        assert_eq!(STARTUP[..4], (STARTUP.len() as u32).to_be_bytes());
    }

    #[test]
    fn templates_are_named_for_their_version() {
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)";
        assert_eq!(template(debian).as_deref(), Some("postgres-15.18"));
        assert_eq!(template("something else"), None);
    }
}
