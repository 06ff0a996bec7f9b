//! Enough of Rust's grammar to ask a source file what it uses: words and marks, without comments
//! and literals; which of them are tests; and the paths from `crate`, `self` and `super`.

/// A word or mark of the language.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// The word (`r#` taken off), a mark of one character, or `"` for any literal.
    pub text: String,
    /// A literal as it is written; of others nothing.
    pub literal: String,
    pub line: usize,
    /// It stands in code for tests only.
    pub test: bool,
}

/// A path as the compiler sees it from the crate's root, and where it stands.
#[derive(Debug, PartialEq)]
pub struct Path {
    pub segments: Vec<String>,
    pub line: usize,
    /// It stands in code for tests only.
    pub test: bool,
}

/// A source file, read into tokens.
pub struct Source {
    /// The file's module in its crate: `["bench", "stats"]` for `src/bench/stats/mod.rs`.
    pub module: Vec<String>,
    pub tokens: Vec<Token>,
}

impl Source {
    /// `file` is relative to the package: `crates/marc/src/leader.rs`.
    pub fn new(file: &str, text: &str) -> Source {
        let mut tokens = tokens(text);
        mark_tests(&mut tokens);
        Source { module: module(file), tokens }
    }

    /// Modules declared here that are for tests only and have a file of their own.
    pub fn test_modules(&self) -> Vec<String> {
        let found = self
            .tokens
            .windows(3)
            .filter(|w| w[0].test && w[0].text == "mod" && w[2].text == ";" && is_word(&w[1].text));
        found.map(|w| w[1].text.clone()).collect()
    }

    /// Every path that begins with `crate`, `self` or `super`, trees taken apart.
    pub fn paths(&self) -> Vec<Path> {
        let (mut paths, mut modules, mut depth) = (Vec::new(), Vec::new(), 0);
        let text = |i: usize| self.tokens.get(i).map_or("", |t| t.text.as_str());
        for i in 0..self.tokens.len() {
            match text(i) {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    if modules.last().is_some_and(|(_, d)| *d > depth) {
                        modules.pop();
                    }
                }
                "mod" if is_word(text(i + 1)) && text(i + 2) == "{" => {
                    modules.push((text(i + 1).to_string(), depth + 1));
                }
                root @ ("crate" | "self" | "super")
                    if !(i > 1 && self.colons(i - 2)) && (self.colons(i + 1) || self.whole(i)) =>
                {
                    let inline = modules.iter().map(|(name, _)| name.clone());
                    let here: Vec<_> = self.module.iter().cloned().chain(inline).collect();
                    let start = match root {
                        "crate" => Vec::new(),
                        "self" => here,
                        _ => here[..here.len().saturating_sub(1)].to_vec(),
                    };
                    self.tree(i + 1, start, &mut paths);
                }
                _ => {}
            }
        }
        paths
    }

    fn colons(&self, i: usize) -> bool {
        self.tokens.get(i..i + 2).is_some_and(|t| t.iter().all(|t| t.text == ":"))
    }

    /// `use crate as name`: the crate as a whole.
    fn whole(&self, i: usize) -> bool {
        self.tokens[i].text == "crate" && self.tokens.get(i + 1).is_some_and(|t| t.text == "as")
    }

    /// Reads what follows `prefix` from token `i` on; returns the token after it.
    fn tree(&self, mut i: usize, mut prefix: Vec<String>, paths: &mut Vec<Path>) -> usize {
        let Token { line, test, .. } = self.tokens[i - 1];
        while self.colons(i) {
            let Some(next) = self.tokens.get(i + 2) else { break };
            match next.text.as_str() {
                "{" => {
                    i += 3;
                    while let Some(token) = self.tokens.get(i) {
                        match token.text.as_str() {
                            "}" => return i + 1,
                            "," => i += 1,
                            "self" => {
                                let line = token.line;
                                paths.push(Path { segments: prefix.clone(), line, test });
                                i += 1;
                            }
                            word if is_word(word) => {
                                let mut inner = prefix.clone();
                                inner.push(word.to_string());
                                i = self.tree(i + 1, inner, paths);
                                if self.tokens.get(i).is_some_and(|t| t.text == "as") {
                                    i += 2;
                                }
                            }
                            _ => {
                                let line = token.line;
                                paths.push(Path { segments: prefix.clone(), line, test });
                                i += 1;
                            }
                        }
                    }
                    return i;
                }
                "super" => {
                    prefix.pop();
                    i += 3;
                }
                word if is_word(word) => {
                    prefix.push(word.to_string());
                    i += 3;
                    // A macro of the crate has no room.
                    if self.tokens.get(i).is_some_and(|t| t.text == "!") && prefix.len() == 1 {
                        return i;
                    }
                }
                _ => {
                    i += 3;
                    break;
                }
            }
        }
        paths.push(Path { segments: prefix, line, test });
        i
    }
}

fn module(file: &str) -> Vec<String> {
    // Of a package: `src/…` or `crates/NAME/src/…`.
    let file = file.split_once("src/").map_or(file, |(_, within)| within);
    let file = file.strip_suffix(".rs").unwrap_or(file);
    let file = file.strip_suffix("/mod").unwrap_or(file);
    match file {
        "lib" | "main" => Vec::new(),
        _ => file.split('/').map(String::from).collect(),
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

/// Splits a file into tokens.
fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = skip(rest).unwrap_or_else(|| {
            let (length, kind) = match word(rest) {
                0 => literal(rest).map_or((first.len_utf8(), None), |n| (n, Some("\""))),
                n if literal(rest).is_some() => (literal(rest).unwrap_or(n), Some("\"")),
                n => (n, None),
            };
            let own = rest[..length].strip_prefix("r#").unwrap_or(&rest[..length]);
            let text = kind.unwrap_or(own).to_string();
            let literal = kind.map_or("", |_| own).to_string();
            found.push(Token { text, literal, line, test: false });
            length
        });
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// The length of white space or a comment at the beginning.
fn skip(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        let (mut depth, mut i) = (0, 0);
        while i < text.len() {
            if text[i..].starts_with("/*") {
                (depth, i) = (depth + 1, i + 2);
            } else if text[i..].starts_with("*/") {
                (depth, i) = (depth - 1, i + 2);
                if depth == 0 {
                    return Some(i);
                }
            } else {
                i += text[i..].chars().next().map_or(1, char::len_utf8);
            }
        }
        return Some(text.len());
    }
    let space = text.len() - text.trim_start().len();
    (space > 0).then_some(space)
}

/// The length of the word or number at the beginning.
fn word(text: &str) -> usize {
    let raw = if text.starts_with("r#") && is_word(&text[2..]) { 2 } else { 0 };
    let end = text[raw..].find(|c: char| c != '_' && !c.is_alphanumeric());
    match end.unwrap_or(text.len() - raw) {
        0 => 0,
        n => raw + n,
    }
}

/// The length of the string, character or lifetime at the beginning.
fn literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|p| {
        let after = text.strip_prefix(p).unwrap_or("");
        let hashes = after.trim_start_matches('#');
        let raw = p.ends_with('r') && hashes.starts_with('"');
        raw || after.starts_with('"') || (after.starts_with('\'') && matches!(*p, "b" | ""))
    })?;
    let body = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let start = prefix.len() + hashes + 1;
        return Some(text[start..].find(&end).map_or(text.len(), |n| start + n + end.len()));
    }
    let quote = body.chars().next()?;
    let mut chars = body.char_indices().skip(1);
    if quote == '\'' && !is_character(body) {
        // A lifetime: the quote and its name.
        return Some(prefix.len() + 1 + word(&body[1..]));
    }
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            c if c == quote => return Some(prefix.len() + at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// Tells 'a' from the lifetime 'a.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    chars.next() == Some('\\') || chars.next() == Some('\'')
}

/// Marks what stands under `#[cfg(test)]`, `#[test]` or `#![cfg(test)]`.
fn mark_tests(tokens: &mut [Token]) {
    let mut i = 0;
    while i < tokens.len() {
        if tokens[i].text != "#" {
            i += 1;
            continue;
        }
        let inner = tokens.get(i + 1).is_some_and(|t| t.text == "!");
        let start = i;
        let (end, for_tests) = attribute(tokens, i + usize::from(inner));
        i = end;
        if !for_tests {
            continue;
        }
        if inner {
            tokens.iter_mut().for_each(|t| t.test = true);
            return;
        }
        let mut depth = 0;
        while i < tokens.len() {
            let text = tokens[i].text.as_str();
            match text {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            i += 1;
            if depth == 0 && matches!(text, "}" | ";") {
                break;
            }
        }
        tokens[start..i].iter_mut().for_each(|t| t.test = true);
    }
}

/// Reads the attribute whose `#` (or `!`) is at `i`: the token after it, and whether it is for tests.
fn attribute(tokens: &[Token], i: usize) -> (usize, bool) {
    let (mut depth, mut words, mut end) = (0, Vec::new(), i + 1);
    while let Some(token) = tokens.get(end) {
        end += 1;
        match token.text.as_str() {
            "[" => depth += 1,
            "]" => depth -= 1,
            word => words.push(word),
        }
        if depth == 0 {
            break;
        }
    }
    let for_tests = words == ["test"]
        || (words.first() == Some(&"cfg") && words.contains(&"test") && !words.contains(&"not"));
    (end, for_tests)
}
