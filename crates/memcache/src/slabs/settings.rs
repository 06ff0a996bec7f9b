//! The settings of a server that decide where items go.

use super::PAGE;
use crate::{Error, Result};

/// The settings of a memcached server.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `-f`: how much larger each class's chunks are than those of the class before.
    pub factor: f64,
    /// `-n`: room for key and value in the smallest chunk, in bytes.
    pub chunk: u64,
    /// `-o slab_sizes`: the chunk sizes of all classes but the last, in bytes, in place of those two.
    pub slab_sizes: Option<Vec<u64>>,
    /// `-I`: the largest item, in bytes.
    pub item_max: u64,
    /// `-o slab_chunk_max`: the largest chunk, in bytes; larger items are cut into pieces. Half a
    /// page where none is given.
    pub chunk_max: Option<u64>,
    /// `-m`: the memory for items, in megabytes.
    pub memory: u64,
    /// Without `-C`: every item has eight bytes for its number.
    pub cas: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            factor: 1.25,
            chunk: 48,
            slab_sizes: None,
            item_max: 1 << 20,
            chunk_max: None,
            memory: 64,
            cas: true,
        }
    }
}

/// How many classes there can be, with the last.
pub(super) const CLASSES: usize = 63;

impl Settings {
    /// The largest chunk, in bytes.
    pub fn largest(&self) -> u64 {
        self.chunk_max.unwrap_or(PAGE / 2)
    }

    /// Refuses what a server refuses at its start.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the setting.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::invalid(what));
        if !(self.factor > 1.0 && self.factor.is_finite()) {
            return wrong(format!("factor {}: it must be more than 1", self.factor));
        }
        if self.chunk == 0 || self.chunk > i32::MAX as u64 {
            return wrong(format!("chunk {}: it must be at least 1", self.chunk));
        }
        let (largest, most) = (self.largest(), self.item_max);
        if !(1024..=1 << 30).contains(&most) {
            return wrong(format!("an item of {most} bytes at most: 1024 to 1 GB"));
        }
        if most > self.memory.saturating_mul(1 << 20) / 2 {
            return wrong(format!(
                "items of {most} bytes take twice that of memory, and there are {} MB",
                self.memory
            ));
        }
        if largest == 0 || largest > most {
            return wrong(format!("chunks of {largest} bytes are larger than an item, {most}"));
        }
        if !most.is_multiple_of(largest) {
            return wrong(format!("an item, {most}, is not a multiple of a chunk, {largest}"));
        }
        if !PAGE.is_multiple_of(largest) {
            return wrong(format!("a page, {PAGE}, is not a multiple of a chunk, {largest}"));
        }
        self.check_sizes(largest)
    }

    fn check_sizes(&self, largest: u64) -> Result<()> {
        let Some(sizes) = &self.slab_sizes else { return Ok(()) };
        if sizes.is_empty() || sizes.len() >= CLASSES {
            return Err(Error::invalid(format!("{} sizes of slabs: 1 to 62", sizes.len())));
        }
        let mut last = 0;
        for &size in sizes {
            if size < self.chunk || size > largest {
                return Err(Error::invalid(format!(
                    "slab size {size}: {} (-n) to {largest} (the largest chunk)",
                    self.chunk
                )));
            }
            // As they are rounded up to eight, two that are nearer may become one.
            if size <= last + 8 {
                return Err(Error::invalid(format!(
                    "slab size {size} after {last}: more than 8 apart, in order"
                )));
            }
            last = size;
        }
        Ok(())
    }

    /// The settings that make a server of this version so, by their names in words: what is not as
    /// usual, but for factor and chunk, which are always there. Up to 1.6.23, `slab_chunk_max` is
    /// in bytes, from 1.6.24 on in kilobytes (commit 1b3b85557).
    pub fn named(&self, version: &str) -> Vec<(&'static str, String)> {
        let mut named =
            vec![("factor", self.factor.to_string()), ("chunk", self.chunk.to_string())];
        if self.item_max != 1 << 20 {
            named.push(("item_max", self.item_max.to_string()));
        }
        if let Some(sizes) = &self.slab_sizes {
            let sizes: Vec<_> = sizes.iter().map(u64::to_string).collect();
            named.push(("slab_sizes", sizes.join("-")));
        }
        if let Some(most) = self.chunk_max {
            let number = if in_kilobytes(version) { most >> 10 } else { most };
            named.push(("slab_chunk_max", number.to_string()));
        }
        if !self.cas {
            named.push(("cas", "off".into()));
        }
        named
    }

    /// The arguments of memcached's command line that say the same, and the memory.
    pub fn arguments(&self, version: &str) -> Vec<String> {
        let mut arguments = vec!["-m".to_owned(), self.memory.to_string()];
        for (name, value) in self.named(version) {
            let option = match name {
                "factor" => "-f",
                "chunk" => "-n",
                "item_max" => "-I",
                "cas" => {
                    arguments.push("-C".into());
                    continue;
                }
                name => {
                    arguments.extend(["-o".into(), format!("{name}={value}")]);
                    continue;
                }
            };
            arguments.extend([option.into(), value]);
        }
        arguments
    }
}

/// Whether this version has `slab_chunk_max` in kilobytes.
pub(super) fn in_kilobytes(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse::<u32>().unwrap_or(0)
    });
    let version: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    version >= [1, 6, 24]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_settings_are_refused() {
        let plain = Settings::default;
        assert!(plain().check().is_ok());
        for wrong in [
            Settings { factor: 1.0, ..plain() },
            Settings { factor: f64::NAN, ..plain() },
            Settings { chunk: 0, ..plain() },
            Settings { item_max: 1000, ..plain() },
            Settings { item_max: 2 << 30, memory: 8192, ..plain() },
            Settings { item_max: 40 << 20, ..plain() },
            Settings { chunk_max: Some(300_000), ..plain() },
            Settings { chunk_max: Some(2 << 20), item_max: 2 << 20, ..plain() },
            Settings { slab_sizes: Some(vec![]), ..plain() },
            Settings { slab_sizes: Some(vec![100, 108]), ..plain() },
            Settings { slab_sizes: Some(vec![40]), ..plain() },
            Settings { slab_sizes: Some((1..=63).map(|n| n * 100).collect()), ..plain() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_unit_of_chunk_max_is_that_of_the_version() {
        let settings = Settings { chunk_max: Some(16 << 10), ..Settings::default() };
        for (version, want) in [("1.6.23", "=16384"), ("1.6.24", "=16"), ("1.6.45_2", "=16")] {
            assert!(settings.arguments(version).last().unwrap().ends_with(want), "{version}");
        }
    }
}
