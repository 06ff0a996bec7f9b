//! Answers to commands that are about no key, shared by both clients.

use super::protocol::{
    Admin, Dialect,
    reply::{Reply, out_of_step},
};
use crate::{Error, ErrorKind, Result};

/// Names and values.
pub type Stats = Vec<(String, String)>;

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Asks for the version.
pub(crate) fn version(into: &mut String) -> Admin<impl FnMut(Reply<'_>) -> Result<bool>> {
    Admin::new("version", |reply| match reply {
        Reply::Version(version) => {
            *into = shown(version);
            Ok(true)
        }
        // Proxies that do not know the command say so, and are taken for old.
        Reply::Error(_) => Ok(true),
        other => Err(out_of_step(format!("{other:?}").as_bytes())),
    })
}

/// The dialect, by the answer.
pub(crate) fn dialect(version: &str) -> Dialect {
    Dialect::of_version(version)
}

/// Asks for statistics: all of a kind, as `settings`, `items`, `slabs`; the usual ones for "".
pub(crate) fn stats<'a>(
    kind: &str,
    into: &'a mut Result<Stats>,
) -> Result<Admin<impl FnMut(Reply<'_>) -> Result<bool> + use<'a>>> {
    if !kind.bytes().all(|b| b.is_ascii_alphanumeric() || b"_ ".contains(&b)) {
        return Err(Error::invalid(format!("unknown kind of statistics {kind:?}")));
    }
    Ok(Admin::new(format!("stats {kind}").trim_end(), |reply| match (reply, &mut *into) {
        (Reply::Stat(name, value), Ok(stats)) => {
            // A server says some hundreds; what never ends is none.
            const MOST: usize = 100_000;
            if stats.len() == MOST {
                return Err(Error::malformed("the statistics do not end"));
            }
            stats.push((shown(name), shown(value)));
            Ok(false)
        }
        (Reply::End, _) => Ok(true),
        // `stats reset` and the like.
        (Reply::Line(b"RESET"), _) | (Reply::Done(_), _) => Ok(true),
        (Reply::Error(line), into) => {
            *into = Err(Error::unsupported(format!("the server says: {}", shown(line))));
            Ok(true)
        }
        (other, _) => Err(out_of_step(format!("{other:?}").as_bytes())),
    }))
}

/// Makes all values go, at once or in so many seconds.
pub(crate) fn flush_all(
    delay: u64,
    into: &mut Result<()>,
) -> Admin<impl FnMut(Reply<'_>) -> Result<bool> + use<'_>> {
    Admin::new(format!("flush_all {delay}"), move |reply| match reply {
        Reply::Done(_) => Ok(true),
        Reply::Error(line) => {
            *into = Err(Error::unsupported(format!("the server says: {}", shown(line))));
            Ok(true)
        }
        other => Err(out_of_step(format!("{other:?}").as_bytes())),
    })
}

/// How a listing of keys ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listed {
    /// All are listed.
    Whole,
    /// Somebody else lists just now.
    Busy,
    /// The server does not list keys; what it says.
    Refused(String),
}

/// Lists all keys: by the table of keys (`hash`; each once) or by the lists of use (`all`).
/// `each` is given the text of each: `key=… exp=… size=…`.
pub(crate) fn listing<'a>(
    how: &str,
    into: &'a mut Listed,
    each: impl FnMut(&[u8]) -> Result<()> + 'a,
) -> Admin<impl FnMut(Reply<'_>) -> Result<bool> + 'a> {
    let mut each = each;
    let how = if how == "hash" { "hash" } else { "all" };
    Admin::new(format!("lru_crawler metadump {how}"), move |reply| match reply {
        Reply::End => Ok(true),
        Reply::Line(line) if line.starts_with(b"key=") => each(line).map(|()| false),
        Reply::Line(line) if line.starts_with(b"BUSY") => {
            *into = Listed::Busy;
            Ok(true)
        }
        Reply::Line(line) if line.starts_with(b"BADCLASS") => {
            *into = Listed::Refused(shown(line));
            Ok(true)
        }
        Reply::Error(line) => {
            *into = Listed::Refused(shown(line));
            Ok(true)
        }
        other => Err(out_of_step(format!("{other:?}").as_bytes())),
    })
    .patient()
}

impl Listed {
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) or [`Unsupported`](ErrorKind::Unsupported).
    pub(crate) fn done(&self) -> Result<()> {
        match self {
            Listed::Whole => Ok(()),
            Listed::Busy => {
                Err(Error::new(ErrorKind::Conflict, "another client is listing its keys"))
            }
            Listed::Refused(says) => {
                Err(Error::unsupported(format!("it does not allow listing its keys: {says}")))
            }
        }
    }
}
