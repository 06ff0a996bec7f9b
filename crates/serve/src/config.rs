//! The configuration of a gateway, in TOML. A name that is not known is an error, so that a typo is not a default.

use std::{
    collections::BTreeMap,
    iter,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::Deserialize;
use steelyard_base::{Error, Result};
use steelyard_store::{
    record::Kind,
    store::{self, Databases, Layout, Secrets, Url, beside},
};

use crate::names::CollectionName;

/// Everything a gateway is told before it starts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Where it is listened for tenants.
    #[serde(default)]
    pub listen: Listen,
    /// The URL of the store with the catalog.
    pub catalog: String,
    /// The file with the secret of this installation, of 32 bytes at least.
    pub secret_file: PathBuf,
    /// How long a process may go by what it read in the catalog, in seconds. A move, a frozen tenant and a revoked key take
    /// effect everywhere within this time.
    #[serde(default = "lease")]
    pub lease_seconds: f64,
    /// The places of the tenants' databases, by name.
    #[serde(rename = "shard")]
    pub shards: BTreeMap<String, Shard>,
    /// Limits of what is asked.
    #[serde(default)]
    pub limits: Limits,
    /// What collections of these names have, in each tenant's database.
    #[serde(default, rename = "collection")]
    pub collections: BTreeMap<String, CollectionShape>,
}

/// What collections of one name have beside their documents.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CollectionShape {
    /// Indexes: a path, and the kind of value it leads to: `age = "int"`.
    #[serde(default)]
    pub index: BTreeMap<String, String>,
}

impl CollectionShape {
    fn layout(&self) -> Result<Layout> {
        self.index.iter().try_fold(Layout::plain(), |layout, (path, kind)| {
            let found = Kind::ALL.into_iter().find(|known| known.name() == kind);
            let kind = found.ok_or_else(|| {
                let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                Error::invalid(format!(
                    "index.{path} = {kind:?}: unknown kind; known: {}",
                    known.join(", ")
                ))
            })?;
            Ok(layout.with_index(path.parse()?, kind))
        })
    }
}

/// How collections lie in a store, by their names; plainly where nothing is said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layouts(Arc<BTreeMap<String, Layout>>);

impl Layouts {
    pub(crate) fn of(&self, collection: &str) -> Layout {
        self.0.get(collection).cloned().unwrap_or_default()
    }

    /// The names of collections that something is said of.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Where a gateway listens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Listen {
    /// For tenants: an address and port.
    pub address: SocketAddr,
    /// For tenants: a Unix socket, in place of the address.
    pub unix: Option<PathBuf>,
    /// The certificate of TLS, in PEM, with those of its authorities behind it. Read again when it changes.
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    pub private_key: Option<PathBuf>,
    /// For operators: metrics and health, without a key. Not to be reached from outside.
    pub operators: Option<SocketAddr>,
    /// Names of the gateway, as browsers ask for it. Where it listens on this machine alone, the page is shown under
    /// these, `localhost` and the loopback addresses only: a name of another's that leads here is refused.
    pub names: Vec<String>,
}

impl Default for Listen {
    fn default() -> Self {
        Listen {
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            unix: None,
            certificate: None,
            private_key: None,
            operators: None,
            names: Vec::new(),
        }
    }
}

/// A place of databases of tenants.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Shard {
    /// The URL of a store: of a server, or of a file beside which the files of the tenants are.
    pub url: String,
    /// URLs of its replicas, which their servers keep: keys that may only read are answered from them.
    #[serde(default)]
    pub replicas: Vec<String>,
    /// How tenants lie in it.
    #[serde(default)]
    pub layout: TenantLayout,
    /// How many of the new tenants it gets, beside the others. 0: none.
    #[serde(default = "weight")]
    pub weight: f64,
    /// How `shard://` reads of its replicas; not looked at here, where a key that may write reads from the primary always.
    #[serde(default)]
    pub(crate) pin_seconds: Option<f64>,
}

impl Shard {
    /// The store of one tenant, at this URL.
    pub(crate) fn whole(url: &str) -> Shard {
        Shard { layout: TenantLayout::Whole, ..Shard::own(url) }
    }

    /// A place of databases, at this URL.
    pub(crate) fn own(url: &str) -> Shard {
        let (replicas, layout, pin_seconds) = Default::default();
        Shard { url: url.to_owned(), replicas, layout, weight: weight(), pin_seconds }
    }
}

/// How the databases of tenants lie in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TenantLayout {
    /// A database of its own for each.
    #[default]
    Own,
    /// A schema of its own for each, in one database of PostgreSQL.
    Schema,
    /// Tables that all share: each record has its tenant in its key and in a field with which every index begins.
    /// PostgreSQL keeps them apart by row-level security, too.
    Shared,
    /// The place itself is the database of one tenant.
    Whole,
}

/// Limits of what is asked of a gateway.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Requests at once, of all tenants.
    pub requests_at_once: usize,
    /// Requests at once, of one tenant.
    pub tenant_at_once: usize,
    /// Requests a second, of one tenant and of one key.
    pub requests_per_second: f64,
    /// Seconds until a request is answered, or has begun to be.
    pub request_seconds: f64,
    /// Seconds until the head of a request has arrived, and until its body has.
    pub arrival_seconds: f64,
    /// Bytes of a document.
    pub document_bytes: usize,
    /// Bytes of a bulk request.
    pub bulk_bytes: usize,
    /// Documents of a bulk request.
    pub bulk_documents: usize,
    /// Bytes of bodies of requests and of pages in memory at once, of all tenants; one has as many as are free, at most.
    pub bodies_bytes: usize,
    /// Documents of a page of a list.
    pub page_documents: u64,
    /// Collections of a tenant.
    pub collections: u64,
    /// Bytes of a tenant's database, where its store tells them; 0 for no limit.
    pub tenant_bytes: u64,
    /// Databases of tenants that are open at once; the least recently used are closed.
    pub open_databases: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 1024,
            requests_at_once: 256,
            tenant_at_once: 64,
            requests_per_second: 1000.0,
            request_seconds: 30.0,
            arrival_seconds: 15.0,
            document_bytes: 1 << 20,
            bulk_bytes: 16 << 20,
            bulk_documents: 10_000,
            bodies_bytes: 256 << 20,
            page_documents: 1000,
            collections: 100,
            tenant_bytes: 0,
            open_databases: 128,
        }
    }
}

fn lease() -> f64 {
    2.0
}

fn weight() -> f64 {
    1.0
}

impl Config {
    /// A configuration with every setting, and its default.
    pub const EXAMPLE: &str = include_str!("config.toml");

    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`Invalid`](steelyard_base::ErrorKind::Invalid), with line and column, for anything that is not understood; of the
    /// file.
    pub fn from_file(path: &Path) -> Result<Config> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Error::from(e).in_place(&*name))?;
        let mut config = Config::from_toml(&text).map_err(|e| e.in_place(&*name))?;
        // Relative to the configuration, wherever the gateway is started.
        if let Some(folder) = path.parent() {
            config.secret_file = folder.join(&config.secret_file);
            let Listen { unix, certificate, private_key, .. } = &mut config.listen;
            for path in [unix, certificate, private_key].into_iter().flatten() {
                *path = folder.join(&*path);
            }
            let shards = config.shards.values_mut();
            let places =
                shards.flat_map(|shard| iter::once(&mut shard.url).chain(&mut shard.replicas));
            for url in iter::once(&mut config.catalog).chain(places) {
                *url = beside(folder, url);
            }
        }
        Ok(config)
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// As [`from_file`](Config::from_file).
    pub fn from_toml(text: &str) -> Result<Config> {
        // Also where it cannot be read: an error shows the line, and the password in it.
        let urls = || text.split(['"', '\'']).filter(|part| part.contains("://"));
        store::hide(urls());
        let wrong = |text: &str| Error::invalid(Secrets::of(urls()).hidden(text));
        let config: Config = toml::from_str(text).map_err(|e| wrong(e.to_string().trim_end()))?;
        config.check()?;
        Ok(config)
    }

    /// Whether it makes sense, as far as that can be told without opening anything.
    ///
    /// # Errors
    /// [`Invalid`](steelyard_base::ErrorKind::Invalid), naming the setting.
    pub fn check(&self) -> Result<()> {
        Url::parse(&self.catalog)
            .map_err(|e| Error::invalid(format!("catalog: {}", e.reason())))?;
        positive("lease_seconds", self.lease_seconds, 3600.0)?;
        let Listen { unix, certificate, private_key, .. } = &self.listen;
        if certificate.is_some() != private_key.is_some() {
            return Err(Error::invalid("listen: certificate and private_key come together"));
        }
        if unix.is_some() && certificate.is_some() {
            return Err(Error::invalid("listen: TLS is not possible on a Unix socket"));
        }
        if self.listen.operators == Some(self.listen.address) && self.listen.address.port() != 0 {
            return Err(Error::invalid("listen: operators needs an address or port of its own"));
        }
        if self.shards.is_empty() {
            return Err(Error::invalid("no shard; add [shard.NAME] with url = \"…\""));
        }
        for (name, shard) in &self.shards {
            let wrong = |what: String| Err(Error::invalid(format!("shard.{name}: {what}")));
            let url = match Url::parse(&shard.url) {
                Ok(url) => url,
                Err(e) => return wrong(e.reason()),
            };
            let scheme = |url: &str| url.split(':').next().map(str::to_ascii_lowercase);
            if let Some(replica) = shard.replicas.iter().find(|r| scheme(r) != scheme(&shard.url)) {
                let replica =
                    Url::parse(replica).map_or_else(|e| e.reason(), |url| url.to_string());
                return wrong(format!("replicas: {replica} is no {}", url.scheme));
            }
            if shard.layout == TenantLayout::Own && Databases::own_url(&shard.url, "x")?.is_none() {
                return wrong(format!(
                    "{} has no databases to give each tenant one; layout = \"whole\"",
                    url.scheme
                ));
            }
            if shard.layout == TenantLayout::Schema && !Databases::has_schemas(&shard.url)? {
                return wrong(format!("{} has no schemas; layout = \"own\"", url.scheme));
            }
            if shard.layout == TenantLayout::Shared && self.limits.tenant_bytes > 0 {
                return wrong("limits.tenant_bytes cannot be told in the layout \"shared\"".into());
            }
            if !(shard.weight.is_finite() && shard.weight >= 0.0) {
                return wrong(format!("weight = {}: it must be 0 or more", shard.weight));
            }
        }
        let mut urls: Vec<(&str, &str)> = vec![("catalog", &self.catalog)];
        for (name, shard) in &self.shards {
            for (what, url) in std::iter::once(("url", &shard.url))
                .chain(shard.replicas.iter().map(|url| ("replicas", url)))
            {
                if let Some((other, _)) = urls.iter().find(|(_, known)| known == url) {
                    let what = format!("shard.{name}: its {what} has the url of {other}");
                    return Err(Error::invalid(what));
                }
                urls.push((name, url));
            }
        }
        self.layouts()?;
        self.limits.check()
    }

    pub(crate) fn layouts(&self) -> Result<Layouts> {
        let of = |(name, shape): (&String, &CollectionShape)| {
            CollectionName::new(name)?;
            let layout = shape.layout();
            let layout =
                layout.map_err(|e| Error::invalid(format!("collection.{name}: {}", e.reason())))?;
            Ok((name.clone(), layout))
        };
        Ok(Layouts(Arc::new(self.collections.iter().map(of).collect::<Result<_>>()?)))
    }

    /// The shards, by their names.
    pub fn shards(&self) -> impl Iterator<Item = (&str, &Shard)> {
        self.shards.iter().map(|(name, shard)| (name.as_str(), shard))
    }

    /// The lease.
    pub fn lease(&self) -> Duration {
        Duration::from_secs_f64(self.lease_seconds)
    }
}

impl Limits {
    fn check(&self) -> Result<()> {
        rate("limits.requests_per_second", self.requests_per_second)?;
        positive("limits.request_seconds", self.request_seconds, 86_400.0)?;
        positive("limits.arrival_seconds", self.arrival_seconds, 86_400.0)?;
        let counts = [
            ("connections", self.connections as u64),
            ("requests_at_once", self.requests_at_once as u64),
            ("tenant_at_once", self.tenant_at_once as u64),
            ("document_bytes", self.document_bytes as u64),
            ("bulk_bytes", self.bulk_bytes as u64),
            ("bulk_documents", self.bulk_documents as u64),
            ("bodies_bytes", self.bodies_bytes as u64),
            ("page_documents", self.page_documents),
            ("collections", self.collections),
            ("open_databases", self.open_databases),
        ];
        // Half of it is left to others.
        let largest = self.bulk_bytes.max(self.document_bytes);
        if self.bodies_bytes / 2 < largest {
            let what = format!(
                "limits.bodies_bytes = {}: it must be twice bulk_bytes and document_bytes at least",
                self.bodies_bytes
            );
            return Err(Error::invalid(what));
        }
        // What semaphores can count.
        const MOST: u64 = 1 << 31;
        match counts.iter().find(|(_, count)| !(1..=MOST).contains(count)) {
            Some((name, count)) => {
                Err(Error::invalid(format!("limits.{name} = {count}: it must be 1 to {MOST}")))
            }
            None => Ok(()),
        }
    }
}

/// Whether this is a rate of requests.
pub(crate) fn rate(name: &str, value: f64) -> Result<()> {
    positive(name, value, 1e9)
}

fn positive(name: &str, value: f64, most: f64) -> Result<()> {
    match value.is_finite() && value >= 0.001 && value <= most {
        true => Ok(()),
        false => Err(Error::invalid(format!("{name} = {value:?}: it must be 0.001 to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "catalog = \"sqlite:catalog.db\"\nsecret_file = \"secret\"\n[shard.a]\nurl = \"sqlite:a.db\"\n";

    #[test]
    fn the_example_of_the_program_is_valid_and_shows_the_defaults() {
        let text = Config::EXAMPLE;
        let whole: String = text
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                // Either a Unix socket or TLS.
                Some(setting)
                    if (setting.contains(" = ") || setting.starts_with('['))
                        && !setting.starts_with("unix") =>
                {
                    format!("{setting}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        for text in [text, &whole] {
            let config = Config::from_toml(text).unwrap();
            assert_eq!(
                (config.lease(), &config.limits),
                (Duration::from_secs(2), &Limits::default())
            );
        }
    }

    #[test]
    fn relative_paths_begin_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("steelyard.toml");
        std::fs::write(&file, format!("{GOOD}replicas = [\"sqlite:b.db\", \"sqlite:/var/c.db\"]"))
            .unwrap();
        let config = Config::from_file(&file).unwrap();
        let beside = |name: &str| folder.path().join(name);
        let url = |name: &str| format!("sqlite:{}", beside(name).display());
        let Shard { url: place, replicas, .. } = &config.shards["a"];
        assert_eq!((config.catalog, place), (url("catalog.db"), &url("a.db")));
        assert_eq!(*replicas, [url("b.db"), "sqlite:/var/c.db".to_owned()]);
        assert_eq!(config.secret_file, beside("secret"));
    }

    #[test]
    fn a_file_of_shards_of_stores_is_one_of_a_gateway_too() {
        Config::from_toml(&format!("{GOOD}replicas = [\"sqlite:b.db\"]\npin_seconds = 5.0"))
            .unwrap();
    }

    #[test]
    fn a_typo_is_an_error_that_names_it() {
        let config = Config::from_toml(GOOD).unwrap();
        assert_eq!((config.lease(), config.limits), (Duration::from_secs(2), Limits::default()));
        for (more, want) in [
            ("weigth = 2", "weigth"),
            ("weight = -1", "shard.a: weight = -1"),
            ("[collection.people]\nindex = { age = \"number\" }", "collection.people: index.age"),
            ("[collection.\"a b\"]\nindex = { age = \"int\" }", "a b"),
            ("layout = \"shard\"", "layout"),
            ("[limits]\nconnections = 0", "limits.connections = 0"),
            ("[limits]\nbodies_bytes = 1000000", "limits.bodies_bytes"),
            ("[limits]\nrequest_seconds = 0", "limits.request_seconds = 0"),
            ("[limits]\nrequests_per_second = nan", "limits.requests_per_second"),
            ("[listen]\naddress = \"localhost\"", "address"),
            ("[listen]\ncertificate = \"a.pem\"", "come together"),
            (
                "[listen]\nunix = \"s\"\ncertificate = \"a.pem\"\nprivate_key = \"b.pem\"",
                "Unix socket",
            ),
            ("[shard.b]\nurl = \"memcached://h\"", "layout = \"whole\""),
            ("layout = \"shared\"\n[limits]\ntenant_bytes = 1000", "shard.a: limits.tenant_bytes"),
            ("[shard.b]\nurl = \"postgress://h\"", "shard.b"),
        ] {
            let error = Config::from_toml(&format!("{GOOD}{more}")).unwrap_err();
            assert!(error.to_string().contains(want), "{more}: {error}");
        }
        let none = "catalog = \"sqlite:catalog.db\"\nsecret_file = \"secret\"\n[shard]\n";
        assert!(Config::from_toml(none).unwrap_err().to_string().contains("no shard"));
    }
}
