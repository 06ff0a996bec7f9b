//! A connection for several statements, of either client: transactions, files, what cannot be
//! prepared.

use futures_util::{FutureExt, StreamExt, stream};
use mysql_async::{Conn, Row, Value, prelude::Queryable};

use super::{
    client::{Done, OwnClient, Prepared},
    pool::{code, error},
};
use crate::{
    Error, Result,
    store::{
        net::{Connection, Lease},
        pool::Turn,
    },
};

/// A connection on loan. It must be given back by [`done`](Session::done) or
/// [`settle`](Session::settle); any other way it is closed.
pub(super) enum Session<'p> {
    Own(Own<'p>),
    Crate(Crated<'p>),
}

impl<'p> Session<'p> {
    /// Does a statement with bound values, and says how many rows it touched.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn exec(&mut self, statement: &str, values: Vec<Value>) -> Result<u64> {
        match self {
            Session::Own(own) => Ok(own.exec(statement, &values).await?.touched),
            Session::Crate(lent) => {
                let connection = lent.connection();
                connection.exec_drop(statement, super::pool::bound(values)).await.map_err(error)?;
                Ok(connection.affected_rows())
            }
        }
    }

    /// Does a statement with bound values, and reads its rows, each value as what it is.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn rows(&mut self, statement: &str, values: Vec<Value>) -> Result<Vec<Row>> {
        match self {
            Session::Own(own) => Ok(own.exec(statement, &values).await?.rows),
            Session::Crate(lent) => {
                let values = super::pool::bound(values);
                lent.connection().exec(statement, values).await.map_err(error)
            }
        }
    }

    /// Does a statement as text, and reads its rows.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn query(&mut self, text: &str) -> Result<Vec<Row>> {
        match self {
            Session::Own(own) => Ok(own.query(text).await?.rows),
            Session::Crate(lent) => lent.connection().query(text).await.map_err(error),
        }
    }

    /// Does a `LOAD DATA LOCAL` whose file is these bytes, and says how many rows are kept, and of how
    /// many warnings.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn load(&mut self, text: &str, file: Vec<Vec<u8>>) -> Result<(u64, u16)> {
        match self {
            Session::Own(own) => {
                let done = own.load(text, &file).await?;
                Ok((done.touched, done.warnings))
            }
            Session::Crate(lent) => {
                let connection = lent.connection();
                connection.set_infile_handler(async move {
                    Ok(stream::iter(file).map(|packet| Ok(packet.into())).boxed())
                });
                connection.query_drop(text).await.map_err(error)?;
                Ok((connection.affected_rows(), connection.get_warnings()))
            }
        }
    }

    /// Gives the connection back, to be used again.
    pub(super) fn done(self) {
        match self {
            Session::Own(mut own) => {
                if let Some(lease) = own.lease.take() {
                    lease.give_back();
                }
            }
            Session::Crate(mut lent) => drop(lent.connection.take()),
        }
    }

    /// Gives the connection back, unless what was done with it says that it is of no use any more.
    ///
    /// # Errors
    /// What was done.
    pub(super) fn settle<T>(self, done: Result<T>) -> Result<T> {
        if done.as_ref().err().is_none_or(is_of_server) {
            self.done();
        }
        done
    }
}

/// Whether an error is the server's answer, after which the connection is in good order.
pub(super) fn is_of_server(e: &Error) -> bool {
    // What is prepared is so no longer, or the server hangs up.
    const LAST: [u16; 3] = [1153, 1243, 1615];
    code(e).is_some_and(|code| !LAST.contains(&code))
}

/// One of our own; closed where it is dropped.
pub(super) struct Own<'p> {
    client: &'p OwnClient,
    lease: Option<Lease<'p, Prepared>>,
}

impl<'p> Own<'p> {
    pub(super) fn new(client: &'p OwnClient, lease: Lease<'p, Prepared>) -> Own<'p> {
        Own { client, lease: Some(lease) }
    }

    fn connection(&mut self) -> (&mut Connection, &mut Prepared) {
        let (connection, prepared) =
            &mut ***self.lease.as_mut().expect("there until it is given back");
        (connection, prepared)
    }

    async fn exec(&mut self, statement: &str, values: &[Value]) -> Result<Done> {
        let client = self.client;
        let (connection, prepared) = self.connection();
        client.say(connection, prepared, "a statement", statement, values).await
    }

    async fn query(&mut self, text: &str) -> Result<Done> {
        let client = self.client;
        client.ask(self.connection().0, text).await
    }

    async fn load(&mut self, text: &str, file: &[Vec<u8>]) -> Result<Done> {
        let client = self.client;
        client.load(self.connection().0, text, file).await
    }
}

/// One of the crate's.
pub(super) struct Crated<'p> {
    connection: Option<Conn>,
    _turn: Turn<'p>,
}

impl<'p> Crated<'p> {
    pub(super) fn new(connection: Conn, turn: Turn<'p>) -> Crated<'p> {
        Crated { connection: Some(connection), _turn: turn }
    }

    pub(super) fn connection(&mut self) -> &mut Conn {
        self.connection.as_mut().expect("there until it is given back")
    }
}

impl Drop for Crated<'_> {
    /// What was left in the middle of something must not be used again, and nobody may wait for the
    /// server to answer: beginning to disconnect is enough to make the pool forget the connection.
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            let _ = connection.disconnect().now_or_never();
        }
    }
}
