//! The size of requests: how many keys to ask for at once, and how many bytes to send.

/// How many records to ask for at once, so that an answer has about a mebibyte, whatever the size
/// of the records.
#[derive(Debug)]
pub(crate) struct Portion {
    next: usize,
}

/// How many records at most.
const MOST: usize = 1000;
/// How many bytes, about.
const BYTES: usize = 1 << 20;

impl Portion {
    /// Few at first, as nothing is known of them.
    pub(crate) fn new() -> Portion {
        Portion { next: 16 }
    }

    /// How many to ask for.
    pub(crate) fn next(&self) -> usize {
        self.next
    }

    /// So many bytes came for so many records.
    pub(crate) fn learn(&mut self, records: usize, bytes: usize) {
        if records > 0 {
            let fits = BYTES * records / bytes.max(1);
            self.next = fits.clamp(1, MOST).min(self.next * 4);
        }
    }
}

/// Cuts items into runs of about a mebibyte, and not too many, to be sent at once.
pub(crate) fn chunks<T>(items: &[T], bytes: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    let mut rest = items;
    std::iter::from_fn(move || {
        let mut sum = 0;
        let fit = rest.iter().take(MOST).take_while(|item| {
            let before = sum;
            sum += bytes(item);
            before < BYTES
        });
        let (chunk, after) = rest.split_at(fit.count());
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_grow_and_shrink_with_the_records() {
        let mut portion = Portion::new();
        for _ in 0..10 {
            portion.learn(portion.next(), 100 * portion.next());
        }
        assert_eq!(portion.next(), MOST);
        portion.learn(10, 100 << 20);
        assert_eq!(portion.next(), 1);
        portion.learn(0, 0);
        assert_eq!(portion.next(), 1);
    }

    #[test]
    fn chunks_hold_all_in_order() {
        let sizes: Vec<usize> =
            (0..5000).map(|i| if i % 100 == 0 { BYTES * 2 } else { i }).collect();
        let cut: Vec<&[usize]> = chunks(&sizes, |size| *size).collect();
        assert_eq!(cut.concat(), sizes);
        assert!(cut.iter().all(|chunk| chunk.len() <= MOST));
        assert!(cut.iter().all(|c| c[..c.len() - 1].iter().sum::<usize>() < BYTES));
        assert_eq!(chunks(&[1; 2500], |_| 1).count(), 3);
        assert_eq!(chunks::<u8>(&[], |_| 1).count(), 0);
    }
}
