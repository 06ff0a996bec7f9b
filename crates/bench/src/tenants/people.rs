//! The records of the tenants, and the questions that are asked of them: all drawn from a seed before any clock runs,
//! so that every arm is asked the same, and with what must come out.

use crate::{
    Error, ErrorKind, Result,
    format::Format,
    random::Random,
    record::{Document, Value, dataset::Dataset},
    stop::Stop,
    store::{
        Filter, Key, Query, Row,
        query::{Order, Path, Test},
    },
};

/// The field that is indexed, and asked for; ages are 0 to 99.
pub(super) const FIELD: &str = "age";
const AGES: u64 = 100;
/// So many records an answer has at least, on average, where a tenant has as many.
const ANSWER: u64 = 10;
/// No answer has more: a page of the gateway.
const LIMIT: u64 = 1000;

/// The records: so many people for each of so many tenants.
pub(super) struct People {
    seed: u64,
    /// How many tenants.
    pub tenants: u64,
    /// How many records of each.
    pub documents: u64,
    /// How many of a tenant have which age.
    ages: Vec<u32>,
}

/// A question of one tenant: those of some ages, in the order of their keys.
pub(super) struct Ask {
    pub tenant: usize,
    pub from: u64,
    pub until: u64,
    pub query: Query,
    /// The same for the gateway.
    pub path: String,
    /// How many records must come.
    pub wanted: u64,
}

/// A record that is new to a tenant.
pub(super) struct Insert {
    pub tenant: usize,
    pub row: Row,
    /// The same for the gateway.
    pub path: String,
    pub body: Vec<u8>,
}

/// How many ages a question spans: so many that about ten records fit, one at least.
pub(super) fn span(documents: u64) -> u64 {
    (ANSWER * AGES / documents.max(1)).clamp(1, AGES)
}

/// What is asked, for people.
pub(super) fn condition(documents: u64) -> String {
    match span(documents) {
        1 => "age = a".into(),
        n => format!("age >= a and age < a + {n}"),
    }
}

impl People {
    /// # Errors
    /// Where the run is to end.
    pub(super) fn new(seed: u64, tenants: u64, documents: u64, stop: &Stop) -> Result<People> {
        let mut people = People { seed, tenants, documents, ages: Vec::new() };
        people.ages = vec![0; (tenants * AGES) as usize];
        for tenant in 0..tenants {
            stop.check()?;
            for n in 0..documents {
                let age = age(&people.document(tenant * documents + n));
                people.ages[(tenant * AGES + age) as usize] += 1;
            }
        }
        Ok(people)
    }

    /// Records of which nobody has counted the ages: questions of these say that no record must come.
    pub(super) fn unread(documents: u64, tenants: u64) -> People {
        let ages = vec![0; (tenants * AGES) as usize];
        People { seed: 0, tenants, documents, ages }
    }

    fn document(&self, number: u64) -> Document {
        Dataset::PeopleJson.document(self.seed, number).unwrap_or_default()
    }

    fn row(&self, number: u64) -> Result<Row> {
        Ok(Row { key: Key::new(format!("bob{number}"))?, record: self.document(number) })
    }

    /// A record of a tenant.
    pub(super) fn of(&self, tenant: usize, n: u64) -> Result<Row> {
        self.row(tenant as u64 * self.documents + n)
    }

    /// All records of a tenant.
    pub(super) fn rows(&self, tenant: usize) -> Result<Vec<Row>> {
        (0..self.documents).map(|n| self.of(tenant, n)).collect()
    }

    /// The mean number of records of an answer.
    pub(super) fn answer(&self) -> f64 {
        let all = (self.tenants * self.documents) as f64;
        all * span(self.documents) as f64 / (self.tenants * AGES).max(1) as f64
    }

    /// A question of this tenant, for ages from this one on.
    pub(super) fn ask(&self, tenant: usize, from: u64) -> Ask {
        let until = from + span(self.documents);
        let test = |test: fn(Value) -> Test, age: u64| {
            Filter::Field(Path::new([FIELD]), test(Value::Int(age as i64)))
        };
        let (filter, condition) = match until - from {
            1 => (test(Test::Eq, from), format!("age%3D{from}")),
            _ => (
                Filter::And(vec![test(Test::Ge, from), test(Test::Lt, until)]),
                format!("age%3E%3D{from}%20and%20age%3C{until}"),
            ),
        };
        let first = tenant * AGES as usize;
        let ages = &self.ages[first + from as usize..first + until as usize];
        // One more than a page has: so the gateway knows whether there is another one.
        let query = Query::new(filter).sorted(Path::new([Path::KEY]), Order::Ascending);
        Ask {
            tenant,
            from,
            until,
            query: query.limited(LIMIT + 1),
            path: format!("/v1/docs/{}?where={condition}&limit={LIMIT}", super::TABLE),
            wanted: ages.iter().map(|n| u64::from(*n)).sum(),
        }
    }

    /// So many questions, of tenants and ages each as likely as any other.
    pub(super) fn asks(&self, count: u64, seed: u64) -> Vec<Ask> {
        let mut random = Random::new(seed);
        let ages = AGES - span(self.documents) + 1;
        let mut one = || {
            let tenant = random.below(self.tenants) as usize;
            self.ask(tenant, random.below(ages))
        };
        (0..count).map(|_| one()).collect()
    }

    /// A question of each of so many tenants that are drawn, but not of the first, each once.
    pub(super) fn touches(&self, count: u64, seed: u64) -> Vec<Ask> {
        let mut random = Random::new(seed);
        let mut others: Vec<usize> = (1..self.tenants as usize).collect();
        random.shuffle(&mut others);
        others.truncate(count as usize);
        let ages = AGES - span(self.documents) + 1;
        others.into_iter().map(|tenant| self.ask(tenant, random.below(ages))).collect()
    }

    /// So many records, which nobody has, for tenants that are drawn.
    ///
    /// # Errors
    /// None that is known: they are encoded as JSON.
    pub(super) fn inserts(&self, count: u64, seed: u64) -> Result<Vec<Insert>> {
        let mut random = Random::new(seed);
        (0..count).map(|n| self.insert(random.below(self.tenants) as usize, n)).collect()
    }

    /// A record for each of the last so many tenants, which are neither anybody's nor among so many
    /// [`inserts`](People::inserts).
    ///
    /// # Errors
    /// As [`inserts`](People::inserts).
    pub(super) fn firsts(&self, tenants: u64, inserts: u64) -> Result<Vec<Insert>> {
        let from = self.tenants.saturating_sub(tenants);
        (from..self.tenants).map(|tenant| self.insert(tenant as usize, inserts + tenant)).collect()
    }

    /// The new record of this number, for a tenant.
    fn insert(&self, tenant: usize, n: u64) -> Result<Insert> {
        let row = self.row(self.tenants * self.documents + n)?;
        let mut body = Vec::new();
        Format::Json.encode_document(&row.record, &mut body)?;
        let path = format!("/v1/docs/{}/{}", super::TABLE, row.key.as_str());
        Ok(Insert { tenant, row, path, body })
    }

    /// Compares an answer with the records, whole and in order.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch), naming tenant and difference.
    pub(super) fn check(&self, ask: &Ask, rows: &[Row]) -> Result<()> {
        let mut wanted = self.rows(ask.tenant)?;
        wanted.retain(|row| (ask.from..ask.until).contains(&age(&row.record)));
        wanted.sort_by(|a, b| a.key.as_str().as_bytes().cmp(b.key.as_str().as_bytes()));
        let place = |what: String| {
            Error::new(ErrorKind::Mismatch, format!("tenant {}: {what}", ask.tenant + 1))
        };
        if rows.len() as u64 != ask.wanted || rows.len() != wanted.len() {
            let surplus = |row: &&Row| wanted.iter().all(|wanted| wanted.key != row.key);
            let surplus = rows.iter().find(surplus).map_or(String::new(), |row| {
                format!("; {} should not be among them", row.key.shown())
            });
            return Err(counts(ask, rows.len(), &surplus));
        }
        match rows.iter().zip(&wanted).find(|(row, wanted)| !same(row, wanted)) {
            None => Ok(()),
            Some((row, wanted)) => Err(place(format!(
                "the record {} is not the one that was written as {}",
                row.key.shown(),
                wanted.key.shown()
            ))),
        }
    }
}

/// Whether so many records were wanted.
///
/// # Errors
/// [`Mismatch`](ErrorKind::Mismatch) where they were not.
pub(super) fn counted(ask: &Ask, found: usize) -> Result<()> {
    match found as u64 == ask.wanted {
        true => Ok(()),
        false => Err(counts(ask, found, "")),
    }
}

fn counts(ask: &Ask, found: usize, more: &str) -> Error {
    let (tenant, wanted) = (ask.tenant + 1, ask.wanted);
    let what = format!("tenant {tenant}: the query returned {found} records, not {wanted}{more}");
    Error::new(ErrorKind::Mismatch, what)
}

/// Whether a record came back as it was, but for the order of its names.
pub(super) fn same(row: &Row, wanted: &Row) -> bool {
    row.key == wanted.key && same_record(&row.record, &wanted.record)
}

/// The same of records alone.
pub(super) fn same_record(record: &Document, wanted: &Document) -> bool {
    record.len() == wanted.len()
        && wanted.iter().all(|(name, value)| record.get(name) == Some(value))
}

fn age(record: &Document) -> u64 {
    match record.get(FIELD) {
        Some(Value::Int(age)) => *age as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people(tenants: u64, documents: u64) -> People {
        People::new(7, tenants, documents, &Stop::default()).unwrap()
    }

    #[test]
    fn about_ten_records_answer_a_question_and_they_are_known_beforehand() {
        assert_eq!([100, 200, 1000, 5000].map(span), [10, 5, 1, 1]);
        assert_eq!((span(1), condition(1000)), (100, "age = a".into()));
        for documents in [60, 200, 1000] {
            let people = people(3, documents);
            let asks = people.asks(200, 1);
            let mean = asks.iter().map(|a| a.wanted).sum::<u64>() as f64 / 200.0;
            assert!((people.answer() / mean - 1.0).abs() < 0.2, "{documents}: {mean}");
            for ask in &asks[..20] {
                let rows = people.rows(ask.tenant).unwrap();
                let fits = |row: &&Row| ask.query.matches(&row.key, &row.record);
                let mut found: Vec<Row> = rows.iter().filter(fits).cloned().collect();
                assert_eq!(found.len() as u64, ask.wanted);
                found.sort_by(|a, b| a.key.as_str().cmp(b.key.as_str()));
                people.check(ask, &found).unwrap();
                if let Some(row) = found.first_mut() {
                    row.record.insert("name", "somebody else");
                    assert!(people.check(ask, &found).is_err());
                }
                assert!(
                    people.check(ask, &found[..found.len().saturating_sub(1)]).is_err()
                        || found.is_empty()
                );
            }
        }
    }

    #[test]
    fn draws_follow_from_the_seed_and_no_two_tenants_share_a_record() {
        let one = people(5, 60);
        let tenants = |asks: Vec<Ask>| asks.iter().map(|a| (a.tenant, a.from)).collect::<Vec<_>>();
        assert_eq!(tenants(one.asks(50, 3)), tenants(one.asks(50, 3)));
        assert_ne!(tenants(one.asks(50, 3)), tenants(one.asks(50, 4)));
        let mut touched = tenants(one.touches(16, 3));
        touched.sort_unstable();
        assert_eq!(touched.iter().map(|t| t.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
        let mut keys: Vec<Key> = Vec::new();
        for tenant in 0..5 {
            keys.extend(one.rows(tenant).unwrap().into_iter().map(|row| row.key));
        }
        keys.extend(one.inserts(40, 1).unwrap().into_iter().map(|insert| insert.row.key));
        keys.extend(one.firsts(3, 40).unwrap().into_iter().map(|insert| insert.row.key));
        let last: Vec<usize> = one.firsts(3, 40).unwrap().iter().map(|i| i.tenant).collect();
        assert_eq!(last, [2, 3, 4]);
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!((all, keys.len()), (343, 343));
    }
}
