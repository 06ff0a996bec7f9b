//! For tests: random and mutated server answers, which must be parsed or rejected without a panic.

use proptest::{collection::vec, prelude::*, sample::Index};

use crate::{ErrorKind, Result};

/// One of these with a few bytes changed, put in or cut out; or any bytes.
pub(super) fn near(samples: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<Index>(), 0..4, prop_oneof![any::<u8>(), Just(0xff), Just(0), Just(1)]);
    let edited = (any::<Index>(), vec(edit, 0..4)).prop_map(move |(which, edits)| {
        let mut bytes = which.get(&samples).clone();
        for (at, how, byte) in edits {
            let at = at.index(bytes.len() + 1);
            match how {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 if at < bytes.len() => _ = bytes.remove(at),
                3 => bytes.truncate(at),
                _ => {}
            }
        }
        bytes
    });
    prop_oneof![9 => edited, 1 => vec(any::<u8>(), 0..64)]
}

/// Shows an answer in two pieces to what finds its end, and what is found whole to what reads it:
/// nonsense is malformed or read, and nothing panics.
pub(super) fn shown(
    bytes: &[u8],
    cut: Index,
    mut find: impl FnMut(&[u8]) -> Result<Option<usize>>,
    read: impl FnOnce(&[u8]),
) -> std::result::Result<(), TestCaseError> {
    for upto in [cut.index(bytes.len() + 1), bytes.len()] {
        match find(&bytes[..upto]) {
            Ok(None) => {}
            Ok(Some(at)) => {
                prop_assert!(at <= upto);
                read(&bytes[..at]);
                break;
            }
            Err(e) => {
                prop_assert_eq!(e.kind(), ErrorKind::Malformed);
                break;
            }
        }
    }
    Ok(())
}
