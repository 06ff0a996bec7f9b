//! Translates queries into MongoDB's language, with the meaning of [`Query`].
//!
//! MongoDB's comparisons reach into arrays; ours do not. So each comparison comes with a guard: nothing
//! on its path is an array. A decimal is compared with a float by all binary digits of the float, where
//! to us a tenth is a tenth: a comparison with such a number is two, of floats and of decimals. Sorted,
//! a decimal comes before or after a float that is the same number. What is negated is negated as a whole (`$nor`), which is exact.
//!
//! A name with a dot in it can be stored but not be named in a path; conditions on such names are
//! left out here, and [`Translated::exact`] says that who asks must look again at what comes.

use bson::{Bson, Document, doc};

use super::convert::{ID, literal, millis};
use crate::{
    Error, Result,
    record::{Value, number},
    store::query::{Filter, Order, Path, Query, Test, narrowed},
};

/// A question.
#[derive(Default)]
pub(super) struct Find {
    pub filter: Document,
    pub order: Document,
    pub limit: Option<u64>,
    /// Only these fields.
    pub fields: Option<Document>,
}

/// A filter in MongoDB's words.
pub(super) struct Translated {
    /// What to ask.
    pub filter: Document,
    /// Whether it finds what it should; else it finds that and more.
    pub exact: bool,
}

/// A filter in MongoDB's words.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for comparisons with what none can be made with.
pub(super) fn translated(filter: &Filter) -> Result<Translated> {
    if addressable(filter) {
        return Ok(Translated { filter: whole(filter)?, exact: true });
    }
    let mut all = Vec::new();
    if let Filter::And(parts) = filter {
        for part in parts.iter().filter(|part| addressable(part)) {
            all.push(whole(part)?);
        }
    }
    Ok(Translated { filter: and(all), exact: false })
}

/// That a field at the top of a document is this text; none where no record that is read has the field.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) for names that MongoDB's paths cannot have.
pub(super) fn is_text(field: &str, text: &str) -> Result<Option<Document>> {
    if field == ID {
        return Ok(None);
    }
    if field.is_empty() || field.contains(['.', '\0']) || field.starts_with('$') {
        return Err(unaddressable(&Path::new([field]), "compare"));
    }
    let not = doc! {"$type": "array"};
    Ok(Some(doc! {field: {"$eq": text, "$type": "string", "$not": not}}))
}

/// What to sort by: at the end the keys, which nothing else is equal to, in the direction of the last
/// path.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) for names that MongoDB's paths cannot have.
pub(super) fn order(query: &Query) -> Result<Document> {
    let mut order = Document::new();
    let mut last = 1;
    for (path, direction) in &query.sort {
        let name = name(path).ok_or_else(|| unaddressable(path, "sort by"))?;
        // Once a path has decided, it decides nothing more.
        last = if *direction == Order::Ascending { 1 } else { -1 };
        if !order.contains_key(&name) {
            order.insert(name, last);
        }
    }
    if !order.is_empty() && !order.contains_key(ID) {
        order.insert(ID, last);
    }
    Ok(order)
}

/// The error for a path with names that MongoDB's paths cannot have.
pub(super) fn unaddressable(path: &Path, what: &str) -> Error {
    Error::unsupported(format!(
        "mongodb cannot {what} {:?}: its paths have no names with dots in them or a $ before them",
        path.to_string()
    ))
}

/// The path in MongoDB's words, if it can be said in them.
pub(super) fn name(path: &Path) -> Option<String> {
    if path.is_key() {
        return Some(ID.into());
    }
    let sayable = |name: &String| !name.contains(['.', '\0']) && !name.starts_with('$');
    path.names().iter().all(sayable).then(|| path.names().join("."))
}

fn addressable(filter: &Filter) -> bool {
    match filter {
        Filter::All => true,
        Filter::Look(_) => false,
        Filter::And(all) | Filter::Or(all) => all.iter().all(addressable),
        Filter::Not(one) => addressable(one),
        Filter::Field(path, _) => name(path).is_some(),
    }
}

fn whole(filter: &Filter) -> Result<Document> {
    Ok(match filter {
        Filter::All => doc! {},
        Filter::And(all) => and(all.iter().map(whole).collect::<Result<_>>()?),
        Filter::Or(any) => or(any.iter().map(whole).collect::<Result<_>>()?),
        Filter::Not(one) => not(whole(one)?),
        Filter::Field(path, test) => field(path, test)?,
        Filter::Look(look) => return Err(Error::unsupported(format!("a selector for {look}"))),
    })
}

fn and(mut all: Vec<Document>) -> Document {
    all.retain(|one| !one.is_empty());
    match all.len() {
        0 => doc! {},
        1 => all.remove(0),
        _ => doc! {"$and": all},
    }
}

fn or(mut any: Vec<Document>) -> Document {
    match any.len() {
        0 => nothing(),
        1 => any.remove(0),
        _ => doc! {"$or": any},
    }
}

fn not(one: Document) -> Document {
    doc! {"$nor": [one]}
}

/// What no document fits.
fn nothing() -> Document {
    doc! {ID: {"$in": []}}
}

fn field(path: &Path, test: &Test) -> Result<Document> {
    let at = Place::new(path)?;
    Ok(match test {
        Test::Eq(value) => at.equal(std::slice::from_ref(value))?,
        Test::Ne(value) => not(at.equal(std::slice::from_ref(value))?),
        Test::In(values) => at.equal(values)?,
        Test::Lt(value) => at.less(test, value, "$lt", "$lte")?,
        Test::Le(value) => at.less(test, value, "$lte", "$lte")?,
        Test::Gt(value) => at.less(test, value, "$gt", "$gt")?,
        Test::Ge(value) => at.less(test, value, "$gte", "$gt")?,
        Test::Exists(true) => at.exists(),
        Test::Exists(false) => not(at.exists()),
        Test::Prefix(start) => {
            let mut range = doc! {"$gte": start};
            if let Some(end) = after_all(start) {
                range.insert("$lt", end);
            }
            at.compared(range, array())
        }
    })
}

/// A path, and what lies on the way there.
struct Place {
    name: String,
    outer: Vec<String>,
}

impl Place {
    fn new(path: &Path) -> Result<Place> {
        let name = name(path).ok_or_else(|| unaddressable(path, "find by"))?;
        let outer = name.match_indices('.').map(|(at, _)| name[..at].to_owned()).collect();
        Ok(Place { name, outer })
    }

    fn is_key(&self) -> bool {
        self.name == ID
    }

    /// Arrays on the way, into which MongoDB would go.
    fn through_array(&self) -> impl Iterator<Item = Document> {
        self.outer.iter().map(|name| doc! {name: {"$type": "array"}})
    }

    /// The operators hold for the value there, which is of none of these types, and no array leads to
    /// it.
    fn compared(&self, mut operators: Document, not: Bson) -> Document {
        // An _id is never an array, and our keys are never numbers.
        if self.is_key() {
            return doc! {&self.name: operators};
        }
        operators.insert("$not", doc! {"$type": not});
        let mut all = vec![doc! {&self.name: operators}];
        all.extend(self.outer.iter().map(|name| doc! {name: {"$not": {"$type": "array"}}}));
        and(all)
    }

    fn equal(&self, values: &[Value]) -> Result<Document> {
        let mut any = Vec::new();
        let others = values.iter().filter(|value| {
            !matches!(value, Value::Null) && !number::is_number(value) && exact(value)
        });
        let plain = values.iter().filter(|value| is_plain(value));
        // One question for those with the same guard, and one for each number that has two.
        for same in [others.collect::<Vec<_>>(), plain.collect()] {
            let mut same = same.into_iter().map(literal).collect::<Result<Vec<_>>>()?;
            let operators = match same.len() {
                0 => continue,
                1 => doc! {"$eq": same.remove(0)},
                _ => doc! {"$in": same},
            };
            any.push(self.compared(operators, array()));
        }
        for value in values.iter().filter(|value| number::is_number(value) && !is_plain(value)) {
            any.push(self.number(&Test::Eq(value.clone()), value)?);
        }
        if values.contains(&Value::Null) {
            // What lies beyond an array is not there.
            any.extend(self.through_array());
            any.push(self.compared(doc! {"$eq": Bson::Null}, array()));
        }
        Ok(or(any))
    }

    /// A comparison with `exact`; with `above`, where the value lies above the last that MongoDB
    /// has, which it is compared with instead.
    fn less(&self, test: &Test, value: &Value, operator: &str, above: &str) -> Result<Document> {
        if number::is_number(value) && !is_plain(value) {
            return self.number(test, value);
        }
        let operator = if exact(value) { operator } else { above };
        Ok(self.compared(doc! {operator: literal(value)?}, array()))
    }

    /// A comparison with a number that MongoDB's two kinds of number compare with differently: floats
    /// with what is a float, decimals with its digits.
    fn number(&self, test: &Test, value: &Value) -> Result<Document> {
        let mut any = Vec::new();
        if let Some(narrow) = narrowed(test)
            && let Some((operator, with)) = operator(&narrow)
        {
            let not = Bson::from(vec!["array", "decimal"]);
            any.push(self.compared(doc! {operator: literal(with)?}, not));
        }
        let digits = number::digits(value).unwrap_or_default();
        let decimal: bson::Decimal128 = digits.parse().map_err(|_| {
            let what = format!("mongodb compares numbers of 34 digits, and not with {digits}");
            Error::unsupported(what)
        })?;
        if let Some((operator, _)) = operator(test) {
            let operators = doc! {operator: Bson::Decimal128(decimal), "$type": "decimal"};
            any.push(self.compared(operators, array()));
        }
        Ok(or(any))
    }

    fn exists(&self) -> Document {
        let there = doc! {&self.name: {"$exists": true}};
        let mut all = vec![there];
        all.extend(self.outer.iter().map(|name| doc! {name: {"$not": {"$type": "array"}}}));
        and(all)
    }
}

fn array() -> Bson {
    Bson::from("array")
}

/// The operator of a comparison with one value, and the value.
fn operator(test: &Test) -> Option<(&'static str, &Value)> {
    Some(match test {
        Test::Eq(value) => ("$eq", value),
        Test::Lt(value) => ("$lt", value),
        Test::Le(value) => ("$lte", value),
        Test::Gt(value) => ("$gt", value),
        Test::Ge(value) => ("$gte", value),
        Test::Ne(_) | Test::In(_) | Test::Exists(_) | Test::Prefix(_) => return None,
    })
}

/// Whether a number is the same to MongoDB's floats and to its decimals, by all its binary digits: a
/// tenth is not.
fn is_plain(value: &Value) -> bool {
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    match value {
        Value::Int(_) => true,
        Value::Float(v) if !v.is_finite() => !v.is_nan(),
        Value::Float(v) if v.fract() == 0.0 => v.abs() < BEYOND,
        // Not more than 15 decimal digits.
        Value::Float(v) => (v * 1024.0).fract() == 0.0 && v.abs() < 1e5,
        _ => false,
    }
}

/// Whether MongoDB has the value as it is; times it has to the millisecond.
fn exact(value: &Value) -> bool {
    !matches!(value, Value::Time(time) if millis(*time).1 != 0)
}

/// The least text after all that begin so; none where there is none.
fn after_all(start: &str) -> Option<String> {
    let mut end = start.to_owned();
    while let Some(last) = end.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(last as u32 + 1),
        };
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Time;

    fn said(query: &str) -> String {
        let translated = translated(&query.parse().unwrap()).unwrap();
        format!("{}{}", translated.filter, if translated.exact { "" } else { " and more" })
    }

    #[test]
    fn comparisons_are_guarded_against_arrays() {
        for (query, want) in [
            ("{}", "{}"),
            ("age>=90", r#"{ "age": { "$gte": 90, "$not": { "$type": "array" } } }"#),
            (
                "a<0.1",
                r#"{ "$or": [{ "a": { "$lt": 0.1, "$not": { "$type": ["array", "decimal"] } } }, { "a": { "$lt": 0.1, "$type": "decimal", "$not": { "$type": "array" } } }] }"#,
            ),
            ("_key=bob", r#"{ "_id": { "$eq": "bob" } }"#),
            (
                "a.b=x",
                r#"{ "$and": [{ "a.b": { "$eq": "x", "$not": { "$type": "array" } } }, { "a": { "$not": { "$type": "array" } } }] }"#,
            ),
            (r#"{"a": {"$exists": false}}"#, r#"{ "$nor": [{ "a": { "$exists": true } }] }"#),
            (r#"{"a": {"$in": []}}"#, r#"{ "_id": { "$in": [] } }"#),
            (r#"{"$and": [{"_key": "k"}, {"a\\.b": 1}]}"#, r#"{ "_id": { "$eq": "k" } } and more"#),
            (r#"{"$or": [{"_key": "k"}, {"a\\.b": 1}]}"#, "{} and more"),
        ] {
            assert_eq!(said(query), want, "{query}");
        }
    }

    #[test]
    fn times_finer_than_milliseconds_fall_between_two() {
        let fine = Value::Time(Time::from_unix(5, 1_500_000).unwrap());
        for (test, want) in [
            (Test::Lt(fine.clone()), "$lte"),
            (Test::Le(fine.clone()), "$lte"),
            (Test::Gt(fine.clone()), "$gt"),
            (Test::Ge(fine.clone()), "$gt"),
        ] {
            let found = whole(&Filter::field("at", test).unwrap()).unwrap();
            let operators = found.get_document("at").unwrap();
            let millis = operators.get_datetime(want).unwrap().timestamp_millis();
            assert_eq!(millis, 5001, "{found}");
        }
        let equal = whole(&Filter::field("at", Test::Eq(fine)).unwrap()).unwrap();
        assert_eq!(equal, nothing());
    }

    #[test]
    fn what_comes_after_a_prefix() {
        for (start, want) in [
            ("a", Some("b")),
            ("a\u{10ffff}", Some("b")),
            ("\u{d7ff}", Some("\u{e000}")),
            ("\u{10ffff}", None),
            ("", None),
        ] {
            assert_eq!(after_all(start).as_deref(), want, "{start:?}");
        }
    }

    #[test]
    fn keys_decide_at_the_end() {
        let by = |path: &str| Query::default().sorted(path.parse().unwrap(), Order::Descending);
        assert_eq!(order(&by("a")).unwrap(), doc! {"a": -1, "_id": -1});
        assert_eq!(order(&by("_key")).unwrap(), doc! {"_id": -1});
        assert!(order(&Query::default()).unwrap().is_empty());
        assert!(order(&by(r"a\.b")).is_err());
    }
}
