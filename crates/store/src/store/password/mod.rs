//! Where a password comes from, as a command line shows in `ps`: from the URL; from the file that
//! `?password_file=` names; from the variable `STEELYARD_PASSWORD`; for PostgreSQL from `~/.pgpass`, for MySQL
//! from `~/.my.cnf`. The first of them that has one counts.
//!
//! The variable is for URLs that name a user (of S3, an access key) and no password, so that no password goes to a
//! server that nobody logs in to.

mod my_cnf;
mod pgpass;

use std::{env, fs};

use super::{Secret, Url, driver};
use crate::{Error, Result};

/// What URLs of a store have of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Nothing.
    None,
    /// A user and a password before the host.
    Password,
    /// A key and its secret, as options.
    Key,
}

/// The variable.
const VARIABLE: &str = "STEELYARD_PASSWORD";
/// No password is longer.
const LONGEST: u64 = 64 << 10;

/// Gives a URL the password it does not have in it; says what was passed over.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) for a login where there is none;
/// [`Invalid`](crate::ErrorKind::Invalid) for two passwords; of the file.
pub(super) fn complete(url: &mut Url) -> Result<Vec<String>> {
    let Some(driver) = driver(&url.scheme) else { return Ok(Vec::new()) };
    let has_login = url.user.is_some() || url.password.is_some();
    if has_login && driver.login != Login::Password {
        let how = match driver.login {
            Login::Key => "; its keys are the options access_key_id and secret_access_key",
            _ => "",
        };
        return Err(Error::unsupported(format!(
            "{} takes no user or password before its host{how}",
            driver.name
        )));
    }
    if driver.login == Login::None {
        return Ok(Vec::new());
    }
    let of_url = match driver.login {
        Login::Key => url.option("secret_access_key").is_some_and(|secret| !secret.is_empty()),
        _ => url.password.is_some(),
    };
    if let Some(file) = url.take("password_file") {
        if of_url {
            return Err(Error::invalid(
                "a password in the URL and ?password_file=; use one of them",
            ));
        }
        url.password = Some(of_file(&file)?);
        return Ok(Vec::new());
    }
    let named = match driver.login {
        Login::Key => url.option("access_key_id").is_some_and(|key| !key.is_empty()),
        _ => url.user.is_some(),
    };
    if of_url {
        return Ok(Vec::new());
    }
    if named && let Some(password) = of_variable(env::var_os(VARIABLE))? {
        url.password = Some(password);
        return Ok(Vec::new());
    }
    match driver.name {
        "postgres" => pgpass::complete(url),
        "mysql" => my_cnf::complete(url),
        _ => Ok(Vec::new()),
    }
}

/// A file with a password and, if need be, the end of its line.
fn of_file(path: &str) -> Result<Secret> {
    let named = |e: Error| e.in_place(format!("?password_file={path}"));
    let size = fs::metadata(path).map_err(|e| named(e.into()))?.len();
    if size > LONGEST {
        return Err(named(Error::invalid(format!("{size} bytes are too many for a password"))));
    }
    let text = fs::read(path).map_err(|e| named(e.into()))?;
    let text =
        String::from_utf8(text).map_err(|_| named(Error::invalid("the password is not UTF-8")))?;
    let text =
        text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line));
    if text.is_empty() || text.contains(['\0', '\n']) {
        let what = "the file must have exactly one line, the password";
        return Err(named(Error::invalid(what)));
    }
    Ok(Secret::found(text.to_owned()))
}

fn of_variable(value: Option<std::ffi::OsString>) -> Result<Option<Secret>> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(None) };
    let text = value
        .into_string()
        .map_err(|_| Error::invalid(format!("{VARIABLE}: the password is not UTF-8")))?;
    Ok(Some(Secret::found(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn password(url: &Url) -> Option<&str> {
        url.password.as_ref().map(Secret::reveal)
    }

    #[test]
    fn a_file_has_the_password_of_every_store_with_a_login() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        for (text, want) in [
            ("hush hush", Some("hush hush")),
            ("hush\n", Some("hush")),
            ("hush \r\n", Some("hush ")),
            ("", None),
            ("\n", None),
            ("a\nb", None),
        ] {
            fs::write(&path, text).unwrap();
            for driver in super::super::DRIVERS.iter().filter(|d| d.login != Login::None) {
                let mut url = url(&format!(
                    "{}://h/x?access_key_id=&password_file={}",
                    driver.name,
                    path.display()
                ));
                let done = complete(&mut url);
                assert_eq!(
                    (done.is_ok(), password(&url)),
                    (want.is_some(), want),
                    "{}",
                    driver.name
                );
                assert!(url.option("password_file").is_none());
            }
        }
        let both = format!("redis://:a@h?password_file={}", path.display());
        assert!(complete(&mut url(&both)).unwrap_err().to_string().contains("one of them"));
        let both = format!("s3://b?secret_access_key=a&password_file={}", path.display());
        assert!(complete(&mut url(&both)).unwrap_err().to_string().contains("one of them"));
        let error = complete(&mut url("redis://h?password_file=nowhere")).unwrap_err().to_string();
        assert!(error.contains("?password_file=nowhere"), "{error}");
    }

    #[test]
    fn who_has_no_login_takes_none() {
        for text in ["sqlite://u:p@h/x", "memcached://u@h", "tyrant://u:p@h", "s3://u:p@bucket"] {
            let error = complete(&mut url(text)).unwrap_err().to_string();
            assert!(error.contains("no user or password before its host"), "{text}: {error}");
        }
    }

    #[test]
    fn a_secret_that_was_found_is_in_no_message() {
        Secret::found("found-by-chance".into());
        let hidden = super::super::Secrets::of(["x"]).hidden("ERR AUTH found-by-chance");
        assert_eq!(hidden, "ERR AUTH ***");
    }
}
