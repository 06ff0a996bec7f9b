//! strace on the processes of a store, and what it showed so far.

use std::{path::Path, time::Duration};

use super::{
    seen_files::Proc,
    syncs::{self, Syncs},
};
use crate::{
    Result,
    strace::{Calls, Watch},
};

/// Processes under strace, and what was seen of them so far.
pub(super) struct Sight {
    watch: Watch,
    calls: Calls,
    syncs: Syncs,
    files: Proc,
    /// Who makes calls that name no thread.
    alone: u32,
}

impl Sight {
    /// From now on, of a store whose data lie there, where that is known.
    ///
    /// # Errors
    /// Where strace cannot look.
    pub(super) fn begin(processes: &[u32], folder: Option<&Path>) -> Result<Sight> {
        let alone = processes.first().copied().unwrap_or_default();
        let watch = Watch::of_files(processes, syncs::CALLS)?;
        let (calls, syncs, files) = (Calls::default(), Syncs::of(folder), Proc::default());
        Ok(Sight { watch, calls, syncs, files, alone })
    }

    /// Takes in what has been printed so far. In this process other threads, and this one as it looks
    /// files up, may make calls without end: so many at most.
    pub(super) fn catch_up(&mut self) {
        const MOST: usize = 1_000;
        for _ in 0..MOST {
            if !self.wait(Duration::ZERO) {
                break;
            }
        }
    }

    /// Takes in all there was. Only what has ended is sure to have been read to its end.
    pub(super) fn end(mut self) -> Result<Syncs> {
        for line in self.watch.end()? {
            if let Some(call) = self.calls.ended(&line) {
                self.syncs.take(&call, self.alone, &mut self.files);
            }
        }
        Ok(self.syncs)
    }

    /// Takes in one line, waiting for it so long; false where none came.
    pub(super) fn wait(&mut self, patience: Duration) -> bool {
        let Some(line) = self.watch.next_within(patience) else { return false };
        if let Some(call) = self.calls.ended(&line) {
            self.syncs.take(&call, self.alone, &mut self.files);
        }
        true
    }

    /// Whether a sync was seen where the data lie.
    pub(super) fn synced(&self, in_memory: bool) -> bool {
        self.syncs.where_data_lie(in_memory).count() > 0
    }
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        io::{BufRead, BufReader, Write},
        process::{Command, Stdio},
    };

    use super::*;

    /// Syncs once for each line it reads, in the way that its first argument says.
    const SYNCS: &str = r#"
import ctypes, mmap, os, sys
kind, folder = sys.argv[1], sys.argv[2]
name = lambda n: os.path.join(folder, n)
open_ = lambda n, more=0: os.open(name(n), os.O_RDWR | os.O_CREAT | more)
fd = open_("data", os.O_DSYNC if kind == "dsync" else 0)
os.write(fd, b"x" * 4096)
mapped = mmap.mmap(fd, 4096) if kind in ("msync", "mapped") else None
memory = os.memfd_create("m")
os.write(memory, b"x" * 4096)
mapped_memory = mmap.mmap(memory, 4096)
at = os.open(folder, os.O_RDONLY)
shm = os.open("/dev/shm/steelyard-%d" % os.getpid(), os.O_RDWR | os.O_CREAT)
os.unlink("/dev/shm/steelyard-%d" % os.getpid())
gone = open_("gone"); os.unlink(name("gone"))
other = os.open(os.path.join(folder, "..", "other"), os.O_RDWR | os.O_CREAT)
os.fsync(fd)
print("ready", flush=True)
for line in sys.stdin:
    if kind == "fsync": os.write(fd, b"y"); os.fsync(fd)
    if kind == "twice": os.write(fd, b"y"); os.fsync(fd); os.fdatasync(fd)
    if kind == "dsync": os.write(fd, b"y")
    if kind == "msync": mapped[0] = 1; mapped.flush()
    if kind == "mapped": mapped[0] = 1; os.fdatasync(fd)
    if kind == "renamed":
        new = open_("new"); os.write(new, b"y"); os.rename(name("new"), name("data"))
        os.close(new); new = open_("data"); os.fsync(new); os.close(new)
    if kind == "sync": os.write(fd, b"y"); os.sync()
    if kind == "memfd": os.write(fd, b"y"); os.write(memory, b"y"); os.fsync(memory)
    if kind == "memory": os.write(fd, b"y"); mapped_memory[0] = 1; mapped_memory.flush()
    if kind == "tmpfs": os.write(fd, b"y"); os.write(shm, b"y"); os.fdatasync(shm)
    if kind == "unwritten": os.fsync(fd)
    if kind == "folder": os.write(fd, b"y"); os.fsync(at)
    if kind == "gone": os.write(fd, b"y"); os.write(gone, b"y"); os.fsync(gone)
    if kind == "elsewhere": os.write(fd, b"y"); os.write(other, b"y"); os.fsync(other)
    print("done", flush=True)
"#;

    /// Syncs that count of a program that syncs 10 times in this way, and all others.
    fn seen(kind: &str) -> (u64, u64) {
        let around = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let folder = around.path().join("data");
        std::fs::create_dir(&folder).unwrap();
        let mut python = Command::new("python3");
        python.args(["-c", SYNCS, kind]).arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = python.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut stdin = child.stdin.take().unwrap();
        assert_eq!(said.next().as_deref(), Some("ready"));
        let mut sight = Sight::begin(&[child.id()], Some(&folder)).unwrap();
        for _ in 0..10 {
            stdin.write_all(b"\n").unwrap();
            assert_eq!(said.next().as_deref(), Some("done"));
            sight.catch_up();
        }
        let found = sight.end().unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success());
        println!("{kind}: {found:?}");
        (found.disk.count(), found.idle.values().sum())
    }

    #[test]
    fn only_syncs_of_what_was_written_to_a_disk_count() {
        let there = |program| Command::new(program).arg("--version").output().is_ok();
        if !there("strace") || !there("python3") {
            assert!(env::var_os("STEELYARD_REQUIRE_SERVERS").is_none(), "strace and python3");
            eprintln!("there is no strace or no python3 on this machine: not tried");
            return;
        }
        for kind in ["fsync", "dsync", "msync", "mapped", "renamed", "sync"] {
            assert_eq!(seen(kind), (10, 0), "{kind}");
        }
        assert_eq!(seen("twice"), (10, 10));
        for kind in ["memfd", "memory", "tmpfs", "unwritten", "folder", "gone", "elsewhere"] {
            assert_eq!(seen(kind), (0, 10), "{kind}");
        }
    }
}
