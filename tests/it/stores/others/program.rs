//! The programs that make tables: the databases themselves, asked without the driver.

use mysql_async::prelude::Queryable;
use steelyard::store::Url;
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::stores::places::{Fault, Outcome, Subject};

pub enum Program {
    Sqlite(TempDir),
    Postgres(String),
    Mysql(String),
}

impl Program {
    /// The program whose tables the subject's driver reads; none for stores that have no tables of columns.
    pub fn beside(subject: &Subject) -> Option<Program> {
        let url = || subject.server().expect("it has a server").to_owned();
        Some(match subject.driver() {
            "sqlite" => Program::Sqlite(tempfile::tempdir().expect("a folder")),
            "postgres" => Program::Postgres(url()),
            "mysql" => Program::Mysql(url()),
            _ => return None,
        })
    }

    /// Where steelyard finds the same tables.
    pub fn url(&self) -> String {
        match self {
            // Without syncs, of which each write would have one.
            Program::Sqlite(folder) => {
                format!("sqlite:{}?durability=t1", folder.path().join("db").display())
            }
            Program::Postgres(url) | Program::Mysql(url) => url.clone(),
        }
    }

    /// Runs what all tables of a program need, once for all tests.
    pub async fn once(&self, statements: &'static str) -> Outcome {
        static DONE: Mutex<Vec<&str>> = Mutex::const_new(Vec::new());
        let mut done = DONE.lock().await;
        if !statements.is_empty() && !done.contains(&statements) {
            self.run(statements).await?;
            done.push(statements);
        }
        Ok(())
    }

    /// Runs statements.
    pub async fn run(&self, statements: &str) -> Outcome {
        let fault = |e: &dyn std::fmt::Display| Fault::new(format_args!("{statements}: {e}"));
        match self {
            Program::Sqlite(folder) => {
                let open = rusqlite::Connection::open(folder.path().join("db"));
                open.and_then(|c| c.execute_batch(statements)).map_err(|e| fault(&e))
            }
            Program::Postgres(url) => {
                let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
                let (client, connection) = connected.map_err(|e| fault(&e))?;
                let connection = tokio::spawn(connection);
                let done = client.batch_execute(statements).await;
                drop(client);
                let _ = connection.await;
                done.map_err(|e| fault(&e.as_db_error().map_or(e.to_string(), |e| e.to_string())))
            }
            Program::Mysql(url) => {
                let url = Url::parse(url)?;
                let (host, port) = url.one_host(3306)?;
                let options = mysql_async::OptsBuilder::default()
                    .ip_or_hostname(host)
                    .tcp_port(port)
                    .prefer_socket(false)
                    .user(url.user.clone())
                    .pass(url.password.as_ref().map(|password| password.reveal().to_owned()))
                    .db_name(Some(url.path.trim_matches('/')));
                let mut connection =
                    mysql_async::Conn::new(options).await.map_err(|e| fault(&e))?;
                let done = connection.query_drop(statements).await;
                let _ = connection.disconnect().await;
                done.map_err(|e| fault(&e))
            }
        }
    }
}
