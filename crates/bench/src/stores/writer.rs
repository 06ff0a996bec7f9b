//! A process that writes to a store without a server, and is killed: `PROGRAM bench store-writer`.
//!
//! It is sent rows on its standard input, each as its length (four bytes, the lowest first) and CBOR of
//! key and record. It writes one after another and answers each with one byte once it is acknowledged.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    slice,
};

use crate::{
    Error, Result,
    format::Format,
    record::Document,
    stop::Stop,
    store::{self, Key, Row},
};

/// Rows that are sent before the first of them is acknowledged, so that it is always at work.
const AHEAD: usize = 4;
/// What it says of an acknowledged row.
const DONE: u8 = b'.';
/// No row is longer.
const LONGEST: usize = 1 << 30;

/// Has a process write rows to the table of a store until so many are acknowledged, then kills it: the rows
/// it was sent, and the keys of those it has acknowledged.
///
/// # Errors
/// Where it cannot be started, or ends before, with what it said; where the run is to end.
pub(super) fn killed(
    program: &Path,
    (url, table): (&str, &str),
    mut rows: impl Iterator<Item = Result<Row>>,
    (wanted, stop): (u64, &Stop),
) -> Result<(Vec<Row>, Vec<Key>)> {
    let mut child = Command::new(program)
        .args(["bench", "store-writer", "--table", table, url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C ends the run between phases.
        .process_group(0)
        .spawn()
        .map_err(|e| Error::from(e).in_place(program.display().to_string()))?;
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Error::unavailable("the process that writes has no pipes"));
    };
    let (mut from, mut sent, mut acknowledged) = (BufReader::new(from).bytes(), Vec::new(), 0);
    while acknowledged < wanted {
        if let Err(e) = stop.check() {
            // It ends with its input at the latest.
            let _ = child.kill();
            let _ = child.wait();
            return Err(e);
        }
        while sent.len() < acknowledged as usize + AHEAD {
            let Some(row) = rows.next().transpose()? else { break };
            // Where it has ended, the next read says so.
            let _ = to.write_all(&frame(&row)?);
            sent.push(row);
        }
        match from.next() {
            Some(Ok(DONE)) => acknowledged += 1,
            _ => return Err(ended(child)),
        }
    }
    child.kill().map_err(Error::from)?;
    // What it had said before.
    acknowledged += from.map_while(|byte| byte.ok().filter(|b| *b == DONE)).count() as u64;
    child.wait().map_err(Error::from)?;
    let done = sent[..acknowledged as usize].iter().map(|row: &Row| row.key.clone()).collect();
    Ok((sent, done))
}

fn ended(child: Child) -> Error {
    let said = child.wait_with_output().map(|out| out.stderr).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    Error::unavailable(format!("the process that writes ended: {}", said.trim()))
}

fn frame(row: &Row) -> Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    Format::Cbor.encode(&(row.key.as_str(), &row.record), &mut frame)?;
    let length = u32::try_from(frame.len() - 4)
        .map_err(|_| Error::unsupported(format!("key {}: over 4 GiB", row.key.shown())))?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// Writes what comes on standard input to the table of a store, until it ends.
///
/// # Errors
/// Those of the store; input that is none of rows.
pub fn serve(url: &str, table: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(written(url, table))
}

async fn written(url: &str, table: &str) -> Result<()> {
    let place = store::open(url).await?;
    let store = place.table(table)?;
    let (mut input, mut output) = (BufReader::new(io::stdin()), io::stdout().lock());
    let mut bytes = Vec::new();
    while !input.fill_buf()?.is_empty() {
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(Error::invalid(format!("a row of {length} bytes")));
        }
        bytes.resize(length, 0);
        input.read_exact(&mut bytes)?;
        let (key, record): (String, Document) = Format::Cbor.decode(&bytes)?;
        let row = Row { key: Key::new(key)?, record };
        store.put(slice::from_ref(&row)).await?;
        output.write_all(&[DONE])?;
        output.flush()?;
    }
    Ok(())
}
