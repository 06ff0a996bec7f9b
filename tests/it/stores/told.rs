//! What a store says of itself (`describe`) and of its limits, held to what its server says when it is
//! asked another way: by its own client program, or over a plain socket. Nothing here is the driver's code.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use steelyard::{
    durability::Tier,
    record::{Document, Value},
    store::{Description, Key, Row, Url},
};

use super::places::{self, Fault, Outcome, Subject, Wrap, ensure};
use crate::{children::Command, programs};

/// What a server says of itself.
struct Said {
    product: String,
    version: String,
    /// The settings that `describe` must give, and their values.
    settings: Vec<(&'static str, String)>,
    /// Those it gives of the store's own: the server does not know them.
    own: &'static [&'static str],
    /// The durability that follows from the settings; none where the server does not tell.
    set: Option<Tier>,
    /// No record can be larger, in bytes.
    largest: Option<usize>,
}

/// Whether a description is what the server says.
fn compare(about: &Description, largest: usize, said: &Said) -> Outcome {
    ensure!(about.product == said.product, "product {:?}, not {:?}", about.product, said.product);
    ensure!(about.version == said.version, "version {:?}, not {:?}", about.version, said.version);
    for (name, value) in &said.settings {
        let told = about.settings.iter().find(|(n, _)| n == name).map(|(_, value)| value);
        ensure!(told == Some(value), "{name} is {told:?}, the server says {value:?}");
    }
    for (name, value) in &about.settings {
        let known = said.own.contains(&name.as_str()) || said.settings.iter().any(|s| s.0 == name);
        ensure!(known, "{name}={value} is compared with nothing: ask the server for it here");
    }
    ensure!(about.set == said.set, "durability {:?}, the server's is {:?}", about.set, said.set);
    let bound = about.bound.is_some();
    ensure!(bound == (said.set == Some(Tier::T2)), "a bound of t2 alone: {:?}", about.bound);
    let limit = said.largest.unwrap_or(usize::MAX);
    ensure!(largest <= limit, "records of {largest} bytes, the server takes {limit}");
    Ok(())
}

/// The output of a program.
fn output(program: &str, args: &[&str], secret: (&str, &str)) -> Result<String, Fault> {
    let done = Command::new(program).args(args).env(secret.0, secret.1).output();
    let done = done.map_err(Fault::new)?;
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if !done.status.success() {
        return Err(Fault::new(format_args!("{program}: {err}")));
    }
    Ok(out.trim().to_owned())
}

/// What comes on a socket after this was sent, until the server closes it.
fn exchange(address: (&str, u16), sent: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut socket = TcpStream::connect(address).map_err(Fault::new)?;
    socket.set_read_timeout(Some(Duration::from_secs(30))).map_err(Fault::new)?;
    socket.write_all(sent).map_err(Fault::new)?;
    let mut all = Vec::new();
    socket.read_to_end(&mut all).map_err(Fault::new)?;
    Ok(all)
}

/// An answer of HTTP: its head and its body.
fn page(address: (&str, u16), login: Option<(&str, &str)>) -> Result<(String, String), Fault> {
    let login = login.map_or(String::new(), |(user, password)| {
        let login = BASE64_STANDARD.encode(format!("{user}:{password}"));
        format!("Authorization: Basic {login}\r\n")
    });
    let host = address.0;
    let asked = format!("GET / HTTP/1.0\r\nHost: {host}\r\n{login}Connection: close\r\n\r\n");
    let answer = exchange(address, asked.as_bytes())?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return Err(Fault::new(format_args!("no HTTP: {answer}")));
    };
    Ok((head.to_owned(), body.to_owned()))
}

fn postgres(url: &str) -> Result<Said, Fault> {
    const SETTINGS: [&str; 6] = [
        "fsync",
        "synchronous_commit",
        "full_page_writes",
        "wal_sync_method",
        "shared_buffers",
        "server_encoding",
    ];
    let ask = |what: &str| output("psql", &[url, "-At", "-c", what], ("PGCONNECT_TIMEOUT", "30"));
    let settings = SETTINGS.iter().map(|name| Ok((*name, ask(&format!("SHOW {name}"))?)));
    let settings = settings.collect::<Result<Vec<_>, Fault>>()?;
    let is_on = |name: &str| settings.iter().any(|(n, value)| *n == name && value != "off");
    let set = match (is_on("fsync"), is_on("synchronous_commit"), is_on("full_page_writes")) {
        (false, false, _) => Tier::T0,
        (false, true, _) | (_, _, false) => Tier::T1,
        (true, false, true) => Tier::T2,
        (true, true, true) => Tier::T3,
    };
    let version = ask("SELECT version()")?;
    Ok(Said {
        product: version.split(' ').next().unwrap_or_default().to_owned(),
        version: ask("SHOW server_version")?,
        settings,
        own: &["table"],
        set: Some(set),
        // A field of a row, as the manual says.
        largest: Some(1 << 30),
    })
}

fn mysql(url: &Url, engine: &str) -> Result<Said, Fault> {
    const SETTINGS: [&str; 9] = [
        "innodb_flush_log_at_trx_commit",
        "log_bin",
        "sync_binlog",
        "innodb_flush_method",
        "innodb_doublewrite",
        "max_allowed_packet",
        "local_infile",
        "version",
        "version_comment",
    ];
    let (host, port) = url.one_host(3306)?;
    let port = format!("--port={port}");
    let user = format!("--user={}", url.user.as_deref().unwrap_or("root"));
    let password = url.password.as_ref().map_or("", |password| password.reveal());
    let host = format!("--host={host}");
    let asked = ["--protocol=tcp", &host, &port, &user, "--skip-ssl", "-N", "-B", "-e"];
    let args = [&asked[..], &["SHOW GLOBAL VARIABLES"]].concat();
    let all = output("mariadb", &args, ("MYSQL_PWD", password))?;
    let value = |name: &str| {
        let line = all.lines().filter_map(|line| line.split_once('\t')).find(|line| line.0 == name);
        line.map(|(_, value)| value.to_owned()).ok_or_else(|| Fault::new(format_args!("no {name}")))
    };
    let settings = SETTINGS.iter().map(|name| Ok((*name, value(name)?)));
    let mut settings = settings.collect::<Result<Vec<_>, Fault>>()?;
    settings.push(("engine", engine.to_owned()));
    let logs = value("log_bin")? == "ON" && value("sync_binlog")? != "1";
    let torn = !["ON", "1"].contains(&value("innodb_doublewrite")?.as_str());
    let set = match (value("innodb_flush_log_at_trx_commit")?.as_str(), logs) {
        _ if engine == "MyISAM" || torn => Tier::T1,
        ("1", false) => Tier::T3,
        _ => Tier::T2,
    };
    let version = value("version")?;
    Ok(Said {
        product: if version.contains("MariaDB") { "MariaDB" } else { "MySQL" }.into(),
        version: version.split('-').next().unwrap_or_default().to_owned(),
        settings,
        own: &["collation"],
        set: Some(set),
        largest: value("max_allowed_packet")?.parse().ok(),
    })
}

fn redis(url: &Url) -> Result<Said, Fault> {
    const SETTINGS: [&str; 6] = [
        "appendonly",
        "appendfsync",
        "no-appendfsync-on-rewrite",
        "save",
        "maxmemory",
        "proto-max-bulk-len",
    ];
    let (host, port) = url.one_host(6379)?;
    let port = port.to_string();
    let password = url.password.as_ref().map_or("", |password| password.reveal());
    let ask = |what: &[&str]| {
        let args = [&["-h", &host, "-p", &port, "--no-auth-warning"], what].concat();
        output("redis-cli", &args, ("REDISCLI_AUTH", password))
    };
    let value = |name: &str| {
        // The name, then the value, which may be empty.
        let found = ask(&["CONFIG", "GET", name])?;
        Ok::<_, Fault>(found.lines().nth(1).unwrap_or_default().to_owned())
    };
    let settings = SETTINGS.iter().map(|name| Ok((*name, value(name)?)));
    let info = ask(&["INFO", "server"])?;
    let line = |name: &str| {
        let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.map(|found| found.trim().to_owned())
    };
    let set = match (value("appendonly")?.as_str(), value("appendfsync")?.as_str()) {
        ("no", _) => Tier::T0,
        (_, "always") if value("no-appendfsync-on-rewrite")? == "no" => Tier::T3,
        (_, "everysec") if value("no-appendfsync-on-rewrite")? == "no" => Tier::T2,
        _ => Tier::T1,
    };
    let valkey = line("valkey_version");
    Ok(Said {
        product: if valkey.is_some() { "Valkey" } else { "Redis" }.into(),
        version: valkey.or(line("redis_version")).unwrap_or_default(),
        settings: settings.collect::<Result<_, Fault>>()?,
        own: &[],
        set: Some(set),
        largest: value("proto-max-bulk-len")?.parse().ok(),
    })
}

fn memcached(url: &Url) -> Result<Said, Fault> {
    let (host, port) = url.one_host(11211)?;
    let sent = b"version\r\nstats settings\r\nquit\r\n";
    let all = String::from_utf8_lossy(&exchange((&host, port), sent)?).into_owned();
    let value = |name: &str| {
        let mut lines = all.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.map(str::to_owned).ok_or_else(|| Fault::new(format_args!("no {name} in {all}")))
    };
    let stat = |name: &'static str| Ok::<_, Fault>((name, value(&format!("STAT {name}"))?));
    let largest = stat("item_size_max")?;
    Ok(Said {
        product: "memcached".into(),
        version: value("VERSION")?,
        largest: largest.1.parse().ok(),
        settings: vec![largest, stat("maxbytes")?, ("servers", "1".into())],
        // Other tests go on writing: it counts.
        own: &["evictions"],
        set: Some(Tier::T0),
    })
}

fn tyrant(url: &Url) -> Result<Said, Fault> {
    let (host, port) = url.one_host(1978)?;
    let mut socket = TcpStream::connect((host, port)).map_err(Fault::new)?;
    socket.write_all(&[0xc8, 0x88]).map_err(Fault::new)?;
    let mut head = [0; 5];
    socket.read_exact(&mut head).map_err(Fault::new)?;
    if head[0] != 0 {
        return Err(Fault::new(format_args!("stat: code {}", head[0])));
    }
    let mut text = vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize];
    socket.read_exact(&mut text).map_err(Fault::new)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let value = |name: &str| {
        let found = text.lines().filter_map(|line| line.split_once('\t')).find(|l| l.0 == name);
        found.map_or(String::new(), |(_, value)| value.to_owned())
    };
    let version = value("version");
    let (product, version) = match version.strip_prefix("tokyocabinet ") {
        Some(version) => ("stand-in for ttserver over Tokyo Cabinet", version.to_owned()),
        None => ("Tokyo Tyrant", version.clone()),
    };
    let in_memory = value("path").starts_with(['*', '+']);
    Ok(Said {
        product: product.into(),
        version,
        settings: ["type", "path"].map(|name| (name, value(name))).to_vec(),
        // Other tests go on writing: records are counted.
        own: &["sync after each batch", "rnum"],
        set: Some(if in_memory { Tier::T0 } else { Tier::T1 }),
        largest: None,
    })
}

fn couchdb(url: &Url) -> Result<Said, Fault> {
    let (host, port) = url.one_host(5984)?;
    let password = url.password.as_ref().map_or("", |password| password.reveal());
    let (_, body) = page((&host, port), url.user.as_deref().map(|user| (user, password)))?;
    let said: serde_json::Value = serde_json::from_str(&body).map_err(Fault::new)?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut settings = Vec::new();
    let vendor = text(&said["vendor"]["name"]);
    if !vendor.is_empty() {
        settings.push(("vendor", vendor));
    }
    let pouchdb = said["express-pouchdb"].is_string();
    let adapters = said["pouchdb-adapters"].as_array().cloned().unwrap_or_default();
    let adapters: Vec<String> = adapters.iter().map(text).collect();
    let set = match pouchdb {
        // It syncs what its adapter syncs, which it does not tell.
        true => (adapters == ["memory"]).then_some(Tier::T0),
        false => Some(Tier::T3),
    };
    if pouchdb {
        settings.push(("adapters", adapters.join(",")));
    }
    Ok(Said {
        product: if pouchdb { "express-pouchdb" } else { "CouchDB" }.into(),
        version: text(&said["version"]),
        settings,
        own: &["database"],
        set,
        largest: None,
    })
}

fn s3(url: &str) -> Result<Said, Fault> {
    let endpoint = url.split_once("endpoint=http://").map_or("", |(_, rest)| rest);
    let endpoint = endpoint.split(['&', '/']).next().unwrap_or_default();
    let (host, port) = endpoint.split_once(':').unwrap_or((endpoint, "80"));
    // Who does not sign is refused, with the server's name all the same.
    let (head, _) = page((host, port.parse().map_err(Fault::new)?), None)?;
    let name = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("server").then(|| value.trim().to_owned())
    });
    Ok(Said {
        product: name.unwrap_or_else(|| "S3".into()),
        version: String::new(),
        settings: Vec::new(),
        own: &["bucket", "folder", "server_tier, as the URL says"],
        set: None,
        largest: None,
    })
}

#[cfg(feature = "mongodb")]
async fn mongodb(url: &str) -> Result<Said, Fault> {
    let client = mongodb::Client::with_uri_str(url).await.map_err(Fault::new)?;
    let build = client.database("admin").run_command(bson::doc! {"buildInfo": 1}).await;
    let build = build.map_err(Fault::new)?;
    let version = build.get_str("version").map_err(Fault::new)?;
    let Ok(own) = build.get_document("ferretdb") else {
        return Err(Fault::new("this is MongoDB: say here what is known of it"));
    };
    let below: Vec<&str> =
        own.get_str("postgresql").unwrap_or_default().split(' ').take(2).collect();
    let below = match below.join(" ") {
        below if below.is_empty() => "PostgreSQL".to_owned(),
        below => below,
    };
    let own_version = own.get_str("version").map_err(Fault::new)?;
    Ok(Said {
        product: format!("FerretDB on {below}"),
        version: own_version.trim_start_matches('v').to_owned(),
        settings: vec![("speaks as", format!("MongoDB {version}"))],
        own: &["write concern"],
        // What PostgreSQL behind it does, it does not tell.
        set: None,
        largest: build.get_i32("maxBsonObjectSize").ok().and_then(|n| n.try_into().ok()),
    })
}

async fn described(subject: Arc<Subject>) -> Outcome {
    let Some(server) = subject.server() else { return Ok(()) };
    let record = Document::from_iter([("n", Value::Int(1))]);
    let row = Row { key: Key::new("k")?, record };
    let fresh = subject.ready(std::slice::from_ref(&row)).await?;
    let url = Url::parse(server)?;
    let said = match subject.driver() {
        "postgres" => postgres(server)?,
        "mysql" if subject.name.contains("myisam") => mysql(&url, "MyISAM")?,
        "mysql" => mysql(&url, "InnoDB")?,
        "redis" => redis(&url)?,
        "memcached" => memcached(&url)?,
        "tyrant" => tyrant(&url)?,
        "couchdb" => couchdb(&url)?,
        "s3" => s3(server)?,
        #[cfg(feature = "mongodb")]
        "mongodb" => mongodb(server).await?,
        other => return Err(Fault::new(format_args!("how else is {other} asked? Say it here"))),
    };
    let about = fresh.store.describe().await?;
    compare(&about, fresh.store.abilities().max_record, &said)?;
    fresh.done().await
}

#[test]
fn a_description_is_what_the_server_says_another_way() {
    for program in ["psql", "mariadb", "redis-cli"] {
        programs::need!(programs::found(program));
    }
    places::each(Wrap::Bare, described);
}

#[test]
fn another_description_is_caught() {
    let about = || Description {
        client: steelyard::store::Client::Own,
        product: "Server".into(),
        version: "1.2".into(),
        shape: steelyard::store::Shape::Blob,
        format: None,
        asked: None,
        set: Some(Tier::T1),
        bound: None,
        limit: None,
        settings: vec![("a".into(), "1".into()), ("table".into(), "t".into())],
        disk: None,
    };
    let said = Said {
        product: "Server".into(),
        version: "1.2".into(),
        settings: vec![("a", "1".into())],
        own: &["table"],
        set: Some(Tier::T1),
        largest: Some(10),
    };
    compare(&about(), 10, &said).unwrap();
    let mut changes: Vec<Description> = (0..5).map(|_| about()).collect();
    changes[0].product = "server".into();
    changes[1].version = "1.3".into();
    changes[2].settings[0].1 = "2".into();
    changes[3].settings.push(("b".into(), "1".into()));
    changes[4].set = Some(Tier::T3);
    for change in changes {
        assert!(compare(&change, 10, &said).is_err(), "{change:?}");
    }
    assert!(compare(&about(), 11, &said).is_err());
}
