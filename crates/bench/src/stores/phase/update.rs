//! `do = "update"`: writes records again with fields changed.

use std::sync::Arc;

use super::{
    super::{
        draws::Draws,
        expected::{Counts, Expected},
        operation::Op,
    },
    Info, Kind,
};
use crate::{
    Error, Result,
    record::Document,
    workload::{Phase, Spread},
};

pub(super) const INFO: Info = Info {
    name: "update",
    about: "writes records again with fields changed, one by one",
    options: &[
        ("keys", "which keys, see below (default `random`)"),
        ("set", "the fields and their new values"),
    ],
    example: "set = { age = 1 }",
    read: |options| Ok(Arc::new(Update { set: options.need("set")?, spread: options.spread()? })),
};

/// How many, where nobody says.
const USUAL: u64 = 2_000;

#[derive(Debug)]
struct Update {
    spread: Spread,
    set: Document,
}

impl Kind for Update {
    fn about(&self) -> String {
        "Records written again with fields changed".into()
    }

    fn unit(&self) -> &'static str {
        "records"
    }

    fn one_by_one(&self) -> bool {
        true
    }

    fn changes(&self) -> bool {
        true
    }

    fn spread(&self) -> Option<&Spread> {
        Some(&self.spread)
    }

    fn sets(&self) -> Option<&Document> {
        Some(&self.set)
    }

    /// Says how many records have already what it sets: a store may write nothing for those.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where all records do.
    fn check(&self, phase: &Phase, counts: &Counts<'_>, _: &Expected) -> Result<Option<String>> {
        let of = counts.records;
        let has = |n: &u64| {
            let record = of.document(*n);
            self.set.iter().all(|(name, value)| record.get(name) == Some(value))
        };
        match counts.numbers(of.count).filter(has).count() as u64 {
            0 => Ok(None),
            all if all == of.count => Err(Error::invalid(format!(
                "phase {}: every record has already what it sets, so nothing would be written; set a \
                 field to a value that few records have",
                phase.name
            ))),
            some => Ok(Some(format!(
                "{}: {:.0} % of the records had already what it sets; a store may write nothing for \
                 them",
                phase.name,
                100.0 * some as f64 / of.count as f64
            ))),
        }
    }

    fn drawn(&self, draws: &Draws<'_>) -> Result<Vec<Op>> {
        let mut draw = draws.of(&self.spread);
        draws.all(USUAL, || {
            let mut row = draws.records.row(draw.draw())?;
            for (name, value) in self.set.iter() {
                row.record.insert(name, value.clone());
            }
            Ok(Op::Put(Box::new(row)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::draws::tests::checked;

    #[test]
    fn updates_that_change_nothing_are_told_or_refused() {
        let of = |value: &str| {
            let text = format!(
                "name = \"x\"\nabout = \"x\"\n[table.records]\ndataset = \"people\"\ncount = 100\n\
                 [[phase]]\nname = \"load\"\ndo = \"load\"\n\
                 [[phase]]\nname = \"set\"\ndo = \"update\"\nset = {{ {value} }}\n"
            );
            checked(&text, "set")
        };
        assert_eq!(of("\"is_admin?\" = 7").unwrap(), None);
        let some = of("\"is_admin?\" = true").unwrap().unwrap();
        assert!(some.contains("% of the records had already"), "{some:?}");
        let all = of("name = \"Bob Jones\"").unwrap_err();
        assert!(all.to_string().contains("phase set: every record has already"), "{all}");
    }
}
