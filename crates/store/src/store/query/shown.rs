//! Queries as people read them: `age >= 50 and status = "open"`.

use std::fmt;

use super::{Filter, Test};
use crate::record::Value;

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inside = |filter: &Filter| match filter {
            Filter::And(all) | Filter::Or(all) if all.len() > 1 => format!("({filter})"),
            filter => filter.to_string(),
        };
        let joined = |all: &[Filter], by: &str| all.iter().map(inside).collect::<Vec<_>>().join(by);
        match self {
            Filter::All => f.write_str("all"),
            Filter::And(all) if all.is_empty() => f.write_str("all"),
            Filter::Or(all) if all.is_empty() => f.write_str("none"),
            Filter::And(all) => f.write_str(&joined(all, " and ")),
            Filter::Or(all) => f.write_str(&joined(all, " or ")),
            Filter::Not(one) => write!(f, "not ({one})"),
            Filter::Field(path, test) => write!(f, "{path} {test}"),
            Filter::Look(look) => write!(f, "{look}"),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, value) = match self {
            Test::Eq(value) => ("=", value),
            Test::Ne(value) => ("!=", value),
            Test::Lt(value) => ("<", value),
            Test::Le(value) => ("<=", value),
            Test::Gt(value) => (">", value),
            Test::Ge(value) => (">=", value),
            Test::In(values) => {
                let all: Vec<String> = values.iter().map(shown).collect();
                return write!(f, "in ({})", all.join(", "));
            }
            Test::Exists(true) => return f.write_str("exists"),
            Test::Exists(false) => return f.write_str("is missing"),
            Test::Prefix(prefix) => return write!(f, "begins with {prefix:?}"),
        };
        write!(f, "{sign} {}", shown(value))
    }
}

/// A single value; of what is not single, its kind.
pub(in crate::store) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(v) => v.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(v) => v.to_string(),
        Value::BigInt(digits) | Value::Decimal(digits) => digits.to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::Time(time) => time.to_string(),
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Value::List(_) | Value::Map(_) => format!("a {}", value.kind().name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_shown_as_they_are_meant() {
        let field = |path: &str, test| Filter::field(path, test).unwrap();
        let old = field("age", Test::Ge(50.into()));
        let open = field("status", Test::Eq("open".into()));
        let either = Filter::Or(vec![old.clone(), open.clone()]);
        for (filter, wanted) in [
            (Filter::All, "all"),
            (old.clone(), "age >= 50"),
            (old.clone().and(open), "age >= 50 and status = \"open\""),
            (
                either.and(field("a.b", Test::Exists(false))),
                "(age >= 50 or status = \"open\") and a.b is missing",
            ),
            (Filter::Not(Box::new(old)), "not (age >= 50)"),
            (field("x", Test::In(vec![1.into(), Value::Null])), "x in (1, null)"),
            (field("x", Test::Prefix("a\n".into())), "x begins with \"a\\n\""),
        ] {
            assert_eq!(filter.to_string(), wanted);
        }
    }
}
