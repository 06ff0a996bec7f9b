//! Writes with a key, which are done once however often they are sent, also over a restart in the middle.
//!
//! A row in the tenant's own database says what is to be done before it is done: the revision that is there, and the one
//! that the document will get. A repetition finds the row. Where it does not say that all was done, the document tells: it
//! has the new revision (it was done), or the old one (it was not, and is done now, by a conditional write that only one
//! of several can do). Where it has a third one, somebody else wrote meanwhile, and whether this write was done before
//! cannot be known: the answer says so. It is never done twice. A first try before which somebody else wrote was certainly not
//! done, and begins again with what is there then.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use steelyard_base::ErrorKind;
use steelyard_store::{
    record::{self, Document, Kind, Time, Value},
    store::{Expected, Filter, Key, Layout, Row, Store, query::Test},
};

use super::{
    put::{Done, found},
    revision::{self, Found, Wanted},
};
use crate::{catalog, problem::Problem, random, tenants::TenantDb};

/// The table of a tenant's keys.
const TABLE: &str = "_idempotency";
/// The longest key, in bytes.
const LONGEST: usize = 128;
/// What is kept of a key beside itself, about, in bytes.
pub(super) const OF_A_KEY: usize = 300;
/// How long a key is remembered, in seconds.
const REMEMBERED: i64 = 24 * 3600;
/// How often a write begins again that other writers come before.
const TRIES: usize = 100;

/// A write of one document.
pub(super) struct Change<'a> {
    pub store: &'a dyn Store,
    pub id: &'a Key,
    /// None to delete.
    pub document: Option<Document>,
    pub wanted: &'a Wanted,
    /// Why it is not to be done, unless it was begun before.
    pub over: Option<Problem>,
}

/// What is kept of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Begun {
    /// A hash of what was asked.
    request: String,
    /// The revision that was there: empty for none, `-` for a document without one.
    base: String,
    /// The revision that is written.
    planned: String,
    /// Whether it was done, or refused for good.
    state: State,
    /// When it was begun.
    at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Begun,
    Done,
    Lost,
}

/// Does a change once for a key.
pub(super) async fn once(
    tenant: &TenantDb,
    key: &str,
    request: &[&[u8]],
    mut change: Change<'_>,
) -> Result<Done, Problem> {
    if !(1..=LONGEST).contains(&key.len())
        || !key.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
    {
        return Err(Problem::invalid(format!(
            "Idempotency-Key is 1 to {LONGEST} printable characters"
        )));
    }
    change.store.abilities().can_conditional()?;
    if let Some(document) = &change.document {
        // Before anything is begun.
        let record = revision::given(document.clone(), &revision::fresh()?);
        super::checked(change.store, &Row { key: change.id.clone(), record })?;
    }
    // By their age they are forgotten.
    let layout = Layout::plain().with_index("at".parse()?, Kind::Text);
    let (table, key) = (tenant.open().own_table(TABLE, &layout).await?, Key::new(key)?);
    let request = hash(request, change.wanted);
    // Another request with this key may begin between the two questions; then its row is there.
    for _ in 0..2 {
        if let Some(begun) = read(&*table, &key).await? {
            if begun.request != request {
                return Err(Problem::unprocessable(
                    "this Idempotency-Key was used for another request",
                ));
            }
            return finish(&*table, &key, begun, &change, true).await;
        }
        let there = found(change.store, change.id).await?;
        if change.document.is_none() && there == Found::Absent {
            return Err(Problem::not_found("no document of this id"));
        }
        change.wanted.fits(&there)?;
        if let Some(problem) = change.over.take() {
            return Err(problem);
        }
        let begun = Begun {
            request: request.clone(),
            base: base(there),
            planned: revision::fresh()?,
            state: State::Begun,
            at: catalog::now()?,
        };
        if table.put_if(&row(&key, &begun)?, &Expected::Absent).await? {
            forget_old(&table);
            return finish(&*table, &key, begun, &change, false).await;
        }
    }
    Err(Problem::conflict("another request with this Idempotency-Key is in progress"))
}

/// Does what a row says, unless it is done.
async fn finish(
    table: &dyn Store,
    key: &Key,
    mut begun: Begun,
    change: &Change<'_>,
    repeated: bool,
) -> Result<Done, Problem> {
    let mut state = begun.state;
    for _ in 0..TRIES {
        if state != State::Begun {
            break;
        }
        if apply(&begun, change).await? {
            state = State::Done;
        } else if repeated {
            state = State::Lost;
        } else if let Err(problem) = rebase(table, key, &mut begun, change).await {
            // It was not done, and is not going to be.
            table.remove(std::slice::from_ref(key)).await?;
            return Err(problem);
        }
    }
    if state != begun.state {
        table.put(&[row(key, &Begun { state, ..begun.clone() })?]).await?;
    }
    match state {
        State::Done => {
            Ok(Done { revision: begun.planned, created: begun.base.is_empty(), repeated })
        }
        _ => Err(Problem::conflict(
            "somebody else wrote this document while the request was in progress; whether it was done before that is not \
             known. Look at the document, and use a new Idempotency-Key",
        )),
    }
}

/// Begins again with what is there now: another writer was there between the two, so this one has not written.
async fn rebase(
    table: &dyn Store,
    key: &Key,
    begun: &mut Begun,
    change: &Change<'_>,
) -> Result<(), Problem> {
    let there = found(change.store, change.id).await?;
    if change.document.is_none() && there == Found::Absent {
        return Err(Problem::not_found("no document of this id"));
    }
    change.wanted.fits(&there)?;
    begun.base = base(there);
    Ok(table.put(&[row(key, begun)?]).await?)
}

/// What is there, as a row has it.
fn base(there: Found) -> String {
    match there {
        Found::Absent => String::new(),
        Found::Unversioned => "-".into(),
        Found::Revision(revision) => revision,
    }
}

/// Whether the change is done, now or before.
async fn apply(begun: &Begun, change: &Change<'_>) -> Result<bool, Problem> {
    let (store, id) = (change.store, change.id);
    let base = match &*begun.base {
        "" => Found::Absent,
        "-" => Found::Unversioned,
        revision => Found::Revision(revision.to_owned()),
    };
    let is_done = |there: &Found| match change.document {
        Some(_) => *there == Found::Revision(begun.planned.clone()),
        None => *there == Found::Absent,
    };
    let changed = match (&change.document, base.expected()) {
        (Some(document), expected) => {
            let row =
                Row { key: id.clone(), record: revision::given(document.clone(), &begun.planned) };
            match expected {
                Some(expected) => store.put_if(&row, &expected).await?,
                // It has no revision to expect. Written again, it is the same.
                None if found(store, id).await? == base => {
                    store.put(&[row]).await?;
                    true
                }
                None => false,
            }
        }
        (None, Some(expected)) => store.remove_if(id, &expected).await?,
        (None, None) if found(store, id).await? == base => {
            store.remove(std::slice::from_ref(id)).await? > 0
        }
        (None, None) => false,
    };
    Ok(changed || is_done(&found(store, id).await?))
}

async fn read(table: &dyn Store, key: &Key) -> Result<Option<Begun>, Problem> {
    let found = table.get(std::slice::from_ref(key)).await?.pop().flatten();
    found.map(|record| Ok(record::from_value(Value::Map(record))?)).transpose()
}

fn row(key: &Key, begun: &Begun) -> Result<Row, Problem> {
    match record::to_value(begun)? {
        Value::Map(record) => Ok(Row { key: key.clone(), record }),
        _ => Err(Problem::internal("a row that is no map")),
    }
}

fn hash(request: &[&[u8]], wanted: &Wanted) -> String {
    let mut hash = Sha256::new();
    let wanted = format!("{wanted:?}");
    for part in request.iter().copied().chain([wanted.as_bytes()]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    random::as_hex(&hash.finalize())
}

/// Now and then, forgets the keys of the day before. Where that fails, they stay until the next time.
fn forget_old(table: &Arc<dyn Store>) {
    let one_in = |n: u8| random::bytes::<1>().is_ok_and(|[byte]| byte % n == 0);
    if !one_in(64) {
        return;
    }
    let old = catalog::now().and_then(|now| {
        let (seconds, _) = now.parse::<Time>()?.to_unix();
        let before = Time::from_unix(seconds - REMEMBERED, 0)?.to_string();
        Filter::field("at", Test::Lt(Value::Text(before)))
    });
    let table = table.clone();
    // The request does not wait for it.
    tokio::spawn(async move {
        let forgotten = match old {
            Ok(old) => table.delete(&old).await.map(drop),
            Err(e) => Err(e),
        };
        if let Err(e) = forgotten
            && e.kind() != ErrorKind::Unsupported
        {
            tracing::warn!(target: "gateway", error = e.chain(), "old idempotency keys are still there");
        }
    });
}
