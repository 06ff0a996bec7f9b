//! URLs, the options of the client, and how durable its writes are.

use mongodb::{
    Client,
    options::{Acknowledgment, ClientOptions, WriteConcern},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::error::{ours, theirs};
use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    store::{Common, Url, net::Address, within},
};

/// Options of MongoDB's own URLs that are passed on. Times, the size of the pool and write
/// concerns are not among them: they are said in the way of all stores.
const PASSED_ON: [&str; 15] = [
    "appName",
    "authMechanism",
    "authSource",
    "directConnection",
    "loadBalanced",
    "localThresholdMS",
    "readConcernLevel",
    "readPreference",
    "replicaSet",
    "srvServiceName",
    "tls",
    "tlsAllowInvalidCertificates",
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "tlsInsecure",
];

/// What names of databases cannot hold, on some system or other, and their longest in bytes.
const NOT_IN_DATABASES: [char; 12] = ['/', '\\', '.', ' ', '"', '$', '*', '<', '>', ':', '|', '?'];
const LONGEST_DATABASE: usize = 63;
/// The longest name of a collection with that of its database, in bytes, that every server takes.
const LONGEST_NAMESPACE: usize = 235;

/// The database where the URL names none; MongoDB's shell has the same.
pub(super) const DATABASE: &str = "test";

/// Opens what the URL names, taking its options out: the client, and the name of the database.
pub(super) async fn client(url: &mut Url, common: &Common) -> Result<(Client, String)> {
    let database = match url.path.trim_end_matches('/') {
        "" => DATABASE.to_owned(),
        name => name.to_owned(),
    };
    check_database(&database)?;
    let text = text(url, &database);
    url.done()?;
    let parse = async { ClientOptions::parse(&text).await.map_err(ours) };
    let mut options = within(common.connect_timeout, "names of servers", parse).await?;
    options.app_name.get_or_insert_with(|| "steelyard".into());
    options.max_pool_size = Some(u32::try_from(common.pool).unwrap_or(u32::MAX));
    options.connect_timeout = Some(common.connect_timeout);
    options.server_selection_timeout = Some(common.connect_timeout);
    // What fails, fails here: an attempt that nobody counts would be in no figure.
    options.retry_reads = Some(false);
    options.retry_writes = Some(false);
    options.write_concern = None;
    Ok((Client::with_options(options).map_err(ours)?, database))
}

/// The servers of the URL, for errors.
pub(super) fn place(url: &Url) -> String {
    let host = |(host, port): &(String, Option<u16>)| match port {
        // A path, or a name that stands for several servers.
        None if host.starts_with('/') || url.scheme.ends_with("srv") => host.clone(),
        port => Address::Tcp(host.clone(), port.unwrap_or(27017)).to_string(),
    };
    match &*url.hosts {
        [] => host(&("127.0.0.1".into(), None)),
        hosts => hosts.iter().map(host).collect::<Vec<_>>().join(","),
    }
}

/// The URL in the client's words.
fn text(url: &mut Url, database: &str) -> String {
    /// All but what RFC 3986 calls unreserved.
    const ESCAPED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let escaped = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
    let mut text = format!("{}://", url.scheme);
    if let Some(user) = &url.user {
        text += &escaped(user);
        if let Some(password) = &url.password {
            text += ":";
            text += &escaped(password.reveal());
        }
        text += "@";
    }
    let host = |(host, port): &(String, Option<u16>)| {
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            // A path is that of a socket.
            false if host.starts_with('/') => escaped(host),
            false => host.clone(),
        };
        match port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    };
    match &*url.hosts {
        [] => text += "127.0.0.1",
        hosts => text += &hosts.iter().map(host).collect::<Vec<_>>().join(","),
    }
    text += "/";
    text += &escaped(database);
    let mut before = '?';
    // As it is called in the URLs of all stores.
    let ca = url.take("ca");
    for name in PASSED_ON {
        let value = url.take(name);
        let value = if name == "tlsCAFile" { value.or(ca.clone()) } else { value };
        if let Some(value) = value {
            text.push(before);
            text += name;
            text += "=";
            text += &escaped(&value);
            before = '&';
        }
    }
    text
}

pub(super) fn check_database(name: &str) -> Result<()> {
    let wrong = match name {
        name if name.len() > LONGEST_DATABASE => {
            format!("it has more than {LONGEST_DATABASE} bytes")
        }
        name if name.contains(|c| c == '\0' || NOT_IN_DATABASES.contains(&c)) => {
            "it has a character that is not allowed".into()
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("not a valid database name in MongoDB: {name:?}; {wrong}")))
}

/// Whether a collection can have this name.
pub(super) fn check_table(database: &str, name: &str) -> Result<()> {
    let wrong = match name {
        "" => "it is empty".into(),
        name if name.contains(['\0', '$']) => "it holds a NUL or a $".into(),
        name if name.starts_with('.') || name.ends_with('.') => {
            "it begins or ends with a dot".into()
        }
        name if name.starts_with("system.") => "MongoDB reserves names that begin so".into(),
        name if database.len() + 1 + name.len() > LONGEST_NAMESPACE => {
            format!("with that of its database it has more than {LONGEST_NAMESPACE} bytes")
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("not a valid collection name in MongoDB: {name:?}; {wrong}")))
}

/// What a write asks for so that it is of this tier: none where the server is left its own way.
///
/// With `j: true` a write is acknowledged when it is in the journal on disk; without it the journal
/// follows every 100 ms. What is not acknowledged at all (`w: 0`) is of no tier.
pub(super) fn concern(tier: Option<Tier>) -> Result<Option<WriteConcern>> {
    let journal = match tier {
        None => return Ok(None),
        Some(Tier::T3) => true,
        Some(Tier::T2) => false,
        Some(tier) => return Err(tier.refused("mongodb", &[Tier::T3, Tier::T2])),
    };
    Ok(Some(WriteConcern::builder().w(Acknowledgment::Nodes(1)).journal(journal).build()))
}

/// The server answers, and lets us in.
pub(super) async fn greet(client: &Client, database: &str, common: &Common) -> Result<()> {
    let database = client.database(database);
    let greeting = async {
        // A ping alone would need no login.
        let command = bson::doc! {"listCollections": 1, "nameOnly": true, "cursor": {}};
        database.run_command(command).await.map_err(ours)
    };
    match within(common.connect_timeout + common.timeout, "a greeting", greeting).await {
        Ok(_) => Ok(()),
        // It knows us, and has an opinion on what we may see.
        Err(e) if e.kind() == ErrorKind::Denied && code(&e) == Some(13) => Ok(()),
        Err(e) => Err(e),
    }
}

fn code(error: &Error) -> Option<i32> {
    match &*theirs(error)?.kind {
        mongodb::error::ErrorKind::Command(e) => Some(e.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_in_the_clients_words() {
        for (url, want) in [
            ("mongodb:", "mongodb://127.0.0.1/shop"),
            ("mongodb://h", "mongodb://h/shop"),
            (
                "mongodb://us%40er:p%2Fs@a:1,b,[::1]:2/shop?replicaSet=r%26s&authSource=admin",
                "mongodb://us%40er:p%2Fs@a:1,b,[::1]:2/shop?authSource=admin&replicaSet=r%26s",
            ),
            ("mongodb+srv://h.example/", "mongodb+srv://h.example/shop"),
            ("mongodb://h?tls=true&ca=a.pem", "mongodb://h/shop?tls=true&tlsCAFile=a%2Epem"),
            ("mongodb://%2Ftmp%2Fm.sock/", "mongodb://%2Ftmp%2Fm%2Esock/shop"),
        ] {
            let mut url = Url::parse(url).unwrap();
            let text = text(&mut url, "shop");
            assert_eq!(text.replace("%2E", "."), want.replace("%2E", "."));
            url.done().unwrap();
        }
    }

    #[test]
    fn names_are_checked() {
        for name in ["shop", "weird-ü"] {
            check_database(name).unwrap();
        }
        for name in ["a.b", "a b", "a$", "a\0", &"a".repeat(64)] {
            assert_eq!(check_database(name).unwrap_err().kind(), ErrorKind::Invalid, "{name}");
        }
        for name in ["records", "we\"ird.ta'ble; drop ü🙂", &"x".repeat(200)] {
            check_table("test", name).unwrap();
        }
        for name in ["", "a$b", "a\0b", ".a", "a.", "system.users", &"x".repeat(240)] {
            assert_eq!(check_table("test", name).unwrap_err().kind(), ErrorKind::Invalid, "{name}");
        }
    }

    #[test]
    fn what_is_not_acknowledged_is_of_no_tier() {
        assert!(concern(None).unwrap().is_none());
        for (tier, journal) in [(Tier::T3, true), (Tier::T2, false)] {
            let concern = concern(Some(tier)).unwrap().unwrap();
            assert_eq!(concern.journal, Some(journal));
            assert_eq!(concern.w, Some(Acknowledgment::Nodes(1)));
        }
        for tier in [Tier::T0, Tier::T1] {
            let error = concern(Some(tier)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
    }
}
