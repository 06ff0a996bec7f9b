//! Kinds of store that a build can leave out: their schemes are known all the same, so that their URLs are URLs,
//! passwords in them are hidden, and the error says how to add them.

use crate::Error;

/// A kind of store with a feature of its own.
#[derive(Debug)]
pub struct Optional {
    /// The feature, which is also the name of the driver.
    pub feature: &'static str,
    /// Other schemes of its URLs.
    pub aliases: &'static [&'static str],
    /// The private servers it can talk to.
    pub servers: &'static [&'static str],
    /// Whether this build has it.
    pub built_in: bool,
}

/// Every kind of store that has a feature of its own.
pub const OPTIONAL: &[Optional] = &[
    of("couchdb", &["couchdbs"], &["couchdb"], cfg!(feature = "couchdb")),
    of("mongodb", &["mongodb+srv"], &["mongodb", "ferretdb"], cfg!(feature = "mongodb")),
    of("mysql", &["mariadb"], &["mariadb"], cfg!(feature = "mysql")),
    of("postgres", &["postgresql"], &["postgres"], cfg!(feature = "postgres")),
    of("redis", &["rediss"], &["redis"], cfg!(feature = "redis")),
    of("s3", &[], &["s3"], cfg!(feature = "s3")),
    of("sqlite", &[], &[], cfg!(feature = "sqlite")),
];

const fn of(
    feature: &'static str,
    aliases: &'static [&'static str],
    servers: &'static [&'static str],
    built_in: bool,
) -> Optional {
    Optional { feature, aliases, servers, built_in }
}

impl Optional {
    /// The error of a store that this build does not have.
    pub fn missing(&self) -> Error {
        Error::unsupported(format!("this build has no driver for {}", self.feature)).with_hint(
            format!(
                "build steelyard with --features {}, or with --features full for all",
                self.feature
            ),
        )
    }
}

/// The kind of store of this scheme or private server, where this build does not have it.
pub fn left_out(name: &str) -> Option<&'static Optional> {
    let is = |kind: &&Optional| {
        kind.feature == name || kind.aliases.contains(&name) || kind.servers.contains(&name)
    };
    OPTIONAL.iter().filter(|kind| !kind.built_in).find(is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{DRIVERS, driver};

    #[test]
    fn names_are_those_of_the_drivers() {
        for kind in OPTIONAL {
            match driver(kind.feature) {
                Some(driver) => {
                    assert!(kind.built_in, "{}", kind.feature);
                    assert_eq!((driver.name, driver.aliases), (kind.feature, kind.aliases));
                    assert_eq!(driver.servers, kind.servers);
                }
                None => {
                    assert!(!kind.built_in, "{}", kind.feature);
                    for scheme in kind.aliases.iter().chain([&kind.feature]) {
                        let error = left_out(scheme).expect("it is left out").missing();
                        assert!(error.context().contains(kind.feature), "{error}");
                    }
                }
            }
        }
    }

    /// A driver with a feature that is not in the table would be unknown to a build without it.
    #[test]
    fn what_is_always_there_has_no_feature() {
        let always = ["memory", "dir", "memcached", "tyrant"];
        for driver in DRIVERS.iter().filter(|driver| !always.contains(&driver.name)) {
            assert!(OPTIONAL.iter().any(|kind| kind.feature == driver.name), "{}", driver.name);
        }
    }
}
