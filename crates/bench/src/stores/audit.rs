//! The durability that is observed (rule 4): syncs for each acknowledged write, counted from outside with
//! strace, and what the data lie on, in a pass that is not timed.
//!
//! - `watched.rs`: which processes are looked at
//! - `syncs.rs`: which of their calls make data durable; `seen_files.rs`: what their files lie on
//! - `sight.rs`: strace on them
//! - `results/durability.rs`: what follows from it

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    own::Made,
    prove,
    seen_files::names_files_as_we_do,
    sight::Sight,
    syncs::Syncs,
    target::{Opened, Target},
    watched,
};
use crate::{
    Error, ErrorKind, Result,
    durability::{Bound, Medium, Tier},
    quiet,
    record::dataset::Dataset,
    results::{Durability, Later, Lies, Limited},
    scratch::Scratch,
    server::data_folder,
    stop::Stop,
    store::{self, Column, Key, Layout, Row, Shape, Store},
};

/// Writes that are watched, each acknowledged before the next.
const WRITES: u64 = 100;
/// The most pages of a log that are filled to see it synced.
const PAGES: u64 = 10_000;
/// How often it is looked whether it is to end while a sync is waited for.
const LOOK: Duration = Duration::from_millis(20);
/// How long work on other threads may take to end then.
const GRACE: Duration = Duration::from_millis(300);
/// How long a sync that follows later is waited for, at least and at most.
const WAIT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(5));
/// Synced writes that are timed where the data lie; the median is kept.
const TIMED: usize = 5;

/// What was observed of a store.
#[derive(Debug, Clone)]
pub struct Audit {
    /// The store, as it was named.
    pub label: String,
    /// The product and its version.
    pub product: String,
    /// Asked for, set, observed.
    pub durability: Durability,
    /// What decides it, as read back.
    pub settings: BTreeMap<String, String>,
    /// Acknowledged writes that were watched; 0 where none could be.
    pub writes: u64,
    /// Calls that sync, by name.
    pub calls: BTreeMap<String, u64>,
    /// Calls that sync and make no write durable, by what is wrong with them.
    pub idle: BTreeMap<&'static str, u64>,
    /// What was made for it in a store of the user's own, and dropped after it.
    pub made: Option<String>,
}

/// Observes one store: starts it, writes, counts, stops it. In a store of the user's own it writes only
/// where it can see the syncs, into a database made for that, or a table of a name that nobody has.
///
/// # Errors
/// Where it cannot be opened. That syncs cannot be counted is no error, but a remark.
pub fn audit(target: &Target) -> Result<Audit> {
    let audit = audit_until(target, &Stop::default())?;
    audit.ok_or_else(|| Error::invalid("an audit that nobody stopped was stopped"))
}

/// The same until `stop` is set; then `None`, and what was made for it is dropped.
///
/// # Errors
/// As [`audit`].
pub fn audit_until(target: &Target, stop: &Stop) -> Result<Option<Audit>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let scratch = Scratch::new(Some(&data_folder()))?;
    let done = runtime.block_on(async {
        let mut made = Made::default();
        let audit = audited(target, scratch.path(), &mut made, stop).await;
        let dropped = made.drop_all().await;
        match audit {
            Err(_) if stop.is_set() => dropped.map(|()| None),
            audit => audit.and_then(|audit| dropped.map(|()| Some(audit))),
        }
    });
    if stop.is_set() {
        // What still works writes into the folder, which is removed next.
        runtime.shutdown_timeout(GRACE);
    }
    done
}

async fn audited(target: &Target, folder: &Path, made: &mut Made, stop: &Stop) -> Result<Audit> {
    const TABLE: &str = "audit";
    let wanted = target.clone();
    let server = stop.apart(move || wanted.start()).await?;
    // Nothing is made where nothing can be seen.
    let seen = target.own_url().map_or(Ok(()), |url| watched::of_url(url).map(drop));
    let told = if seen.is_ok() { made.make(target, 0).await? } else { None };
    let url = made.at(target).url(server.as_ref(), folder);
    let place = stop.interruptible(store::open(&url)).await?;
    let opened = Opened { place, url, relays: Vec::new(), server };
    let (mut kept, bound) = stop.interruptible(prove::kept(target, &opened.place)).await?;
    let mut counted = Counted::default();
    let look = Look { target, opened: &opened, folder, bound, stop };
    match seen {
        Err(why) => look.unseen(why.context(), &mut kept.durability),
        Ok(()) => {
            let store = opened.place.table(&made.name(target, TABLE))?;
            made.absent(target, TABLE, &*store).await?;
            counted = look.at(&store, &mut kept.durability).await;
            stop.check()?;
        }
    }
    Ok(Audit {
        label: target.label.clone(),
        product: format!("{} {}", kept.product, kept.version).trim().to_owned(),
        writes: if kept.durability.syncs.is_some() { WRITES } else { 0 },
        durability: kept.durability,
        settings: kept.settings,
        calls: counted.calls,
        idle: counted.idle,
        made: told,
    })
}

/// The calls that synced, by name, and those that made no write durable.
#[derive(Debug, Default)]
pub(super) struct Counted {
    calls: BTreeMap<String, u64>,
    idle: BTreeMap<&'static str, u64>,
}

/// A store to be observed.
pub(super) struct Look<'a> {
    pub target: &'a Target,
    pub opened: &'a Opened,
    /// Where its data lie, if it is in this process and not the user's own.
    pub folder: &'a Path,
    /// What limits the loss of t2, where the store says.
    pub bound: Option<Bound>,
    /// Ends it; its table is dropped all the same.
    pub stop: &'a Stop,
}

impl Look<'_> {
    /// Writes to a table of its own while all processes of the store are watched, and puts down what was
    /// seen, and what follows from it.
    pub(super) async fn at(&self, store: &Arc<dyn Store>, durability: &mut Durability) -> Counted {
        self.lies(durability);
        let mut counted = Counted::default();
        match self.watched(&**store, durability).await {
            Ok(found) => counted = found,
            Err(e) => durability.unseen = Some(e.context().to_owned()),
        }
        durability.judge();
        counted
    }

    /// Puts down why syncs are not observed, and what follows from the rest.
    pub(super) fn unseen(&self, why: &str, durability: &mut Durability) {
        self.lies(durability);
        durability.unseen = Some(why.to_owned());
        durability.judge();
    }

    /// Puts down what the data lie on, where a folder is known. What keeps its records in memory has a
    /// folder all the same.
    fn lies(&self, durability: &mut Durability) {
        durability.medium = match &self.opened.server {
            _ if durability.set.as_deref() == Some(Tier::T0.name()) => None,
            Some(server) => lies(server.data()),
            None if self.target.own_url().is_none() => lies(self.folder),
            None => None,
        };
    }

    async fn watched(&self, store: &dyn Store, durability: &mut Durability) -> Result<Counted> {
        let mut layout = Layout::plain();
        if store.shape() == Shape::Columns {
            layout = layout.with_columns(Column::infer([&row(0)?.record])?);
        }
        store.prepare(&layout).await?;
        let seen = self.stop.interruptible(self.written(store, durability)).await;
        let dropped = store.drop_table().await;
        let counted = seen?;
        dropped?;
        Ok(counted)
    }

    async fn written(&self, store: &dyn Store, durability: &mut Durability) -> Result<Counted> {
        // The first write may make more than itself: a connection, and a process behind it.
        store.put(&[row(0)?]).await?;
        let mut sight = self.sight()?;
        for n in 1..=WRITES {
            store.put(&[row(n)?]).await?;
            // What a descriptor or a mapping is of can be asked while it is there.
            sight.catch_up();
        }
        let mut seen = sight.end()?;
        let mut written = WRITES + 1;
        // What lies in memory says how often it syncs, too; that this is for nothing is said of where
        // it lies.
        let in_memory = match self.target.own_url() {
            Some(_) => seen.main_file().is_some_and(|(_, _, in_memory)| in_memory),
            None => durability.medium.as_ref().is_some_and(|lies| lies.volatile.is_some()),
        };
        let calls = seen.where_data_lie(in_memory).calls.clone();
        let idle = if in_memory { BTreeMap::new() } else { seen.idle.clone() };
        let each = seen.where_data_lie(in_memory).count() as f64 / WRITES as f64;
        let set = durability.set.as_ref().and_then(|tier| tier.parse::<Tier>().ok());
        if each < Durability::SYNCED {
            let hidden = seen.hidden as f64 / WRITES as f64;
            if hidden >= Durability::SYNCED && set.is_none_or(|set| set == Tier::T3) {
                let what = "it hands its writes to the kernel by io_uring or io_submit, where syncs \
                            cannot be seen";
                return Err(Error::unavailable(what));
            }
            if set.is_none_or(|set| set >= Tier::T2) {
                let (later, more) = self.later(store, &mut written, in_memory).await?;
                durability.later = Some(later);
                seen.add(more);
            }
        }
        if self.target.own_url().is_some() && set != Some(Tier::T0) {
            let Some((name, file, _)) = seen.main_file() else {
                let what = "the process that listens there writes to no file: something else keeps \
                            the data";
                return Err(Error::unavailable(what));
            };
            let medium = Medium::of_descriptor(file.thread, file.descriptor);
            durability.medium = medium.or_else(|| Medium::of_name(Path::new(name))).map(described);
        }
        if set.is_none() && seen.main_file().is_none() {
            let (most, why) = (Tier::T0.to_string(), "its processes write to no file".to_owned());
            durability.limit = Some(Limited { most, why });
        }
        match store.count().await {
            Ok(there) if there != written => {
                let what = format!("{there} of {written} records are there");
                return Err(Error::new(ErrorKind::Mismatch, what));
            }
            Err(e) if e.kind() != ErrorKind::Unsupported => return Err(e),
            _ => {}
        }
        durability.syncs = Some(each);
        Ok(Counted { calls, idle })
    }

    /// Whether a sync follows a write that was acknowledged without one: within the time that the store
    /// says, or once its log has grown by so much as it says.
    async fn later(
        &self,
        store: &dyn Store,
        written: &mut u64,
        in_memory: bool,
    ) -> Result<(Later, Syncs)> {
        let mut sight = self.sight()?;
        let mut put = async || {
            let done = store.put(&[row(*written)?]).await;
            *written += 1;
            done
        };
        let within = match self.bound {
            Some(bound @ Bound::Pages(pages)) => {
                // Each write fills one page of the log at least.
                for _ in 0..=pages.min(PAGES) {
                    put().await?;
                    sight.catch_up();
                    if sight.synced(in_memory) {
                        break;
                    }
                }
                bound.to_string()
            }
            bound => {
                // Some count their interval from the end of the last sync, and some sleep one more.
                let wait = match bound {
                    Some(Bound::Time(every)) => (2 * every).clamp(WAIT.0, WAIT.1),
                    _ => WAIT.0,
                };
                put().await?;
                let begin = Instant::now();
                while !sight.synced(in_memory) && begin.elapsed() < wait {
                    sight.wait(LOOK.min(wait.saturating_sub(begin.elapsed())));
                    // The wait itself keeps the thread.
                    tokio::task::yield_now().await;
                }
                format!("{} s", wait.as_secs_f64())
            }
        };
        let syncs = sight.end()?;
        Ok((Later { within, seen: syncs.where_data_lie(in_memory).count() > 0 }, syncs))
    }

    /// A look at the processes that keep it.
    fn sight(&self) -> Result<Sight> {
        let folder = match &self.opened.server {
            Some(server) => Some(server.data()),
            None if self.target.own_url().is_none() => Some(self.folder),
            None => None,
        };
        let processes = watched::processes(self.target, self.opened)?;
        // Where one has another root (FerretDB's PostgreSQL), names of files cannot be compared.
        let folder =
            folder.filter(|_| processes.iter().all(|process| names_files_as_we_do(*process)));
        Sight::begin(&processes, folder)
    }
}

fn row(n: u64) -> Result<Row> {
    let record = Dataset::Users.document(1, n).unwrap_or_default();
    Ok(Row { key: Key::new(n.to_string())?, record })
}

/// What a folder lies on, and how long a synced write of 4 KiB takes there.
fn lies(folder: &Path) -> Option<Lies> {
    let mut lies = described(Medium::of(folder)?);
    if let Ok(mut file) = tempfile::tempfile_in(folder) {
        let mut times: Vec<u64> = (0..TIMED).filter_map(|_| quiet::sync(&mut file)).collect();
        times.sort_unstable();
        lies.sync_ns = times.get(times.len() / 2).copied();
        lies.sync_span_ns = times.first().copied().zip(times.last().copied());
    }
    Some(lies)
}

fn described(medium: Medium) -> Lies {
    Lies { filesystem: medium.filesystem, volatile: medium.volatile, ..Lies::default() }
}
