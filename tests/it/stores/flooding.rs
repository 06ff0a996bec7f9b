//! Servers that send without end, or lie about lengths: at each of their answers, from the first byte on, the
//! program ends with an error, in time, and in bounded memory.
//!
//! Each driver of the table reads, gets and puts through a wire that lets the answers of a true server pass
//! and floods instead of one of them. The program runs as a child that may have so much memory and no more
//! (`RLIMIT_DATA`): whatever it reserves beyond ends it by a signal, which fails the test.

use std::{
    collections::{HashMap, HashSet},
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::process::ExitStatusExt,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use steelyard::{
    record::Document,
    store::{Client, Key, Row},
};

use super::{
    floods::{Flood, floods},
    places::{self, Fault, Outcome, Subject, Wrap, ensure},
    proxy::{address, moved},
};
use crate::{children::Command, programs::password};

const STEELYARD: &str = env!("CARGO_BIN_EXE_steelyard");

/// Seconds that an operation may take by the URL: enough to read a flood to where it is stopped. Clients that
/// are crates begin again until the time is over.
const TIMEOUT: u64 = 60;
const TIMEOUT_OF_CRATES: u64 = 5;
/// How long the program may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(4 * TIMEOUT);

/// What a program may have beside the largest record of its store: a few times what it takes to read
/// the records there are.
const BESIDE: usize = 300 << 20;

/// What a crate reserves besides, for a length that lies, and cannot be kept from: a document of MongoDB is
/// read by the crate `bson`, which makes room for what a length says, 2 GiB at most. It fills none of it.
const RESERVED: [(&str, usize); 1] = [("mongodb", (2 << 30) + (64 << 20))];

/// Up to so many answers of an operation, each is flooded; of more, these first and the last. All of them take
/// an hour on two cores: `STEELYARD_FLOODS=12` floods the first twelve of each.
fn first() -> usize {
    std::env::var("STEELYARD_FLOODS")
        .map_or(2, |n| n.parse().expect("STEELYARD_FLOODS is a number"))
}

/// A wire that floods.
struct Wire {
    url: String,
    answers: Arc<AtomicUsize>,
    floods: Arc<AtomicBool>,
}

impl Wire {
    /// A wire to the server of `url` that floods instead of answer number `at`, counted from 1 over all
    /// connections; 0 is before anything was asked, and none is never.
    fn new(url: &str, at: Option<usize>, flood: &Flood) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Wire {
            url: moved(url, listener.local_addr().unwrap()),
            answers: Arc::default(),
            floods: Arc::default(),
        };
        let (server, flood) = (address(url).to_owned(), Arc::new(flood.clone()));
        let (answers, floods) = (wire.answers.clone(), wire.floods.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, flood) = (server.clone(), flood.clone());
                let (answers, floods) = (answers.clone(), floods.clone());
                thread::spawn(move || {
                    if at == Some(0) {
                        floods.store(true, Ordering::SeqCst);
                        return flood.pour(client);
                    }
                    let _ = pass(client, &server, |answer: &TcpStream| {
                        let number = answers.fetch_add(1, Ordering::SeqCst) + 1;
                        let now = at.is_some_and(|at| number >= at);
                        if now {
                            floods.store(true, Ordering::SeqCst);
                            flood.pour(answer.try_clone().unwrap());
                        }
                        !now
                    });
                });
            }
        });
        wire
    }
}

/// Passes bytes both ways; `may` is asked before each answer is passed on.
fn pass(
    client: TcpStream,
    server: &str,
    mut may: impl FnMut(&TcpStream) -> bool,
) -> std::io::Result<()> {
    let server = TcpStream::connect(server)?;
    // The server may speak first.
    let asked = Arc::new(AtomicBool::new(true));
    let (mut from, mut to, asks) = (client.try_clone()?, server.try_clone()?, asked.clone());
    thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            asks.store(true, Ordering::SeqCst);
            if to.write_all(&bytes[..n]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    let (mut from, mut to) = (server, client);
    let mut bytes = vec![0; 64 << 10];
    while let n @ 1.. = from.read(&mut bytes)? {
        if asked.swap(false, Ordering::SeqCst) && !may(&to) {
            break;
        }
        to.write_all(&bytes[..n])?;
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    from.shutdown(std::net::Shutdown::Both)
}

/// How a program ended.
#[derive(Debug)]
struct Ended {
    status: Option<i32>,
    signal: Option<i32>,
    said: String,
}

/// Runs it with so much memory and no more; none where it does not end.
fn run(arguments: &[&str], input: &str, bytes: usize) -> Option<Ended> {
    let limit = format!("ulimit -d {}; exec \"$0\" \"$@\"", bytes >> 10);
    let mut child = Command::new("sh")
        .args(["-c", &limit, STEELYARD])
        .args(arguments)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let id = nix::unistd::Pid::from_raw(child.id().cast_signed());
    let (ended, wait) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait_with_output()));
    let Ok(done) = wait.recv_timeout(PATIENCE) else {
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGKILL);
        return None;
    };
    let done = done.unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    Some(Ended { status: done.status.code(), signal: done.status.signal(), said })
}

/// An operation, and what goes in.
type Operation = (&'static str, &'static [&'static str], &'static str);

const OPERATIONS: [Operation; 3] = [
    ("each", &[], ""),
    ("get", &["k1", "k2", "k3"], ""),
    ("put", &[], "{\"_key\": \"k1\", \"text\": \"again\"}\n{\"_key\": \"new\", \"text\": \"n\"}\n"),
];

async fn flooded(subject: Arc<Subject>, largest: usize) -> Outcome {
    let Some(server) = subject.server() else { return Ok(()) };
    let rows: Vec<Row> = (0..30)
        .map(|n| Row {
            key: Key::new(format!("k{n}")).expect("not empty"),
            record: Document::from_iter([("text", format!("text {n}"))]),
        })
        .collect();
    let name = places::name("flood");
    let table = format!("table={name}");
    let fresh = subject.open(&table).await?.ready(&rows[..1]).await?;
    fresh.store.put(&rows).await?;
    let reserved = RESERVED.iter().find(|(name, _)| *name == subject.driver());
    let bytes = largest + BESIDE + reserved.map_or(0, |(_, bytes)| *bytes);
    let own = fresh.store.describe().await?.client == Client::Own;
    let timeout = if own { TIMEOUT } else { TIMEOUT_OF_CRATES };
    let first = first();
    let options = format!("{table}&timeout={timeout}&connect_timeout={timeout}");
    let url = subject.url(&options).expect("it has a server");
    let secret = password(server).filter(|secret| secret.len() > 3);
    let mut faults = Vec::new();
    for (verb, arguments, input) in OPERATIONS {
        let through = |wire: &Wire| {
            let arguments: Vec<&str> =
                [verb, &wire.url].into_iter().chain(arguments.iter().copied()).collect();
            run(&arguments, input, bytes)
        };
        // How many answers there are, and that all is well without a flood.
        let wire = Wire::new(&url, None, &Flood::default());
        let ended = through(&wire);
        let Some(Ended { status: Some(0), .. }) = ended else {
            return Err(Fault::new(format_args!("{verb}, not flooded: {ended:?}")));
        };
        let answers = wire.answers.load(Ordering::SeqCst);
        let each = (0..=answers).filter(|at| {
            let last = *at + 2 > answers;
            if verb == "each" { *at < first || last } else { last }
        });
        for at in each {
            for flood in floods(subject.driver()) {
                if flood.slow && (verb != "get" || at != answers) {
                    continue;
                }
                let wire = Wire::new(&url, Some(at), &flood);
                let what = format!("{verb}, {} at answer {at} of {answers}", flood.name);
                let ended = through(&wire);
                // Crates ask on their own, too, and need no answer when all is done.
                let unasked = !own && at == answers;
                if unasked && ended.as_ref().is_some_and(|ended| ended.status == Some(0)) {
                    continue;
                }
                if let Err(fault) = judge(&flood, ended, own, secret, &wire) {
                    println!("{}: {what}: {fault:?}", subject.name);
                    faults.push(format!("{what}: {fault:?}"));
                }
            }
        }
    }
    ensure!(faults.is_empty(), "{} floods:\n{}", faults.len(), faults.join("\n"));
    fresh.done().await
}

/// Whether it ended as it should.
fn judge(
    flood: &Flood,
    ended: Option<Ended>,
    own: bool,
    secret: Option<&str>,
    wire: &Wire,
) -> Outcome {
    let Some(Ended { status, signal, said }) = ended else {
        return Err(Fault::new(format_args!("no end within {} s", PATIENCE.as_secs())));
    };
    let short: String = said.chars().take(300).collect();
    ensure!(signal.is_none() && !said.contains("panicked"), "signal {signal:?}: {short}");
    ensure!(secret.is_none_or(|secret| !said.contains(secret)), "a password is shown: {short}");
    if flood.endless && wire.floods.load(Ordering::SeqCst) {
        ensure!(status == Some(3), "exit status {status:?}: {short}");
        let place = address(&wire.url);
        ensure!(said.contains(place), "it does not say where: {short}");
        // It came, and without end: that the time is over says that nothing stopped it before.
        ensure!(!own || !said.contains("no answer within"), "until the time was over: {short}");
    }
    Ok(())
}

#[test]
fn floods_end_with_an_error_in_bounded_memory() {
    // One layout of each server is enough: they share what reads answers, which has to have room for the
    // largest record of any.
    let mut largest: HashMap<&str, usize> = HashMap::new();
    let (mut seen, mut usual) = (HashSet::new(), HashSet::new());
    for subject in places::subjects(Wrap::Bare) {
        let Some(server) = subject.server() else { continue };
        let opened = places::run(subject.open("")).unwrap();
        let most = largest.entry(subject.driver()).or_default();
        *most = opened.store.abilities().max_record.max(*most);
        if seen.insert((subject.driver(), server.to_owned())) {
            usual.insert(subject.name.clone());
        }
    }
    places::each(Wrap::Bare, |subject: Arc<Subject>| {
        let largest = largest.get(subject.driver()).copied().unwrap_or_default();
        let usual = usual.contains(&subject.name);
        async move {
            match usual {
                true => flooded(subject, largest).await,
                false => Ok(()),
            }
        }
    });
}

#[test]
fn every_driver_with_a_server_has_floods_of_its_own() {
    for driver in steelyard::store::DRIVERS.iter().filter(|driver| !driver.servers.is_empty()) {
        let own = floods(driver.name).len();
        assert!(own > floods("none").len(), "{} is flooded with nothing of its own", driver.name);
    }
}

#[test]
fn a_program_that_takes_too_much_memory_is_caught() {
    let ended = run(&["generate", "people", "--count", "1000"], "", 1 << 20).unwrap();
    assert_ne!(ended.status, Some(0), "{ended:?}");
    let hostless = Wire::new("redis://127.0.0.1:1/", None, &Flood::default());
    assert!(judge(&Flood::default(), Some(ended), false, None, &hostless).is_err());
    assert!(judge(&Flood::default(), None, false, None, &hostless).is_err());
}
