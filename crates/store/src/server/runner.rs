//! The user that runs a server when this process runs as root: a user id that belongs to no account and to no process,
//! so that no service of the machine can access what belongs to the server.

use std::{fs, io, ops::Range, os::unix::fs::PermissionsExt, path::Path};

use nix::unistd::{Gid, Group, Uid, User, geteuid};

/// Numbers that no system gives to accounts, containers or services:
/// <https://systemd.io/UIDS-GIDS>. The second is for containers that have no more than 65,536 of them.
const FREE: [Range<u32>; 2] = [1_879_048_192..2_147_352_576, 60_578..61_184];

/// A user who runs a server in place of root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runner {
    /// The number of the user.
    pub user: u32,
    /// The number of its group.
    pub group: u32,
}

impl Runner {
    /// An unused user id; none where this process does not run as root and so cannot change its user, and where its
    /// container has no such id.
    pub fn own() -> Option<Runner> {
        if !geteuid().is_root() {
            return None;
        }
        let maps = ["/proc/self/uid_map", "/proc/self/gid_map"].map(fs::read_to_string);
        let mapped = |range: &&Range<u32>| {
            maps.iter().all(|map| map.as_ref().is_ok_and(|map| is_mapped(map, range)))
        };
        let range = FREE.iter().find(mapped)?;
        let taken = users_of_processes();
        let pick = || {
            let random = uuid::Uuid::new_v4().as_u128() as u32;
            range.start + random % (range.end - range.start)
        };
        let number = (0..100).map(|_| pick()).find(|n| !taken.contains(n) && !has_account(*n))?;
        Some(Runner { user: number, group: number })
    }

    /// The first of these users that is on this machine; none where this process is not root's.
    pub fn first(users: &[&str]) -> Option<Runner> {
        let there = |name: &&str| User::from_name(name).ok().flatten();
        let user = users.iter().find_map(there).filter(|_| geteuid().is_root())?;
        Some(Runner { user: user.uid.as_raw(), group: user.gid.as_raw() })
    }

    /// Whether the user is in the system's list of accounts.
    pub fn has_account(self) -> bool {
        has_account(self.user)
    }

    /// The user's id, if no other process runs as this user, so that everything it owns is the server's.
    pub fn alone(self) -> Option<u32> {
        is_own(self.user).then_some(self.user)
    }

    /// Makes a file or folder this user's; of a link, the link itself.
    ///
    /// # Errors
    /// Those of lchown(2).
    pub fn give(self, path: &Path) -> io::Result<()> {
        std::os::unix::fs::lchown(path, Some(self.user), Some(self.group))
    }

    /// The same of a folder and all that is in it.
    ///
    /// # Errors
    /// Those of lchown(2).
    pub fn give_all(self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => self.give_all(&entry.path())?,
                false => self.give(&entry.path())?,
            }
        }
        self.give(folder)
    }
}

/// Whether a number is that of a user [of a server's own](Runner::own).
pub(super) fn is_own(user: u32) -> bool {
    FREE.iter().any(|range| range.contains(&user))
}

/// A command of a shell that holds where a word is the number of a user [of a server's own](Runner::own).
pub(super) fn test_in_shell(word: &str) -> String {
    let tests = FREE.iter().map(|Range { start, end }| {
        format!("{{ [ \"{word}\" -ge {start} ] && [ \"{word}\" -lt {end} ]; }}")
    });
    format!("{{ {}; }}", tests.collect::<Vec<_>>().join(" || "))
}

/// Whether a number is that of an account or its group.
fn has_account(number: u32) -> bool {
    let user = User::from_uid(Uid::from_raw(number));
    let group = Group::from_gid(Gid::from_raw(number));
    // Where the list of accounts cannot be read, nobody knows.
    !matches!((user, group), (Ok(None), Ok(None)))
}

/// The users, also effective and saved ones, of all processes.
fn users_of_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let status = entries.filter_map(|entry| fs::read_to_string(entry.path().join("status")).ok());
    let users = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u32>>()
    };
    status.flat_map(users).collect()
}

/// Whether all of a range are numbers of this user namespace, whose `uid_map` of user_namespaces(7) this is.
fn is_mapped(map: &str, range: &Range<u32>) -> bool {
    map.lines().any(|line| {
        let mut words = line.split_whitespace().map(|word| word.parse::<u64>().ok());
        let (Some(Some(first)), _, Some(Some(count))) = (words.next(), words.next(), words.next())
        else {
            return false;
        };
        first <= range.start.into() && u64::from(range.end) <= first + count
    })
}

/// Whether every user may go into this folder and all above it.
pub(super) fn open_to_all(folder: &Path) -> bool {
    let open = |folder: &Path| {
        fs::metadata(folder).is_ok_and(|data| data.permissions().mode() & 0o001 != 0)
    };
    folder.ancestors().filter(|part| !part.as_os_str().is_empty()).all(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_nobody_else_may_enter_are_not_open() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let mode =
            |bits| fs::set_permissions(folder.path(), fs::Permissions::from_mode(bits)).unwrap();
        mode(0o755);
        assert_eq!(open_to_all(&inner), open_to_all(folder.path().parent().unwrap()));
        mode(0o700);
        assert!(!open_to_all(&inner));
        assert!(open_to_all(Path::new("/")) && open_to_all(Path::new("/usr/bin")));
    }

    #[test]
    fn users_that_are_not_there_run_nothing() {
        assert_eq!(Runner::first(&["no-such-user"]), None);
        let nobody = Runner::first(&["no-such-user", "nobody"]);
        assert_eq!(nobody.is_some(), geteuid().is_root());
        assert!(nobody.is_none_or(|nobody| nobody.user != 0));
    }

    #[test]
    fn each_has_a_number_of_its_own_that_is_no_accounts() {
        let (Some(one), Some(other)) = (Runner::own(), Runner::own()) else {
            // Of root, in a container of few numbers.
            assert!(!geteuid().is_root() || !is_mapped("0 0 1", &FREE[1]));
            return;
        };
        assert_ne!(one, other);
        for Runner { user, group } in [one, other] {
            assert!(user == group && FREE.iter().any(|range| range.contains(&user)), "{user}");
            assert!(!has_account(user));
        }
        assert!(has_account(0) && users_of_processes().contains(&0));
    }

    #[test]
    fn numbers_of_the_namespace_are_known() {
        let all = "         0          0 4294967295\n";
        let few = "         0     100000      65536\n";
        assert!(is_mapped(all, &FREE[0]) && is_mapped(all, &FREE[1]));
        assert!(!is_mapped(few, &FREE[0]) && is_mapped(few, &FREE[1]));
        assert!(!is_mapped("0 1000 1\n", &FREE[1]) && !is_mapped("", &FREE[1]));
    }
}
