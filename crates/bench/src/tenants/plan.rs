//! What a run will do, before anything is done: arms, phases, how many operations, and the results that carry the plan.

use std::{fmt, str::FromStr};

use super::{
    Options,
    people::{condition, span},
    reach::Way,
    shared,
};
use crate::{
    Error, Result, machine,
    results::{
        Asked, Contrast, Dataset, Phase, Results, SCHEMA,
        tenants::{DATABASE, GATEWAY, SCHEMA as SCHEMAS, SHARED, Tenancy, Tenants},
    },
    store::Pools,
};

/// A way to keep tenants apart, and to reach them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    /// One table for all tenants; the others are compared with it.
    Shared,
    /// A database for each tenant.
    Database,
    /// A schema for each tenant; only PostgreSQL has them.
    Schema,
    /// A database for each tenant, behind the gateway.
    Gateway,
}

impl Arm {
    /// Every arm.
    pub const ALL: [Arm; 4] = [Arm::Shared, Arm::Database, Arm::Schema, Arm::Gateway];

    /// The one word for it.
    pub fn name(self) -> &'static str {
        match self {
            Arm::Shared => SHARED,
            Arm::Database => DATABASE,
            Arm::Schema => SCHEMAS,
            Arm::Gateway => GATEWAY,
        }
    }

    /// Where its data lie: those of the gateway are the databases.
    pub(super) fn way(self) -> Way {
        match self {
            Arm::Shared => Way::Shared,
            Arm::Database | Arm::Gateway => Way::Databases,
            Arm::Schema => Way::Schemas,
        }
    }

    /// What it is, in a phrase.
    pub(super) fn about(self) -> &'static str {
        match self {
            Arm::Shared => shared::ABOUT,
            Arm::Database => {
                "a database each (of SQLite a file each), opened by the client when it is needed; on MySQL and MongoDB over \
                 one connection"
            }
            Arm::Schema => {
                "a schema each in one database of PostgreSQL; a connection is set to the schema it is used for"
            }
            Arm::Gateway => {
                "the same databases behind steelyard serve, a process on this machine, by HTTP/1.1 on a connection \
                 that is kept; a key for each tenant"
            }
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arm {
    type Err = Error;
    fn from_str(text: &str) -> Result<Arm> {
        Arm::ALL.into_iter().find(|arm| arm.name() == text).ok_or_else(|| {
            Error::invalid(format!(
                "no arm {text:?}; known: {}",
                Arm::ALL.map(Arm::name).join(", ")
            ))
        })
    }
}

/// The arms that are measured on a store of this scheme.
pub(super) fn arms(options: &Options<'_>, scheme: &str) -> Vec<Arm> {
    let wanted = |arm: &Arm| options.arms.is_empty() || options.arms.contains(arm);
    let can = |arm: &Arm| match arm {
        Arm::Schema => scheme == "postgres",
        Arm::Gateway => options.program.is_some(),
        Arm::Shared | Arm::Database => true,
    };
    Arm::ALL.into_iter().filter(|arm| wanted(arm) && can(arm)).collect()
}

/// The kinds of phases: a word, and what an operation is, in the plural.
pub(super) const QUERY: (&str, &str) = ("query", "queries");
pub(super) const INSERT: (&str, &str) = ("insert", "inserts");
pub(super) const TOUCH: (&str, &str) = ("touch", "first queries");

/// How many tenants are asked for the first time in a turn, at most.
const TOUCHES: u64 = 16;

/// How many are, of so many.
pub(super) fn touches(tenants: u64) -> u64 {
    tenants.saturating_sub(1).min(TOUCHES)
}

fn counted(tenants: u64) -> String {
    match tenants {
        1 => "1 tenant".into(),
        n => format!("{n} tenants"),
    }
}

/// The phase of a kind, on a store with so many tenants.
pub(super) fn phase(
    (kind, unit): (&str, &str),
    store: &str,
    (tenants, documents): (u64, u64),
    answer: f64,
) -> Phase {
    let table = format!("{store}, {}", counted(tenants));
    let about = match kind {
        "query" => {
            "A tenant and an age are drawn; the tenant's records of that age come back, in the order of their keys."
        }
        "insert" => "A record that is new is written to a tenant that is drawn.",
        _ => {
            "The first query of a tenant that nobody has asked since the start of the server (of the gateway; of SQLite, \
             since the databases were closed)."
        }
    };
    let asks = kind != "insert";
    let named = Phase::new(&format!("{kind} {store}"), &table, 1, about);
    Phase {
        kind: kind.into(),
        unit: unit.into(),
        concurrency: 1,
        tenants: Some(Tenancy { store: store.into(), tenants }),
        query: asks.then(|| Asked {
            condition: condition(documents),
            sort: vec!["_key".into()],
            limit: None,
            records: Some(answer),
        }),
        ..named.at(tenants)
    }
}

/// What the gateway adds to a query and to an insert, where both arms are there.
pub(super) fn contrasts(arms: &[Arm], store: &str, tenants: u64) -> Vec<Contrast> {
    let both = arms.contains(&Arm::Gateway) && arms.contains(&Arm::Database);
    let contrast = |kind: &str| {
        let id = format!("{kind} {store}@{tenants}");
        Contrast {
            about: format!("{kind} through the gateway, {store}, {}", counted(tenants)),
            of: (GATEWAY.into(), id.clone()),
            to: (DATABASE.into(), id),
            versus: None,
        }
    };
    let kinds = [QUERY.0, INSERT.0].into_iter().filter(|_| both);
    kinds.map(contrast).collect()
}

/// A window has no fewer operations, and no more.
const FEWEST: u64 = 16;
const MOST: u64 = 50_000;

/// How many operations a window has, the same for every arm: so many that the quickest takes `window_ns`, and all of
/// them one after another no longer than `all_ns`.
pub(super) fn units(costs: &[f64], window_ns: f64, all_ns: f64) -> u64 {
    let quickest = costs.iter().copied().fold(f64::INFINITY, f64::min).max(1.0);
    let all: f64 = costs.iter().sum::<f64>().max(1.0);
    let wanted = (window_ns / quickest).ceil().min(all_ns / all);
    (wanted as u64).clamp(FEWEST, MOST)
}

/// Results in which nothing is measured yet.
pub(super) fn blank(options: &Options<'_>) -> Results {
    let documents = options.documents;
    let most = options.tenants.iter().copied().max().unwrap_or(0);
    let arm = |arm: Arm| (format!("Arm {arm}"), arm.about().to_owned());
    let ages = match span(documents) {
        1 => "one age".to_owned(),
        n => format!("{n} ages"),
    };
    let settings = [
        (
            "Open databases",
            format!(
                "at most {} are open at once, in this process and in the gateway, or {} where they share the connections \
                 of a server (databases of MySQL and MongoDB, schemas of PostgreSQL); the least recently used is closed. \
                 Tenants are drawn evenly, so with more tenants than that most operations open a database: tenants \
                 that come in bursts open fewer",
                options.open,
                options.open * u64::from(Pools::PARTS)
            ),
        ),
        (
            "Query",
            format!("{} in the order of keys: {ages} of one tenant, read in full", condition(documents)),
        ),
        (
            "Load",
            "one operation at a time, by one client with one connection to each server, or to each database that is \
             open where it cannot change between databases; the same \
             tenants, ages and records in the same order for every arm"
                .into(),
        ),
        (
            "Starts",
            "the data are made once for each number of tenants; a start is one of the server, the gateway and the \
             client, with nothing open. How the data happen to lie is in no interval. Files stay in the system's page \
             cache"
                .into(),
        ),
        (
            "First writes",
            "before inserts are timed, each database that stays open is written to once: its first write since it was \
             opened syncs more"
                .into(),
        ),
        (
            "Published",
            "\"5.3 % slower with many databases\" than with one, in a post that says neither of how many nor with what"
                .into(),
        ),
        (
            "Processor time",
            "that of this process, of its private server and of the gateway together".into(),
        ),
        (
            "Memory and files",
            "of all processes of the server, and of the gateway (Pss, /proc/PID/fd), when every tenant was asked once; \
             of SQLite, of a process that does nothing else. Disk: after a clean end, less what the empty server had"
                .into(),
        ),
        (
            "Restart",
            "from the start of the server's process to its first answer; of SQLite, of a program that opens it; of the \
             gateway, of its process, with the server running"
                .into(),
        ),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value));
    Results {
        schema: SCHEMA,
        bench: "tenants".into(),
        started: machine::now(),
        plan: options.plan.clone(),
        software: machine::software(),
        machine: machine::describe(),
        settings: settings.into_iter().chain(Arm::ALL.map(arm)).collect(),
        dataset: Dataset {
            name: format!("people-json, seed {}", options.plan.seed),
            records: documents * most,
            of: documents * most,
            kind: "people".into(),
            ..Dataset::default()
        },
        tenants: Some(Tenants { documents, open: options.open, ..Tenants::default() }),
        ..Results::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_store_has_the_arms_it_can() {
        let mut options = Options::new();
        assert_eq!(arms(&options, "sqlite"), [Arm::Shared, Arm::Database]);
        options.program = Some("/bin/true".into());
        assert_eq!(arms(&options, "postgres"), Arm::ALL);
        assert_eq!(arms(&options, "mongodb"), [Arm::Shared, Arm::Database, Arm::Gateway]);
        options.arms = vec![Arm::Gateway, Arm::Schema];
        assert_eq!(arms(&options, "mysql"), [Arm::Gateway]);
        for arm in Arm::ALL {
            assert_eq!(arm.name().parse::<Arm>().unwrap(), arm);
        }
        assert!("tables".parse::<Arm>().unwrap_err().to_string().contains("schema, gateway"));
    }

    #[test]
    fn phases_are_of_a_store_and_a_number_of_tenants() {
        let query = phase(QUERY, "sqlite", (10, 200), 10.0);
        assert_eq!((query.id.as_str(), query.size), ("query sqlite@10", Some(10)));
        assert_eq!(query.table, "sqlite, 10 tenants");
        assert_eq!(query.query.unwrap().condition, "age >= a and age < a + 5");
        let insert = phase(INSERT, "sqlite", (1, 200), 10.0);
        assert_eq!((insert.table.as_str(), insert.query), ("sqlite, 1 tenant", None));
        let all = contrasts(&Arm::ALL, "a", 10);
        assert_eq!(
            all.iter().map(|c| c.of.1.as_str()).collect::<Vec<_>>(),
            ["query a@10", "insert a@10"]
        );
        assert!(contrasts(&[Arm::Shared, Arm::Gateway], "a", 10).is_empty());
        assert_eq!([1, 2, 10, 1000].map(touches), [0, 1, 9, 16]);
    }

    #[test]
    fn windows_are_long_enough_for_the_quickest_and_not_too_long_for_all() {
        let ms = 1e6;
        assert_eq!(units(&[0.05 * ms, 0.06 * ms], 50.0 * ms, 2000.0 * ms), 1000);
        // The slow one would take five seconds.
        assert_eq!(units(&[0.05 * ms, 5.0 * ms], 50.0 * ms, 2000.0 * ms), 396);
        assert_eq!(units(&[900.0 * ms], 50.0 * ms, 2000.0 * ms), FEWEST);
        assert_eq!(units(&[], 50.0 * ms, 2000.0 * ms), FEWEST);
        assert_eq!(units(&[0.1], 50.0 * ms, 2000.0 * ms), MOST);
    }
}
