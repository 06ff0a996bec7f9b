//! memcached. By a unix socket it is reached by nothing else.

use std::os::unix::fs::chown;

use super::{Launch, Plan, Program, Ready, process::user_of, ready::free_port};
use crate::{Error, Result, durability::Tier};

pub const PROGRAM: Program = Program {
    name: "memcached",
    about: "memcached: values in memory, the least used thrown out when it is full",
    binaries: &["memcached"],
    version: &["-V"],
    install: "apt-get install memcached",
    tiers: &[Tier::T0],
    sockets: true,
    plan,
};

/// Who runs it where we are root.
const USER: &str = "nobody";

/// The settings it understands, and the arguments they become.
const SETTINGS: [(&str, &[&str]); 7] = [
    ("factor", &["-f", "{}"]),
    ("chunk", &["-n", "{}"]),
    ("item_max", &["-I", "{}"]),
    ("slab_sizes", &["-o", "slab_sizes={}"]),
    ("slab_chunk_max", &["-o", "slab_chunk_max={}"]),
    ("threads", &["-t", "{}"]),
    // Of the values on and off, the latter.
    ("cas", &["-C"]),
];

fn plan(plan: &mut Plan) -> Result<()> {
    const ASK: &[u8] = b"version\r\n";
    const ANSWER: &[u8] = b"VERSION ";
    let root = nix::unistd::geteuid().is_root();
    let mut launch = match plan.wish.socket {
        true => {
            let socket = plan.folder.join("s");
            let path = socket.display().to_string();
            plan.url = format!("memcached:?socket={path}");
            if root {
                // It makes its socket when it is root no more.
                chown(&plan.folder, Some(user_of(USER)?.uid.as_raw()), None)?;
            }
            let ready = Ready::AnswersAt { socket, ask: ASK, answer: ANSWER };
            Launch::new(&plan.binary, ready).args(["-s", &path])
        }
        false => {
            let port = free_port()?;
            plan.url = format!("memcached://127.0.0.1:{port}");
            let ready = Ready::Answers { port, ask: ASK, answer: ANSWER };
            let launch = Launch::new(&plan.binary, ready).args(["-l", "127.0.0.1", "-U", "0"]);
            launch.args(["-p", &port.to_string()])
        }
    };
    let megabytes = plan.wish.memory.unwrap_or(64);
    launch = launch.args(["-m", &megabytes.to_string()]);
    if plan.setting("threads").is_none() {
        launch = launch.args(["-t", "2"]);
    }
    for (name, value) in &plan.wish.settings {
        let known = SETTINGS.iter().find(|(known, _)| known == name);
        let (_, arguments) = known.ok_or_else(|| {
            let names: Vec<_> = SETTINGS.iter().map(|(name, _)| *name).collect();
            let what = format!("memcached has no setting {name:?}; known: {}", names.join(", "));
            Error::invalid(what)
        })?;
        if name != "cas" || value == "off" {
            launch = launch.args(arguments.iter().map(|text| text.replace("{}", value)));
        }
    }
    if root {
        launch = launch.args(["-u", USER]);
    }
    plan.launches.push(launch);
    Ok(())
}
