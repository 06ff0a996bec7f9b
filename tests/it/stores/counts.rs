//! Servers that count wrongly: whoever asks gets an error that names the server and the count, never the count.
//!
//! Each driver of the table is asked through a wire that lets a true server's answers pass and changes the count in
//! one of them. A driver that takes no count from its server says so here.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use steelyard::{
    ErrorKind,
    store::{Expected, Filter, Key, Store},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    places::{self, Fault, Outcome, Subject, Wrap, ensure},
    proxy::{address, moved},
};

/// What is asked while the server counts wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// To remove one key that is there.
    One,
    /// To remove two keys that are there, one of them named twice.
    Twice,
    /// To write a new record.
    Load,
    /// To write a record in place of another.
    Put,
    /// To write a record in place of one with this text.
    PutIf,
    /// To remove a record with this text.
    RemoveIf,
    /// How many there are.
    Count,
    /// To delete all.
    All,
}

/// A count that is changed: what is asked, the bytes of an answer, and those that come instead; `told` is what the
/// error says.
#[derive(Debug, Clone, Copy)]
struct Lie {
    asked: Asked,
    true_bytes: &'static [u8],
    false_bytes: &'static [u8],
    told: &'static str,
}

const fn lie(
    asked: Asked,
    true_bytes: &'static [u8],
    false_bytes: &'static [u8],
    told: &'static str,
) -> Lie {
    Lie { asked, true_bytes, false_bytes, told }
}

/// The drivers that take no count from their servers: they count answers, one for each key.
const COUNT_THEMSELVES: [&str; 4] = ["couchdb", "memcached", "s3", "tyrant"];

fn lies(driver: &str) -> &'static [Lie] {
    use Asked::{All, Count, Load, One, Put, PutIf, RemoveIf, Twice};
    match driver {
        "postgres" => {
            const {
                &[
                    lie(One, b"DELETE 1\0", b"DELETE 5\0", "counts 5"),
                    lie(Twice, b"DELETE 2\0", b"DELETE 3\0", "counts 3"),
                    lie(Load, b"INSERT 0 1\0", b"INSERT 0 5\0", "5 of 1"),
                    lie(Put, b"INSERT 0 1\0", b"INSERT 0 0\0", "0 of 1"),
                    lie(PutIf, b"UPDATE 1\0", b"UPDATE 5\0", "invalid: 5"),
                    lie(RemoveIf, b"DELETE 1\0", b"DELETE 5\0", "invalid: 5"),
                    lie(
                        Count,
                        b"\0\0\0\x08\0\0\0\0\0\0\0\x02",
                        &[0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255],
                        "counts -1",
                    ),
                ]
            }
        }
        "redis" => {
            const {
                &[
                    lie(One, b":1\r\n", b":5\r\n", "counts 5"),
                    lie(One, b":1\r\n", b":-3\r\n", "counts -3"),
                    lie(Twice, b":2\r\n", b":3\r\n", "counts 3"),
                    lie(Load, b":1\r\n", b":7\r\n", "invalid: 7"),
                    lie(PutIf, b":1\r\n", b":7\r\n", "invalid: 7"),
                    lie(RemoveIf, b":1\r\n", b":-1\r\n", "invalid: -1"),
                    lie(All, b":2\r\n", b":9223372036854775807\r\n", "counts 9223372036854775807"),
                ]
            }
        }
        "mysql" => {
            const {
                &[
                    lie(One, b"\0\0\x01\0\x01\0", b"\0\0\x01\0\x05\0", "counts 5"),
                    lie(Twice, b"\0\0\x01\0\x02\0", b"\0\0\x01\0\x03\0", "counts 3"),
                    lie(Load, b"\0\0\x01\0\x01\0", b"\0\0\x01\0\x05\0", "counts 5"),
                    lie(Load, b"\0\0\x01\0\x01\0", b"\0\0\x01\0\0\0", "0 of 1"),
                    lie(Put, b"\0\0\x01\0\x02\0", b"\0\0\x01\0\x03\0", "counts 3"),
                    lie(PutIf, b"\0\0\x01\0\x01\0", b"\0\0\x01\0\x05\0", "invalid: 5"),
                    lie(RemoveIf, b"\0\0\x01\0\x01\0", b"\0\0\x01\0\x05\0", "invalid: 5"),
                ]
            }
        }
        "mongodb" => {
            const {
                &[
                    lie(One, b"\x10n\0\x01\0\0\0", b"\x10n\0\x05\0\0\0", "counts 5"),
                    lie(Twice, b"\x10n\0\x02\0\0\0", b"\x10n\0\x03\0\0\0", "counts 3"),
                    lie(Load, b"\x10n\0\x01\0\0\0", b"\x10n\0\x05\0\0\0", "reports 5 written"),
                    lie(Put, b"\x10n\0\x01\0\0\0", b"\x10n\0\0\0\0\0", "reports 0 written"),
                    lie(PutIf, b"\x10n\0\x01\0\0\0", b"\x10n\0\x05\0\0\0", "invalid: 5"),
                    lie(RemoveIf, b"\x10n\0\x01\0\0\0", b"\x10n\0\x05\0\0\0", "invalid: 5"),
                ]
            }
        }
        _ => &[],
    }
}

/// A wire to a server that changes counts from when it is told to.
struct Wire {
    url: String,
    lies: Arc<AtomicBool>,
    told: Arc<AtomicUsize>,
}

impl Wire {
    async fn new(url: &str, lie: Lie) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Wire {
            url: moved(url, listener.local_addr().unwrap()),
            lies: Arc::default(),
            told: Arc::default(),
        };
        let (server, lies, told) = (address(url).to_owned(), wire.lies.clone(), wire.told.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                tokio::spawn(async move {
                    let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
                });
                let (lies, told) = (lies.clone(), told.clone());
                tokio::spawn(async move {
                    let mut bytes = vec![0; 64 << 10];
                    while let Ok(n @ 1..) = from_server.read(&mut bytes).await {
                        let mut answer = bytes[..n].to_vec();
                        let found = memchr::memmem::find(&answer, lie.true_bytes);
                        if let (true, Some(at)) = (lies.load(Ordering::SeqCst), found) {
                            answer.splice(
                                at..at + lie.true_bytes.len(),
                                lie.false_bytes.iter().copied(),
                            );
                            told.fetch_add(1, Ordering::SeqCst);
                        }
                        if to_client.write_all(&answer).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        wire
    }
}

fn row(name: &str) -> steelyard::store::Row {
    let record = steelyard::record::Document::from_iter([("text", format!("text {name}"))]);
    steelyard::store::Row { key: key(name), record }
}

fn key(name: &str) -> Key {
    Key::new(name).expect("not empty")
}

/// What it comes to; an error is what should come.
async fn ask(store: &dyn Store, asked: Asked) -> steelyard::Result<String> {
    let said = |count: u64| format!("{count}");
    match asked {
        Asked::One => store.remove(&[key("k1")]).await.map(said),
        Asked::Twice => store.remove(&[key("k1"), key("k2"), key("k1")]).await.map(said),
        Asked::Load => store.load(&[row("new")]).await.map(|()| "loaded".into()),
        Asked::Put => {
            let other = steelyard::record::Document::from_iter([("text", "another")]);
            let row = steelyard::store::Row { key: key("k1"), record: other };
            store.put(&[row]).await.map(|()| "put".into())
        }
        Asked::PutIf => {
            let expected = Expected::field("text", "text k1");
            let other = steelyard::record::Document::from_iter([("text", "another")]);
            let row = steelyard::store::Row { key: key("k1"), record: other };
            store.put_if(&row, &expected).await.map(|written| written.to_string())
        }
        Asked::RemoveIf => {
            let expected = Expected::field("text", "text k1");
            store.remove_if(&key("k1"), &expected).await.map(|removed| removed.to_string())
        }
        Asked::Count => store.count().await.map(said),
        Asked::All => store.delete(&Filter::All).await.map(said),
    }
}

async fn counted(subject: Arc<Subject>) -> Outcome {
    let Some(server) = subject.server().map(str::to_owned) else { return Ok(()) };
    let mut told = HashSet::new();
    for (number, lie) in lies(subject.driver()).iter().enumerate() {
        let wire = Wire::new(&server, *lie).await;
        let fresh = subject.at(&wire.url).ready(&[row("k1")]).await?;
        fresh.store.put(&[row("k1"), row("k2")]).await?;
        wire.lies.store(true, Ordering::SeqCst);
        let answer = ask(&*fresh.store, lie.asked).await;
        wire.lies.store(false, Ordering::SeqCst);
        if wire.told.load(Ordering::SeqCst) > 0 {
            told.insert(number);
            let Err(e) = answer else {
                return Err(Fault::new(format_args!("{lie:?} is believed: {answer:?}")));
            };
            let said = e.to_string();
            let kinds = [ErrorKind::Malformed, ErrorKind::Mismatch];
            ensure!(kinds.contains(&e.kind()), "{lie:?}: {e:?}");
            ensure!(said.contains(lie.told), "{lie:?}: {e:?}");
            let named = e.kind() == ErrorKind::Mismatch || said.contains(address(&wire.url));
            ensure!(named, "{lie:?} without the server's name: {e:?}");
        }
        fresh.done().await?;
    }
    println!(
        "{}: {} of {} counts were changed",
        subject.name,
        told.len(),
        lies(subject.driver()).len()
    );
    let removes = [Asked::One, Asked::Twice, Asked::PutIf, Asked::RemoveIf];
    let all =
        lies(subject.driver()).iter().enumerate().filter(|(_, lie)| removes.contains(&lie.asked));
    let missed: Vec<_> = all.filter(|(number, _)| !told.contains(number)).collect();
    ensure!(missed.is_empty(), "never in an answer: {missed:?}");
    Ok(())
}

#[test]
fn counts_of_servers_are_held_to_what_was_asked() {
    places::each(Wrap::Bare, counted);
}

#[test]
fn every_driver_with_a_server_has_lies_of_its_own_or_counts_itself() {
    for driver in steelyard::store::DRIVERS.iter().filter(|driver| !driver.servers.is_empty()) {
        let itself = COUNT_THEMSELVES.contains(&driver.name);
        assert!(lies(driver.name).is_empty() == itself, "{}", driver.name);
    }
}
