//! An ordered map of values.

use super::Value;

/// A record as an ordered map from names to [`Value`]s.
///
/// Names keep the order they were given in, as JSON objects, BSON documents and table columns do.
/// Look-up is linear: records have tens of names, not thousands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    entries: Vec<(String, Value)>,
}

impl Document {
    /// An empty document.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty document with room for `n` entries.
    pub fn with_capacity(n: usize) -> Self {
        Document { entries: Vec::with_capacity(n) }
    }

    /// The value under `name`; the first one where a name is repeated.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// The value under `name`, to change it; the first one where a name is repeated.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.entries.iter_mut().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Puts `value` under `name`, in place where the name exists, else at the end.
    /// Returns what was there before.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        match self.entries.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                self.entries.push((name, value));
                None
            }
        }
    }

    /// Appends without looking whether the name is there: for decoders, which keep what they read.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.entries.push((name.into(), value.into()));
    }

    /// Takes the value under `name` out, keeping the order of the rest.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.entries.iter().position(|(n, _)| n == name)?;
        Some(self.entries.remove(at).1)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether both hold the same names and values, in whatever order, at every level. Lists keep
    /// their order.
    pub fn same_in_any_order(&self, other: &Document) -> bool {
        fn sorted(document: &Document) -> Vec<(&str, &Value)> {
            let mut entries: Vec<_> = document.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            entries
        }
        self.len() == other.len()
            && sorted(self)
                .into_iter()
                .zip(sorted(other))
                .all(|((a, v), (b, w))| a == b && v.same_in_any_order(w))
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + Clone {
        self.entries.iter().map(|(n, v)| (n.as_str(), v))
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Document {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(items: I) -> Self {
        Document { entries: items.into_iter().map(|(n, v)| (n.into(), v.into())).collect() }
    }
}

impl IntoIterator for Document {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_names_is_told_from_other_differences() {
        let of = |names: [&str; 2], values: [i64; 2]| {
            let inner = Document::from_iter(names.into_iter().zip(values));
            Document::from_iter([("list", Value::List(vec![inner.into(), Value::Null]))])
        };
        let document = of(["a", "b"], [1, 2]);
        assert!(document.same_in_any_order(&of(["b", "a"], [2, 1])));
        assert_ne!(document, of(["b", "a"], [2, 1]));
        for other in [of(["b", "a"], [1, 2]), of(["a", "c"], [1, 2]), Document::new()] {
            assert!(!document.same_in_any_order(&other), "{other:?}");
        }
        let lists = [vec![1.into(), 2.into()], vec![2.into(), 1.into()]].map(Value::List);
        assert!(!lists[0].same_in_any_order(&lists[1]));
    }
}
