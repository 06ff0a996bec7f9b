//! A gateway with two tenants, and a small client of HTTP that sends just what it is told.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{Arc, Weak},
};

use futures_util::TryStreamExt;
use serde_json::Value;
use steelyard_serve::{
    ApiKey, Catalog, Clock, Config, Gateway, Pepper, Scope, TenantLimits, TenantName, Tenants,
};
use steelyard_store::store::{KeyRange, one_by_one, open};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

/// A gateway that runs.
pub struct Running {
    pub address: String,
    pub operators: String,
    pub clock: Clock,
    pub admin: Tenants,
    /// Keys of the tenants `a` and `b`.
    pub a: ApiKey,
    pub b: ApiKey,
    /// A key of `a` that may only read.
    pub reader: ApiKey,
    pub folder: tempfile::TempDir,
    /// Not kept open by the test.
    pub gateway: Weak<Gateway>,
    pub layout: String,
    config: Config,
    pepper: Pepper,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<steelyard_serve::Result<()>>,
}

pub fn name(text: &str) -> TenantName {
    TenantName::new(text).unwrap()
}

/// Two shards of SQLite, and more of a configuration.
fn configured(folder: &std::path::Path, layout: &str, more: &str) -> Config {
    let path = folder.display();
    let mut text = format!("catalog = \"sqlite:{path}/catalog.db\"\nsecret_file = \"-\"\n");
    for shard in ["one", "two"] {
        text += &format!(
            "[shard.{shard}]\nurl = \"sqlite:{path}/{shard}.db\"\nlayout = \"{layout}\"\n"
        );
    }
    Config::from_toml(&(text + more)).unwrap()
}

impl Running {
    /// With tenants in the layout that `STEELYARD_TEST_LAYOUT` names, `own` if none; all tests hold in each.
    pub async fn start(limits: &str) -> Running {
        let layout = std::env::var("STEELYARD_TEST_LAYOUT");
        Running::start_in(layout.as_deref().unwrap_or("own"), limits).await
    }

    pub async fn start_in(layout: &str, limits: &str) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let config = configured(folder.path(), layout, &format!("[limits]\n{limits}"));
        let pepper = Pepper::fresh().unwrap();
        let catalog = Arc::new(Catalog::open(&config.catalog).await.unwrap());
        let admin = Tenants::with(config.clone(), catalog, pepper.clone());
        let mut keys = Vec::new();
        for (tenant, scope) in [("a", Scope::Write), ("b", Scope::Write), ("a", Scope::Read)] {
            if keys.len() < 2 {
                // Where tenants share tables, these do.
                let on = (layout != "own").then_some("one");
                admin.add(&name(tenant), on, TenantLimits::default()).await.unwrap();
            }
            keys.push(admin.add_key(&name(tenant), scope, "test").await.unwrap());
        }
        let [a, b, reader] = keys.try_into().map_err(drop).unwrap();
        let clock = Clock::by_hand();
        let (address, operators, stop, task, gateway) = serve(&config, &pepper, &clock).await;
        Running {
            gateway,
            address,
            operators,
            clock,
            admin,
            a,
            b,
            reader,
            folder,
            layout: layout.to_owned(),
            config,
            pepper,
            stop: Some(stop),
            task,
        }
    }

    /// Whose databases there are, or whose records in those that tenants share: by shard and name.
    pub async fn databases(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        if self.layout == "own" {
            for file in std::fs::read_dir(self.folder.path()).unwrap() {
                let name = file.unwrap().file_name().into_string().unwrap();
                if name.contains("steelyard_") && name.ends_with(|c: char| c.is_ascii_hexdigit()) {
                    found.insert(name);
                }
            }
            return found;
        }
        for shard in ["one", "two"] {
            let url = format!("sqlite:{}/{shard}.db", self.folder.path().display());
            let place = open(&url).await.unwrap();
            for name in place.tables().await.unwrap_or_default() {
                let table = place.table(&name).unwrap();
                let mut rows = one_by_one(table.scan(&KeyRange::all()).await.unwrap());
                while let Some(row) = rows.try_next().await.unwrap() {
                    found.insert(format!("{shard} {}", row.key.split('/').next().unwrap()));
                }
            }
        }
        found
    }

    /// Says that it has to stop, and gives what waits until it has.
    pub fn stop(&mut self) -> JoinHandle<steelyard_serve::Result<()>> {
        drop(self.stop.take());
        std::mem::replace(&mut self.task, tokio::spawn(pending()))
    }

    /// A second process on the same catalog and databases.
    pub async fn restart(&mut self) {
        self.stop().await.unwrap().unwrap();
        self.restart_after_stop().await;
    }

    /// The same with more of a configuration, for operators and gateway.
    pub async fn configure(&mut self, more: &str) {
        self.config = configured(self.folder.path(), &self.layout, more);
        let catalog = Arc::new(Catalog::open(&self.config.catalog).await.unwrap());
        self.admin = Tenants::with(self.config.clone(), catalog, self.pepper.clone());
        self.restart().await;
    }

    pub async fn restart_after_stop(&mut self) {
        let (address, operators, stop, task, gateway) =
            serve(&self.config, &self.pepper, &self.clock).await;
        (self.address, self.operators, self.stop, self.task, self.gateway) =
            (address, operators, Some(stop), task, gateway);
    }

    /// Another gateway on the same catalog and databases, which has a clock of its own that goes as this one's.
    pub async fn beside(&self) -> Beside {
        let (address, _, stop, ..) = serve(&self.config, &self.pepper, &self.clock).await;
        Beside { address, _stop: stop }
    }

    /// Asks the gateway at an address.
    pub async fn at(
        &self,
        address: &str,
        key: &ApiKey,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\n{headers}", key.reveal());
        sent(address, method, path, &headers, body.as_bytes()).await
    }

    /// Asks with a key, and gives the answer.
    pub async fn ask(
        &self,
        key: &ApiKey,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\n{headers}", key.reveal());
        self.send(method, path, &headers, body.as_bytes()).await
    }

    pub async fn get(&self, key: &ApiKey, path: &str) -> Answer {
        self.ask(key, "GET", path, "", "").await
    }

    pub async fn put(&self, key: &ApiKey, path: &str, headers: &str, body: &str) -> Answer {
        self.ask(key, "PUT", path, headers, body).await
    }

    /// Asks without a key, but for what is in the headers.
    pub async fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        sent(&self.address, method, path, headers, body).await
    }
}

/// A gateway beside another. It ends when this is dropped.
pub struct Beside {
    pub address: String,
    _stop: oneshot::Sender<()>,
}

async fn sent(address: &str, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    raw(address, &[head.as_bytes(), body].concat()).await
}

/// Asks an address, and reads until the end.
pub async fn raw(address: &str, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // Where the server hangs up on what it does not read, what it said before counts.
    let _ = stream.read_to_end(&mut answer).await;
    Answer::read(&answer)
}

type Serving =
    (String, String, oneshot::Sender<()>, JoinHandle<steelyard_serve::Result<()>>, Weak<Gateway>);

async fn serve(config: &Config, pepper: &Pepper, clock: &Clock) -> Serving {
    let catalog = Arc::new(Catalog::open(&config.catalog).await.unwrap());
    let gateway = Gateway::with(config.clone(), catalog, pepper.clone(), clock.clone()).unwrap();
    let gateway = Arc::new(gateway);
    let weak = Arc::downgrade(&gateway);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let operators = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = [&listener, &operators].map(|l| l.local_addr().unwrap().to_string());
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    let task = tokio::spawn(steelyard_serve::run(listener, Some(operators), gateway, shutdown));
    let [address, operators] = addresses;
    (address, operators, stop, task, weak)
}

/// What was answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    fn read(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let mut answer = Answer {
            status,
            headers: lines.map(header).collect(),
            body: bytes[end + 4..].to_vec(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunked(&answer.body);
        }
        answer
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn tag(&self) -> &str {
        self.header("etag").unwrap_or_else(|| panic!("no ETag: {self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The answer, which has to be of this status.
    #[track_caller]
    pub fn is(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{:?} {}", self.headers, self.text());
        self
    }
}

/// The body of chunks. One that does not end as it should panics: it was cut short.
fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|w| w == b"\r\n").expect("a chunk that is cut short");
        let long = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        bytes = &bytes[end + 2..];
        if long == 0 {
            return body;
        }
        body.extend_from_slice(&bytes[..long]);
        bytes = &bytes[long + 2..];
    }
}
