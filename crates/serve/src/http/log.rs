//! What of a request goes to the log: never a key, a header, a query or a body.

use std::{
    fmt,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::http::{HeaderMap, HeaderValue};

use crate::random;

/// The name of a request in log and answer: that of the client, if it is plain, or a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(String);

/// The header that has it.
pub(crate) const REQUEST_ID: &str = "x-request-id";

impl RequestId {
    pub(crate) fn of(headers: &HeaderMap) -> RequestId {
        let plain = |text: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
            !text.is_empty() && text.len() <= 64 && text.chars().all(plain)
        };
        let given = headers
            .get(REQUEST_ID)
            .and_then(|value| value.to_str().ok())
            .filter(|text| plain(text));
        match given {
            Some(text) => RequestId(text.to_owned()),
            None => RequestId(fresh()),
        }
    }

    pub(crate) fn value(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// A name that no other request of this process has, nor one of another process, as good as surely.
fn fresh() -> String {
    static PROCESS: LazyLock<String> = LazyLock::new(|| random::hex::<6>().unwrap_or_default());
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{}-{:x}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed))
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The trace that a request belongs to, of its `traceparent` (W3C Trace Context); none where that is not one.
pub(crate) fn trace(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &str, long: usize| {
        part.len() == long && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    match parts[..] {
        [version, trace, parent, flags, ..]
            if hex(version, 2)
                && version != "ff"
                && hex(trace, 32)
                && hex(parent, 16)
                && hex(flags, 2) =>
        {
            trace.bytes().any(|b| b != b'0').then_some(trace)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_come_back() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_static(text));
            RequestId::of(&headers).to_string()
        };
        assert_eq!(of("abc-1.2:3"), "abc-1.2:3");
        for hostile in ["", "a b", "<script>", "a\"b"] {
            let id = of(hostile);
            assert!(id != hostile && id.len() > 12 && id != of(hostile), "{hostile:?}: {id}");
        }
    }

    #[test]
    fn a_trace_is_what_the_standard_says() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", HeaderValue::from_static(text));
            trace(&headers).map(str::to_owned)
        };
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(
            of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").as_deref(),
            Some(id)
        );
        for text in ["", "00-x", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
