//! URLs with a marked password in every position, with every slip of typing: the mark is in nothing that is
//! printed or written, and no slip is taken for the name of a file.

use proptest::{prelude::*, sample::select, strategy::ValueTree, test_runner::TestRunner};
use steelyard::store::{Url, is_url};

use super::Desk;

const MARK: &str = "MARKED";

/// Schemes of stores with a password, and those with slips in them.
fn scheme() -> impl Strategy<Value = String> {
    let schemes = vec![
        "postgres",
        "postgresql",
        "mysql",
        "mariadb",
        "mongodb",
        "couchdb",
        "couchdbs",
        "redis",
        "rediss",
        "s3",
    ];
    (select(schemes), 0..7_u8, any::<prop::sample::Index>()).prop_map(|(scheme, slip, at)| {
        let mut letters: Vec<char> = scheme.chars().collect();
        let at = at.index(letters.len());
        match slip {
            0 => letters.iter_mut().for_each(|c| c.make_ascii_uppercase()),
            1 => letters[0].make_ascii_uppercase(),
            2 => drop(letters.remove(at)),
            3 => letters.insert(at, 'x'),
            4 if at > 0 => letters.swap(at - 1, at),
            _ => {}
        }
        letters.into_iter().collect()
    })
}

/// A password with the mark in it and what people forget to encode around it.
fn password() -> impl Strategy<Value = String> {
    let around = || {
        let parts = vec![
            "", "a", "/", "?", "#", "@", ":", "&", "=", " ", "%2F", "%40", "%3A", "%", "\\", "\"",
            "'", "[", "]", "://", "?x=", "&x=", "@h/", "ü", "12/",
        ];
        prop::collection::vec(select(parts), 0..3).prop_map(|parts| parts.concat())
    };
    (around(), around()).prop_map(|(before, after)| format!("{before}{MARK}{after}"))
}

/// An option that names a secret, with slips in its name.
fn option() -> impl Strategy<Value = String> {
    let names = vec![
        "password",
        "passwd",
        "pwd",
        "secret_access_key",
        "session_token",
        "sslpassword",
        "authMechanismProperties",
        "Password",
        "PASSWORD",
        "secret%5Faccess%5Fkey",
        "p%61ssword",
        "p%2561ssword",
        "pasword",
        "passwrd",
        "pw",
        "pass word",
        "secret-access-key",
    ];
    let sign = vec!["=", "=", "=", "%3D", ":", ""];
    let before = vec!["", "table=a&", "table=a;", "pool=1?"];
    (select(names), select(sign), select(before)).prop_map(|(name, sign, before)| {
        let value =
            if name.starts_with("auth") { format!("A:b,TOKEN:{MARK}") } else { MARK.into() };
        format!("{before}{name}{sign}{value}")
    })
}

/// A URL with the mark in its password, in an option, or in both.
fn url() -> impl Strategy<Value = String> {
    let slashes =
        vec!["://", "://", "://", ":", ":/", ":///", ";//", "//:", ":\\\\", ": //", "%3A//"];
    let user = vec!["u", "", "us%40er", "a b", "me@there"];
    let colon = vec![":", ":", ":", "%3A", "%253A"];
    let at = vec!["@", "@", "@", "@@", "%40"];
    // Nobody listens there.
    let host = vec![
        "127.0.0.1:1",
        "[::1]:1",
        "[::1",
        "127.0.0.1:x",
        "127.0.0.1:1,127.0.0.1:2",
        "[::1%lo]:1",
        "",
    ];
    let path = vec!["", "/", "/db", "/0", "/a/b"];
    let login = (select(user), select(colon), password(), select(at));
    let login = prop::option::weighted(0.8, login);
    let place = (select(slashes), login, select(host), select(path));
    (scheme(), place, prop::option::of(option())).prop_filter_map(
        "no mark",
        |(scheme, (slashes, login, host, path), option)| {
            let login = login.map(|(user, colon, password, at)| {
                let login = format!("{user}{colon}{password}");
                // With another @ in it, what is behind that is a host.
                let at = if at == "%40" && login.contains('@') { "@" } else { at };
                login + at
            });
            let option = option.map_or_else(String::new, |option| format!("&{option}"));
            let login = login.unwrap_or_default();
            let url = format!(
                "{scheme}{slashes}{login}{host}{path}?connect_timeout=0.1&timeout=0.1{option}"
            );
            url.contains(MARK).then_some(url)
        },
    )
}

fn has_mark(text: &str) -> bool {
    text.to_lowercase().contains(&MARK.to_lowercase())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// The library alone, which knows no arguments to hide.
    #[test]
    fn no_url_shows_its_password(url in url()) {
        // Of what has no colon, nobody can tell.
        let place = url.split('?').next().unwrap_or_default();
        prop_assert!(is_url(&url) || !place.contains(':'), "{url} is taken for a file");
        match Url::parse(&url) {
            Err(e) => prop_assert!(!has_mark(&format!("{e} {e:?}")), "{url}: {e}"),
            Ok(parsed) => {
                prop_assert!(!has_mark(&format!("{parsed} {parsed:?}")), "{url}: {parsed}");
                if let Err(e) = parsed.done() {
                    prop_assert!(!has_mark(&format!("{e} {e:?}")), "{url}: {e}");
                }
            }
        }
    }
}

/// Every verb that takes the URL of a store, or a file in whose place one may be typed.
fn verbs(url: &str) -> Vec<Vec<String>> {
    let labelled = format!("mine={url}");
    let all: Vec<Vec<&str>> = vec![
        vec!["get", url, "key"],
        vec!["put", url, "a.jsonl"],
        vec!["each", url],
        vec!["delete", url, "--all"],
        vec!["copy", "a.jsonl", url, "--key", "id"],
        vec!["copy", "a.jsonl", url, "--to", "json"],
        vec!["copy", "a.jsonl", url, "--resume", "--journal", "journal", "--rejects", "rejects"],
        vec!["copy", url, "out.jsonl"],
        vec!["audit", url],
        vec![
            "bench",
            "keep",
            "--records",
            "a.jsonl",
            "--rounds",
            "1",
            "--out",
            "r.json",
            "--on",
            url,
        ],
        vec![
            "bench",
            "keep",
            "--records",
            "a.jsonl",
            "--rounds",
            "1",
            "--format",
            "html",
            "--on",
            &labelled,
        ],
        vec!["bench", "keep", "--on", "memory", "--records", url],
        vec!["slabs", url],
        vec!["show", url],
        vec!["check", url],
        vec!["report", url],
        vec!["bench", "formats", url],
        vec!["each", "--nonsense", url],
        vec!["copy", "a.jsonl", "b.jsonl", "--rejects", url],
        vec!["copy", "a.jsonl", "sqlite:c.db", "--resume", "--journal", url],
        vec!["bench", "formats", "a.jsonl", "--formats", "json", "--rounds", "1", "--out", url],
        vec!["generate", "users", url, "--count", "1"],
    ];
    all.into_iter().map(|args| args.into_iter().map(str::to_owned).collect()).collect()
}

/// All names and contents of files below a folder.
fn files(folder: &std::path::Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        *text += &format!("{}\n", path.display());
        match path.is_dir() {
            true => files(&path, text),
            false => *text += &String::from_utf8_lossy(&std::fs::read(&path).unwrap()),
        }
    }
}

#[test]
fn no_verb_shows_or_writes_the_password_of_any_url() {
    // The same ones each time, as each is tried with a process for each verb.
    let mut runner = TestRunner::deterministic();
    let mut tried = 0;
    for _ in 0..25 {
        let url = url().new_tree(&mut runner).unwrap().current();
        let desk = Desk::new();
        desk.write("a.jsonl", "{\"id\":1}\n");
        for args in verbs(&url) {
            let done = desk.command(&args).env("HOME", desk.path()).output().unwrap();
            let said = [done.stdout, done.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
            let said = said.concat();
            assert!(!has_mark(&said), "{args:?}: {said}");
            assert_ne!(done.status.code(), Some(0), "{args:?}: {said}");
            assert!(!said.is_empty(), "{args:?}");
            tried += 1;
        }
        let mut text = String::new();
        files(desk.path(), &mut text);
        assert!(!has_mark(&text), "{url}: {text}");
    }
    assert!(tried > 400);
}

/// URLs whose `@host` was forgotten, and those with an option that begins with no `?`.
fn forgotten() -> Vec<String> {
    let mut all = Vec::new();
    for scheme in
        ["Postgres", "tyrant", "redis", "REDIS", "mysql", "mongodb", "couchdb", "s3", "nonsense"]
    {
        for password in ["a/{}", "{}", "{}/b", "1a/{}", "12{}", "a,b:{}", "a?{}", "a#{}", "a/b:{}"]
        {
            all.push(format!("{scheme}://ann:{password}"));
        }
        for option in
            ["password=a&{}", "secret=a/{}", "token={}", "x=1&Password=a;{}", "passwd=a?{}"]
        {
            all.push(format!("{scheme}://127.0.0.1:1/db&{option}"));
        }
    }
    all.into_iter().map(|url| url.replace("{}", MARK)).collect()
}

#[test]
fn a_url_without_its_host_shows_no_password() {
    for (i, url) in forgotten().iter().enumerate() {
        let told = match Url::parse(url) {
            Err(e) => format!("{e} {e:?}"),
            Ok(parsed) => format!("{parsed} {parsed:?} {:?}", parsed.done()),
        };
        assert!(!has_mark(&told), "{url}: {told}");
        // A process for some verbs of each, and for each verb with some.
        let verbs = verbs(url);
        for verb in
            verbs.iter().enumerate().filter(|(n, _)| (n + i) % 10 == 0).map(|(_, verb)| verb)
        {
            let desk = Desk::new();
            desk.write("a.jsonl", "{\"id\":1}\n");
            let ran = super::ran(desk.command(verb).output().unwrap());
            let mut told = ran.err;
            told += &String::from_utf8_lossy(&ran.out);
            files(desk.path(), &mut told);
            assert!(!has_mark(&told), "{verb:?}: {told}");
        }
    }
}

/// What docs/servers.md says is never the name of a file, by every option that names a file to write.
#[test]
fn no_option_makes_a_file_of_what_may_be_a_url() {
    for url in ["postgresql:b?secret=MARKED", "redis://h", "x:MARKED@h", "sqlite:b.db"] {
        for args in [
            &["copy", "a.jsonl", "b.jsonl", "--rejects", url][..],
            &["copy", "a.jsonl", "sqlite:c.db", "--resume", "--journal", url],
            &["bench", "formats", "a.jsonl", "--formats", "json", "--rounds", "1", "--out", url],
            &["generate", "users", url, "--count", "1"],
        ] {
            let desk = Desk::new();
            desk.write("a.jsonl", "{\"id\":1}\n");
            let ran = super::ran(desk.command(args).output().unwrap());
            assert_eq!(ran.status, Some(2), "{args:?}: {}", ran.err);
            assert!(ran.err.contains("./NAME") && !has_mark(&ran.err), "{}", ran.err);
            assert_eq!(desk.names(), ["a.jsonl"], "{args:?}");
        }
    }
    let desk = Desk::new();
    desk.run("generate users ./sqlite:b.json --count 1").well();
    assert_eq!(desk.names(), ["sqlite:b.json"]);
}
