//! memcached.

use super::{Launch, Plan, Program, Ready, ready::free_port};
use crate::{Result, durability::Tier};

pub const PROGRAM: Program = Program {
    name: "memcached",
    about: "memcached: values in memory, the least used thrown out when it is full",
    binaries: &["memcached"],
    version: &["-V"],
    install: "apt-get install memcached",
    tiers: &[Tier::T0],
    plan,
};

fn plan(plan: &mut Plan) -> Result<()> {
    let port = free_port()?;
    let ready = Ready::Answers { port, ask: b"version\r\n", answer: b"VERSION " };
    let megabytes = plan.wish.memory.unwrap_or(64);
    let mut launch = Launch::new(&plan.binary, ready).args([
        "-l",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-U",
        "0",
        "-m",
        &megabytes.to_string(),
        "-t",
        "2",
    ]);
    if nix::unistd::geteuid().is_root() {
        launch = launch.args(["-u", "nobody"]);
    }
    plan.launches.push(launch);
    plan.url = format!("memcached://127.0.0.1:{port}");
    Ok(())
}
