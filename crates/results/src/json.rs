//! Results as JSON and back, in one place: the code that serde makes for them is large, and would be compiled once more for
//! every serializer and every caller.

use serde_json::{Error, Value, from_value, to_string, to_string_pretty};

use crate::{Comparison, Results};

/// What can be written as JSON and read back.
pub trait Json: Sized {
    /// On one line.
    fn to_json(&self) -> String;

    /// Indented.
    fn to_pretty_json(&self) -> String;

    /// # Errors
    /// What is missing, or of another type than it must be.
    fn from_json(value: Value) -> Result<Self, Error>;

    /// A list, on one line.
    fn list_to_json(list: &[Self]) -> String {
        format!("[{}]", list.iter().map(Json::to_json).collect::<Vec<_>>().join(","))
    }

    /// A list, each item indented.
    fn list_to_pretty_json(list: &[Self]) -> String {
        let items: Vec<_> =
            list.iter().map(|one| one.to_pretty_json().replace('\n', "\n  ")).collect();
        if items.is_empty() { "[]".into() } else { format!("[\n  {}\n]", items.join(",\n  ")) }
    }
}

// Neither has a map with other keys than text, or anything else that JSON lacks.
const PLAIN: &str = "results are plain data";

impl Json for Results {
    fn to_json(&self) -> String {
        to_string(self).expect(PLAIN)
    }

    fn to_pretty_json(&self) -> String {
        to_string_pretty(self).expect(PLAIN)
    }

    fn from_json(value: Value) -> Result<Self, Error> {
        from_value(value)
    }
}

impl Json for Comparison {
    fn to_json(&self) -> String {
        to_string(self).expect(PLAIN)
    }

    fn to_pretty_json(&self) -> String {
        to_string_pretty(self).expect(PLAIN)
    }

    fn from_json(value: Value) -> Result<Self, Error> {
        from_value(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_what_serde_makes_of_them() {
        let run = Results { bench: "a\nb".into(), seconds: 0.1, ..Results::default() };
        for list in [vec![], vec![run.clone()], vec![run.clone(), Results::default()]] {
            assert_eq!(Results::list_to_json(&list), to_string(&list).unwrap());
            assert_eq!(Results::list_to_pretty_json(&list), to_string_pretty(&list).unwrap());
        }
        assert_eq!(Results::from_json(serde_json::from_str(&run.to_json()).unwrap()).unwrap(), run);
    }
}
