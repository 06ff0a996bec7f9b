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
    store::{self, Key, Part, Place, Pools, Row, Store},
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
    /// How many databases are open at once, at most; of those that share connections more ([`Pools::PARTS`]).
    pub open: usize,
}

impl Spec {
    /// Where a tenant's records are, opened.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where there are no databases; of the store.
    pub(super) async fn place(&self, pools: &Pools, tenant: usize) -> Result<Place> {
        let name = &self.names[tenant];
        match self.way {
            Way::Shared => store::open(&self.url).await,
            Way::Databases => pools.open(&self.url, Part::Database(name)).await,
            Way::Schemas => pools.open(&self.url, Part::Schema(name)).await,
        }
    }
}

/// The tables of tenants, in this process. Of databases so many are open at most; the least recently used is closed.
pub(super) struct Handles {
    spec: Spec,
    /// The one table, where there is one.
    table: Option<Arc<dyn Store>>,
    pools: Pools,
    open: HashMap<usize, (u64, Arc<dyn Store>)>,
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
        let open = (0..spec.names.len()).map(|tenant| (tenant, (0, Arc::clone(&table)))).collect();
        Handles { spec, table: None, pools: Pools::default(), open, clock: 0 }
    }

    /// The table of a tenant.
    ///
    /// # Errors
    /// Of the store.
    pub(super) async fn of_tenant(&mut self, tenant: usize) -> Result<&Arc<dyn Store>> {
        self.clock += 1;
        if !self.open.contains_key(&tenant) {
            let store = match &self.table {
                // A part has no connection of its own: all are kept.
                Some(table) => shared::part(table, &self.spec.names[tenant])?,
                None => {
                    self.make_room();
                    self.spec.place(&self.pools, tenant).await?.table(TABLE)?
                }
            };
            self.open.insert(tenant, (0, store));
        }
        let clock = self.clock;
        let gone = || Error::invalid("a tenant that was just opened is not there");
        let (used, store) = self.open.get_mut(&tenant).ok_or_else(gone)?;
        *used = clock;
        Ok(store)
    }

    fn make_room(&mut self) {
        while self.open.len() >= self.spec.open.max(1) {
            let oldest = self.open.iter().min_by_key(|(_, (used, _))| *used).map(|(at, _)| *at);
            let Some(oldest) = oldest else { return };
            self.open.remove(&oldest);
        }
    }

    /// How many are open.
    #[cfg(test)]
    pub(super) fn opened(&self) -> usize {
        self.open.len()
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
