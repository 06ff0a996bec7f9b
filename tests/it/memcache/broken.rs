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

/// What a call says that ends within its time. A machine that is busy elsewhere can make any call late, and a
/// client that waits too long makes each one late: one of five in time is enough.
#[track_caller]
fn in_time<T>(what: &str, limit: Duration, mut call: impl FnMut() -> T) -> T {
    let mut took = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let said = call();
        took.push(begin.elapsed());
        if took.last().is_some_and(|&took| took < limit + SLACK) {
            return said;
        }
    }
    panic!("{what}: not within {limit:?}: {took:?}");
}

/// The same of a call that does not block.
async fn in_time_async<T>(what: &str, limit: Duration, mut call: impl AsyncFnMut() -> T) -> T {
    let mut took = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let said = call().await;
        took.push(begin.elapsed());
        if took.last().is_some_and(|&took| took < limit + SLACK) {
            return said;
        }
    }
    panic!("{what}: not within {limit:?}: {took:?}");
}

#[test]
fn every_call_ends_in_time_whatever_comes() {
    for (what, ill, kind) in ILLS {
        let time = time_for(kind);
        let server = Scripted::new(ill);
        let client = || Client::new([server.address()], within(time)).unwrap();
        let (c, error) = in_time(what, time, || {
            let c = client();
            let error = c.get("key").unwrap_err();
            (c, error)
        });
        assert_eq!(error.kind(), kind, "{what}: {error}");
        assert!(error.to_string().contains(&server.address()), "{what}: {error}");
        if c.statistics().deaths == 1 {
            let begin = Instant::now();
            for n in 0..100 {
                assert!(c.get(format!("key{n}")).is_err());
            }
            // Not each of them waited.
            assert!(begin.elapsed() < 10 * TIME, "{what}: {:?}", begin.elapsed());
        }
        // Batches and writes that are not waited for, too.
        in_time(what, time, || {
            let found = client().get_multi(&["a", "b", "c"]);
            assert!(found.iter().all(Result::is_err), "{what}: {found:?}");
        });
        in_time(what, time, || {
            let failed = client().set_multi([("a", "1"), ("b", "2")], TIME);
            assert_eq!(failed.len(), 2, "{what}");
        });
        in_time(what, time, || {
            let c = client();
            let mut writes = c.noblock();
            writes.set("a", "1", TIME).unwrap();
            assert!(!writes.barrier().is_empty(), "{what}");
        });
        server.mend();
        until(what, || c.get("key").is_ok_and(|v| v.is_some_and(|v| v.bytes == b"well")));
    }
}

#[tokio::test]
async fn every_call_ends_in_time_without_blocking() {
    for (what, ill, kind) in ILLS {
        let time = time_for(kind);
        let server = Scripted::new(ill);
        let (c, error) = in_time_async(what, time, async || {
            let c = AsyncClient::new([server.address()], within(time)).unwrap();
            let error: Error = c.get("key").await.unwrap_err();
            (c, error)
        })
        .await;
        assert_eq!(error.kind(), kind, "{what}: {error}");
        if c.statistics().deaths == 1 {
            let begin = Instant::now();
            for _ in 0..100 {
                assert!(c.get("key").await.is_err());
            }
            assert!(begin.elapsed() < 10 * TIME, "{what}");
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
    let (c, error) = in_time("blocking", TIME, || {
        let c = Client::new([&hole.address], options()).unwrap();
        let error = c.get("key").unwrap_err();
        (c, error)
    });
    assert!(error.is_timeout(), "{error}");
    // Known to be dead.
    in_time("dead", Duration::ZERO, || assert!(c.get("key").is_err()));
    let error = in_time_async("nonblocking", TIME, async || {
        let c = AsyncClient::new([&hole.address], options()).unwrap();
        c.get("key").await.unwrap_err()
    })
    .await;
    assert!(error.is_timeout());
}

#[test]
fn a_pool_that_is_used_up_is_waited_for_in_time() {
    let server = Scripted::new(hold);
    let options = Options {
        pool: 1,
        patience: Patience { failures: None, ..Patience::default() },
        ..options()
    };
    // The connection is in use for three times as long as a call has. On a busy machine one of five is enough.
    let waited_no_longer = (0..5).any(|_| {
        let c = Client::new([server.address()], options.clone()).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| c.within(TIME * 3).get("key"));
            until("the first one has the connection", || c.servers()[0].2 == 1);
            let error = c.get("key").unwrap_err();
            assert!(error.to_string().contains("no free connection within"), "{error}");
            let in_use = !first.is_finished();
            assert!(first.join().unwrap().is_err());
            in_use
        })
    });
    assert!(waited_no_longer);
}
