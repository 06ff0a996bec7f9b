//! Redis, and Valkey, which speaks the same.

use super::{Launch, Plan, Program, Ready, Settings, ready::free_port};
use crate::{Result, durability::Tier};

pub(super) const PROGRAM: Program = Program {
    name: "redis",
    about: "Redis or Valkey: values in memory, logged to disk as configured",
    binaries: &["redis-server", "valkey-server"],
    version: &["--version"],
    install: "apt-get install redis-server",
    tiers: &[Tier::T1, Tier::T0, Tier::T2, Tier::T3],
    settings: Settings::Known(&[]),
    sockets: true,
    cache: None,
    plan,
};

fn plan(plan: &mut Plan) -> Result<()> {
    plan.leave_root(&["redis", "nobody"])?;
    let port = free_port()?;
    let data = plan.make_folder("data")?;
    let (log, sync) = match plan.tier(Tier::T1) {
        Tier::T0 => ("no", "no"),
        Tier::T1 => ("yes", "no"),
        Tier::T2 => ("yes", "everysec"),
        Tier::T3 => ("yes", "always"),
    };
    let password = &plan.password;
    // Not an argument, which every user of the machine may read.
    let file = plan.folder.join("redis.conf");
    // It takes a login while it reads its log, and answers a ping after that.
    let ask = format!("AUTH {password}\r\nPING\r\n").into_bytes().into();
    let ready = Ready::Answers { port, ask, answer: b"+OK\r\n+PONG" };
    let mut launch = Launch::new(&plan.binary, ready).arg(file.display().to_string());
    launch = launch.secret(&file, format!("requirepass {password}\n"));
    launch = launch.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    // Its title would be written over its environment, and with that over our mark.
    launch = launch.args(["--set-proc-title", "no"]);
    launch = launch.args(["--dir", &data.display().to_string(), "--save", ""]);
    launch = launch.args(["--appendonly", log, "--appendfsync", sync]);
    if let Some(megabytes) = plan.wish.memory {
        launch = launch.args(["--maxmemory", &format!("{megabytes}mb")]);
    }
    plan.url = format!("redis://:{password}@127.0.0.1:{port}");
    if plan.wish.socket {
        let path = plan.folder.join("s").display().to_string();
        plan.url += &format!("?socket={path}");
        launch = launch.args(["--unixsocket", &path, "--unixsocketperm", "700"]);
    }
    plan.launches.push(launch);
    plan.data = data;
    Ok(())
}
