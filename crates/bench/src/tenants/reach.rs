//! How a tenant's records are reached: in the one table, in a database that is opened when it is needed, or by HTTP.

use std::{collections::HashMap, sync::Arc, thread, time::Duration};

use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};

use super::{
    TABLE,
    http::Client,
    people::{Ask, Insert},
    shared,
};
use crate::{
    Error, ErrorKind, Result,
    format::Format,
    record::{Document, Value},
    store::{self, Key, Part, Pools, Row, Store},
};

/// How tenants are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Way {
    /// One table for all.
    Shared,
    /// A database each.
    Databases,
    /// A schema each, in one database.
    Schemas,
}

/// Where tenants are: all that another process has to be told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Spec {
    pub way: Way,
    /// The database of all, or the one that the databases of tenants are beside.
    pub url: String,
    /// Of each tenant: its name in the table, its database or its schema.
    pub names: Vec<String>,
    /// How many databases are open at once, at most.
    pub open: usize,
}

impl Spec {
    /// Where a tenant's records are.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where there are no databases.
    pub(super) fn url_of(&self, tenant: usize) -> Result<String> {
        self.part_of(tenant).map_or_else(|| Ok(self.url.clone()), |part| part.url(&self.url))
    }

    /// What of it is a tenant's, where that is not a table of all.
    fn part_of(&self, tenant: usize) -> Option<Part<'_>> {
        let name = &self.names[tenant];
        match self.way {
            Way::Shared => None,
            Way::Databases => Some(Part::Database(name)),
            Way::Schemas => Some(Part::Schema(name)),
        }
    }
}

/// A tenant's table that is open.
struct Handle {
    /// When it was used last, as the clock has it.
    used: u64,
    store: Arc<dyn Store>,
    /// How much of the room it takes: of one that shares its connections, a part of what others take.
    weight: u32,
}

/// The tables of tenants, in this process. Of databases so many are open at most, or [`Pools::PARTS`] times as many where
/// they share connections; the least recently used is closed.
pub(super) struct Handles {
    spec: Spec,
    /// The one table, where there is one.
    table: Option<Arc<dyn Store>>,
    pools: Pools,
    open: HashMap<usize, Handle>,
    /// Counts what was asked.
    clock: u64,
}

impl Handles {
    /// Opens the one table; of databases none.
    ///
    /// # Errors
    /// Of the store.
    pub(super) async fn new(spec: Spec) -> Result<Handles> {
        let table = match spec.way {
            Way::Shared => Some(store::open(&spec.url).await?.table(TABLE)?),
            Way::Databases | Way::Schemas => None,
        };
        Ok(Handles { spec, table, pools: Pools::default(), open: HashMap::new(), clock: 0 })
    }

    /// One in which every tenant has this store.
    pub(super) fn of(spec: Spec, table: Arc<dyn Store>) -> Handles {
        let open = (0..spec.names.len())
            .map(|tenant| (tenant, Handle { used: 0, store: Arc::clone(&table), weight: 0 }))
            .collect();
        Handles { spec, table: None, pools: Pools::default(), open, clock: 0 }
    }

    /// The table of a tenant.
    ///
    /// # Errors
    /// Of the store.
    pub(super) async fn of_tenant(&mut self, tenant: usize) -> Result<&Arc<dyn Store>> {
        self.clock += 1;
        if !self.open.contains_key(&tenant) {
            let (store, weight) = match (&self.table, self.spec.part_of(tenant)) {
                // It has no connection of its own: all are kept.
                (Some(table), _) => (shared::part(table, &self.spec.names[tenant])?, 0),
                (None, Some(part)) => {
                    make_room(&mut self.open, self.spec.open);
                    let place = self.pools.open(&self.spec.url, part).await?;
                    let weight = if place.is_part() { 1 } else { Pools::PARTS };
                    (place.table(TABLE)?, weight)
                }
                (None, None) => return Err(Error::invalid("no table of all tenants")),
            };
            self.open.insert(tenant, Handle { used: 0, store, weight });
        }
        let clock = self.clock;
        let gone = || Error::invalid("a tenant that was just opened is not there");
        let handle = self.open.get_mut(&tenant).ok_or_else(gone)?;
        handle.used = clock;
        Ok(&handle.store)
    }

    /// How many are open.
    #[cfg(test)]
    pub(super) fn opened(&self) -> usize {
        self.open.len()
    }
}

/// How much may be open at once.
fn room(open: usize) -> u64 {
    open.max(1) as u64 * u64::from(Pools::PARTS)
}

/// Closes the least recently used, until there is room for one more.
fn make_room(open: &mut HashMap<usize, Handle>, most: usize) {
    while open.values().map(|handle| u64::from(handle.weight)).sum::<u64>() >= room(most) {
        let oldest = open.iter().min_by_key(|(_, handle)| handle.used).map(|(at, _)| *at);
        let Some(oldest) = oldest else { return };
        open.remove(&oldest);
    }
}

/// The gateway, by HTTP.
pub(super) struct Served {
    pub client: Client,
    /// A key of each tenant.
    pub keys: Arc<Vec<String>>,
    /// Whether it waits where it is told to come later (429), as it may where nothing is timed: a gateway that was just
    /// started looks up so many keys a second.
    pub patient: bool,
}

/// How long a patient client waits before it asks again, and how often.
const LATER: Duration = Duration::from_millis(100);
const TRIES: u32 = 600;

impl Served {
    /// Sends a request of a tenant; gives status and body.
    fn send(
        &mut self,
        asked: (&str, &str),
        tenant: usize,
        body: Option<&[u8]>,
    ) -> Result<(u16, &[u8])> {
        for _ in 0..TRIES {
            let (status, _) = self.client.send(asked, &self.keys[tenant], body)?;
            if status != 429 || !self.patient {
                return Ok((status, self.client.body()));
            }
            thread::sleep(LATER);
        }
        Err(Error::unavailable("the gateway has no time for this client"))
    }
}

/// How an arm is asked.
pub(super) enum Reach {
    Stores(Handles),
    Gateway(Served),
}

impl Reach {
    /// Has a connection that is fresh, where one that rested may have been closed.
    ///
    /// # Errors
    /// Of the connection.
    pub(super) fn wake(&mut self) -> Result<()> {
        match self {
            Reach::Stores(_) => Ok(()),
            Reach::Gateway(served) => served.client.connect(),
        }
    }

    /// How many tenants are worth asking before anything is timed: as many as stay open, once it is known how many those are.
    pub(super) fn stay_open(&self) -> Option<usize> {
        let Reach::Stores(handles) = self else { return None };
        let room = room(handles.spec.open);
        Some(match handles.open.values().next()?.weight {
            0 => handles.spec.open,
            weight => (room / u64::from(weight)) as usize,
        })
    }

    /// Whether it waits where it is told to come later: not while anything is timed.
    pub(super) fn patient(&mut self, patient: bool) {
        if let Reach::Gateway(served) = self {
            served.patient = patient;
        }
    }

    /// The records that a question asks for, read in full.
    ///
    /// # Errors
    /// Of the store or the gateway.
    pub(super) async fn find(&mut self, ask: &Ask) -> Result<Vec<Row>> {
        match self {
            Reach::Stores(handles) => {
                let store = handles.of_tenant(ask.tenant).await?;
                store.find(&ask.query).await?.try_concat().await
            }
            Reach::Gateway(served) => {
                let (status, body) = served.send(("GET", &ask.path), ask.tenant, None)?;
                rows(expected(status, body, &[200])?)
            }
        }
    }

    /// Writes a record that is new.
    ///
    /// # Errors
    /// Of the store or the gateway.
    pub(super) async fn insert(&mut self, insert: &Insert) -> Result<()> {
        match self {
            Reach::Stores(handles) => {
                let store = handles.of_tenant(insert.tenant).await?;
                store.put(std::slice::from_ref(&insert.row)).await
            }
            Reach::Gateway(served) => {
                let asked = ("PUT", insert.path.as_str());
                let (status, body) = served.send(asked, insert.tenant, Some(&insert.body))?;
                expected(status, body, &[201]).map(drop)
            }
        }
    }

    /// One record by its key.
    ///
    /// # Errors
    /// Of the store or the gateway.
    pub(super) async fn get(&mut self, tenant: usize, key: &Key) -> Result<Option<Document>> {
        match self {
            Reach::Stores(handles) => {
                let store = handles.of_tenant(tenant).await?;
                Ok(store.get(std::slice::from_ref(key)).await?.pop().flatten())
            }
            Reach::Gateway(served) => {
                let path = format!("/v1/docs/{TABLE}/{}", key.as_str());
                let (status, body) = served.send(("GET", &path), tenant, None)?;
                match status {
                    404 => Ok(None),
                    _ => Format::Json.decode_document(expected(status, body, &[200])?).map(Some),
                }
            }
        }
    }
}

/// The body, where the status is one of these.
fn expected<'b>(status: u16, body: &'b [u8], good: &[u16]) -> Result<&'b [u8]> {
    if good.contains(&status) {
        return Ok(body);
    }
    let said: String = String::from_utf8_lossy(body).chars().take(300).collect();
    Err(Error::unavailable(format!("the gateway answered {status}: {said}")))
}

/// The rows of a page of the gateway.
fn rows(body: &[u8]) -> Result<Vec<Row>> {
    let wrong = || Error::new(ErrorKind::Malformed, "a page of the gateway has no items");
    let mut page = Format::Json.decode_document(body)?;
    let Some(Value::List(items)) = page.remove("items") else { return Err(wrong()) };
    let row = |item: Value| {
        let Value::Map(mut item) = item else { return Err(wrong()) };
        match (item.remove("id"), item.remove("doc")) {
            (Some(Value::Text(key)), Some(Value::Map(record))) => {
                Ok(Row { key: Key::new(key)?, record })
            }
            _ => Err(wrong()),
        }
    };
    items.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "sqlite")]
    use crate::store::Databases;

    #[test]
    fn a_page_has_rows() {
        let body =
            br#"{"items":[{"id":"a","rev":"1","doc":{"age":3}},{"id":"b","doc":{}}],"next":null}"#;
        let rows = rows(body).unwrap();
        assert_eq!((rows.len(), rows[0].key.as_str()), (2, "a"));
        assert_eq!(rows[0].record.get("age"), Some(&Value::Int(3)));
        for wrong in [&b"{}"[..], b"{\"items\":[3]}", b"[]", b"{\"items\":[{\"id\":1,\"doc\":{}}]}"]
        {
            assert!(super::rows(wrong).is_err());
        }
        assert!(expected(503, b"later", &[200]).unwrap_err().to_string().contains("503: later"));
    }

    #[test]
    fn each_way_has_its_urls() {
        let spec =
            |way, url: &str| Spec { way, url: url.into(), names: vec!["t1".into()], open: 1 };
        let of = |way, url| spec(way, url).url_of(0).unwrap();
        assert_eq!(of(Way::Databases, "sqlite:/x/a.db?pool=1"), "sqlite:/x/a.db.t1?pool=1");
        assert_eq!(of(Way::Schemas, "postgres://h/db"), "postgres://h/db?schema=t1");
        assert_eq!(of(Way::Schemas, "postgres://h/db?pool=1"), "postgres://h/db?pool=1&schema=t1");
        assert_eq!(of(Way::Shared, "mysql://h/db"), "mysql://h/db");
        assert!(spec(Way::Databases, "memory:").url_of(0).is_err());
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn so_many_databases_are_open_and_the_least_recently_used_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("a.db").display());
        let names: Vec<String> = (0..4).map(|n| format!("t{n}")).collect();
        for name in &names {
            Databases::create(&url, name).await.unwrap();
        }
        let spec = Spec { way: Way::Databases, url, names, open: 2 };
        let mut handles = Handles::new(spec).await.unwrap();
        for (tenant, open) in [(0, 1), (1, 2), (0, 2), (2, 2), (0, 2), (3, 2)] {
            handles.of_tenant(tenant).await.unwrap();
            assert_eq!(handles.opened(), open, "{tenant}");
        }
        let mut left: Vec<usize> = handles.open.keys().copied().collect();
        left.sort_unstable();
        assert_eq!(left, [0, 3]);
    }
}
