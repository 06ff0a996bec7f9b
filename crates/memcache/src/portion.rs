//! Splits long batches into portions: one portion is held in memory, and sent to all servers, at a time.

/// How many keys a portion has at most.
pub(crate) const KEYS: usize = 1024;
/// About how many bytes of values it has.
pub(crate) const BYTES: usize = 1 << 20;

/// Portions of some items.
pub(crate) struct Portions<I, W> {
    items: I,
    weigh: W,
}

/// What says how many bytes an item has.
pub(crate) trait Weighed<T>: Fn(&T) -> usize {}
impl<T, W: Fn(&T) -> usize> Weighed<T> for W {}

impl<I: Iterator, W: Weighed<I::Item>> Portions<I, W> {
    /// Portions of these items.
    pub(crate) fn new(items: I, weigh: W) -> Self {
        Portions { items, weigh }
    }
}

impl<I: Iterator, W: Weighed<I::Item>> Iterator for Portions<I, W> {
    type Item = Vec<I::Item>;

    fn next(&mut self) -> Option<Vec<I::Item>> {
        let most = self.items.size_hint().1.unwrap_or(KEYS).min(KEYS);
        let mut portion = Vec::with_capacity(most);
        let mut bytes = 0;
        while portion.len() < KEYS
            && bytes < BYTES
            && let Some(item) = self.items.next()
        {
            bytes += (self.weigh)(&item);
            portion.push(item);
        }
        (!portion.is_empty()).then_some(portion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_end_by_number_and_by_size() {
        let sizes = |items: usize, bytes: usize| {
            Portions::new(0..items, move |_: &usize| bytes).map(|p| p.len()).collect::<Vec<_>>()
        };
        assert!(sizes(0, 1).is_empty());
        assert_eq!(sizes(2500, 1), [1024, 1024, 452]);
        assert_eq!(sizes(5, 600 << 10), [2, 2, 1]);
        assert_eq!(sizes(2, 5 << 20), [1, 1]);
    }
}
