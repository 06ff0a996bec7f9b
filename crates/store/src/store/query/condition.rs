//! Conditions as people write them: `age >= 60 and (name ~ "Bob" or not email)`.
//!
//! A [`Condition`] is read once, and means the same for documents and for MARC records; only what a path
//! names differs. Its meaning is a [`Filter`](super::Filter), made in `compile.rs`.
//!
//! ```text
//! condition = all ("or" all)*
//! all       = one ("and" one)*
//! one       = "not" one | "!" one | "(" condition ")" | test
//! test      = part [sign value | ["not"] "in" "(" value ("," value)* ")"]
//! part      = path | "count(" path ")" | "len(" path ")"
//! sign      = "=" "==" "!=" "<" "<=" ">" ">=" "~" "!~" "^=" "!^="
//! value     = word | "text" [i] | 'text' [i] | "/" pattern "/" [i] | "time(" RFC 3339 or a day ")"
//! ```

use std::{fmt, str::FromStr};

use super::{Filter, json};
use crate::{Error, Result, record::Time};

/// A condition on a record, as it is written: `age>=90`, `650a~Scales and not 880`, `{"age": {"$gte": 90}}`.
///
/// | written | holds where |
/// |---|---|
/// | `email` | the field is there |
/// | `!email`, `not email` | it is not |
/// | `age>=60` | also `=` `!=` `<` `<=` `>`; a number compares with numbers, a text with texts |
/// | `status in (open, "on hold")` | it is one of these; also `not in` |
/// | `name~Bob`, `name!~Bob` | the text contains this, or does not |
/// | `name^=Bo`, `name!^=Bo` | the text begins with this, or does not |
/// | `name~/^B.b$/` | the text matches the regular expression |
/// | `name="bob"i` | in capital and small letters alike; also with `~` `^=` `in` and patterns |
/// | `count(tags)>2`, `count(650)>3` | so many are there |
/// | `len(name)>40` | the text has so many characters |
/// | `at>=time(2009-02-13T23:31:30Z)` | a time, of RFC 3339, or a day; compares with times, and with texts of times where a store or format keeps times as texts |
/// | `a and b`, `a or b`, `not a`, `( )` | `and` binds closer than `or` |
///
/// A value of one word needs no quotes; `90`, `true` and `null` are a number, a boolean and null. Texts in `"` have
/// the escapes of JSON; in `'` only `''` stands for `'`.
///
/// A path of documents is names with dots, `address.city`; `tags[]` is every element of the list `tags`, and a test
/// holds if it holds for any of them. `_key` is the record's key. A name with other characters than letters, digits,
/// `_` and `-` is quoted: `"first name"`. Texts are compared as they are, by their bytes. Paths of MARC records are those of [`marc::Path`](crate::marc::Path); a test holds if it holds
/// for any of the parts that the path names. Their text is compared decoded from MARC-8 and in Unicode form C.
///
/// In MARC records `=` and `in` compare texts, so that `001=123` is not `000123`; `<` and `>` compare numbers where
/// both are.
///
/// `!=`, `!~` and `not in` are true exactly where `=`, `~` and `in` are false, so also where nothing is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub(super) text: String,
    pub(super) root: Node,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Test(Clause),
    /// In the style of document databases, which has no places to point at.
    Json(Filter),
}

impl Node {
    fn has_patterns(&self) -> bool {
        match self {
            Node::All(nodes) | Node::Any(nodes) => nodes.iter().any(Node::has_patterns),
            Node::Not(node) => node.has_patterns(),
            Node::Test(clause) => {
                clause.values.iter().any(|value| matches!(value.what, Word::Pattern { .. }))
            }
            Node::Json(filter) => filter.has_patterns(),
        }
    }

    /// Whether a path begins as those of MARC records do, so that its error is most likely theirs.
    fn names_a_tag(&self) -> bool {
        match self {
            Node::All(nodes) | Node::Any(nodes) => nodes.iter().any(Node::names_a_tag),
            Node::Not(node) => node.names_a_tag(),
            Node::Test(clause) => {
                let tag = clause.path.as_bytes().first_chunk::<3>();
                tag.is_some_and(|tag| tag.iter().all(u8::is_ascii_digit))
            }
            Node::Json(_) => false,
        }
    }
}

/// One test, as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clause {
    pub of: Of,
    /// The path, as it stands in the text from byte `at` on.
    pub path: String,
    pub at: usize,
    pub sign: Sign,
    pub values: Vec<Literal>,
}

/// What of a part is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Value,
    Count,
    Length,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    There,
    Equal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
    Contains,
    Begins,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literal {
    pub what: Word,
    /// Where it begins in the text, in bytes.
    pub at: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// Without quotes: a number, true, false, null or a text.
    Plain(String),
    Quoted {
        text: String,
        any_case: bool,
    },
    Pattern {
        text: String,
        any_case: bool,
    },
    Time(Time),
}

/// Signs, each before those it begins with, and whether they negate.
const SIGNS: [(&str, Sign, bool); 11] = [
    ("!^=", Sign::Begins, true),
    ("!=", Sign::Equal, true),
    ("!~", Sign::Contains, true),
    ("^=", Sign::Begins, false),
    ("<=", Sign::AtMost, false),
    (">=", Sign::AtLeast, false),
    ("==", Sign::Equal, false),
    ("=", Sign::Equal, false),
    ("<", Sign::Less, false),
    (">", Sign::Greater, false),
    ("~", Sign::Contains, false),
];

/// How deep parentheses and negations may nest.
const DEPTH: usize = 50;

/// What ends a path or a word without quotes, beside white space.
const ENDS: &str = "=!<>~^(),\"'";

/// What is wrong, and from which byte on.
pub(super) struct Fault {
    pub at: usize,
    pub why: String,
}

impl Fault {
    fn new<T>(at: usize, why: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { at, why: why.into() })
    }
}

impl Condition {
    /// Whether it has a regular expression in it.
    pub fn has_patterns(&self) -> bool {
        self.root.has_patterns()
    }

    /// The error of a fault, with a caret under its place.
    pub(super) fn error(text: &str, fault: &Fault) -> Error {
        let shown = |text: &str| -> String {
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
        };
        // Of a long condition, what stands around the place.
        const AROUND: usize = 200;
        let (before, after) = text.split_at_checked(fault.at).unwrap_or(("", text));
        let from = before.char_indices().rev().nth(AROUND).map_or(0, |(at, _)| at);
        let until = after.char_indices().nth(AROUND).map_or(after.len(), |(at, _)| at);
        let mark = |is_cut: bool| if is_cut { "…" } else { "" };
        let before = format!("{}{}", mark(from > 0), shown(&before[from..]));
        let after = format!("{}{}", shown(&after[..until]), mark(until < after.len()));
        let caret = " ".repeat(before.chars().count());
        Error::invalid(format!("{}\n  {before}{after}\n  {caret}^", fault.why))
    }
}

impl FromStr for Condition {
    type Err = Error;
    fn from_str(text: &str) -> Result<Condition> {
        let text = text.trim();
        if text.starts_with('{') {
            let root = Node::Json(json::parse(text)?);
            return Ok(Condition { text: text.to_owned(), root });
        }
        let root = Parser { text, at: 0, depth: 0 }
            .whole()
            .map_err(|fault| Condition::error(text, &fault))?;
        let condition = Condition { text: text.to_owned(), root };
        // What means nothing, whatever the records are, is found now.
        match (condition.filter(), condition.marc_filter()) {
            (Err(_), Err(e)) if condition.root.names_a_tag() => Err(e),
            (Err(e), Err(_)) => Err(e),
            _ => Ok(condition),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes `text` if it comes next.
    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Takes a word of the language, in small or capital letters, if it comes next and ends there.
    fn keyword(&mut self, word: &str) -> bool {
        self.space();
        let rest = self.rest();
        let Some(found) = rest.get(..word.len()) else { return false };
        let ends = |c: char| c.is_whitespace() || matches!(c, '(' | '"' | '\'' | '!');
        let is = (found == word || found == word.to_ascii_uppercase())
            && rest[word.len()..].chars().next().is_none_or(ends);
        self.at += if is { word.len() } else { 0 };
        is
    }

    fn whole(&mut self) -> Result<Node, Fault> {
        self.space();
        if self.peek().is_none() {
            return Fault::new(0, "the condition is empty; write for example age>=90");
        }
        let root = self.any()?;
        self.space();
        match self.peek() {
            None => Ok(root),
            Some(')') => Fault::new(self.at, "no ( belongs to this )"),
            Some(_) => Fault::new(
                self.at,
                "expected `and`, `or` or the end; a value with spaces or signs needs quotes: name=\"Bob Smith\"",
            ),
        }
    }

    fn any(&mut self) -> Result<Node, Fault> {
        let mut any = vec![self.all()?];
        while self.keyword("or") {
            any.push(self.all()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Node::Any(any) })
    }

    fn all(&mut self) -> Result<Node, Fault> {
        let mut all = vec![self.one()?];
        while self.keyword("and") {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Node::All(all) })
    }

    fn deeper<T>(&mut self, inner: fn(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth == DEPTH {
            return Fault::new(self.at, format!("more than {DEPTH} levels of ( ), ! and not"));
        }
        self.depth += 1;
        let found = inner(self);
        self.depth -= 1;
        found
    }

    fn one(&mut self) -> Result<Node, Fault> {
        if self.keyword("not") || self.eat("!") {
            return Ok(Node::Not(Box::new(self.deeper(Self::one)?)));
        }
        let from = self.at;
        if self.eat("(") {
            let inner = self.deeper(Self::any)?;
            self.space();
            if !self.eat(")") {
                return match self.peek() {
                    None => Fault::new(from, "no ) belongs to this ("),
                    Some(_) => Fault::new(
                        self.at,
                        "expected `and`, `or` or ); a value with spaces or signs needs quotes: name=\"Bob Smith\"",
                    ),
                };
            }
            return Ok(inner);
        }
        self.test()
    }

    fn test(&mut self) -> Result<Node, Fault> {
        let mut of = Of::Value;
        for (word, counted) in [("count(", Of::Count), ("len(", Of::Length)] {
            if self.eat(word) {
                of = counted;
                self.space();
            }
        }
        let at = self.at;
        let path = self.path()?.to_owned();
        if of != Of::Value {
            self.space();
            if !self.eat(")") {
                return Fault::new(self.at, "expected ) after the path");
            }
        }
        self.space();
        let from = self.at;
        let mut negated = false;
        let mut sign = Sign::There;
        if let Some((text, found, not)) = SIGNS.iter().find(|(text, ..)| self.eat(text)) {
            if *text == "=" && self.peek() == Some('~') {
                return Fault::new(
                    from,
                    "no sign =~; name~Bob is contains, name~/B.b/ matches a pattern",
                );
            }
            (sign, negated) = (*found, *not);
        } else if self.keyword("in") {
            sign = Sign::In;
        } else if self.keyword("not") {
            if !self.keyword("in") {
                return Fault::new(from, "expected `not in`");
            }
            (sign, negated) = (Sign::In, true);
        }
        let values = match sign {
            Sign::There => Vec::new(),
            Sign::In => self.list()?,
            sign => vec![self.value(sign == Sign::Contains)?],
        };
        if of != Of::Value && sign == Sign::There {
            return Fault::new(from, "expected a comparison, such as count(650)>3 or len(008)!=40");
        }
        let test = Node::Test(Clause { of, path, at, sign, values });
        Ok(if negated { Node::Not(Box::new(test)) } else { test })
    }

    /// A path as it stands, quotes and escapes included.
    fn path(&mut self) -> Result<&'t str, Fault> {
        let from = self.at;
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    self.quoted()?;
                }
                '\\' => {
                    let escaped = self.rest().chars().nth(1);
                    let Some(escaped) = escaped else {
                        return Fault::new(self.at, "nothing follows the \\");
                    };
                    self.at += 1 + escaped.len_utf8();
                }
                c if c.is_whitespace() || ENDS.contains(c) => break,
                c => self.at += c.len_utf8(),
            }
        }
        match &self.text[from..self.at] {
            "" => match self.peek() {
                None => Fault::new(from, "expected a field; the condition ends here"),
                Some(_) => {
                    Fault::new(from, "expected a field, such as age, 245a or \"first name\"")
                }
            },
            path => Ok(path),
        }
    }

    fn list(&mut self) -> Result<Vec<Literal>, Fault> {
        self.space();
        if !self.eat("(") {
            return Fault::new(self.at, "expected ( and values after `in`: status in (open, held)");
        }
        let mut values = vec![self.value(false)?];
        loop {
            self.space();
            if self.eat(")") {
                return Ok(values);
            }
            if !self.eat(",") {
                return Fault::new(self.at, "expected , or ); a value with spaces needs quotes");
            }
            values.push(self.value(false)?);
        }
    }

    /// A value; after `~` it may be a pattern.
    fn value(&mut self, pattern: bool) -> Result<Literal, Fault> {
        self.space();
        let at = self.at;
        let what = match self.peek() {
            Some('"') => {
                let text = self.quoted()?;
                Word::Quoted { text, any_case: self.any_case() }
            }
            Some('\'') => {
                let text = self.single_quoted()?;
                Word::Quoted { text, any_case: self.any_case() }
            }
            Some('/') if pattern => {
                let text = self.pattern()?;
                Word::Pattern { text, any_case: self.any_case() }
            }
            _ if self.eat("time(") => Word::Time(self.time()?),
            _ => {
                let end = |c: char| c.is_whitespace() || ENDS.contains(c);
                let word = self.rest().split(end).next().unwrap_or_default();
                self.at += word.len();
                if word.is_empty() {
                    return Fault::new(at, "expected a value; the empty text is written \"\"");
                }
                if word.starts_with(['“', '”', '„', '‘', '’', '«', '»']) {
                    return Fault::new(at, "the quotes of the language are \" and '");
                }
                if let Some(c) = self.peek().filter(|c| !c.is_whitespace() && !",)".contains(*c)) {
                    return Fault::new(self.at, format!("a value with {c} needs quotes"));
                }
                Word::Plain(word.to_owned())
            }
        };
        Ok(Literal { what, at })
    }

    /// Takes the `i` behind quotes, if it is there and ends there.
    fn any_case(&mut self) -> bool {
        let rest = self.rest();
        let ends = |c: char| c.is_whitespace() || ",)".contains(c);
        let is = rest.starts_with('i') && rest[1..].chars().next().is_none_or(ends);
        self.at += usize::from(is);
        is
    }

    /// A text in `"`, with the escapes of JSON.
    fn quoted(&mut self) -> Result<String, Fault> {
        let from = self.at;
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                '\\' => {
                    chars.next();
                }
                '"' => {
                    self.at += i + 1;
                    let text = &self.text[from..self.at];
                    // Tabs and line ends may stand as they are.
                    let escaped = |c: char| match c.is_control() {
                        true => format!("\\u{:04x}", u32::from(c)),
                        false => c.to_string(),
                    };
                    let text: String = text.chars().map(escaped).collect();
                    return serde_json::from_str(&text).or_else(|_| {
                        Fault::new(from, "an escape that JSON does not have; a \\ is written \\\\")
                    });
                }
                _ => {}
            }
        }
        Fault::new(from, "no \" ends this text")
    }

    /// A text in `'`, in which `''` is one.
    fn single_quoted(&mut self) -> Result<String, Fault> {
        let from = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            let Some(end) = self.rest().find('\'') else {
                return Fault::new(from, "no ' ends this text");
            };
            text += &self.rest()[..end];
            self.at += end + 1;
            if !self.eat("'") {
                return Ok(text);
            }
            text.push('\'');
        }
    }

    /// A pattern in `/`, in which `\/` is one.
    fn pattern(&mut self) -> Result<String, Fault> {
        let from = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                '/' => {
                    self.at += i + 1;
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, '/')) => text.push('/'),
                    Some((_, other)) => text.extend(['\\', other]),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Fault::new(from, "no / ends this pattern")
    }

    /// A time, up to its `)`.
    fn time(&mut self) -> Result<Time, Fault> {
        let from = self.at;
        let Some(end) = self.rest().find(')') else {
            return Fault::new(from, "no ) ends this time");
        };
        let text = self.rest()[..end].trim();
        // Quotes are not wanted here, and harmless.
        let quoted = |sign| text.strip_prefix(sign).and_then(|text| text.strip_suffix(sign));
        let text = quoted('"').or_else(|| quoted('\'')).unwrap_or(text);
        self.at += end + 1;
        let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
        whole.parse().or_else(|_| {
            Fault::new(from, "not an RFC 3339 time, such as 2009-02-13T23:31:30Z or 2009-02-13")
        })
    }
}

#[cfg(test)]
mod tests;
