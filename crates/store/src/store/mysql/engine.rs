//! Engines of tables, what they promise, and what the server says of itself.

use std::{collections::HashMap, time::Duration};

use mysql_async::{Row as Cells, Value as Cell};

use super::{MySql, pool::Pool, write::FREE};
use crate::{
    Error, ErrorKind, Result,
    durability::{Bound, Limit, Tier},
    record::Kind,
    store::{Abilities, Description, Need, Shape, json},
};

/// An engine that tables are made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Engine {
    /// As SQL knows it.
    pub name: &'static str,
    /// As URLs have it.
    pub word: &'static str,
    /// Statements are done as a whole or not at all.
    pub atomic: bool,
    /// The longest key, in characters of utf8mb4, each of which counts as four bytes of an index.
    /// InnoDB's indexes take 3072 bytes: where a value and the key fit into that together, the index on
    /// the value also has the order of the keys, and answers sorted queries. MyISAM's take 1000 bytes,
    /// Aria's 2000; theirs hold no key, and their queries are sorted.
    pub max_key: usize,
}

pub(super) const ENGINES: [Engine; 3] = [
    Engine { name: "InnoDB", word: "innodb", atomic: true, max_key: 512 },
    Engine { name: "MyISAM", word: "myisam", atomic: false, max_key: 250 },
    Engine { name: "Aria", word: "aria", atomic: false, max_key: 250 },
];

/// An engine of a table that was not made here.
const OTHER: Engine = Engine { name: "unknown here", word: "", atomic: false, max_key: 250 };

impl Engine {
    /// The one of this name, be it of SQL or of a URL.
    pub(super) fn named(name: &str) -> Engine {
        let found = ENGINES.into_iter().find(|engine| engine.name.eq_ignore_ascii_case(name));
        found.unwrap_or(OTHER)
    }
}

/// The server's settings that decide what survives a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Safety {
    /// `innodb_flush_log_at_trx_commit`: 1 syncs at each commit, 2 writes at each and syncs every
    /// second, 0 does both every second only.
    pub flush_log: i64,
    /// `log_bin`: there is a log for replicas, without which recovery undoes what is not in it.
    pub binlog: bool,
    /// `sync_binlog`: 1 syncs that log at each commit.
    pub sync_binlog: i64,
    /// `innodb_flush_method`, as the server says it; empty where it has no such setting.
    pub flush_method: String,
    /// `innodb_doublewrite`, likewise.
    pub doublewrite: String,
    /// `innodb_flush_log_at_timeout`: how often the log is synced that is not synced at commit.
    pub every: Duration,
}

impl Safety {
    pub(super) async fn ask(pool: &Pool) -> Result<Safety> {
        // Versions differ in what they have, and what is not there is no row.
        let statement = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
             ('innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'innodb_flush_method', \
              'innodb_doublewrite', 'innodb_flush_log_at_timeout', 'system_versioning_asof')";
        let rows = pool.rows(statement, Vec::new()).await?;
        let rows = rows.into_iter().map(mysql_async::from_row_opt::<(String, String)>);
        let set: HashMap<String, String> = rows.filter_map(std::result::Result::ok).collect();
        // A session cannot set this back.
        if let Some(at) = set.get("system_versioning_asof").filter(|at| *at != "DEFAULT") {
            return Err(Error::unsupported(format!(
                "system_versioning_asof is {at:?} in this server, by which tables are read as they were then: \
                 SET GLOBAL system_versioning_asof = DEFAULT"
            )));
        }
        Safety::of(|name| set.get(name).map(String::as_str))
            .ok_or_else(|| Error::unsupported("the server does not report how it keeps its logs"))
    }

    /// From variables as `SHOW GLOBAL VARIABLES` has them.
    fn of<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Option<Safety> {
        let number = |name| variable(name)?.parse::<i64>().ok();
        let word = |name| variable(name).unwrap_or_default();
        let every = number("innodb_flush_log_at_timeout").unwrap_or(1);
        Some(Safety {
            flush_log: number("innodb_flush_log_at_trx_commit")?,
            binlog: matches!(variable("log_bin")?, "ON" | "1"),
            sync_binlog: number("sync_binlog")?,
            flush_method: word("innodb_flush_method").into(),
            doublewrite: word("innodb_doublewrite").into(),
            every: Duration::from_secs(every.try_into().unwrap_or(1)),
        })
    }

    /// What no sync at commit makes up for.
    pub(super) fn limit(&self, engine: Engine) -> Option<Limit> {
        if engine.word != "innodb" {
            return None;
        }
        // Servers differ in how they write these.
        let method = self.flush_method.to_ascii_lowercase();
        let why = match (method.as_str(), self.doublewrite.to_ascii_uppercase().as_str()) {
            ("nosync" | "littlesync", _) => format!("innodb_flush_method={method}"),
            (_, off @ ("OFF" | "0" | "DETECT_ONLY")) => {
                format!("innodb_doublewrite={off}, so a crash may tear a page")
            }
            _ => return None,
        };
        Some(Limit { most: Tier::T1, why })
    }

    /// What limits the loss of t2.
    pub(super) fn bound(&self, engine: Engine) -> Option<Bound> {
        (engine.word == "innodb").then_some(Bound::Time(self.every))
    }

    /// What tables of an engine can promise, the most first.
    fn promises(&self, engine: Engine) -> &'static [Tier] {
        match (engine.word, self.flush_log) {
            // What is not synced is with the system, but for what is not even written at commit.
            ("innodb", 0) if self.limit(engine).is_some() => &[],
            ("innodb", _) if self.limit(engine).is_some() => &[Tier::T1],
            ("innodb", 1) if !self.binlog || self.sync_binlog == 1 => {
                &[Tier::T3, Tier::T2, Tier::T1]
            }
            ("innodb", 0) => &[Tier::T2],
            ("innodb", _) => &[Tier::T2, Tier::T1],
            // FLUSH TABLES writes to the system, and syncs nothing.
            ("myisam" | "aria", _) => &[Tier::T1],
            _ => &[],
        }
    }

    /// What is set, when this was asked.
    pub(super) fn set(&self, engine: Engine, asked: Option<Tier>) -> Option<Tier> {
        let promises = self.promises(engine);
        match (engine.word, self.flush_log, asked) {
            // The same settings are both.
            ("innodb", 1, _) => promises.first().copied(),
            (_, _, Some(asked)) if promises.contains(&asked) => Some(asked),
            _ => promises.first().copied(),
        }
    }

    /// What is asked must be promised.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported), naming what is.
    pub(super) fn keeps(&self, engine: Engine, asked: Option<Tier>) -> Result<()> {
        let promises = self.promises(engine);
        let Some(tier) = asked.filter(|tier| !promises.contains(tier)) else { return Ok(()) };
        let set = match engine.word {
            "innodb" => {
                let mut settings =
                    vec![format!("innodb_flush_log_at_trx_commit={}", self.flush_log)];
                if self.binlog {
                    settings.push(format!("sync_binlog={}", self.sync_binlog));
                }
                settings.extend(self.limit(engine).map(|limit| limit.why));
                format!("InnoDB here ({})", settings.join(", "))
            }
            _ => format!("engine {}", engine.name),
        };
        Err(tier.refused(&set, promises))
    }
}

/// Of documents in MariaDB, with its default engine and `max_allowed_packet`.
pub(super) const DOCUMENT: Abilities = Abilities {
    driver: "mysql",
    keeps: json::KEEPS,
    loses: json::LOSES,
    cannot: &[Need::Times],
    joins: true,
    atomic: ENGINES[0].atomic,
    conditional: true,
    ordered: true,
    max_key: ENGINES[0].max_key,
    max_record: largest(16 << 20, ENGINES[0]),
};

/// How deep MariaDB's JSON may nest.
pub(super) const LEVELS: usize = 31;

/// The largest record that fits into a packet with its key.
const fn largest(packet: usize, engine: Engine) -> usize {
    packet.saturating_sub(FREE + 4 * engine.max_key)
}

/// What is known of a table before it is looked at.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub shape: Shape,
    pub abilities: Abilities,
    pub engine: Engine,
    /// The URL names the engine.
    named: bool,
    pub safety: Safety,
    pub asked: Option<Tier>,
    /// How deep documents may nest, themselves counted.
    pub levels: usize,
}

impl Facts {
    pub(super) fn new(
        shape: Shape,
        engine: Option<Engine>,
        pool: &Pool,
        safety: Safety,
        asked: Option<Tier>,
    ) -> Result<Facts> {
        let named = engine.is_some();
        let engine = engine.unwrap_or(ENGINES[0]);
        safety.keeps(engine, asked)?;
        let maria = pool.server.maria;
        let (keeps, loses, cannot): (_, _, &[Need]) = match shape {
            Shape::Columns => (COLUMNS, LOST_IN_COLUMNS, &[Need::Missing]),
            // MySQL's JSON is a format of its own; MariaDB's is text.
            _ if maria => (DOCUMENT.keeps, DOCUMENT.loses, DOCUMENT.cannot),
            _ => (DOCUMENT.keeps, LOST_IN_DOCUMENTS, DOCUMENT.cannot),
        };
        let abilities = Abilities {
            keeps,
            loses,
            cannot,
            atomic: engine.atomic,
            max_key: engine.max_key,
            max_record: largest(pool.server.packet, engine),
            ..DOCUMENT
        };
        Ok(Facts {
            shape,
            abilities,
            engine,
            named,
            safety,
            asked,
            levels: if maria { LEVELS } else { 100 },
        })
    }

    /// The same for another table.
    pub(super) fn sibling(&self, pool: &Pool) -> Result<Facts> {
        let engine = Some(self.engine).filter(|_| self.named);
        Facts::new(self.shape, engine, pool, self.safety.clone(), self.asked)
    }

    /// The same for a table that is there, and has an engine.
    pub(super) fn of(mut self, table: &str, engine: &str) -> Result<Facts> {
        self.expects(table, engine)?;
        self.engine = Engine::named(engine);
        self.abilities.atomic = self.engine.atomic;
        // Of others it is not known whether a statement is one step.
        self.abilities.conditional = !self.engine.word.is_empty();
        Ok(self)
    }

    /// A table that is there has this engine.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where the URL names another,
    /// [`Unsupported`](ErrorKind::Unsupported) where it cannot promise what is asked.
    pub(super) fn expects(&self, table: &str, engine: &str) -> Result<()> {
        let found = Engine::named(engine);
        if self.named && found != self.engine {
            let what = format!("table {table:?} has engine {engine}, not {}", self.engine.name);
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        self.safety.keeps(found, self.asked)
    }
}

// Some times are refused, see `values.rs`.
pub(super) const COLUMNS: &[Kind] = &[Kind::Bool, Kind::Float, Kind::Text, Kind::Bytes];
pub(super) const LOST_IN_COLUMNS: &str = "a whole number becomes a float in a column that has floats; null becomes a \
     field that is not there; times finer than a microsecond or before the year 1000, NaN, infinities, \
     -0.0, lists, maps, decimals and whole numbers beyond 64 bits are refused";
pub(super) const LOST_IN_DOCUMENTS: &str = "in MySQL the order of fields is the server's; times \
                                            become text; decimals become floats or whole numbers \
                                            of the same value; numbers with more digits, bytes, \
                                            NaN and infinities are refused";

impl MySql {
    pub(super) async fn description(&self) -> Result<Description> {
        let (facts, server) = (&self.table.facts, &self.pool.server);
        // Read again: somebody may have set them anew.
        let safety = Safety::ask(&self.pool).await?;
        let engine = super::table::engine_of(&self.pool, &self.table.name).await?;
        let engine = engine.map_or(facts.engine, |name| Engine::named(&name));
        let version = server.version.split('-').next().unwrap_or_default();
        let product = match server.maria {
            true => "MariaDB",
            false if server.comment.contains("Percona") => "Percona Server",
            false => "MySQL",
        };
        let set = safety.set(engine, facts.asked);
        let on = |on: bool| if on { "ON" } else { "OFF" };
        let settings = [
            ("engine", engine.name.to_owned()),
            ("innodb_flush_log_at_trx_commit", safety.flush_log.to_string()),
            ("log_bin", on(safety.binlog).into()),
            ("sync_binlog", safety.sync_binlog.to_string()),
            ("innodb_flush_method", safety.flush_method.clone()),
            ("innodb_doublewrite", safety.doublewrite.clone()),
            ("max_allowed_packet", server.packet.to_string()),
            ("local_infile", on(self.pool.takes_files()).into()),
            ("collation", server.collation.into()),
            ("version", server.version.clone()),
            ("version_comment", server.comment.clone()),
        ];
        Ok(Description {
            client: self.pool.client(),
            product: product.into(),
            version: version.into(),
            shape: facts.shape,
            format: None,
            asked: facts.asked,
            set,
            bound: safety.bound(engine).filter(|_| set == Some(Tier::T2)),
            limit: safety.limit(engine),
            settings: settings.map(|(name, value)| (name.into(), value)).to_vec(),
            disk: self.disk(engine).await?,
        })
    }

    /// Bytes on disk: of the table's file, where the server lets us see; else what it has counted
    /// of late.
    async fn disk(&self, engine: Engine) -> Result<Option<u64>> {
        let number = |rows: Vec<Cells>| {
            rows.into_iter().next().and_then(|row| row.get_opt::<Option<u64>, _>(0)?.ok()?)
        };
        if engine.word == "innodb" {
            let views = match self.pool.server.maria {
                true => "information_schema.innodb_sys_tablespaces",
                false => "information_schema.innodb_tablespaces",
            };
            let statement = format!(
                "SELECT CAST(file_size AS UNSIGNED) FROM {views} WHERE name = \
                 CONCAT(DATABASE(), '/', ?)"
            );
            // Without the right to see that, or with a name that files spell differently: below.
            let rows = self.pool.rows(&statement, vec![self.file_name()]).await;
            if let Some(bytes) = rows.ok().and_then(number) {
                return Ok(Some(bytes));
            }
        }
        let statement = "SELECT CAST(data_length + index_length AS UNSIGNED) FROM \
                         information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?";
        Ok(number(self.pool.rows(statement, vec![self.file_name()]).await?))
    }

    fn file_name(&self) -> Cell {
        self.table.name.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_what_the_settings_give() {
        let [innodb, myisam, aria] = ENGINES;
        let with = |more: &[(&'static str, &'static str)]| {
            let usual = [
                ("innodb_flush_log_at_trx_commit", "1"),
                ("log_bin", "OFF"),
                ("sync_binlog", "0"),
                ("innodb_flush_method", "O_DIRECT"),
                ("innodb_doublewrite", "ON"),
            ];
            let all: HashMap<_, _> = usual.iter().chain(more).copied().collect();
            Safety::of(|name| all.get(name).copied()).unwrap()
        };
        let safety = |flush_log, log_bin, sync_binlog| {
            with(&[
                ("innodb_flush_log_at_trx_commit", flush_log),
                ("log_bin", log_bin),
                ("sync_binlog", sync_binlog),
            ])
        };
        let nosync = || with(&[("innodb_flush_method", "nosync")]);
        let torn = || with(&[("innodb_doublewrite", "OFF")]);
        for (safety, engine, asked, set) in [
            (safety("1", "OFF", "0"), innodb, None, Some(Tier::T3)),
            (safety("1", "OFF", "0"), innodb, Some(Tier::T1), Some(Tier::T3)),
            (safety("1", "ON", "1"), innodb, Some(Tier::T3), Some(Tier::T3)),
            (safety("1", "ON", "0"), innodb, None, Some(Tier::T2)),
            (safety("2", "OFF", "0"), innodb, None, Some(Tier::T2)),
            (safety("2", "OFF", "0"), innodb, Some(Tier::T1), Some(Tier::T1)),
            (safety("0", "OFF", "0"), innodb, Some(Tier::T2), Some(Tier::T2)),
            (safety("1", "OFF", "0"), myisam, None, Some(Tier::T1)),
            (safety("1", "OFF", "0"), aria, Some(Tier::T1), Some(Tier::T1)),
            (nosync(), innodb, None, Some(Tier::T1)),
            (torn(), innodb, None, Some(Tier::T1)),
            (torn(), myisam, None, Some(Tier::T1)),
        ] {
            safety.keeps(engine, asked).unwrap();
            assert_eq!(safety.set(engine, asked), set, "{safety:?} {engine:?} {asked:?}");
        }
        for (safety, engine, asked, want) in [
            (safety("2", "OFF", "0"), innodb, Tier::T3, "commit=2) cannot promise durability t3"),
            (safety("1", "ON", "0"), innodb, Tier::T3, "sync_binlog=0"),
            (safety("0", "OFF", "0"), innodb, Tier::T1, "it can: t2"),
            (safety("1", "OFF", "0"), myisam, Tier::T3, "engine MyISAM cannot"),
            (safety("1", "OFF", "0"), myisam, Tier::T2, "engine MyISAM cannot"),
            (safety("1", "OFF", "0"), innodb, Tier::T0, "it can: t3"),
            (nosync(), innodb, Tier::T3, "innodb_flush_method=nosync) cannot"),
            (torn(), innodb, Tier::T2, "innodb_doublewrite=OFF"),
        ] {
            let error = safety.keeps(engine, Some(asked)).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
