//! Calls in the classic commands (doc/protocol.txt), for servers before 1.6.10.

use super::{Call, How, Op, meta::decimal};
use crate::key::{Form, Keys};

fn expires(expiry: i64, out: &mut Vec<u8>) {
    match u64::try_from(expiry) {
        Ok(seconds) => decimal(seconds, out),
        Err(_) => out.extend_from_slice(b"-1"),
    }
    out.push(b' ');
}

/// Appends a call. What the dialect cannot say was found out before (`Call::possible`).
pub(super) fn write(call: &Call<'_>, form: Form, keys: &Keys, out: &mut Vec<u8>) {
    let command: &[u8] = match call.op {
        Op::Get { cas: false } | Op::Fetch { .. } => b"get ",
        Op::Get { cas: true } => b"gets ",
        Op::GetAndTouch { .. } => b"gat ",
        Op::Store { cas: Some(_), .. } => b"cas ",
        Op::Store { how, .. } => match how {
            How::Set => b"set ",
            How::Add => b"add ",
            How::Replace => b"replace ",
            How::Append => b"append ",
            How::Prepend => b"prepend ",
        },
        Op::Count { up: true, .. } => b"incr ",
        Op::Count { up: false, .. } => b"decr ",
        Op::Touch { .. } => b"touch ",
        Op::Delete { .. } => b"delete ",
        Op::Debug => b"me ",
    };
    out.extend_from_slice(command);
    if let Op::GetAndTouch { expiry } = call.op {
        expires(expiry, out);
    }
    keys.append(form, call.key, out);
    match call.op {
        Op::Store { value, flags, expiry, cas, .. } => {
            out.push(b' ');
            decimal(flags.into(), out);
            out.push(b' ');
            expires(expiry, out);
            decimal(value.len() as u64, out);
            if let Some(cas) = cas {
                out.push(b' ');
                decimal(cas, out);
            }
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(value);
        }
        Op::Count { by, .. } => {
            out.push(b' ');
            decimal(by, out);
        }
        Op::Touch { expiry } => {
            out.push(b' ');
            match u64::try_from(expiry) {
                Ok(seconds) => decimal(seconds, out),
                Err(_) => out.extend_from_slice(b"-1"),
            }
        }
        _ => {}
    }
    out.extend_from_slice(b"\r\n");
}
