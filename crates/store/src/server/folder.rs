//! The folder in which private servers, and stores inside this process, keep their data.

use std::{
    env,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use nix::unistd::{AccessFlags, access, geteuid};

use super::{find, runner::open_to_all};
use crate::durability::Medium;

/// The longest name of a folder that sockets fit in: sockaddr_un has 108 bytes, of which a server's own
/// folder and its socket (`/steelyard-ABCDEFGHIJ/.s.PGSQL.65535`) take up to 40.
const LONGEST: usize = 108 - 40;

/// Where data lie: in the place for temporary files (`TMPDIR`, else `/tmp`). Where that will not do (it is
/// memory, as `/tmp` is on Fedora and Arch Linux; its name is too long for sockets; this process is root's,
/// and no other user may enter it), it is the first of `/var/tmp`, the user's cache folder and the working
/// directory that does. Where none does, it is the place for temporary files.
pub fn data_folder() -> PathBuf {
    let others = [Some(PathBuf::from("/var/tmp")), find::cache(), env::current_dir().ok()];
    choose(env::temp_dir(), others.into_iter().flatten(), volatile)
}

/// Says where data lie, where that is not the place for temporary files; none where it is.
pub fn elsewhere() -> Option<String> {
    let (usual, chosen) = (env::temp_dir(), data_folder());
    let why = unfit(&usual, &volatile).filter(|_| usual != chosen)?;
    Some(format!("The data are in {}: {} {why}.", chosen.display(), usual.display()))
}

fn choose(
    usual: PathBuf,
    mut others: impl Iterator<Item = PathBuf>,
    volatile: impl Fn(&Path) -> Option<String>,
) -> PathBuf {
    match unfit(&usual, &volatile) {
        None => usual,
        Some(_) => others.find(|folder| unfit(folder, &volatile).is_none()).unwrap_or(usual),
    }
}

/// Why a folder is on no disk: `is on tmpfs, which is memory`. What the system does not tell of is taken for
/// a disk, as most are.
fn volatile(folder: &Path) -> Option<String> {
    let medium = Medium::of(folder)?;
    Some(format!("is on {}, {}", medium.filesystem, medium.volatile?))
}

/// Why servers cannot have their folders in this one, or should not.
fn unfit(folder: &Path, volatile: &impl Fn(&Path) -> Option<String>) -> Option<String> {
    let writable = access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok();
    if !writable {
        return Some("cannot be written".into());
    }
    if folder.as_os_str().as_bytes().len() > LONGEST {
        return Some(format!("has a name of over {LONGEST} bytes, too long for sockets"));
    }
    // Servers do not run as root.
    if geteuid().is_root() && !open_to_all(folder) {
        return Some("cannot be entered by the users who run servers in place of root".into());
    }
    volatile(folder)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

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
            let memory = |folder: &Path| {
                (!disks.iter().any(|disk| *disk == folder)).then(|| "is memory".to_owned())
            };
            choose(usual.to_owned(), others, memory)
        };
        assert_eq!(chosen(&disk, &[&memory], &[&disk]), disk);
        assert_eq!(chosen(&memory, &[&missing, &disk], &[&disk]), disk);
        assert_eq!(chosen(&memory, &[&long, &closed, &disk], &[&long, &closed, &disk]), disk);
        assert_eq!(chosen(&memory, &[&long, &missing], &[&long, &missing]), memory);
        assert_eq!(chosen(&long, &[&disk], &[&long, &disk]), disk);
    }
}
