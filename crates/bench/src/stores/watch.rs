//! What a server and its folder use, read from outside: processor time, memory, bytes written
//! (rule 19), bytes on disk (rule 20).
//!
//! Processor time is that of the server's control group, where it has one, else the processor clock of each of its processes:
//! a window may be shorter than the hundredths of a second that `/proc` counts in. How much of it was in the kernel, and
//! processes that have ended meanwhile, which stand in their parents' (proc(5)), are known in hundredths only. All else is
//! read from `/proc` for all its processes (a group's memory would count the files that the kernel keeps for it).

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use nix::{time::clock_getcpuclockid, unistd::Pid};

use crate::{
    results::{Bytes, ServerUse},
    server::Server,
};

/// What all processes of a server have used so far, and the memory they have now.
pub(crate) fn used(server: &Server) -> ServerUse {
    let add = |sum: ServerUse, one: ServerUse| ServerUse {
        user_ns: sum.user_ns + one.user_ns,
        system_ns: sum.system_ns + one.system_ns,
        memory: sum.memory + one.memory,
        written: sum.written + one.written,
    };
    let all = server.processes().into_iter().map(of_process).fold(ServerUse::default(), add);
    match server.used() {
        Some((user, system)) => ServerUse {
            user_ns: user.as_nanos() as u64,
            system_ns: system.as_nanos() as u64,
            ..all
        },
        None => all,
    }
}

/// What was used between two looks; the memory is that of the second. The sum of both times is exact, where their parts are not.
pub(crate) fn between(before: &ServerUse, after: &ServerUse) -> ServerUse {
    let sum = |used: &ServerUse| used.user_ns + used.system_ns;
    let all = sum(after).saturating_sub(sum(before));
    let system_ns = after.system_ns.saturating_sub(before.system_ns).min(all);
    ServerUse {
        user_ns: all - system_ns,
        system_ns,
        memory: after.memory,
        written: after.written.saturating_sub(before.written),
    }
}

pub(crate) fn of_process(pid: u32) -> ServerUse {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let (user_ns, system_ns) = used_by(pid);
    let number = |text: &str, field: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(field))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    ServerUse {
        user_ns,
        system_ns,
        memory: number(&read("smaps_rollup"), "Pss:").unwrap_or(0) * 1024,
        written: number(&read("io"), "write_bytes:").unwrap_or(0),
    }
}

/// Nanoseconds of processor time that a process has used.
pub(super) fn processor_time(pid: u32) -> u64 {
    let (user, system) = used_by(pid);
    user + system
}

/// Nanoseconds in user mode and in the kernel, of a process and of its children that have ended.
fn used_by(pid: u32) -> (u64, u64) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some(Times { own, children }) = times(&stat) else { return (0, 0) };
    let clock = clock_getcpuclockid(Pid::from_raw(pid.cast_signed())).and_then(|clock| clock.now());
    let all = match clock {
        Ok(clock) => Duration::from(clock).as_nanos() as u64,
        // It has just ended, or is another user's.
        Err(_) => own.0 + own.1,
    };
    let system = own.1.min(all);
    (all - system + children.0, system + children.1)
}

/// Nanoseconds in user mode and in the kernel.
#[derive(Debug, PartialEq, Eq)]
struct Times {
    own: (u64, u64),
    /// Of children that have ended and were waited for.
    children: (u64, u64),
}

fn times(stat: &str) -> Option<Times> {
    // Linux counts in hundredths of a second for programs, whatever it counts in itself.
    const TICK: u64 = 10_000_000;
    // The name may hold anything; what follows its last parenthesis does not.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |n: usize| fields.get(n)?.parse::<u64>().ok();
    // Fields 14 to 17 of proc(5); the first here is its third.
    let ticks = |n: usize| field(n).map(|n| n * TICK);
    Some(Times { own: (ticks(11)?, ticks(12)?), children: (ticks(13)?, ticks(14)?) })
}

/// Names that log files and their folders have in the stores that are known here.
const LOGS: [&str; 10] = [
    "pg_wal",
    "ib_logfile",
    "aria_log",
    "binlog",
    "general.log",
    "-wal",
    "-journal",
    "appendonly",
    "#ib_redo",
    "journal",
];

/// Bytes allocated in a folder: data, and logs apart.
pub(crate) fn allocated(folder: &Path) -> Bytes {
    let mut disk = Bytes::default();
    add(folder, false, &mut disk);
    disk
}

fn add(path: &Path, log: bool, disk: &mut Bytes) {
    // What has gone meanwhile takes no room.
    let Ok(data) = fs::symlink_metadata(path) else { return };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let log = log || LOGS.iter().any(|mark| name.contains(mark));
    let bytes = data.blocks() * 512;
    match log {
        true => disk.logs += bytes,
        false => disk.data += bytes,
    }
    if data.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| add(&entry.path(), log, disk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_children_count_and_names_may_hold_anything() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5 6 7";
        let (own, children) = ((100_000_000, 200_000_000), (300_000_000, 400_000_000));
        assert_eq!(times(stat), Some(Times { own, children }));
        assert_eq!(times("7 (a"), None);
        assert!(times(&fs::read_to_string("/proc/self/stat").unwrap()).is_some());
        let own = of_process(std::process::id());
        assert!(own.memory > 100_000, "{own:?}");
        // Finer than a tick.
        assert_ne!((own.user_ns + own.system_ns) % 10_000_000, 0, "{own:?}");
        let used = |user_ns, system_ns| ServerUse { user_ns, system_ns, ..ServerUse::default() };
        // A tick of the kernel's more, where less than that was used in all.
        let used = between(&used(9_900_000, 0), &used(200_000, 10_000_000));
        assert_eq!((used.user_ns, used.system_ns), (0, 300_000));
    }

    #[test]
    fn logs_are_told_from_data() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: usize| fs::write(folder.path().join(name), vec![1; bytes]);
        write("records.db", 100_000).unwrap();
        write("records.db-wal", 50_000).unwrap();
        fs::create_dir(folder.path().join("pg_wal")).unwrap();
        write("pg_wal/0001", 30_000).unwrap();
        let disk = allocated(folder.path());
        assert!((100_000..120_000).contains(&disk.data), "{disk:?}");
        assert!((80_000..100_000).contains(&disk.logs), "{disk:?}");
        assert_eq!(allocated(Path::new("/nonexistent")), Bytes::default());
    }
}
