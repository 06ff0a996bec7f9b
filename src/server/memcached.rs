//! memcached.

use super::{Launch, Plan, Program, Ready, Settings, ready::free_port};
use crate::{Result, durability::Tier};

pub const PROGRAM: Program = Program {
    name: "memcached",
    about: "memcached: values in memory, the least used thrown out when it is full",
    binaries: &["memcached"],
    version: &["-V"],
    install: "apt-get install memcached",
    tiers: &[Tier::T0],
    settings: Settings::Known(SETTINGS),
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
    let port = free_port()?;
    let ready = Ready::Answers { port, ask: b"version\r\n", answer: b"VERSION " };
    let megabytes = plan.wish.memory.unwrap_or(64);
    let mut launch = Launch::new(&plan.binary, ready).args(["-l", "127.0.0.1", "-U", "0"]);
    launch = launch.args(["-p", &port.to_string(), "-m", &megabytes.to_string()]);
    if plan.setting("threads").is_none() {
        launch = launch.args(["-t", "2"]);
    }
    for (name, value) in &plan.wish.settings {
        launch = launch.args(arguments(name, value));
    }
    if nix::unistd::geteuid().is_root() {
        launch = launch.args(["-u", "nobody"]);
    }
    plan.launches.push(launch);
    plan.url = format!("memcached://127.0.0.1:{port}");
    Ok(())
}
