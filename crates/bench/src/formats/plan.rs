//! Which phases a run of formats has, and which comparisons.

use super::files::Pack;
use crate::{
    Error, Result,
    format::Format,
    results::{Contrast, Phase},
};

/// What a phase does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Decode,
    Encode,
    Read(Pack),
    Write(Pack),
}

const TASKS: [(&str, Task); 8] = [
    ("decode", Task::Decode),
    ("encode", Task::Encode),
    ("read", Task::Read(Pack::Plain)),
    ("write", Task::Write(Pack::Plain)),
    ("read-gzip", Task::Read(Pack::Gzip)),
    ("write-gzip", Task::Write(Pack::Gzip)),
    ("read-zstd", Task::Read(Pack::Zstd)),
    ("write-zstd", Task::Write(Pack::Zstd)),
];

impl Task {
    /// What a phase of this name does.
    pub(super) fn of(phase: &Phase) -> Result<Task> {
        TASKS
            .iter()
            .find(|t| t.0 == phase.name)
            .map(|t| t.1)
            .ok_or_else(|| Error::invalid(format!("no phase {:?}", phase.name)))
    }
}

/// The phases, for passes of `units` records.
pub(super) fn phases(units: u64, packs: &[Pack]) -> Vec<Phase> {
    let timed = |name: &str, table: &str, about: &str| Phase::new(name, table, units, about);
    let sum = |name: &str, table: &str, of: [&str; 2]| {
        let about = format!("{} and {} of the same round together.", of[0], of[1]);
        Phase { sum_of: of.map(str::to_owned).to_vec(), ..Phase::new(name, table, units, &about) }
    };
    let mut phases = vec![
        timed(
            "decode",
            "in memory",
            "From the bytes of each record to a record, into memory used again.",
        ),
        timed("encode", "in memory", "From prepared records to bytes, into memory used again."),
        sum("roundtrip", "in memory", ["decode", "encode"]),
    ];
    for pack in Pack::ALL.into_iter().filter(|p| packs.contains(p)) {
        let name = pack.name();
        match pack {
            Pack::Plain => phases.extend([
                timed("read", "files", "From a file to records, one by one: open, read, decode."),
                timed(
                    "write",
                    "files",
                    "From prepared records to a new file: encode, write, close.",
                ),
                sum("file-roundtrip", "files", ["read", "write"]),
            ]),
            _ => phases.extend([
                timed(
                    &format!("read-{name}"),
                    &format!("{name} files"),
                    &format!("From a file in {name} to records, one by one."),
                ),
                timed(
                    &format!("write-{name}"),
                    &format!("{name} files"),
                    &format!("From prepared records to a new file in {name}."),
                ),
            ]),
        }
    }
    phases
}

/// What compressed files cost beside plain ones of the baseline: the question that the published
/// study answered without timing it. How they compare with the baseline compressed in the same way is
/// what their own phase says.
pub(super) fn contrasts(formats: &[Format], baseline: &str, phases: &[Phase]) -> Vec<Contrast> {
    let mut contrasts = Vec::new();
    for format in formats {
        for pack in ["gzip", "zstd"] {
            for way in ["read", "write"] {
                let id = format!("{way}-{pack}");
                if phases.iter().any(|p| p.id == id) && phases.iter().any(|p| p.id == way) {
                    contrasts.push(Contrast {
                        about: format!(
                            "{way} {} in {pack}, compared with plain {baseline}",
                            format.name()
                        ),
                        of: (format.name().to_owned(), id),
                        to: (baseline.to_owned(), way.to_owned()),
                        versus: None,
                    });
                }
            }
        }
    }
    contrasts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timed_phase_has_a_task_and_every_sum_its_parts() {
        let phases = phases(10, &Pack::ALL);
        for phase in &phases {
            match phase.sum_of.is_empty() {
                true => drop(Task::of(phase).unwrap()),
                false => assert!(phase.sum_of.iter().all(|id| phases.iter().any(|p| p.id == *id))),
            }
        }
        assert_eq!(phases.len(), 10);
        assert_eq!(super::phases(10, &[Pack::Plain]).len(), 6);
        let contrasts = contrasts(&[Format::Json, Format::Cbor], "marc21", &phases);
        assert_eq!(contrasts.len(), 8);
    }
}
