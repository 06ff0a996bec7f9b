//! Control characters made visible: what servers, files and records say is text, and must not move the
//! cursor of a terminal, colour it or turn lines round.
//!
//! It is done to the results before any page is made of them ([`made_visible`]), so that no writer can
//! forget it.

use std::borrow::Cow;

use serde_json::Value;
use steelyard_results::Json;

use steelyard_base::error::gives_orders;

/// Texts of several lines: statements, plans, the text of a workload.
const LINES: [&str; 3] = ["text", "statement", "plan"];

/// A text with its control characters written as escapes, and with those that turn the direction of
/// text: `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    with(text, |_| false)
}

/// The same of text of several lines, which may be indented.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    with(text, |c| matches!(c, '\n' | '\t'))
}

fn with(text: &str, kept: fn(char) -> bool) -> Cow<'_, str> {
    let shown = |c: char| kept(c) || !gives_orders(c);
    if text.chars().all(shown) {
        return Cow::Borrowed(text);
    }
    let one = |c: char| match shown(c) {
        true => c.to_string(),
        false => c.escape_debug().to_string(),
    };
    Cow::Owned(text.chars().map(one).collect())
}

/// What is to be reported, with nothing hidden in any of its texts.
pub(super) fn made_visible<T: Json + Clone>(what: &T) -> Cow<'_, T> {
    let mut value = serde_json::from_str(&what.to_json()).expect("it was just written");
    match walk(&mut value, false) {
        true => T::from_json(value).map_or(Cow::Borrowed(what), Cow::Owned),
        false => Cow::Borrowed(what),
    }
}

/// Says whether there was anything hidden.
fn walk(value: &mut Value, lines: bool) -> bool {
    match value {
        Value::String(text) => {
            let seen = if lines { visible_lines(text) } else { visible(text) };
            let Cow::Owned(seen) = seen else { return false };
            *text = seen;
            true
        }
        Value::Array(all) => {
            // All of them, and not up to the first.
            let seen: Vec<bool> = all.iter_mut().map(|one| walk(one, lines)).collect();
            seen.contains(&true)
        }
        Value::Object(map) => {
            let mut any = false;
            for (name, value) in std::mem::take(map) {
                let (mut value, seen) = (value, visible(&name).into_owned());
                any |= walk(&mut value, LINES.contains(&name.as_str())) || seen != name;
                map.insert(seen, value);
            }
            any
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// JSON in which characters that a terminal takes for an order are escapes; it stays the same JSON.
pub fn visible_json(json: &str) -> String {
    let one = |c: char| match gives_orders(c) && !matches!(c, '\n' | '\t') {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    json.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_seen_and_the_rest_stays() {
        for plain in ["", "a b", "ä 漢 🦀 \u{301}", "C:\\x"] {
            assert!(matches!(visible(plain), Cow::Borrowed(text) if text == plain));
        }
        assert_eq!(
            visible("a\u{1b}[31mb\r\n\u{9b}\u{7f}\u{202e}"),
            "a\\u{1b}[31mb\\r\\n\\u{9b}\\u{7f}\\u{202e}"
        );
        assert_eq!(visible_lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
        let json = visible_json("{\"a\":\"\u{9b}\u{202e}x\"}\n");
        assert_eq!(json, "{\"a\":\"\\u009b\\u202ex\"}\n");
        let read: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["a"], "\u{9b}\u{202e}x");
    }
}
