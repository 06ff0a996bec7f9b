//! Results files: written whole or not at all, read with an answer for what is wrong. A name that ends
//! in `.gz` or `.zst` has them packed.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
};

use serde_json::Value;

use super::{
    derive::derive,
    results::{Json, Phase, Results, SCHEMA},
    workload::Workload,
};
use crate::{Error, Result, file::Staged, format::Wrap, store::Secrets};

/// Writes a results file. It is written beside the old one and then put in its place, so that
/// whoever reads it, or interrupts us, finds a whole one. A pipe or a device (`/dev/null`) is written to.
///
/// # Errors
/// [`Io`](crate::ErrorKind::Io), naming the file.
pub fn write(results: &Results, path: &Path) -> Result<()> {
    write_json(results.to_json(), path)
}

/// Writes runs that belong together (those of the tour) to one file: a list; a single one as [`write()`] does.
///
/// # Errors
/// As those of [`write()`].
pub fn write_runs(runs: &[Results], path: &Path) -> Result<()> {
    match runs {
        [one] => write(one, path),
        _ => write_json(Json::list_to_json(runs), path),
    }
}

fn write_json(json: String, path: &Path) -> Result<()> {
    let put = || -> Result<()> {
        let mut bytes = (json + "\n").into_bytes();
        let ending = path.extension().unwrap_or_default();
        if let Some((_, wrap, _)) = PACKED.iter().find(|packed| ending == packed.0) {
            let mut packed = Vec::new();
            wrap.parse::<Wrap>()?.wrap(&bytes, &mut packed)?;
            bytes = packed;
        }
        let mut file = Staged::create(path, true)?;
        file.write_all(&bytes)?;
        file.commit()
    };
    put().map_err(|e| e.in_place(path.display().to_string()))
}

/// Keeps secrets out of all that results tell: a server may answer with what it was sent. Names stay, as
/// parts of results find each other by them; they are made without secrets.
pub(super) fn hide(results: &mut Results, secrets: &Secrets) {
    const NAMES: [&str; 9] =
        ["name", "competitor", "phase", "id", "baseline", "of", "workload", "kind", "unit"];
    fn walk(value: &mut Value, secrets: &Secrets) {
        match value {
            Value::String(text) => *text = secrets.hidden(text),
            Value::Array(all) => all.iter_mut().for_each(|value| walk(value, secrets)),
            Value::Object(all) => all
                .iter_mut()
                .filter(|(name, _)| !NAMES.contains(&name.as_str()))
                .for_each(|(_, value)| walk(value, secrets)),
            _ => {}
        }
    }
    let json = results.to_json();
    if !secrets.are_in(&json) {
        return;
    }
    let mut value = serde_json::from_str(&json).expect("it was just written");
    walk(&mut value, secrets);
    if let Ok(hidden) = Results::from_json(value) {
        *results = hidden;
    }
}

/// How a file may be packed: the ending of its name, how, and what it begins with then.
const PACKED: [(&str, &str, &[u8]); 2] =
    [("gz", "gzip", b"\x1f\x8b"), ("zst", "zstd", b"\x28\xb5\x2f\xfd")];
/// A file may have so many bytes, and unpack to so many.
const LARGEST: usize = 1 << 30;
/// No run takes more resamples for an interval: they are held in memory.
const MOST_RESAMPLES: u32 = 1_000_000;

/// Whether a results file can be written there, to be asked before a long run.
///
/// # Errors
/// As those of [`write()`].
pub fn check(path: &Path) -> Result<()> {
    // Who reads a pipe would take this for the end.
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    Staged::create(path, false).map(drop).map_err(|e| e.in_place(path.display().to_string()))
}

/// Reads a results file with one run. What is derived is derived anew, so that a run that was killed has its
/// figures too.
///
/// # Errors
/// [`NotFound`](crate::ErrorKind::NotFound), [`Malformed`](crate::ErrorKind::Malformed),
/// [`Unsupported`](crate::ErrorKind::Unsupported) where a newer steelyard wrote it, or where it has several runs.
pub fn read(path: &Path) -> Result<Results> {
    let mut runs = read_runs(path)?;
    match (runs.len(), runs.pop()) {
        (1, Some(run)) => Ok(run),
        (several, _) => {
            let what = format!("the file has {several} runs; runs are compared one by one");
            Err(Error::unsupported(what).in_place(path.display().to_string()))
        }
    }
}

/// Reads the runs of a results file: one, or those of the tour.
///
/// # Errors
/// As those of [`read`].
pub fn read_runs(path: &Path) -> Result<Vec<Results>> {
    let named = |e: Error| e.in_place(path.display().to_string());
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|e| named(e.into()))?;
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(|e| named(e.into()))?;
    if bytes.len() > LARGEST {
        return Err(named(Error::malformed("no results file: it has more than 1 GiB")));
    }
    if let Some((_, wrap, _)) = PACKED.iter().find(|packed| bytes.starts_with(packed.2)) {
        let mut plain = Vec::new();
        let wrap = wrap.parse::<Wrap>()?;
        wrap.unwrap(&bytes, LARGEST, &mut plain).map_err(named)?;
        bytes = plain;
    }
    let not_ours = |e: serde_json::Error| {
        Error::malformed("not a results file of steelyard bench").with_source(e)
    };
    let values = match serde_json::from_slice(&bytes).map_err(not_ours).map_err(named)? {
        Value::Array(runs) => runs,
        run => vec![run],
    };
    let newer = |schema: &u64| *schema > u64::from(SCHEMA);
    if let Some(schema) = values.iter().filter_map(|run| run.get("schema")?.as_u64()).find(newer) {
        return Err(named(Error::unsupported(format!(
            "results of schema {schema}, this steelyard knows {SCHEMA}; use a newer one"
        ))));
    }
    if values.is_empty() {
        return Err(named(Error::malformed("a results file without a run")));
    }
    let runs: std::result::Result<Vec<_>, _> = values.into_iter().map(Results::from_json).collect();
    let mut runs = runs.map_err(not_ours).map_err(named)?;
    if runs.iter().any(|run| run.plan.resamples > MOST_RESAMPLES) {
        let what = format!("plan.resamples: at most {MOST_RESAMPLES}");
        return Err(named(Error::malformed(what)));
    }
    for run in &mut runs {
        add_kinds(run);
        derive(run);
    }
    Ok(runs)
}

/// Says which kind each phase is in a file that was written before phases had kinds: the workload in it
/// tells.
fn add_kinds(results: &mut Results) {
    let told = |phase: &Phase| !phase.kind.is_empty();
    let Some(workload) = results.workload.as_ref().filter(|_| !results.phases.iter().any(told))
    else {
        return;
    };
    let Ok(workload) = Workload::parse(&workload.text) else { return };
    for (phase, of) in workload.phases.iter().zip(workload.families()) {
        if let Some(old) = results.phases.iter_mut().find(|old| old.id == phase.name) {
            (old.kind, old.of) = (phase.word().to_owned(), of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn kinds_of_phases_are_known_in_files_that_do_not_tell() {
        let workload = Workload::named("mixed").unwrap();
        let phase = |name: &str| Phase { id: name.into(), name: name.into(), ..Phase::default() };
        let mut results = Results {
            workload: Some(crate::results::Workload { text: workload.text, ..Default::default() }),
            phases: vec![phase("get"), phase("get at 25 %"), phase("settle"), phase("other")],
            ..Results::default()
        };
        add_kinds(&mut results);
        let told: Vec<_> =
            results.phases.iter().map(|p| (p.kind.as_str(), p.of.as_deref())).collect();
        assert_eq!(told, [("get", None), ("get", Some("get")), ("settle", None), ("", None)]);
    }

    #[test]
    fn a_file_is_replaced_whole_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        let mut results = Results { schema: SCHEMA, bench: "formats".into(), ..Results::default() };
        write(&results, &path).unwrap();
        results.seconds = 2.5;
        write(&results, &path).unwrap();
        assert_eq!(read(&path).unwrap(), results);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_link_planted_under_a_name_that_can_be_guessed_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("results.json"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        let process = std::process::id();
        let mut planted = vec![format!("results.json.{process}.part")];
        planted.extend((0..2000).map(|count| format!(".results.json.{process}-{count}.part")));
        for name in &planted {
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
        }
        let results = Results { schema: SCHEMA, ..Results::default() };
        write(&results, &path).unwrap();
        assert_eq!(read(&path).unwrap(), results);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        for name in &planted {
            assert!(fs::symlink_metadata(folder.path().join(name)).unwrap().is_symlink(), "{name}");
        }
    }

    #[test]
    fn a_file_is_packed_by_its_name_and_unpacked_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results { schema: SCHEMA, bench: "x".repeat(5000), ..Results::default() };
        for (name, begin) in [("r.json.gz", &b"\x1f\x8b"[..]), ("r.json.zst", b"\x28\xb5")] {
            let path = folder.path().join(name);
            write(&results, &path).unwrap();
            let bytes = fs::read(&path).unwrap();
            assert!(bytes.starts_with(begin) && bytes.len() < 2000, "{name}");
            let other = folder.path().join("named otherwise");
            fs::rename(&path, &other).unwrap();
            assert_eq!(read(&other).unwrap(), results);
            fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn what_is_no_file_is_written_to_and_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let results = Results { schema: SCHEMA, ..Results::default() };
        let read = std::thread::scope(|scope| {
            let read = scope.spawn(|| fs::read_to_string(&pipe).unwrap());
            write(&results, &pipe).unwrap();
            read.join().unwrap()
        });
        assert!(read.starts_with("{\"schema\":1"), "{read}");
        assert!(!fs::metadata(&pipe).unwrap().is_file());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_results_file_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::NotFound);
        fs::write(&path, "{\"schema\": 1}").unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::Malformed);
        fs::write(&path, "{\"schema\": 99}").unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("x.json"), "{error}");
        let missing = folder.path().join("none/results.json");
        assert!(write(&Results::default(), &missing).is_err() && check(&missing).is_err());
        check(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "asking leaves nothing");
    }

    #[test]
    fn a_file_takes_no_more_than_a_run_needs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        let mut results = Results { schema: SCHEMA, ..Results::default() };
        results.plan.resamples = u32::MAX;
        write(&results, &path).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("plan.resamples: at most 1000000"), "{error}");
        // A hole, which takes no room on the disk.
        fs::File::create(&path).unwrap().set_len(LARGEST as u64 + 1).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("1 GiB"));
    }
}
