//! The keys of a table on one server, by its LRU crawler.

use std::time::{Duration, Instant};

use crate::{Error, ErrorKind, Result, memcache::AsyncClient, store::kv::Spool};

use super::names::{Names, listed};

/// Whether a key on the wire counts.
pub(super) type Mine<'a> = dyn Fn(&str) -> bool + Sync + 'a;

/// The keys of a table on the server of this number, those of which `mine` is true of what is on the
/// wire. They are read at once: a listing that is read slowly, memcached ends early. A server lists
/// for one client at a time; a second one waits, for `limit` at most.
pub(super) async fn keys(
    (client, server): (&AsyncClient, usize),
    limit: Duration,
    names: &Names,
    mine: &Mine<'_>,
) -> Result<Spool> {
    // By the table of keys, each is listed once; by the lists of use, which older servers have
    // only, one that is used meanwhile may be missed.
    for how in ["hash", "all"] {
        let begin = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            let mut spool = Spool::default();
            let list = client.list_keys(server, how, |line| {
                let end = line.iter().position(|b| *b == b' ').unwrap_or(line.len());
                let full = listed(line[..end].strip_prefix(b"key=").unwrap_or_default());
                if let Some(key) = names.own(&full)?
                    && std::str::from_utf8(&full).is_ok_and(mine)
                {
                    spool.push(&key)?;
                }
                Ok(())
            });
            match list.await {
                Ok(()) => return Ok(spool),
                // Somebody else has it.
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    if begin.elapsed() + pause > limit {
                        let seconds = limit.as_secs_f64();
                        let busy = Error::timeout(format!(
                            "no answer within {seconds} s (a list of keys: {})",
                            e.context()
                        ));
                        return Err(busy.in_place(e.place().name.clone()));
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
                Err(e) if e.kind() == ErrorKind::Unsupported && how == "hash" => break,
                Err(e) => return Err(e),
            }
        }
    }
    unreachable!("the last way returns")
}
