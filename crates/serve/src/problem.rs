//! Errors as RFC 9457 problem details: `application/problem+json`.

use std::{borrow::Cow, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;
use steelyard_base::{Error, ErrorKind};

/// Why a request was not done.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: &'static Kind,
    detail: Cow<'static, str>,
    retry: Option<Duration>,
    /// Methods that the path has.
    pub allow: Option<String>,
    /// How long the answer is held back: whoever is refused all the time asks less often so.
    pub hold: Duration,
    /// What an operator is told, and a client is not.
    pub cause: Option<String>,
}

/// A kind of problem: its name in `type`, its status, its title.
type Kind = (&'static str, StatusCode, &'static str);

macro_rules! kinds {
    ($($function:ident $name:literal $status:ident $title:literal;)+) => {
        impl Problem {
            $(pub(crate) fn $function(detail: impl Into<Cow<'static, str>>) -> Problem {
                const KIND: Kind = ($name, StatusCode::$status, $title);
                Problem::new(&KIND, detail)
            })+

            /// Name, status and title of every kind, for the description of the API.
            pub(crate) const KINDS: &[Kind] = &[$(($name, StatusCode::$status, $title)),+];
        }
    };
}

kinds! {
    invalid "invalid" BAD_REQUEST "The request is not valid";
    unauthorized "unauthorized" UNAUTHORIZED "No valid key";
    forbidden "forbidden" FORBIDDEN "Not allowed";
    not_found "not-found" NOT_FOUND "Not found";
    no_method "method-not-allowed" METHOD_NOT_ALLOWED "This path has no such method";
    not_acceptable "not-acceptable" NOT_ACCEPTABLE "Not available in the formats accepted";
    conflict "conflict" CONFLICT "In conflict with what is there";
    changed "changed" PRECONDITION_FAILED "The document is not as expected";
    too_large "too-large" PAYLOAD_TOO_LARGE "Too large";
    media_type "media-type" UNSUPPORTED_MEDIA_TYPE "Unknown media type";
    unprocessable "unprocessable" UNPROCESSABLE_ENTITY "This cannot be done as asked";
    too_many "too-many-requests" TOO_MANY_REQUESTS "Too many requests";
    quota "quota" INSUFFICIENT_STORAGE "Over the quota of this tenant";
    full "full" INSUFFICIENT_STORAGE "No room left";
    internal "internal" INTERNAL_SERVER_ERROR "A failure of the gateway";
    unsupported "unsupported" NOT_IMPLEMENTED "This store cannot do that";
    unavailable "unavailable" SERVICE_UNAVAILABLE "Not available at the moment";
    timeout "timeout" GATEWAY_TIMEOUT "No answer within the time limit";
}

impl Problem {
    fn new(kind: &'static Kind, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem {
            kind,
            detail: detail.into(),
            retry: None,
            allow: None,
            hold: Duration::ZERO,
            cause: None,
        }
    }

    /// With the time after which trying again makes sense.
    pub(crate) fn retry(mut self, after: Duration) -> Problem {
        self.retry = Some(after);
        self
    }

    /// With the methods that the path has.
    pub(crate) fn allowing(mut self, methods: String) -> Problem {
        self.allow = Some(methods);
        self
    }

    /// To be answered only after this time.
    pub(crate) fn held(mut self, back: Duration) -> Problem {
        self.hold = back;
        self
    }

    /// With what went wrong behind it, for the log.
    pub(crate) fn because(mut self, error: &Error) -> Problem {
        self.cause = Some(error.chain());
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.kind.1
    }

    /// The name in its `type`.
    pub(crate) fn name(&self) -> &'static str {
        self.kind.0
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// As the body of an answer, or as a part of one.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let (name, status, title) = *self.kind;
        json!({
            "type": format!("urn:steelyard:problem:{name}"),
            "title": title,
            "status": status.as_u16(),
            "detail": &*self.detail,
        })
    }
}

/// Of a store. What only an operator can mend, and what may name hosts and files, goes to the log alone.
impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let told =
            |make: fn(Cow<'static, str>) -> Problem| make(for_clients(&error.reason()).into());
        match error.kind() {
            ErrorKind::Invalid | ErrorKind::Malformed => told(Problem::invalid),
            ErrorKind::Unsupported => told(Problem::unsupported),
            ErrorKind::TooLarge => told(Problem::too_large),
            ErrorKind::Conflict => told(Problem::conflict),
            ErrorKind::Timeout => Problem::timeout(
                "the store did not answer in time; a write may or may not have been done",
            ),
            ErrorKind::Unavailable => {
                Problem::unavailable("the store cannot be reached").retry(Duration::from_secs(1))
            }
            ErrorKind::Full => Problem::full("the store has no room left; this was not written"),
            ErrorKind::NotFound => Problem::not_found("no such collection"),
            _ => Problem::internal("the store failed; the log of the gateway says why"),
        }
        .because(&error)
    }
}

/// What a store says, without the options of its URL that it recommends: whoever asks by HTTP has no URL.
pub(crate) fn for_clients(reason: &str) -> String {
    let names_an_option = |part: &&str| {
        part.split(" ?").skip(1).any(|rest| {
            let name = rest.split('=').next().unwrap_or_default();
            rest.len() > name.len() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        })
    };
    let parts: Vec<&str> = reason.split("; ").filter(|part| !names_an_option(part)).collect();
    match parts.is_empty() {
        true => "the store cannot do this as asked".into(),
        false => parts.join("; "),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json().to_string()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"steelyard\""),
            );
        }
        if let Some(after) = self.retry {
            // Whole seconds, never too few.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, seconds.max(1).into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_without_a_url_is_told_of_its_options() {
        for (reason, told) in [
            ("has a NUL; use ?layout=blob", "has a NUL"),
            ("has digits; use ?layout=blob&format=json, or text", "has digits"),
            (
                "has no single primary key; name it: ?key=COLUMN; or not",
                "has no single primary key; or not",
            ),
            ("add ?key=COLUMN", "the store cannot do this as asked"),
            ("is it text? yes; so be it", "is it text? yes; so be it"),
        ] {
            assert_eq!(for_clients(reason), told);
        }
    }
}
