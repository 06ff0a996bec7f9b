//! Engines of tables, what they promise, and what the server says of itself.

use mysql_async::{Row as Cells, Value as Cell};

use super::{MySql, pool::Pool, write::FREE};
use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    record::Kind,
    store::{Abilities, Description, Need, Shape, json},
};

/// An engine that tables are made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engine {
    /// As SQL knows it.
    pub name: &'static str,
    /// As URLs have it.
    pub word: &'static str,
    /// Statements are done as a whole or not at all.
    pub atomic: bool,
    /// How many characters of utf8mb4 an index takes: 3072, 2000, 1000 bytes. Keys of as many bytes
    /// always fit.
    pub max_key: usize,
}

pub const ENGINES: [Engine; 3] = [
    Engine { name: "InnoDB", word: "innodb", atomic: true, max_key: 768 },
    Engine { name: "MyISAM", word: "myisam", atomic: false, max_key: 250 },
    Engine { name: "Aria", word: "aria", atomic: false, max_key: 250 },
];

/// An engine of a table that was not made here.
const OTHER: Engine = Engine { name: "unknown here", word: "", atomic: false, max_key: 250 };

impl Engine {
    /// The one of this name, be it of SQL or of a URL.
    pub fn named(name: &str) -> Engine {
        let found = ENGINES.into_iter().find(|engine| engine.name.eq_ignore_ascii_case(name));
        found.unwrap_or(OTHER)
    }
}

/// The server's settings that decide what survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Safety {
    /// `innodb_flush_log_at_trx_commit`: 1 syncs at each commit, 2 writes at each and syncs every
    /// second, 0 does both every second only.
    pub flush_log: i64,
    /// `log_bin`: there is a log for replicas, without which recovery undoes what is not in it.
    pub binlog: bool,
    /// `sync_binlog`: 1 syncs that log at each commit.
    pub sync_binlog: i64,
}

impl Safety {
    pub async fn ask(pool: &Pool) -> Result<Safety> {
        let statement = "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog";
        let row = pool.rows(statement, Vec::new()).await?.into_iter().next();
        let row = row.map(mysql_async::from_row_opt::<(i64, i64, i64)>);
        let Some(Ok((flush_log, binlog, sync_binlog))) = row else {
            return Err(Error::unsupported("a server that does not say how it keeps its logs"));
        };
        Ok(Safety { flush_log, binlog: binlog != 0, sync_binlog })
    }

    /// What tables of an engine can promise, the most first.
    fn promises(self, engine: Engine) -> &'static [Tier] {
        match (engine.word, self.flush_log) {
            ("innodb", 1) if !self.binlog || self.sync_binlog == 1 => {
                &[Tier::T3, Tier::T2, Tier::T1]
            }
            ("innodb", 0) => &[Tier::T2],
            ("innodb", _) => &[Tier::T2, Tier::T1],
            // T2 by writing all out after each batch.
            ("myisam", _) => &[Tier::T2, Tier::T1],
            ("aria", _) => &[Tier::T1],
            _ => &[],
        }
    }

    /// What is set, when this was asked.
    pub fn set(self, engine: Engine, asked: Option<Tier>) -> Option<Tier> {
        let promises = self.promises(engine);
        match (engine.word, self.flush_log, asked) {
            ("myisam", _, None) => Some(Tier::T1),
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
    pub fn keeps(self, engine: Engine, asked: Option<Tier>) -> Result<()> {
        let promises = self.promises(engine);
        let Some(tier) = asked.filter(|tier| !promises.contains(tier)) else { return Ok(()) };
        let Safety { flush_log, binlog, sync_binlog } = self;
        let set = match (engine.word, binlog) {
            ("innodb", true) => format!(
                "InnoDB here (innodb_flush_log_at_trx_commit={flush_log}, \
                 sync_binlog={sync_binlog})"
            ),
            ("innodb", false) => {
                format!("InnoDB here (innodb_flush_log_at_trx_commit={flush_log})")
            }
            _ => format!("engine {}", engine.name),
        };
        Err(tier.refused(&set, promises))
    }
}

/// What is known of a table before it is looked at.
#[derive(Debug, Clone)]
pub struct Facts {
    pub shape: Shape,
    pub abilities: Abilities,
    pub engine: Engine,
    /// The URL names the engine.
    named: bool,
    pub safety: Safety,
    pub asked: Option<Tier>,
    /// All is written out after each batch.
    pub flush: bool,
    /// How deep documents may nest, themselves counted.
    pub levels: usize,
}

impl Facts {
    pub fn new(
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
            _ if maria => (json::KEEPS, json::LOSES, &[]),
            _ => (json::KEEPS, LOST_IN_MYSQL, &[]),
        };
        let abilities = Abilities {
            driver: "mysql",
            keeps,
            loses,
            cannot,
            joins: true,
            atomic: engine.atomic,
            ordered: true,
            max_key: engine.max_key,
            max_record: pool.server.packet.saturating_sub(FREE + 4 * engine.max_key),
        };
        Ok(Facts {
            shape,
            abilities,
            engine,
            named,
            safety,
            asked,
            flush: engine.word == "myisam" && asked == Some(Tier::T2),
            levels: if maria { 31 } else { 100 },
        })
    }

    /// The same for another table.
    pub fn sibling(&self, pool: &Pool) -> Result<Facts> {
        let engine = Some(self.engine).filter(|_| self.named);
        Facts::new(self.shape, engine, pool, self.safety, self.asked)
    }

    /// The same for a table that is there, and has an engine.
    pub fn of(mut self, table: &str, engine: &str) -> Result<Facts> {
        self.expects(table, engine)?;
        self.engine = Engine::named(engine);
        self.abilities.atomic = self.engine.atomic;
        self.flush = self.engine.word == "myisam" && self.asked == Some(Tier::T2);
        Ok(self)
    }

    /// A table that is there has this engine.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where the URL names another,
    /// [`Unsupported`](ErrorKind::Unsupported) where it cannot promise what is asked.
    pub fn expects(&self, table: &str, engine: &str) -> Result<()> {
        let found = Engine::named(engine);
        if self.named && found != self.engine {
            let what =
                format!("table {table:?} is there with engine {engine}, not {}", self.engine.name);
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        self.safety.keeps(found, self.asked)
    }
}

// Some times are refused, see `values.rs`.
const COLUMNS: &[Kind] = &[Kind::Bool, Kind::Int, Kind::Float, Kind::Text, Kind::Bytes];
const LOST_IN_COLUMNS: &str = "null becomes a field that is not there; decimals and whole numbers \
     beyond 64 bits become text; times finer than a microsecond or before the year 1000, NaN, \
     infinities, -0.0, lists and maps are refused";
const LOST_IN_MYSQL: &str = "the order of fields is the server's; times, decimals and whole \
     numbers beyond 64 bits become text; bytes, NaN and infinities are refused";

impl MySql {
    pub async fn description(&self) -> Result<Description> {
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
        let on = |on: bool| if on { "ON" } else { "OFF" };
        let settings = [
            ("engine", engine.name.to_owned()),
            ("innodb_flush_log_at_trx_commit", safety.flush_log.to_string()),
            ("log_bin", on(safety.binlog).into()),
            ("sync_binlog", safety.sync_binlog.to_string()),
            ("max_allowed_packet", server.packet.to_string()),
            ("local_infile", on(self.pool.takes_files()).into()),
            ("collation", server.collation.into()),
            ("version", server.version.clone()),
            ("version_comment", server.comment.clone()),
        ];
        Ok(Description {
            product: product.into(),
            version: version.into(),
            shape: facts.shape,
            format: None,
            asked: facts.asked,
            set: safety.set(engine, facts.asked),
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
        let safety = |flush_log, binlog, sync_binlog| Safety { flush_log, binlog, sync_binlog };
        for (safety, engine, asked, set) in [
            (safety(1, false, 0), innodb, None, Some(Tier::T3)),
            (safety(1, false, 0), innodb, Some(Tier::T1), Some(Tier::T3)),
            (safety(1, true, 1), innodb, Some(Tier::T3), Some(Tier::T3)),
            (safety(1, true, 0), innodb, None, Some(Tier::T2)),
            (safety(2, false, 0), innodb, None, Some(Tier::T2)),
            (safety(2, false, 0), innodb, Some(Tier::T1), Some(Tier::T1)),
            (safety(0, false, 0), innodb, Some(Tier::T2), Some(Tier::T2)),
            (safety(1, false, 0), myisam, None, Some(Tier::T1)),
            (safety(1, false, 0), myisam, Some(Tier::T2), Some(Tier::T2)),
            (safety(1, false, 0), aria, Some(Tier::T1), Some(Tier::T1)),
        ] {
            safety.keeps(engine, asked).unwrap();
            assert_eq!(safety.set(engine, asked), set, "{safety:?} {engine:?} {asked:?}");
        }
        for (safety, engine, asked, want) in [
            (safety(2, false, 0), innodb, Tier::T3, "commit=2) cannot promise durability t3"),
            (safety(1, true, 0), innodb, Tier::T3, "sync_binlog=0"),
            (safety(0, false, 0), innodb, Tier::T1, "it can: t2"),
            (safety(1, false, 0), myisam, Tier::T3, "engine MyISAM cannot"),
            (safety(1, false, 0), innodb, Tier::T0, "it can: t3"),
        ] {
            let error = safety.keeps(engine, Some(asked)).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
