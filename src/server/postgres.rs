//! PostgreSQL.
//!
//! Making a data folder takes a second, so it is done once for each version: a template is kept
//! beside the other servers' files and copied. PostgreSQL refuses to be root, so root starts it as
//! the user `postgres`, who then owns the server's folder.

use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
};

use super::{
    Cache, Launch, Plan, Program, Ready, Settings, Stop, find, process::user_of, ready::free_port,
};
use crate::{Error, ErrorKind, Result, durability::Tier};

/// Its own cache, in pages of 8 KiB, 16 at least.
pub(super) const CACHE: Cache = Cache {
    least: 16 * 8192,
    args: |bytes| vec!["-c".into(), format!("shared_buffers={}", bytes / 8192)],
};

pub const PROGRAM: Program = Program {
    name: "postgres",
    about: "PostgreSQL; settings: any of its own, as wal_level=minimal",
    binaries: &["postgres"],
    version: &["--version"],
    install: "apt-get install postgresql",
    tiers: &[Tier::T3, Tier::T2, Tier::T0],
    settings: Settings::Any,
    sockets: true,
    cache: Some(CACHE),
    plan,
};

/// Who runs it where we are root.
const USER: &str = "postgres";

/// What it is asked: the first message of protocol 3.0, as user `test`, for database `postgres`. It
/// says R for welcome once it takes connections, and E before.
const STARTUP: &[u8] = b"\0\0\0\x25\0\x03\0\0user\0test\0database\0postgres\0\0";

fn plan(plan: &mut Plan) -> Result<()> {
    let port = free_port()?;
    let owner = match nix::unistd::geteuid().is_root() {
        true => Some(user_of(USER)?),
        false => None,
    };
    let owner = owner.map(|user| (user.uid.as_raw(), user.gid.as_raw()));
    give(&plan.folder, owner)?;
    let data = plan.folder.join("data");
    provide(plan, &data, owner)?;

    let (fsync, commit) = match plan.tier(Tier::T3) {
        Tier::T3 => ("on", "on"),
        Tier::T2 | Tier::T1 => ("on", "off"),
        Tier::T0 => ("off", "off"),
    };
    let mut launch = Launch::new(&plan.binary, Ready::Answers { port, ask: STARTUP, answer: b"R" });
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
    launch.user = Some(USER);
    // What is terminated waits for its clients; what is interrupted hangs up on them.
    launch.stop = Stop::Interrupt;
    plan.launches.push(launch);
    plan.url = format!("postgres://test@127.0.0.1:{port}/postgres");
    if plan.wish.socket {
        // It is in the folder, and named for the port.
        plan.url += &format!("?socket={}", plan.folder.display());
    }
    plan.data = data;
    Ok(())
}

/// Makes the data folder: a copy of the template, which is made first if need be.
fn provide(plan: &Plan, data: &Path, owner: Option<(u32, u32)>) -> Result<()> {
    let version = PROGRAM.version_of(&plan.binary).unwrap_or_default();
    let Some(template) = template(&version) else { return install(plan, data) };
    if !template.is_dir() {
        install(plan, data)?;
        // For the next time. Where it cannot be kept, nothing is lost but time.
        let _ = keep(data, &template);
        return Ok(());
    }
    copy(&template, data, owner)
        .map_err(|e| Error::from(e).in_place(template.display().to_string()))
}

/// Where the template of this version is or shall be.
fn template(version: &str) -> Option<PathBuf> {
    // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
    let number = version.split(") ").nth(1)?.split_whitespace().next()?;
    let name: String = number
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || ".-+".contains(c) { c } else { '_' })
        .collect();
    Some(find::own_folder()?.join("templates").join(format!("postgres-{name}")))
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
    launch = launch.args(["-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
    launch.user = Some(USER);
    plan.run(&launch)
}

/// Copies a new data folder to where the template shall be: as a whole or not at all, also where
/// two do it at once.
fn keep(data: &Path, template: &Path) -> io::Result<()> {
    let parent = template.parent().ok_or(io::ErrorKind::NotFound)?;
    fs::create_dir_all(parent)?;
    let new = tempfile::Builder::new().prefix("new-").tempdir_in(parent)?;
    copy(data, &new.path().join("data"), None)?;
    fs::rename(new.path().join("data"), template)
}

/// Copies a folder and all in it, for nobody but its owner to see.
fn copy(from: &Path, to: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700))?;
    give(to, owner)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&entry.path(), &to, owner)?,
            kind if kind.is_file() => {
                fs::copy(entry.path(), &to)?;
                give(&to, owner)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn give(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    match owner {
        Some((user, group)) => chown(path, Some(user), Some(group)),
        None => Ok(()),
    }
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
        let name = |version: &str| {
            let path = template(version)?;
            Some(path.file_name()?.to_str()?.to_owned())
        };
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)";
        assert_eq!(name(debian).as_deref(), Some("postgres-15.18"));
        assert_eq!(
            name("postgres (PostgreSQL) ../18beta1").as_deref(),
            Some("postgres-.._18beta1")
        );
        assert_eq!(name("something else"), None);
    }
}
