//! How an exchange with a server fails, and the error the caller gets.

use std::{io, time::Duration};

use crate::{Error, ErrorKind, cluster::Node};

/// What went wrong on a connection.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It could not be made.
    Connect(io::Error),
    /// The other side closed it, or the system did.
    Closed(io::Error),
    /// The time is over.
    Late(Duration),
    /// All connections, so many, are in use, and none became free in time.
    Busy(Duration, usize),
    /// What came is no answer.
    Stream(Error),
}

impl Failure {
    /// Whether it says that the server is not there.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self, Failure::Connect(_) | Failure::Late(_))
    }

    /// What an error of the system means on a connection that is open.
    pub(crate) fn of_open(error: io::Error) -> Failure {
        Failure::Closed(error)
    }

    /// The other side has closed the connection.
    pub(crate) fn closed() -> Failure {
        let what = "the server closed the connection";
        Failure::Closed(io::Error::new(io::ErrorKind::UnexpectedEof, what))
    }

    /// The error to tell. It can be told to many.
    pub(crate) fn error(&self, node: &Node) -> Error {
        let again = |e: &io::Error| match e.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(e.kind(), e.to_string()),
        };
        let error = match self {
            Failure::Connect(e) if e.kind() == io::ErrorKind::TimedOut => {
                Error::cannot_connect(ErrorKind::Timeout, e).with_source(again(e))
            }
            Failure::Connect(e) => {
                Error::cannot_connect(ErrorKind::Unavailable, e).with_source(again(e))
            }
            Failure::Closed(e) => {
                Error::unavailable(format!("the connection broke: {e}")).with_source(again(e))
            }
            Failure::Late(limit) => {
                Error::timeout(format!("no answer within {} s", limit.as_secs_f64()))
            }
            Failure::Busy(limit, pool) => Error::timeout(format!(
                "no free connection within {} s (pool={pool})",
                limit.as_secs_f64()
            )),
            Failure::Stream(e) => Error::new(
                match e.kind() {
                    ErrorKind::TooLarge => ErrorKind::TooLarge,
                    _ => ErrorKind::Malformed,
                },
                e.context(),
            ),
        };
        error.in_place(node.name.clone())
    }
}
