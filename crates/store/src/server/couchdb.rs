//! CouchDB, and where there is none, express-pouchdb, which speaks the same and keeps all in
//! memory (`scripts/servers/couchdb` installs it).

use std::{fs, path::Path};

use super::{Launch, Plan, Program, Ready, Settings, ready::free_port};
use crate::{Error, ErrorKind, Result, durability::Tier};

pub(super) const PROGRAM: Program = Program {
    name: "couchdb",
    about: "CouchDB, or express-pouchdb if it is not installed, which keeps all data in memory",
    binaries: &["couchdb", POUCHDB],
    // Both print it and end; CouchDB prints that of Erlang.
    version: &["-version"],
    install: "CouchDB on PATH; or scripts/servers/couchdb, which needs node and npm",
    tiers: &[Tier::T3, Tier::T0],
    settings: Settings::Known(&[]),
    sockets: false,
    cache: None,
    plan,
};

const POUCHDB: &str = "steelyard-pouchdb";

fn plan(plan: &mut Plan) -> Result<()> {
    plan.leave_root(&["couchdb", "nobody"])?;
    match plan.binary.file_name().is_some_and(|name| name == POUCHDB) {
        true => pouchdb(plan),
        false => couchdb(plan),
    }
}

/// Both say who they are, without a password.
fn ready(port: u16) -> Ready {
    let ask = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    Ready::Answers { port, ask: ask.into(), answer: b"HTTP/1.1 200" }
}

const USER: &str = "steelyard";

fn pouchdb(plan: &mut Plan) -> Result<()> {
    if let Some(tier @ (Tier::T1 | Tier::T2 | Tier::T3)) = plan.wish.tier {
        return Err(tier.refused("express-pouchdb", &[Tier::T0]));
    }
    let port = free_port()?;
    let mut launch = Launch::new(&plan.binary, ready(port)).arg(port.to_string());
    let megabytes = plan.wish.memory.unwrap_or(512);
    launch.env.push(("NODE_OPTIONS".into(), format!("--max-old-space-size={megabytes}")));
    launch.env.push(("STEELYARD_LOGIN".into(), format!("{USER}:{}", plan.password)));
    plan.launches.push(launch);
    plan.url = format!("couchdb://{USER}:{}@127.0.0.1:{port}", plan.password);
    Ok(())
}

/// CouchDB 3 takes its arguments and its settings from files.
fn couchdb(plan: &mut Plan) -> Result<()> {
    if plan.wish.tier == Some(Tier::T0) {
        return Err(Tier::T0.refused("CouchDB", &[Tier::T3]));
    }
    // It looks for its parts beside the program.
    let binary = fs::canonicalize(&plan.binary)?;
    let defaults = binary.parent().and_then(Path::parent).map(|root| root.join("etc/default.ini"));
    let Some(defaults) = defaults.filter(|file| file.exists()) else {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("{} has no etc/default.ini beside its folder", binary.display()),
        ));
    };
    let port = free_port()?;
    let data = plan.make_folder("data")?;
    let password = &plan.password;
    let settings = format!(
        "[couchdb]\nsingle_node = true\ndatabase_dir = {data}\nview_index_dir = {data}\n\
         [chttpd]\nport = {port}\nbind_address = 127.0.0.1\n\
         [log]\nwriter = stderr\nlevel = error\n\
         [admins]\n{USER} = {password}\n",
        data = data.display(),
    );
    let arguments = format!(
        "-name steelyard{port}@127.0.0.1\n-setcookie {password}\n-kernel error_logger silent\n\
         -sasl sasl_error_logger false\n+K true\n+A 16\n+Bd\n-noinput\n",
    );
    let own = plan.write("own.ini", &settings)?;
    let vm = plan.folder.join("vm.args");
    let mut launch = Launch::new(binary, ready(port)).arg("-couch_ini");
    launch = launch.args([defaults.display().to_string(), own.display().to_string()]);
    launch.env.push(("COUCHDB_ARGS_FILE".into(), vm.display().to_string()));
    // CouchDB itself puts a hash in place of the password in its settings.
    plan.launches.push(launch.secret(&vm, arguments));
    plan.url = format!("couchdb://{USER}:{password}@127.0.0.1:{port}");
    plan.data = data;
    Ok(())
}
