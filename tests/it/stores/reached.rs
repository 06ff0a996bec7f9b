//! A server that is not there, takes no connection, or answers nothing: what an operation says of it is
//! the same for every driver, with each client it has. Errors name the server as `HOST:PORT`, once.

use std::{
    net::{SocketAddr, TcpListener},
    slice,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use socket2::{Domain, Socket, Type};
use steelyard::{
    Error, ErrorKind,
    record::{Document, Value},
    store::{Key, Row, Store},
};

use super::{
    clients::clients,
    places::{self, Fault, Outcome, Subject, Wrap, ensure, patiently},
    proxy::{Proxy, address, moved},
};

/// Seconds that connecting and an operation may take.
const LIMIT: f64 = 1.0;
/// Where the other limit must not be the one that passes.
const LONG: f64 = 10.0;

fn row(n: i64) -> Row {
    let key = Key::new(format!("k{n}")).expect("not empty");
    Row { key, record: Document::from_iter([("n", Value::Int(n))]) }
}

/// The limit of connecting by an option of its own, and where `timeout` is its limit too.
fn limits(operation: f64) -> [String; 2] {
    [format!("connect_timeout={LIMIT}&timeout={operation}"), format!("timeout={LIMIT}")]
}

/// An error of this kind whose whole text is this.
fn says(error: Option<Error>, kind: ErrorKind, text: &str, when: &str) -> Outcome {
    let Some(error) = error else { return Err(Fault::new(format_args!("{when}: no error"))) };
    ensure!(error.kind() == kind && error.to_string() == text, "{when}: {error:?}\n  not: {text}");
    // What a client of another crate says of the cause is not printed behind it.
    ensure!(error.chain() == text, "{when}: {}\n  not: {text}", error.chain());
    Ok(())
}

/// The error of opening the store at this address, with this client.
async fn opened(subject: &Subject, url: &str, options: &str, client: &str) -> Option<Error> {
    subject.at(url).try_open(&format!("{options}&{client}")).await.err()
}

/// Where nobody listens.
async fn refused(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    for client in clients(subject.driver()) {
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let options = format!("connect_timeout={LIMIT}&timeout={LONG}");
        let error = opened(&subject, &moved(url, nobody), &options, client).await;
        let text = format!("cannot connect to {nobody}: connection refused");
        says(error, ErrorKind::Unavailable, &text, client)?;
    }
    Ok(())
}

/// A server that goes away while its store is open.
async fn gone(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    for client in clients(subject.driver()) {
        let proxy = Proxy::before(url).await;
        let options = format!("pool=2&connect_timeout=3&timeout={LONG}&{client}");
        let fresh = subject.at(&proxy.url).open(&options).await?.ready(&[row(0)]).await?;
        fresh.store.put(&[row(0)]).await?;
        proxy.end().await;
        let text = format!("cannot connect to {}: connection refused", address(&proxy.url));
        // The first to ask finds out that its connection is closed.
        let first = fresh.store.get(&[row(0).key]).await.err();
        let first = first.ok_or_else(|| Fault::new("an answer of one that is gone"))?;
        ensure!(first.kind() == ErrorKind::Unavailable, "{client}: {first:?}");
        for operation in ["get", "put"] {
            let error = match operation {
                "get" => fresh.store.get(&[row(0).key]).await.err(),
                _ => fresh.store.put(&[row(0)]).await.err(),
            };
            // MongoDB's client asks in the background, and may know only of the end so far.
            let end = format!("cannot connect to {}: unexpected end of file", address(&proxy.url));
            let seen = error.as_ref().is_some_and(|error| error.to_string() == end);
            let text = if subject.driver() == "mongodb" && seen { &end } else { &text };
            says(error, ErrorKind::Unavailable, text, &format!("{client}, {operation}"))?;
        }
    }
    Ok(())
}

/// One that takes no connection: its queue of them is full.
struct Full {
    address: SocketAddr,
    _sockets: Vec<Socket>,
}

impl Full {
    fn new() -> Full {
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = socket();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        listener.bind(&any.into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let mut sockets = vec![listener];
        // As many as it takes until one has to wait.
        for _ in 0..100 {
            let client = socket();
            let connected = client.connect_timeout(&address.into(), Duration::from_millis(200));
            sockets.push(client);
            if connected.is_err() {
                return Full { address, _sockets: sockets };
            }
        }
        panic!("a queue of none takes 100 connections");
    }
}

async fn full(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    let full = Full::new();
    for client in clients(subject.driver()) {
        let [own, shared] = limits(LONG);
        let error = opened(&subject, &moved(url, full.address), &own, client).await;
        let text = format!("cannot connect to {}: timed out after {LIMIT} s", full.address);
        says(error, ErrorKind::Timeout, &text, client)?;
        let error = opened(&subject, &moved(url, full.address), &shared, client).await;
        gave_up(error, &full.address.to_string(), &format!("{client}, {shared}"))?;
    }
    Ok(())
}

/// An error that says which of the two limits passed, when both are the same.
fn gave_up(error: Option<Error>, address: &str, when: &str) -> Outcome {
    let Some(error) = error else { return Err(Fault::new(format_args!("{when}: no error"))) };
    let text = error.to_string();
    // What needs no login is connected, and asks.
    let starts = [
        format!("cannot connect to {address}: timed out after {LIMIT} s"),
        format!("{address}: no answer within {LIMIT} s"),
    ];
    let right = starts.iter().any(|start| text.starts_with(start));
    ensure!(error.is_timeout() && right, "{when}: {error:?}");
    Ok(())
}

/// One that takes connections, and answers nothing on them.
async fn silent(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    for client in clients(subject.driver()) {
        let proxy = Proxy::before(url).await;
        proxy.freeze();
        for options in limits(LIMIT) {
            let error = opened(&subject, &proxy.url, &options, client).await;
            gave_up(error, address(&proxy.url), &format!("{client}, {options}"))?;
        }
    }
    Ok(())
}

/// One connection, which an operation waits on for its answer; others want it.
async fn busy(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    for client in clients(subject.driver()) {
        let proxy = Proxy::before(url).await;
        let rows: Vec<Row> = (0..6).map(row).collect();
        let options = format!("pool=1&timeout={LIMIT}&connect_timeout=5&{client}");
        let fresh = subject.at(&proxy.url).open(&options).await?.ready(&rows).await?;
        let store: &dyn Store = &*fresh.store;
        patiently!(store.put(&rows))?;
        let address = address(&proxy.url);
        let answer = format!("{address}: no answer within {LIMIT} s");
        let free = format!("{address}: no free connection within {LIMIT} s (pool=1)");
        for write in [false, true] {
            proxy.freeze();
            let asked = rows.iter().map(|row| async move {
                match write {
                    true => store.put(slice::from_ref(row)).await.err(),
                    false => store.get(slice::from_ref(&row.key)).await.err(),
                }
            });
            let mut errors = Vec::new();
            for error in join_all(asked).await {
                errors.push(error.ok_or_else(|| Fault::new("an answer out of the ice"))?);
            }
            let when = format!("{client}, write: {write}");
            ensure!(errors.iter().all(Error::is_timeout), "{when}: {errors:#?}");
            let texts: Vec<String> = errors.iter().map(Error::to_string).collect();
            ensure!(texts[0].starts_with(&answer), "{when}: {:?}", errors[0]);
            let waited = texts.iter().filter(|text| **text == free).count();
            let want = match (subject.driver(), *client) {
                // Several operations share a connection of that client.
                ("redis", "client=crate") => 0,
                // When the first one gives up, one of the others may get its place just in time.
                _ => rows.len() - 2,
            };
            ensure!(waited >= want, "{when}: {texts:#?}\n  not: {free}");
            proxy.thaw();
            let begin = Instant::now();
            while let Err(error) = store.put(&rows).await {
                let soon = begin.elapsed() < Duration::from_secs(20);
                ensure!(error.is_outage() && soon, "{when}, thawed: {error:?}");
            }
        }
        fresh.done().await?;
    }
    Ok(())
}

/// A socket of this machine that is not there.
async fn no_socket(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    if !["postgres", "mysql", "redis", "memcached", "tyrant"].contains(&subject.driver()) {
        return Ok(());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket").display().to_string();
    for client in clients(subject.driver()) {
        let error = opened(&subject, url, &format!("socket={path}"), client).await;
        let error = error.ok_or_else(|| Fault::new("opened by no socket"))?;
        let text = error.chain();
        // PostgreSQL's is a folder with the socket in it.
        let begins = text.starts_with(&format!("cannot connect to {path}"));
        let ends = text.ends_with(": no such file or directory");
        let right = begins && ends && text.matches(": ").count() == 1;
        ensure!(error.kind() == ErrorKind::Unavailable && right, "{client}: {error:?}");
    }
    Ok(())
}

#[test]
fn where_nobody_listens() {
    places::each(Wrap::Bare, refused);
}

#[test]
fn a_server_that_goes_away() {
    places::each(Wrap::Bare, gone);
}

#[test]
fn a_server_that_takes_no_connection() {
    places::each(Wrap::Bare, full);
}

#[test]
fn a_server_that_answers_nothing() {
    places::each(Wrap::Bare, silent);
}

#[test]
fn a_pool_whose_connections_are_all_in_use() {
    places::each(Wrap::Bare, busy);
}

#[test]
fn a_socket_that_is_not_there() {
    places::each(Wrap::Bare, no_socket);
}
