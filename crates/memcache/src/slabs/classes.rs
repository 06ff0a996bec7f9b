//! The classes that a server makes of its settings (slabs.c, `slabs_init`).

use super::{
    PAGE,
    settings::{CLASSES, Settings},
};
use crate::Result;

/// A class: chunks of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Its number, from 1.
    pub id: usize,
    /// The size of its chunks, in bytes.
    pub chunk: u64,
    /// How many chunks a page has.
    pub per_page: u64,
}

impl Class {
    fn new(id: usize, chunk: u64) -> Class {
        Class { id, chunk, per_page: PAGE / chunk }
    }

    /// What is left over at the end of a page, in bytes.
    pub fn tail(&self) -> u64 {
        PAGE - self.per_page * self.chunk
    }
}

/// All classes of a server, the smallest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Classes {
    classes: Vec<Class>,
    settings: Settings,
}

impl Classes {
    /// The classes of these settings.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for settings that a server refuses.
    pub fn new(settings: &Settings) -> Result<Classes> {
        settings.check()?;
        let largest = settings.largest();
        let aligned = |size: u64| size.next_multiple_of(8);
        let mut classes: Vec<Class> = Vec::new();
        match &settings.slab_sizes {
            Some(sizes) => {
                let sizes = sizes.iter().zip(1..);
                classes.extend(sizes.map(|(size, id)| Class::new(id, aligned(*size))));
            }
            None => {
                let mut size = super::ITEM_HEADER + settings.chunk;
                // Looked at before it is aligned, as the server does; what grows is aligned.
                while classes.len() + 1 < CLASSES
                    && (size as f64) < largest as f64 / settings.factor
                {
                    size = aligned(size);
                    classes.push(Class::new(classes.len() + 1, size));
                    size = (size as f64 * settings.factor) as u32 as u64;
                }
            }
        }
        classes.push(Class::new(classes.len() + 1, largest));
        Ok(Classes { classes, settings: settings.clone() })
    }

    /// All of them; the last has the largest chunks.
    pub fn all(&self) -> &[Class] {
        &self.classes
    }

    /// What they were made of.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The first whose chunks hold so many bytes; the last where none does.
    pub fn of(&self, bytes: u64) -> &Class {
        let at = self.classes.partition_point(|class| class.chunk < bytes);
        &self.classes[at.min(self.classes.len() - 1)]
    }

    /// Where there were too many classes, the sizes that all go to the last one: above the first
    /// number, up to the second, in bytes.
    pub fn gap(&self) -> Option<(u64, u64)> {
        let [.., before, last] = &self.classes[..] else { return None };
        let grown = before.chunk as f64 * self.settings.factor;
        let cut = self.settings.slab_sizes.is_none() && self.classes.len() == CLASSES;
        (cut && grown * self.settings.factor < last.chunk as f64)
            .then_some((before.chunk, last.chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_classes_are_those_of_the_server() {
        let classes = Classes::new(&Settings::default()).unwrap();
        let found: Vec<_> = classes.all().iter().map(|c| (c.chunk, c.per_page)).collect();
        assert_eq!(found.len(), 39);
        assert_eq!(found[..4], [(96, 10922), (120, 8738), (152, 6898), (192, 5461)]);
        assert_eq!(found[36..], [(315_872, 3), (394_840, 2), (524_288, 2)]);
        // The class that loses a quarter of each page.
        assert_eq!(classes.all()[37].tail(), 258_896);
        for (bytes, id) in [(1, 1), (96, 1), (97, 2), (524_288, 39), (900_000, 39)] {
            assert_eq!(classes.of(bytes).id, id, "{bytes}");
        }
    }

    #[test]
    fn small_factors_run_out_of_classes() {
        let gap = |factor| Classes::new(&Settings { factor, ..Settings::default() }).unwrap().gap();
        assert!(gap(1.25).is_none() && gap(1.15).is_none());
        let (from, to) = gap(1.08).unwrap();
        assert!(from < 20_000 && to == 524_288, "{from} {to}");
    }
}
