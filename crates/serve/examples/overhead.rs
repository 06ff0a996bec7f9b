//! What a `GET` of a document costs through the gateway, beside the same read by the driver: processor time of this
//! process for each, without that of the client, in turns.
//!
//!     cargo run --release -p steelyard-serve --example overhead -- sqlite:/tmp/overhead.db [ROUNDS]
//!
//! The store is read through the gateway with key, tenant, limits, metrics and log (to nowhere), over connections that
//! stay open. The last line is the median of the rounds' differences.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use nix::sys::resource::{UsageWho, getrusage};
use steelyard_serve::{Quick, Result, Scope};
use steelyard_store::store::{self, Key, Layout, Row};
use tokio::net::TcpListener;

/// Reads of a round.
const READS: u32 = 20_000;
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
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let place = runtime.block_on(async {
        let place = store::open(&url).await?;
        let table = place.table("people")?;
        table.prepare(&Layout::plain()).await?;
        let rows: Result<Vec<Row>> = (0..DOCUMENTS)
            .map(|n| {
                let fields =
                    [("name", format!("Bob {n}")), ("email", format!("bob{n}@example.com"))];
                Ok(Row { key: Key::new(format!("bob{n}"))?, record: fields.into_iter().collect() })
            })
            .collect();
        table.put(&rows?).await?;
        Ok::<_, steelyard_serve::Error>(place)
    })?;
    let Quick { gateway, keys } = runtime.block_on(Quick::place(&url, Scope::Read))?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    runtime.spawn(steelyard_serve::run(listener, None, Arc::new(gateway), std::future::pending()));
    let mut client = BufReader::new(TcpStream::connect(address)?);
    client.get_ref().set_nodelay(true)?;
    let head = format!("Host: localhost\r\nAuthorization: Bearer {}\r\n\r\n", keys[0].1.reveal());
    let table = place.table("people")?;
    let mut overheads = Vec::new();
    for round in 0..rounds {
        let before = spent(UsageWho::RUSAGE_SELF);
        runtime.block_on(async {
            for n in 0..READS {
                let key = Key::new(format!("bob{}", n % DOCUMENTS))?;
                let found = tokio::task::unconstrained(table.get(&[key])).await?;
                assert!(found[0].is_some());
            }
            Ok::<_, steelyard_serve::Error>(())
        })?;
        let direct = spent(UsageWho::RUSAGE_SELF) - before;
        let (before, own) = (spent(UsageWho::RUSAGE_SELF), spent(UsageWho::RUSAGE_THREAD));
        for n in 0..READS {
            read(
                &mut client,
                &format!("GET /v1/docs/people/bob{} HTTP/1.1\r\n{head}", n % DOCUMENTS),
            )?;
        }
        let served =
            (spent(UsageWho::RUSAGE_SELF) - before) - (spent(UsageWho::RUSAGE_THREAD) - own);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(READS);
        println!(
            "round {}: direct {:.1} µs, gateway {:.1} µs",
            round + 1,
            each(direct),
            each(served)
        );
        overheads.push(each(served) - each(direct));
        // Within the rate of the gateway.
        std::thread::sleep(Duration::from_secs(1));
    }
    overheads.sort_by(f64::total_cmp);
    println!("overhead {:.1} µs of processor time", overheads[overheads.len() / 2]);
    Ok(())
}

/// Sends a request, and reads its answer.
fn read(client: &mut BufReader<TcpStream>, request: &str) -> Result<()> {
    client.get_mut().write_all(request.as_bytes())?;
    let (mut line, mut length) = (String::new(), 0);
    client.read_line(&mut line)?;
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
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
