//! Filters as people write them: `{"age": {"$gte": 90}}`, or `age>=90`.

use std::str::FromStr;

use super::{Filter, Path, Test};
use crate::{
    Error, Result,
    format::Format,
    record::{Document, Value},
};

const OPERATORS: &str = "$eq, $ne, $lt, $lte, $gt, $gte, $in, $nin, $exists, $prefix, $not; between conditions $and, $or, $nor, $not";

impl FromStr for Filter {
    type Err = Error;

    /// From the style of document databases, which begins with `{`, or from a condition such as
    /// `age>=90`, `name=Bob`, `name^=Bo` (begins so), `email` (is there), `!email` (is not).
    fn from_str(text: &str) -> Result<Filter> {
        let trimmed = text.trim();
        if !trimmed.starts_with('{') {
            return condition(trimmed);
        }
        let document: Document = Format::Json.decode(trimmed.as_bytes()).map_err(|e| {
            Error::invalid(format!("the query {trimmed} is no JSON")).with_source(e)
        })?;
        Filter::from_document(&document)
    }
}

impl Filter {
    /// From the style of document databases.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for operators that are not known.
    pub fn from_document(document: &Document) -> Result<Filter> {
        // Documents come from decoders, which bound how deep they nest.
        let mut all = Vec::with_capacity(document.len());
        for (name, value) in document.iter() {
            all.push(match name {
                "$and" => Filter::And(filters(name, value)?),
                "$or" => Filter::Or(filters(name, value)?),
                "$nor" => Filter::Not(Box::new(Filter::Or(filters(name, value)?))),
                "$not" => Filter::Not(Box::new(Filter::from_document(map(name, value)?)?)),
                _ if name.starts_with('$') => return Err(unknown(name)),
                _ => field(name.parse()?, value)?,
            });
        }
        Ok(match all.len() {
            0 => Filter::All,
            1 => all.remove(0),
            _ => Filter::And(all),
        })
    }
}

fn unknown(name: &str) -> Error {
    Error::invalid(format!("no operator {name:?}; known: {OPERATORS}"))
}

fn map<'a>(operator: &str, value: &'a Value) -> Result<&'a Document> {
    value.as_map().ok_or_else(|| Error::invalid(format!("{operator} wants a map after it")))
}

fn filters(operator: &str, value: &Value) -> Result<Vec<Filter>> {
    let wrong = || Error::invalid(format!("{operator} wants a list of conditions after it"));
    let Value::List(list) = value else { return Err(wrong()) };
    list.iter().map(|value| Filter::from_document(value.as_map().ok_or_else(wrong)?)).collect()
}

/// A condition on a field: a value it equals, or a map of operators.
fn field(path: Path, value: &Value) -> Result<Filter> {
    let operators = match value {
        Value::Map(map) if is_operators(map) => map,
        value => return Ok(Filter::Field(path, Test::Eq(literal(value)?))),
    };
    let mut all = Vec::with_capacity(operators.len());
    for (name, value) in operators.iter() {
        let list = || match value {
            Value::List(list) => list.iter().map(literal).collect::<Result<Vec<_>>>(),
            _ => Err(Error::invalid(format!("{name} wants a list after it"))),
        };
        let one = || literal(value);
        let test = match name {
            "$eq" => Test::Eq(one()?),
            "$ne" => Test::Ne(one()?),
            "$lt" => Test::Lt(one()?),
            "$lte" => Test::Le(one()?),
            "$gt" => Test::Gt(one()?),
            "$gte" => Test::Ge(one()?),
            "$in" => Test::In(list()?),
            "$nin" => {
                let one_of = Filter::Field(path.clone(), Test::In(list()?));
                all.push(Filter::Not(Box::new(one_of)));
                continue;
            }
            "$exists" => match value {
                Value::Bool(wanted) => Test::Exists(*wanted),
                _ => return Err(Error::invalid("$exists wants true or false after it")),
            },
            "$prefix" => match value {
                Value::Text(start) => Test::Prefix(start.clone()),
                _ => return Err(Error::invalid("$prefix wants text after it")),
            },
            "$not" => {
                all.push(Filter::Not(Box::new(field(path.clone(), value)?)));
                continue;
            }
            _ => return Err(unknown(name)),
        };
        all.push(Filter::Field(path.clone(), test));
    }
    Ok(match all.len() {
        1 => all.remove(0),
        _ => Filter::And(all),
    })
}

/// Values that JSON has no word for are maps whose one name begins with `$` too.
fn is_operators(map: &Document) -> bool {
    map.iter().any(|(name, _)| name.starts_with('$')) && extended(map).is_none()
}

/// A value, JSON's or one spelled `{"$date": "2009-02-13T23:31:30Z"}`.
fn literal(value: &Value) -> Result<Value> {
    match value {
        Value::Map(map) => extended(map).unwrap_or_else(|| {
            Err(Error::invalid("a query compares with single values, not with a map"))
        }),
        value => Ok(value.clone()),
    }
}

fn extended(map: &Document) -> Option<Result<Value>> {
    let mut entries = map.iter();
    let (Some((name, value)), None) = (entries.next(), entries.next()) else { return None };
    let text = value.as_str();
    match (name, text) {
        ("$date", Some(text)) => Some(text.parse().map(Value::Time)),
        ("$date", None) => Some(Err(Error::invalid("$date wants an RFC 3339 time as text"))),
        _ => None,
    }
}

/// A condition such as `age>=90`. What stands after the operator is JSON if it can be, else text.
fn condition(text: &str) -> Result<Filter> {
    // The longer ones first.
    let operators = ["!=", "<=", ">=", "^=", "=", "<", ">"];
    let found = operators
        .iter()
        .filter_map(|operator| text.find(operator).map(|at| (at, *operator)))
        .min_by_key(|(at, operator)| (*at, std::cmp::Reverse(operator.len())));
    let Some((at, operator)) = found else {
        let (path, there) = match text.strip_prefix('!') {
            Some(path) => (path, false),
            None => (text, true),
        };
        return Filter::field(path.trim(), Test::Exists(there));
    };
    let (path, value) = (text[..at].trim(), text[at + operator.len()..].trim());
    let as_text = || Value::from(value);
    let value = match operator {
        "^=" => as_text(),
        _ => match Format::Json.decode::<Value>(value.as_bytes()) {
            Ok(Value::Map(map)) => literal(&Value::Map(map))?,
            Ok(value) => value,
            Err(_) => as_text(),
        },
    };
    let test = match operator {
        "=" => Test::Eq(value),
        "!=" => Test::Ne(value),
        "<" => Test::Lt(value),
        "<=" => Test::Le(value),
        ">" => Test::Gt(value),
        ">=" => Test::Ge(value),
        _ => Test::Prefix(value.as_str().unwrap_or_default().to_owned()),
    };
    Filter::field(path, test)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Time;

    fn age(test: Test) -> Filter {
        Filter::field("age", test).unwrap()
    }

    #[test]
    fn both_styles_say_the_same() {
        let ninety = || Value::Int(90);
        for (text, want) in [
            (r#"{"age": {"$gte": 90}}"#, age(Test::Ge(ninety()))),
            ("age>=90", age(Test::Ge(ninety()))),
            ("age = 90", age(Test::Eq(ninety()))),
            (r#"{"age": 90}"#, age(Test::Eq(ninety()))),
            (r#"age="90""#, age(Test::Eq(Value::from("90")))),
            ("age=Bob", age(Test::Eq(Value::from("Bob")))),
            ("age=null", age(Test::Eq(Value::Null))),
            ("age^=9", age(Test::Prefix("9".into()))),
            ("!age", age(Test::Exists(false))),
            ("age", age(Test::Exists(true))),
            (r#"{"age": {"$exists": true}}"#, age(Test::Exists(true))),
            ("{}", Filter::All),
            (
                r#"{"age": {"$gte": 1, "$lt": 9}}"#,
                Filter::And(vec![age(Test::Ge(Value::Int(1))), age(Test::Lt(Value::Int(9)))]),
            ),
            (
                r#"{"$or": [{"age": 90}, {"$not": {"age": null}}]}"#,
                Filter::Or(vec![
                    age(Test::Eq(ninety())),
                    Filter::Not(Box::new(age(Test::Eq(Value::Null)))),
                ]),
            ),
            (
                r#"{"age": {"$not": {"$in": [90]}}}"#,
                Filter::Not(Box::new(age(Test::In(vec![ninety()])))),
            ),
            (
                r#"{"age": {"$lt": {"$date": "2009-02-13T23:31:30Z"}}}"#,
                age(Test::Lt(Value::Time(Time::from_unix(1_234_567_890, 0).unwrap()))),
            ),
        ] {
            assert_eq!(text.parse::<Filter>().unwrap(), want, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_answered() {
        for (text, want) in [
            (r#"{"age": {"$gt": 1"#, "no JSON"),
            (r#"{"age": {"$within": 1}}"#, "no operator \"$within\"; known: $eq"),
            (r#"{"$where": "x"}"#, "no operator \"$where\""),
            (r#"{"$or": {"a": 1}}"#, "list of conditions"),
            (r#"{"age": {"$in": 1}}"#, "wants a list"),
            (r#"{"age": {"x": 1}}"#, "not with a map"),
            (r#"{"age": {"$date": 5}}"#, "RFC 3339"),
            ("=5", "is no path"),
        ] {
            let error = text.parse::<Filter>().unwrap_err();
            assert!(error.to_string().contains(want), "{text}: {error}");
        }
    }
}
