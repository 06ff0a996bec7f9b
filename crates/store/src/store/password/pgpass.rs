//! `~/.pgpass`, or the file that `PGPASSFILE` names, by the rules of libpq: a line `host:port:database:user:password`
//! each, `*` for anything, `\:` and `\\` for those characters, the first line that fits counts, and a file that
//! others can read is passed over.
//! <https://www.postgresql.org/docs/current/libpq-pgpass.html>

use std::{env, fs, os::unix::fs::MetadataExt, path::Path, path::PathBuf};

use nix::unistd::{User, geteuid};

use crate::{
    Result,
    store::{Secret, Url},
};

/// Where servers have their socket, which lines call `localhost`.
const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Looks the password of a URL up; says why the file is passed over, where it is.
pub(super) fn complete(url: &mut Url) -> Result<Vec<String>> {
    let named = env::var_os("PGPASSFILE").filter(|name| !name.is_empty()).map(PathBuf::from);
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".pgpass"));
    let Some(path) = named.or_else(home) else { return Ok(Vec::new()) };
    from(&path, url)
}

fn from(path: &Path, url: &mut Url) -> Result<Vec<String>> {
    // That there is none is usual.
    let Ok(data) = fs::metadata(path) else { return Ok(Vec::new()) };
    let ignored = |why: &str| Ok(vec![format!("{} is ignored: {why}", path.display())]);
    if !data.is_file() {
        return ignored("it is not a plain file");
    }
    if data.mode() & 0o077 != 0 {
        return ignored("its group or others can read it; chmod 0600 makes it private");
    }
    let Ok(text) = fs::read(path) else { return ignored("it cannot be read") };
    let text = String::from_utf8_lossy(&text);
    let Some(wanted) = wanted(url) else { return Ok(Vec::new()) };
    if let Some(password) = text.lines().find_map(|line| password(line, &wanted)) {
        url.password = Some(Secret::found(password));
    }
    Ok(Vec::new())
}

/// Host, port, database and user of a URL, as lines name them.
fn wanted(url: &Url) -> Option<[String; 4]> {
    let me = || Some(User::from_uid(geteuid()).ok()??.name);
    let user = url.user.clone().or_else(me)?;
    let (host, port) = url.hosts.first().map_or((None, None), |(host, port)| (Some(host), *port));
    let host = match (url.option("socket"), host) {
        (Some(folder), _) if !SOCKETS.contains(&folder.trim_end_matches('/')) => folder.to_owned(),
        (Some(_), _) | (None, None) => "localhost".to_owned(),
        (None, Some(host)) => host.clone(),
    };
    let database = if url.path.is_empty() { user.clone() } else { url.path.clone() };
    Some([host, port.unwrap_or(5432).to_string(), database, user])
}

/// The password of a line that fits.
fn password(line: &str, wanted: &[String; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut rest = line;
    for want in wanted {
        let (field, after) = field(rest);
        if after.is_none() || (field != "*" && unescaped(field) != *want) {
            return None;
        }
        rest = after?;
    }
    Some(unescaped(field(rest).0))
}

/// A field as it is written, and what comes behind its colon.
fn field(text: &str) -> (&str, Option<&str>) {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ':' => return (&text[..at], Some(&text[at + 1..])),
            _ => {}
        }
    }
    (text, None)
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// The password that a file with this text has for a URL.
    fn of(text: &str, mode: u32, url: &str) -> (Option<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mut url = Url::parse(url).unwrap();
        let told = from(&path, &mut url).unwrap();
        (url.password.map(|password| password.reveal().to_owned()), told)
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        const TEXT: &str = "# hostname:port:database:username:password\n\
                            db:5432:shop:ann:first\n\
                            db:5432:*:ann:second\n\
                            db:*:*:bob:with\\:colon\\\\and slash\n\
                            [::1]:1:*:x:never\n\
                            \\:\\:1:*:*:*:six\n\
                            localhost:*:*:ann:home\n\
                            half:5432:shop\n\
                            *:*:*:carol:anywhere:and more\n";
        for (url, want) in [
            ("postgres://ann@db/shop", Some("first")),
            ("postgres://ann@db:5432/shop", Some("first")),
            ("postgres://ann@db/other", Some("second")),
            ("postgres://ann@db:5433/shop", None),
            ("postgres://bob@db:5433", Some("with:colon\\and slash")),
            ("postgres://eve@[::1]/x", Some("six")),
            ("postgres://ann@localhost/x", Some("home")),
            ("postgres://ann@localhost/x?socket=/var/run/postgresql", Some("home")),
            ("postgres://ann@localhost/x?socket=/elsewhere", None),
            ("postgres://carol@nowhere:1/x", Some("anywhere")),
            ("postgres://eve@half/shop", None),
        ] {
            let (found, told) = of(TEXT, 0o600, url);
            assert_eq!((found.as_deref(), told.len()), (want, 0), "{url}");
        }
        // Without a name of a database it is that of the user.
        assert_eq!(of("h:*:ann:ann:own\r\n", 0o600, "postgres://ann@h").0.as_deref(), Some("own"));
    }

    #[test]
    fn a_file_that_others_can_read_is_passed_over() {
        for mode in [0o640, 0o604, 0o666] {
            let (found, told) = of("*:*:*:*:hush\n", mode, "postgres://ann@db/shop");
            assert_eq!(found, None, "{mode:o}");
            assert!(told[0].contains("is ignored") && told[0].contains("0600"), "{told:?}");
        }
        for mode in [0o600, 0o400] {
            let (found, told) = of("*:*:*:*:hush\n", mode, "postgres://ann@db/shop");
            assert_eq!((found.as_deref(), told.len()), (Some("hush"), 0), "{mode:o}");
        }
    }
}
