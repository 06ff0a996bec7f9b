//! Shards: places with names, in a file of TOML, each with its replicas. `shard://austin` is the one of this name, and
//! `shard:` all of them as one store, in which a record's key says where it is.
//!
//! ```toml
//! [shard.austin]
//! url = "postgres://db1/records"
//! replicas = ["postgres://db1-copy/records"]
//!
//! [shard.dallas]
//! url = "postgres://db2/records"
//! weight = 2.0
//! ```
//!
//! The file is `steelyard.toml`, or the one that `?config=` names; what else is in it is not looked at. All other options
//! are those of the places: `shard://austin?table=people`.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use futures_util::future::try_join_all;
use serde::Deserialize;

use super::{
    Place, Store, Url, beside,
    common::TABLE,
    open, rendezvous,
    wrappers::{Replicas, Shards},
};
use crate::{Error, Result};

/// The scheme of their URLs.
pub(super) const SCHEME: &str = "shard";
/// The file, where no other is named.
const FILE: &str = "steelyard.toml";

/// A place, as a configuration names it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ShardPlace {
    /// The URL of the primary, where everything is written.
    pub url: String,
    /// URLs of its replicas: their servers copy the primary.
    #[serde(default)]
    pub replicas: Vec<String>,
    /// How many of the keys it gets, beside the others. 0: none.
    #[serde(default = "one")]
    pub weight: f64,
    /// For how many seconds after a write the writer reads from the primary: longer than replicas are behind.
    #[serde(default = "five")]
    pub pin_seconds: f64,
    /// How a gateway lays its tenants out. `shared` is refused here: such tables hold the records of all tenants.
    #[serde(default)]
    layout: Option<String>,
}

impl ShardPlace {
    /// Of the primary and the replicas.
    fn urls(&mut self) -> impl Iterator<Item = &mut String> {
        std::iter::once(&mut self.url).chain(&mut self.replicas)
    }
}

fn one() -> f64 {
    1.0
}

fn five() -> f64 {
    5.0
}

/// What is read of a file.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    shard: BTreeMap<String, ShardPlace>,
}

/// Shards that are open, by their names. A shard is a value: who has it reads and writes there and nowhere else, whatever
/// other shards are used at the same time.
///
/// ```no_run
/// # async fn example() -> steelyard_store::Result<()> {
/// use std::path::Path;
/// use steelyard_store::store::{NamedShards, Store};
///
/// let shards = NamedShards::from_file(Path::new("steelyard.toml")).await?;
/// let people = shards.on("austin")?.table("people")?;
/// println!("{} in austin, {} in all", people.count().await?, shards.all()?.table("people")?.count().await?);
/// # Ok(()) }
/// ```
pub struct NamedShards {
    shards: BTreeMap<String, Shard>,
    warnings: Vec<String>,
}

/// A shard that is open.
struct Shard {
    weight: f64,
    /// The name of its table.
    table: String,
    store: Arc<dyn Store>,
}

impl NamedShards {
    /// Opens those of a file.
    ///
    /// # Errors
    /// As [`read`](NamedShards::read) and [`open`](NamedShards::open).
    pub async fn from_file(path: &Path) -> Result<NamedShards> {
        NamedShards::open(&NamedShards::read(path)?).await
    }

    /// The places of a file. Relative paths in it begin [beside](super::beside) it.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming file, line and column; of the file.
    pub fn read(path: &Path) -> Result<BTreeMap<String, ShardPlace>> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Error::from(e).in_place(&*name))?;
        let file = toml::from_str(&text).map_err(|e| Error::invalid(e.to_string().trim_end()));
        let File { mut shard } = file.and_then(checked).map_err(|e| e.in_place(name))?;
        let folder = path.parent().unwrap_or(path);
        for url in shard.values_mut().flat_map(ShardPlace::urls) {
            *url = beside(folder, url);
        }
        Ok(shard)
    }

    /// Opens them all. Shards that are tables of one place share its connections.
    ///
    /// # Errors
    /// Of the places, naming the shard.
    pub async fn open(places: &BTreeMap<String, ShardPlace>) -> Result<NamedShards> {
        let opened = Opened::default();
        let each = places.iter().map(|(name, place)| async {
            let store = opened.shard(name, place).await?;
            let table = without_table(&place.url).1.unwrap_or_else(|| TABLE.to_owned());
            Ok::<_, Error>((name.clone(), Shard { weight: place.weight, table, store }))
        });
        let shards = try_join_all(each).await?.into_iter().collect();
        Ok(NamedShards { shards, warnings: opened.warnings.into_inner() })
    }

    /// The shard of this name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming those there are.
    pub fn on(&self, name: &str) -> Result<Arc<dyn Store>> {
        match self.shards.get(name) {
            Some(shard) => Ok(shard.store.clone()),
            None => Err(unknown(name, self.shards.keys())),
        }
    }

    /// The name of the shard that has this key, where keys are spread over all; none where all weights are 0.
    pub fn of_key(&self, key: &str) -> Option<&str> {
        let seats = self.shards.iter().map(|(name, shard)| (name.as_str(), shard.weight));
        rendezvous(seats, key)
    }

    /// All as one store, in which the key says where a record is. When a table is made, the shards over
    /// which it is spread are noted beside it in each of them. With other shards (one was added, renamed, or has another weight)
    /// every operation on the table is a [`Mismatch`](crate::ErrorKind::Mismatch). What is put into a single shard by its name may be where it is not
    /// looked for here.
    ///
    /// # Errors
    /// As [`Shards::named`].
    pub fn all(&self) -> Result<Arc<dyn Store>> {
        let stores = self.shards.iter();
        let stores = stores.map(|(name, shard)| (name.clone(), shard.weight, shard.store.clone()));
        let tables = self.shards.values().map(|shard| shard.table.clone()).collect();
        Ok(Arc::new(Shards::noted(stores.collect(), tables)?))
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.shards.keys().map(String::as_str)
    }
}

fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n String>) -> Error {
    let known: Vec<&str> = known.map(String::as_str).collect();
    Error::invalid(format!("no shard {name:?}; known: {}", known.join(", ")))
}

fn checked(file: File) -> Result<File> {
    if file.shard.is_empty() {
        return Err(Error::invalid("no shard; add [shard.NAME] with url = \"…\""));
    }
    for (name, ShardPlace { weight, pin_seconds, .. }) in &file.shard {
        for (what, value) in [("weight", weight), ("pin_seconds", pin_seconds)] {
            if !(0.0..=1e9).contains(value) {
                let what = format!("shard.{name}: {what} = {value}: it must be 0 or more");
                return Err(Error::invalid(what));
            }
        }
    }
    Ok(file)
}

/// Places that are open, by their URLs without the table.
#[derive(Default)]
struct Opened {
    places: tokio::sync::Mutex<BTreeMap<String, Place>>,
    warnings: tokio::sync::Mutex<Vec<String>>,
}

impl Opened {
    /// A shard with its replicas.
    async fn shard(&self, name: &str, place: &ShardPlace) -> Result<Arc<dyn Store>> {
        if place.layout.as_deref() == Some("shared") {
            let what = "its tables are shared by the tenants of a gateway";
            let e = of_shard(name, Error::new(crate::ErrorKind::Denied, what));
            return Err(e.with_hint("steelyard tenant export, or the URL of the place itself"));
        }
        let primary = self.store(name, &place.url).await?;
        if place.replicas.is_empty() {
            return Ok(primary);
        }
        let replicas = place.replicas.iter().map(|url| self.store(name, url));
        let pin = Duration::from_secs_f64(place.pin_seconds);
        let replicas = Replicas::new(primary, try_join_all(replicas).await?, pin);
        Ok(Arc::new(replicas.map_err(|e| of_shard(name, e))?))
    }

    async fn store(&self, name: &str, url: &str) -> Result<Arc<dyn Store>> {
        let (shared, table) = without_table(url);
        let mut places = self.places.lock().await;
        let place = match places.get(&shared) {
            Some(place) => place.clone(),
            None => {
                if Url::parse(&shared).is_ok_and(|url| url.scheme == SCHEME) {
                    return Err(of_shard(name, Error::invalid("a shard of shards")));
                }
                // Boxed: opening a shard opens others.
                let place = Box::pin(open(&shared)).await.map_err(|e| of_shard(name, e))?;
                self.warnings.lock().await.extend_from_slice(place.warnings());
                places.insert(shared, place.clone());
                place
            }
        };
        match table {
            Some(table) => place.table(&table).map_err(|e| of_shard(name, e)),
            None => Ok(place.store().clone()),
        }
    }
}

fn of_shard(name: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("shard {name:?}: {}", error.context())).with_source(error)
}

/// The text of a URL without the option that names a table, and the table, decoded.
fn without_table(url: &str) -> (String, Option<String>) {
    let Some((place, options)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (table, others): (Vec<&str>, Vec<&str>) =
        options.split('&').partition(|option| option.starts_with("table="));
    let decoded = |option: &&str| {
        let text = percent_encoding::percent_decode_str(&option["table=".len()..]);
        text.decode_utf8_lossy().into_owned()
    };
    let join = if others.is_empty() { "" } else { "?" };
    (format!("{place}{join}{}", others.join("&")), table.first().map(decoded))
}

/// Opens `shard://NAME` or `shard:`.
pub(super) async fn open_url(mut url: Url, text: &str) -> Result<(Arc<dyn Store>, Vec<String>)> {
    let file = url.take("config").unwrap_or_else(|| FILE.to_owned());
    let name = match (&*url.hosts, &*url.path) {
        ([], "") => None,
        ([(name, None)], "") if !name.is_empty() => Some(name.clone()),
        ([(name, None)], "") if name.is_empty() => None,
        _ => return Err(Error::invalid("a shard is shard://NAME, and all of them are shard:")),
    };
    let mut places = NamedShards::read(Path::new(&file))?;
    let options = text.split_once('?').map_or("", |(_, options)| options);
    for place in places.values_mut() {
        for url in place.urls() {
            *url = with_options(url, options);
        }
    }
    match name {
        None => {
            let shards = NamedShards::open(&places).await?;
            Ok((shards.all()?, shards.warnings))
        }
        Some(name) => {
            let place = places.get(&name).ok_or_else(|| unknown(&name, places.keys()))?;
            let opened = Opened::default();
            Ok((opened.shard(&name, place).await?, opened.warnings.into_inner()))
        }
    }
}

/// A URL of a place with these options but the file; in place of its own, where it has them.
fn with_options(url: &str, options: &str) -> String {
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    let more: Vec<&str> = options
        .split('&')
        .filter(|option| !option.is_empty() && name(option) != "config")
        .collect();
    let (place, own) = url.split_once('?').unwrap_or((url, ""));
    let own = own.split('&').filter(|option| !option.is_empty());
    let own = own.filter(|option| !more.iter().any(|other| name(other) == name(option)));
    let all: Vec<&str> = own.chain(more.iter().copied()).collect();
    let join = if all.is_empty() { "" } else { "?" };
    format!("{place}{join}{}", all.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_to_the_places() {
        let with = |url: &str, options: &str| with_options(url, options);
        assert_eq!(with("sqlite:a.db", "config=x&table=t"), "sqlite:a.db?table=t");
        assert_eq!(with("mysql://h/d?pool=2&table=a", "pool=9"), "mysql://h/d?table=a&pool=9");
        assert_eq!(with("memory:", "config=x"), "memory:");
        let (url, table) = without_table("mysql://h/d?pool=2&table=a%20b&tls=true");
        assert_eq!((&*url, table.as_deref()), ("mysql://h/d?pool=2&tls=true", Some("a b")));
        assert_eq!(without_table("memory:?table=t"), ("memory:".to_owned(), Some("t".to_owned())));
    }

    #[tokio::test]
    async fn a_file_has_what_it_says_or_says_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shards.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            NamedShards::read(&path).map_err(|e| e.to_string())
        };
        for (text, want) in [
            ("", "no shard"),
            ("[shard.a]\nurl = \"memory:\"\nwieght = 1", "wieght"),
            ("[shard.a]\nurl = \"memory:\"\nweight = -1", "shard.a: weight = -1"),
            ("[shard.a]\nurl = \"memory:\"\npin_seconds = nan", "shard.a: pin_seconds"),
            ("[shard.a]\nweight = 1", "url"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(want) && error.contains("shards.toml"), "{text}: {error}");
        }
        // Relative paths begin beside it.
        let shards = read("[shard.a]\nurl = \"dir:a\"\nreplicas = [\"dir:b\"]").unwrap();
        let url = |name: &str| format!("dir:{}", folder.path().join(name).display());
        assert_eq!((&shards["a"].url, &*shards["a"].replicas), (&url("a"), &[url("b")][..]));
        // A gateway's configuration has shards, too.
        let text =
            "catalog = \"memory:\"\n[shard.a]\nurl = \"memory:\"\nlayout = \"own\"\n[limits]\n";
        assert_eq!(read(text).unwrap()["a"].weight, 1.0);
        for (name, want) in [("b", "no shard \"b\"; known: a"), ("a/b", "shard://NAME")] {
            let error =
                open(&format!("shard://{name}?config={}", path.display())).await.unwrap_err();
            assert!(error.to_string().contains(want), "{name}: {error}");
        }
    }

    /// Workload 8 as it was published: ten threads, each of which makes 200 accounts on shards drawn at random, with a
    /// figment each. The tallies agree, and no replica was written.
    #[cfg(feature = "sqlite")]
    #[tokio::test(flavor = "multi_thread")]
    async fn ten_threads_create_on_random_shards() {
        use crate::{
            record::{Document, dataset::random::mix},
            store::{Key, Layout, Row},
        };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
        let mut text = String::new();
        for name in ["austin", "dallas"] {
            let (primary, replica) = (at(&format!("{name}.db")), at(&format!("{name}-copy.db")));
            text += &format!("[shard.{name}]\nurl = {primary:?}\nreplicas = [{replica:?}]\n");
        }
        let file = folder.path().join("shards.toml");
        std::fs::write(&file, text).unwrap();
        let shards = Arc::new(NamedShards::from_file(&file).await.unwrap());
        let copies = ["austin-copy.db", "dallas-copy.db"].map(at);
        let copies = try_join_all(copies.iter().map(|url| open(url))).await.unwrap();
        for store in shards.names().map(|name| shards.on(name).unwrap()) {
            for table in ["accounts", "figments"] {
                store.table(table).unwrap().prepare(&Layout::plain()).await.unwrap();
            }
        }
        for place in &copies {
            place.table("accounts").unwrap().prepare(&Layout::plain()).await.unwrap();
        }
        let row = |key: String, fields: [(&str, String); 2]| Row {
            key: Key::new(key).unwrap(),
            record: Document::from_iter(fields),
        };
        let workers = (0..10_u64).map(|worker| {
            let shards = shards.clone();
            tokio::spawn(async move {
                let mut austin = 0;
                for n in 0..200 {
                    let name = ["austin", "dallas"][(mix(worker * 1000 + n) % 2) as usize];
                    austin += u64::from(name == "austin");
                    let (shard, id) = (shards.on(name).unwrap(), format!("{worker}-{n}"));
                    let account = [("name", id.clone()), ("shard", name.to_owned())];
                    shard
                        .table("accounts")
                        .unwrap()
                        .put(&[row(id.clone(), account)])
                        .await
                        .unwrap();
                    // What was written is read, though it is on no replica.
                    let key = Key::new(id.clone()).unwrap();
                    let found = shard.table("accounts").unwrap().get(&[key]).await.unwrap();
                    assert!(found[0].is_some(), "{id}");
                    // Another shard's scope in this one changes nothing here.
                    let other =
                        shards.on(if name == "austin" { "dallas" } else { "austin" }).unwrap();
                    assert!(other.shape() == shard.shape());
                    let figment = [("account_id", id.clone()), ("value", n.to_string())];
                    shard.table("figments").unwrap().put(&[row(id, figment)]).await.unwrap();
                }
                austin
            })
        });
        let workers: Vec<_> = workers.collect();
        let mut austin = 0;
        for worker in workers {
            austin += worker.await.unwrap();
        }
        for (name, want) in [("austin", austin), ("dallas", 2000 - austin)] {
            for table in ["accounts", "figments"] {
                let count = shards.on(name).unwrap().table(table).unwrap().count().await.unwrap();
                assert_eq!(count, want, "{table} on {name}");
            }
        }
        for place in &copies {
            assert_eq!(place.table("accounts").unwrap().count().await.unwrap(), 0);
        }
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn all_shards_are_one_store_and_each_key_has_its_own() {
        use crate::{
            record::Document,
            store::{Key, Layout, Row},
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("steelyard.toml");
        let mut text = String::new();
        for (name, weight) in [("a", 1.0), ("b", 3.0), ("c", 0.0)] {
            // Tables of one place, which share its connections.
            let url = format!("sqlite:{}?table=in_{name}", folder.path().join("all.db").display());
            text += &format!("[shard.{name}]\nurl = {url:?}\nweight = {weight:?}\n");
        }
        std::fs::write(&file, &text).unwrap();
        let at = |name: &str| format!("shard:{name}?config={}", file.display());
        let all = open(&at("")).await.unwrap();
        all.prepare(&Layout::plain()).await.unwrap();
        let row = |n: u64| Row { key: Key::new(format!("k{n}")).unwrap(), record: Document::new() };
        let rows: Vec<Row> = (0..400).map(row).collect();
        all.put(&rows).await.unwrap();
        let shards = NamedShards::from_file(&file).await.unwrap();
        for row in &rows {
            let name = shards.of_key(&row.key).unwrap();
            let keys = std::slice::from_ref(&row.key);
            assert!(shards.on(name).unwrap().get(keys).await.unwrap()[0].is_some(), "{name}");
        }
        let counts = ["//a", "//b", "//c"].map(|name| {
            let url = at(name);
            async move { open(&url).await.unwrap().count().await }
        });
        let [a, b, c] = futures_util::future::join_all(counts).await.try_into().unwrap();
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!(a + b == 400 && (60..140).contains(&a), "{a} {b}");
        assert_eq!(c.unwrap(), 0);
        // With another shard, name or weight, keys would be looked for elsewhere.
        let other = file.with_file_name("other.toml");
        let more = |more: &str| std::fs::write(&other, format!("{text}{more}")).unwrap();
        let at_other = format!("shard:?config={}", other.display());
        more(&format!("[shard.d]\nurl = \"sqlite:{}\"\n", folder.path().join("d.db").display()));
        let wrong = open(&at_other).await.unwrap();
        let error = wrong.get(&[rows[0].key.clone()]).await.unwrap_err().to_string();
        assert!(
            error
                .contains("over shards a, b (3), c (0); the configuration has a, b (3), c (0), d,"),
            "{error}"
        );
        for done in [
            wrong.put(&rows[..1]).await.err(),
            wrong.count().await.err(),
            wrong.prepare(&Layout::plain()).await.err(),
        ] {
            assert_eq!(done.unwrap().kind(), crate::ErrorKind::Mismatch);
        }
        std::fs::write(&other, text.replace("weight = 3.0", "weight = 2.0")).unwrap();
        assert!(open(&at_other).await.unwrap().scan(&crate::store::KeyRange::all()).await.is_err());
        // A table that is not there yet may have any.
        open(&format!("{at_other}&table=new"))
            .await
            .unwrap()
            .prepare(&Layout::plain())
            .await
            .unwrap();
        std::fs::write(&other, text.replace("url =", "layout = \"shared\"\nurl =")).unwrap();
        assert!(open(&at_other).await.unwrap_err().to_string().contains("shared by the tenants"));
        // Options go to the places: another table of each.
        let other = open(&format!("{}&table=other", at(""))).await.unwrap();
        other.prepare(&Layout::plain()).await.unwrap();
        assert_eq!((other.count().await.unwrap(), all.count().await.unwrap()), (0, 400));
    }
}
