//! Databases that are made for a while in a server (or beside a file) of somebody's own, and dropped
//! again: so that what is tried there touches nothing that was there.
//!
//! A [`Scratch`] is of one kind with what it made: there is no way to drop anything else.

use futures_util::future::BoxFuture;

use super::{Common, Url, driver};
use crate::{Error, ErrorKind, Result};

/// How a driver creates and drops databases, where its stores have them.
pub struct Databases {
    /// The URL with another database in it, from its text and its parts; none where there can be no
    /// other.
    pub url: fn(text: &str, url: &Url, name: &str) -> Option<String>,
    /// Makes the database of this name. [`Conflict`](ErrorKind::Conflict) where it is there,
    /// [`Denied`](ErrorKind::Denied) where this user may not.
    pub make: fn(Url, Common, name: String) -> Doing,
    /// Drops it, with all in it.
    pub drop: fn(Url, Common, name: String) -> Doing,
    /// Drops the schema of this name in a database, with all in it; none where a database has no schemas. One is made
    /// with the first table in it (`?schema=`).
    pub drop_schema: Option<fn(Url, Common, name: String) -> Doing>,
}

impl Databases {
    /// The URL of the database of this name in the place of another URL; none where there can be no other.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for a URL that is none.
    pub fn own_url(text: &str, name: &str) -> Result<Option<String>> {
        let url = Url::parse(text)?;
        Ok(of(&url).and_then(|databases| (databases.url)(text, &url, name)))
    }

    /// Makes the database of this name in the place of another URL.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where this kind of store has no databases; as [`Scratch::make`].
    pub async fn create(text: &str, name: &str) -> Result<()> {
        match Scratch::make(text, name).await? {
            Some(_) => Ok(()),
            None => Err(none(text)),
        }
    }

    /// Drops the database of this name in the place of another URL, with all in it.
    ///
    /// # Errors
    /// As [`create`](Databases::create); of the connection and the server.
    pub async fn remove(text: &str, name: &str) -> Result<()> {
        let url = Url::parse(text)?;
        let Some(databases) = of(&url) else { return Err(none(text)) };
        let shown = url.to_string();
        let (parts, common) = parts(url)?;
        (databases.drop)(parts, common, name.to_owned()).await.map_err(|e| e.in_place(shown))
    }
}

impl Databases {
    /// Whether databases of this place have schemas.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for a URL that is none.
    pub fn has_schemas(text: &str) -> Result<bool> {
        let url = Url::parse(text)?;
        Ok(of(&url).is_some_and(|databases| databases.drop_schema.is_some()))
    }

    /// Drops the schema of this name in the database of a URL, with all in it. It may not be there.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where a database has no schemas; of the connection and the server.
    pub async fn remove_schema(text: &str, name: &str) -> Result<()> {
        let url = Url::parse(text)?;
        let Some(drop) = of(&url).and_then(|databases| databases.drop_schema) else {
            return Err(Error::unsupported(format!("{} has no schemas", url.scheme)));
        };
        let shown = url.to_string();
        let (parts, common) = parts(url)?;
        drop(parts, common, name.to_owned()).await.map_err(|e| e.in_place(shown))
    }
}

/// The error of a store that has no databases.
fn none(text: &str) -> Error {
    let scheme = text.split(':').next().unwrap_or_default();
    Error::unsupported(format!("{scheme} has no databases that could be made"))
}

/// Something that is being done.
pub(super) type Doing = BoxFuture<'static, Result<()>>;

/// A database that was made here.
#[derive(Debug)]
pub struct Scratch {
    /// The URL it was made by.
    from: String,
    name: String,
    url: String,
}

impl Scratch {
    /// Makes a database by the URL of another; none where this kind of store has no databases.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where there is one of that name,
    /// [`Denied`](ErrorKind::Denied) where this user may make none; of the connection.
    pub async fn make(text: &str, name: &str) -> Result<Option<Scratch>> {
        let url = Url::parse(text)?;
        let Some(databases) = of(&url) else { return Ok(None) };
        let Some(own) = (databases.url)(text, &url, name) else { return Ok(None) };
        let (parts, common) = parts(url.clone())?;
        let made = (databases.make)(parts, common, name.to_owned()).await;
        made.map_err(|e| e.in_place(url.to_string()))?;
        Ok(Some(Scratch { from: text.to_owned(), name: name.to_owned(), url: own }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL it is opened by, password and all.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Drops it, with all in it.
    ///
    /// # Errors
    /// Of the connection and the server, saying what is left there.
    pub async fn drop(self) -> Result<()> {
        let url = Url::parse(&self.from)?;
        let Some(databases) = of(&url) else { return Ok(()) };
        let shown = url.to_string();
        let (parts, common) = parts(url)?;
        (databases.drop)(parts, common, self.name.clone()).await.map_err(|e| {
            let what = format!("{}, made for this run, is still there: {}", self.name, e.context());
            Error::new(e.kind(), what).with_source(e).in_place(shown)
        })
    }
}

fn of(url: &Url) -> Option<&'static Databases> {
    driver(&url.scheme)?.databases.as_ref()
}

fn parts(mut url: Url) -> Result<(Url, Common)> {
    let common = Common::take(&mut url)?;
    Ok((url, common))
}

/// The error of a name that is taken.
pub(super) fn taken(name: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("database {name:?} already exists"))
}

/// The text of a URL `scheme://host/database?options` with another database, and more options.
pub(super) fn in_database(text: &str, name: &str, more: Option<(&str, &str)>) -> Option<String> {
    let (place, options) = text.split_once('?').unwrap_or((text, ""));
    let (scheme, rest) = place.split_once("://")?;
    let host = rest.split_once('/').map_or(rest, |(host, _)| host);
    let mut url = format!("{scheme}://{host}/{name}");
    let more = more.map(|(name, value)| format!("{name}={value}"));
    let all = [Some(options.to_owned()).filter(|o| !o.is_empty()), more];
    for (i, option) in all.into_iter().flatten().enumerate() {
        url += if i == 0 { "?" } else { "&" };
        url += &option;
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_another_and_all_else_the_same() {
        let url = |text: &str| {
            let parsed = Url::parse(text).unwrap();
            of(&parsed).and_then(|databases| (databases.url)(text, &parsed, "new"))
        };
        for (text, want) in [
            #[cfg(feature = "mysql")]
            (
                "mysql://u:p%2F@h:3306/shop?engine=aria",
                Some("mysql://u:p%2F@h:3306/new?engine=aria"),
            ),
            #[cfg(feature = "postgres")]
            ("postgres://h", Some("postgres://h/new")),
            #[cfg(feature = "mongodb")]
            ("mongodb://u:p@h/shop?tls=true", Some("mongodb://u:p@h/new?tls=true&authSource=shop")),
            #[cfg(feature = "mongodb")]
            ("mongodb://u:p@h/shop?authSource=a", Some("mongodb://u:p@h/new?authSource=a")),
            #[cfg(feature = "mongodb")]
            ("mongodb://h/shop", Some("mongodb://h/new")),
            #[cfg(feature = "sqlite")]
            ("sqlite:a/shop.db?pool=2", Some("sqlite:a/shop.db.new?pool=2")),
            #[cfg(feature = "sqlite")]
            ("sqlite::memory:", None),
            ("memcached://h", None),
        ] {
            assert_eq!(url(text).as_deref(), want, "{text}");
        }
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_database_beside_a_file_is_made_once_and_goes_with_all_that_is_its() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("sqlite:{}", folder.path().join("shop.db").display());
        let there = || {
            let names = std::fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> =
                names.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let scratch = Scratch::make(&text, "x1").await.unwrap().unwrap();
        assert_eq!(there(), ["shop.db.x1"]);
        let again = Scratch::make(&text, "x1").await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Conflict, "{again:?}");
        let place = crate::store::open(scratch.url()).await.unwrap();
        place.prepare(&crate::store::Layout::plain()).await.unwrap();
        assert!(there().len() > 1, "a log of writes beside it: {:?}", there());
        scratch.drop().await.unwrap();
        assert!(there().is_empty(), "{:?}", there());
    }
}
