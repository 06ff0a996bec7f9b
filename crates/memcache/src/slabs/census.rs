//! A count of items by size.

use std::collections::HashMap;

use super::Item;

/// How many items there are of each size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Census {
    items: HashMap<Item, u64>,
    count: u64,
}

impl Census {
    /// Counts an item.
    pub fn add(&mut self, item: Item) {
        *self.items.entry(item).or_default() += 1;
        self.count += 1;
    }

    /// All sizes, and how many there are of each, in no order.
    pub fn sizes(&self) -> impl Iterator<Item = (&Item, u64)> {
        self.items.iter().map(|(item, count)| (item, *count))
    }

    /// How many items there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes of all keys and values.
    pub fn payload(&self) -> u64 {
        self.sizes().map(|(item, count)| (item.key + item.value) * count).sum()
    }
}

impl FromIterator<Item> for Census {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Census {
        let mut census = Census::default();
        items.into_iter().for_each(|item| census.add(item));
        census
    }
}
