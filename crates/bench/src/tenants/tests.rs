//! The bench itself on SQLite, without the program: no gateway, no process that holds the files.

use super::*;
use crate::{results::tenants::DATABASE, schedule::StopRule};

fn options<'a>() -> Options<'a> {
    let stop = StopRule { max_rounds: 2, budget: 1.0, ..StopRule::default() };
    let plan = Plan { window_ns: 50_000, resamples: 200, stop, ..Plan::default() };
    Options { tenants: vec![3, 1], documents: 60, open: 2, plan, ..Options::new() }
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let with = |change: fn(&mut Options<'_>)| {
        let mut options = options();
        change(&mut options);
        run(&options, &mut |_| {}).unwrap_err().to_string()
    };
    assert!(with(|o| o.tenants = vec![0]).contains("1 to 100000"));
    assert!(with(|o| o.tenants.clear()).contains("1 to 100000"));
    assert!(with(|o| o.documents = 0).contains("records"));
    assert!(with(|o| o.open = 0).contains("open"));
    assert!(with(|o| o.arms = vec![Arm::Gateway]).contains("none of these arms"));
    assert!(with(|o| o.targets = vec![Target::parse("dir").unwrap()]).contains("sqlite"));
}

#[cfg(feature = "sqlite")]
#[test]
fn a_run_on_sqlite_measures_both_arms_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { folder: Some(folder.path().to_owned()), ..options() };
    let mut stages = Vec::new();
    let results = run(&options, &mut |p: Progress<'_>| stages.push(p.stage)).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(results.stopped, Some(Stopped::Rounds));
    assert!(stages.contains(&Stage::Preparing) && stages.contains(&Stage::Timing));
    let names: Vec<&str> = results.competitors.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["shared", "database", "null"]);
    // The few come first: of one tenant there is no other to be touched.
    let ids: Vec<&str> = results.phases.iter().map(|phase| phase.id.as_str()).collect();
    let wanted = [
        "query sqlite@1",
        "insert sqlite@1",
        "query sqlite@3",
        "insert sqlite@3",
        "touch sqlite@3",
    ];
    assert_eq!(ids, wanted);
    for cell in &results.cells {
        assert_eq!((cell.refused.as_deref(), cell.rounds.len()), (None, 2), "{}", cell.phase);
        let latency = cell.latency.as_ref().unwrap();
        assert_eq!(latency.response.count(), cell.tally.unwrap().done, "{}", cell.phase);
    }
    let touch = results.cell(DATABASE, "touch sqlite@3").unwrap();
    assert_eq!(touch.units, 2);
    // Rounds are counted on, so that turns and probes find each other.
    assert_eq!(touch.rounds.iter().map(|r| r.round).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(results.probes.len(), 2 * 2 * 3);
    let proof = results.competitor(DATABASE).unwrap().proof.as_ref().unwrap();
    assert_eq!((proof.records, proof.equal, proof.of), (60 + 180, 60 + 180, 240));
    let tenants = results.tenants.as_ref().unwrap();
    assert_eq!((tenants.held.len(), tenants.sizes("sqlite")), (4, vec![1, 3]));
    let held = tenants.held("sqlite", DATABASE, 3).unwrap();
    assert!(held.disk.unwrap() > 3 * 8192 && held.making_ns > 0, "{held:?}");
    assert!(held.seen.is_empty(), "nobody could look");
    assert!(results.tenants_ratio(("query", "sqlite", 3), DATABASE, "shared").is_some());
    assert!(results.settings["Store sqlite"].starts_with("SQLite 3"), "{:?}", results.settings);
}

#[cfg(feature = "sqlite")]
#[test]
fn data_that_take_too_long_are_said_to() {
    let options = Options { patience: Duration::ZERO, tenants: vec![2], ..options() };
    let error = run(&options, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("after 0 of 2 tenants") && error.contains("longer than 0 s"), "{error}");
}

#[cfg(feature = "sqlite")]
#[test]
fn what_is_held_is_asked_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("a.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = crate::store::open(&url).await.unwrap().table(TABLE).unwrap();
        store.prepare(&shared::layout()).await.unwrap();
    });
    let spec = format!(
        "{{\"spec\":{{\"way\":\"Shared\",\"url\":{url:?},\"names\":[\"a\",\"b\"],\"open\":1}},\"documents\":5}}\nall\n"
    );
    let mut said = Vec::new();
    hold(&mut spec.as_bytes(), &mut said).unwrap();
    assert_eq!(String::from_utf8(said).unwrap(), "ready\nall\n");
    assert!(hold(&mut &b"nonsense\n"[..], &mut Vec::new()).is_err());
}
