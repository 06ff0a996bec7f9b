//! The folder in which private servers, and stores inside this process, keep their data.

use std::{
    env, fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use nix::unistd::{AccessFlags, access, geteuid};

use super::find;
use crate::durability::Medium;

/// The longest name of a folder that sockets fit in: sockaddr_un has 108 bytes, of which a server's own
/// folder and its socket (`/steelyard-ABCDEF/.s.PGSQL.65535`) take up to 36.
const LONGEST: usize = 108 - 36;

/// Where data lie: in the place for temporary files (`TMPDIR`, else `/tmp`). Where that is memory
/// (tmpfs, as `/tmp` is on Fedora and Arch Linux), it is the first of `/var/tmp`, the user's cache folder
/// and the working directory that is on a disk, is writable, and has a name short enough for sockets.
/// Where none of them is, it is the place for temporary files, and no store there is above t1.
pub fn data_folder() -> PathBuf {
    let others = [Some(PathBuf::from("/var/tmp")), find::cache(), env::current_dir().ok()];
    choose(env::temp_dir(), others.into_iter().flatten(), is_on_disk)
}

fn choose(
    usual: PathBuf,
    others: impl Iterator<Item = PathBuf>,
    is_on_disk: impl Fn(&Path) -> bool,
) -> PathBuf {
    if is_on_disk(&usual) {
        return usual;
    }
    let mut others = others.filter(|folder| takes_servers(folder) && is_on_disk(folder));
    others.next().unwrap_or(usual)
}

/// What the system does not tell of is taken for a disk, as most are.
fn is_on_disk(folder: &Path) -> bool {
    Medium::of(folder).is_none_or(|medium| medium.volatile.is_none())
}

/// Whether servers can have their folders in this one. Those that refuse to run as root run as another
/// user, who must be able to reach it.
fn takes_servers(folder: &Path) -> bool {
    let writable = access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok();
    let open_to_all = |folder: &Path| {
        fs::metadata(folder).is_ok_and(|data| data.permissions().mode() & 0o001 != 0)
    };
    let reached = !geteuid().is_root() || folder.ancestors().all(open_to_all);
    writable && reached && folder.as_os_str().as_bytes().len() <= LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_lie_on_a_disk_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (memory, disk) = (made("memory", 0o755), made("disk", 0o755));
        let (closed, long) = (made("closed", 0o600), made(&"x".repeat(80), 0o755));
        let missing = folder.path().join("missing");
        let chosen = |usual: &Path, others: &[&PathBuf], disks: &[&PathBuf]| {
            let others = others.iter().map(|folder| (*folder).clone());
            choose(usual.to_owned(), others, |folder| disks.iter().any(|disk| *disk == folder))
        };
        assert_eq!(chosen(&disk, &[&memory], &[&disk]), disk);
        assert_eq!(chosen(&memory, &[&missing, &disk], &[&disk]), disk);
        assert_eq!(chosen(&memory, &[&long, &closed, &disk], &[&long, &closed, &disk]), disk);
        assert_eq!(chosen(&memory, &[&long, &missing], &[&long, &missing]), memory);
    }
}
