//! memcached. By a unix socket it is reached by nothing else, and by nobody else. By TCP every user of the
//! machine can reach it: its text protocol, which clients speak, has no password.

use super::{Launch, Plan, Program, Ready, Settings, ready::free_port};
use crate::{Result, durability::Tier};

pub(super) const PROGRAM: Program = Program {
    name: "memcached",
    about: "memcached: values in memory, the least recently used evicted when it is full",
    binaries: &["memcached"],
    version: &["-V"],
    install: "apt-get install memcached",
    tiers: &[Tier::T0],
    settings: Settings::Known(SETTINGS),
    sockets: true,
    cache: None,
    plan,
};

/// The settings it understands.
const SETTINGS: &[&str] =
    &["factor", "chunk", "item_max", "slab_sizes", "slab_chunk_max", "threads", "cas"];

/// The arguments that a setting becomes.
fn arguments(name: &str, value: &str) -> Vec<String> {
    let two = |option: &str, value: String| vec![option.to_owned(), value];
    match name {
        "factor" => two("-f", value.into()),
        "chunk" => two("-n", value.into()),
        "item_max" => two("-I", value.into()),
        "threads" => two("-t", value.into()),
        // Of the values on and off, the latter.
        "cas" if value == "off" => vec!["-C".into()],
        "cas" => Vec::new(),
        option => two("-o", format!("{option}={value}")),
    }
}

fn plan(plan: &mut Plan) -> Result<()> {
    const ASK: &[u8] = b"version\r\n";
    const ANSWER: &[u8] = b"VERSION ";
    plan.leave_root(&["memcache", "nobody"])?;
    let mut launch = match plan.wish.socket {
        true => {
            let socket = plan.folder.join("s");
            let path = socket.display().to_string();
            plan.url = format!("memcached:?socket={path}");
            let ready = Ready::AnswersAt { socket, ask: ASK.into(), answer: ANSWER };
            Launch::new(&plan.binary, ready).args(["-s", &path])
        }
        false => {
            let port = free_port()?;
            plan.url = format!("memcached://127.0.0.1:{port}");
            let ready = Ready::Answers { port, ask: ASK.into(), answer: ANSWER };
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
        launch = launch.args(arguments(name, value));
    }
    // Where root runs it after all, it wants to be told that this is meant.
    if plan.runner.is_none() && nix::unistd::geteuid().is_root() {
        launch = launch.args(["-u", "root"]);
    }
    plan.launches.push(launch);
    Ok(())
}
