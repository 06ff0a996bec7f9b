//! Where a store is, as people write it: `mysql://user:password@host:port/database?table=pets`,
//! `sqlite:shop.db?layout=columns`.
//!
//! A [`Url`] is taken apart here, and nowhere else. Its password is in none of its texts.

use std::{fmt, path::Path};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::{Client, DRIVERS, OPTIONAL, driver, hidden, is_embedded, is_known, left_out};
use crate::{Error, Result};

/// A store's URL, taken apart. Options are taken out one by one; what nobody took is an error.
#[derive(Clone)]
pub struct Url {
    /// What comes before the first colon.
    pub scheme: String,
    /// The user, decoded.
    pub user: Option<String>,
    /// The password, decoded.
    pub password: Option<Secret>,
    /// Hosts with their ports, where there are any; addresses of IPv6 without brackets.
    pub hosts: Vec<(String, Option<u16>)>,
    /// What follows: of `scheme://host/path` without the slash, of `scheme:path` all; decoded.
    pub path: String,
    /// It was written with `//`.
    rooted: bool,
    options: Vec<Given>,
    taken: Vec<&'static str>,
    shown: String,
}

/// An option of a URL.
#[derive(Clone)]
struct Given {
    /// Decoded.
    name: String,
    /// Decoded.
    value: String,
    /// The name as far as it may be shown.
    shown: String,
}

/// Text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret that no URL had in it. It is kept out of messages from now on.
    pub(super) fn found(text: String) -> Secret {
        hidden::remember(&text);
        Secret(text)
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Url {
    /// Takes a URL apart. What is written in a way that could hide a password in the wrong place (a raw `/` or
    /// `@` in it, no `//` before it) is refused, never guessed at.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid). It quotes nothing before the last `@`, and no value of a secret
    /// option.
    pub fn parse(text: &str) -> Result<Url> {
        let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme))
        else {
            return Err(no_url(text));
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let scheme = scheme.to_ascii_lowercase();
        let mut url = Url {
            shown: format!("{scheme}:"),
            scheme,
            user: None,
            password: None,
            hosts: Vec::new(),
            path: String::new(),
            rooted: place.starts_with("//"),
            options: Vec::new(),
            taken: Vec::new(),
        };
        // What has no driver is a slip, or an address of a server's.
        let served = !is_embedded(&url.scheme);
        match place.strip_prefix("//") {
            None if served && !place.is_empty() => return Err(url.without_slashes()),
            None => {
                url.path = decoded(place)?;
                // A file may have any name; a login before it is a slip, and not shown.
                url.shown += &match place.split_once(':').zip(place.rfind('@')) {
                    Some(((before, _), at)) if before.len() < at => format!("***{}", &place[at..]),
                    _ => place.to_owned(),
                };
            }
            Some(place) => url.rooted_at(place, query, served)?,
        }
        if query.contains('?') {
            return Err(url.wrong(
                "with two ?; options are separated by &, and ? in an option is written %3F",
            ));
        }
        for (i, option) in query.split('&').filter(|o| !o.is_empty()).enumerate() {
            if hidden::has_secret_option(option) {
                return Err(
                    url.wrong("with a password in the middle of an option; write & before it")
                );
            }
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let shown = hidden::name_of_option(name, option.contains('='));
            url.shown += if i == 0 { "?" } else { "&" };
            url.shown += &shown;
            url.shown += "=";
            url.shown += &hidden::of_url(name, value);
            // A plus stays a plus: it stands in names of formats.
            let shown = shown.into_owned();
            url.options.push(Given { name: decoded(name)?, value: decoded(value)?, shown });
        }
        Ok(url)
    }

    /// Reads `user:password@host:port,host/path`.
    fn rooted_at(&mut self, place: &str, query: &str, served: bool) -> Result<()> {
        let (authority, path) = match place.split_once('/') {
            Some((authority, path)) => (authority, Some(path)),
            None => (place, None),
        };
        let login = authority.contains([':', '@']);
        let behind = path.is_some_and(|path| path.contains('@'));
        if (served && behind) || (login && (behind || query.contains('@'))) {
            return Err(self.wrong(
                "with an @ after its host; in a password, / is written %2F, ? %3F, # %23, @ %40 \
                 and : %3A; in a path or an option, @ is %40",
            ));
        }
        self.shown += "//";
        let hosts = match authority.rsplit_once('@') {
            None => authority,
            Some((login, hosts)) => {
                self.log_in(login)?;
                if served && hosts.is_empty() && !query.contains("socket=") {
                    return Err(self.wrong("with a login and no host after its @"));
                }
                hosts
            }
        };
        // Where there is no @, or several, what looks like a port may be a password.
        let shows = authority.matches('@').count() == 1 || !authority.contains(':');
        let read = hosts.split(',').filter(|h| !h.is_empty()).map(host);
        self.hosts = read.collect::<Result<_>>().map_err(|e| match shows {
            true => e,
            false => self.wrong("with an invalid host or port; expected one such as host:1234"),
        })?;
        self.shown += hosts;
        if let Some(path) = path {
            if served && hidden::has_secret_option(path) {
                return Err(
                    self.wrong("with a password in its path; write ? before the first option")
                );
            }
            self.path = decoded(path)?;
            let plain = hidden::plainest(path);
            // A port before it may be the beginning of a password.
            let after = login && !authority.contains('@') && plain.contains('@');
            if served && (after || has_login(&plain)) {
                return Err(self.wrong("with an @ in its path, and no login before its host"));
            }
            self.shown += "/";
            self.shown += path;
        }
        Ok(())
    }

    /// Reads `user:password`.
    fn log_in(&mut self, login: &str) -> Result<()> {
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        if password.is_none() && user.contains('@') {
            return Err(
                self.wrong("with several @ and no password; write %40 for an @ in the user")
            );
        }
        if hidden::plainest(user).contains(':') {
            return Err(self.wrong("with %3A in its user; write : between user and password"));
        }
        // redis-cli takes what stands there alone for a password.
        let hides = password.is_none() && driver(&self.scheme).is_some_and(|d| d.name == "redis");
        self.shown += if hides && !user.is_empty() { "***" } else { user };
        if let Some(password) = password {
            self.password = Some(Secret(decoded(password)?));
            self.shown += ":***";
        }
        self.shown += "@";
        self.user = Some(decoded(user)?).filter(|user| !user.is_empty());
        Ok(())
    }

    fn wrong(&self, what: &str) -> Error {
        Error::invalid(format!("a {} URL {what}", self.scheme))
    }

    /// The error of what has a scheme and no `//`, which may be a login.
    fn without_slashes(&self) -> Error {
        let scheme = &self.scheme;
        match is_known(scheme) {
            true => Error::invalid(format!("{scheme}: needs //, as in {scheme}://host")),
            false => unknown(scheme),
        }
    }

    /// Looks at an option, which stays.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|given| given.name == name).map(|given| &*given.value)
    }

    /// Takes an option out.
    pub fn take(&mut self, name: &'static str) -> Option<String> {
        self.taken.push(name);
        let at = self.options.iter().position(|given| given.name == name)?;
        Some(self.options.remove(at).value)
    }

    /// Takes an option out and reads it.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the option.
    pub fn take_parsed<T>(&mut self, name: &'static str) -> Result<Option<T>>
    where
        T: std::str::FromStr<Err: fmt::Display>,
    {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|e| Error::invalid(format!("?{name}={value}: {e}")))
    }

    /// Takes an option out that says yes (`true`, `yes`, `1`, nothing) or no.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for anything else.
    pub fn take_flag(&mut self, name: &'static str) -> Result<Option<bool>> {
        match self.take(name).as_deref() {
            None => Ok(None),
            Some("" | "true" | "yes" | "1") => Ok(Some(true)),
            Some("false" | "no" | "0") => Ok(Some(false)),
            Some(other) => Err(Error::invalid(format!("?{name}={other}: true or false"))),
        }
    }

    /// Takes an option out that is one of these words.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming them.
    pub fn take_word(
        &mut self,
        name: &'static str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match words.iter().find(|word| **word == value) {
            Some(word) => Ok(Some(word)),
            None => Err(Error::invalid(format!("?{name}={value}: one of {}", words.join(", ")))),
        }
    }

    /// Takes the option out that says whose client is used: steelyard's own, or the crate of this name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for anything else.
    pub fn take_client(&mut self, of_crate: &'static str) -> Result<Option<Client>> {
        Ok(self.take_word("client", &["own", "crate"])?.map(|word| match word {
            "own" => Client::Own,
            _ => Client::Crate(of_crate),
        }))
    }

    /// Checks that all options were taken.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the unknown option, and those known.
    pub fn done(&self) -> Result<()> {
        let Some(Given { shown: name, .. }) = self.options.first() else { return Ok(()) };
        let mut known = self.taken.clone();
        known.sort_unstable();
        known.dedup();
        Err(Error::invalid(format!(
            "unknown option {name:?} of {}; known: {}",
            self.scheme,
            known.join(", ")
        )))
    }

    /// The path as that of a file: `sqlite:shop.db`, `sqlite:/var/shop.db`, `sqlite:///var/shop.db`.
    pub fn file_path(&self) -> String {
        match (self.rooted, &*self.hosts) {
            (false, _) => self.path.clone(),
            (true, []) => format!("/{}", self.path),
            (true, [(first, _), ..]) if self.path.is_empty() => first.clone(),
            (true, [(first, _), ..]) => format!("{first}/{}", self.path),
        }
    }

    /// The one host and its port, with defaults.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where there are several.
    pub fn one_host(&self, port: u16) -> Result<(String, u16)> {
        match &*self.hosts {
            [] => Ok(("127.0.0.1".into(), port)),
            [(host, own)] => Ok((host.clone(), own.unwrap_or(port))),
            _ => Err(Error::invalid(format!("{} takes one host, not several", self.scheme))),
        }
    }
}

/// With `***` for a password.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown.fmt(f)
    }
}

/// The URL as a file in this folder means it: a relative path of `sqlite:` or `dir:` begins in the folder, wherever the
/// program is started. Every other URL is as it was.
pub fn beside(folder: &Path, url: &str) -> String {
    const NOT_OF_PATHS: &AsciiSet = &CONTROLS.add(b'%').add(b'?');
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let is_absolute = path.is_empty() || path.starts_with(['/', '?', ':']);
    if !["sqlite", "dir"].contains(&scheme) || is_absolute || folder == Path::new("") {
        return url.to_owned();
    }
    let folder = folder.to_string_lossy();
    format!("{scheme}:{}/{path}", utf8_percent_encode(&folder, NOT_OF_PATHS))
}

/// Letters, digits, `+`, `-` and `.`, a letter first (RFC 3986).
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Whether a text is meant to be the URL of a store, rather than the name of a file: it has `://`, the scheme of a
/// store before a colon, or what may be a login or a password's option. A file of such a name is written
/// `./name`.
pub fn is_url(text: &str) -> bool {
    if ["./", "../"].iter().any(|begin| text.starts_with(begin))
        || (text.starts_with('/') && !text.starts_with("//"))
    {
        return false;
    }
    let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    text.contains("://")
        || scheme.is_some_and(|scheme| is_known(&scheme))
        || has_login(text)
        || hidden::has_secret_option(text)
        || has_options(text)
}

/// The error of the name of a file that begins like the URL of a store, with a scheme that no store has:
/// `sqlte:shop.db`. None for every other name; what is meant to be a file is written `./sqlte:shop.db`.
pub fn misnamed(name: &str) -> Option<Error> {
    // One letter is the name of a drive.
    let scheme = name.split_once(':').map(|(scheme, _)| scheme).filter(|s| s.len() > 1)?;
    let is_one = is_scheme(scheme) && !is_url(name);
    is_one.then(|| unknown(scheme).with_hint(format!("write a file of that name as ./{name}")))
}

/// Whether a text has a colon and, somewhere behind it, an `@`.
fn has_login(text: &str) -> bool {
    text.find(':').zip(text.rfind('@')).is_some_and(|(colon, at)| colon < at)
}

/// Whether a text has a colon, behind that a `?`, and behind that a `=`.
fn has_options(text: &str) -> bool {
    text.split_once(':')
        .and_then(|(_, rest)| rest.split_once('?'))
        .is_some_and(|(_, options)| options.contains('='))
}

/// The error of a text that has no scheme, which may hold anything.
fn no_url(text: &str) -> Error {
    let plain = !text.contains([':', '@', '?', '=', '%']);
    let what = if plain { format!("{text:?}") } else { "what is given".into() };
    Error::invalid(format!(
        "{what} is not a store URL: it has no scheme, as postgres://user@host/database and \
         sqlite:FILE have; write a file of that name as ./NAME"
    ))
}

/// The error of a scheme that no store has.
pub(super) fn unknown(scheme: &str) -> Error {
    if let Some(kind) = left_out(scheme) {
        return kind.missing();
    }
    let built_in = DRIVERS.iter().map(|driver| (driver.name, driver.aliases));
    let optional = OPTIONAL.iter().map(|kind| (kind.feature, kind.aliases));
    let all: Vec<_> = built_in.chain(optional).collect();
    let names = || all.iter().flat_map(|(name, aliases)| aliases.iter().copied().chain([*name]));
    let known: Vec<_> = DRIVERS.iter().map(|driver| driver.name).collect();
    let close = names().filter(|name| strsim::damerau_levenshtein(name, scheme) <= 2);
    let meant = close.min_by_key(|name| strsim::damerau_levenshtein(name, scheme));
    let meant = meant.map_or_else(String::new, |name| format!("; did you mean {name}?"));
    let known = match meant.is_empty() {
        true => format!("; known: {}", known.join(", ")),
        false => format!(" Known: {}", known.join(", ")),
    };
    Error::invalid(format!("unknown store scheme {scheme:?}{meant}{known}"))
}

fn decoded(text: &str) -> Result<String> {
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Error::invalid("a URL with %-codes that are not UTF-8")),
    }
}

fn host(text: &str) -> Result<(String, Option<u16>)> {
    let wrong = || match text.contains('%') {
        true => {
            Error::invalid("a URL with an invalid host or port; expected one such as host:1234")
        }
        false => Error::invalid(format!("{text:?} is not a host with a port")),
    };
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map(|port| port.parse().map_err(|_| wrong())).transpose()?;
    let name = decoded(host)?;
    let plain = hidden::plainest(host);
    // Behind a % is the zone of an address.
    let address = plain.split('%').next().unwrap_or_default();
    let address = address.parse::<std::net::Ipv6Addr>().is_ok();
    // What was encoded in the wrong places may be a login.
    let odd = |c: char| "@?#".contains(c) || c.is_whitespace() || c.is_control();
    if plain.contains(odd) || (plain.contains(':') && !address) {
        return Err(Error::invalid("a URL whose host has invalid characters"));
    }
    Ok((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let url =
            Url::parse("mysql://us%40er:p%3Ass@db:3307/shop?engine=myisam&table=pets").unwrap();
        assert_eq!((url.scheme.as_str(), url.user.as_deref()), ("mysql", Some("us@er")));
        assert_eq!(url.password.as_ref().unwrap().reveal(), "p:ss");
        assert_eq!(
            (url.hosts.clone(), url.path.as_str()),
            (vec![("db".into(), Some(3307))], "shop")
        );
        let shown = format!("{url} {url:?}");
        assert!(
            !shown.contains("ss@db") && shown.contains("mysql://us%40er:***@db:3307"),
            "{shown}"
        );

        let url = Url::parse("memcached://a,b:12,[::1]:13").unwrap();
        let hosts = [("a", None), ("b", Some(12)), ("::1", Some(13))];
        assert_eq!(url.hosts, hosts.map(|(host, port)| (host.to_owned(), port)));
        let url = Url::parse("sqlite:/var/my%3F.db").unwrap();
        assert_eq!(url.path, "/var/my?.db");
        let url = Url::parse("s3://bucket/a/b?secret=x").unwrap();
        assert_eq!((url.path.as_str(), url.to_string().contains('x')), ("a/b", false));
    }

    #[test]
    fn what_may_hide_a_password_is_refused() {
        for text in [
            "secret@host",
            "u:secret@host/db",
            "postgres:u:secret@h/db",
            "postgres:/u:secret@h/db",
            "postgres:///u:secret@h/db",
            "postgres:///u%3Asecret%40h/db",
            "postgres://u%3Asecret%40h/db",
            "postgres://u%3Asecret@h/db",
            "postgres://u%253Asecret@h/db",
            "postgres://u:a/secret@h/db",
            "postgres://u:a?secret@h/db",
            "postgres://u:a@b?secret@h/db",
            "postgres://u:secret/db",
            "postgres://u:secret@/db",
            "mysql://u:secret@[::1/db",
            "nonsense:u:secret@h",
            "p stgres://u:secret@h",
        ] {
            let error = Url::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{text}: {error}");
            assert!(is_url(text) || !text.contains(':'), "{text}");
        }
        let url = Url::parse("POSTGRES://u:secret@h/db").unwrap();
        assert_eq!((url.scheme.as_str(), url.path.as_str()), ("postgres", "db"));
        let error = unknown("postgers").to_string();
        assert!(
            error.contains("unknown store scheme \"postgers\"; did you mean postgres? Known: "),
            "{error}"
        );
    }

    #[test]
    fn names_of_files_that_look_like_urls_are_told() {
        for text in ["a.mrc", "./nosql:x", "../a:b", "c:d", "12:30.json", "-", "a b:c", "sqlite:a"]
        {
            assert!(misnamed(text).is_none(), "{text}");
        }
        for (text, scheme) in
            [("nosql:x", "nosql"), ("sqlte:a.db", "sqlte\"; did you mean sqlite? Known: ")]
        {
            let error = misnamed(text).expect(text);
            let said = error.to_string();
            assert!(said.starts_with(&format!("unknown store scheme \"{scheme}")), "{said}");
            assert_eq!(error.hint(), Some(&*format!("write a file of that name as ./{text}")));
        }
    }

    #[test]
    fn what_stands_alone_before_the_host_is_a_password_to_redis_cli() {
        for (text, want) in [
            ("redis://Zq9pw@127.0.0.1:1", "redis://***@127.0.0.1:1"),
            ("rediss://Zq9pw@127.0.0.1:1/2", "rediss://***@127.0.0.1:1/2"),
            ("redis://ann:Zq9pw@127.0.0.1", "redis://ann:***@127.0.0.1"),
            ("redis://:Zq9pw@127.0.0.1", "redis://:***@127.0.0.1"),
            ("mysql://ann@127.0.0.1", "mysql://ann@127.0.0.1"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), want);
        }
    }

    #[test]
    fn names_of_files_are_no_urls() {
        for text in ["a.mrc", "./u:p@h", "../postgres://h", "/tmp/a:b@c", "-", "b.json?x", "c:d"] {
            assert!(!is_url(text), "{text}");
        }
        for text in ["sqlite:a.db", "MySQL:x", "u:p@h", "x?password=y", "//u:p@h/d", "a://b"] {
            assert!(is_url(text), "{text}");
        }
    }

    #[test]
    fn a_relative_path_in_a_file_begins_beside_it() {
        let folder = Path::new("/etc/50% off");
        for (given, want) in [
            ("sqlite:shop.db?cache=1MB", "sqlite:/etc/50%25 off/shop.db?cache=1MB"),
            ("sqlite://data/shop.db", "sqlite:/etc/50%25 off/data/shop.db"),
            ("dir:records", "dir:/etc/50%25 off/records"),
            ("sqlite:/var/shop.db", "sqlite:/var/shop.db"),
            ("sqlite:///var/shop.db", "sqlite:///var/shop.db"),
            ("sqlite::memory:", "sqlite::memory:"),
            ("sqlite:?cache=1MB", "sqlite:?cache=1MB"),
            ("memory:people", "memory:people"),
            ("postgres://h/records", "postgres://h/records"),
        ] {
            assert_eq!(beside(folder, given), want);
            assert_eq!(beside(Path::new(""), given), given);
        }
        let url = Url::parse(&beside(folder, "sqlite://data/shop.db")).unwrap();
        assert_eq!(url.file_path(), "/etc/50% off/data/shop.db");
    }
}
