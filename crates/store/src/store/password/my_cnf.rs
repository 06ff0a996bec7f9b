//! User and password of the group `[client]` in `~/.my.cnf`, as MySQL's and MariaDB's programs read them. A file that
//! every user may write is passed over, as they do. Other groups, other options and `!include` are not read.
//! <https://dev.mysql.com/doc/refman/8.4/en/option-files.html>

use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    Result,
    store::{Secret, Url},
};

/// Looks user and password up; says why the file is passed over, where it is.
pub(super) fn complete(url: &mut Url) -> Result<Vec<String>> {
    match env::var_os("HOME") {
        Some(home) => from(&PathBuf::from(home).join(".my.cnf"), url),
        None => Ok(Vec::new()),
    }
}

fn from(path: &Path, url: &mut Url) -> Result<Vec<String>> {
    // That there is none is usual.
    let Ok(data) = fs::metadata(path) else { return Ok(Vec::new()) };
    let ignored = |why: &str| Ok(vec![format!("{} is ignored: {why}", path.display())]);
    if data.mode() & 0o002 != 0 {
        return ignored("every user can write it; chmod 0600 makes it private");
    }
    let Ok(text) = fs::read(path) else { return ignored("it cannot be read") };
    let (user, password) = client(&String::from_utf8_lossy(&text));
    // A password is for the user it stands beside.
    let same = url.user.is_none() || user.is_none() || url.user == user;
    if let Some(password) = password.filter(|_| same) {
        url.user = url.user.take().or(user);
        url.password = Some(Secret::found(password));
    }
    Ok(Vec::new())
}

/// User and password of the group `[client]`; of several, the last.
fn client(text: &str) -> (Option<String>, Option<String>) {
    let (mut user, mut password, mut inside) = (None, None, false);
    for line in text.lines().map(str::trim) {
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(group) = line.strip_prefix('[') {
            inside = group.split(']').next() == Some("client");
            continue;
        }
        let Some((name, text)) = line.split_once('=').filter(|_| inside) else { continue };
        match name.trim().replace('_', "-").as_str() {
            "user" => user = Some(value(text)),
            "password" => password = Some(value(text)),
            _ => {}
        }
    }
    (user, password)
}

/// A value without its quotes, with what its escapes stand for; a `#` outside of quotes begins a comment.
fn value(text: &str) -> String {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inner = match quote {
        Some(quote) => {
            let inner = &text[1..];
            &inner[..inner.rfind(quote).unwrap_or(inner.len())]
        }
        None => text.split('#').next().unwrap_or_default().trim_end(),
    };
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('b') => plain.push('\u{8}'),
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('s') => plain.push(' '),
            Some('\\') => plain.push('\\'),
            Some(c @ ('"' | '\'')) => plain.push(c),
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// User and password that a file with this text gives a URL.
    fn of(text: &str, mode: u32, url: &str) -> (Option<String>, Option<String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.cnf");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mut url = Url::parse(url).unwrap();
        let told = from(&path, &mut url).unwrap();
        (url.user.clone(), url.password.map(|p| p.reveal().to_owned()), told.len())
    }

    const TEXT: &str = "# mine\n[mysqld]\npassword=server\n[client]\nuser = ann\nport=1\n\
                        password = \"hu\\\"sh #1\\\\\"  \n[mysql]\npassword=other\n";

    #[test]
    fn user_and_password_of_the_group_client_are_taken() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(TEXT, 0o600, "mysql://db/x"), (some("ann"), some("hu\"sh #1\\"), 0));
        assert_eq!(of(TEXT, 0o644, "mysql://ann@db/x"), (some("ann"), some("hu\"sh #1\\"), 0));
        // Somebody else's.
        assert_eq!(of(TEXT, 0o600, "mysql://bob@db/x"), (some("bob"), None, 0));
        let plain = "[client]\npassword=hush # a comment\n";
        assert_eq!(of(plain, 0o600, "mysql://bob@db/x"), (some("bob"), some("hush"), 0));
        assert_eq!(of("[client]\npassword='a\\sb'\n", 0o600, "mysql://db/x").1, some("a b"));
        assert_eq!(of("", 0o600, "mysql://db/x"), (None, None, 0));
    }

    #[test]
    fn a_file_that_everybody_may_write_is_passed_over() {
        assert_eq!(of(TEXT, 0o666, "mysql://db/x"), (None, None, 1));
    }
}
