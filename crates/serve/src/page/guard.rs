//! Which requests of browsers are answered: those for a name of this gateway, and, where something is changed, those that a
//! page of the gateway made.

use axum::http::{HeaderMap, HeaderName, header};

use crate::{gateway::Gateway, http::Reached, problem::Problem};

/// Whether the request is for a name of this gateway, where that is reached from this machine alone.
///
/// A page of another site can have its own name point to this machine, and would then be of the same origin as the gateway
/// (DNS rebinding). The name stays in `Host`, though. Elsewhere a gateway has any names that its operator gives it.
pub(crate) fn is_named(
    gateway: &Gateway,
    headers: &HeaderMap,
    reached: Reached,
) -> Result<(), Problem> {
    if !reached.local {
        return Ok(());
    }
    let name = match one(headers, header::HOST) {
        Some(host) => without_port(host),
        None => return Err(Problem::invalid("the request does not say which host it is for")),
    };
    let known = ["localhost", "127.0.0.1", "[::1]"];
    let configured = gateway.config.listen.names.iter().map(String::as_str);
    match known.into_iter().chain(configured).any(|known| known.eq_ignore_ascii_case(name)) {
        true => Ok(()),
        false => Err(Problem::forbidden(
            "this gateway serves this machine alone, and not under this name; if the name is its own, add it to listen.names",
        )),
    }
}

/// Whether a form was sent by a page of this gateway.
pub(super) fn is_own(headers: &HeaderMap) -> Result<(), Problem> {
    let refused = || Err(Problem::forbidden("this form was not sent by a page of this gateway"));
    match (one(headers, HeaderName::from_static("sec-fetch-site")), one(headers, header::ORIGIN)) {
        // `none`: the user repeated it.
        (Some("same-origin" | "none"), _) => Ok(()),
        (Some(_), _) => refused(),
        // Browsers that send no Sec-Fetch-Site, and all of them where there is no TLS and the name is not this machine's.
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            match host.is_some() && host == one(headers, header::HOST) {
                true => Ok(()),
                false => refused(),
            }
        }
        // Every browser sends one of the two with a form. A program has no cookies that others could use.
        (None, None) if !has(headers, "sec-fetch-site") && !has(headers, "origin") => Ok(()),
        (None, None) => refused(),
    }
}

/// The beginning of URLs of this gateway, as a browser asked for it; none where that is no plain name or address.
pub(super) fn origin(headers: &HeaderMap, reached: Reached) -> Option<String> {
    let scheme = if reached.tls { "https" } else { "http" };
    plain_host(headers).map(|host| format!("{scheme}://{host}"))
}

/// Host and port of a request, if it is a plain name or address.
fn plain_host(headers: &HeaderMap) -> Option<&str> {
    let host = one(headers, header::HOST)?;
    let name = without_port(host);
    let port = host[name.len()..].strip_prefix(':');
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_name = match address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            (1..=253).contains(&name.len()) && !name.starts_with('-') && name.chars().all(plain)
        }
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok() && !port.starts_with('+'));
    (is_name && is_port).then_some(host)
}

/// A header that is there once, as text.
fn one(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn has(headers: &HeaderMap, name: &str) -> bool {
    headers.contains_key(name)
}

fn without_port(host: &str) -> &str {
    // The colons of an IPv6 address stand in brackets.
    let from = host.find(']').unwrap_or(0);
    host[from..].find(':').map_or(host, |at| &host[..from + at])
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn forms_of_other_sites_are_refused() {
        let host = ("host", "h:80");
        for good in [
            &[host, ("sec-fetch-site", "same-origin")][..],
            &[host, ("sec-fetch-site", "none"), ("origin", "null")],
            &[host, ("origin", "http://h:80")],
            &[host],
        ] {
            assert!(is_own(&headers(good)).is_ok(), "{good:?}");
        }
        for bad in [
            &[host, ("sec-fetch-site", "cross-site")][..],
            &[host, ("sec-fetch-site", "same-site"), ("origin", "http://h:80")],
            &[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-origin")],
            &[host, ("origin", "null")],
            &[host, ("origin", "http://h")],
            &[host, ("origin", "http://evil.example")],
            &[("origin", "http://h:80")],
        ] {
            assert!(is_own(&headers(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_plain_hosts_are_shown() {
        let of = |host: &'static str| plain_host(&headers(&[("host", host)])).is_some();
        for good in ["localhost", "localhost:8080", "a-b.example.com:1", "127.0.0.1:80", "[::1]:80"]
        {
            assert!(of(good), "{good}");
        }
        for bad in [
            "", ":80", "a b", "a'b", "a$(x)", "a:b", "a:80:80", "u@h", "a/b", "[::1", "[x]",
            "[$x]:1", "-x", "h:99999", "h:+1", "a\"b", "<b>",
        ] {
            assert!(!of(bad), "{bad}");
        }
        assert!(plain_host(&headers(&[("host", "a"), ("host", "b")])).is_none());
    }
}
