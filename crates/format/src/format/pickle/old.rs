//! The opcodes of protocol 0, whose arguments are lines of text.

use super::{
    machine::Machine,
    ops::*,
    tape::{Kind, Node},
};
use crate::Result;

/// Runs the opcode `code`, whose argument comes next.
pub(super) fn run(machine: &mut Machine<'_>, code: u8) -> Result<()> {
    let from = machine.pos;
    let line = machine.line()?;
    let text = std::str::from_utf8(line).unwrap_or("");
    match code {
        INT if line == b"00" => machine.push(Node::new(Kind::False, 0, 0)),
        INT if line == b"01" => machine.push(Node::new(Kind::True, 0, 0)),
        INT | LONG => {
            let digits = text.strip_suffix('L').unwrap_or(text);
            match digits.parse::<i64>() {
                Ok(v) => machine.push(Node::wide(Kind::Int, v as u64)),
                Err(_) => {
                    let plain = digits.strip_prefix('-').unwrap_or(digits);
                    if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit()) {
                        return Err(machine.wrong("not a whole number"));
                    }
                    machine.push(Node::new(Kind::Digits, from as u32, digits.len() as u32));
                }
            }
        }
        FLOAT => match text.parse::<f64>() {
            Ok(v) => machine.push(Node::wide(Kind::Float, v.to_bits())),
            Err(_) => return Err(machine.wrong("not a number")),
        },
        UNICODE => match line.contains(&b'\\') || !line.is_ascii() {
            false => machine.push(Node::new(Kind::Text, from as u32, line.len() as u32)),
            true => {
                let start = machine.tape.unescaped.len();
                let done = raw_unicode(line, &mut machine.tape.unescaped);
                push_unescaped(machine, start, done, Kind::Unescaped)?;
            }
        },
        STRING => {
            let quoted = match line {
                [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
                _ => return Err(machine.wrong("a string that is not in quotes")),
            };
            match quoted.contains(&b'\\') {
                false => {
                    let from = from as u32 + 1;
                    machine.push(Node::new(Kind::Either, from, quoted.len() as u32));
                }
                true => {
                    let start = machine.tape.unescaped.len();
                    let done = escaped(quoted, &mut machine.tape.unescaped);
                    push_unescaped(machine, start, done, Kind::UnescapedEither)?;
                }
            }
        }
        GET | PUT => {
            let Ok(n) = text.parse() else { return Err(machine.wrong("not a number")) };
            return if code == GET { machine.get(n) } else { machine.put(n) };
        }
        _ => return Err(super::ops::refused(code, from)),
    }
    Ok(())
}

fn push_unescaped(
    machine: &mut Machine<'_>,
    start: usize,
    done: Option<()>,
    kind: Kind,
) -> Result<()> {
    if done.is_none() {
        return Err(machine.wrong("an escape that is not known"));
    }
    // No escape is shorter than what it stands for, so it is never longer than the pickle; but
    // Latin-1 doubles.
    let end = machine.tape.unescaped.len();
    match (u32::try_from(start), u32::try_from(end - start)) {
        (Ok(start), Ok(len)) => {
            machine.push(Node::new(kind, start, len));
            Ok(())
        }
        _ => Err(machine.wrong("over 4 GiB of text")),
    }
}

/// Appends text written with `\uXXXX` and `\UXXXXXXXX`, other bytes being Latin-1. Lone surrogates
/// are kept, in the three bytes they would have in UTF-8.
fn raw_unicode(mut line: &[u8], out: &mut Vec<u8>) -> Option<()> {
    while let Some((&byte, rest)) = line.split_first() {
        line = rest;
        let size = match (byte, rest.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => {
                out.extend_from_slice(char::from(byte).encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        let hex = rest.get(1..=size)?;
        line = &rest[1 + size..];
        if !hex.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let code = u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
        match char::from_u32(code) {
            Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None if code < 0x1_0000 => out.extend_from_slice(&[
                0xe0 | (code >> 12) as u8,
                0x80 | (code >> 6 & 0x3f) as u8,
                0x80 | (code & 0x3f) as u8,
            ]),
            None => return None,
        }
    }
    Some(())
}

/// Appends bytes written as Python 2 shows a string.
fn escaped(mut text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    while let Some((&byte, rest)) = text.split_first() {
        text = rest;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&escape, rest) = text.split_first()?;
        text = rest;
        out.push(match escape {
            b'\\' | b'\'' | b'"' => escape,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'x' => {
                let hex = text.get(..2)?;
                text = &text[2..];
                let [high, low] = [hex[0], hex[1]].map(|b| char::from(b).to_digit(16));
                (high? * 16 + low?) as u8
            }
            b'0'..=b'7' => {
                let more = text.iter().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let mut code = u32::from(escape - b'0');
                for digit in &text[..more] {
                    code = code * 8 + u32::from(digit - b'0');
                }
                text = &text[more..];
                u8::try_from(code).ok()?
            }
            _ => return None,
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unescapes_as_python_does() {
        let mut out = Vec::new();
        raw_unicode(b"a\\u00e9\xe9\\U0001F600\\n\\ud800", &mut out).unwrap();
        assert_eq!(out, "aéé😀\\n".bytes().chain([0xed, 0xa0, 0x80]).collect::<Vec<_>>());
        for wrong in [&b"\\u12"[..], b"\\u+123", b"\\U00110000", b"\\uzzzz"] {
            assert_eq!(raw_unicode(wrong, &mut Vec::new()), None, "{wrong:?}");
        }
        out.clear();
        escaped(b"\\x41\\n\\'\\\\\\0\\1018\\377", &mut out).unwrap();
        assert_eq!(out, b"A\n'\\\0A8\xff");
        for wrong in [&b"\\"[..], b"\\x4", b"\\xg0", b"\\400", b"\\q"] {
            assert_eq!(escaped(wrong, &mut Vec::new()), None, "{wrong:?}");
        }
    }
}
