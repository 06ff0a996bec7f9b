//! `bench tenants` with the program itself: the gateway, the process that holds SQLite's files, private servers.

use std::{fs, path::Path, time::Duration};

use steelyard::{
    bench::{
        results::{
            Results,
            tenants::{DATABASE, GATEWAY, SCHEMA, SHARED},
        },
        schedule::{StopRule, Stopped},
        stores::Target,
        tenants::{Arm, Options, run},
    },
    report::screen::{LINES, Look, USUAL, screen},
};

use crate::programs::{self, need};

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_steelyard"))
}

/// A few rounds with few tenants.
fn few(on: &str, folder: &Path) -> Options<'static> {
    let mut options = Options::new();
    options.targets = vec![Target::parse(on).unwrap()];
    (options.tenants, options.documents, options.open) = (vec![1, 4], 50, 3);
    options.program = Some(program().to_owned());
    options.folder = Some(folder.to_owned());
    options.plan.stop = StopRule { max_rounds: 2, budget: 2.0, ..StopRule::default() };
    (options.plan.window_ns, options.plan.resamples) = (1_000_000, 200);
    options
}

/// Measures and looks at all that is there whatever the store.
fn measured(on: &str, arms: &[&str]) -> Results {
    let folder = tempfile::tempdir().unwrap();
    let results = run(&few(on, folder.path()), &mut |_| {}).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{on}: nothing is left");
    assert!(!Path::new("catalog.db").exists(), "{on}: nor where it was started");
    assert_eq!(results.stopped, Some(Stopped::Rounds), "{on}");
    assert!(results.dataset.remarks.is_empty(), "{on}: {:?}", results.dataset.remarks);
    let tenants = results.tenants.as_ref().unwrap();
    assert_eq!(tenants.arms(on), arms);
    for arm in arms {
        for size in [1, 4] {
            for kind in ["query", "insert", "touch"].into_iter().take(if size == 1 { 2 } else { 3 })
            {
                let phase = results.tenants_phase(kind, on, size).unwrap();
                let cell = results.cell(arm, phase).unwrap();
                assert_eq!(
                    (cell.refused.as_deref(), cell.rounds.len()),
                    (None, 2),
                    "{arm} {phase}"
                );
                assert!(cell.rounds.iter().all(|round| round.ns > 0), "{arm} {phase}");
            }
            let held = tenants.held(on, arm, size).unwrap();
            assert_eq!((held.seen.len(), held.refused.as_deref()), (2, None), "{arm} {size}");
            assert!(held.memory().unwrap() > 1e5 && held.files().unwrap() > 2.0, "{held:?}");
            assert!(held.restart_ns().unwrap() > 1e5, "{held:?}");
            // MariaDB's logs, which it makes smaller as it ends, are larger than so few records.
            assert!(held.disk.unwrap() > 4096 || on == "mariadb", "{held:?}");
        }
        let proof = results.competitor(arm).unwrap().proof.as_ref().unwrap();
        assert_eq!((proof.equal, proof.records), (50 + 200, 50 + 200), "{arm}");
    }
    // Of windows so short it is anything, as some of them open a connection and some do not.
    let ratio = results.tenants_ratio(("query", on, 4), GATEWAY, DATABASE);
    assert!(ratio.unwrap().ratio.middle > 0.0, "{ratio:?}");
    let look = Look { width: USUAL, styled: false, kept: false };
    let screen = screen(std::slice::from_ref(&results), look);
    assert!(screen.lines().count() <= LINES && screen.contains("gateway"), "{screen}");
    results
}

#[test]
fn sqlite_with_a_file_each_and_the_gateway() {
    let results = measured("sqlite", &[SHARED, DATABASE, GATEWAY]);
    let tenants = results.tenants.unwrap();
    let files = |arm: &str| tenants.held("sqlite", arm, 4).unwrap().files().unwrap();
    // Three are open, each with its log.
    assert!(files(DATABASE) >= files(SHARED) + 2.0, "{} {}", files(DATABASE), files(SHARED));
}

#[test]
fn postgres_with_databases_schemas_and_the_gateway() {
    need!(programs::startable("postgres"));
    let results = measured("postgres", &[SHARED, DATABASE, SCHEMA, GATEWAY]);
    let tenants = results.tenants.unwrap();
    let disk = |arm: &str| tenants.held("postgres", arm, 4).unwrap().disk.unwrap();
    // An empty database takes some megabytes.
    assert!(disk(DATABASE) > disk(SHARED) + 10_000_000, "{} {}", disk(DATABASE), disk(SHARED));
}

#[test]
fn the_gateway_before_mariadb_and_ferretdb() {
    for on in ["mariadb", "ferretdb"] {
        need!(programs::startable(on));
        measured(on, &[SHARED, DATABASE, GATEWAY]);
    }
}

#[test]
fn a_server_of_ones_own_is_left_as_it_was() {
    use steelyard::server::Wish;
    let server = need!(programs::server("postgres", &Wish::default()));
    let folder = tempfile::tempdir().unwrap();
    let mut options = few("sqlite", folder.path());
    options.targets = vec![Target::parse(server.url()).unwrap()];
    options.tenants = vec![2];
    let databases = || {
        let data = server.data().join("base");
        let mut names: Vec<_> =
            fs::read_dir(data).unwrap().map(|f| f.unwrap().file_name()).collect();
        names.retain(|name| name != "pgsql_tmp");
        names.sort();
        names
    };
    let before = databases();
    let results = run(&options, &mut |_| {}).unwrap();
    assert_eq!(databases(), before);
    let tenants = results.tenants.unwrap();
    assert_eq!(tenants.held.len(), 4);
    // What is not ours is not looked at.
    let held = tenants.held(&tenants.held[0].store, SHARED, 2).unwrap();
    assert_eq!((held.disk, held.memory(), held.restart_ns()), (None, None, None));
    assert!(!results.machine.cpu.is_empty() && !format!("{:?}", tenants.held).contains("password"));
}

#[test]
fn a_way_that_takes_too_long_is_left_out_and_the_others_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = few("sqlite", folder.path());
    options.arms = vec![Arm::Database, Arm::Gateway];
    options.patience = Duration::ZERO;
    let error = run(&options, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("nothing was measured") && error.contains("after 0 of"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
