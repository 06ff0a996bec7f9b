//! Passwords stay out of what is shown: of URLs by the names of their options, of other texts (a server
//! may answer with what it was sent) by what they are.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::DRIVERS;

/// What names of options have in them whose values are secrets.
const MARKS: [&str; 7] =
    ["pass", "pwd", "secret", "token", "key", "credential", "mechanismproperties"];
/// Names that have such a mark and are no secret.
const OPEN: [&str; 2] = ["access_key_id", "key"];
/// Options of many stores; those of a single one stand in its example.
const KNOWN: [&str; 27] = [
    "table",
    "layout",
    "format",
    "durability",
    "pool",
    "timeout",
    "connect_timeout",
    "client",
    "socket",
    "tls",
    "ca",
    "column",
    "engine",
    "cache",
    "ordered",
    "endpoint",
    "region",
    "virtual_host",
    "delay",
    "disable_bulk_delete",
    "server_tier",
    "access_key_id",
    "sslmode",
    "authsource",
    "replicaset",
    "directconnection",
    "application_name",
];
/// A shorter word is not looked for by itself: it would be found inside of other words.
const WORD: usize = 4;

/// Whether an option of this name has a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !OPEN.contains(&&*name) && MARKS.iter().any(|mark| name.contains(mark))
}

fn is_known(name: &str) -> bool {
    let stands_in = |example: &str| {
        let options = example.split_once('?').map_or("", |(_, options)| options);
        options
            .split('&')
            .any(|o| o.split('=').next().is_some_and(|o| o.eq_ignore_ascii_case(name)))
    };
    KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name))
        || DRIVERS.iter().any(|driver| stands_in(driver.example))
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// The value of an option of a URL, as far as it may be shown; what nobody knows may be anything.
pub(super) fn of_url<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    match is_known(&decoded(name)) || value.is_empty() {
        true => of_option(name, value),
        false => "***".into(),
    }
}

/// The same of an option whose name is known to be no slip.
fn of_option<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret(&decoded(name)) {
        return "***".into();
    }
    let plain = decoded(value);
    match plain.rsplit_once('@') {
        // A login inside of it.
        Some((login, host)) => {
            let scheme = login.find("://").map_or("", |end| &login[..end + 3]);
            format!("{scheme}***@{host}").into()
        }
        None => value.into(),
    }
}

/// A store as it was typed (`redis?maxmemory=1mb`), without the secrets of its options.
pub fn shown(text: &str) -> String {
    let Some((name, options)) = text.split_once('?') else { return text.to_owned() };
    let shown = options.split('&').map(|option| match option.split_once('=') {
        Some((name, value)) => format!("{name}={}", of_option(name, value)),
        None => option.to_owned(),
    });
    format!("{name}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// The secrets of some URLs, to be kept out of texts.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Those of these URLs; also of such as nothing understands: whatever stands before the last `@` may
    /// be one.
    pub fn of<T: AsRef<str>>(urls: impl IntoIterator<Item = T>) -> Secrets {
        let mut all: Vec<String> = Vec::new();
        for url in urls {
            for secret in secrets(url.as_ref()) {
                // Errors quote what is wrong, and then write some characters as escapes.
                let quoted = format!("{secret:?}");
                all.push(quoted[1..quoted.len() - 1].to_owned());
                all.push(secret.escape_debug().to_string());
                all.push(secret);
            }
        }
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Secrets(all)
    }

    /// Whether one is in a text.
    pub fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|secret| text.contains(secret))
    }

    /// A text with `***` for each.
    pub fn hidden(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| match text.contains(secret) {
            true => text.replace(secret, "***"),
            false => text,
        })
    }
}

/// What of a URL must not be shown.
fn secrets(url: &str) -> Vec<String> {
    const ENDS: [char; 8] = ['/', '?', '#', '@', ':', '&', '=', ','];
    let mut all: Vec<String> = Vec::new();
    if let Some((_, rest)) = url.split_once(':') {
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        if let Some((login, _)) = rest.rsplit_once('@') {
            let password = login.split_once(':').map_or("", |(_, password)| password);
            // As a whole wherever it stands; and in pieces, for a URL that was taken apart wrongly.
            all.push(format!(":{password}@"));
            all.push(password.to_owned());
            all.extend(password.split(ENDS).map(str::to_owned));
        }
    }
    for (name, value) in url.split(['?', '&']).skip(1).filter_map(|o| o.split_once('=')) {
        let value = decoded(value);
        if is_secret(&decoded(name)) {
            all.push(value.to_string());
            // `AWS_SESSION_TOKEN:…,OTHER:…`
            let parts = value.split(',').filter_map(|part| part.split_once(':'));
            all.extend(parts.map(|part| part.1.to_owned()));
        }
        if let Some((login, _)) = value.rsplit_once('@') {
            let login = login.split_once("://").map_or(login, |(_, login)| login);
            all.push(login.to_owned());
            all.extend(login.split_once(':').map(|(_, password)| password.to_owned()));
        }
    }
    let plain: Vec<String> = all.iter().map(|secret| decoded(secret).into_owned()).collect();
    all.extend(plain);
    all.retain(|secret| secret.len() >= WORD || (secret.len() > 2 && secret.starts_with(':')));
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::Url;

    /// Where in URLs a secret can stand.
    const PLACES: [&str; 14] = [
        "redis://u:{}@h/0",
        "s3://b/p?endpoint=http://u:{}@h:9000",
        "s3://b/p?endpoint=http%3A%2F%2Fu%3A{}%40h",
        "mysql://h/d?passwd={}",
        "mysql://h/d?pwd={}",
        "postgres://h/d?sslpassword={}",
        "postgres://h/d?Password={}",
        "s3://b/p?secret_key={}&region=x",
        "s3://b/p?secret_access_key={}",
        "s3://b/p?api_key={}",
        "s3://b/p?Credentials={}",
        "mongodb://h/d?authMechanismProperties=AWS_SESSION_TOKEN:{}",
        "mongodb://h/d?authMechanismProperties=A:b,TOKEN:{},C:d",
        "mysql://h/d?p%61sswd={}",
    ];

    proptest! {
        #[test]
        fn a_secret_is_shown_nowhere(before in "[a-zA-Z0-9]{0,5}", after in "[a-zA-Z0-9]{0,5}") {
            let secret = format!("{before}MARKED{after}");
            for place in PLACES {
                let text = place.replace("{}", &secret);
                let url = Url::parse(&text).unwrap();
                prop_assert!(!format!("{url} {url:?}").contains("MARKED"), "{url}");
                let hidden = Secrets::of([&text]).hidden(&format!("-ERR with args: 'u' '{secret}'"));
                prop_assert!(!hidden.contains("MARKED"), "{text}: {hidden}");
                prop_assert!(hidden.starts_with("-ERR with args: "), "{hidden}");
                if let Some((_, options)) = text.split_once('?') {
                    let typed = shown(&format!("redis?x=1&{options}"));
                    prop_assert!(!typed.contains("MARKED"), "{typed}");
                }
            }
        }
    }

    #[test]
    fn what_is_known_and_no_secret_is_shown() {
        for driver in DRIVERS {
            let example = driver.example;
            let text = Url::parse(example).unwrap().to_string();
            let hidden = |option: &&str| option.ends_with("=***");
            for option in text.split(['?', '&']).skip(1).filter(hidden) {
                let name = option.split('=').next().unwrap();
                assert!(is_secret(name), "{option} of {example}");
            }
        }
        assert_eq!(shown("mariadb?engine=myisam&delay=10%"), "mariadb?engine=myisam&delay=10%");
        let url = Url::parse("redis://h/0?table=pets&nonsense=it").unwrap();
        assert_eq!(url.to_string(), "redis://h/0?table=pets&nonsense=***");
    }
}
