//! The clients that are known by a word, and how each becomes a program. Any other word is a program
//! itself.
//!
//! To add one: a line in [`KNOWN`] and its arm in [`program`], or none of both: `--client PROGRAM`
//! takes whatever speaks the protocol (`docs/cache.md`).

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use nix::sys::signal::Signal;

use super::{super::child, adapter, peer::Program};
use crate::{Error, Result, stop::Stop};

/// The clients that are measured where nobody names any: those that are installed.
pub const KNOWN: [&str; 6] =
    [adapter::FLOOR, adapter::STEELYARD, "steelyard-async", LIBMEMCACHED, "pymemcache", "pylibmc"];

const LIBMEMCACHED: &str = "libmemcached";
/// What compiles the one in C.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// The program of a client. What has to be made for it is made in `folder`; `own` is this program.
///
/// # Errors
/// [`Unavailable`](crate::ErrorKind::Unavailable) with what is missing and how to install it.
pub(super) fn program(name: &str, own: &Path, folder: &Path, stop: &Stop) -> Result<Program> {
    match name {
        _ if adapter::OWN.contains(&name) => {
            let args = ["bench", "cache-adapter", name].map(str::to_owned).to_vec();
            Ok(Program { path: own.to_path_buf(), args })
        }
        LIBMEMCACHED => {
            let path = compiled(folder, stop)?;
            Ok(Program { path, args: Vec::new() })
        }
        "pymemcache" | "pylibmc" => {
            let script = put(folder, "peer.py", include_str!("peers/peer.py"))?;
            let args = vec![script.display().to_string(), name.to_owned()];
            Ok(Program { path: "python3".into(), args })
        }
        _ => {
            let mut words = name.split_whitespace().map(str::to_owned);
            match words.next() {
                Some(path) if path.contains('/') => {
                    Ok(Program { path: path.into(), args: words.collect() })
                }
                _ => Err(Error::invalid(format!(
                    "no client {name:?}; known: {}; or the path of a program that speaks the \
                     adapters' protocol",
                    KNOWN.join(", ")
                ))),
            }
        }
    }
}

fn put(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|e| Error::from(e).in_place(path.display().to_string()))?;
    Ok(path)
}

/// The adapter in C, made against the library that is installed.
fn compiled(folder: &Path, stop: &Stop) -> Result<PathBuf> {
    let source = put(folder, "libmemcached.c", include_str!("peers/libmemcached.c"))?;
    let program = folder.join("libmemcached");
    let install = "to install it: apt-get install libmemcached-dev gcc";
    for compiler in COMPILERS {
        let mut command = Command::new(compiler);
        command.args(["-O2", "-o"]).arg(&program).arg(&source).args(["-lmemcached", "-lpthread"]);
        // What it leaves when it is killed goes with the folder.
        command.env("TMPDIR", folder);
        match child::output(&mut command, &[Signal::SIGKILL], &|| stop.is_set()) {
            Ok(made) if made.status.success() => return Ok(program),
            Ok(made) => {
                let said = String::from_utf8_lossy(&made.stderr);
                let first = said.lines().find(|line| line.contains("error")).unwrap_or("");
                let what = format!("libmemcached cannot be compiled with ({first}); {install}");
                return Err(Error::unavailable(what));
            }
            Err(_) => stop.check()?,
        }
    }
    Err(Error::unavailable(format!("there is no C compiler; {install}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_a_word_or_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let none = Stop::default();
        let of = |name: &str| program(name, Path::new("steelyard"), folder.path(), &none);
        assert_eq!(of("floor").unwrap().args, ["bench", "cache-adapter", "floor"]);
        assert_eq!(of("pylibmc").unwrap().path, Path::new("python3"));
        let own = of("./mine --fast x").unwrap();
        assert_eq!((own.path.as_path(), own.args.len()), (Path::new("./mine"), 2));
        let error = of("dalli").unwrap_err().to_string();
        assert!(error.contains("pymemcache"), "{error}");
    }
}
