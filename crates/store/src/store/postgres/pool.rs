//! The connections to one database, at most `?pool` of them: connections of our own, or those of the crates
//! (`?client=crate`), never both.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio_postgres::{Config, types::Type};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    client::{ALL, OwnClient, Session},
    crated::{Crated, Crates},
    error::code,
    rows::{Cells, Held},
    setting::Setting,
    wire::Bound,
};
use crate::{
    Error, Result,
    store::{
        Client,
        limits::{Limits, late, within},
        net::Address,
    },
};

/// Connections to one database, and what they are set to where they are used. Several may have the same connections.
pub(super) struct Pool {
    of: Of,
    setting: Arc<Setting>,
}

enum Of {
    Own(Arc<OwnClient>),
    Crate(Box<Crates>),
}

/// How connections are made.
pub(super) struct Connect {
    pub config: Config,
    pub address: Address,
    pub tls: Option<MakeRustlsConnect>,
    /// Statements that each connection begins with.
    pub set_up: String,
    pub limits: Limits,
}

impl Pool {
    /// Connections of this client. None is made yet.
    pub(super) fn new(client: Client, connect: Connect, setting: Setting) -> Pool {
        let of = match client {
            Client::Own => Of::Own(Arc::new(OwnClient::new(connect))),
            Client::Crate(_) => {
                let set_up = connect.set_up + &setting.text;
                Of::Crate(Box::new(Crates::new(Connect { set_up, ..connect })))
            }
        };
        Pool { of, setting: Arc::new(setting) }
    }

    /// The same connections, set to something else where they are used; none where they cannot be, as the crates'.
    pub(super) fn set_to(&self, mut setting: Setting) -> Option<Pool> {
        let Of::Own(own) = &self.of else { return None };
        setting.share = Some(own.share());
        Some(Pool { of: Of::Own(own.clone()), setting: Arc::new(setting) })
    }

    /// Whose connections these are.
    pub(super) fn client(&self) -> Client {
        match self.of {
            Of::Own(_) => Client::Own,
            Of::Crate(_) => super::CRATE,
        }
    }

    /// A connection, for several statements.
    ///
    /// # Errors
    /// [`Timeout`](crate::ErrorKind::Timeout) where none is free in time, or none can be made in time;
    /// of the connection.
    pub(super) async fn get(&self) -> Result<Connection<'_>> {
        match &self.of {
            Of::Own(direct) => direct.session(&self.setting).await.map(Connection::Own),
            Of::Crate(crates) => crates.get().await.map(Connection::Crate),
        }
    }

    /// Does a statement by the shortest way, and shows `row` each row it gives.
    ///
    /// # Errors
    /// Of the connection and the server, and those of `row`.
    pub(super) async fn rows(
        &self,
        text: &str,
        values: &[(Type, Bound)],
        mut row: impl FnMut(&dyn Cells) -> Result<()>,
    ) -> Result<()> {
        match &self.of {
            Of::Own(direct) => {
                direct.run(&self.setting, ALL, "a query", text, values, row).await.map(drop)
            }
            Of::Crate(_) => {
                let rows = async { self.crated().await?.query(text, values).await };
                self.settle(rows.boxed().await)?.iter().try_for_each(|found| row(found))
            }
        }
    }

    /// The first rows of a statement, at most so many (not 0), as [`Pool::rows`]. The crate has no word for
    /// that outside of a transaction, so there it is a `LIMIT`.
    ///
    /// # Errors
    /// As [`Pool::rows`].
    pub(super) async fn first_rows(
        &self,
        most: u32,
        text: &str,
        values: &[(Type, Bound)],
        row: impl FnMut(&dyn Cells) -> Result<()>,
    ) -> Result<()> {
        match &self.of {
            Of::Own(direct) => {
                direct.run(&self.setting, most, "a query", text, values, row).await.map(drop)
            }
            Of::Crate(_) => {
                let text = format!("SELECT * FROM ({text}) AS found LIMIT {most}");
                self.rows(&text, values, row).await
            }
        }
    }

    /// Does a statement by the shortest way, and answers how many rows it touched.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub(super) async fn execute(&self, text: &str, values: &[(Type, Bound)]) -> Result<u64> {
        match &self.of {
            Of::Own(direct) => {
                direct.run(&self.setting, ALL, "a statement", text, values, |_| Ok(())).await
            }
            Of::Crate(_) => {
                let done = async { self.crated().await?.execute(text, values).await };
                self.settle(done.boxed().await)
            }
        }
    }

    /// Waits for several statements of one operation, but not longer than it may take.
    ///
    /// # Errors
    /// Its own; [`Timeout`](crate::ErrorKind::Timeout) where it takes too long.
    pub(super) async fn within<T>(
        &self,
        what: &str,
        done: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        within(self.limit(), what, done).await.map_err(|e| match e.is_outage() {
            true => e.in_place(self.place()),
            false => e,
        })
    }

    /// The error of an answer, which names the server.
    pub(super) fn placed(&self, e: Error) -> Error {
        e.in_place(self.place())
    }

    /// The same for who waits in the thread, where no clock breaks in: between statements.
    ///
    /// # Errors
    /// [`Timeout`](crate::ErrorKind::Timeout) where what has begun then takes too long.
    pub(super) fn in_time(&self, what: &str, begun: Instant) -> Result<()> {
        match begun.elapsed() < self.limit() {
            true => Ok(()),
            false => Err(late(what, self.limit()).in_place(self.place())),
        }
    }

    fn limit(&self) -> Duration {
        self.connect().limits.operation
    }

    /// What errors call the server.
    fn place(&self) -> String {
        self.connect().address.to_string()
    }

    fn connect(&self) -> &Connect {
        match &self.of {
            Of::Own(direct) => &direct.connect,
            Of::Crate(crates) => &crates.connect,
        }
    }

    async fn crated(&self) -> Result<Crated<'_>> {
        match self.get().await? {
            Connection::Crate(connection) => Ok(connection),
            Connection::Own(_) => unreachable!("connections are of one kind"),
        }
    }

    /// After trouble with one connection, none that is idle is trusted.
    fn settle<T>(&self, done: Result<T>) -> Result<T> {
        if let (Err(e), Of::Crate(crates)) = (&done, &self.of)
            && e.is_outage()
            && code(e).is_none()
        {
            crates.forget();
        }
        done
    }

    /// Tables are no longer what they were: statements are prepared anew.
    pub(super) fn forget(&self) {
        match &self.of {
            Of::Own(_) => self.setting.forget(),
            Of::Crate(crates) => crates.forget(),
        }
    }
}

/// A connection, which goes back to its pool unless something on it was not ended.
// Not boxed: one is made for each operation.
#[allow(clippy::large_enum_variant)]
pub(super) enum Connection<'p> {
    Own(Session<'p>),
    Crate(Crated<'p>),
}

impl Connection<'_> {
    /// From here on it is not to be used again, until [`end`](Connection::end): a transaction ends
    /// with its connection.
    pub(super) fn begin(&mut self) {
        match self {
            Connection::Own(session) => session.begin(),
            Connection::Crate(connection) => connection.begin(),
        }
    }

    /// It is in good order again.
    pub(super) fn end(&mut self) {
        match self {
            Connection::Own(session) => session.end(),
            Connection::Crate(connection) => connection.end(),
        }
    }

    /// The rows a statement gives.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub(super) async fn query(
        &mut self,
        text: &str,
        values: &[(Type, Bound)],
    ) -> Result<Vec<Held>> {
        match self {
            Connection::Own(session) => {
                let mut rows = Vec::new();
                let row = |row: &dyn Cells| {
                    rows.push(Held::of(row)?);
                    Ok(())
                };
                session.run("a query", text, values, row).await?;
                Ok(rows)
            }
            Connection::Crate(connection) => {
                connection.query(text, values).await?.iter().map(|row| Held::of(row)).collect()
            }
        }
    }

    /// Does what a statement says, and answers how many rows it touched.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub(super) async fn execute(&mut self, text: &str, values: &[(Type, Bound)]) -> Result<u64> {
        match self {
            Connection::Own(session) => session.run("a statement", text, values, |_| Ok(())).await,
            Connection::Crate(connection) => connection.execute(text, values).await,
        }
    }

    /// Does statements without values, together or not at all.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub(super) async fn batch(&mut self, text: &str) -> Result<()> {
        match self {
            Connection::Own(session) => session.batch(text).await,
            Connection::Crate(connection) => connection.batch(text).await,
        }
    }

    /// Sends the bytes of a `COPY`, and says how many rows those were.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub(super) async fn copy_in(&mut self, copy: &str, bytes: Vec<u8>) -> Result<u64> {
        match self {
            Connection::Own(session) => session.copy_in(copy, &bytes).await,
            Connection::Crate(connection) => connection.copy_in(copy, bytes).await,
        }
    }
}
