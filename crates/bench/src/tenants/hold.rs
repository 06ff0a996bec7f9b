//! A process that holds databases of SQLite, so that memory, open files and the start are those of a program that has
//! them and nothing else (`PROGRAM bench tenants-hold`).
//!
//! It is told where they are in a line of JSON, asks the first tenant and says `ready`; at the line `all` it asks every
//! tenant once and says `all`. It ends when its input does.

use std::{
    io::{BufRead, Write},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{
    look,
    people::People,
    reach::{Handles, Reach, Spec},
    talk::{Says, Talk},
};
use crate::{Error, Result, stop::Stop, store::blocking};

/// How long it may take to ask every tenant.
const PATIENCE: Duration = Duration::from_secs(600);

/// What it is told.
#[derive(Serialize, Deserialize)]
struct Told {
    spec: Spec,
    documents: u64,
}

/// What was seen of it.
pub(super) struct Held {
    /// Nanoseconds from its start to its first answer.
    pub restart_ns: u64,
    /// Its memory and its files, when it has asked every tenant; none where that was not asked for.
    pub all: Option<(Option<u64>, Option<u64>)>,
}

/// Starts one, and looks at it.
///
/// # Errors
/// Where it does not begin, or fails.
pub(super) fn held(
    program: &Path,
    spec: &Spec,
    documents: u64,
    all: bool,
    stop: &Stop,
) -> Result<Held> {
    let told = serde_json::to_string(&Told { spec: spec.clone(), documents })
        .map_err(|e| Error::invalid("what is held cannot be told").with_source(e))?;
    let begin = Instant::now();
    let mut talk =
        Talk::start(Command::new(program).args(["bench", "tenants-hold"]), Says::Output)?;
    talk.say(&told)?;
    let said = |wanted: &str, talk: &Talk| match talk.next(PATIENCE, stop)? {
        Some(line) if line == wanted => Ok(()),
        line => Err(Error::unavailable(line.unwrap_or_else(|| "it ended at once".into()))),
    };
    said("ready", &talk)?;
    let restart_ns = begin.elapsed().as_nanos() as u64;
    let mut held = Held { restart_ns, all: None };
    if all {
        talk.say("all")?;
        said("all", &talk)?;
        held.all = Some((look::memory(talk.id()), look::files(talk.id())));
    }
    Ok(held)
}

/// Is that process, until its input ends.
///
/// # Errors
/// Of input, output and the store.
pub fn hold(input: &mut dyn BufRead, output: &mut dyn Write) -> Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let told: Told = serde_json::from_str(&line)
        .map_err(|e| Error::invalid("nothing that could be held").with_source(e))?;
    let tenants = told.spec.names.len();
    let people = People::unread(told.documents, tenants as u64);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut reach = Reach::Stores(runtime.block_on(blocking(Handles::new(told.spec)))?);
    let mut say = |what: &str| writeln!(output, "{what}").and_then(|()| output.flush());
    let ask = |reach: &mut Reach, tenant: usize| {
        let ask = people.ask(tenant, 0);
        runtime.block_on(blocking(reach.find(&ask))).map(drop)
    };
    ask(&mut reach, 0)?;
    say("ready")?;
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        (0..tenants).try_for_each(|tenant| ask(&mut reach, tenant))?;
        say("all")?;
    }
}
