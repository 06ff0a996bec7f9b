//! Files that are not in UTF-8.

use crate::{Error, Result, Trouble, TroubleKind};

/// How the bytes of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Utf8,
    /// Through [`latin1_to_utf8`] first, before records are looked for.
    Latin1,
}

/// What the first bytes of a file (256 are enough) say about its encoding: a byte-order mark, or
/// the XML declaration. Without either it is UTF-8.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) for any encoding but UTF-8, ASCII and ISO 8859-1.
pub fn encoding(head: &[u8], troubles: &mut Vec<Trouble>) -> Result<Encoding> {
    let unsupported = |name: &str| {
        Err(Error::unsupported(format!(
            "XML in {name} is not supported; convert it first: iconv -f {name} -t UTF-8"
        )))
    };
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'<', 0, ..] | [0, b'<', ..] => {
            return unsupported("UTF-16");
        }
        _ => {}
    }
    let declared = declared(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)).unwrap_or(b"");
    let name = String::from_utf8_lossy(declared).to_ascii_uppercase();
    match name.as_str() {
        "" | "UTF-8" | "UTF8" | "US-ASCII" | "ASCII" => Ok(Encoding::Utf8),
        "ISO-8859-1" | "ISO8859-1" | "ISO_8859-1" | "LATIN1" | "LATIN-1" => Ok(Encoding::Latin1),
        // Whoever could read this far did not read it in two-byte units.
        name if name.starts_with("UTF-16") || name.starts_with("UCS-2") => {
            let detail = format!("{name} is declared, but the text is not in it; read as UTF-8");
            troubles.push(Trouble::new(TroubleKind::Encoding, 0, detail));
            Ok(Encoding::Utf8)
        }
        name => unsupported(name),
    }
}

/// The encoding named in an XML declaration.
fn declared(head: &[u8]) -> Option<&[u8]> {
    let end = memchr::memmem::find(head, b"?>")?;
    let declaration = head[..end].strip_prefix(b"<?xml")?;
    let at = memchr::memmem::find(declaration, b"encoding")?;
    let value = declaration[at + b"encoding".len()..].trim_ascii_start().strip_prefix(b"=")?;
    let (quote, value) = value.trim_ascii_start().split_first()?;
    let end = memchr::memchr(*quote, value)?;
    matches!(quote, b'"' | b'\'').then_some(&value[..end])
}

/// Appends bytes in ISO 8859-1 to `out` in UTF-8. Any cut between blocks is as good as another.
pub fn latin1_to_utf8(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + bytes.len() / 8);
    for chunk in bytes.chunk_by(|a, b| a.is_ascii() == b.is_ascii()) {
        if chunk[0].is_ascii() {
            out.extend_from_slice(chunk);
        } else {
            out.extend(chunk.iter().flat_map(|b| [0xc0 | (b >> 6), 0x80 | (b & 0x3f)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str) -> Result<Encoding> {
        encoding(head.as_bytes(), &mut Vec::new())
    }

    #[test]
    fn believes_marks_and_declarations() {
        assert_eq!(of("<record>").unwrap(), Encoding::Utf8);
        assert_eq!(of("\u{feff}<?xml version='1.0' encoding='utf-8'?>").unwrap(), Encoding::Utf8);
        let latin = "<?xml version=\"1.0\" encoding = \"iso-8859-1\" standalone=\"yes\"?>";
        assert_eq!(of(latin).unwrap(), Encoding::Latin1);
        let error = of("<?xml version=\"1.0\" encoding=\"KOI8-R\"?>").unwrap_err();
        assert!(error.to_string().contains("iconv -f KOI8-R"), "{error}");
        assert!(encoding(b"\xff\xfe<\0", &mut Vec::new()).is_err());
        assert!(encoding(b"<\0?\0", &mut Vec::new()).is_err());
        let mut troubles = Vec::new();
        let lie = b"<?xml version=\"1.0\" encoding=\"UTF-16\"?>";
        assert_eq!(encoding(lie, &mut troubles).unwrap(), Encoding::Utf8);
        assert_eq!(troubles[0].kind, TroubleKind::Encoding);
    }

    #[test]
    fn latin1_is_the_first_256_characters() {
        let all: Vec<u8> = (0..=255).collect();
        let mut out = Vec::new();
        latin1_to_utf8(&all, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            all.iter().map(|&b| b as char).collect::<String>()
        );
    }
}
