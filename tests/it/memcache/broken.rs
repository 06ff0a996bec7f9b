//! Servers that break in the middle: every call ends within its time, later ones fail at once, and
//! it is noticed when they are well again.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};

use steelyard::{
    Error, ErrorKind,
    memcache::{AsyncClient, Client, Dialect, Options, Patience},
};

use super::{
    proxy::{Scripted, drip, hold},
    until,
};

const TIME: Duration = Duration::from_millis(300);
/// How much later than its time a call may end.
const SLACK: Duration = Duration::from_millis(50);

fn options() -> Options {
    within(TIME)
}

fn within(time: Duration) -> Options {
    Options {
        timeout: time,
        connect_timeout: time,
        dialect: Some(Dialect::Meta),
        patience: Patience {
            first: Duration::from_millis(20),
            most: Duration::from_millis(100),
            ..Patience::default()
        },
        ..Options::default()
    }
}

type Ill = (&'static str, fn(TcpStream), ErrorKind);

/// How a server can be ill, and what is told then.
const ILLS: [Ill; 9] = [
    ("says nothing", hold, ErrorKind::Timeout),
    ("closes at once", drop, ErrorKind::Unavailable),
    (
        "half a header",
        |mut s| {
            let _ = s.write_all(b"VA 1");
            hold(s)
        },
        ErrorKind::Timeout,
    ),
    (
        "half a header, closed",
        |mut s| {
            let _ = s.write_all(b"VA 1");
        },
        ErrorKind::Unavailable,
    ),
    (
        "closed in mid-value",
        |mut s| {
            let _ = s.write_all(b"VA 100 f0\r\nabc");
        },
        ErrorKind::Unavailable,
    ),
    (
        "a byte each 100 ms",
        |s| drip(s, b"VA 5 f0\r\nhello\r\n", Duration::from_millis(100)),
        ErrorKind::Timeout,
    ),
    (
        "no answer of ours",
        |mut s| {
            let _ = s.write_all(b"HTTP/1.1 400\r\n\r\n");
            hold(s)
        },
        ErrorKind::Malformed,
    ),
    (
        "a length of exabytes",
        |mut s| {
            let _ = s.write_all(b"VA 4611686018427387904 f0\r\n");
            hold(s)
        },
        ErrorKind::TooLarge,
    ),
    (
        "a line without an end",
        |mut s| {
            let _ = s.write_all(&[b'x'; 100_000]);
            hold(s)
        },
        ErrorKind::TooLarge,
    ),
];

/// How long a call has when a server is ill so. Where something else than a timeout is to be told, long
/// enough that a busy machine does not make one of it.
fn time_for(kind: ErrorKind) -> Duration {
    if kind == ErrorKind::Timeout { TIME } else { Duration::from_secs(10) }
}

#[track_caller]
fn in_time(what: &str, begin: Instant, limit: Duration) {
    let took = begin.elapsed();
    assert!(took < limit + SLACK, "{what}: {took:?}");
}

#[test]
fn every_call_ends_in_time_whatever_comes() {
    for (what, ill, kind) in ILLS {
        let time = time_for(kind);
        let server = Scripted::new(ill);
        let c = Client::new([server.address()], within(time)).unwrap();
        let begin = Instant::now();
        let error = c.get("key").unwrap_err();
        in_time(what, begin, time);
        assert_eq!(error.kind(), kind, "{what}: {error}");
        assert!(error.to_string().contains(&server.address()), "{what}: {error}");
        let dead = c.statistics().deaths == 1;
        if dead {
            let begin = Instant::now();
            for n in 0..100 {
                assert!(c.get(format!("key{n}")).is_err());
            }
            // None of them waited.
            assert!(begin.elapsed() < TIME, "{what}: {:?}", begin.elapsed());
        }
        // Batches and writes that are not waited for, too.
        for kind in ["get_multi", "set_multi", "noblock"] {
            let c = Client::new([server.address()], within(time)).unwrap();
            let begin = Instant::now();
            match kind {
                "get_multi" => {
                    let found = c.get_multi(&["a", "b", "c"]);
                    assert!(found.iter().all(Result::is_err), "{what}: {found:?}");
                }
                "set_multi" => {
                    let failed = c.set_multi([("a", "1"), ("b", "2")], TIME);
                    assert_eq!(failed.len(), 2, "{what}");
                }
                _ => {
                    let mut writes = c.noblock();
                    writes.set("a", "1", TIME).unwrap();
                    assert!(!writes.barrier().is_empty(), "{what}");
                }
            }
            in_time(what, begin, time);
        }
        server.mend();
        until(what, || c.get("key").is_ok_and(|v| v.is_some_and(|v| v.bytes == b"well")));
    }
}

#[tokio::test]
async fn every_call_ends_in_time_without_blocking() {
    for (what, ill, kind) in ILLS {
        let time = time_for(kind);
        let server = Scripted::new(ill);
        let c = AsyncClient::new([server.address()], within(time)).unwrap();
        let begin = Instant::now();
        let error: Error = c.get("key").await.unwrap_err();
        in_time(what, begin, time);
        assert_eq!(error.kind(), kind, "{what}: {error}");
        if c.statistics().deaths == 1 {
            let begin = Instant::now();
            assert!(c.get("key").await.is_err());
            assert!(begin.elapsed() < TIME, "{what}");
        }
        server.mend();
        let begin = Instant::now();
        while c.get("key").await.is_err() {
            assert!(begin.elapsed() < Duration::from_secs(10), "{what}: not noticed");
            tokio::task::yield_now().await;
        }
    }
}

/// A port where connections are neither taken nor refused: its queue is full.
struct Hole {
    _listener: TcpListener,
    _queued: Vec<socket2::Socket>,
    address: String,
}

fn hole() -> Hole {
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(0).unwrap();
    let listener: TcpListener = listener.into();
    let address = listener.local_addr().unwrap();
    let queue = || {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&address.into());
        socket
    };
    let queued = (0..4).map(|_| queue()).collect();
    Hole { _listener: listener, _queued: queued, address: address.to_string() }
}

#[tokio::test]
async fn connecting_into_a_black_hole_ends_in_time() {
    let hole = hole();
    let c = Client::new([&hole.address], options()).unwrap();
    let begin = Instant::now();
    let error = c.get("key").unwrap_err();
    in_time("blocking", begin, TIME);
    assert!(error.is_timeout(), "{error}");
    let begin = Instant::now();
    assert!(c.get("key").is_err());
    assert!(begin.elapsed() < Duration::from_millis(20));
    let c = AsyncClient::new([&hole.address], options()).unwrap();
    let begin = Instant::now();
    assert!(c.get("key").await.unwrap_err().is_timeout());
    in_time("nonblocking", begin, TIME);
}

#[test]
fn a_pool_that_is_used_up_is_waited_for_in_time() {
    let server = Scripted::new(hold);
    let options = Options {
        pool: 1,
        patience: Patience { failures: None, ..Patience::default() },
        ..options()
    };
    let c = Client::new([server.address()], options).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| c.within(TIME * 3).get("key"));
        until("the first one has the connection", || c.servers()[0].2 == 1);
        let begin = Instant::now();
        let error = c.get("key").unwrap_err();
        in_time("waiting", begin, TIME);
        assert!(error.to_string().contains("no free connection within"), "{error}");
        assert!(first.join().unwrap().is_err());
    });
}
