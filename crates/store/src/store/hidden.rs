//! Redaction of passwords: URLs are redacted by the names of their options, other texts (a server may echo what it was
//! sent) by the passwords themselves. Every message, results file, page and journal goes through [`Secrets::hidden`].

use std::{
    borrow::Cow,
    sync::{PoisonError, RwLock},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use percent_encoding::percent_decode_str;

use super::DRIVERS;
use crate::error::CUT;

/// What names of options have in them whose values are secrets.
const MARKS: [&str; 7] =
    ["pas", "pw", "secret", "token", "key", "credential", "mechanismproperties"];
/// Names that have such a mark and are no secret.
const OPEN: [&str; 3] = ["access_key_id", "key", "password_file"];
/// Options of many stores; those of a single one stand in its example.
const KNOWN: [&str; 32] = [
    "table",
    "key",
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
    "password_file",
    "schema",
    "tenant",
    "config",
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
            .filter(|option| !option.is_empty())
            .any(|o| o.split('=').next().is_some_and(|o| o.eq_ignore_ascii_case(name)))
    };
    KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name))
        || DRIVERS.iter().any(|driver| stands_in(driver.example))
}

/// A text without any percent-encoding, also where it was encoded more than once.
pub(super) fn plainest(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..4 {
        let next = decoded(&text).into_owned();
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// The name of an option of a URL, as far as it may be shown: what nobody knows may be a password.
pub(super) fn name_of_option(name: &str, has_value: bool) -> Cow<'_, str> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    match is_known(&decoded(name)) || (has_value && plain && !is_secret(name)) {
        true => name.into(),
        false => "***".into(),
    }
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
    if is_secret(&plainest(name)) {
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

/// Whether a text that may be anything has an option in it, behind what begins it, that names a password.
pub(super) fn has_secret_option(text: &str) -> bool {
    let text = plainest(text);
    let mut options = text.split(['?', '&', ';']).skip(1);
    options.any(|option| is_secret(option.split(['=', ':']).next().unwrap_or_default()))
}

/// Secrets that stand in no URL: of files and variables.
static FOUND: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Keeps a secret out of every text from now on.
pub(super) fn remember(secret: &str) {
    let mut found = FOUND.write().unwrap_or_else(PoisonError::into_inner);
    if secret.len() >= WORD && !found.iter().any(|known| known == secret) {
        found.push(secret.to_owned());
    }
}

/// Keeps the secrets of these URLs out of every text from now on: they came in a file, not as arguments.
pub fn hide<T: AsRef<str>>(urls: impl IntoIterator<Item = T>) {
    let mut found = FOUND.write().unwrap_or_else(PoisonError::into_inner);
    for secret in urls.into_iter().flat_map(|url| secrets(url.as_ref())) {
        if !found.contains(&secret) {
            found.push(secret);
        }
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

/// Texts that are kept out of others.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Those of these URLs, also of such as nothing understands (whatever stands between a colon and the last `@`
    /// may be one), and those that this process has found in files and variables.
    pub fn of<T: AsRef<str>>(urls: impl IntoIterator<Item = T>) -> Secrets {
        let found = FOUND.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all: Vec<String> = Vec::new();
        for secret in urls.into_iter().flat_map(|url| secrets(url.as_ref())).chain(found) {
            // Errors quote what is wrong, and then write some characters as escapes.
            let quoted = format!("{secret:?}");
            all.push(quoted[1..quoted.len() - 1].to_owned());
            all.push(secret.escape_debug().to_string());
            all.push(secret.to_lowercase());
            in_base64(&secret, &mut all);
            all.push(secret);
        }
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Secrets(all)
    }

    /// Whether one is in a text.
    pub fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|secret| text.contains(secret))
    }

    /// A text with `***` for each.
    pub fn hidden(&self, text: &str) -> String {
        let text =
            self.0.iter().fold(text.to_owned(), |text, secret| match text.contains(secret) {
                true => text.replace(secret, "***"),
                false => text,
            });
        match text.contains(CUT) {
            true => self.hidden_before_cuts(&text),
            false => text,
        }
    }

    /// The same of the beginnings of secrets behind which a text was cut.
    fn hidden_before_cuts(&self, text: &str) -> String {
        let begun = |piece: &str| {
            let is_end = |secret: &str, n: &usize| {
                secret.is_char_boundary(*n) && piece.ends_with(&secret[..*n])
            };
            let longest = |secret: &String| (WORD..secret.len()).rev().find(|n| is_end(secret, n));
            self.0.iter().filter_map(longest).max().unwrap_or(0)
        };
        let (mut out, mut from) = (String::with_capacity(text.len()), 0);
        for (at, _) in text.match_indices(CUT) {
            let piece = &text[from..at];
            match begun(piece) {
                0 => out.push_str(piece),
                n => out.extend([&piece[..piece.len() - n], "***"]),
            }
            from = at;
        }
        out + &text[from..]
    }
}

/// What base64 makes of a secret wherever it stands in a text (HTTP Basic and SASL PLAIN put a name before it): the
/// characters that its bytes alone decide, at each of the three places that it can have among sixes of bits, in both
/// alphabets and with percent-encoding.
fn in_base64(secret: &str, all: &mut Vec<String>) {
    // A secret of three bytes is looked for with what separates it from the name.
    let separated: Vec<String> = match secret.strip_prefix(':').and_then(|s| s.strip_suffix('@')) {
        Some(short) if short.len() < WORD => vec![format!(":{short}"), format!("\0{short}")],
        Some(_) => Vec::new(),
        None => vec![secret.to_owned()],
    };
    for secret in separated {
        for before in 0..3 {
            let bytes = [&[0; 2][..before], secret.as_bytes()].concat();
            let own = (8 * before).div_ceil(6)..8 * bytes.len() / 6;
            if own.len() < WORD {
                continue;
            }
            for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let text = engine.encode(&bytes)[own.clone()].to_owned();
                let encoded = text.replace('+', "%2B").replace('/', "%2F");
                all.extend([encoded.replace("%2B", "%2b").replace("%2F", "%2f"), encoded, text]);
            }
        }
    }
}

/// What of a URL must not be shown, of it as it is written and of what becomes of it by decoding.
fn secrets(url: &str) -> Vec<String> {
    let (mut all, mut text) = (Vec::new(), url.to_owned());
    for _ in 0..3 {
        of_login(&text, &mut all);
        of_slip(&text, &mut all);
        of_options(&text, &mut all);
        behind_names(&text, &mut all);
        let next = decoded(&text).into_owned();
        if next == text {
            break;
        }
        text = next;
    }
    let plain: Vec<String> = all.iter().map(|secret| decoded(secret).into_owned()).collect();
    all.extend(plain);
    all.retain(|secret| secret.len() >= WORD || (secret.len() > 2 && secret.starts_with(':')));
    all.sort_unstable();
    all.dedup();
    all
}

/// As a whole wherever it stands; and in pieces, for a URL that was taken apart wrongly.
fn whole_and_pieces(password: &str, all: &mut Vec<String>) {
    const ENDS: [char; 9] = ['/', '?', '#', '@', ':', '&', '=', ',', ';'];
    all.push(password.to_owned());
    all.extend(password.split(ENDS).map(str::to_owned));
}

/// The password before the last `@`.
fn of_login(text: &str, all: &mut Vec<String>) {
    let Some((login, _)) = text.rsplit_once('@') else { return };
    let known = |word: &str| super::is_known(&word.to_ascii_lowercase());
    // Of a slip, `://` may be in the middle of a password.
    let rooted = login.split_once("://").filter(|(scheme, _)| !scheme.contains(':'));
    let password = match rooted {
        Some((_, login)) => login.split_once(':').map_or("", |(_, password)| password),
        None => match login.split_once(':') {
            Some((scheme, login)) if known(scheme) => {
                let login = login.trim_start_matches('/');
                // Without a user, all of it may be meant as the password.
                login.split_once(':').map_or(login, |(_, password)| password)
            }
            Some((_, password)) => password.trim_start_matches('/'),
            None => "",
        },
    };
    if !password.is_empty() {
        all.push(format!(":{password}@"));
        whole_and_pieces(password, all);
    }
}

/// What stands where a port does and is none: of a URL whose `@host` was forgotten it is the password.
fn of_slip(text: &str, all: &mut Vec<String>) {
    for (at, _) in text.match_indices("://") {
        let scheme = text[..at].rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        let embedded = |word: &str| super::is_embedded(&word.to_ascii_lowercase());
        if scheme.is_some_and(embedded) {
            // What follows is the name of a file, which may have colons.
            continue;
        }
        let rest = text[at + 3..].trim_start_matches('/');
        let rest = &rest[..rest.find(['?', '&']).unwrap_or(rest.len())];
        if rest.contains('@') {
            // A login, which ends there.
            continue;
        }
        let hosts = &rest[..rest.find(['/', '#']).unwrap_or(rest.len())];
        let colon = |host: &str| match host.strip_prefix('[').and_then(|six| six.find("]:")) {
            Some(end) => Some(end + 2),
            None if host.starts_with('[') => None,
            None => host.find(':'),
        };
        let mut begin = 0;
        for host in hosts.split(',') {
            let port = colon(host).map(|colon| begin + colon + 1);
            let is_port =
                |port: usize| rest[port..begin + host.len()].bytes().all(|b| b.is_ascii_digit());
            if let Some(port) = port.filter(|port| !is_port(*port)) {
                whole_and_pieces(&rest[port..], all);
                break;
            }
            begin += host.len() + 1;
        }
    }
}

/// What stands behind the name of a secret and `=`, wherever in a URL, up to the next option that is known: of a
/// password with a raw `&` in it, all of it.
fn behind_names(text: &str, all: &mut Vec<String>) {
    const ENDS: [char; 4] = ['?', '&', ';', '/'];
    if !text.contains("://") {
        return;
    }
    for (at, _) in text.match_indices('=') {
        let begin = text[..at].rfind(ENDS).map_or(0, |end| end + 1);
        if !is_secret(&plainest(&text[begin..at])) {
            continue;
        }
        let value = &text[at + 1..];
        let known = |(end, _): &(usize, &str)| {
            let name = value[end + 1..].split_once('=').map_or("", |(name, _)| name);
            is_known(name)
        };
        let end = value.match_indices(&ENDS[..3]).find(known).map_or(value.len(), |(end, _)| end);
        whole_and_pieces(&value[..end], all);
    }
}

/// Values of options that are secret by their names, or whose names nobody knows.
fn of_options(text: &str, all: &mut Vec<String>) {
    // A word with settings (`postgres?work_mem=1MB`) is no URL.
    let is_url = text.find(':').zip(text.find('?')).is_some_and(|(colon, mark)| colon < mark);
    for option in text.split(['?', '&', ';']).skip(1) {
        let (name, value) = option.split_once('=').unwrap_or(("", option));
        let name = plainest(name);
        let value = decoded(value);
        if is_secret(&name) || (is_url && !is_known(&name) && !is_known(&value)) {
            whole_and_pieces(&value, all);
            all.push(option.split_once('=').map_or(option, |(_, value)| value).to_owned());
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::Url;

    /// Where in URLs a secret can stand.
    const PLACES: [&str; 18] = [
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
        "POSTGRES://u:{}@h/d",
        "s3://b/p?secret%5Faccess%5Fkey={}",
        "s3://b/p?%73ecret_key={}",
        "postgres://h/d?pasword={}",
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

    proptest! {
        #[test]
        fn base64_shows_no_part_of_a_password(
            before in prop::collection::vec(any::<u8>(), 0..40),
            after in prop::collection::vec(any::<u8>(), 0..40),
            password in "[ -~]{4,24}",
        ) {
            let url = format!("redis://user:{}@h/0", percent_encoding::utf8_percent_encode(
                &password, percent_encoding::NON_ALPHANUMERIC,
            ));
            let secrets = Secrets::of([&url]);
            let bytes = [&before[..], password.as_bytes(), &after[..]].concat();
            // The characters that only bytes of the password decide.
            let end = before.len() + password.len();
            let (start, end) = ((8 * before.len()).div_ceil(6), 8 * end / 6);
            for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let text = engine.encode(&bytes);
                let hidden = secrets.hidden(&text);
                let outside = format!("{}\n{}", &text[..start + 3], &text[end - 3..]);
                for at in start..end - 3 {
                    let part = &text[at..at + 4];
                    prop_assert!(!hidden.contains(part) || outside.contains(part), "{hidden}: {part}");
                }
                let encode = |text: &str| text.replace('+', "%2b").replace('/', "%2f");
                let (text, hidden) = (encode(&text[start..end]), secrets.hidden(&encode(&text)));
                prop_assert!(!hidden.contains(&text), "{hidden}");
            }
        }
    }

    #[test]
    fn short_passwords_hide_what_is_theirs_and_no_more() {
        let secrets = Secrets::of(["redis://user:abc@h/0"]);
        // "user:abc", "\0u\0abc".
        assert_eq!(secrets.hidden("Basic dXNlcjphYmM="), "Basic dXNlcj***M=");
        for plain in ["abc and abcd", "a file abc.mrc", "YWJj"] {
            assert_eq!(secrets.hidden(plain), plain);
        }
        let text = secrets.hidden(&STANDARD_NO_PAD.encode("\0u\0abc"));
        assert!(text.contains("***") && !text.contains("YWJj"), "{text}");
    }

    #[test]
    fn a_text_cut_inside_of_a_password_does_not_show_its_beginning() {
        let secrets = Secrets::of(["redis://user:hushhush1@h/0"]);
        for (said, want) in [
            ("no hushhus… (300000 bytes)", "no ***… (300000 bytes)"),
            ("no hush… (9 bytes), then hushh… (8 bytes)", "no ***… (9 bytes), then ***… (8 bytes)"),
            ("no hus… (9 bytes)", "no hus… (9 bytes)"),
        ] {
            assert_eq!(secrets.hidden(said), want);
        }
    }

    /// What a driver itself takes is no slip: all but secrets is shown.
    #[tokio::test]
    async fn every_option_of_a_driver_is_known() {
        let mut seen = 0;
        // The crate of MongoDB reads many options of its own, and refuses what it does not know.
        for driver in DRIVERS.iter().filter(|driver| driver.name != "mongodb") {
            let begin = driver.example.split('?').next().unwrap();
            let Err(error) = crate::store::open(&format!("{begin}?nonsense=1")).await else {
                panic!("{begin}: takes any option");
            };
            let text = error.to_string();
            let unknown = text.split_once("unknown option \"nonsense\" of ");
            let Some((_, options)) = unknown.and_then(|(_, rest)| rest.split_once("; known: "))
            else {
                continue;
            };
            for name in options.split(", ") {
                let shown = Url::parse(&format!("{begin}?{name}=value")).unwrap().to_string();
                let secret = name.contains("secret") || name.contains("token");
                assert_eq!(shown.ends_with("=value"), !secret, "{shown}");
                seen += 1;
            }
        }
        assert!(seen > 3, "{seen}");
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
