//! Where a store is, as people write it: `mysql://user:password@host:port/database?table=pets`,
//! `sqlite:shop.db?layout=columns`.
//!
//! A [`Url`] is taken apart here, and nowhere else. Its password is in none of its texts.

use std::{fmt, time::Duration};

use percent_encoding::percent_decode_str;

use super::{Client, Shape};
use crate::{Error, Result, durability::Tier, format::Wrapped};

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
    options: Vec<(String, String)>,
    taken: Vec<&'static str>,
    shown: String,
}

/// Text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
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
    /// Takes a URL apart.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), without a password that may be in it.
    pub fn parse(text: &str) -> Result<Url> {
        let (scheme, rest) = text.split_once(':').ok_or_else(|| {
            Error::invalid(format!("{:?} is no URL of a store: it has no scheme", cut(text)))
        })?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Url {
            scheme: scheme.to_ascii_lowercase(),
            user: None,
            password: None,
            hosts: Vec::new(),
            path: String::new(),
            rooted: rest.starts_with("//"),
            options: Vec::new(),
            taken: Vec::new(),
            shown: String::new(),
        };
        let mut shown = format!("{}:", url.scheme);
        match rest.strip_prefix("//") {
            None => {
                url.path = decoded(rest)?;
                // Without its slashes a login is part of the path, and shown no more than in its place.
                shown += &match rest.split_once(':').zip(rest.rfind('@')) {
                    Some(((user, _), at)) if user.len() < at => {
                        format!("{user}:***{}", &rest[at..])
                    }
                    _ => rest.to_owned(),
                };
            }
            Some(rest) => {
                let (authority, path) = match rest.split_once('/') {
                    Some((authority, path)) => (authority, Some(path)),
                    None => (rest, None),
                };
                let login = authority.contains([':', '@']);
                let behind = path.is_some_and(|path| path.contains('@'))
                    || (!authority.contains('@') && query.contains('@'));
                if login && behind {
                    return Err(Error::invalid(format!(
                        "a URL of {} with an @ behind its host: in a password, / is written %2F, ? \
                         %3F, # %23, @ %40 and : %3A; in a path, @ is %40",
                        url.scheme
                    )));
                }
                shown += "//";
                let hosts = match authority.rsplit_once('@') {
                    None => authority,
                    Some((login, hosts)) => {
                        let (user, password) = match login.split_once(':') {
                            Some((user, password)) => (user, Some(password)),
                            None => (login, None),
                        };
                        shown += user;
                        if let Some(password) = password {
                            url.password = Some(Secret(decoded(password)?));
                            shown += ":***";
                        }
                        shown += "@";
                        url.user = Some(decoded(user)?).filter(|user| !user.is_empty());
                        hosts
                    }
                };
                // Where there is no @, or several, what looks like a port may be a password.
                let shows = !query.contains('@')
                    && (authority.matches('@').count() == 1 || !authority.contains(':'));
                let read = hosts.split(',').filter(|h| !h.is_empty()).map(host);
                url.hosts = read.collect::<Result<_>>().map_err(|e| match shows {
                    true => e,
                    false => Error::invalid(format!(
                        "a URL of {} whose host and port are none: host:1234 is one",
                        url.scheme
                    )),
                })?;
                shown += hosts;
                if let Some(path) = path {
                    url.path = decoded(path)?;
                    shown += "/";
                    shown += path;
                }
            }
        }
        for (i, option) in query.split('&').filter(|o| !o.is_empty()).enumerate() {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            shown += if i == 0 { "?" } else { "&" };
            shown += name;
            shown += "=";
            shown += &super::hidden::of_url(name, value);
            // A plus stays a plus: it stands in names of formats.
            url.options.push((decoded(name)?, decoded(value)?));
        }
        url.shown = shown;
        Ok(url)
    }

    /// Takes an option out.
    pub fn take(&mut self, name: &'static str) -> Option<String> {
        self.taken.push(name);
        let at = self.options.iter().position(|(n, _)| n == name)?;
        Some(self.options.remove(at).1)
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

    /// All options were taken.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the option nobody knows, and those known.
    pub fn done(&self) -> Result<()> {
        let Some((name, _)) = self.options.first() else { return Ok(()) };
        let mut known = self.taken.clone();
        known.sort_unstable();
        known.dedup();
        Err(Error::invalid(format!(
            "{} has no option {name:?}; known: {}",
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
            _ => Err(Error::invalid(format!("{}: one host, not several", self.scheme))),
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

/// What may be shown of a text that is no URL and may hold anything.
fn cut(text: &str) -> &str {
    &text[..text.find(['@', '?']).unwrap_or(text.len())]
}

fn decoded(text: &str) -> Result<String> {
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Error::invalid("a URL with %-codes that are no UTF-8")),
    }
}

fn host(text: &str) -> Result<(String, Option<u16>)> {
    let wrong = || Error::invalid(format!("{text:?} is no host with a port"));
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
    Ok((decoded(host)?, port))
}

/// Connections at most, where the URL says nothing of them.
pub(crate) const POOL: usize = 4;

/// What every driver understands, taken out of its URL.
#[derive(Debug, Clone)]
pub struct Common {
    /// The table, collection or folder: one place holds several. `records` where none is named.
    pub table: String,
    /// How records lie in it.
    pub layout: Option<Shape>,
    /// The format of blobs; naming one means layout blob.
    pub format: Option<Wrapped>,
    /// The durability of acknowledged writes; the store's own where none is named.
    pub durability: Option<Tier>,
    /// How many connections at most. 4 where nothing is said.
    pub pool: usize,
    /// How long connecting may take: 5 seconds where nothing is said.
    pub connect_timeout: Duration,
    /// How long an operation may take: 30 seconds where nothing is said.
    pub timeout: Duration,
}

impl Common {
    /// Takes the common options out of a URL.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the option.
    pub fn take(url: &mut Url) -> Result<Common> {
        let format: Option<Wrapped> = url.take_parsed("format")?;
        let layout: Option<Shape> = url.take_parsed("layout")?;
        if let (Some(format), Some(layout @ (Shape::Document | Shape::Columns))) = (&format, layout)
        {
            return Err(Error::invalid(format!(
                "?format={format} is for blobs, and ?layout={layout} has none"
            )));
        }
        let table = url.take("table").unwrap_or_else(|| "records".into());
        if table.is_empty() || table.contains('\0') {
            return Err(Error::invalid(format!("?table={table:?} is no name")));
        }
        let pool = url.take_parsed("pool")?.unwrap_or(POOL);
        if pool == 0 {
            return Err(Error::invalid("?pool=0: one connection at least"));
        }
        Ok(Common {
            table,
            layout: layout.or(format.as_ref().map(|_| Shape::Blob)),
            format,
            durability: url.take_parsed("durability")?,
            pool,
            connect_timeout: duration(url, "connect_timeout", 5.0)?,
            timeout: duration(url, "timeout", 30.0)?,
        })
    }

    /// The layout, of those that a driver has; the first of them where none is named.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported), naming those it has.
    pub fn shape(&self, driver: &str, has: &[Shape]) -> Result<Shape> {
        match self.layout {
            None => Ok(has[0]),
            Some(shape) if has.contains(&shape) => Ok(shape),
            Some(shape) => {
                let has: Vec<_> = has.iter().map(|shape| shape.name()).collect();
                Err(Error::unsupported(format!(
                    "{driver} has no layout {shape}; it has: {}",
                    has.join(", ")
                )))
            }
        }
    }

    /// The format of blobs; MessagePack where none is named, which keeps most and is small.
    pub fn blob_format(&self) -> Wrapped {
        self.format.clone().unwrap_or_else(|| crate::format::Format::Msgpack.into())
    }
}

/// Seconds, also fractions, of at least a millisecond.
fn duration(url: &mut Url, name: &'static str, usual: f64) -> Result<Duration> {
    let seconds = url.take_parsed(name)?.unwrap_or(usual);
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration >= Duration::from_millis(1) => Ok(duration),
        _ => Err(Error::invalid(format!("?{name}={seconds}: seconds, 0.001 or more"))),
    }
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
    fn options_nobody_knows_are_answered() {
        let mut url = Url::parse("sqlite:a.db?tabel=x&pool=2").unwrap();
        let common = Common::take(&mut url).unwrap();
        assert_eq!((common.table.as_str(), common.pool), ("records", 2));
        let error = url.done().unwrap_err();
        assert!(
            error.to_string().contains("no option \"tabel\"; known: connect_timeout"),
            "{error}"
        );
        for (option, want) in [
            ("pool=0", "one connection"),
            ("pool=x", "?pool=x"),
            ("layout=tree", "known: document, columns, blob"),
            ("durability=t9", "t0 (volatile)"),
            ("format=xyz", "no format"),
            ("format=json&layout=columns", "is for blobs"),
            ("timeout=0", "0.001 or more"),
        ] {
            let mut url = Url::parse(&format!("sqlite:a.db?{option}")).unwrap();
            let error = Common::take(&mut url).unwrap_err();
            assert!(error.to_string().contains(want), "{option}: {error}");
        }
    }

    #[test]
    fn errors_hold_no_password() {
        for text in ["secret@host", "my secret"] {
            let error = Url::parse(text).unwrap_err().to_string();
            assert!(!error.contains("@host"), "{error}");
        }
        let error = Url::parse("mysql://u:secret@[::1/db").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
