//! The kind of the values under an indexed path: some stores have typed indexes, which hold only values of their type.

use super::data::{Records, value};
use crate::{
    random::Random,
    record::{Document, Kind},
    store::query::Path,
    workload::Workload,
};

/// So many records are looked at.
const MOST: u64 = 20_000;

/// How many of the values under a path are of each kind. What has no value there, or null, is not
/// among them: no index needs a type for it.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    counts: Vec<(Kind, u64)>,
}

impl Kinds {
    /// Those under a path, in records drawn evenly from all of them.
    pub(super) fn of(records: &Records, path: &Path, seed: u64) -> Kinds {
        let (step, mut random) = (records.count.div_ceil(MOST).max(1), Random::new(seed));
        // One from each stretch, at random: records that alternate must not fall in with the steps.
        let at = |from: u64| (from + random.below(step)).min(records.count - 1);
        let going_on = |_: &u64| !records.stop.is_set();
        let numbers = (0..records.count).step_by(step as usize).take_while(going_on).map(at);
        let mut kinds = Kinds::default();
        numbers.for_each(|n| kinds.add(&records.document(n), path));
        if kinds.counts.is_empty() && step > 1 {
            // Rare: any will do.
            let has = |document: &Document| value(document, path.names()).is_some();
            let numbers = (0..records.count).take_while(|_| !records.stop.is_set());
            let found = numbers.map(|n| records.document(n)).find(has);
            found.iter().for_each(|document| kinds.add(document, path));
        }
        kinds
    }

    fn add(&mut self, document: &Document, path: &Path) {
        let Some(kind) = value(document, path.names()).map(|value| value.kind()) else { return };
        match self.counts.iter_mut().find(|count| count.0 == kind) {
            Some(count) => count.1 += 1,
            None => self.counts.push((kind, 1)),
        }
    }

    /// The kind that most of them have; `None` where no record has anything there. Numbers of any kind
    /// are counted together, for one index holds them.
    pub(super) fn usual(&self) -> Option<Kind> {
        let sort = self.sorts().first().map(|sort| sort.0);
        let of_it = self.counts.iter().filter(|(kind, _)| Some(sort_of(*kind)) == sort);
        let most = of_it.max_by_key(|count| count.1).map(|count| count.0);
        most.or(self.counts.first().map(|count| count.0))
    }

    /// Shares of the sorts of values, where there are several: `number in 60 %, text in 40 %`.
    fn shares(&self) -> Option<String> {
        let sorts = self.sorts();
        let all: u64 = sorts.iter().map(|sort| sort.1).sum();
        let share = |(name, n): &(&str, u64)| {
            let percent = (100.0 * *n as f64 / all as f64).round();
            // What is there is not 0 %, and then nothing else is all.
            format!("{name} in {} %", percent.clamp(1.0, 99.0))
        };
        (sorts.len() > 1).then(|| sorts.iter().map(share).collect::<Vec<_>>().join(", "))
    }

    /// How many there are of each sort, most first.
    fn sorts(&self) -> Vec<(&'static str, u64)> {
        let mut sorts: Vec<(&str, u64)> = Vec::new();
        for &(kind, n) in self.counts.iter().filter(|count| count.0 != Kind::Null) {
            match sorts.iter_mut().find(|sort| sort.0 == sort_of(kind)) {
                Some(sort) => sort.1 += n,
                None => sorts.push((sort_of(kind), n)),
            }
        }
        sorts.sort_by_key(|sort| std::cmp::Reverse(sort.1));
        sorts
    }
}

/// What a kind is called where all kinds of numbers are one.
fn sort_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Int | Kind::BigInt | Kind::Float | Kind::Decimal => "number",
        kind => kind.name(),
    }
}

/// What has to be said of fields that are to be indexed and hold several kinds of values.
pub(super) fn remarks(
    workload: &Workload,
    records: &[(String, Records)],
    seed: u64,
) -> Vec<String> {
    let mut fields: Vec<(&str, &Path)> = Vec::new();
    for table in &workload.tables {
        fields.extend(table.index.iter().map(|path| (&*table.name, path)));
    }
    for phase in &workload.phases {
        fields.extend(phase.kind.indexes().iter().map(|path| (&*phase.table, path)));
    }
    let mut said: Vec<String> = Vec::new();
    for (table, path) in fields {
        let Some((_, of)) = records.iter().find(|r| r.0 == table) else { continue };
        let Some(shares) = Kinds::of(of, path, seed).shares() else { continue };
        let field = match records.len() {
            1 => path.to_string(),
            _ => format!("{table}.{path}"),
        };
        let remark = format!(
            "{field}: {shares} of the records that have it; an index with a type (MariaDB, MySQL, \
             Tokyo Tyrant) holds the most frequent kind only."
        );
        if !said.contains(&remark) {
            said.push(remark);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::Value, results::Dataset, stores::OwnRecords};

    /// Records whose field `zip` is as given.
    fn records(workload: &Workload, zips: impl Iterator<Item = Option<Value>>) -> Records {
        let document = |zip: Option<Value>| {
            let mut document = Document::new();
            document.insert("n", Value::Int(1));
            if let Some(zip) = zip {
                document.insert("zip", zip);
            }
            document
        };
        let own = OwnRecords::new(zips.map(document).collect(), Dataset::default());
        Records::new(&workload.tables[0], Some(own.rows), 1).unwrap()
    }

    fn workload() -> Workload {
        Workload::parse(
            "name = \"x\"\nabout = \"y\"\n[table.records]\ndataset = \"people\"\n\
             [[phase]]\nname = \"load\"\ndo = \"load\"\n\
             [[phase]]\nname = \"index\"\ndo = \"index\"\nindex = [\"zip\"]\n",
        )
        .unwrap()
    }

    fn text() -> Option<Value> {
        Some(Value::Text("1010".into()))
    }

    #[test]
    fn the_kind_of_an_index_is_that_of_most_values_not_of_the_first() {
        let (workload, path) = (workload(), "zip".parse::<Path>().unwrap());
        let number = |n: u64| match n % 2 {
            0 => Some(Value::Int(n as i64)),
            _ => Some(Value::Float(0.5)),
        };
        // 40 % are texts, the first among them; many more than are looked at, in step with any stride.
        for count in [10u64, 50_000] {
            let zip = |n: u64| if n % 5 < 2 { text() } else { number(n / 5 * 3 + n % 5) };
            let records = records(&workload, (0..count).map(zip));
            let kind = records.index(&path).unwrap().kind;
            assert!(matches!(kind, Kind::Int | Kind::Float), "{count}: {kind:?}");
            let said = remarks(&workload, &[("records".into(), records)], 1);
            let [said] = &said[..] else { panic!("{said:?}") };
            assert!(said.starts_with("zip: number in "), "{said}");
            assert!(
                count > 10 || said.starts_with("zip: number in 60 %, text in 40 % of"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_field_of_one_kind_has_no_remark_and_nulls_are_none() {
        let (workload, path) = (workload(), "zip".parse::<Path>().unwrap());
        let zips = [Some(Value::Null), Some(Value::Null), None, text(), None];
        let held = records(&workload, zips.into_iter());
        assert_eq!(held.index(&path).unwrap().kind, Kind::Text);
        assert!(remarks(&workload, &[("records".into(), held)], 1).is_empty());
        // A kind as rare as can be is found, and named as there.
        let rare = (0..300).map(|n| if n == 0 { text() } else { Some(Value::Int(n)) });
        let held = records(&workload, rare);
        assert_eq!(held.index(&path).unwrap().kind, Kind::Int);
        let said = remarks(&workload, &[("records".into(), held)], 1);
        assert!(said[0].starts_with("zip: number in 99 %, text in 1 % of"), "{said:?}");
        let only = (0..45_000).map(|n| (n == 44_321).then_some(Value::Int(7)));
        assert_eq!(records(&workload, only).index(&path).unwrap().kind, Kind::Int);
        assert!(records(&workload, (0..9).map(|_| None)).index(&path).is_err());
    }
}
