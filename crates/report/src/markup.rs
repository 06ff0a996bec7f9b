//! Escapes text in SVG and HTML: nothing that comes from results can be read as markup.

/// As text or as the value of an attribute in double quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters are no text in either.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON inside of a script element, which ends at `</script` whatever stands around it and reads
/// `<!--` as something else. Within JSON a `<` stands only in strings, where it may be written so.
pub(super) fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out() {
        assert_eq!(escaped("<a & \"b\">'\u{1b}"), "&lt;a &amp; &quot;b&quot;&gt;&#39;\u{fffd}");
        let json = serde_json::to_string("</script><!--").unwrap();
        let safe = in_script(&json);
        assert!(!safe.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><!--");
    }
}
