//! What processes have, read from outside: memory and open files (rule 19).

use std::fs;

use crate::{
    results::ServerUse,
    server::Server,
    stores::watch::{self, of_process},
};

/// Bytes of memory of a process, what it shares counted in part (Pss); none where nobody may look.
pub(super) fn memory(pid: u32) -> Option<u64> {
    Some(of_process(pid).memory).filter(|bytes| *bytes > 0)
}

/// Open files of a process, its sockets among them; none where nobody may look.
pub(super) fn files(pid: u32) -> Option<u64> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64)
}

/// Memory and open files of a server's processes and of one more; none where nobody may look into one of them.
pub(super) fn all(server: Option<&Server>, beside: Option<u32>) -> (Option<u64>, Option<u64>) {
    let mut pids = server.map_or_else(Vec::new, Server::processes);
    pids.extend(beside);
    if pids.is_empty() {
        return (None, None);
    }
    // One that has ended meanwhile has nothing.
    let there = |pid: &u32| fs::exists(format!("/proc/{pid}")).unwrap_or(false);
    let sum = |of: fn(u32) -> Option<u64>| {
        pids.iter().filter(|pid| there(pid)).map(|pid| of(*pid)).sum::<Option<u64>>()
    };
    (sum(memory), sum(files))
}

/// What a server and one more process have used so far.
pub(super) fn used(server: Option<&Server>, beside: Option<u32>) -> ServerUse {
    let mut used = server.map(watch::used).unwrap_or_default();
    if let Some(pid) = beside {
        let more = of_process(pid);
        used.user_ns += more.user_ns;
        used.system_ns += more.system_ns;
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_files() {
        let own = std::process::id();
        let (before, memory) = (files(own).unwrap(), memory(own).unwrap());
        assert!(before > 2 && memory > 100_000, "{before} {memory}");
        assert_eq!(all(None, None), (None, None));
        let (memory, files) = all(None, Some(own));
        assert!(memory.unwrap() > 100_000 && files.unwrap() > 2);
        assert_eq!(super::files(u32::MAX), None);
        assert!(used(None, Some(own)).memory == 0);
    }
}
