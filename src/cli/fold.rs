//! Text in lines that fit on a terminal.

use unicode_width::UnicodeWidthStr;

/// The words of a text in lines of at most `width` columns, each line indented, all but the first by two columns more.
/// A word that is longer than a line has a line of its own.
pub fn folded(text: &str, width: usize, indent: usize) -> String {
    let mut out = " ".repeat(indent);
    let mut at = indent;
    let mut begins = true;
    for word in text.split_whitespace() {
        let columns = word.width();
        if !begins && at + 1 + columns > width {
            out.push('\n');
            out += &" ".repeat(indent + 2);
            at = indent + 2;
            begins = true;
        }
        if !begins {
            out.push(' ');
            at += 1;
        }
        out += word;
        at += columns;
        begins = false;
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_filled_to_their_width() {
        assert_eq!(folded("aa bb cc dd", 7, 2), "  aa bb\n    cc\n    dd\n");
        assert_eq!(folded("a longer-than-a-line b", 8, 0), "a\n  longer-than-a-line\n  b\n");
        assert_eq!(folded("", 8, 2), "  \n");
    }
}
