//! The watchman of a server: a shell that waits on a pipe whose other end this process holds and, however this
//! process ends, kills what carries the mark of the server's folder and removes the folder, if it is still that
//! one, and the memory that the server shared (`shared.rs` does the same where this process ends in good order).

use std::{
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use super::{environment, family::MARK, group::Group, private::PrivateFolder, runner};
use crate::{Error, ErrorKind, Result};

/// Starts the shell that cleans up after us.
pub(super) fn watch(folder: &PrivateFolder, group: Option<&Group>) -> Result<Child> {
    const SCRIPT: &str = r#"
        trap '' INT TERM HUP
        read -r _
        # One look at all processes, where grep(1) can take the parts of an environment for lines.
        if [ "$(printf 'a\000b' | grep -zxF b 2>/dev/null | tr -d '\000')" = b ]; then
            marked() { grep -lzxF -- "$1" /proc/[0-9]*/environ 2>/dev/null; }
        else
            marked() {
                for environ in /proc/[0-9]*/environ; do
                    tr '\0' '\n' < "$environ" 2>/dev/null | grep -qxF -- "$1" && echo "$environ"
                done
            }
        fi
        for round in 1 2 3; do
            [ -z "$4" ] || echo 1 > "$4/cgroup.kill"
            for environ in $(marked "$1=$2"); do
                pid=${environ#/proc/}; pid=${pid%/environ}
                [ "$pid" != "$$" ] &&
                    kill -KILL "$pid" $(cat /proc/"$pid"/task/*/children 2>/dev/null)
            done
            if [ "$(stat -c %d:%i -- "$2" 2>/dev/null)" = "$3" ]; then
                owner=$(stat -c %u -- "$2") all= wanted=
                pid=$2/data/postmaster.pid
                if [ "$(id -u)" = 0 ] && OWN; then
                    all=$owner
                    find /dev/shm -maxdepth 1 -type f -user "$owner" -exec rm -f -- {} +
                elif [ -f "$pid" ] && [ ! -L "$pid" ]; then
                    wanted=$(sed -n '7s/^ *\([0-9]*\)  *\([0-9]*\) *$/\1 \2/p' "$pid")
                fi
                while read -r key id _ _ _ _ used of _; do
                    if [ "$of" = "$all" ] ||
                        { [ "$key $id $of" = "$wanted $owner" ] && [ "$used" = 0 ]; }; then
                        ipcrm -m "$id"
                    fi
                done < /proc/sysvipc/shm
                rm -rf -- "$2"
            fi
            [ -z "$4" ] || rmdir "$4"
            [ -e "$2" ] || [ -e "$4" ] || break
        done"#;
    let mut watchman = Command::new("/bin/sh");
    environment::clear(&mut watchman, Path::new("/"));
    let script = SCRIPT.replace("OWN", &runner::test_in_shell("$owner"));
    let watchman = watchman
        .args(["-c", &script, "steelyard-watchman", MARK])
        .arg(folder.path())
        .arg(folder.identity()?)
        .args(group.map(Group::path).map(Path::as_os_str))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    watchman.map_err(|e| Error::new(ErrorKind::Io, "no /bin/sh to watch a server").with_source(e))
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command, thread};

    use super::{super::family::marked, *};

    #[test]
    fn the_watchman_kills_what_is_left_and_removes_the_folder() {
        let folder = PrivateFolder::make(&std::env::temp_dir(), "steelyard-").unwrap();
        fs::write(folder.path().join("data"), "x").unwrap();
        let mut watchman = watch(&folder, None).unwrap();
        let mut child = Command::new("sleep").arg("60").env(MARK, folder.path()).spawn().unwrap();
        while marked(folder.path()).is_empty() {
            thread::yield_now();
        }
        drop(watchman.stdin.take());
        watchman.wait().unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!folder.path().exists());
    }

    #[test]
    fn the_watchman_leaves_what_somebody_else_put_there() {
        let parent = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::make(parent.path(), "steelyard-").unwrap();
        let mut watchman = watch(&folder, None).unwrap();
        fs::rename(folder.path(), parent.path().join("moved")).unwrap();
        fs::create_dir(folder.path()).unwrap();
        fs::write(folder.path().join("data"), "x").unwrap();
        drop(watchman.stdin.take());
        watchman.wait().unwrap();
        assert!(folder.path().join("data").exists());
    }
}
