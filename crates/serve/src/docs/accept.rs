//! Which format a document comes and goes in.

use axum::http::{HeaderMap, header};
use steelyard_store::format::Format;

use crate::problem::Problem;

/// Formats that have a media type, the usual one first.
const FORMATS: &[(Format, &str)] = &[
    (Format::Json, super::JSON),
    (Format::Msgpack, "application/vnd.msgpack"),
    (Format::Cbor, "application/cbor"),
    (Format::Bson, "application/bson"),
];

/// What a client gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Chosen {
    /// The document in this format.
    Format(Format, &'static str),
    /// The bytes that are stored, whatever they are.
    AsStored,
}

/// What is stored, byte for byte.
pub(super) const STORED: &str = "application/octet-stream";

/// The best of what `Accept` names; of equals, the one that is first here.
pub(super) fn chosen(headers: &HeaderMap, may_be_stored: bool) -> Result<Chosen, Problem> {
    let given = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<(String, u32)> = given.flat_map(|text| text.split(',')).map(range).collect();
    if ranges.is_empty() {
        return Ok(Chosen::Format(Format::Json, super::JSON));
    }
    let quality = |media: &str| {
        let kind = media.split('/').next().unwrap_or_default();
        // The most exact range counts.
        let fits = |range: &str| match range {
            _ if range == media => Some(2),
            "*/*" => Some(0),
            _ => (range.strip_suffix("/*") == Some(kind)).then_some(1),
        };
        let exact = ranges.iter().filter_map(|(range, q)| Some((fits(range)?, *q))).max();
        exact.map_or(0, |(_, q)| q)
    };
    let formats =
        FORMATS.iter().map(|(format, media)| (quality(media), Chosen::Format(*format, media)));
    // Only where it is named: it is the least telling.
    let named = may_be_stored && ranges.iter().any(|(range, _)| range == STORED);
    let stored = named.then(|| (quality(STORED), Chosen::AsStored));
    let mut best: Option<(u32, Chosen)> = None;
    for (q, choice) in formats.chain(stored) {
        if q > best.as_ref().map_or(0, |(q, _)| *q) {
            best = Some((q, choice));
        }
    }
    best.map(|(_, choice)| choice).ok_or_else(|| {
        let known: Vec<_> = FORMATS.iter().map(|(_, media)| *media).collect();
        Problem::not_acceptable(format!("available as {}", known.join(", ")))
    })
}

/// A range, and its quality in thousandths.
fn range(text: &str) -> (String, u32) {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().unwrap_or_default().to_ascii_lowercase();
    let quality = parts.find_map(|part| part.strip_prefix("q="));
    let thousandths = quality.map_or(1000.0, |q| q.parse::<f64>().unwrap_or(0.0) * 1000.0);
    (range, thousandths.clamp(0.0, 1000.0) as u32)
}

/// The format of a body.
pub(super) fn sent(headers: &HeaderMap) -> Result<Format, Problem> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(Format::Json) };
    let text = value.to_str().unwrap_or_default();
    let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // What `curl -d` says of whatever it is given. Forms have no meaning here, so nothing else can be meant.
    if media == "application/x-www-form-urlencoded" {
        return Ok(Format::Json);
    }
    let known = FORMATS.iter().find(|(_, known)| *known == media);
    known.map(|(format, _)| *format).ok_or_else(|| {
        let known: Vec<_> = FORMATS.iter().map(|(_, media)| *media).collect();
        Problem::media_type(format!("the body may be {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_best_of_what_is_accepted() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(text));
            chosen(&headers, true)
        };
        let json = Chosen::Format(Format::Json, super::super::JSON);
        let cbor = Chosen::Format(Format::Cbor, "application/cbor");
        for (text, want) in [
            ("*/*", &json),
            ("application/*", &json),
            ("text/html, */*;q=0.1", &json),
            ("application/cbor", &cbor),
            ("application/json;q=0.5, application/cbor", &cbor),
            (
                "application/json;q=0, application/*",
                &Chosen::Format(Format::Msgpack, "application/vnd.msgpack"),
            ),
            ("application/octet-stream", &Chosen::AsStored),
        ] {
            assert_eq!(of(text).as_ref().ok(), Some(want), "{text}");
        }
        for text in ["text/html", "application/json;q=0", "application/json;q=x"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
