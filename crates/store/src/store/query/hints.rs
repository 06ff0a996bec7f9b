//! Hints on why a condition matches no record: no record has the field that it compares, or the field's values are of
//! another kind. Such a condition is valid and its answer is empty, so whoever wrote it should be told.

use std::collections::BTreeSet;

use futures_util::TryStreamExt;

use super::{
    Filter, Matcher, Path, Query, Test,
    look::{Check, Part, Step, any},
    shown,
};
use crate::{
    ErrorKind, Result,
    error::cut,
    record::{Document, Kind, Time, Value},
    store::{Key, KeyRange, Store},
};

/// What the fields hold that a filter compares, as far as records were [seen](Hints::see).
#[derive(Debug, Clone, Default)]
pub struct Hints {
    fields: Vec<Field>,
    /// How many records were seen.
    looked: u64,
    /// Names of their fields, for those that were mistyped.
    names: BTreeSet<String>,
}

/// So many names are remembered.
const NAMES: usize = 500;

/// A field that is compared.
#[derive(Debug, Clone)]
struct Field {
    path: String,
    steps: Vec<Step>,
    wanted: Wanted,
    /// What was found there.
    seen: Vec<Sort>,
}

/// What a field is compared with.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    Values(Vec<Value>),
    /// With part of a text.
    Text,
}

/// Kinds of values that can be compared with one another are of one sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Number,
    Text,
    Time,
    Bool,
    Bytes,
    Map,
    List,
}

impl Sort {
    fn of(value: &Value) -> Option<Sort> {
        Some(match value.kind() {
            Kind::Null => return None,
            Kind::Int | Kind::BigInt | Kind::Float | Kind::Decimal => Sort::Number,
            Kind::Text => Sort::Text,
            Kind::Time => Sort::Time,
            Kind::Bool => Sort::Bool,
            Kind::Bytes => Sort::Bytes,
            Kind::Map => Sort::Map,
            Kind::List => Sort::List,
        })
    }

    /// Several of it.
    fn several(self) -> &'static str {
        match self {
            Sort::Number => "numbers",
            Sort::Text => "texts",
            Sort::Time => "times",
            Sort::Bool => "true or false",
            Sort::Bytes => "bytes",
            Sort::Map => "maps",
            Sort::List => "lists",
        }
    }

    /// One of it.
    fn one(self) -> &'static str {
        match self {
            Sort::Number => "a number",
            Sort::Text => "a text",
            Sort::Time => "a time",
            Sort::Bool => "true or false",
            Sort::Bytes => "bytes",
            Sort::Map => "a map",
            Sort::List => "a list",
        }
    }
}

impl Hints {
    /// For a filter of which no record has been seen yet.
    pub fn new(filter: &Filter) -> Hints {
        let mut hints = Hints::default();
        hints.collect(filter);
        hints
    }

    /// Whether the filter compares no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn collect(&mut self, filter: &Filter) {
        let values = |test: &Test| match test {
            // What is not equal, or not there, is no reason for an empty answer.
            Test::Ne(_) | Test::Exists(_) => None,
            Test::Prefix(_) => Some(Wanted::Text),
            test => Some(Wanted::Values(test.values().to_vec())),
        };
        match filter {
            Filter::And(all) | Filter::Or(all) => all.iter().for_each(|one| self.collect(one)),
            Filter::Field(path, test) => {
                self.add(path.to_string(), Step::of(path), values(test));
            }
            Filter::Look(look) => {
                let wanted = match &look.check {
                    Check::Value(test) => values(test),
                    Check::Text(_) | Check::Length(_) => Some(Wanted::Text),
                    Check::There | Check::Count(_) => None,
                };
                if let Part::Document(steps) = &look.part {
                    self.add(written(steps), steps.clone(), wanted);
                }
            }
            Filter::All | Filter::Not(_) => {}
        }
    }

    fn add(&mut self, path: String, steps: Vec<Step>, wanted: Option<Wanted>) {
        let Some(wanted) = wanted else { return };
        if !self.fields.iter().any(|field| field.path == path && field.wanted == wanted) {
            self.fields.push(Field { path, steps, wanted, seen: Vec::new() });
        }
    }

    /// Looks at a record; at its key, where it has one.
    pub fn see(&mut self, key: Option<&Key>, record: &Document) {
        self.looked += 1;
        for (name, _) in record.iter() {
            if self.names.len() < NAMES && !self.names.contains(name) {
                self.names.insert(name.to_owned());
            }
        }
        for field in &mut self.fields {
            let seen = &mut field.seen;
            let mut note = |sort: Option<Sort>| {
                if let Some(sort) = sort.filter(|sort| !seen.contains(sort)) {
                    seen.push(sort);
                }
                false
            };
            match (&field.steps[..], key) {
                ([Step::Name(name)], Some(_)) if name == Path::KEY => {
                    note(Some(Sort::Text));
                }
                ([Step::Name(first), rest @ ..], _) => {
                    if let Some(value) = record.get(first) {
                        any(value, rest, &mut |value| note(Sort::of(value)));
                    }
                }
                _ => {}
            }
        }
    }

    /// What to tell of the fields that hold only what does not compare with what they are compared with, a sentence
    /// each.
    pub fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        let absent = |field: &Field| (self.looked > 0).then(|| self.absent(field)).flatten();
        for sentence in
            self.fields.iter().filter_map(|field| absent(field).or_else(|| field.told()))
        {
            if !told.contains(&sentence) {
                told.push(sentence);
            }
        }
        told
    }

    /// What to tell of a field that no record had.
    fn absent(&self, field: &Field) -> Option<String> {
        // A field that is not there is what is compared with null.
        let null = matches!(&field.wanted, Wanted::Values(all) if all.contains(&Value::Null));
        if !field.seen.is_empty() || null {
            return None;
        }
        /// Longer names are no slips of the hand, and take long to compare.
        const LONG: usize = 64;
        let path = &field.path;
        let far = |name: &String| strsim::damerau_levenshtein(name, path);
        let near = self.names.iter().filter(|name| path.len().max(name.len()) <= LONG);
        let near = near.filter(|name| far(name) <= 1 + path.len() / 4).min_by_key(|name| far(name));
        let path = cut(path);
        let instead = near.map_or(String::new(), |name| format!("; did you mean {name}?"));
        Some(match self.looked {
            1 => format!("the record has no field {path}{instead}"),
            n => format!("none of the {n} records looked at has a field {path}{instead}"),
        })
    }
}

impl Field {
    fn told(&self) -> Option<String> {
        let Field { path, wanted, seen, .. } = self;
        if seen.contains(&Sort::List) {
            return Some(format!("{path} is a list; {path}[] is any of its elements"));
        }
        let fits = |sort: &Sort| match wanted {
            Wanted::Text => *sort == Sort::Text,
            // What is compared with null has no sort, and fits what is not there.
            Wanted::Values(all) => {
                all.iter().any(|value| Sort::of(value).is_none_or(|wanted| wanted == *sort))
            }
        };
        if seen.is_empty() || seen.iter().any(fits) {
            return None;
        }
        let holds: Vec<&str> = seen.iter().map(|sort| sort.several()).collect();
        let advice = match (wanted, &seen[..]) {
            (Wanted::Values(all), [sort]) => match &all[..] {
                [value] => advice(*sort, value),
                _ => "none of them is of the kind compared with".into(),
            },
            (Wanted::Values(_), _) => "what it is compared with is neither".into(),
            (Wanted::Text, _) => "~, ^=, patterns, \"…\"i and len() are for texts".into(),
        };
        Some(format!("{path} holds {}; {advice}", holds.join(" and ")))
    }
}

/// How to compare what is of this sort, where somebody wrote a value of another.
fn advice(sort: Sort, with: &Value) -> String {
    let text = with.as_str();
    match (sort, with) {
        (Sort::Time, Value::Text(text)) if time(text).is_some() => {
            format!("compare it with time({})", time(text).unwrap_or_default())
        }
        (Sort::Time, _) => "a time is written time(2009-02-13T23:31:30Z)".into(),
        (Sort::Number | Sort::Bool, Value::Text(text)) if reads_as(sort, text) => {
            format!("compare it with {text}, without quotes")
        }
        (Sort::Text, Value::Time(time)) => format!("compare it with the text \"{time}\""),
        (Sort::Text, Value::Int(_) | Value::Float(_) | Value::Bool(_))
        | (Sort::Text, Value::BigInt(_) | Value::Decimal(_)) => {
            format!("compare it with the text \"{}\", in quotes", shown(with))
        }
        _ => {
            let is = Sort::of(with).map_or("nothing", Sort::one);
            format!("{} is {is}", text.map_or_else(|| shown(with), |text| format!("{text:?}")))
        }
    }
}

/// Whether a text without its quotes is of this sort.
fn reads_as(sort: Sort, text: &str) -> bool {
    let read = crate::format::Format::Json.decode::<Value>(text.as_bytes());
    read.is_ok_and(|value| Sort::of(&value) == Some(sort))
}

/// The time that a text seems to mean: in RFC 3339, with a blank for its `T`, without its zone, or a day alone.
fn time(text: &str) -> Option<String> {
    let mut whole = text.trim().replacen(' ', "T", 1);
    if whole.len() == 10 {
        whole += "T00:00:00";
    }
    let zoned =
        [whole.clone(), whole + "Z"].into_iter().find(|text| text.parse::<Time>().is_ok())?;
    zoned.parse::<Time>().ok().map(|time| time.to_string())
}

/// A path as it is written.
fn written(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Each => text += "[]",
            Step::Name(name) => {
                text += if text.is_empty() { "" } else { "." };
                text += &Path::new([name]).to_string();
            }
        }
    }
    text
}

/// How many records are looked at.
const SOME: u64 = 1000;

/// What to tell of a filter that fits no record of a store: what some of its records hold otherwise than the
/// filter compares it. Whichever these are: in the order of keys a store without an index of them would sort all it has.
///
/// # Errors
/// Of the store.
pub async fn hints(store: &dyn Store, filter: &Filter) -> Result<Vec<String>> {
    let mut hints = Hints::new(filter);
    if hints.is_empty() {
        return Ok(Vec::new());
    }
    let matcher = Matcher::new(filter.clone(), store.abilities().compared());
    let mut rows = match store.find(&Query::default().limited(SOME)).await {
        Err(e) if e.kind() == ErrorKind::Unsupported => store.scan(&KeyRange::all()).await?,
        rows => rows?,
    };
    // The first batch that has records.
    while let Some(batch) = rows.try_next().await? {
        batch.iter().for_each(|row| hints.see(Some(&row.key), &matcher.read(&row.record)));
        if !batch.is_empty() {
            break;
        }
    }
    Ok(hints.told())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::query::Condition;

    /// Every sort of value against a field of every other: no record fits, and it is told; where one fits, nothing
    /// is.
    #[test]
    fn what_compares_with_nothing_is_told_and_nothing_else() {
        let moment: Time = "2020-06-01T00:00:00Z".parse().unwrap();
        let values = [
            ("n", Value::Int(1990)),
            ("f", Value::Float(0.5)),
            ("t", Value::from("1990")),
            ("at", Value::Time(moment)),
            ("b", Value::Bool(true)),
            ("x", Value::Bytes(vec![1])),
            ("l", Value::List(vec![Value::Int(1)])),
            ("m", Value::Map(Document::from_iter([("a", 1i64)]))),
        ];
        let record = Document::from_iter(values.clone());
        let key = Key::new("k").unwrap();
        let mut checked = 0;
        for (name, _) in &values {
            for with in ["1990", "0.5", "\"1990\"", "abc", "time(2020-06-01)", "true"] {
                for sign in ["=", ">=", "<=", "^=", "~"] {
                    let Ok(condition) = format!("{name}{sign}{with}").parse::<Condition>() else {
                        continue;
                    };
                    let Ok(filter) = condition.filter() else { continue };
                    let mut hints = Hints::new(&filter);
                    assert_eq!(hints.told(), [""; 0], "{condition}: no record seen");
                    hints.see(Some(&key), &record);
                    let told = hints.told();
                    // Either of these fits what is of the same sort.
                    let fits = ["=", ">=", "<="].iter().any(|sign| {
                        let same: Option<Filter> = format!("{name}{sign}{with}").parse().ok();
                        same.is_some_and(|same| same.fits_document(Some(&key), &record))
                    });
                    let text = matches!(sign, "~" | "^=");
                    let compares = if text { *name == "t" } else { fits };
                    assert_eq!(told.is_empty(), compares, "{condition}: {told:?}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 150, "{checked}");
    }

    #[test]
    fn what_is_told_says_what_to_write() {
        let moment: Time = "2020-06-01T00:00:00Z".parse().unwrap();
        let record = Document::from_iter([
            ("at", Value::Time(moment)),
            ("year", Value::Int(1999)),
            ("zip", Value::from("01234")),
            ("ok", Value::Bool(true)),
            ("tags", Value::List(vec![Value::from("red"), Value::Int(2)])),
            ("a", Value::Map(Document::from_iter([("b", 1i64)]))),
        ]);
        let key = Key::new("7").unwrap();
        for (condition, want) in [
            ("at>=\"2020-01-01\"", "at holds times; compare it with time(2020-01-01T00:00:00Z)"),
            (
                "at<'2020-01-01 10:30:00'",
                "at holds times; compare it with time(2020-01-01T10:30:00Z)",
            ),
            (
                "at<\"2020-01-01T10:30:00+02:00\"",
                "at holds times; compare it with time(2020-01-01T08:30:00Z)",
            ),
            ("at>2020", "at holds times; a time is written time(2009-02-13T23:31:30Z)"),
            ("at~2020", "at holds times; ~, ^=, patterns, \"…\"i and len() are for texts"),
            ("year>\"1990\"", "year holds numbers; compare it with 1990, without quotes"),
            ("year=old", "year holds numbers; \"old\" is a text"),
            ("zip=1234", "zip holds texts; compare it with the text \"1234\", in quotes"),
            (
                "zip<time(2020-01-01)",
                "zip holds texts; compare it with the text \"2020-01-01T00:00:00Z\"",
            ),
            ("ok=\"true\"", "ok holds true or false; compare it with true, without quotes"),
            ("tags=red", "tags is a list; tags[] is any of its elements"),
            ("tags[]=true", "tags[] holds texts and numbers; what it is compared with is neither"),
            ("a=1", "a holds maps; 1 is a number"),
            ("a.b=\"1\"", "a.b holds numbers; compare it with 1, without quotes"),
            // Whatever stands there is a text.
            ("_key=8", ""),
            ("year in (old, new)", "year holds numbers; none of them is of the kind compared with"),
            ("year in (old, 3)", ""),
            ("year=null", ""),
            ("year!=old", ""),
            ("not year=old", ""),
            ("nothing=1", "the record has no field nothing"),
            ("yeer=3", "the record has no field yeer; did you mean year?"),
        ] {
            let filter: Filter = condition.parse().unwrap();
            let mut hints = Hints::new(&filter);
            hints.see(Some(&key), &record);
            assert_eq!(hints.told().join("; "), want, "{condition}");
        }
    }
}
