//! What a route is. From the table of them come the router, the description of the API, and the tests that try each with
//! another tenant's key.

use std::sync::Arc;

use axum::{
    extract::Request,
    http::{HeaderMap, Method},
    response::Response,
};
use futures_util::future::BoxFuture;

use super::{Call, Reached};
use crate::{gateway::Gateway, limits::Shares, problem::Problem, tenants::Access};

/// How those who ask say who they are, and how they are told what went wrong.
pub(crate) struct Manner {
    /// Whether the request is answered at all.
    pub first: fn(&Gateway, &HeaderMap, Reached) -> Result<(), Problem>,
    /// The text of the key.
    pub key: fn(&Gateway, &Request) -> Result<String, Problem>,
    pub told: fn(Problem, &Seen) -> Response,
    /// What every answer gets.
    pub last: fn(&mut Response),
}

/// What is known of a request by the time it is logged.
#[derive(Default)]
pub(crate) struct Seen {
    pub tenant: String,
    pub key: String,
    /// The name of the cookie that a session would have.
    pub cookie: String,
    /// What its tenant and key share; none where no key was let in.
    pub shares: Option<Shares>,
    /// It came by a link, and not by a session.
    pub linked: bool,
}

/// What is served to anyone.
pub(crate) struct Open {
    pub method: Method,
    pub path: &'static str,
    /// The name of the operation, which no other has.
    pub name: &'static str,
    pub call: for<'v> fn(Visit<'v>) -> BoxFuture<'v, Result<Response, Problem>>,
}

/// A request of anyone.
pub(crate) struct Visit<'v> {
    pub gateway: &'v Arc<Gateway>,
    pub reached: Reached,
    pub request: Request,
    pub seen: &'v mut Seen,
}

/// An operation that tenants can ask for.
pub(crate) struct Route {
    pub method: Method,
    /// Parts in braces are parameters. One may be followed by `:verb`.
    pub path: &'static str,
    /// The name of the operation, which no other has.
    pub name: &'static str,
    pub about: &'static str,
    pub access: Access,
    /// Query parameters and headers. Those of the path follow from it.
    pub params: &'static [Param],
    pub sent: Option<Sent>,
    pub answers: &'static [Answer],
    pub call: fn(Call) -> BoxFuture<'static, Result<Response, Problem>>,
}

/// A parameter.
pub(crate) struct Param {
    pub name: &'static str,
    /// `query` or `header`.
    pub place: &'static str,
    /// A type of JSON Schema.
    pub kind: &'static str,
    /// What a text has to fit, as a regular expression of JSON Schema.
    pub pattern: Option<&'static str>,
    pub about: &'static str,
}

/// The body of a request.
pub(crate) struct Sent {
    pub media: &'static [&'static str],
    /// A schema of the description.
    pub schema: &'static str,
    /// Nothing is something: no lines.
    pub may_be_empty: bool,
}

/// An answer of a route.
pub(crate) struct Answer {
    pub status: u16,
    pub about: &'static str,
    pub media: &'static [&'static str],
    /// A schema of the description; none where there is no body.
    pub schema: Option<&'static str>,
}

impl Route {
    /// The path as the router has it, and the verb behind a colon, if there is one.
    pub(crate) fn split(&self) -> (&'static str, Option<&'static str>) {
        match self.path.rsplit_once("}:") {
            Some((head, verb)) => (&self.path[..=head.len()], Some(verb)),
            None => (self.path, None),
        }
    }

    /// The names of the parameters in the path.
    pub(crate) fn in_path(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name))
    }
}
