//! The environment of servers: only the variables that programs need to run are passed on. Whoever has full rights on a
//! server can read its environment (`COPY … FROM PROGRAM 'env'`), and a user's environment holds secrets
//! (`STEELYARD_PASSWORD`, `AWS_SECRET_ACCESS_KEY`).

use std::{
    env,
    ffi::{OsStr, OsString},
    path::Path,
    process::Command,
};

/// What is passed on: where programs and libraries are, language, time zone, the place for temporary files. Libraries
/// are among it as who loads one with `LD_PRELOAD` wants it in the server, too.
const PASSED: [&str; 7] =
    ["PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD"];

fn is_passed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| PASSED.contains(&name) || name.starts_with("LC_"))
}

/// Leaves to a command of the environment only what is passed on, and a home of its own.
pub(super) fn clear(command: &mut Command, home: &Path) {
    command.env_clear();
    command.envs(env::vars_os().filter(|(name, _): &(OsString, _)| is_passed(name)));
    command.env("HOME", home);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_programs_need_is_passed_on() {
        for name in ["PATH", "LC_ALL", "LD_PRELOAD"] {
            assert!(is_passed(OsStr::new(name)), "{name}");
        }
        for name in ["STEELYARD_PASSWORD", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "HOME", "ALC_"] {
            assert!(!is_passed(OsStr::new(name)), "{name}");
        }
        let mut command = Command::new("env");
        clear(&mut command, Path::new("/nowhere"));
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(said.lines().any(|line| line == "HOME=/nowhere"), "{said}");
        // Those of cargo, which has started this.
        assert!(env::vars().any(|(name, _)| name.starts_with("CARGO")));
        assert!(!said.contains("CARGO"), "{said}");
    }
}
