//! Filters in the style of document databases: `{"age": {"$gte": 90}}`.

use super::{Filter, Path, Query, Test, look::Look};
use crate::{
    Error, Result,
    format::Format,
    record::{Document, Value},
};

const OPERATORS: &str = "$eq, $ne, $lt, $lte, $gt, $gte, $in, $nin, $exists, $prefix, $contains, $regex, $not; between conditions $and, $or, $nor, $not";

/// Reads a filter, which begins with `{`.
pub(super) fn parse(text: &str) -> Result<Filter> {
    let document: Document = Format::Json
        .decode(text.as_bytes())
        .map_err(|e| Error::invalid(format!("the query {text} is not JSON")).with_source(e))?;
    let filter = Filter::from_document(&document)?;
    Query::new(filter.clone()).check()?;
    Ok(filter)
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
    Error::invalid(format!("unknown operator {name:?}; known: {OPERATORS}"))
}

fn map<'a>(operator: &str, value: &'a Value) -> Result<&'a Document> {
    value.as_map().ok_or_else(|| Error::invalid(format!("{operator} needs a map")))
}

fn filters(operator: &str, value: &Value) -> Result<Vec<Filter>> {
    let wrong = || Error::invalid(format!("{operator} needs a list of conditions"));
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
            _ => Err(Error::invalid(format!("{name} needs a list"))),
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
                _ => return Err(Error::invalid("$exists needs true or false")),
            },
            "$prefix" => match value {
                Value::Text(start) => Test::Prefix(start.clone()),
                _ => return Err(Error::invalid("$prefix needs text")),
            },
            "$contains" | "$regex" => {
                let Some(text) = value.as_str() else {
                    return Err(Error::invalid(format!("{name} needs text")));
                };
                let look = match name {
                    "$regex" => Look::pattern(&path, text),
                    _ => Ok(Look::contains(&path, text)),
                };
                all.push(Filter::Look(look.map_err(Error::invalid)?.into()));
                continue;
            }
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
        ("$date", None) => Some(Err(Error::invalid("$date needs an RFC 3339 time as text"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_answered() {
        for (text, want) in [
            (r#"{"age": {"$gt": 1"#, "is not JSON"),
            (r#"{"age": {"$within": 1}}"#, "unknown operator \"$within\"; known: $eq"),
            (r#"{"$where": "x"}"#, "unknown operator \"$where\""),
            (r#"{"$or": {"a": 1}}"#, "list of conditions"),
            (r#"{"age": {"$in": 1}}"#, "needs a list"),
            (r#"{"age": {"x": 1}}"#, "not with a map"),
            (r#"{"age": {"$date": 5}}"#, "RFC 3339"),
            ("=5", "expected a field"),
        ] {
            let error = text.parse::<Filter>().unwrap_err();
            assert!(error.to_string().contains(want), "{text}: {error}");
        }
    }
}
