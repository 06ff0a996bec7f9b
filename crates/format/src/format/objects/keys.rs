//! Keys already written, so that a repeated key becomes a link to the first.

/// How many keys are remembered; a key that falls into the slot of another displaces it.
const SLOTS: usize = 64;
/// Longer keys are not remembered: they are seldom repeated, and comparing them costs.
const LONGEST: usize = 64;

/// A small direct-mapped table of keys, by where they stand in the output.
pub(crate) struct Keys {
    slots: [Slot; SLOTS],
}

#[derive(Clone, Copy)]
struct Slot {
    at: u32,
    len: u32,
    id: u32,
}

const EMPTY: Slot = Slot { at: 0, len: u32::MAX, id: 0 };

/// What the table says about a key.
pub(crate) enum Seen {
    /// It was written under this id.
    Before(u32),
    /// It was not; tell [`Keys::put`] where it now stands.
    Not(usize),
    /// It is not worth remembering.
    Never,
}

impl Keys {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Keys { slots: [EMPTY; SLOTS] }
    }

    /// Looks `key` up; `out` is the output from its start, as it was for [`put`](Keys::put).
    #[inline]
    pub(crate) fn find(&self, key: &[u8], out: &[u8]) -> Seen {
        let (Some(&first), Some(&last)) = (key.first(), key.last()) else { return Seen::Never };
        if key.len() > LONGEST {
            return Seen::Never;
        }
        let middle = key[key.len() / 2];
        let hash = usize::from(first) * 7
            + usize::from(middle) * 31
            + usize::from(last) * 3
            + key.len() * 17;
        let slot = hash % SLOTS;
        let Slot { at, len, id } = self.slots[slot];
        if len as usize == key.len() && out.get(at as usize..(at + len) as usize) == Some(key) {
            return Seen::Before(id);
        }
        Seen::Not(slot)
    }

    /// Remembers that the key of `len` bytes that belongs into `slot` stands at `at`, as `id`.
    #[inline]
    pub(crate) fn put(&mut self, slot: usize, at: usize, len: usize, id: u32) {
        if let Ok(at) = u32::try_from(at)
            && let Some(len) = u32::try_from(len).ok().filter(|l| at.checked_add(*l).is_some())
        {
            self.slots[slot] = Slot { at, len, id };
        }
    }

    /// Forgets all: the output before has moved.
    pub(crate) fn clear(&mut self) {
        self.slots = [EMPTY; SLOTS];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_only_what_is_still_there() {
        let mut keys = Keys::new();
        let out = b"..ind1..";
        let Seen::Not(slot) = keys.find(b"ind1", out) else { panic!() };
        keys.put(slot, 2, 4, 9);
        assert!(matches!(keys.find(b"ind1", out), Seen::Before(9)));
        assert!(matches!(keys.find(b"ind1", b"..ind2.."), Seen::Not(_)));
        assert!(matches!(keys.find(b"ind1", b""), Seen::Not(_)));
        assert!(matches!(keys.find(b"", out), Seen::Never));
        assert!(matches!(keys.find(&[b'x'; 65], out), Seen::Never));
    }
}
