//! MongoDB's own server. It takes a client to give it a user with a password, so it has none here: every user
//! of the machine can reach it.

use super::{Launch, Plan, Program, Ready, Settings, ready::free_port};
use crate::{Result, durability::Tier};

pub(super) const PROGRAM: Program = Program {
    name: "mongodb",
    about: "MongoDB: documents",
    binaries: &["mongod"],
    version: &["--version"],
    install: "see mongodb.com; the usual package managers do not have it",
    // Which of them, each write says.
    tiers: &[Tier::T3, Tier::T2],
    settings: Settings::Known(&[]),
    sockets: false,
    cache: None,
    plan,
};

/// The question `{hello: 1, $db: "admin"}` in an OP_MSG, which clients begin with. Its answer begins
/// with its own length.
pub(super) const HELLO: &[u8] = b"\
    \x34\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\
    \0\0\0\0\0\
    \x1f\0\0\0\x10hello\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";

fn plan(plan: &mut Plan) -> Result<()> {
    plan.leave_root(&["mongodb", "nobody"])?;
    let port = free_port()?;
    let data = plan.make_folder("data")?;
    let mut launch =
        Launch::new(&plan.binary, Ready::Answers { port, ask: HELLO.into(), answer: b"" });
    launch = launch.args(["--port", &port.to_string(), "--bind_ip", "127.0.0.1"]);
    launch = launch.args(["--dbpath", &data.display().to_string(), "--nounixsocket", "--quiet"]);
    // The least it takes is a quarter of a gigabyte.
    let gigabytes = plan.wish.memory.unwrap_or(256).max(256) as f64 / 1024.0;
    launch = launch.args(["--wiredTigerCacheSizeGB", &gigabytes.to_string()]);
    plan.launches.push(launch);
    plan.url = format!("mongodb://127.0.0.1:{port}/test");
    plan.data = data;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_is_what_it_says() {
        let number = |at: usize| i32::from_le_bytes(HELLO[at..at + 4].try_into().unwrap());
        assert_eq!(number(0) as usize, HELLO.len());
        assert_eq!(number(12), 2013, "OP_MSG");
        assert_eq!(&HELLO[16..21], [0; 5], "no flags, and a section of kind 0");
        let document: bson::Document = bson::deserialize_from_slice(&HELLO[21..]).unwrap();
        assert_eq!(document, bson::doc! {"hello": 1, "$db": "admin"});
    }
}
