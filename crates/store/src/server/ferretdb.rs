//! FerretDB, which speaks MongoDB's protocol, and the PostgreSQL with the DocumentDB extension that
//! it keeps documents in.
//!
//! `scripts/servers/ferretdb` puts all of it into the folder for servers. PostgreSQL lies there in a
//! tree of its own, with a data folder that has the extension in it, so that starting one is
//! copying that folder. Both run as one user of their own where we are root; PostgreSQL trusts whoever reaches its
//! socket, which lies in its data folder, and so nobody but that user and root does. Durability is PostgreSQL's: FerretDB takes the write concerns of clients and
//! does nothing about them.

use std::path::{Path, PathBuf};

use super::{Launch, Plan, Program, Ready, Settings, Stop, find, mongodb::HELLO, ready::free_port};
use crate::{Error, ErrorKind, Result, durability::Tier};

pub(super) const PROGRAM: Program = Program {
    name: "ferretdb",
    about: "FerretDB: documents in PostgreSQL, by MongoDB's protocol",
    binaries: &["ferretdb"],
    version: &["--version"],
    install: "run scripts/servers/ferretdb",
    tiers: &[Tier::T3, Tier::T2, Tier::T1],
    settings: Settings::Known(&[]),
    sockets: false,
    cache: Some(super::postgres::CACHE),
    plan,
};

/// The user of PostgreSQL whom the template has.
const USER: &str = "steelyard";

/// What PostgreSQL is asked: the first message of protocol 3.0, as `steelyard`, for database
/// `postgres`. It says R for welcome once it takes connections, and E before.
const STARTUP: &[u8] = b"\0\0\0\x2a\0\x03\0\0user\0steelyard\0database\0postgres\0\0";

fn plan(plan: &mut Plan) -> Result<()> {
    let home = home(&plan.binary)?;
    let data = plan.folder.join("data");
    plan.run(&Launch::new("cp", Ready::Ends).args([
        "-a",
        "--reflink=auto",
        &home.join("template").display().to_string(),
        &data.display().to_string(),
    ]))?;
    plan.leave_root_by_descriptor(&["nobody"])?;
    if let Some(runner) = plan.runner {
        runner.give_all(&data)?;
    }

    let port = free_port()?;
    let (sync, commit) = match plan.tier(Tier::T3) {
        Tier::T3 => ("on", "on"),
        Tier::T2 => ("on", "off"),
        _ => ("off", "on"),
    };
    let megabytes = plan.wish.memory.unwrap_or(64);
    // It is reached by a socket in its data folder, which only root and its owner may enter.
    let socket = data.join(format!(".s.PGSQL.{port}"));
    let ready = Ready::AnswersAt { socket, ask: STARTUP.into(), answer: b"R" };
    let in_tree = |ready| {
        // The data folder is the tree's /srv, whose owner runs the command.
        let launch = Launch::new(home.join("in-tree"), ready).arg(data.display().to_string());
        Launch { as_root: true, ..launch }
    };
    let mut postgres = in_tree(ready).args(["/postgres/postgres", "-D", "/srv"]);
    postgres = postgres.args(["-k", "/srv", "-p", &port.to_string()]);
    for setting in [
        "listen_addresses=".to_owned(),
        // The extension connects to its own server, too.
        "documentdb.localhost_connection_string=host=/srv".to_owned(),
        format!("fsync={sync}"),
        format!("synchronous_commit={commit}"),
        format!("shared_buffers={megabytes}MB"),
    ] {
        postgres = postgres.args(["-c", &setting]);
    }
    // What is terminated waits for its clients; what is interrupted hangs up on them.
    postgres.stop = Stop::Interrupt;
    plan.launches.push(postgres);

    // Clients of FerretDB log in as users of PostgreSQL.
    let sql = data.join("password.sql");
    let psql = in_tree(Ready::Ends).args(["/postgres/psql", "-h", "/srv", "-p", &port.to_string()]);
    let psql = psql.args(["-U", USER, "-d", "postgres", "-qAt", "-f", "/srv/password.sql"]);
    let text = format!("ALTER ROLE {USER} PASSWORD '{}';\n", plan.password);
    plan.launches.push(psql.secret(&sql, text));

    let own = free_port()?;
    let state = plan.make_folder("state")?;
    let ready = Ready::Answers { port: own, ask: HELLO.into(), answer: b"" };
    let ferretdb = Launch::new(&plan.binary, ready).by_descriptor();
    plan.launches.push(ferretdb.args([
        format!("--postgresql-url=postgres://{USER}@/postgres?host={}&port={port}", data.display()),
        format!("--listen-addr=127.0.0.1:{own}"),
        format!("--state-dir={}", state.display()),
        "--debug-addr=".into(),
        "--telemetry=disable".into(),
        "--log-level=WARN".into(),
    ]));
    plan.url = format!("mongodb://{USER}:{}@127.0.0.1:{own}/test", plan.password);
    plan.data = data;
    Ok(())
}

/// The folder with the tree: beside the folder of the program, else where the script puts it.
fn home(binary: &Path) -> Result<PathBuf> {
    let beside = binary.parent().and_then(Path::parent).map(Path::to_owned);
    let folders = [beside, find::own_folder()].into_iter().flatten();
    let mut homes = folders.map(|folder| folder.join("documentdb"));
    homes.find(|home| home.join("installed").is_file()).ok_or_else(|| {
        let what = format!(
            "{} is installed, but not PostgreSQL with DocumentDB; {}",
            binary.display(),
            PROGRAM.install
        );
        Error::new(ErrorKind::NotFound, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_startup_message_says_its_length() {
        assert_eq!(STARTUP[..4], (STARTUP.len() as u32).to_be_bytes());
    }
}
