//! The names under which competitors are known: `PostgreSQL` for `postgres`, `MARC 21` for `marc21`.
//!
//! Results name competitors by the words that are typed. [`with_product_names`] makes a copy in which
//! every competitor has its product's name, so that tables, charts and sentences agree. The raw data of a
//! page (JSON, CSV) keep the words.

use std::collections::{BTreeMap, BTreeSet};

use steelyard_results::{Contender, Kept, Results};

/// Words for stores, and their names as their makers write them.
const STORES: [(&str, &str); 14] = [
    ("sqlite", "SQLite"),
    ("mariadb", "MariaDB"),
    ("mysql", "MySQL"),
    ("postgres", "PostgreSQL"),
    ("mongodb", "MongoDB"),
    ("ferretdb", "FerretDB"),
    ("couchdb", "CouchDB"),
    ("redis", "Redis"),
    ("valkey", "Valkey"),
    ("memcached", "memcached"),
    ("tyrant", "Tokyo Tyrant"),
    ("s3", "Amazon S3"),
    ("dir", "folder"),
    ("memory", "memory"),
];

/// Words for formats and wraps, and their names.
const FORMATS: [(&str, &str); 15] = [
    ("marc21", "MARC 21"),
    ("marcxml", "MARCXML"),
    ("line", "line (.mrk)"),
    ("json", "JSON"),
    ("sonic", "JSON (sonic-rs)"),
    ("msgpack", "MessagePack"),
    ("cbor", "CBOR"),
    ("bson", "BSON"),
    ("marshal", "Marshal"),
    ("pickle", "pickle"),
    ("csv", "CSV"),
    ("base64", "Base64"),
    ("base64lines", "Base64 lines"),
    ("gzip", "gzip"),
    ("zstd", "zstd"),
];

/// Engines of MariaDB and MySQL.
const ENGINES: [(&str, &str); 3] = [("innodb", "InnoDB"), ("myisam", "MyISAM"), ("aria", "Aria")];

/// A product that reports a longer name is not a stand-in; one longer than this is not quoted.
const LONGEST: usize = 24;

fn of(table: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == word).map(|(_, name)| *name)
}

/// `MARC 21` of `marc21`; what is not known stays as it is.
pub(super) fn format(word: &str) -> String {
    let parts: Vec<&str> = word.split('+').map(|part| of(&FORMATS, part).unwrap_or(part)).collect();
    parts.join(" + ")
}

/// Whether a competitor is this format, by its word or by its product's name.
pub(super) fn is_format(name: &str, word: &str) -> bool {
    name == word || of(&FORMATS, word) == Some(name)
}

/// The results with competitors under their products' names.
pub(super) fn with_product_names(results: &Results) -> Results {
    let names = names(results);
    let mut named = results.clone();
    let rename = |name: &mut String| {
        if let Some(new) = names.get(name.as_str()) {
            name.clone_from(new);
        }
    };
    rename(&mut named.baseline);
    named.competitors.iter_mut().for_each(|c| rename(&mut c.name));
    named.cells.iter_mut().for_each(|c| rename(&mut c.competitor));
    named.probes.iter_mut().filter_map(|p| p.competitor.as_mut()).for_each(rename);
    let pairs = named.family.iter_mut().flat_map(|family| &mut family.pairs);
    for contrast in named.contrasts.iter_mut().chain(pairs) {
        rename(&mut contrast.of.0);
        rename(&mut contrast.to.0);
    }
    named
}

/// The new name of each competitor. No two have the same: where product names alone would not tell them
/// apart they keep all their options, and, failing that, the words they had.
fn names(results: &Results) -> BTreeMap<String, String> {
    let contenders: Vec<&Contender> = results.competitors.iter().filter(|c| !c.null).collect();
    let shared = shared_options(&contenders);
    let short = |c: &Contender| {
        name(c, &|option| !option.starts_with("durability=") && !shared.contains(option))
    };
    let long = |c: &Contender| name(c, &|_| true);
    let ways: [&dyn Fn(&Contender) -> String; 2] = [&short, &long];
    for way in ways {
        let names: BTreeMap<String, String> =
            contenders.iter().map(|c| (c.name.clone(), way(c))).collect();
        let mut taken: BTreeSet<&String> = names.values().collect();
        taken.extend(results.competitors.iter().filter(|c| c.null).map(|c| &c.name));
        if taken.len() == results.competitors.len() {
            return names;
        }
    }
    BTreeMap::new()
}

/// Options that every store of several has: they tell none from another.
fn shared_options<'a>(contenders: &[&'a Contender]) -> BTreeSet<&'a str> {
    let mut all = contenders.iter().map(|c| options(&c.name).collect::<BTreeSet<&str>>());
    match (contenders.len(), all.next()) {
        (2.., Some(first)) => all.fold(first, |shared, next| &shared & &next),
        _ => BTreeSet::new(),
    }
}

/// What stands behind `?` in the word for a store.
fn options(word: &str) -> impl Iterator<Item = &str> {
    let behind = word.split_once('?').map_or("", |(_, options)| options);
    behind.split('&').filter(|option| !option.is_empty())
}

fn name(contender: &Contender, tells: &dyn Fn(&str) -> bool) -> String {
    let word = contender.name.as_str();
    let Some(kept) = &contender.store else {
        return match contender.client {
            Some(_) => word.to_owned(),
            None => format(word),
        };
    };
    let base = word.split('?').next().unwrap_or(word);
    // A URL, or a name that was given on the command line, is what its user knows it by.
    let Some(maker) = of(&STORES, base) else { return word.to_owned() };
    let (product, other) = product(maker, kept);
    let told = options(word).filter(|option| tells(option)).map(option);
    let told: Vec<String> = other.into_iter().chain(told).collect();
    match told.is_empty() {
        true => product,
        false => format!("{product} ({})", told.join(", ")),
    }
}

/// The product that was measured. Where another one answered in its place the name says so, with the
/// name that it gave.
fn product(maker: &str, kept: &Kept) -> (String, Option<String>) {
    let said = kept.product.trim();
    let begins = |name: &str| said.get(..name.len()).is_some_and(|s| s.eq_ignore_ascii_case(name));
    if said == "AmazonS3" || matches!(maker, "folder" | "memory") || said.is_empty() {
        return (maker.to_owned(), None);
    }
    if let Some((_, known)) = STORES.iter().find(|(_, name)| begins(name)) {
        return ((*known).to_owned(), None);
    }
    if said.contains(maker) && !said.contains("stand-in") {
        return (maker.to_owned(), None);
    }
    let other = (said.len() <= LONGEST && said != "S3").then(|| said.to_owned());
    (format!("{}-compatible", maker.trim_start_matches("Amazon ")), other)
}

/// An option in words: `MyISAM` of `engine=myisam`, `Marshal` of `format=marshal`.
fn option(option: &str) -> String {
    match option.split_once('=') {
        Some(("format", word)) => format(word),
        Some(("engine", word)) => of(&ENGINES, word).unwrap_or(word).to_owned(),
        _ => option.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(word: &str, product: &str) -> Contender {
        let kept = Kept { product: product.into(), ..Kept::default() };
        Contender { name: word.into(), store: Some(kept), ..Contender::default() }
    }

    fn named(contenders: &[(&str, &str)]) -> Vec<String> {
        let competitors: Vec<Contender> = contenders.iter().map(|c| store(c.0, c.1)).collect();
        let baseline = competitors[0].name.clone();
        let results = Results { competitors, baseline, ..Results::default() };
        let named = with_product_names(&results);
        assert_eq!(named.baseline, named.competitors[0].name);
        named.competitors.into_iter().map(|c| c.name).collect()
    }

    #[test]
    fn stores_have_the_names_their_makers_write() {
        let of = |word: &str, product: &str| named(&[(word, product)]).remove(0);
        assert_eq!(of("postgres", "PostgreSQL"), "PostgreSQL");
        assert_eq!(of("ferretdb", "FerretDB on PostgreSQL"), "FerretDB");
        assert_eq!(of("mongodb", "FerretDB on PostgreSQL"), "FerretDB");
        assert_eq!(of("couchdb", "Apache CouchDB"), "CouchDB");
        assert_eq!(of("s3", "AmazonS3"), "Amazon S3");
        assert_eq!(of("mariadb?engine=myisam", "MariaDB"), "MariaDB (MyISAM)");
        assert_eq!(of("redis?layout=document", "Valkey"), "Valkey (layout=document)");
        // What the user named, or wrote as a URL, stays.
        for own in ["before", "sqlite:/tmp/x?a=b", "mysql://u:***@db/shop?durability=t2"] {
            assert_eq!(of(own, "SQLite"), own);
        }
    }

    #[test]
    fn a_stand_in_is_not_called_the_product() {
        let of = |word: &str, product: &str| named(&[(word, product)]).remove(0);
        assert_eq!(of("couchdb", "express-pouchdb"), "CouchDB-compatible (express-pouchdb)");
        let tyrant = "stand-in for ttserver over Tokyo Cabinet";
        assert_eq!(of("tyrant", tyrant), "Tokyo Tyrant-compatible");
        assert_eq!(
            (of("s3", "MinIO"), of("s3", "S3")),
            ("S3-compatible (MinIO)".into(), "S3-compatible".into())
        );
    }

    #[test]
    fn options_that_all_have_are_left_out_and_no_two_names_are_alike() {
        assert_eq!(
            named(&[
                ("sqlite?layout=columns&durability=t1", "SQLite"),
                ("mariadb?layout=columns&binlog=on&durability=t1", "MariaDB"),
            ]),
            ["SQLite", "MariaDB (binlog=on)"]
        );
        assert_eq!(
            named(&[
                ("sqlite?format=marshal", "SQLite"),
                ("sqlite?format=marshal+base64", "SQLite")
            ]),
            ["SQLite (Marshal)", "SQLite (Marshal + Base64)"]
        );
        // The same but for what is left out.
        assert_eq!(
            named(&[("sqlite?durability=t1", "SQLite"), ("sqlite?durability=t3", "SQLite")]),
            ["SQLite (durability=t1)", "SQLite (durability=t3)"]
        );
        assert_eq!(named(&[("mysql", "MariaDB"), ("mariadb", "MariaDB")]), ["mysql", "mariadb"]);
    }

    #[test]
    fn formats_have_their_names() {
        let of = |word: &str| format(word);
        assert_eq!((of("marc21"), of("bson")), ("MARC 21".into(), "BSON".into()));
        assert_eq!(of("marshal+base64"), "Marshal + Base64");
        assert_eq!(of("again"), "again");
        assert!(
            is_format("JSON", "json") && is_format("json", "json") && !is_format("JSON", "cbor")
        );
    }
}
