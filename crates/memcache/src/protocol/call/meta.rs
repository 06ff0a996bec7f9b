//! Calls in meta commands (doc/protocol.txt, "Meta Commands").

use super::{Call, How, Op};
use crate::key::{Form, Keys};

/// Appends a number in decimal.
#[inline]
pub(crate) fn decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a flag with a number: ` T60`.
#[inline]
fn flag(letter: u8, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b' ', letter]);
    decimal(number, out);
}

/// Appends ` T60`, or ` T-1`.
#[inline]
fn expires(letter: u8, expiry: i64, out: &mut Vec<u8>) {
    match u64::try_from(expiry) {
        Ok(seconds) => flag(letter, seconds, out),
        Err(_) => out.extend_from_slice(&[b' ', letter, b'-', b'1']),
    }
}

/// Appends a call; `more` are flags to add.
#[inline]
pub(super) fn write(call: &Call<'_>, form: Form, keys: &Keys, out: &mut Vec<u8>, more: &[u8]) {
    let command: &[u8] = match call.op {
        Op::Get { .. } | Op::GetAndTouch { .. } | Op::Fetch { .. } | Op::Touch { .. } => b"mg ",
        Op::Store { .. } => b"ms ",
        Op::Count { .. } => b"ma ",
        Op::Delete { .. } => b"md ",
        Op::Debug => b"me ",
    };
    out.extend_from_slice(command);
    keys.append(form, call.key, out);
    if let Op::Store { value, .. } = call.op {
        out.push(b' ');
        decimal(value.len() as u64, out);
    }
    if form == Form::Coded {
        out.extend_from_slice(b" b");
    }
    match call.op {
        Op::Get { cas: false } => out.extend_from_slice(b" f v"),
        Op::Get { cas: true } => out.extend_from_slice(b" f v c"),
        Op::GetAndTouch { expiry } => {
            out.extend_from_slice(b" f v");
            expires(b'T', expiry, out);
        }
        Op::Fetch { lease, recache } => {
            out.extend_from_slice(b" f v c t");
            flag(b'N', lease.into(), out);
            if recache > 0 {
                flag(b'R', recache.into(), out);
            }
        }
        Op::Store { how, flags, expiry, cas, .. } => {
            if flags != 0 {
                flag(b'F', flags.into(), out);
            }
            if expiry != 0 {
                expires(b'T', expiry, out);
            }
            if let Some(cas) = cas {
                flag(b'C', cas, out);
            }
            let mode: &[u8] = match how {
                How::Set => b"",
                How::Add => b" ME",
                How::Replace => b" MR",
                How::Append => b" MA",
                How::Prepend => b" MP",
            };
            out.extend_from_slice(mode);
        }
        Op::Count { up, by, initial } => {
            out.extend_from_slice(if up { b" v" } else { b" v MD" });
            flag(b'D', by, out);
            if let Some((number, expiry)) = initial {
                expires(b'N', expiry, out);
                flag(b'J', number, out);
            }
        }
        Op::Touch { expiry } => expires(b'T', expiry, out),
        Op::Delete { cas, stale } => {
            if let Some(cas) = cas {
                flag(b'C', cas, out);
            }
            if let Some(seconds) = stale {
                out.extend_from_slice(b" I");
                flag(b'T', seconds.into(), out);
            }
        }
        Op::Debug => {}
    }
    out.extend_from_slice(more);
    out.extend_from_slice(b"\r\n");
    if let Op::Store { value, .. } = call.op {
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_spelled_as_the_protocol_has_them() {
        let keys = Keys::new(b"n:", false).unwrap();
        let store = |how, flags, expiry, cas| Op::Store { how, value: b"ab", flags, expiry, cas };
        for (op, want) in [
            (Op::Get { cas: false }, "mg n:k f v\r\n"),
            (Op::Get { cas: true }, "mg n:k f v c\r\n"),
            (Op::GetAndTouch { expiry: -1 }, "mg n:k f v T-1\r\n"),
            (Op::Fetch { lease: 30, recache: 5 }, "mg n:k f v c t N30 R5\r\n"),
            (store(How::Set, 0, 0, None), "ms n:k 2\r\nab\r\n"),
            (store(How::Prepend, 9, 60, Some(7)), "ms n:k 2 F9 T60 C7 MP\r\nab\r\n"),
            (Op::Count { up: false, by: 2, initial: Some((5, 0)) }, "ma n:k v MD D2 N0 J5\r\n"),
            (Op::Touch { expiry: 9 }, "mg n:k T9\r\n"),
            (Op::Delete { cas: None, stale: Some(30) }, "md n:k I T30\r\n"),
        ] {
            let mut out = Vec::new();
            write(&Call { key: b"k", op }, Form::Plain, &keys, &mut out, b"");
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
        let mut out = Vec::new();
        let call = Call { key: b"\r\n", op: store(How::Set, 0, 0, None) };
        write(&call, Form::Coded, &Keys::default(), &mut out, b" q");
        assert_eq!(out, b"ms DQo= 2 b q\r\nab\r\n");
    }
}
