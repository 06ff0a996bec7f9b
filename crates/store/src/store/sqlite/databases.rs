//! Databases made for a while: a file beside the one that the URL names, on the same disk. The
//! file itself is not touched.

use std::{fs, io, path::Path};

use futures_util::FutureExt;

use crate::{
    Error, Result, link,
    store::{
        Databases, Url,
        databases::{Doing, taken},
    },
};

pub(super) const DATABASES: Databases = Databases {
    url: |text, url, name| {
        let (place, options) = text.split_once('?').unwrap_or((text, ""));
        path(url, name)?;
        let gap = if options.is_empty() { "" } else { "?" };
        Some(format!("{place}.{name}{gap}{options}"))
    },
    make: |url, _, name| done(path(&url, &name).map_or(Ok(()), |path| make(&path, &name))),
    drop: |url, _, name| done(path(&url, &name).map_or(Ok(()), |path| remove(&path))),
    drop_schema: None,
};

/// Where the file is; none beside a database in memory.
fn path(url: &Url, name: &str) -> Option<String> {
    let path = url.file_path();
    (!path.is_empty() && path != ":memory:").then(|| format!("{path}.{name}"))
}

fn done(done: Result<()>) -> Doing {
    std::future::ready(done).boxed()
}

fn make(path: &str, name: &str) -> Result<()> {
    match fs::File::create_new(link::followed(Path::new(path))?) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(taken(name)),
        Err(e) => Err(Error::from(e)),
    }
}

fn remove(path: &str) -> Result<()> {
    // The file last: as long as it is there, the rest is known to be its.
    for end in ["-wal", "-shm", "-journal", ""] {
        match fs::remove_file(format!("{path}{end}")) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
    }
    Ok(())
}
