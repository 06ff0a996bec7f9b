//! Names that any key can have in a folder or bucket: of plain characters, in the order of the keys'
//! bytes, and read back exactly.
//!
//! Letters, digits and `-` stand for themselves. Any other byte is a mark and two hexadecimal digits.
//! The mark tells where the byte lies among those that stand for themselves, and lies there itself,
//! so that names are in the order of keys:
//!
//! | byte | mark |
//! |---|---|
//! | up to `,` | `!` |
//! | `.` `/` | `.` |
//! | `:` to `@` | `=` |
//! | `[` to `` ` `` | `_` |
//! | from `{` on | `~` |

use super::Key;

/// A character that is in no name of a key, for what else there is beside them.
pub(super) const OTHER: char = '+';

/// What stands before the digits of a byte; none where the byte stands for itself.
fn mark(byte: u8) -> Option<u8> {
    match byte {
        b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => None,
        ..=b',' => Some(b'!'),
        b'.' | b'/' => Some(b'.'),
        b':'..=b'@' => Some(b'='),
        b'['..=b'`' => Some(b'_'),
        b'{'.. => Some(b'~'),
    }
}

/// The name of a text.
pub(super) fn encode(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut name = String::with_capacity(text.len() + text.len() / 4);
    for byte in text.bytes() {
        match mark(byte) {
            None => name.push(byte.into()),
            Some(mark) => {
                let digits = [mark, DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
                name.extend(digits.map(char::from));
            }
        }
    }
    name
}

/// The key of a name; none where it is nothing that [`encode`] makes.
pub(super) fn decode(name: &str) -> Option<Key> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if mark(first).is_none() {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        rest = after;
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let byte = value(digits[0])? << 4 | value(digits[1])?;
        if mark(byte) != Some(first) {
            return None;
        }
        bytes.push(byte);
    }
    Key::new(String::from_utf8(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_plain_and_come_back() {
        for (text, name) in [
            ("order-17", "order-17"),
            ("a/b.c", "a.2fb.2ec"),
            ("..", ".2e.2e"),
            ("user_1@x", "user_5f1=40x"),
            ("\r\n", "!0d!0a"),
            ("é", "~c3~a9"),
        ] {
            assert_eq!(encode(text), name);
            assert_eq!(decode(name).unwrap().as_str(), text);
        }
    }

    #[test]
    fn what_is_no_name_of_a_key_is_none() {
        for name in
            ["", ".", "..", ".2", ".2F", ".61", "!2e", "a/b", "a+b", "~ff", "~c3", "é", ".é"]
        {
            assert_eq!(decode(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_key_comes_back_and_the_order_stays(a in "\\PC{1,8}|[!-~]{1,8}|(?s).{1,4}", b in "\\PC{1,8}|[!-~]{1,8}|(?s).{1,4}") {
            let (x, y) = (encode(&a), encode(&b));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert!(!x.contains([OTHER, '/', '\0', '%', '\\']));
            prop_assert_eq!(decode(&x), Key::new(a).ok());
        }

        #[test]
        fn every_byte_keeps_its_place(a: Vec<char>, b: Vec<char>) {
            let (a, b): (String, String) = (a.iter().collect(), b.iter().collect());
            prop_assert_eq!(encode(&a).cmp(&encode(&b)), a.cmp(&b));
        }
    }
}
