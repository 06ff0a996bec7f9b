//! The seven series of the published test, for any wraps and counts.

use crate::{
    Error, Result,
    format::{Wrap, Wrapped},
    results::{Contrast, Phase},
};

/// What a series does with each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Series {
    Create,
    CreateDump,
    Load,
    DumpLoad,
}

/// Name, series, what is inside the window.
const SERIES: [(&str, Series, &str); 4] = [
    (
        "create",
        Series::Create,
        "the object is made: five fields, six allocations; the same code for every format",
    ),
    ("create+dump", Series::CreateDump, "it is made and turned into bytes, in memory used again"),
    ("load", Series::Load, "an object is made from its bytes, and dropped"),
    (
        "dump+load",
        Series::DumpLoad,
        "an object that is there is turned into bytes, and made from them again",
    ),
];

impl Series {
    /// The series of a phase, and which of the ways (the plain one first) it goes.
    pub(super) fn of<'a>(
        phase: &Phase,
        ways: impl Iterator<Item = &'a Wrapped>,
    ) -> Result<(Series, usize)> {
        let unknown = || Error::invalid(format!("no series {:?}", phase.name));
        if let Some(plain) = SERIES.iter().find(|s| s.0 == phase.name) {
            return Ok((plain.1, 0));
        }
        let (name, wrap) = phase.name.rsplit_once('+').ok_or_else(unknown)?;
        let series = SERIES.iter().find(|s| s.0 == name).ok_or_else(unknown)?;
        let way = ways
            .enumerate()
            .find(|(_, w)| w.wraps.first().is_some_and(|w| w.to_string() == wrap))
            .ok_or_else(unknown)?;
        Ok((series.1, way.0))
    }
}

/// The series at each count.
pub(super) fn phases(counts: &[u64], wraps: &[Wrap]) -> Vec<Phase> {
    let mut phases = Vec::new();
    for &count in counts {
        let table = format!("{count} objects");
        let mut put = |name: &str, about: &str| {
            phases.push(Phase::new(name, &table, count, about).at(count));
        };
        put(SERIES[0].0, SERIES[0].2);
        for (name, _, about) in &SERIES[1..] {
            put(name, about);
            for wrap in wraps {
                put(&format!("{name}+{wrap}"), &format!("{about}; the bytes in {wrap}"));
            }
        }
    }
    phases
}

/// What each wrap adds, at the largest count.
pub(super) fn contrasts(formats: &[String], wraps: &[Wrap], count: u64) -> Vec<Contrast> {
    let mut contrasts = Vec::new();
    for format in formats {
        for wrap in wraps {
            for (series, ..) in &SERIES[1..] {
                contrasts.push(Contrast {
                    about: format!("{series} + {wrap}"),
                    of: (format.clone(), format!("{series}+{wrap}@{count}")),
                    to: (format.clone(), format!("{series}@{count}")),
                    versus: None,
                });
            }
        }
    }
    contrasts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    #[test]
    fn seven_series_for_one_wrap_as_published() {
        let phases = phases(&[10, 20], &[Wrap::Base64Lines]);
        let names: Vec<_> = phases[..7].iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "create",
                "create+dump",
                "create+dump+base64lines",
                "load",
                "load+base64lines",
                "dump+load",
                "dump+load+base64lines"
            ]
        );
        assert_eq!((phases.len(), phases[7].id.as_str()), (14, "create@20"));
        let ways = [Wrapped::from(Format::Json), "json+base64lines".parse().unwrap()];
        let of = |i: usize| Series::of(&phases[i], ways.iter()).unwrap();
        assert_eq!(
            (of(0), of(4), of(5)),
            ((Series::Create, 0), (Series::Load, 1), (Series::DumpLoad, 0))
        );
        let other = Phase::new("load+gzip", "", 1, "");
        assert!(Series::of(&other, ways.iter()).is_err());
    }

    #[test]
    fn contrasts_name_cells_that_there_are() {
        let wraps = [Wrap::Base64, Wrap::Gzip(6)];
        let phases = phases(&[5], &wraps);
        let contrasts = contrasts(&["json".into()], &wraps, 5);
        assert_eq!(contrasts.len(), 6);
        for c in contrasts {
            assert!(phases.iter().any(|p| p.id == c.of.1) && phases.iter().any(|p| p.id == c.to.1));
        }
    }
}
