//! The address of a server, and its name on a ring.

use std::{fmt, path::PathBuf, str::FromStr};

use crate::{Error, Result};

/// The port of memcached.
pub const PORT: u16 = 11211;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host (a name, an IPv4 or IPv6 address without brackets) and its port.
    Tcp(String, u16),
    /// The same, spoken to through TLS. The nonblocking client only.
    Tls(String, u16),
    /// A socket of this machine.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = if matches!(self, Address::Tls(..)) { "tls://" } else { "" };
        match self {
            Address::Tcp(host, port) | Address::Tls(host, port) if host.contains(':') => {
                write!(f, "{tls}[{host}]:{port}")
            }
            Address::Tcp(host, port) | Address::Tls(host, port) => {
                write!(f, "{tls}{host}:{port}")
            }
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// `host`, `host:port`, `[::1]:port`, `::1`, `tls://host:port`, `/path/of/socket`.
impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address> {
        let wrong = |what: &str| {
            Error::invalid(format!(
                "{text:?} is not a server address: {what}; expected one such as cache1:11211"
            ))
        };
        if text.starts_with('/') {
            return Ok(Address::Unix(text.into()));
        }
        let (tls, rest) = match text.strip_prefix("tls://") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (host, port) = if let Some(inner) = rest.strip_prefix('[') {
            let (host, after) = inner.split_once(']').ok_or_else(|| wrong("no ]"))?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(wrong("unexpected text after ]")),
            }
        } else if rest.matches(':').count() > 1 {
            (rest, None)
        } else {
            rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)))
        };
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c == '/') {
            return Err(wrong("no host"));
        }
        let port = match port {
            None => PORT,
            Some(port) => {
                port.parse().map_err(|_| wrong("the port is not a number up to 65535"))?
            }
        };
        let host = host.to_owned();
        Ok(if tls { Address::Tls(host, port) } else { Address::Tcp(host, port) })
    }
}

/// A server and its share of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where it listens.
    pub address: Address,
    /// Its share: a server of weight 2 has twice the keys of one of weight 1. At least 1.
    pub weight: u32,
}

impl Server {
    /// A server of weight 1.
    pub fn new(address: Address) -> Server {
        Server { address, weight: 1 }
    }

    /// The same with a weight.
    pub fn weighing(self, weight: u32) -> Server {
        Server { weight, ..self }
    }
}

/// An [`Address`], with `=WEIGHT` behind it if it has one: `cache1:11211=3`.
impl FromStr for Server {
    type Err = Error;

    fn from_str(text: &str) -> Result<Server> {
        // A path may have the mark in it; what is no number then is part of the path.
        if let Some((address, weight)) = text.rsplit_once('=')
            && let Ok(weight) = weight.parse::<u32>()
        {
            if weight == 0 {
                return Err(Error::invalid(format!(
                    "server {address:?} has weight 0; the least is 1"
                )));
            }
            return Ok(Server::new(address.parse()?).weighing(weight));
        }
        text.parse().map(Server::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, shown) in [
            ("a", "a:11211"),
            ("a:1", "a:1"),
            ("[::1]:5", "[::1]:5"),
            ("[::1]", "[::1]:11211"),
            ("::1", "[::1]:11211"),
            ("tls://a:7", "tls://a:7"),
            ("/run/m.sock", "/run/m.sock"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown);
        }
        for wrong in ["", ":1", "a:x", "a:70000", "[::1", "[::1]x", "a b:1", "tls://"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
        assert_eq!("a:1=3".parse::<Server>().unwrap().weight, 3);
        assert!("a=0".parse::<Server>().is_err());
    }
}
