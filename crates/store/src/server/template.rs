//! Data folders that take seconds to make: made once for each version of a server, kept beside the other
//! servers' files, and copied.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Plan, Runner, find};
use crate::{Error, Result};

/// Fills the folder `data`: with a copy of the template of this name, which is made by `install` first if
/// need be. Without a name, or where templates cannot be kept, it is made each time.
///
/// # Errors
/// Those of `install`; where it cannot be copied.
pub(super) fn provide(
    plan: &Plan,
    data: &Path,
    name: Option<String>,
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let place = |name| Some(find::own_folder()?.join("templates").join(name));
    let Some(template) = name.and_then(place) else { return install() };
    if !find::is_private(&template) {
        return install();
    }
    if template.is_dir() {
        let copied = copy(&template, data, plan.runner);
        return copied.map_err(|e| Error::from(e).in_place(template.display().to_string()));
    }
    install()?;
    // For the next time. Where it cannot be kept, nothing is lost but time.
    let _ = keep(data, &template);
    Ok(())
}

/// The name of the template of a version.
pub(super) fn name(server: &str, version: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-+".contains(c) { c } else { '_' };
    format!("{server}-{}", version.chars().map(plain).collect::<String>())
}

/// Copies a new data folder to where the template shall be: as a whole or not at all, also where
/// two do it at once.
fn keep(data: &Path, template: &Path) -> io::Result<()> {
    let parent: PathBuf = template.parent().ok_or(io::ErrorKind::NotFound)?.into();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&parent)?;
    sweep(&parent);
    let new = tempfile::Builder::new().prefix(NEW).tempdir_in(parent)?;
    copy(data, &new.path().join("data"), None)?;
    fs::rename(new.path().join("data"), template)
}

/// What the name of a template begins with that is just being made.
const NEW: &str = "new-";

/// Removes what processes have left that were killed while they made a template. Making one takes seconds.
fn sweep(parent: &Path) {
    const OLD: Duration = Duration::from_secs(3600);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let made = entry.metadata().and_then(|data| data.modified());
        let is_old = made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > OLD));
        if is_old && entry.file_name().to_string_lossy().starts_with(NEW) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Copies a folder and all in it, for nobody but its owner to enter.
fn copy(from: &Path, to: &Path, owner: Option<Runner>) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(to)?;
    let give = |path: &Path| owner.map_or(Ok(()), |owner| owner.give(path));
    give(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&entry.path(), &to, owner)?,
            kind if kind.is_file() => {
                fs::copy(entry.path(), &to)?;
                give(&to)?;
            }
            // Sockets and the like belong to the server that made them.
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_are_names_of_files() {
        assert_eq!(name("mysql", "10.11.6-MariaDB-0+deb12u1"), "mysql-10.11.6-MariaDB-0+deb12u1");
        assert_eq!(name("postgres", "../18beta1 (x)"), "postgres-.._18beta1__x_");
    }

    #[test]
    fn nobody_else_may_enter_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("base/1")).unwrap();
        fs::write(from.join("base/1/file"), "x").unwrap();
        copy(&from, &to, None).unwrap();
        assert_eq!(fs::read(to.join("base/1/file")).unwrap(), b"x");
        for inner in ["", "base", "base/1"] {
            let mode = fs::metadata(to.join(inner)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{inner}");
        }
        assert!(copy(&from, &to, None).is_err(), "it is there");
    }
}
