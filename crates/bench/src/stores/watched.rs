//! The processes to trace for a store: those of its private server; this process, for a store without a server; or, for
//! a user's own server on this machine, the process that listens at the URL's address, and its descendants.

use std::{
    net::ToSocketAddrs,
    path::{Path, PathBuf},
};

use super::target::{Opened, Target};
use crate::{
    Error, Result,
    server::{Address, listeners},
    store::{DRIVERS, Url},
};

/// The ports that servers have where the URL names none.
const PORTS: [(&str, u16); 7] = [
    ("couchdb", 5984),
    ("memcached", 11211),
    ("mongodb", 27017),
    ("mysql", 3306),
    ("postgres", 5432),
    ("redis", 6379),
    ("tyrant", 1978),
];

/// The processes whose calls show what a store does.
///
/// # Errors
/// [`Unavailable`](crate::ErrorKind::Unavailable) with the reason, where they cannot be seen from here.
pub(super) fn processes(target: &Target, opened: &Opened) -> Result<Vec<u32>> {
    match (&opened.server, target.own_url()) {
        (Some(server), _) => Ok(server.processes()),
        (None, None) => Ok(vec![std::process::id()]),
        (None, Some(url)) => of_url(url),
    }
}

/// Of a URL of the user's own.
///
/// # Errors
/// As [`processes`].
pub(super) fn of_url(url: &str) -> Result<Vec<u32>> {
    let Some(addresses) = addresses(&Url::parse(url)?)? else {
        return Ok(vec![std::process::id()]);
    };
    let mut found = Vec::new();
    for address in addresses {
        found.extend(listeners(&address)?);
    }
    found.sort_unstable();
    found.dedup();
    // What listens in this process passes on what it is sent: it is no server.
    match found.contains(&std::process::id()) {
        true => Err(Error::unavailable("this process listens there itself")),
        false => Ok(found),
    }
}

/// Where its servers listen; none where it needs no server.
fn addresses(url: &Url) -> Result<Option<Vec<Address>>> {
    let mut url = url.clone();
    let named =
        |d: &&crate::store::Driver| d.name == url.scheme || d.aliases.contains(&&*url.scheme);
    let driver = DRIVERS.iter().find(named).filter(|driver| !driver.servers.is_empty());
    let Some(driver) = driver else { return Ok(None) };
    let usual = PORTS.iter().find(|(name, _)| *name == driver.name).map_or(0, |(_, port)| *port);
    if let Some(path) = url.take("socket") {
        let path = PathBuf::from(path);
        // PostgreSQL's is in the folder that is named, and has the port in its name.
        let port = url.hosts.first().and_then(|(_, port)| *port).unwrap_or(usual);
        let socket = if path.is_dir() { path.join(format!(".s.PGSQL.{port}")) } else { path };
        return Ok(Some(vec![Address::Unix(socket)]));
    }
    let mut hosts = url.hosts.clone();
    if let Some(endpoint) = url.take("endpoint") {
        let secure = endpoint.starts_with("https");
        hosts = Url::parse(&endpoint)?.hosts;
        let port = if secure { 443 } else { 80 };
        hosts.iter_mut().for_each(|(_, p)| *p = p.or(Some(port)));
    }
    if hosts.is_empty() {
        hosts.push(("127.0.0.1".into(), None));
    }
    let mut found = Vec::new();
    for (host, port) in hosts {
        if host.starts_with('/') {
            found.push(Address::Unix(Path::new(&host).to_owned()));
            continue;
        }
        let at = (host.as_str(), port.unwrap_or(usual));
        let unknown = || Error::unavailable(format!("the address of {host} is not known"));
        let address = at.to_socket_addrs().map_err(|_| unknown())?.next();
        found.push(Address::Tcp(address.ok_or_else(unknown)?));
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_their_servers_listen() {
        let at = |text: &str| {
            let found = addresses(&Url::parse(text).unwrap()).unwrap()?;
            Some(found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        let is = |text: &str, want: &str| assert_eq!(at(text).as_deref(), Some(want), "{text}");
        is("memcached://127.0.0.1,127.0.0.2:99", "127.0.0.1:11211 127.0.0.2:99");
        is("memcached:?socket=/run/m", "/run/m");
        is("tyrant://[::1]", "[::1]:1978");
        assert_eq!(at("memory:"), None);
        assert_eq!(at("dir:/a/b"), None);
        #[cfg(feature = "postgres")]
        {
            is("postgres://u@127.0.0.1/db?durability=t3", "127.0.0.1:5432");
            is("postgres://u@h:9/db?socket=/tmp", "/tmp/.s.PGSQL.9");
        }
        #[cfg(feature = "s3")]
        is("s3://bucket?endpoint=http://127.0.0.1:9000", "127.0.0.1:9000");
        #[cfg(feature = "mysql")]
        assert!(of_url("mysql://192.0.2.1/x").unwrap_err().to_string().contains("another machine"));
        for driver in DRIVERS.iter().filter(|driver| !driver.servers.is_empty()) {
            assert!(
                driver.name == "s3" || PORTS.iter().any(|p| p.0 == driver.name),
                "{}",
                driver.name
            );
        }
    }
}
