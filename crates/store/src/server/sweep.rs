//! Sweeping the folders of servers whose process was killed together with the server's watchman (by the system, for
//! want of memory; by SIGKILL to all). The server in it, if it still runs, is killed.
//!
//! A folder is swept where it is this user's own (root's are its servers' users'), nobody else may enter it, and its
//! lock says that its process has ended ([`PrivateFolder::is_abandoned`]). Folders of versions that made no lock stay.

use std::{fs, path::Path, sync::Once};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, geteuid},
};

use super::{family::family, private::PrivateFolder, runner};

/// What the name of a server's folder begins with; random letters and digits follow.
pub(super) const NAME: &str = "steelyard-";

/// Sweeps once in a process.
pub(super) fn once(parent: &Path) {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| sweep(parent));
}

fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !is_name(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let Ok(Some(folder)) = PrivateFolder::open_of(&entry.path(), is_ours) else { continue };
        if folder.is_abandoned() {
            for process in family(folder.path()) {
                let _ = kill(Pid::from_raw(process.pid as i32), Signal::SIGKILL);
            }
            let _ = folder.remove();
        }
    }
}

fn is_name(name: &str) -> bool {
    let random = name.strip_prefix(NAME).unwrap_or_default();
    !random.is_empty() && random.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Whether this user made the folder of this owner: root gives each to a user of the server's own.
fn is_ours(owner: u32) -> bool {
    owner == geteuid().as_raw() || geteuid().is_root() && runner::is_own(owner)
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{PermissionsExt, chown},
        path::PathBuf,
        process::Command,
    };

    use super::{
        super::family::{MARK, marked},
        *,
    };

    fn left(parent: &Path, name: &str, mode: u32) -> PathBuf {
        let folder = parent.join(name);
        fs::create_dir_all(folder.join("data")).unwrap();
        fs::write(folder.join(".lock"), "").unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn what_a_killed_process_left_is_swept_with_its_server_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str, mode| left(parent.path(), name, mode);
        let dead = at("steelyard-abcDEF0123", 0o700);
        let mut server = Command::new("sleep").arg("600").env(MARK, &dead).spawn().unwrap();
        while marked(&dead).is_empty() {
            std::thread::yield_now();
        }
        let alive = PrivateFolder::make(parent.path(), NAME).unwrap();
        let lock = alive.lock().unwrap();
        let mut stay = vec![
            alive.path().to_owned(),
            at("steelyard-bench-abcDEF0123", 0o700),
            at("steelyard-open", 0o755),
            at("other", 0o700),
        ];
        let unlocked = at("steelyard-unlocked", 0o700);
        fs::remove_file(unlocked.join(".lock")).unwrap();
        stay.push(unlocked);
        if geteuid().is_root() {
            let (others, servers) = (at("steelyard-others", 0o700), at("steelyard-own", 0o700));
            chown(&others, Some(65_533), None).unwrap();
            chown(&servers, runner::Runner::own().map(|runner| runner.user), None).unwrap();
            stay.push(others);
            sweep(parent.path());
            assert!(!servers.exists());
        }
        sweep(parent.path());
        assert!(!dead.exists() && !server.wait().unwrap().success());
        for folder in stay {
            assert!(folder.exists(), "{}", folder.display());
        }
        drop(lock);
        sweep(parent.path());
        assert!(!alive.path().exists());
    }
}
