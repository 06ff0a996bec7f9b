//! What a `GET` of a document costs through the gateway, beside the same read by the driver: processor time of this
//! process for each, without that of the client, in turns.
//!
//!     cargo run --release -p steelyard-serve --example gateway_overhead -- sqlite:/tmp/overhead.db [ROUNDS]
//!
//! The store is read through the gateway with key, tenant, limits, metrics and log (to nowhere), over connections that
//! stay open. The last line is the median of the rounds' differences, on several connections.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use nix::sys::resource::{UsageWho, getrusage};
use steelyard_serve::{Quick, Result, Scope};
use steelyard_store::store::{self, Key, Layout, Place, Row, Store};
use tokio::{net::TcpListener, runtime::Builder};

/// Reads of a round.
const READS: u32 = 20_000;
/// Connections that ask at the same time.
const CONNECTIONS: usize = 8;
/// Documents that are read.
const DOCUMENTS: u32 = 1000;

fn spent(who: UsageWho) -> Duration {
    let usage = getrusage(who).expect("a process has a usage");
    let time =
        |t: nix::sys::time::TimeVal| Duration::new(t.tv_sec() as u64, t.tv_usec() as u32 * 1000);
    time(usage.user_time()) + time(usage.system_time())
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| "memory:overhead".into());
    let rounds: usize = args.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(9);
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let place = runtime.block_on(filled(&url))?;
    let table = place.table("people")?;
    let Quick { gateway, keys } = runtime.block_on(Quick::place(&url, Scope::Read))?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    runtime.spawn(steelyard_serve::run(listener, None, Arc::new(gateway), std::future::pending()));
    let head = format!("Host: localhost\r\nAuthorization: Bearer {}\r\n\r\n", keys[0].1.reveal());
    let connect = |_| {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    };
    let mut clients = (0..CONNECTIONS).map(connect).collect::<Result<Vec<_>>>()?;
    let mut served = |connections: usize, path: &dyn Fn(u32) -> String, status: &str| {
        let clients = &mut clients[..connections];
        let (before, own) = (spent(UsageWho::RUSAGE_SELF), spent(UsageWho::RUSAGE_THREAD));
        for n in (0..READS).step_by(connections) {
            // All ask before any reads, as several clients do.
            for (i, client) in (0..).zip(&mut *clients) {
                let request = format!("GET {} HTTP/1.1\r\n{head}", path(n + i));
                client.get_mut().write_all(request.as_bytes())?;
            }
            clients.iter_mut().try_for_each(|client| read(client, status))?;
        }
        let own = spent(UsageWho::RUSAGE_THREAD) - own;
        Ok::<_, steelyard_serve::Error>(spent(UsageWho::RUSAGE_SELF) - before - own)
    };
    let document = |n: u32| format!("/v1/docs/people/bob{}", n % DOCUMENTS);
    let mut overheads = Vec::new();
    for _ in 0..rounds {
        let before = spent(UsageWho::RUSAGE_SELF);
        runtime.block_on(direct(&*table))?;
        let direct = spent(UsageWho::RUSAGE_SELF) - before;
        let many = served(CONNECTIONS, &document, "200")?;
        let one = served(1, &document, "200")?;
        let http = served(CONNECTIONS, &|_| "/nothing".to_owned(), "404")?;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(READS);
        let [direct, http, one, many] = [direct, http, one, many].map(each);
        println!(
            "direct {direct:.1} µs; gateway {many:.1} µs on {CONNECTIONS} connections, {one:.1} µs on one; a path that is \
             not there, without a key, {http:.1} µs"
        );
        overheads.push(many - direct);
    }
    overheads.sort_by(f64::total_cmp);
    println!("overhead {:.1} µs of processor time", overheads[overheads.len() / 2]);
    Ok(())
}

/// The store, with documents in it.
async fn filled(url: &str) -> Result<Place> {
    let place = store::open(url).await?;
    let table = place.table("people")?;
    table.prepare(&Layout::plain()).await?;
    let row = |n| {
        let fields = [("name", format!("Bob {n}")), ("email", format!("bob{n}@example.com"))];
        Ok(Row { key: Key::new(format!("bob{n}"))?, record: fields.into_iter().collect() })
    };
    table.put(&(0..DOCUMENTS).map(row).collect::<Result<Vec<Row>>>()?).await?;
    Ok(place)
}

/// Reads as the driver does.
async fn direct(table: &dyn Store) -> Result<()> {
    for n in 0..READS {
        let found = table.get(&[Key::new(format!("bob{}", n % DOCUMENTS))?]).await?;
        assert!(found[0].is_some());
    }
    Ok(())
}

/// Reads an answer.
fn read(client: &mut BufReader<TcpStream>, status: &str) -> Result<()> {
    let (mut line, mut length) = (String::new(), 0);
    client.read_line(&mut line)?;
    assert!(line.starts_with(&format!("HTTP/1.1 {status}")), "{line}");
    while line != "\r\n" {
        line.clear();
        client.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body)?;
    Ok(())
}
