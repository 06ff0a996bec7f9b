//! What is measured: a store in this process, a private server started for it, or the user's own.

use std::path::Path;

use super::delay;
use crate::{
    Error, Result,
    durability::Tier,
    network::Relay,
    results::IN_PROCESS,
    server::{self, PROGRAMS, Program, Server, Wish},
    store::{self, DRIVERS, Driver, POOL, Place, Url, shown},
};

/// A store to be measured, as people name it: `sqlite`, `mariadb?engine=myisam`, `mysql://…`; under
/// a label of their own, `again=sqlite`, so that one can be measured twice.
#[derive(Debug, Clone)]
pub struct Target {
    /// What it is called in the report: what was typed, without a password.
    pub label: String,
    at: At,
    /// Options that any store understands, for its URL.
    options: Vec<(String, String)>,
    /// The share of its time by which it is slowed on purpose.
    delay: Option<f64>,
}

#[derive(Debug, Clone)]
enum At {
    /// In this process, in a folder of the run's own.
    Embedded(&'static str),
    /// A private server, with settings of its own.
    Private { name: &'static str, settings: Vec<(String, String)>, socket: bool },
    /// The user's own, by its URL.
    Own(String),
}

/// Stores that need no server, with what their URLs end in.
const EMBEDDED: [(&str, &str); 3] = [("sqlite", "records.db"), ("memory", ""), ("dir", "records")];
/// Options of stores; any other of a private server is a setting of the server.
const COMMON: [&str; 8] =
    ["client", "layout", "format", "durability", "pool", "timeout", "connect_timeout", "tls"];

/// A store that is open, and the server behind it.
pub struct Opened {
    /// The store. Dropped before its server.
    pub place: Place,
    /// Its URL, as it was opened: by way of the relays, where there are any.
    pub url: String,
    /// What delays the way there, where a network is asked for.
    pub relays: Vec<Relay>,
    /// The private server.
    pub server: Option<Server>,
}

impl Target {
    /// A target from what was typed.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming those there are.
    pub fn parse(text: &str) -> Result<Target> {
        if let Some((label, store)) = labelled(text) {
            return Ok(Target { label: label.to_owned(), ..Target::parse(store)? });
        }
        let (name, options) = text.split_once('?').unwrap_or((text, ""));
        let is_word =
            EMBEDDED.iter().any(|e| e.0 == name) || PROGRAMS.iter().any(|p| p.name == name);
        if !is_word && store::is_url(text) {
            let label = Url::parse(text)?.to_string();
            let at = At::Own(text.to_owned());
            return Ok(Target { label, at, options: Vec::new(), delay: None });
        }
        let pairs = options.split('&').filter(|o| !o.is_empty()).map(|o| {
            let (name, value) = o.split_once('=').unwrap_or((o, ""));
            (name.to_owned(), value.to_owned())
        });
        let (delays, pairs): (Vec<_>, Vec<_>) = pairs.partition(|(name, _)| name == "delay");
        let delay = delays.first().map(|(_, percent)| delay::share(percent)).transpose()?;
        let (common, own): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|(name, _)| COMMON.contains(&name.as_str()));
        let built = |name: &str| DRIVERS.iter().any(|driver| driver.name == name);
        if let Some((name, _)) = EMBEDDED.iter().find(|e| e.0 == name && built(name)) {
            let options = [common, own].concat();
            return Ok(Target { label: shown(text), at: At::Embedded(name), options, delay });
        }
        if let Some(kind) = store::left_out(name) {
            return Err(kind.missing());
        }
        match PROGRAMS.iter().find(|program| program.name == name) {
            Some(program) => {
                let (socket, settings): (Vec<_>, Vec<_>) =
                    own.into_iter().partition(|(name, _)| name == "socket");
                let socket = match socket.first().map(|(_, kind)| kind.as_str()) {
                    None | Some("tcp") => false,
                    Some("unix") => true,
                    Some(other) => {
                        let what = format!("{name}?socket={other}: unix or tcp");
                        return Err(Error::invalid(what));
                    }
                };
                program.check(&settings)?;
                let at = At::Private { name: program.name, settings, socket };
                Ok(Target { label: shown(text), at, options: common, delay })
            }
            None => {
                let known: Vec<&str> = (EMBEDDED.iter().map(|e| e.0))
                    .filter(|name| built(name))
                    .chain(PROGRAMS.iter().map(|program| program.name))
                    .collect();
                Err(Error::invalid(format!(
                    "no store {name:?} to measure; known: {}, or the URL of your own",
                    known.join(", ")
                )))
            }
        }
    }

    /// The share of its time by which it is slowed on purpose (`?delay=10%`).
    pub fn delay(&self) -> Option<f64> {
        self.delay
    }

    /// The stores that are measured where nobody names any: those in this process.
    pub fn usual() -> Vec<Target> {
        let built = EMBEDDED.iter().filter(|e| DRIVERS.iter().any(|d| d.name == e.0));
        built.map(|e| Target::parse(e.0).expect("it is in the table")).collect()
    }

    /// The same with an option, unless it has that already.
    pub fn with(mut self, name: &str, value: &str) -> Target {
        let there = match &self.at {
            At::Own(url) => url.contains(&format!("{name}=")),
            At::Embedded(_) | At::Private { .. } => self.options.iter().any(|o| o.0 == name),
        };
        if !there {
            self.options.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The same with a setting of its private server, unless it has that already or no such server.
    pub fn setting(mut self, name: &str, value: &str) -> Target {
        if let At::Private { settings, .. } = &mut self.at
            && !settings.iter().any(|setting| setting.0 == name)
        {
            settings.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The same under the name that says so.
    pub fn named(mut self, name: &str, value: &str) -> Target {
        let gap = if self.label.contains('?') { '&' } else { '?' };
        self.label += &format!("{gap}{name}={value}");
        self.with(name, value)
    }

    /// The same with so many connections at least, unless it says how many itself. (Where operations
    /// wait for a connection, it is the client's pool that is measured.)
    pub fn connected(self, least: u32) -> Target {
        match least as usize > POOL {
            true => self.with("pool", &least.to_string()),
            false => self,
        }
    }

    /// Whether it works in this process, on the threads of its callers.
    pub fn is_embedded(&self) -> bool {
        match &self.at {
            At::Embedded(_) => true,
            At::Private { .. } => false,
            At::Own(url) => url
                .split_once(':')
                .and_then(|(scheme, _)| store::driver(&scheme.to_ascii_lowercase()))
                .is_some_and(Driver::is_embedded),
        }
    }

    /// Whether it is a server that somebody else has started.
    pub fn is_remote(&self) -> bool {
        self.own_url().is_some_and(|url| url.contains("://"))
    }

    /// Whether it says how records lie in it.
    pub fn has_layout(&self) -> bool {
        let said = |name: &str| name == "layout" || name == "format";
        match &self.at {
            At::Own(url) => url.contains("layout=") || url.contains("format="),
            At::Embedded(_) | At::Private { .. } => self.options.iter().any(|o| said(&o.0)),
        }
    }

    /// The private server's name, where it needs one.
    pub fn program(&self) -> Option<&'static Program> {
        match &self.at {
            At::Private { name, .. } => server::named(name).ok(),
            At::Embedded(_) | At::Own(_) => None,
        }
    }

    /// Whether it is the user's own, where nothing may be touched but what is made for the run.
    pub fn is_own(&self) -> bool {
        matches!(self.at, At::Own(_))
    }

    /// The URL of the user's own.
    pub fn own_url(&self) -> Option<&str> {
        match &self.at {
            At::Own(url) => Some(url),
            At::Embedded(_) | At::Private { .. } => None,
        }
    }

    /// The same at another URL.
    pub fn at(&self, url: &str) -> Target {
        Target { at: At::Own(url.to_owned()), ..self.clone() }
    }

    /// The tier asked for.
    pub fn tier(&self) -> Option<Tier> {
        let option = |pairs: &[(String, String)]| {
            let found = pairs.iter().find(|o| o.0 == "durability").map(|o| o.1.clone());
            found.and_then(|tier| tier.parse().ok())
        };
        match &self.at {
            At::Own(url) => {
                let mut url = Url::parse(url).ok()?;
                url.take("durability").and_then(|tier| tier.parse().ok()).or(option(&self.options))
            }
            At::Embedded(_) | At::Private { .. } => option(&self.options),
        }
    }

    /// How it is talked to, for a reader.
    pub fn connection(&self) -> &'static str {
        match &self.at {
            At::Embedded(_) => IN_PROCESS,
            At::Private { socket: true, .. } => "unix socket",
            At::Private { .. } => "TCP, loopback",
            At::Own(_) if self.is_embedded() => IN_PROCESS,
            At::Own(url) if url.contains("socket=") => "unix socket",
            At::Own(_) => "TCP",
        }
    }

    /// Starts its server, if it needs one. What it keeps lies in `folder`, where it needs none.
    ///
    /// # Errors
    /// As [`Program::start`].
    pub fn start(&self) -> Result<Option<Server>> {
        let At::Private { name, settings, socket } = &self.at else { return Ok(None) };
        let (tier, settings) = (self.tier(), settings.clone());
        let wish = Wish { tier, settings, socket: *socket, ..Wish::default() };
        server::named(name)?.start(&wish).map(Some)
    }

    /// The URL of the store.
    pub fn url(&self, server: Option<&Server>, folder: &Path) -> String {
        let mut url = match (&self.at, server) {
            (At::Own(url), _) => url.clone(),
            (At::Embedded("memory"), _) => "memory:".to_owned(),
            (At::Embedded(name), _) => {
                let file = EMBEDDED.iter().find(|e| e.0 == *name).map_or("", |e| e.1);
                format!("{name}:{}", folder.join(file).display())
            }
            (At::Private { .. }, Some(server)) => server.url().to_owned(),
            (At::Private { .. }, None) => String::new(),
        };
        for (name, value) in &self.options {
            url += if url.contains('?') { "&" } else { "?" };
            url += &format!("{name}={value}");
        }
        url
    }
}

/// A label of letters, digits, `.`, `_` and `-` before a store: no store's word and no URL has `=`
/// behind such a beginning.
fn labelled(text: &str) -> Option<(&str, &str)> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    text.split_once('=').filter(|(label, _)| !label.is_empty() && label.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_has_the_label_it_is_given() {
        let target = Target::parse("again=sqlite?durability=t1&delay=10%").unwrap();
        assert_eq!((target.label.as_str(), target.delay()), ("again", Some(0.1)));
        assert_eq!(target.url(None, Path::new("/x")), "sqlite:/x/records.db?durability=t1");
        let target = Target::parse("b=redis://u:secret@db:1/?pool=2").unwrap();
        assert_eq!((target.label.as_str(), target.is_own()), ("b", true));
        assert_eq!(Target::parse("sqlite?pool=2").unwrap().label, "sqlite?pool=2");
        assert_eq!(Target::parse("sqlite:/a=b").unwrap().label, "sqlite:/a=b");
        assert!(Target::parse("a=oracle").is_err() && Target::parse("sqlite?delay=x").is_err());
    }

    #[test]
    fn options_go_to_the_store_or_to_its_server() {
        let target = Target::parse("mariadb?engine=myisam&layout=columns").unwrap();
        assert_eq!(target.options, [("layout".to_owned(), "columns".to_owned())]);
        let At::Private { name: "mariadb", settings, socket: false } = &target.at else {
            panic!("{target:?}")
        };
        assert_eq!(settings, &[("engine".to_owned(), "myisam".to_owned())]);
        assert!(target.has_layout() && target.tier().is_none());

        let target = Target::parse("mariadb?socket=unix&engine=myisam").unwrap();
        let At::Private { settings, socket: true, .. } = &target.at else { panic!("{target:?}") };
        assert_eq!((settings.len(), target.connection()), (1, "unix socket"));
        let error = Target::parse("redis?socket=/run/redis").unwrap_err().to_string();
        assert!(error.contains("unix or tcp"), "{error}");

        let target = Target::parse("sqlite").unwrap().with("durability", "t3");
        assert_eq!(target.url(None, Path::new("/x")), "sqlite:/x/records.db?durability=t3");
        assert_eq!((target.label.as_str(), target.tier()), ("sqlite", Some(Tier::T3)));
        let target = target.with("durability", "t1").named("format", "marshal");
        assert_eq!(
            (target.label.as_str(), target.tier()),
            ("sqlite?format=marshal", Some(Tier::T3))
        );

        let url =
            |text: &str| Target::parse(text).unwrap().connected(16).url(None, Path::new("/x"));
        assert_eq!(url("redis://db:1"), "redis://db:1?pool=16");
        assert_eq!(url("redis://db:1?pool=2"), "redis://db:1?pool=2");
        assert_eq!(url("sqlite"), "sqlite:/x/records.db?pool=16");
        let few = Target::parse("redis://db:1").unwrap().connected(4);
        assert_eq!(few.url(None, Path::new("/x")), "redis://db:1");

        let target = Target::parse("mysql://u:secret@db/shop?durability=t2").unwrap();
        assert_eq!(target.label, "mysql://u:***@db/shop?durability=t2");
        assert!(target.is_own() && target.tier() == Some(Tier::T2));
        let own = |url| Target::parse(url).unwrap();
        let told = ["sqlite:///x/a.db", "dir:x", "sqlite", "redis://db:1", "redis"]
            .map(|url| (own(url).is_embedded(), own(url).connection() == "in this process"));
        assert_eq!(
            told,
            [(true, true), (true, true), (true, true), (false, false), (false, false)]
        );
        let error = Target::parse("oracle").unwrap_err().to_string();
        assert!(error.contains("sqlite") && error.contains("postgres"), "{error}");
    }
}
