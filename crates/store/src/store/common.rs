//! What every driver understands of its URL: the table, the layout, the durability, connections and times.

use std::time::Duration;

use super::{Shape, Url, password};
use crate::{Error, Result, durability::Tier, format::Wrapped};

/// Connections at most, where the URL says nothing of them.
#[doc(hidden)]
pub const POOL: usize = 4;
/// The table, where the URL names none.
pub(super) const TABLE: &str = "records";

/// No address has more ports to connect from.
const MOST: usize = 65_535;

/// What every driver understands, taken out of its URL.
#[derive(Debug, Clone)]
pub struct Common {
    /// The table, collection or folder: one place holds several. `records` where none is named.
    pub table: String,
    /// How records lie in it.
    pub layout: Option<Shape>,
    /// The format of blobs; naming one means layout blob.
    pub format: Option<Wrapped>,
    /// The durability of acknowledged writes; the store's own where none is named.
    pub durability: Option<Tier>,
    /// How many connections at most. 4 where nothing is said.
    pub pool: usize,
    /// How long connecting may take, from the lookup of a name to the end of the login: where nothing is said, as
    /// long as an operation, and 5 seconds at most.
    pub connect_timeout: Duration,
    /// How long an operation may take: 30 seconds where nothing is said. One that goes through a table in
    /// portions (a scan; a count or a delete by a condition where the store has to look) has it for each.
    pub timeout: Duration,
    /// What was passed over, and why: a file with passwords that others can read.
    pub warnings: Vec<String>,
}

impl Common {
    /// Takes the common options out of a URL, and gives it the password that it does not have in it
    /// (`password/mod.rs`).
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the option; of the file with the password.
    pub fn take(url: &mut Url) -> Result<Common> {
        let format: Option<Wrapped> = url.take_parsed("format")?;
        let layout: Option<Shape> = url.take_parsed("layout")?;
        if let (Some(format), Some(layout @ (Shape::Document | Shape::Columns))) = (&format, layout)
        {
            return Err(Error::invalid(format!(
                "?format={format} is for ?layout=blob, not ?layout={layout}"
            )));
        }
        let table = url.take("table").unwrap_or_else(|| TABLE.into());
        if table.is_empty() || table.contains('\0') {
            return Err(Error::invalid(format!("?table={table:?} is not a valid name")));
        }
        let pool = url.take_parsed("pool")?.unwrap_or(POOL);
        if pool == 0 {
            return Err(Error::invalid("?pool=0: it must be at least 1"));
        }
        if pool > MOST {
            return Err(Error::invalid(format!("?pool={pool}: {MOST} connections at most")));
        }
        let warnings = password::complete(url)?;
        let timeout = duration(url, "timeout", 30.0)?;
        Ok(Common {
            warnings,
            table,
            layout: layout.or(format.as_ref().map(|_| Shape::Blob)),
            format,
            durability: url.take_parsed("durability")?,
            pool,
            connect_timeout: duration(url, "connect_timeout", timeout.as_secs_f64().min(5.0))?,
            timeout,
        })
    }

    /// The layout, of those that a driver has; the first of them where none is named.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported), naming those it has.
    pub fn shape(&self, driver: &str, has: &[Shape]) -> Result<Shape> {
        match self.layout {
            None => Ok(has[0]),
            Some(shape) if has.contains(&shape) => Ok(shape),
            Some(shape) => {
                let has: Vec<_> = has.iter().map(|shape| shape.name()).collect();
                Err(Error::unsupported(format!(
                    "{driver} has no layout {shape}; it has: {}",
                    has.join(", ")
                )))
            }
        }
    }

    /// The format of blobs; MessagePack where none is named, which keeps most and is small.
    pub fn blob_format(&self) -> Wrapped {
        self.format.clone().unwrap_or_else(|| crate::format::Format::Msgpack.into())
    }
}

/// Seconds, also fractions, of at least a millisecond.
fn duration(url: &mut Url, name: &'static str, usual: f64) -> Result<Duration> {
    let seconds = url.take_parsed(name)?.unwrap_or(usual);
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration >= Duration::from_millis(1) => Ok(duration),
        _ => Err(Error::invalid(format!("?{name}={seconds}: expected seconds, at least 0.001"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_an_operation_is_one_of_connecting() {
        for (options, connect, operation) in [
            ("", 5.0, 30.0),
            ("timeout=3", 3.0, 3.0),
            ("timeout=0.25", 0.25, 0.25),
            ("timeout=60", 5.0, 60.0),
            ("timeout=3&connect_timeout=20", 20.0, 3.0),
            ("connect_timeout=0.5", 0.5, 30.0),
        ] {
            let mut url = Url::parse(&format!("memory:?{options}")).unwrap();
            let common = Common::take(&mut url).unwrap();
            let limits = [common.connect_timeout, common.timeout].map(|limit| limit.as_secs_f64());
            assert_eq!(limits, [connect, operation], "{options}");
        }
    }

    #[test]
    fn options_nobody_knows_are_answered() {
        let mut url = Url::parse("sqlite:a.db?tabel=x&pool=2").unwrap();
        let common = Common::take(&mut url).unwrap();
        assert_eq!((common.table.as_str(), common.pool), ("records", 2));
        let error = url.done().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("unknown option \"tabel\" of sqlite; known: connect_timeout"),
            "{error}"
        );
        for (option, want) in [
            ("pool=0", "at least 1"),
            ("pool=x", "?pool=x"),
            ("pool=65536", "65535 connections at most"),
            ("pool=18446744073709551615", "65535 connections at most"),
            ("layout=tree", "known: document, columns, blob"),
            ("durability=t9", "t0 (volatile)"),
            ("format=xyz", "unknown format"),
            ("format=json&layout=columns", "is for ?layout=blob"),
            ("timeout=0", "at least 0.001"),
        ] {
            let mut url = Url::parse(&format!("sqlite:a.db?{option}")).unwrap();
            let error = Common::take(&mut url).unwrap_err();
            assert!(error.to_string().contains(want), "{option}: {error}");
        }
    }
}
