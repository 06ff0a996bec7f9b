//! memcached.

use super::{Launch, Plan, Program, Ready, Stop, ready::free_port};
use crate::{Error, Result, durability::Tier};

pub const PROGRAM: Program = Program {
    name: "memcached",
    about: "memcached: values in memory, the least used thrown out when it is full",
    binaries: &["memcached"],
    version: &["-V"],
    install: "apt-get install memcached",
    tiers: &[Tier::T0],
    plan,
};

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
    let port = free_port()?;
    let ready = Ready::Answers { port, ask: b"version\r\n", answer: b"VERSION " };
    let megabytes = plan.wish.memory.unwrap_or(64);
    let mut launch = Launch::new(&plan.binary, ready).args(["-l", "127.0.0.1", "-U", "0"]);
    launch = launch.args(["-p", &port.to_string(), "-m", &megabytes.to_string()]);
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
    if nix::unistd::geteuid().is_root() {
        launch = launch.args(["-u", "nobody"]);
    }
    // Whoever started us may have blocked SIGTERM, which it would inherit.
    launch.stop = Stop::Kill;
    plan.launches.push(launch);
    plan.url = format!("memcached://127.0.0.1:{port}");
    Ok(())
}
