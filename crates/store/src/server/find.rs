//! Finds programs on this machine.

use std::{
    env,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use nix::unistd::{getegid, geteuid};

/// Folders beyond PATH in which servers lie on usual systems.
const USUAL: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin"];

/// The program of this name: on PATH first, then in the folder for servers
/// (`STEELYARD_SERVERS`, else `steelyard/servers` in the user's cache), then where systems put them.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    if let Some(own) = own_folder() {
        folders.push(own.join("bin"));
        folders.push(own);
    }
    folders.extend(USUAL.map(PathBuf::from));
    folders.extend(postgres_folders());
    folders.into_iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

/// The folder for servers that no package manager has: scripts put them there. None where another user can put something
/// there: programs of it are run, and templates are copied.
pub(super) fn own_folder() -> Option<PathBuf> {
    let folder = match env::var_os("STEELYARD_SERVERS") {
        Some(folder) => folder.into(),
        None => cache()?.join("steelyard/servers"),
    };
    is_private(&folder).then_some(folder)
}

/// Whether nobody but root and this user can change what is at a path, or put something else there: neither it nor any
/// folder on the way is of another user, or writable by one. What is not there yet can be made.
pub(super) fn is_private(path: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    let Ok(whole) = path.canonicalize() else { return !path.exists() };
    whole.ancestors().all(|folder| {
        let Ok(data) = folder.metadata() else { return false };
        let is_ours = [0, geteuid().as_raw()].contains(&data.uid());
        let mode = data.mode();
        // A group of one's own is usual (umask 002).
        let by_group = mode & 0o020 != 0 && ![0, getegid().as_raw()].contains(&data.gid());
        // In a sticky folder nobody renames what is another's.
        let sticky = mode & STICKY != 0 && folder != whole;
        is_ours && (sticky || !by_group && mode & 0o002 == 0)
    })
}

/// The user's folder for files that can be made again (the XDG base directory specification).
pub(super) fn cache() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))
}

/// Debian keeps each version of PostgreSQL in a folder of its own; the newest comes first.
fn postgres_folders() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/usr/lib/postgresql") else { return Vec::new() };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.parse().ok()?, path.join("bin")))
        })
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The first line a program prints when it is asked for its version.
pub(super) fn version(binary: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new(binary)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .ok()?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_others_can_write_is_not_private() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("outer/inner"));
        fs::create_dir_all(&inner).unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        for (outside, inside, private) in [
            (0o700, 0o700, true),
            (0o755, 0o755, true),
            (0o777, 0o700, false),
            (0o1777, 0o700, true),
            (0o700, 0o1777, false),
        ] {
            mode(&outer, outside).unwrap();
            mode(&inner, inside).unwrap();
            assert_eq!(is_private(&inner), private, "{outside:o} {inside:o}");
        }
        assert!(is_private(&folder.path().join("not-there")));
    }
}
