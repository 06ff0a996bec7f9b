//! The protocol between the bench and a client's adapter: one line of JSON each way, on the adapter's standard input
//! and output. `docs/cache.md` documents it for authors of adapters.
//!
//! An adapter begins with a [`Hello`]. The bench then sends [`Task`]s, and the adapter answers each with a [`Done`]
//! when it has finished. It exits when its input ends. All values are plain (no text needs escapes), so that an adapter
//! in any language can parse them.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Error, Result, histogram::Histogram};

/// The version of what follows.
pub const PROTOCOL: u32 = 1;
/// No line of an adapter is longer, in bytes.
pub const LONGEST: usize = 16 << 20;

/// What an adapter says first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub cache_client: u32,
    /// The client's name.
    pub client: String,
    /// Its version.
    pub version: String,
    /// What it is, in a phrase.
    pub about: String,
    /// What turns objects into bytes; empty where it has nothing for that, and no such row is asked
    /// of it.
    pub serializer: String,
    /// Whether it has writes that are not waited for.
    pub noblock: bool,
    /// Whether it can send operations at planned moments.
    pub open: bool,
    /// How many connections it can use at once; 0 for any number.
    pub connections: u32,
    /// Why it cannot take part at all, where it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What an adapter is asked to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Task {
    /// The row's name, for people.
    pub row: String,
    /// The steps of an iteration, parted by blanks: `s1` set the first key, `g1` get it, `d1` delete
    /// it, `m` get all keys by one call.
    pub script: String,
    /// How many steps to do, the script over and over again. Of `n` connections, number `i` does
    /// `operations / n` of them, and one more where `i < operations % n`, each from the script's
    /// beginning.
    pub operations: u64,
    /// Connections, each with a thread or task of its own.
    pub connections: u32,
    /// Values are objects, serialized and read at each step.
    pub object: bool,
    /// Writes are not waited for; what is still to be sent at the end, and proof that all was done,
    /// belong to the time.
    pub noblock: bool,
    /// Take the time of each step, too.
    pub latency: bool,
    /// Steps a second at planned moments (Poisson); 0 for one as soon as the one before is done.
    pub rate: f64,
    /// The moments follow from it.
    pub seed: u64,
    /// The format of objects, for who has several.
    pub format: String,
    /// `host:port` of each server.
    pub servers: Vec<String>,
    /// The keys. Those that have no value are never stored.
    pub keys: Vec<String>,
    /// Files, each of them the bytes of a key's value, from the first on.
    pub values: Vec<String>,
    /// Files, each of them the same as JSON, for who makes objects of that.
    pub objects: Vec<String>,
}

/// What has come of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Done {
    /// Nanoseconds of the steps alone: connections were there, values stored.
    pub elapsed_ns: u64,
    /// Processor time meanwhile, of all threads, in user mode …
    pub user_ns: u64,
    /// … and in the kernel.
    pub system_ns: u64,
    /// Context switches because it waited; where they are not known, none.
    pub waits: Option<u64>,
    /// Context switches because another was let in.
    pub preemptions: u64,
    /// Steps that were done.
    pub operations: u64,
    /// Keys that were read and had the right value, whole.
    pub hits: u64,
    /// Keys that were read and had none.
    pub misses: u64,
    /// Keys that were read and had another value; also those found after the window.
    pub wrong: u64,
    /// Steps that failed.
    pub errors: u64,
    /// What was first to go wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// Nanoseconds of each step, as pairs of value and count; in an open loop from the planned moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Histogram>,
    /// In an open loop: from sending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Histogram>,
    /// In an open loop: from the planned moment to sending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<Histogram>,
    /// In an open loop: sent over 1 ms after their moment.
    pub late: u64,
    /// Why it could not be done at all, where it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A line that an adapter sends, or is sent.
pub fn line(message: &impl Serialize) -> Result<String> {
    let mut text = serde_json::to_string(message)
        .map_err(|e| Error::invalid("no line of JSON").with_source(e))?;
    text.push('\n');
    Ok(text)
}

/// What a line says.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed), with the beginning of the line.
pub fn read<T: DeserializeOwned>(line: &str) -> Result<T> {
    serde_json::from_str(line).map_err(|e| {
        let begin: String = line.trim_end().chars().take(80).collect();
        Error::malformed(format!("an adapter said {begin:?}, and not what docs/cache.md asks for"))
            .with_source(e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_its_usual_value() {
        let done: Done = read("{\"elapsed_ns\": 5, \"operations\": 2, \"more\": [1]}").unwrap();
        assert_eq!((done.elapsed_ns, done.operations, done.waits), (5, 2, None));
        let hello: Hello = read("{\"cache_client\":1,\"client\":\"x\"}").unwrap();
        assert!(!hello.noblock && hello.serializer.is_empty() && hello.error.is_none());
        let error = read::<Done>("Traceback (most recent call last):\n").unwrap_err().to_string();
        assert!(error.contains("Traceback"), "{error}");
    }

    #[test]
    fn a_message_is_one_line() {
        let task = Task { row: "set".into(), script: "s1 m".into(), ..Task::default() };
        let text = line(&task).unwrap();
        assert!(text.ends_with("}\n") && text.matches('\n').count() == 1, "{text}");
        assert_eq!(read::<Task>(&text).unwrap(), task);
    }
}
