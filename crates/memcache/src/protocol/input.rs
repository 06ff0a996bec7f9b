//! The buffer of bytes received from a server and not parsed yet.

/// How much room there is at first.
const ROOM: usize = 16 << 10;
/// How much more room is made at once for a reply of a known length, unless that much has come: what a
/// server says of lengths costs no more before the bytes are there.
const AT_ONCE: usize = 1 << 20;
/// Room beyond this is given back when it is not needed any more.
const KEPT: usize = 256 << 10;

/// A buffer that is filled at its end and read at its beginning, and used over and over.
#[derive(Debug)]
pub struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes the reply at `start` has, as far as that is known.
    wanted: usize,
}

impl Default for Input {
    fn default() -> Self {
        Input { bytes: vec![0; ROOM], start: 0, end: 0, wanted: 0 }
    }
}

impl Input {
    /// What is not read yet.
    #[inline]
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Whether all was read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// So many bytes were read.
    #[inline]
    pub fn read(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.end);
        if self.start == self.end {
            (self.start, self.end, self.wanted) = (0, 0, 0);
            if self.bytes.len() > KEPT {
                self.bytes.truncate(KEPT);
                self.bytes.shrink_to_fit();
            }
        }
    }

    /// The next reply has so many bytes, from the first unread one on. Whoever says so has held the
    /// number against a limit.
    pub fn want(&mut self, bytes: usize) {
        self.wanted = bytes;
    }

    /// Room to fill; never empty.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        // A batch of replies is read in few large pieces, a single one in one small one.
        if self.end == self.bytes.len() || self.start + self.wanted.min(AT_ONCE) > self.bytes.len()
        {
            self.make_room();
        }
        &mut self.bytes[self.end..]
    }

    #[cold]
    fn make_room(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let wanted = self.wanted.min(AT_ONCE.max(2 * self.end));
        let least = wanted.max(self.end + ROOM / 2);
        if least > self.bytes.len() {
            // Twice as much, that many small pieces are not copied many times; exactly what is
            // wanted where that is known.
            let more = least.max((2 * self.bytes.len()).min(KEPT));
            self.bytes.resize(more, 0);
        }
    }

    /// So many bytes of the room were filled.
    #[inline]
    pub fn filled(&mut self, bytes: usize) {
        self.end += bytes;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// How much memory it has.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_costs_nothing_before_it_comes() {
        const ANNOUNCED: usize = 1 << 30;
        let mut input = Input::default();
        input.room()[0] = 7;
        input.filled(1);
        input.want(ANNOUNCED);
        for _ in 0..1000 {
            let room = input.room().len().min(5_000);
            input.filled(room);
            assert!(input.capacity() <= AT_ONCE.max(3 * input.unread().len()));
        }
    }

    #[test]
    fn it_grows_for_what_is_wanted_and_shrinks_again() {
        let mut input = Input::default();
        let piece = |input: &mut Input, n: usize| {
            let room = input.room();
            let n = n.min(room.len());
            room[..n].fill(7);
            input.filled(n);
            n
        };
        piece(&mut input, 10);
        input.read(4);
        input.want(1_000_000);
        while input.unread().len() < 1_000_000 {
            piece(&mut input, 50_000);
        }
        assert!(input.capacity() < 1_100_000);
        assert!(input.unread().iter().all(|b| *b == 7));
        input.read(input.unread().len());
        assert!(input.capacity() <= KEPT && input.is_empty());
        assert!(!input.room().is_empty());
    }
}
