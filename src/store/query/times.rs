//! Times in stores that keep them as texts.
//!
//! There a condition on a time is one on the text that [`Time`] is written as: `2009-02-13T23:31:30.5Z`. Their order
//! is not that of the times, as `.` comes before `Z`: without the `Z` it is. A record that is looked at here is read
//! as if its times were times ([`Matcher`]); a database gets a condition on texts ([`as_texts`]).

use std::borrow::Cow;

use super::{
    Filter, Path, Test,
    look::{Check, Part, Step},
};
use crate::{
    Error, Result,
    record::{Document, Kind, Time, Value},
    store::Key,
};

/// A filter over records whose times may have become texts: what is compared with a time is read as one, where
/// it is the text of a time.
pub struct Matcher {
    filter: Filter,
    /// What is compared with times.
    times: Vec<Vec<Step>>,
}

impl Matcher {
    /// For records in which only values of these kinds stay what they are.
    pub fn new(filter: Filter, keeps: &[Kind]) -> Matcher {
        let mut times = Vec::new();
        if !keeps.contains(&Kind::Time) {
            compared_with_times(&filter, &mut times);
        }
        Matcher { filter, times }
    }

    /// What it was made of.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Whether a record fits; with its key, where it has one.
    pub fn fits(&self, key: Option<&Key>, record: &Document) -> bool {
        self.filter.fits_document(key, &self.read(record))
    }

    /// The record with times in the place of texts that are compared with times.
    pub fn read<'r>(&self, record: &'r Document) -> Cow<'r, Document> {
        if self.times.is_empty() {
            return Cow::Borrowed(record);
        }
        let mut value = Value::Map(record.clone());
        for steps in &self.times {
            read(&mut value, steps);
        }
        match value {
            Value::Map(record) => Cow::Owned(record),
            _ => unreachable!("it was made of a record"),
        }
    }
}

fn compared_with_times(filter: &Filter, paths: &mut Vec<Vec<Step>>) {
    let mut add = |test: &Test, steps: Vec<Step>| {
        let is_time = |value: &Value| matches!(value, Value::Time(_));
        if test.values().iter().any(is_time) && !paths.contains(&steps) {
            paths.push(steps);
        }
    };
    match filter {
        Filter::All => {}
        Filter::And(all) | Filter::Or(all) => {
            all.iter().for_each(|one| compared_with_times(one, paths));
        }
        Filter::Not(one) => compared_with_times(one, paths),
        Filter::Field(path, test) => add(test, Step::of(path)),
        Filter::Look(look) => {
            if let (Part::Document(steps), Check::Value(test)) = (&look.part, &look.check) {
                add(test, steps.clone());
            }
        }
    }
}

fn read(value: &mut Value, steps: &[Step]) {
    match (steps, value) {
        ([], value) => {
            if let Some(Ok(time)) = value.as_str().map(str::parse::<Time>) {
                *value = Value::Time(time);
            }
        }
        ([Step::Name(name), rest @ ..], Value::Map(map)) => {
            if let Some(value) = map.get_mut(name) {
                read(value, rest);
            }
        }
        ([Step::Each, rest @ ..], Value::List(list)) => {
            list.iter_mut().for_each(|value| read(value, rest));
        }
        _ => {}
    }
}

/// Texts of times lie between these; those of years before 0 begin with `-`.
const FIRST: &str = "-";
const BEYOND: &str = ":";

/// A comparison with a time, for texts: true for the texts of the times that it is true for. None where nothing is
/// compared with a time.
///
/// Of two texts of times the one without its `Z` that is less, or the beginning of the other, is that of the
/// earlier. So what the texts say is right but for the texts that are a beginning of the one compared with and then
/// `Z`: those are named.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) where it is before the year 0: the texts of such years are in
/// reverse order.
// Not used by every choice of features.
#[allow(dead_code)]
pub fn as_texts(path: &Path, test: &Test) -> Result<Option<Filter>> {
    let time = match test {
        Test::Eq(Value::Time(time)) => return Ok(Some(text(path, Test::Eq, &time.to_string()))),
        Test::Lt(Value::Time(time)) | Test::Le(Value::Time(time)) => time.to_string(),
        Test::Gt(Value::Time(time)) | Test::Ge(Value::Time(time)) => time.to_string(),
        _ => return Ok(None),
    };
    if time.starts_with('-') {
        return Err(Error::unsupported("a comparison with the text of a time before the year 0"));
    }
    let bare = time.trim_end_matches('Z');
    let seconds = bare.find('.').unwrap_or(bare.len());
    // Beginnings that are times: the whole second, and with digits of its fraction.
    let mut before: Vec<Value> = (seconds..bare.len())
        .filter(|end| *end != seconds + 1)
        .map(|end| format!("{}Z", &bare[..end]).into())
        .collect();
    if matches!(test, Test::Le(_) | Test::Gt(_)) {
        before.push(time.as_str().into());
    }
    let named = Filter::Field(path.clone(), Test::In(before.clone()));
    Ok(Some(match test {
        Test::Gt(_) | Test::Ge(_) => {
            let more = match test {
                Test::Gt(_) => text(path, Test::Gt, bare),
                _ => text(path, Test::Ge, bare),
            };
            let mut all = vec![more, text(path, Test::Lt, BEYOND)];
            if !before.is_empty() {
                all.push(Filter::Not(Box::new(named)));
            }
            Filter::And(all)
        }
        _ => {
            let less = match test {
                Test::Lt(_) => text(path, Test::Lt, bare),
                _ => text(path, Test::Le, bare),
            };
            let first = text(path, Test::Ge, FIRST);
            match before.is_empty() {
                true => Filter::And(vec![first, less]),
                // The one range that an index looks through, then what is in it.
                false => {
                    let last = text(path, Test::Le, &format!("{}Z", &bare[..seconds]));
                    Filter::And(vec![first, last, Filter::Or(vec![less, named])])
                }
            }
        }
    }))
}

fn text(path: &Path, test: fn(Value) -> Test, with: &str) -> Filter {
    Filter::Field(path.clone(), test(with.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::{Query, query::Hints};

    #[test]
    fn texts_that_are_times_are_compared_as_times() {
        let matcher = |text: &str| Matcher::new(text.parse().unwrap(), &[Kind::Text]);
        let key = Key::new("k").unwrap();
        let record = Document::from_iter([
            ("at", Value::from("2009-02-13T23:31:30.5Z")),
            ("in", Value::Map(Document::from_iter([("at", "2009-02-13T23:31:30Z")]))),
            ("no", Value::from("yesterday")),
        ]);
        for (filter, want) in [
            (r#"{"at": {"$gt": {"$date": "2009-02-13T23:31:30Z"}}}"#, true),
            (r#"{"at": {"$lt": {"$date": "2009-02-13T23:31:30Z"}}}"#, false),
            (r#"{"in.at": {"$date": "2009-02-14T00:31:30+01:00"}}"#, true),
            (r#"{"no": {"$lt": {"$date": "2009-02-13T23:31:30Z"}}}"#, false),
            (r#"{"in.at": "2009-02-13T23:31:30Z"}"#, true),
        ] {
            assert_eq!(matcher(filter).fits(Some(&key), &record), want, "{filter}");
        }
    }

    #[test]
    fn texts_of_times_need_no_hint() {
        let filter: Filter =
            r#"{"at": {"$gt": {"$date": "2030-01-01T00:00:00Z"}}}"#.parse().unwrap();
        for (keeps, told) in [(&[Kind::Text][..], 0), (&Kind::ALL, 1)] {
            let mut hints = Hints::new(&filter);
            let matcher = Matcher::new(filter.clone(), keeps);
            let record = Document::from_iter([("at", "2020-01-01T00:00:00Z")]);
            hints.see(None, &matcher.read(&record));
            assert_eq!(hints.told().len(), told, "{:?}", hints.told());
        }
    }

    /// Close to each other, with fractions of few digits and of many.
    fn times() -> impl Strategy<Value = Time> {
        let nanos = prop_oneof![
            Just(0),
            (0..10u32).prop_map(|n| n * 100_000_000),
            (0..1000u32).prop_map(|n| n * 1_000_000),
            (0..1000u32).prop_map(|n| 500_000_000 + n),
        ];
        let seconds = prop_oneof![0..2i64, Just(-70_000_000_000), Just(253_402_207_199)];
        (seconds, nanos).prop_map(|(s, n)| Time::from_unix(s, n).unwrap())
    }

    proptest! {
        #[test]
        fn texts_of_times_compare_as_the_times(a in times(), b in times()) {
            let key = Key::new("k").unwrap();
            let (path, with) = (Path::new(["at"]), Value::Time(b));
            let as_time = Document::from_iter([("at", Value::Time(a))]);
            let as_text = Document::from_iter([("at", a.to_string())]);
            for test in [Test::Eq, Test::Ne, Test::Lt, Test::Le, Test::Gt, Test::Ge] {
                let test = test(with.clone());
                let query = Query::new(Filter::Field(path.clone(), test.clone()));
                let want = query.matches(&key, &as_time);
                let matcher = Matcher::new(query.filter.clone(), &[Kind::Text]);
                prop_assert_eq!(matcher.fits(Some(&key), &as_text), want);
                match as_texts(&path, &test) {
                    Ok(Some(filter)) => {
                        let fits = filter.fits_document(None, &as_text);
                        prop_assert_eq!(fits, want, "{} {:?}", a, test);
                    }
                    Ok(None) => prop_assert!(matches!(test, Test::Ne(_))),
                    Err(_) => prop_assert!(b.to_string().starts_with('-')),
                }
            }
        }
    }

    #[test]
    fn texts_that_are_no_times_are_not_found() {
        let with = |at: &str| Document::from_iter([("at", at)]);
        let path = Path::new(["at"]);
        for test in [Test::Eq, Test::Lt, Test::Le, Test::Gt, Test::Ge] {
            let time = "2009-02-13T23:31:30.5Z".parse().unwrap();
            let filter = as_texts(&path, &test(Value::Time(time))).unwrap().unwrap();
            for text in ["", "a time", "yesterday", "~"] {
                assert!(!filter.fits_document(None, &with(text)), "{text} {filter}");
            }
        }
    }
}
