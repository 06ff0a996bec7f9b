//! Values, addresses and commands as texts that can be shown and copied.

use std::{borrow::Cow, fmt::Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use steelyard_base::{Result, error::gives_orders};
use steelyard_store::{
    format::Format,
    record::{Document, Value},
    store::query::Path,
};

use crate::{docs::Asked, names};

/// What stands for itself in every part of a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The text with characters that give orders (controls, and those that turn the direction of text) as JSON writes them.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    match text.chars().any(gives_orders) {
        false => text.into(),
        true => text
            .chars()
            .fold(String::new(), |mut shown, c| {
                push_visible(&mut shown, c);
                shown
            })
            .into(),
    }
}

fn push_visible(out: &mut String, c: char) {
    match gives_orders(c) {
        // All of them have four digits at most.
        true => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        false => out.push(c),
    }
}

/// The text, visible, and cut after so many characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map(|(at, _)| at);
    let mut shown = visible(&text[..end.unwrap_or(text.len())]).into_owned();
    if end.is_some() {
        shown.push('…');
    }
    shown
}

/// What went wrong, visible line by line, as a sentence: API and page share the words, and only a page begins with them.
pub(super) fn sentence(text: &str) -> String {
    let lines: Vec<Cow<'_, str>> = text.lines().map(visible).collect();
    let text = lines.join("\n");
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let end = if lines.len() > 1 || text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// A value in a cell of a table, and the class of its kind.
pub(super) fn cell(value: &Value) -> (&'static str, String) {
    /// Characters of a cell.
    const MOST: usize = 120;
    match value {
        Value::Text(text) => ("text", short(text, MOST)),
        Value::Bytes(bytes) => ("other", format!("{} bytes", bytes.len())),
        Value::Time(time) => ("text", time.to_string()),
        _ => {
            let class = match value {
                Value::Int(_) | Value::BigInt(_) | Value::Float(_) | Value::Decimal(_) => "number",
                _ => "other",
            };
            (class, short(&json(value), MOST))
        }
    }
}

/// A value as JSON, by the way that documents are written.
fn json(value: &Value) -> String {
    let mut bytes = Vec::new();
    let one = Document::from_iter([("v", value.clone())]);
    match Format::Json.encode_document(&one, &mut bytes) {
        Ok(()) => {
            let text = String::from_utf8_lossy(&bytes);
            let text = text.strip_prefix("{\"v\":").and_then(|text| text.strip_suffix('}'));
            text.unwrap_or_default().to_owned()
        }
        // What JSON has no way to say: a number that is none.
        Err(_) => "…".into(),
    }
}

/// A piece of indented JSON.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    /// The name of a value, in its quotes.
    Name(String),
    Other(String),
}

/// A document as indented JSON, and whether it was cut: indented, what nests deep grows beyond any size of documents.
pub(super) fn indented(document: &Document) -> Result<(Vec<Piece>, bool)> {
    /// Bytes of it.
    const MOST: usize = 512 << 10;
    let mut bytes = Vec::new();
    Format::Json.encode_document(document, &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (mut pieces, mut out, mut depth, mut written) = (Vec::new(), String::new(), 0, 0);
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        (0..depth).for_each(|_| out.push_str("  "));
    };
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if written + out.len() > MOST {
            pieces.push(Piece::Other(out));
            return Ok((pieces, true));
        }
        match c {
            '"' => {
                let (mut string, mut escaped) = (String::from('"'), false);
                for c in rest.by_ref() {
                    push_visible(&mut string, c);
                    match (escaped, c) {
                        (false, '"') => break,
                        (was, c) => escaped = !was && c == '\\',
                    }
                }
                match rest.peek() {
                    Some(':') => {
                        written += out.len() + string.len();
                        pieces.push(Piece::Other(std::mem::take(&mut out)));
                        pieces.push(Piece::Name(string));
                    }
                    _ => out.push_str(&string),
                }
            }
            '{' | '[' => {
                out.push(c);
                match rest.peek() {
                    Some('}' | ']') => out.extend(rest.next()),
                    _ => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => push_visible(&mut out, c),
        }
    }
    pieces.push(Piece::Other(out));
    Ok((pieces, false))
}

/// A text as part of a URL.
pub(super) fn encoded(text: &str) -> String {
    percent_encode(text.as_bytes(), ENCODED).to_string()
}

/// The address of a record's page; none where its key cannot stand in an address.
pub(super) fn record_url(collection: &str, id: &str) -> Option<String> {
    names::id(id).ok()?;
    let mut id = encoded(id);
    if id == "export" {
        // Beside `/c/{collection}/export` there can be a record of this name.
        id = "%65xport".into();
    }
    Some(format!("/c/{collection}/{id}"))
}

/// What is asked, as names and values of a query string.
pub(super) fn parameters(asked: &Asked) -> Vec<(&'static str, String)> {
    let limit = asked.limit.map(|n| n.to_string()).unwrap_or_default();
    let cursor = asked.cursor.clone().unwrap_or_default();
    let all = [
        ("where", asked.condition.clone()),
        ("sort", asked.sort.clone()),
        ("fields", asked.fields.clone()),
        ("limit", limit),
        ("cursor", cursor),
    ];
    all.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect()
}

/// An address with these parameters.
pub(super) fn url(path: &str, parameters: &[(&str, String)]) -> String {
    let mut url = path.to_owned();
    for (i, (name, value)) in parameters.iter().enumerate() {
        let _ = write!(url, "{}{name}={}", if i == 0 { '?' } else { '&' }, encoded(value));
    }
    url
}

/// Where the name that the browser used is not plain, the user has to know it.
pub(super) const UNKNOWN: &str = "http://$HOST";

/// The command that asks the API for the same.
pub(super) fn curl(origin: Option<&str>, path: &str, parameters: &[(&str, String)]) -> String {
    let origin = origin.unwrap_or(UNKNOWN);
    let mut command = format!("curl -H \"Authorization: Bearer $KEY\" \"{origin}{path}\"");
    if !parameters.is_empty() {
        command.push_str(" -G");
    }
    for (name, value) in parameters {
        // What a terminal would take for an order goes as in a URL.
        let (option, value) = match value.chars().any(gives_orders) {
            true => ("-d", encoded(value).to_string()),
            false => ("--data-urlencode", value.clone()),
        };
        let _ = write!(command, " \\\n  {option} {}", quoted(&format!("{name}={value}")));
    }
    command
}

/// The command that writes a first document.
pub(super) fn first_write(origin: Option<&str>) -> String {
    let url = format!("{}/v1/docs/people/bob", origin.unwrap_or(UNKNOWN));
    let json = "-H \"Content-Type: application/json\" -d '{\"name\":\"Bob\",\"age\":61}'";
    format!("curl -X PUT -H \"Authorization: Bearer $KEY\" \"{url}\" \\\n  {json}")
}

/// A word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The text that sorts by a top-level field; none where that cannot be written.
pub(super) fn sort_of(field: &str) -> Option<String> {
    let path = Path::new([field]);
    let text = path.to_string();
    let is_plain = text.trim() == text && !text.starts_with('-') && !text.contains(',');
    (is_plain && text.parse::<Path>().is_ok_and(|read| read == path)).then_some(text)
}

/// A number with its thousands apart.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(document: &str) -> String {
        let document = Format::Json.decode_document(document.as_bytes()).unwrap();
        let (pieces, cut) = indented(&document).unwrap();
        assert!(!cut);
        let text = |piece: &Piece| match piece {
            Piece::Name(text) | Piece::Other(text) => text.clone(),
        };
        pieces.iter().map(text).collect()
    }

    #[test]
    fn indented_json_is_the_same_json() {
        let document = r#"{"a":{"b":[1,2.5,{"c":[]}],"":{}},"say":"\"{[,:]}\" \\","n":12345678901234567890123,"t":true}"#;
        let text = plain(document);
        let decoded = |text: &str| Format::Json.decode_document(text.as_bytes()).unwrap();
        assert_eq!(decoded(&text), decoded(document), "{text}");
        assert!(text.starts_with("{\n  \"a\": {\n    \"b\": [\n      1,"), "{text}");
        let hostile = "{\"\u{202e}x\":\"a\u{85}b\u{2028}\"}";
        let text = plain(hostile);
        assert!(!text.chars().any(|c| gives_orders(c) && c != '\n'), "{text:?}");
        assert_eq!(decoded(&text), decoded(hostile));
    }

    #[test]
    fn what_nests_deep_is_cut() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(60), ",1]".repeat(60));
        assert!(!indented(&Format::Json.decode_document(deep.as_bytes()).unwrap()).unwrap().1);
        let wide =
            format!("{{\"a\":{}{}1{}}}", "[".repeat(60), "1,".repeat(50_000), "]".repeat(60));
        let (pieces, cut) =
            indented(&Format::Json.decode_document(wide.as_bytes()).unwrap()).unwrap();
        assert!(cut && !pieces.is_empty());
    }

    #[test]
    fn words_of_commands_are_quoted() {
        let of =
            |value: &str| curl(Some("http://h:1"), "/v1/docs/c", &[("where", value.to_owned())]);
        assert!(of("age>=60").ends_with("--data-urlencode 'where=age>=60'"));
        assert!(of("a='$(x)`y`\"").ends_with(r#"'where=a='\''$(x)`y`"'"#));
        assert!(of("a\nb\u{202e}").ends_with("-d 'where=a%0Ab%E2%80%AE'"));
        assert!(curl(None, "/v1/docs/c", &[]).contains("\"http://$HOST/v1/docs/c\""));
    }

    #[test]
    fn addresses_lead_to_what_they_name() {
        assert_eq!(record_url("c", "a/b?#é").unwrap(), "/c/c/a%2Fb%3F%23%C3%A9");
        assert_eq!(record_url("c", "export").unwrap(), "/c/c/%65xport");
        assert!(record_url("c", "..").is_none() && record_url("c", "a\nb").is_none());
        for (field, want) in
            [("age", Some("age")), ("a.b", Some("a\\.b")), ("a,b", None), ("-a", None), ("", None)]
        {
            assert_eq!(sort_of(field).as_deref(), want, "{field}");
        }
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
