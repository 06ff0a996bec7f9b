//! HTTP: which routes there are, what every request goes through, and connections.

mod call;
mod log;
mod openapi;
mod operators;
mod patient;
mod pipeline;
mod route;
mod serving;
mod socket;
#[cfg(feature = "tls")]
mod tls;

pub(crate) use call::{Call, Memory, parameters, whole};
pub(crate) use log::RequestId;
pub(crate) use openapi::description;
pub(crate) use operators::operators;
pub(crate) use pipeline::{Served, let_in, router};
pub(crate) use route::{Answer, Manner, Open, Param, Route, Seen, Sent, Visit};
pub(crate) use serving::serve;
pub(crate) use socket::Reached;
pub use socket::Socket;
#[cfg(feature = "tls")]
pub use tls::Certificates;
