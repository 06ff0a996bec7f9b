//! What is said of durability is what was seen: syncs are counted, and where data lie counts.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use steelyard::{
    ErrorKind,
    bench::{
        results::Evidence,
        stores::{self, Audit, Target},
    },
    server::PROGRAMS,
    store::DRIVERS,
};

use crate::{
    children::{Child, Command},
    programs::{self, Missing, Need, need},
};

/// The built program.
const STEELYARD: &str = env!("CARGO_BIN_EXE_steelyard");

/// Servers of which there are several programs, which differ in what they promise; and FerretDB, which can
/// be started with less (t1) than a client can ask for.
const DIFFER: [&str; 3] = ["couchdb", "s3", "ferretdb?durability=t1"];

/// A test that audits a store in this process holds it alone, every other one beside others: strace
/// follows what this process starts meanwhile, and who is followed by one strace cannot be by another.
static LOOKED_AT: RwLock<()> = RwLock::new(());

fn alone() -> RwLockWriteGuard<'static, ()> {
    // That another test has failed is no reason to fail here.
    LOOKED_AT.write().unwrap_or_else(PoisonError::into_inner)
}

fn beside_others() -> RwLockReadGuard<'static, ()> {
    LOOKED_AT.read().unwrap_or_else(PoisonError::into_inner)
}

/// What is observed of a store, named as for a bench.
#[track_caller]
fn seen(on: &str) -> Need<Audit> {
    programs::found("strace")?;
    let target = Target::parse(on).unwrap_or_else(|e| panic!("{on}: {e:?}"));
    programs::of(&target)?;
    match stores::audit(&target) {
        Ok(audit) => {
            let durability = &audit.durability;
            let (found, remark) = (durability.class().name(), &durability.remark);
            println!("{on}: {found}, {:?} {:?} {remark:?}", durability.syncs, audit.calls);
            Ok(audit)
        }
        Err(e)
            if e.kind() == ErrorKind::Unsupported
                && DIFFER.iter().any(|name| on.starts_with(name)) =>
        {
            Err(Missing::allowed(format_args!("{on}: {e}")))
        }
        Err(e) => panic!("{on}: {e:?}"),
    }
}

#[track_caller]
fn is_as_claimed(on: &str, tier: &str) {
    let audit = need!(seen(&format!("{on}?durability={tier}")));
    let (durability, class) = (&audit.durability, audit.durability.class());
    let is = (class.name(), class.evidence(), durability.broken);
    assert_eq!(is, (tier.to_owned(), Evidence::Observed, false), "{on}: {durability:?}");
    // What keeps nothing on disks lies nowhere.
    let lies = durability.medium.as_ref().filter(|lies| !lies.filesystem.is_empty());
    assert_eq!(lies.is_some(), tier != "t0", "{on}: {durability:?}");
    assert!(lies.is_none_or(|lies| lies.sync_ns.is_some()), "{on}: {durability:?}");
}

/// Every store at every tier it claims, as it is started for a bench.
macro_rules! claims {
    ($($name:ident)*) => {
        mod claimed {
            $(#[test] fn $name() { super::claims(stringify!($name)); })*

            #[test]
            fn every_driver_is_tried() {
                let tried = [$(stringify!($name)),*];
                for driver in super::DRIVERS {
                    let any = driver.servers.iter().any(|server| tried.contains(server));
                    assert!(any || tried.contains(&driver.name), "{}", driver.name);
                }
            }
        }
    };
}
claims!(memory dir sqlite mariadb postgres redis memcached ferretdb couchdb s3 tyrant);

fn claims(name: &str) {
    let in_this_process = ["memory", "dir", "sqlite"].contains(&name);
    let _guard = match in_this_process {
        true => (Some(alone()), None),
        false => (None, Some(beside_others())),
    };
    let tiers = match PROGRAMS.iter().find(|program| program.name == name) {
        Some(program) => program.tiers.iter().map(|tier| tier.name()).collect(),
        None => match name {
            "memory" => vec!["t0"],
            "dir" => vec!["t1", "t3"],
            _ => vec!["t1", "t2", "t3"],
        },
    };
    for tier in tiers {
        is_as_claimed(name, tier);
    }
}

/// A server whose settings are not told, and that syncs each write, is durable all the same.
#[test]
fn ferretdb_is_what_is_seen_of_it() {
    let _others = beside_others();
    let audit = need!(seen("ferretdb"));
    assert_eq!(audit.durability.set, None);
    assert_eq!(audit.durability.class().phrase(), "durable when acknowledged (t3)");
}

/// PostgreSQL that opens its log with `O_DSYNC` calls no fsync, and is durable.
#[test]
fn writes_that_sync_are_syncs() {
    let _others = beside_others();
    for method in ["open_datasync", "open_sync"] {
        let on = format!("postgres?durability=t3&wal_sync_method={method}");
        let audit = need!(seen(&on));
        let durability = &audit.durability;
        assert_eq!(
            (durability.class().name(), durability.broken),
            ("t3".into(), false),
            "{audit:?}"
        );
        let most = audit.calls.iter().max_by_key(|(_, n)| **n).unwrap().0;
        assert!(most.contains("O_DSYNC"), "{audit:?}");
        assert_eq!(audit.settings["wal_sync_method"], method);
    }
}

#[test]
fn what_settings_take_back_is_read() {
    let _others = beside_others();
    for (on, why) in [
        ("mariadb?flush_method=nosync", "innodb_flush_method=nosync"),
        ("mariadb?doublewrite=off", "innodb_doublewrite=OFF"),
        ("postgres?full_page_writes=off", "full_page_writes=off"),
    ] {
        let audit = need!(seen(on), continue);
        let durability = &audit.durability;
        assert_eq!(
            (durability.class().name(), &*durability.set.clone().unwrap()),
            ("t1".into(), "t1")
        );
        assert!(durability.remark.as_ref().is_some_and(|r| r.contains(why)), "{durability:?}");
        let (name, value) = why.split_once('=').unwrap();
        assert_eq!(audit.settings[name], value, "{audit:?}");
        // Nobody gets it who asks for more.
        let asked = Target::parse(&format!("{on}&durability=t3")).unwrap();
        let error = stores::audit(&asked).unwrap_err();
        assert!(error.kind() == ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn sqlite_says_what_bounds_its_loss() {
    let _alone = alone();
    let audit = need!(seen("sqlite?durability=t2"));
    let later = audit.durability.later.as_ref().unwrap();
    assert_eq!((later.within.as_str(), later.seen), ("1000 pages of its log", true));
    assert!(audit.settings["loss is bounded by"].contains("1000 pages"), "{:?}", audit.settings);
}

/// The program's answer, its exit status, and what it printed together.
fn steelyard(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    println!("{text}");
    (status.code().unwrap_or(-1), text)
}

/// A server of another make than the bench's own: `steelyard servers run`, left to itself.
struct Elsewhere {
    child: Child,
    url: String,
}

impl Elsewhere {
    fn start(name: &str, arguments: &[&str], preload: Option<&Path>) -> Need<Elsewhere> {
        programs::found("strace")?;
        programs::startable(name)?;
        let mut command = Command::new(STEELYARD);
        command.args(["servers", "run", name]).args(arguments);
        command.envs(preload.map(|library| ("LD_PRELOAD", library)));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        assert!(!url.is_empty(), "{name} did not start");
        Ok(Elsewhere { child, url })
    }

    fn with(&self, option: &str) -> String {
        let gap = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{gap}{option}", self.url)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Nothing is synced, as some make tests faster.
const NOTHING: &str = "int fsync(int fd) { return 0; }\nint fdatasync(int fd) { return 0; }\n\
                       int sync_file_range(int fd, long a, long b, unsigned c) { return 0; }\n";
/// Something else is synced each time: a file in memory.
const MEMORY: &str = "#define _GNU_SOURCE\n#include <sys/mman.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
                      static int m = -1;\n\
                      int fsync(int fd) { if (m < 0) m = memfd_create(\"m\", 0);\n\
                      if (write(m, \"x\", 1) < 0) return -1; return syscall(SYS_fsync, m); }\n\
                      int fdatasync(int fd) { return fsync(fd); }\n";

/// A library under which nothing is synced.
#[track_caller]
fn library_that_syncs_nothing(folder: &Path, text: &str) -> Need<PathBuf> {
    programs::found("cc")?;
    let (source, library) = (folder.join("nosync.c"), folder.join("nosync.so"));
    fs::write(&source, text).unwrap();
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(made.unwrap().success());
    Ok(library)
}

#[test]
fn a_server_of_the_users_own_is_observed_where_it_runs_here() {
    let _others = beside_others();
    for name in ["redis", "postgres", "mariadb"] {
        let server = need!(Elsewhere::start(name, &["--durability", "t3"], None), continue);
        let audit = seen(&server.with("durability=t3")).unwrap();
        let durability = &audit.durability;
        let class = durability.class();
        let is = (class.name(), class.evidence(), durability.broken);
        assert_eq!(is, ("t3".into(), Evidence::Observed, false), "{name}: {durability:?}");
        assert!(durability.medium.is_some(), "{name}: {durability:?}");
        assert!(audit.made.unwrap().contains("dropped after it"));
    }
}

#[test]
fn a_server_under_a_library_that_syncs_nothing_is_not_durable() {
    let _others = beside_others();
    let folder = tempfile::tempdir().unwrap();
    let tried =
        [("redis", NOTHING), ("postgres", NOTHING), ("mariadb", NOTHING), ("redis", MEMORY)];
    for (name, text) in tried {
        let library = need!(library_that_syncs_nothing(folder.path(), text));
        let server = Elsewhere::start(name, &["--durability", "t3"], Some(&library));
        let server = need!(server, continue);
        let url = server.with("durability=t3");
        let (status, text) = steelyard(Command::new(STEELYARD).args(["audit", &url]));
        assert_eq!(status, 1, "{text}");
        let said = "t3 by its settings; no sync seen within 2 s: t1";
        assert!(text.contains(said), "{text}");
        assert!(text.contains("data on "), "{text}");
        let audit = seen(&url).unwrap();
        assert!(audit.durability.broken && !audit.durability.class().is_ranked(), "{audit:?}");
    }
}

#[test]
fn what_flush_tables_writes_is_not_synced() {
    let _others = beside_others();
    for (asked, status) in [("t1", 0), ("t2", 1), ("t3", 1)] {
        need!(seen("mariadb?engine=myisam"));
        let on = format!("mariadb?engine=myisam&durability={asked}");
        let (found, text) = steelyard(Command::new(STEELYARD).args(["audit", &on]));
        assert_eq!(found, status, "{text}");
        assert!(found == 0 || text.contains("it can: t1"), "{text}");
    }
}

/// A folder in memory.
#[track_caller]
fn in_memory() -> Need<tempfile::TempDir> {
    programs::found("strace")?;
    tempfile::tempdir_in("/dev/shm").map_err(|e| Missing::new(format_args!("/dev/shm: {e}")))
}

#[test]
fn what_lies_in_memory_is_not_durable() {
    let _others = beside_others();
    let folder = need!(in_memory());
    let url = format!("sqlite:{}/x.db", folder.path().display());
    let said = "t3 by its settings; its data lie on tmpfs, which is memory: t1";
    for (url, asked) in [(url.clone(), "-"), (format!("{url}?durability=t3"), "t3")] {
        let (status, text) = steelyard(Command::new(STEELYARD).args(["audit", &url]));
        assert_eq!(status, 1, "asked {asked}: {text}");
        assert!(text.contains(said) && text.contains("tmpfs"), "{text}");
    }
    // A bench says so as well, and its status shows it where more was asked for.
    let mut bench = Command::new(STEELYARD);
    bench.args([
        "bench",
        "documents",
        "--scale",
        "0.001",
        "--rounds",
        "1",
        "--durability",
        "t3",
        "--full",
    ]);
    let (status, text) = steelyard(bench.args(["--on", &url]));
    assert_eq!(status, 1, "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(said) && flat.contains("t1 (asked t3)!"), "{text}");
    assert!(flat.contains("tmpfs (memory)"), "{text}");
}

/// Where the usual place is memory, private servers and embedded stores lie on a disk, if there is one.
#[test]
fn data_lie_on_a_disk_where_the_usual_place_is_memory() {
    let _others = beside_others();
    let folder = need!(in_memory());
    need!(programs::startable("redis"));
    let mut audit = Command::new(STEELYARD);
    audit.args(["audit", "sqlite?durability=t3", "redis?durability=t3"]);
    let (status, text) = steelyard(audit.env("TMPDIR", folder.path()));
    assert_eq!(status, 0, "{text}");
    assert!(!text.contains("data on tmpfs") && text.matches("data on ").count() == 2, "{text}");
    let usual = folder.path().display();
    assert!(text.contains(&format!(": {usual} is on tmpfs, which is memory.")), "{text}");
}

/// In a mount namespace of its own: memory wherever data could lie, and an overlay on memory.
#[test]
fn an_overlay_on_memory_is_memory() {
    let _others = beside_others();
    let mounts = "set -e; mount -t tmpfs none /dev/shm; cd /dev/shm; mkdir lower upper work merged\n\
                  mount -t overlay none -o lowerdir=lower,upperdir=/dev/shm/upper,workdir=work merged\n\
                  mount -t tmpfs none /var/tmp; mount -t tmpfs none \"$1\"; export HOME=/dev/shm TMPDIR=\"$1\"\n\
                  exec \"$0\" audit sqlite:/dev/shm/merged/x.db 'sqlite?durability=t3'";
    let folder = need!(in_memory());
    need!(programs::root("memory wherever data could lie"));
    let place = tempfile::tempdir().unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", mounts, STEELYARD]).arg(place.path());
    let (status, text) = steelyard(unshare.current_dir(folder.path()).env_remove("XDG_CACHE_HOME"));
    if text.contains("ermitted") || text.contains("not found") {
        return programs::skip(format_args!("nothing may be mounted here: {text}"));
    }
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("its data lie on overlay on tmpfs, which is memory: t1"), "{text}");
    assert!(text.contains("its data lie on tmpfs, which is memory: t1"), "{text}");
}
