//! Data larger than memory: the store's own cache holds only a share of the data in some phases.
//!
//! A private server is stopped in good order, its files are dropped from the system's page cache, and it is
//! started again on its data with a cache of that size. SQLite, in this process, is opened again. What the
//! system's page cache then holds of the files is not limited, and the report says so: a store that reads
//! through it (PostgreSQL, MyISAM) has more memory than its own cache.

use std::{fs, path::Path};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::turn::Turn;
use crate::{Error, Result, workload::Phase};

impl Turn<'_> {
    /// Gives the server the cache that a phase asks for, or the usual one where it asks for none.
    pub(super) async fn limit_cache(&mut self, phase: &Phase) -> Result<()> {
        let wanted = phase.room.map(|room| room.share);
        let as_it_is = match phase.room {
            None => self.limited.is_none(),
            Some(room) => room.warm && self.limited == wanted,
        };
        if as_it_is || self.null {
            return Ok(());
        }
        // Logs are read after a crash only: a cache that is to hold a share of the data is not theirs.
        let data = self.disk().map_or(0, |disk| disk.data);
        let bytes = wanted.map(|share| ((data as f64 * share) as u64).max(1));
        let Some((folder, _)) = &self.folder else {
            let what =
                "only the cache of a private server or a store of the run's own can be limited";
            return Err(Error::unsupported(what));
        };
        let server = self.opened.as_mut().and_then(|opened| opened.server.as_mut());
        let (given, dropped) = match server {
            Some(server) => {
                let given = server.limit_cache(bytes)?;
                server.rest();
                let dropped = drop_pages(folder);
                server.restart()?;
                (given, dropped)
            }
            None => {
                let usual = self.usual_url.get_or_insert_with(|| self.url.clone());
                self.url = limited(usual, bytes)?;
                (bytes, drop_pages(folder))
            }
        };
        if let Some((asked, given)) = bytes.zip(given) {
            let megabytes = |n: u64| format!("{:.1} MB", n as f64 / 1e6);
            let least = match given > asked {
                true => format!(" ({} was asked for; it takes no less)", megabytes(asked)),
                false => String::new(),
            };
            let pages = match dropped {
                true => {
                    "its files were dropped from the system's page cache before each cold phase"
                }
                false => "the system did not drop its files from the page cache",
            };
            let told = format!(
                "{}{least} of {} of data on disk, without logs; {pages}, which is not limited itself",
                megabytes(given),
                megabytes(data)
            );
            self.told.insert(format!("cache {}", wanted.unwrap_or_default()), told);
        }
        self.limited = wanted;
        self.reopen().await
    }
}

/// The URL of a store in this process whose cache holds so many bytes, or as many as usual.
fn limited(url: &str, bytes: Option<u64>) -> Result<String> {
    if !url.starts_with("sqlite:") {
        let what = "it has no cache beside its data that could be limited";
        return Err(Error::unsupported(what));
    }
    let gap = if url.contains('?') { '&' } else { '?' };
    Ok(bytes.map_or_else(|| url.to_owned(), |bytes| format!("{url}{gap}cache={bytes}")))
}

/// Drops what the system's page cache holds of the files of a folder, as far as it follows the advice;
/// says whether it took it for every file.
fn drop_pages(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let drop_one = |path: &Path| {
        let Ok(file) = fs::File::open(path) else { return false };
        // Pages that are not written yet cannot be dropped.
        let written = file.sync_data().is_ok();
        written && posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).is_ok()
    };
    entries.flatten().fold(true, |all, entry| {
        let done = match entry.file_type() {
            Ok(kind) if kind.is_dir() => drop_pages(&entry.path()),
            Ok(kind) if kind.is_file() => drop_one(&entry.path()),
            _ => true,
        };
        all && done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_store_with_a_cache_can_have_less_of_it() {
        let url = |url, bytes| limited(url, bytes).map_err(|e| e.to_string());
        assert_eq!(url("sqlite:/a.db", Some(9)).unwrap(), "sqlite:/a.db?cache=9");
        assert_eq!(url("sqlite:/a.db?pool=2", Some(9)).unwrap(), "sqlite:/a.db?pool=2&cache=9");
        assert_eq!(url("sqlite:/a.db?pool=2", None).unwrap(), "sqlite:/a.db?pool=2");
        assert!(url("dir:/a", Some(9)).unwrap_err().contains("no cache"));
    }

    #[test]
    fn files_of_folders_are_dropped_and_what_is_not_there_is_said() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inside")).unwrap();
        fs::write(folder.path().join("inside/data"), vec![1; 100_000]).unwrap();
        assert!(drop_pages(folder.path()));
        assert!(!drop_pages(&folder.path().join("nothing")));
    }
}
