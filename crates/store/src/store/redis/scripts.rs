//! Conditional writes: scripts, which Redis runs as one step.

use redis::{Cmd, cmd};

use super::Table;
use crate::{
    Error, ErrorKind, Result,
    store::{Key, counts},
};

/// Writes the string ARGV[2] in the place of ARGV[1].
pub(super) const REPLACE: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
    redis.call('SET', KEYS[1], ARGV[2]) return 1";

/// Deletes the string ARGV[1].
pub(super) const DELETE: &str =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])";

/// Writes a hash whose fields and values are all of ARGV, where there is nothing.
pub(super) const ADD_HASH: &str = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end \
    for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end return 1";

/// Writes a hash, or without fields deletes it, where the field ARGV[1] is ARGV[2], and a text: of a kind of those that
/// ARGV[3] names between commas, as the field `_kinds` says, or of none. What follows in ARGV are fields and values.
pub(super) const SWAP_HASH: &str = "if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end \
    local kinds = redis.call('HGET', KEYS[1], '_kinds') \
    local kind = kinds and cjson.decode(kinds)[ARGV[1]] \
    if kind and not string.find(ARGV[3], ',' .. kind .. ',', 1, true) then return 0 end \
    redis.call('DEL', KEYS[1]) \
    for i = 4, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end return 1";

impl Table {
    /// A script about a key; its arguments follow.
    pub(super) fn script(&self, script: &str, key: &Key) -> Cmd {
        let mut eval = cmd("EVAL");
        eval.arg(script).arg(1).arg(self.space.full(key));
        eval
    }

    /// Runs a command that says whether it wrote.
    ///
    /// # Errors
    /// Of the connection and of the server; [`Unsupported`](ErrorKind::Unsupported) or
    /// [`Denied`](ErrorKind::Denied) where the server runs no scripts.
    pub(super) async fn decide(&self, what: &str, command: &Cmd) -> Result<bool> {
        let said: i64 = self.pool.ask(what, command).await.map_err(|e| match e.kind() {
            ErrorKind::Unsupported | ErrorKind::Denied if what == "EVAL" => {
                let what = format!(
                    "conditional writes need EVAL, which the server refuses: {}",
                    e.context()
                );
                self.pool.placed(Error::new(e.kind(), what).with_source(e))
            }
            _ => e,
        })?;
        counts::yes(what, said).map_err(|e| self.pool.placed(e))
    }
}
