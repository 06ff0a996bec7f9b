//! Where programs are.

use std::{
    env,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

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

/// The folder for servers that no package manager has: scripts put them there.
pub(super) fn own_folder() -> Option<PathBuf> {
    if let Some(folder) = env::var_os("STEELYARD_SERVERS") {
        return Some(folder.into());
    }
    Some(cache()?.join("steelyard/servers"))
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
