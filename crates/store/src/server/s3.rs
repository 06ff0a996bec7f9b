//! Servers that speak S3: versitygw, which keeps objects as files, or gofakes3, which keeps them in
//! memory. Neither syncs what it acknowledges.

use super::{Launch, Plan, Program, Ready, Settings, ready::free_port};
use crate::{Result, durability::Tier};

pub(super) const PROGRAM: Program = Program {
    name: "s3",
    about: "versitygw, S3 over files; or gofakes3, S3 in memory",
    binaries: &["versitygw", GOFAKES3],
    version: &["--version"],
    install: "scripts/servers/s3, which needs go",
    tiers: &[Tier::T1, Tier::T0],
    settings: Settings::Known(&[]),
    sockets: false,
    cache: None,
    plan,
};

const GOFAKES3: &str = "gofakes3";
const BUCKET: &str = "steelyard";
const KEY: &str = "steelyard";

fn plan(plan: &mut Plan) -> Result<()> {
    plan.leave_root_by_descriptor(&["nobody"])?;
    let port = free_port()?;
    let listen = format!("127.0.0.1:{port}");
    // Whoever asks without a signature is refused, which is an answer.
    let ask = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let ready = Ready::Answers { port, ask: ask.into(), answer: b"HTTP/1.1 " };
    let launch = Launch::new(&plan.binary, ready).by_descriptor();
    let (tier, launch) = match plan.binary.file_name().is_some_and(|name| name == GOFAKES3) {
        true => {
            let launch = launch.args(["-host", &listen, "-backend", "memory"]);
            (Tier::T0, launch.args(["-initialbucket", BUCKET]))
        }
        false => {
            // A bucket is a folder; what is known about an object, a file beside it.
            let data = plan.make_folder("data")?;
            plan.make_folder(&format!("data/{BUCKET}"))?;
            let beside = plan.make_folder("beside")?.display().to_string();
            let mut launch = launch.args(["--port", &listen, "--quiet", "posix"]);
            launch = launch.args(["--sidecar", &beside, &data.display().to_string()]);
            launch.env.push(("ROOT_ACCESS_KEY".into(), KEY.into()));
            launch.env.push(("ROOT_SECRET_KEY".into(), plan.password.clone()));
            plan.data = data;
            (Tier::T1, launch)
        }
    };
    if let Some(asked) = plan.wish.tier.filter(|asked| *asked != tier) {
        return Err(asked.refused("this server", &[tier]));
    }
    plan.launches.push(launch);
    plan.url = format!(
        "s3://{BUCKET}?endpoint=http://{listen}&access_key_id={KEY}&secret_access_key={}&server_tier={tier}",
        plan.password
    );
    Ok(())
}
