//! Converts MARC-8 line by line, for comparing with other programs: hexadecimal in, hexadecimal out.
//!
//! `marc8_lines decode` reads MARC-8 and prints UTF-8, then what was wrong: `offset:Kind`, after
//! a tab. `marc8_lines encode` reads UTF-8 and prints MARC-8, then the offsets of what it does not have.

use std::{
    fmt::Write as _,
    io::{self, BufRead, BufWriter, Write},
};

use steelyard_marc::marc8::{Decoder, Encoder};

fn main() -> io::Result<()> {
    let encode = match std::env::args().nth(1).as_deref() {
        Some("decode") => false,
        Some("encode") => true,
        _ => {
            return Err(io::Error::other("usage: marc8_lines decode|encode, lines of hexadecimal"));
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut converted, mut line_out) = (Vec::new(), String::new());
    for line in io::stdin().lock().lines() {
        let bytes = from_hex(&line?)?;
        converted.clear();
        line_out.clear();
        let mut wrong = String::new();
        if encode {
            let text = String::from_utf8(bytes).map_err(io::Error::other)?;
            Encoder::default().encode(&text, &mut converted, &mut |at, _| {
                let _ = write!(wrong, " {at}");
            });
        } else {
            Decoder::default().decode(&bytes, &mut converted, &mut |at, fault| {
                let kind = format!("{fault:?}");
                let name = kind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                let _ = write!(wrong, " {at}:{name}");
            });
        }
        for byte in &converted {
            let _ = write!(line_out, "{byte:02x}");
        }
        writeln!(out, "{line_out}\t{}", wrong.trim_start())?;
    }
    out.flush()
}

fn from_hex(line: &str) -> io::Result<Vec<u8>> {
    let pair = |pair: &[u8]| {
        let digits = std::str::from_utf8(pair).map_err(io::Error::other)?;
        u8::from_str_radix(digits, 16).map_err(io::Error::other)
    };
    line.trim().as_bytes().chunks(2).map(pair).collect()
}
