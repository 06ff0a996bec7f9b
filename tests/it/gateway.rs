//! The gateway as a process, on real stores: each kind of shard, several gateways, one that is stopped and one that is
//! killed, TLS, a Unix socket, the end by a signal.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::{fs::PermissionsExt, net::UnixStream, process::ExitStatusExt},
    path::Path,
    process::Stdio,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use steelyard::{server::Wish, store::Databases};
use tempfile::TempDir;

use crate::{
    children::{Child, Command},
    programs::{self, need},
    stores::places,
};

const STEELYARD: &str = env!("CARGO_BIN_EXE_steelyard");

/// A folder with a configuration.
struct Installation(TempDir);

impl Installation {
    /// With these shards, by name and URL, and lines of `[listen]`.
    fn new(shards: &[(&str, &str)], listen: &str) -> Installation {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let secret = path.join("secret");
        fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let mut config = format!(
            "catalog = \"sqlite:catalog.db\"\nsecret_file = \"secret\"\nlease_seconds = 0.3\n[listen]\n\
             address = \"127.0.0.1:0\"\n{listen}\n[limits]\nrequests_per_second = 1e6\n"
        );
        for (name, url) in shards {
            // A layout that is not the default is in the name.
            let layout = name.split_once('-').map_or("own", |(layout, _)| layout);
            config += &format!("[shard.{name}]\nurl = \"{url}\"\nlayout = \"{layout}\"\n");
        }
        fs::write(path.join("steelyard.toml"), config).unwrap();
        Installation(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(STEELYARD);
        command.args(args.split_whitespace()).current_dir(self.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What a command that goes well prints on standard output and error.
    #[track_caller]
    fn run(&self, args: &str) -> (String, String) {
        let done = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
        let (out, err) = (text(done.stdout), text(done.stderr));
        assert!(done.status.success(), "{args}: {out} {err}");
        (out, err)
    }

    /// A gateway that serves, and its address.
    fn serve(&self) -> (Child, String) {
        let mut child = self.command("serve --config steelyard.toml").spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("serving on") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before it served");
        }
        let address = line.trim().rsplit_once(' ').unwrap().1.to_owned();
        // Whoever reads no log stops the gateway.
        thread::spawn(move || drop(lines.read_to_string(&mut String::new())));
        (child, address)
    }
}

/// Status and body of an answer, over any stream; none where the gateway ends before it has answered.
fn ask(
    stream: &mut (impl Read + Write),
    key: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Option<(u16, String)> {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

fn over_tcp(
    address: &str,
    key: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address.strip_prefix("http://")?).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    ask(&mut stream, key, method, path, body)
}

/// What a tenant that was moved has; within the lease a gateway may still answer that it is being moved.
fn settled(address: &str, key: &str, path: &str) -> (u16, String) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match over_tcp(address, key, "GET", path, "").unwrap() {
            (503, _) if Instant::now() < until => thread::yield_now(),
            got => return got,
        }
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Signals a gateway, and waits until it has ended.
fn ended(mut child: Child) {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::SIGTERM as i32), "{status}");
}

#[test]
fn a_tenant_goes_from_one_kind_of_store_to_another_and_back() {
    let (mut shards, mut servers) =
        (vec![("sqlite".to_owned(), "sqlite:tenants.db".to_owned())], Vec::new());
    shards.push(("shared-sqlite".to_owned(), "sqlite:shared.db".to_owned()));
    for name in ["postgres", "mariadb", "ferretdb"] {
        let server = need!(programs::server(name, &Wish::default()), continue);
        // In a database of their own: one place is one shard.
        let own = |database: &str| Databases::own_url(server.url(), database).unwrap().unwrap();
        for (layout, database) in [("shared", "together"), ("schema", "schemas")] {
            if layout == "shared" || name == "postgres" {
                places::run(Databases::create(server.url(), database)).unwrap();
                shards.push((format!("{layout}-{name}"), own(database)));
            }
        }
        shards.push((name.to_owned(), server.url().to_owned()));
        servers.push(server);
    }
    let named: Vec<(&str, &str)> = shards.iter().map(|(name, url)| (&**name, &**url)).collect();
    let installation = Installation::new(&named, "");
    let key = installation.run("tenant add ann --shard sqlite").0;
    let other = installation.run("tenant add bob --shard sqlite").0;
    installation.run("tenant limit ann --bytes 5000000 --collections 7");
    let limited = installation.run("tenant limit ann --collections default").0;
    assert!(limited.contains("\"bytes\":5000000,\"collections\":null,"), "{limited}");
    if named.iter().any(|(name, _)| *name == "shared-sqlite") {
        let refused = installation.command("tenant move ann --to shared-sqlite").output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("has a limit of bytes"), "{said}");
    }
    installation.run("tenant limit ann --bytes default");
    let (gateway, address) = installation.serve();
    let put = |path: &str, body: &str| over_tcp(&address, &key, "PUT", path, body).unwrap();
    let documents = [
        ("people/ann%2F1", r#"{"name":"Ångström","age":42,"tags":["a",null,true],"in":{"n":1.5}}"#),
        ("people/bob", r#"{"name":"bob","age":7}"#),
        ("orders/1", r#"{"total":100,"lines":[{"item":"herring","n":3}]}"#),
    ];
    for (path, body) in documents {
        assert_eq!(put(&format!("/v1/docs/{path}"), body).0, 201, "{path}");
    }
    assert_eq!(
        over_tcp(&address, &other, "PUT", "/v1/docs/people/bob", r#"{"of":"bob"}"#).unwrap().0,
        201
    );
    let there = |on: &str| {
        for (path, body) in documents {
            let got = settled(&address, &key, &format!("/v1/docs/{path}"));
            // PostgreSQL keeps names in an order of its own.
            assert_eq!((got.0, json(&got.1)), (200, json(body)), "{path} on {on}");
        }
        let found = over_tcp(&address, &key, "GET", "/v1/docs/people?where=age%3E40", "").unwrap();
        assert!(
            found.0 == 200 && found.1.contains("ngstr") && !found.1.contains("\"bob\""),
            "{found:?}"
        );
        let other = over_tcp(&address, &other, "GET", "/v1/docs/people/bob", "").unwrap();
        assert_eq!(other, (200, r#"{"of":"bob"}"#.to_owned()));
    };
    there("sqlite");
    let round: Vec<&str> = named.iter().skip(1).map(|(name, _)| *name).chain(["sqlite"]).collect();
    for to in round {
        installation.run(&format!("tenant move ann --to {to}"));
        there(to);
    }
    // What the target cannot keep leaves the tenant where it is, and served.
    if named.iter().any(|(name, _)| *name == "postgres") {
        assert_eq!(put("/v1/docs/people/nul", r#"{"text":"a\u0000b"}"#).0, 201);
        let failed = installation.command("tenant move ann --to postgres").output().unwrap();
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(
            failed.status.code() == Some(3)
                && said.contains("served where it was")
                && said.contains("nul"),
            "{said}"
        );
        assert_eq!(settled(&address, &key, "/v1/docs/people/nul").0, 200);
        over_tcp(&address, &key, "DELETE", "/v1/docs/people/nul", "").unwrap();
    }
    // A format that would change a value is no backup.
    if named.iter().any(|(name, _)| *name == "postgres") {
        let key = installation.run("tenant add carl --shard postgres").0;
        let digits = r#"{"n":123456789012345678901234567890}"#;
        assert_eq!(over_tcp(&address, &key, "PUT", "/v1/docs/c/big", digits).unwrap().0, 201);
        let refused = installation.command("tenant backup carl carl.bson").output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(3) && said.contains("\"big\" of c"), "{said}");
        assert!(!installation.path().join("carl.bson").exists());
    }
    installation.run("tenant backup ann ann.cbor.zst");
    for file in fs::read_dir(installation.path()).unwrap().map(|file| file.unwrap()) {
        let mode = file.metadata().unwrap().permissions().mode() & 0o077;
        let name = file.file_name().into_string().unwrap();
        assert!(mode == 0 || name == "steelyard.toml", "{name} is open to others: {mode:o}");
    }
    for (name, _) in &named {
        installation.run(&format!("tenant restore copy-{name} ann.cbor.zst --shard {name}"));
        let key = installation.run(&format!("tenant key add copy-{name} --scope read")).0;
        let got = over_tcp(&address, &key, "GET", "/v1/docs/orders/1", "").unwrap();
        assert_eq!((got.0, json(&got.1)), (200, json(documents[2].1)), "{name}");
        installation.run(&format!("tenant remove copy-{name} --yes"));
        let gone = over_tcp(&address, &key, "GET", "/v1/docs/orders/1", "").unwrap();
        assert_eq!(gone.0, 401, "{name}");
    }
    ended(gateway);
}

/// The index of a new collection is made while others ask for it already; what was opened before knows nothing of it.
#[test]
fn the_indexes_of_a_new_collection_are_used_at_once() {
    let server = need!(programs::server("postgres", &Wish::default()));
    let installation = Installation::new(&[("schema-pg", server.url())], "");
    let config = installation.path().join("steelyard.toml");
    let text =
        fs::read_to_string(&config).unwrap() + "[collection.people]\nindex = { name = \"text\" }\n";
    fs::write(&config, text).unwrap();
    let key = installation.run("tenant add ann --shard schema-pg").0;
    let (gateway, address) = installation.serve();
    let find = || {
        let found =
            over_tcp(&address, &key, "GET", "/v1/docs/people?where=name=name7", "").unwrap();
        assert_eq!(found.0, 200, "{}", found.1);
    };
    thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(find);
            let (address, key) = (&address, &key);
            scope.spawn(move || {
                let line =
                    |n| format!("{{\"id\":\"{writer}-{n}\",\"doc\":{{\"name\":\"name{n}\"}}}}\n");
                let lines: String = (0..2000).map(line).collect();
                let put = over_tcp(address, key, "POST", "/v1/docs/people:bulk", &lines).unwrap();
                assert_eq!(put.0, 200, "{}", put.1);
            });
        }
    });
    let scans = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            let text = "SELECT CAST(coalesce(sum(s.idx_scan), 0) AS bigint) FROM pg_stat_user_indexes s \
                        JOIN pg_index i USING (indexrelid) WHERE s.relname = 'people' AND NOT i.indisprimary";
            let scans: i64 = client.query_one(text, &[]).await.unwrap().get(0);
            drop(client);
            connection.await.unwrap().unwrap();
            scans
        })
    };
    let (before, begin) = (scans(), Instant::now());
    // The statistics come a moment later.
    while scans() == before {
        assert!(begin.elapsed() < Duration::from_secs(20), "the index is not used");
        find();
    }
    ended(gateway);
}

/// Writers through three gateways while the tenant is moved: one gateway is stopped for longer than a lease again and
/// again, one is killed. Each write is of a document of its own, so each can be looked for.
#[test]
fn no_acknowledged_write_is_lost_by_moves_where_gateways_stop_and_die() {
    // How many: `scripts/moves.py` has more of everything.
    let moves: usize =
        std::env::var("STEELYARD_MOVES").map_or(8, |moves| moves.parse().expect("a number"));
    let installation = Installation::new(&[("one", "sqlite:one.db"), ("two", "sqlite:two.db")], "");
    let key = installation.run("tenant add ann --shard one").0;
    let mut gateways: Vec<(Child, String)> = (0..3).map(|_| installation.serve()).collect();
    let (done, written) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 3]);
    let (acknowledged, unknown) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    thread::scope(|scope| {
        for (writer, (_, address)) in gateways.iter().enumerate() {
            let (key, address) = (&key, address.clone());
            let (acknowledged, unknown, done, written) = (&acknowledged, &unknown, &done, &written);
            scope.spawn(move || {
                for n in 0.. {
                    if done.load(Relaxed) {
                        break;
                    }
                    let id = format!("{writer}-{n}");
                    match over_tcp(&address, key, "PUT", &format!("/v1/docs/c/{id}"), "{}") {
                        Some((201, _)) => {
                            acknowledged.lock().unwrap().push(id);
                            written[writer].fetch_add(1, Relaxed);
                        }
                        // The one that was killed.
                        None if writer == 2 => break,
                        None | Some((503 | 504, _)) => drop(unknown.fetch_add(1, Relaxed)),
                        Some(other) => panic!("{id}: {other:?}"),
                    }
                }
            });
        }
        let some = |writer: usize| {
            let before = written[writer].load(Relaxed);
            while written[writer].load(Relaxed) < before + 3 {
                thread::yield_now();
            }
        };
        let pid = |writer: usize| Pid::from_raw(gateways[writer].0.id() as i32);
        for n in 0..moves {
            some(0);
            // Wherever it is: before a write, in it, or before its answer.
            kill(pid(1), Signal::SIGSTOP).unwrap();
            let to = if n % 2 == 0 { "two" } else { "one" };
            installation.run(&format!("tenant move ann --to {to}"));
            kill(pid(1), Signal::SIGCONT).unwrap();
            some(1);
            if n == moves / 2 {
                some(2);
                kill(pid(2), Signal::SIGKILL).unwrap();
            }
        }
        done.store(true, Relaxed);
    });
    let (_, killed) = gateways.pop().unwrap();
    assert!(over_tcp(&killed, &key, "GET", "/v1/docs", "").is_none());
    let (acknowledged, unknown) = (acknowledged.into_inner().unwrap(), unknown.load(Relaxed));
    let address = &gateways[0].1;
    for id in &acknowledged {
        let got = settled(address, &key, &format!("/v1/docs/c/{id}"));
        assert_eq!(got.0, 200, "{id} was acknowledged, and is lost");
    }
    let count = over_tcp(address, &key, "GET", "/v1/docs/c:count", "").unwrap().1;
    let count: u64 = count.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    let least = acknowledged.len() as u64;
    assert!(
        (least..=least + unknown + 1).contains(&count),
        "{count}: {least} acknowledged, {unknown} unknown"
    );
    for (gateway, _) in gateways {
        ended(gateway);
    }
}

#[test]
fn it_is_reached_by_tls_and_by_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, private) = need!(programs::certificate(folder.path()));
    let tls = format!("certificate = \"{certificate}\"\nprivate_key = \"{private}\"");
    let shards = [("one", "sqlite:one.db")];
    let installation = Installation::new(&shards, &tls);
    let key = installation.run("tenant add ann").0;
    let (gateway, address) = installation.serve();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config =
        std::sync::Arc::new(config.unwrap().with_root_certificates(roots).with_no_client_auth());
    let client = rustls::ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(address.strip_prefix("https://").unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(client, stream);
    let put = ask(&mut stream, &key, "PUT", "/v1/docs/c/x", "{}");
    assert_eq!(put.unwrap().0, 201);
    // Without TLS it says nothing.
    assert!(over_tcp(&address.replace("https", "http"), &key, "GET", "/v1/docs", "").is_none());
    ended(gateway);

    let installation = Installation::new(&shards, "unix = \"gateway.sock\"");
    let key = installation.run("tenant add ann").0;
    let (gateway, address) = installation.serve();
    let path = installation.path().join("gateway.sock");
    assert!(address.ends_with("gateway.sock"), "{address}");
    let mut stream = UnixStream::connect(&path).unwrap();
    assert_eq!(ask(&mut stream, &key, "PUT", "/v1/docs/c/x", "{}").unwrap().0, 201);
    ended(gateway);
    assert!(!path.exists());
}

#[test]
fn a_place_or_a_file_is_served_in_a_minute() {
    let installation = Installation::new(&[("one", "sqlite:one.db")], "");
    fs::write(
        installation.path().join("people.json"),
        "{\"_key\":\"ann\",\"age\":42}\n{\"age\":7}\n",
    )
    .unwrap();
    installation.run("copy people.json sqlite:people.db");
    for (place, collection, write) in [
        ("people.json", "people", false),
        ("sqlite:people.db", "records", false),
        ("sqlite:people.db --write", "records", true),
    ] {
        let mut child = installation
            .command(&format!("serve {place} --log off --address 127.0.0.1:0"))
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let (mut link, mut line) = (String::new(), String::new());
        lines.read_line(&mut link).unwrap();
        lines.read_line(&mut line).unwrap();
        // curl -H 'Authorization: Bearer KEY' http://ADDRESS/v1/docs
        let key = line.split("Bearer ").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
        let address = line.trim().rsplit_once(' ').unwrap().1.strip_suffix("/v1/docs").unwrap();
        let path = link.trim().strip_prefix(address).unwrap();
        assert_eq!(over_tcp(address, "", "GET", path, "").unwrap().0, 303, "{link}");
        let names = over_tcp(address, key, "GET", "/v1/docs", "").unwrap();
        assert_eq!(names, (200, format!("{{\"collections\":[\"{collection}\"]}}")), "{place}");
        let ann = over_tcp(address, key, "GET", &format!("/v1/docs/{collection}/ann"), "").unwrap();
        assert_eq!(ann, (200, "{\"age\":42}".to_owned()), "{place}");
        let put =
            over_tcp(address, key, "PUT", &format!("/v1/docs/{collection}/bob"), "{\"age\":1}")
                .unwrap();
        assert_eq!(put.0, if write { 201 } else { 403 }, "{place}");
        ended(child);
    }
    let there = installation.run("get sqlite:people.db bob").0;
    assert!(there.contains("\"age\":1"), "{there}");
}
