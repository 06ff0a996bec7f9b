//! Symbolic links that another user may have planted.
//!
//! In a folder where everybody may make files, as `/tmp`, somebody may have put a link under a name that can be guessed,
//! so that what we write goes where they could not write. Such a link is not followed. It is the rule of
//! `fs.protected_symlinks` in proc_sys_fs(5), which is not switched on everywhere.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

use nix::unistd::geteuid;

use crate::{Error, ErrorKind, Result};

/// Links that are followed in one path, as many as Linux does.
const MOST: u32 = 40;

/// The path with all links in it followed, also where there is nothing at its end yet. Whoever opens that, and no
/// link, opens what was looked at.
///
/// # Errors
/// [`Denied`](ErrorKind::Denied) where another user's link lies in a folder that everybody may write to, and that is
/// sticky, unless the folder is that user's, too. Those of reading links and folders.
pub fn followed(path: &Path) -> Result<PathBuf> {
    let mut at = std::env::current_dir()?;
    let mut rest = parts(path);
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        match fs::symlink_metadata(&next) {
            Ok(link) if link.is_symlink() => {
                trusted(&next, &link, &fs::metadata(&at)?)?;
                links += 1;
                if links > MOST {
                    return Err(
                        io::Error::from_raw_os_error(nix::errno::Errno::ELOOP as i32).into()
                    );
                }
                rest.extend(parts(&fs::read_link(&next)?));
            }
            Ok(_) => at = next,
            // What is not there, or below a file, is whoever opens it to say.
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                at = next;
                at.extend(rest.into_iter().rev());
                break;
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(at)
}

/// A file that is to have what others may not read: if there is one at this path, that it is a regular file of this user,
/// which from now on nobody else may open.
///
/// # Errors
/// [`Denied`](ErrorKind::Denied) where it is another user's, or a link of another user; [`Invalid`](ErrorKind::Invalid) where it
/// is no regular file.
pub fn private(path: &Path) -> Result<()> {
    let named = |e: Error| e.in_place(path.display().to_string());
    let own = |found: &fs::Metadata| match found.uid() == geteuid().as_raw() {
        true => Ok(()),
        false => {
            let what = "another user owns it, and could read what is written to it";
            let e = Error::new(ErrorKind::Denied, what);
            Err(named(e.with_hint("remove it, or name another file")))
        }
    };
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(named(e.into())),
    };
    own(&found)?;
    let found = match fs::metadata(path) {
        Ok(found) => found,
        // A link of ours to nothing.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(named(e.into())),
    };
    own(&found)?;
    if !found.is_file() {
        return Err(named(Error::invalid("it is not a regular file")));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .map_err(|e| named(e.into()))?;
    }
    Ok(())
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

fn trusted(path: &Path, link: &fs::Metadata, folder: &fs::Metadata) -> Result<()> {
    const STICKY: u32 = 0o1000;
    const ALL_WRITE: u32 = 0o002;
    let shared = folder.mode() & (STICKY | ALL_WRITE) == STICKY | ALL_WRITE;
    if !shared || [geteuid().as_raw(), folder.uid()].contains(&link.uid()) {
        return Ok(());
    }
    let what = format!(
        "{} is a link of another user in a world-writable folder, and is not followed",
        path.display()
    );
    Err(Error::new(ErrorKind::Denied, what).with_hint("remove it, or name another file"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    #[test]
    fn a_private_file_is_ours_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().mode() & 0o777;
        private(&at("none")).unwrap();
        fs::write(at("wide"), "x").unwrap();
        fs::set_permissions(at("wide"), fs::Permissions::from_mode(0o666)).unwrap();
        private(&at("wide")).unwrap();
        assert_eq!(mode("wide"), 0o600);
        symlink(at("wide"), at("link")).unwrap();
        symlink(at("none"), at("nowhere")).unwrap();
        private(&at("link")).unwrap();
        private(&at("nowhere")).unwrap();
        assert_eq!(private(folder.path()).unwrap_err().kind(), ErrorKind::Invalid);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(private(&at("pipe")).unwrap_err().kind(), ErrorKind::Invalid);
        if geteuid().is_root() {
            let other = Some(nix::unistd::Uid::from_raw(65_534));
            nix::unistd::chown(&at("wide"), other, None).unwrap();
            for name in ["wide", "link"] {
                assert_eq!(private(&at(name)).unwrap_err().kind(), ErrorKind::Denied, "{name}");
            }
            lchown(at("nowhere"), Some(65_534), None).unwrap();
            assert_eq!(private(&at("nowhere")).unwrap_err().kind(), ErrorKind::Denied);
        }
    }

    #[test]
    fn links_are_followed_as_the_system_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/file"), "x").unwrap();
        symlink("a/b", at("relative")).unwrap();
        symlink(at("a"), at("absolute")).unwrap();
        symlink("../../relative/file", at("a/b/twice")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for name in [
            "a/b/file",
            "relative/file",
            "absolute/b/file",
            "relative/twice",
            "relative/../b/./file",
            "relative//twice",
            ".",
            "relative/..",
        ] {
            assert_eq!(followed(&at(name)).unwrap(), fs::canonicalize(at(name)).unwrap(), "{name}");
        }
        assert!(followed(&at("loop")).is_err());
        symlink("new", at("dangling")).unwrap();
        for (name, want) in [
            ("new", "new"),
            ("dangling", "new"),
            ("relative/new", "a/b/new"),
            ("none/../a", "none/../a"),
            ("a/b/file/x", "a/b/file/x"),
        ] {
            assert_eq!(followed(&at(name)).unwrap(), at(want), "{name}");
        }
        let here = std::env::current_dir().unwrap();
        assert_eq!(followed(Path::new("no-such")).unwrap(), here.join("no-such"));
        assert_eq!(followed(Path::new("/..")).unwrap(), Path::new("/"));
    }

    /// A folder as /tmp, with a link of another user, at the end of a path and within.
    #[test]
    fn links_that_others_planted_are_not_followed() {
        if !geteuid().is_root() {
            return crate::skips::Missing::allowed("not root: a link of another user").say();
        }
        const OTHER: u32 = 65534;
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("real")).unwrap();
        let link = folder.path().join("link");
        for (mode, owner, of_folder, follows) in [
            (0o1777, OTHER, 0, false),
            (0o1777, 0, 0, true),
            (0o1777, 0, OTHER, true),
            (0o1777, OTHER, OTHER, true),
            (0o755, OTHER, 0, true),
            (0o777, OTHER, 0, true),
        ] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(folder.path(), Some(of_folder), None).unwrap();
            let _ = fs::remove_file(&link);
            symlink("real", &link).unwrap();
            lchown(&link, Some(owner), None).unwrap();
            for path in [link.clone(), link.join("new"), link.join("../real")] {
                let found = followed(&path);
                assert_eq!(found.is_ok(), follows, "{mode:o} {owner} {of_folder}: {found:?}");
                if let Err(e) = found {
                    assert_eq!(e.kind(), ErrorKind::Denied);
                    assert!(e.to_string().contains("link is a link of another user"), "{e}");
                }
            }
        }
    }
}
