//! JSON that every reader reads alike: no name twice in a map, and not nested too deep.

use std::{collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::problem::Problem;

/// How deep documents may nest.
pub(super) const DEPTH: usize = 64;

/// Whether this is one value of JSON in which no map has a name twice. `before`: how many lines of the body come before it.
pub(super) fn check(bytes: &[u8], before: usize) -> Result<(), Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let told = |e: serde_json::Error| {
        let (what, line, column) = (e.to_string(), e.line(), e.column());
        let what = what.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&what);
        let line = before + line;
        Problem::invalid(format!("not valid JSON: {what} at line {line} column {column}"))
    };
    Unique(DEPTH).deserialize(&mut reader).map_err(told)?;
    reader.end().map_err(told)
}

/// A value with at most so many levels.
#[derive(Clone, Copy)]
struct Unique(usize);

impl Unique {
    fn within<E: Error>(self) -> Result<Unique, E> {
        self.0
            .checked_sub(1)
            .map(Unique)
            .ok_or_else(|| E::custom(format!("nested deeper than {DEPTH}")))
    }
}

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let inner = self.within()?;
        while list.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (inner, mut names) = (self.within()?, HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            if names.contains(&name) {
                return Err(A::Error::custom(format!("the name {name:?} is there twice")));
            }
            names.insert(name);
            map.next_value_seed(inner)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_disagree_about_is_refused() {
        let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        for (text, want) in [
            (r#"{"a":1,"a":2}"#, "twice"),
            (r#"{"a":1,"\u0061":2}"#, "twice"),
            (r#"{"x":[{"b":{},"b":{}}]}"#, "twice"),
            (&*deep(65), "deeper"),
            (r#"{"a":1}{"#, "trailing"),
            ("", "EOF"),
        ] {
            let problem = check(text.as_bytes(), 0).unwrap_err();
            assert!(problem.detail().contains(want), "{text}: {problem:?}");
        }
        for text in [r#"{"a":1,"b":{"a":1}}"#, &*deep(64), "123456789012345678901234567890"] {
            assert!(check(text.as_bytes(), 0).is_ok(), "{text}");
        }
    }
}
