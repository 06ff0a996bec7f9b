//! A control group (cgroups(7), version 2) for each server, where one may be made: the kernel then adds
//! up the processor time of all its processes, those that have ended too, to the microsecond.
//!
//! It is made inside of our own and limits nothing: no controller is switched on for it, and those
//! of the groups around it hold as before. Where there is none to be had (no version 2, or no leave to
//! make one), processor time is read from `/proc`, in hundredths of a second.

use std::{
    ffi::OsStr,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// A control group, removed with its value.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    /// One of this name, if there may be one.
    pub(super) fn new(name: &OsStr) -> Option<Group> {
        let read = |file: &str| fs::read_to_string(file).ok();
        let path = own(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?)?.join(name);
        fs::create_dir(&path).ok()?;
        let group = Group(path);
        // There are machines on which it may be made, and nobody may be put in; or nothing is counted.
        let mut tried = Group::waiting(Path::new("/bin/sh")).args(["-c", "exit 7"]).spawn().ok()?;
        let admitted = group.admit(&mut tried);
        let went_on = tried.wait().ok()?.code() == Some(7);
        (admitted.is_ok() && went_on && group.used().is_some()).then_some(group)
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Processor time so far, in user mode and in the kernel.
    pub(super) fn used(&self) -> Option<(Duration, Duration)> {
        times(&fs::read_to_string(self.0.join("cpu.stat")).ok()?)
    }

    /// The command that becomes this program once it is [admitted](Group::admit): a shell that waits
    /// for a word, so that nothing the program starts can be outside.
    pub(super) fn waiting(binary: &Path) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", r#"read -r _ && exec "$@" < /dev/null"#, "steelyard"]);
        shell.arg(binary).stdin(Stdio::piped());
        shell
    }

    /// Takes in what [`waiting`](Group::waiting) has started, and lets it go on.
    ///
    /// # Errors
    /// Where it may not be taken in; it then ends.
    pub(super) fn admit(&self, child: &mut Child) -> io::Result<()> {
        let word = child.stdin.take();
        fs::write(self.0.join("cgroup.procs"), child.id().to_string())?;
        word.map_or(Ok(()), |mut word| word.write_all(b"\n"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // All in it have ended; where one has not, the watchman comes after us.
        let _ = fs::remove_dir(&self.0);
    }
}

/// The folder of the control group of the process whose `mountinfo` and `cgroup` of proc(5) these are.
fn own(mounts: &str, groups: &str) -> Option<PathBuf> {
    let place = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    mounts.lines().find_map(|line| {
        // "… root mount-point options … - type source options"
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let inside = Path::new("/").join(place);
        let inside = inside.strip_prefix(root).ok()?;
        (after.split(' ').next() == Some("cgroup2")).then(|| Path::new(point).join(inside))
    })
}

/// Processor time in user mode and in the kernel, from `cpu.stat`.
fn times(stat: &str) -> Option<(Duration, Duration)> {
    let micros = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.parse().ok().map(Duration::from_micros)
    };
    Some((micros("user_usec")?, micros("system_usec")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_where_version_2_is_mounted() {
        let mounts = "24 1 0:22 / /proc rw - proc proc rw\n\
                      30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 none rw\n";
        let found = |groups| own(mounts, groups);
        assert_eq!(
            found("1:cpu:/a\n0::/user.slice/b\n").unwrap(),
            Path::new("/sys/fs/cgroup/unified/user.slice/b")
        );
        assert_eq!(found("0::/\n").unwrap(), Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(found("1:cpu:/a\n"), None);
        assert_eq!(own("30 24 0:26 / /cpu rw - cgroup cgroup rw", "0::/\n"), None);
        // A container that is shown a part.
        let part = "31 24 0:27 /docker/1 /sys/fs/cgroup rw - cgroup2 none rw";
        assert_eq!(own(part, "0::/docker/1/x\n").unwrap(), Path::new("/sys/fs/cgroup/x"));
        assert_eq!(own(part, "0::/docker/2\n"), None);
    }

    #[test]
    fn times_are_microseconds() {
        let stat = "usage_usec 30\nuser_usec 10\nsystem_usec 20\nnice_usec 0\n";
        let micros = Duration::from_micros;
        assert_eq!(times(stat), Some((micros(10), micros(20))));
        assert_eq!(times("usage_usec 30\n"), None);
    }

    #[test]
    fn what_a_program_and_its_children_use_is_added_up() {
        let name = format!("steelyard-test-{}", std::process::id());
        let Some(group) = Group::new(OsStr::new(&name)) else {
            eprintln!("no control group may be made here: not tried");
            return;
        };
        let mut command = Group::waiting(Path::new("/bin/sh"));
        // A child that works and ends, and what it was started by.
        command.args(["-c", "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); true"]);
        let mut child = command.spawn().unwrap();
        let before = group.used().unwrap().0;
        group.admit(&mut child).unwrap();
        assert!(child.wait().unwrap().success());
        let used = group.used().unwrap().0 - before;
        assert!(used > Duration::from_millis(5), "{used:?}");
        let path = group.path().to_owned();
        assert!(path.exists());
        drop(group);
        assert!(!path.exists());
        // Nobody takes this one in: it ends.
        let mut lost = Group::waiting(Path::new("/bin/sh")).args(["-c", "true"]).spawn().unwrap();
        drop(lost.stdin.take());
        assert!(!lost.wait().unwrap().success());
    }
}
