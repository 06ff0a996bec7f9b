//! The distribution of many items over slab classes, and the memory it takes.

use super::{Census, Class, Classes, PAGE};

/// What a class holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The class.
    pub class: Class,
    /// Items that `stats items` counts here.
    pub items: u64,
    /// Chunks in use; more or fewer than items where large ones are cut into pieces.
    pub chunks: u64,
    /// Pages.
    pub pages: u64,
    /// The sizes of the items counted here, added up, in bytes (`mem_requested`).
    pub requested: u64,
}

/// Where all items of a census are, if nothing is thrown out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Every class, also those that hold nothing.
    pub classes: Vec<Usage>,
    /// Items that are refused as too large.
    pub refused: u64,
    /// Items that are held.
    pub held: u64,
    /// Bytes of the keys and values that are held.
    pub payload: u64,
    /// Sizes of the items that are held, with all that a server adds, in bytes.
    pub requested: u64,
    /// Items that are cut into pieces.
    pub cut: u64,
}

impl Load {
    /// Puts all items of a census where they go.
    pub fn new(classes: &Classes, census: &Census) -> Load {
        let empty =
            |class: &Class| Usage { class: *class, items: 0, chunks: 0, pages: 0, requested: 0 };
        let mut load = Load {
            classes: classes.all().iter().map(empty).collect(),
            refused: 0,
            held: 0,
            payload: 0,
            requested: 0,
            cut: 0,
        };
        for (item, count) in census.sizes() {
            let Some(placement) = item.placed(classes) else {
                load.refused += count;
                continue;
            };
            load.held += count;
            load.payload += (item.key + item.value) * count;
            load.requested += placement.total * count;
            if placement.total > classes.settings().largest() {
                load.cut += count;
            }
            let counted = &mut load.classes[placement.counted - 1];
            counted.items += count;
            counted.requested += placement.total * count;
            for (class, chunks) in placement.chunks {
                load.classes[class - 1].chunks += chunks * count;
            }
        }
        for usage in &mut load.classes {
            usage.pages = usage.chunks.div_ceil(usage.class.per_page);
        }
        load
    }

    /// All pages.
    pub fn pages(&self) -> u64 {
        self.classes.iter().map(|usage| usage.pages).sum()
    }

    /// Bytes of all chunks in use.
    pub fn chunk_bytes(&self) -> u64 {
        self.classes.iter().map(|usage| usage.chunks * usage.class.chunk).sum()
    }

    /// Bytes that are lost at the ends of pages.
    pub fn tails(&self) -> u64 {
        self.classes.iter().map(|usage| usage.pages * usage.class.tail()).sum()
    }

    /// Bytes of chunks that have a page and are not in use: of the last page of each class.
    pub fn free(&self) -> u64 {
        let free =
            |usage: &Usage| (usage.pages * usage.class.per_page - usage.chunks) * usage.class.chunk;
        self.classes.iter().map(free).sum()
    }

    /// The share of the pages that is keys and values, 0 to 1.
    pub fn efficiency(&self) -> f64 {
        self.payload as f64 / (self.pages().max(1) * PAGE) as f64
    }

    /// The share of the chunks in use that is items with all that is theirs, 0 to 1.
    pub fn fit(&self) -> f64 {
        self.requested as f64 / self.chunk_bytes().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slabs::{Item, Settings};

    #[test]
    fn every_byte_of_the_pages_is_accounted_for() {
        let classes = Classes::new(&Settings::default()).unwrap();
        let census: Census = (0..20_000).map(|n| Item::new(10, n * 61)).collect();
        let load = Load::new(&classes, &census);
        assert_eq!(load.held + load.refused, 20_000);
        assert!(load.refused > 0 && load.cut > 0);
        assert_eq!(load.chunk_bytes() + load.tails() + load.free(), load.pages() * PAGE);
        assert!(load.payload < load.requested && load.requested < load.chunk_bytes());
    }
}
