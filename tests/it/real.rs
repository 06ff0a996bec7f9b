//! Real records, where `STEELYARD_TEST_DATA` names the folder that holds them.

mod formats;
mod whole;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use steelyard::marc::{Record, Severity, TroubleKind, iso2709};

use crate::programs::{self, Need, need};

/// All files below `folder`, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The ISO 2709 files: what they begin with tells.
#[track_caller]
pub fn iso2709_files() -> Need<Vec<(PathBuf, Vec<u8>)>> {
    let named = |p: &PathBuf| {
        p.extension().is_some_and(|e| ["mrc", "marc", "dat", "marc21"].iter().any(|x| e == *x))
    };
    let read = |p: PathBuf| {
        let bytes = std::fs::read(&p).unwrap();
        (p, bytes)
    };
    let not_xml =
        |(_, bytes): &(PathBuf, Vec<u8>)| !matches!(bytes.first(), Some(b'<' | b'{' | b'[' | 0xef));
    let folder = programs::real_records()?;
    Ok(files(&folder).into_iter().filter(named).map(read).filter(not_xml).collect())
}

#[test]
fn every_sound_record_comes_back_byte_for_byte() {
    let files = need!(iso2709_files());
    let (mut sound, mut rebuilt, mut repaired, mut lost) = (0, 0, 0, 0);
    let mut troubles: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, bytes) in &files {
        let mut covered = 0;
        let mut records = iso2709::Records::new(bytes);
        while let Some(item) = records.next() {
            assert!(item.offset >= covered, "{path:?}: records overlap");
            let told = item.troubles.iter().find(|t| t.kind == TroubleKind::Junk);
            let told = told.map_or(item.offset, |t| t.offset);
            let junk = &bytes[covered as usize..told as usize];
            assert!(junk.iter().all(|b| b"\r\n\0\x1a".contains(b)), "{path:?}: bytes passed over");
            covered = item.offset + item.raw.len() as u64;
            for t in item.troubles {
                *troubles.entry(t.kind.name()).or_default() += 1;
                if std::env::var_os("SHOW").is_some() {
                    println!("{}: {t}", path.file_name().unwrap().display());
                }
            }
            let Some(record) = item.record else {
                lost += 1;
                continue;
            };
            if record.raw().is_none() {
                assert!(
                    item.severity() >= Some(Severity::Repaired),
                    "{path:?}: {:?}",
                    item.troubles
                );
                repaired += 1;
                continue;
            }
            sound += 1;
            let mut again = Vec::new();
            iso2709::write(record, &mut again);
            assert_eq!(again, item.raw, "{path:?}, record {}", item.number);
            // The same from the parts, as an edited record is written.
            let own: Record = record.to_record();
            again.clear();
            iso2709::write(own.as_ref(), &mut again);
            if again == item.raw {
                rebuilt += 1;
            } else {
                println!(
                    "{}: record {} differs when built from its parts\n{}\n{}",
                    path.display(),
                    item.number,
                    String::from_utf8_lossy(&again[..again.len().min(200)]),
                    String::from_utf8_lossy(&item.raw[..item.raw.len().min(200)])
                );
            }
        }
        let rest = &bytes[covered as usize..];
        assert!(rest.iter().all(|b| b"\r\n\0\x1a".contains(b)), "{path:?}: bytes lost at the end");
    }
    println!(
        "{} files: {sound} sound records, {rebuilt} of them also from their parts; {repaired} repaired, {lost} unreadable",
        files.len()
    );
    println!("{troubles:#?}");
    assert!(sound > 0, "no records in the folder");
    assert_eq!(sound, rebuilt);
}
