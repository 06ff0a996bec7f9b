//! Tokyo Tyrant: its own `ttserver` where there is one; else a front end of ours, in Python, over
//! the system's Tokyo Cabinet library, which does all but the talking. The protocol knows no password: every
//! user of the machine can reach it.

use std::process::{Command, Stdio};

use super::{Launch, Plan, Program, Ready, Settings, ready::free_port};
use crate::{Error, ErrorKind, Result, durability::Tier};

pub(super) const PROGRAM: Program = Program {
    name: "tyrant",
    about: "Tokyo Tyrant: tables with queries, or a hash; setting type=table|hash",
    binaries: &["ttserver", "python3"],
    version: &["--version"],
    install: INSTALL,
    // A sync is asked for by the client, with each batch; there is none at intervals.
    tiers: &[Tier::T1, Tier::T0, Tier::T3],
    settings: Settings::Known(&["type"]),
    sockets: false,
    cache: None,
    plan,
};

const INSTALL: &str = "Tokyo Tyrant, or: apt-get install python3 libtokyocabinet9";

/// Our front end; `scripts/servers` has it for people.
const FRONT_END: &str = include_str!("tyrant-server.py");

fn plan(plan: &mut Plan) -> Result<()> {
    plan.leave_root(&["nobody"])?;
    let port = free_port()?;
    let data = plan.make_folder("data")?;
    let name = match (plan.setting("type"), plan.tier(Tier::T1)) {
        (None | Some("hash"), Tier::T0) => "*".to_owned(),
        (Some("table"), Tier::T0) => {
            return Err(Tier::T0.refused("a table of Tokyo Cabinet", &[Tier::T1, Tier::T3]));
        }
        (None | Some("table"), _) => data.join("casket.tct").display().to_string(),
        (Some("hash"), _) => data.join("casket.tch").display().to_string(),
        (Some(other), _) => {
            return Err(Error::invalid(format!("type={other}: one of table, hash")));
        }
    };
    let database = format!("{name}#bnum=200000");
    // How many records there are: a zero, then the number.
    let ready = Ready::Answers { port, ask: b"\xc8\x80".into(), answer: b"\0" };
    let launch = Launch::new(&plan.binary, ready);
    let launch = match plan.binary.ends_with("ttserver") {
        true => launch.args(["-host", "127.0.0.1", "-port", &port.to_string()]).arg(database),
        false => {
            let has = Command::new(&plan.binary)
                .args(["-c", "import ctypes; ctypes.CDLL('libtokyocabinet.so.9')"])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if !has.is_ok_and(|status| status.success()) {
                let what =
                    format!("neither ttserver nor libtokyocabinet9; to install it: {INSTALL}");
                return Err(Error::new(ErrorKind::NotFound, what));
            }
            let script = plan.write("tyrant-server.py", FRONT_END)?;
            launch.arg(script.display().to_string()).args([port.to_string(), database])
        }
    };
    plan.launches.push(launch);
    plan.url = format!("tyrant://127.0.0.1:{port}");
    plan.data = data;
    Ok(())
}
