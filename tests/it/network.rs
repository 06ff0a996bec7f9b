//! The relay of `--network`: it delays, and does nothing else.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use steelyard::bench::{network::Relay, results::Results};

use crate::{
    children::Command,
    programs::{self, need},
};

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_steelyard"))
}

/// A server that sends back what it is sent, and ends where that ends.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            thread::spawn(move || {
                let mut from = socket.try_clone().unwrap();
                let _ = std::io::copy(&mut from, &mut socket);
                let _ = socket.shutdown(Shutdown::Write);
            });
        }
    });
    port
}

fn relay(port: u16, round_trip: Duration) -> Relay {
    Relay::start(program(), ("127.0.0.1", port), round_trip).unwrap()
}

fn connect(relay: &Relay) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", relay.port())).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

#[test]
fn every_round_trip_takes_the_delay_at_least() {
    let port = echo();
    for delay in [Duration::from_micros(500), Duration::from_millis(2)] {
        let relay = relay(port, delay);
        let mut socket = connect(&relay);
        for n in 0..50u8 {
            let (mut byte, begin) = ([n], Instant::now());
            socket.write_all(&byte).unwrap();
            socket.read_exact(&mut byte).unwrap();
            assert!(begin.elapsed() >= delay, "{:?} of {delay:?}", begin.elapsed());
            assert_eq!(byte, [n]);
        }
    }
}

/// A question does not wait for those before it: as many as are sent at once take one delay together.
#[test]
fn what_is_on_its_way_does_not_hold_back_what_follows() {
    const COUNT: u32 = 100;
    let delay = Duration::from_millis(100);
    let relay = relay(echo(), delay);
    let mut socket = connect(&relay);
    let begin = Instant::now();
    for n in 0..COUNT {
        socket.write_all(&n.to_be_bytes()).unwrap();
    }
    for n in 0..COUNT {
        let mut bytes = [0; 4];
        socket.read_exact(&mut bytes).unwrap();
        assert_eq!(u32::from_be_bytes(bytes), n, "in their order");
    }
    let took = begin.elapsed();
    assert!(took >= delay && took < delay * COUNT / 2, "{took:?}");
}

#[test]
fn all_bytes_arrive_in_order_and_the_end_after_them() {
    let relay = relay(echo(), Duration::from_millis(2));
    let ways: Vec<_> = (0..20u32)
        .map(|way| {
            let mut socket = connect(&relay);
            thread::spawn(move || {
                // More than what may be on its way.
                let bytes: Vec<u8> =
                    (0..6_000_000u32).map(|n| (n.wrapping_mul(way + 1) >> 3) as u8).collect();
                let mut writer = socket.try_clone().unwrap();
                let sent = bytes.clone();
                let writes = thread::spawn(move || {
                    writer.write_all(&sent).unwrap();
                    writer.shutdown(Shutdown::Write).unwrap();
                });
                let mut back = Vec::new();
                socket.read_to_end(&mut back).unwrap();
                writes.join().unwrap();
                assert!(back == bytes, "{} of {} bytes", back.len(), bytes.len());
            })
        })
        .collect();
    ways.into_iter().for_each(|way| way.join().unwrap());
}

#[test]
fn ends_of_either_side_reach_the_other() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (tell, told) = mpsc::channel();
    let relay = relay(listener.local_addr().unwrap().port(), Duration::from_millis(2));
    thread::spawn(move || {
        // The first is closed by the client, the second by the server.
        let (mut first, _) = listener.accept().unwrap();
        tell.send(first.read(&mut [0]).unwrap()).unwrap();
        drop(listener.accept().unwrap());
    });
    drop(connect(&relay));
    assert_eq!(told.recv_timeout(Duration::from_secs(20)).unwrap(), 0);
    assert_eq!(connect(&relay).read(&mut [0]).unwrap(), 0);
    // Nobody there is the end, too; and the relay goes on.
    let nobody = Relay::start(program(), ("127.0.0.1", 1), Duration::from_millis(1)).unwrap();
    for _ in 0..2 {
        assert!(connect(&nobody).read(&mut [0]).map_or(true, |n| n == 0));
    }
}

#[test]
fn a_relay_ends_with_its_value() {
    let relay = relay(echo(), Duration::from_millis(1));
    let (port, id) = (relay.port(), relay.id());
    assert!(Path::new(&format!("/proc/{id}")).exists() || !cfg!(target_os = "linux"));
    drop(relay);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

fn bench(args: &[&str]) -> std::process::Output {
    let run = ["bench", "keep", "--rounds", "1", "--scale", "0.01", "--no-audit", "--full"];
    Command::new(program()).args(run).args(args).output().unwrap()
}

#[test]
fn a_bench_through_a_network_says_so_and_waits_for_it() {
    need!(programs::startable("redis"));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results.json").display().to_string();
    let done = bench(&["--on", "redis", "--on", "sqlite", "--network", "2ms", "--out", &out]);
    let (text, said) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{text}{said}");
    assert!(text.contains("2.00 ms of network round trip"), "{text}");
    assert!(text.contains("own wire client") && text.contains("rusqlite 0."), "{text}");
    let results: Results = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    let network = results.network.unwrap();
    assert!(network.measured_ns >= network.round_trip_ns, "{network:?}");
    // A tenth of the operations took no longer than this, in each phase where that was timed.
    let quick = |store: &str| -> Vec<f64> {
        let cells = results.cells.iter().filter(|cell| cell.competitor == store);
        let latencies = cells.filter_map(|cell| cell.latency.as_ref());
        latencies.filter_map(|l| Some(l.response.quantile(0.1)?.value)).collect()
    };
    let (redis, sqlite) = (quick("redis"), quick("sqlite"));
    assert!(!redis.is_empty() && redis.iter().all(|ns| *ns >= 1.99e6), "{redis:?}");
    assert!(sqlite.iter().any(|ns| *ns < 2e6), "{sqlite:?}");
}

#[test]
fn what_has_no_network_is_refused() {
    for (store, want) in [
        ("redis://127.0.0.1:1?socket=/no/such", "unix socket"),
        ("rediss://127.0.0.1:1", "certificate"),
    ] {
        let done = bench(&["--on", store, "--network", "1ms"]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains(want), "{said}");
    }
    let done = bench(&["--on", "sqlite", "--network", "1"]);
    assert!(String::from_utf8_lossy(&done.stderr).contains("0.5ms"));
    assert_eq!(done.status.code(), Some(2));
}
