//! What is stored, how large it is to a server, and where it goes (items.c, `item_make_header`,
//! `do_item_alloc`, `do_item_alloc_chunk`).

use super::{CHUNK_HEADER, Classes, ITEM_HEADER, Settings};

/// Something that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// The length of its key as the server has it, in bytes.
    pub key: u64,
    /// The length of its value, in bytes.
    pub value: u64,
    /// It is stored with a number that is not 0, which takes four bytes (eight where a server is
    /// built with large client flags, which no package is).
    pub flags: bool,
}

/// Where an item goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Its size, as `me` and `stats items` have it, in bytes.
    pub total: u64,
    /// The class that `me` and `stats items` count it in.
    pub counted: usize,
    /// The classes of its chunks, and how many it takes of each: one, but for large items.
    pub chunks: Vec<(usize, u64)>,
}

impl Item {
    /// An item without flags.
    pub fn new(key: u64, value: u64) -> Item {
        Item { key, value, flags: false }
    }

    /// What it has before its value, in bytes.
    fn head(&self, settings: &Settings) -> u64 {
        let cas = if settings.cas { 8 } else { 0 };
        let flags = if self.flags { 4 } else { 0 };
        ITEM_HEADER + cas + self.key + 1 + flags
    }

    /// Its size, in bytes: header, number, key and its end, flags, value and its end.
    pub fn total(&self, settings: &Settings) -> u64 {
        self.head(settings) + self.value + 2
    }

    /// Where it goes; none where the server refuses it as too large.
    pub fn placed(&self, classes: &Classes) -> Option<Placement> {
        let settings = classes.settings();
        let total = self.total(settings);
        if total > settings.item_max {
            return None;
        }
        let counted = classes.of(total).id;
        let largest = settings.largest();
        if total <= largest {
            return Some(Placement { total, counted, chunks: vec![(counted, 1)] });
        }
        // A header, and the value in pieces.
        let mut chunks = vec![(classes.of(self.head(settings) + CHUNK_HEADER).id, 1)];
        let mut left = self.value + 2;
        let whole = left / (largest - CHUNK_HEADER);
        let mut take = |class: usize, count: u64| match chunks.iter_mut().find(|c| c.0 == class) {
            Some(chunk) => chunk.1 += count,
            None => chunks.push((class, count)),
        };
        take(classes.of(largest).id, whole);
        left -= whole * (largest - CHUNK_HEADER);
        if left > 0 {
            take(classes.of(left + CHUNK_HEADER).id, 1);
        }
        Some(Placement { total, counted, chunks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_edges() {
        let classes = Classes::new(&Settings::default()).unwrap();
        let place = |key, value| Item::new(key, value).placed(&classes);
        assert_eq!(place(1, 1).unwrap().total, 48 + 8 + 2 + 3);
        let flagged = Item { flags: true, ..Item::new(1, 1) };
        assert_eq!(flagged.placed(&classes).unwrap().total, 65);
        // The largest that is taken, and one byte more.
        assert_eq!(place(9, (1 << 20) - 68).unwrap().total, 1 << 20);
        assert_eq!(place(9, (1 << 20) - 67), None);
        // Just one chunk; then a header, a whole piece, and a small one.
        assert_eq!(place(9, 524_288 - 68).unwrap().chunks, [(39, 1)]);
        let cut = place(9, 524_288 - 67).unwrap();
        assert_eq!((cut.total, cut.counted), (524_289, 39));
        assert_eq!(cut.chunks, [(2, 1), (39, 1)]);
        let large = place(9, 600_000).unwrap();
        assert_eq!(large.chunks.iter().map(|c| c.1).sum::<u64>(), 3);
    }
}
