//! What a [`Condition`] means, as a [`Filter`]: for documents, for documents whose values are all texts, and for
//! MARC records.

use std::{str::FromStr, sync::Arc};

use unicode_normalization::char::is_combining_mark;

use super::{
    Filter, Path, Test, check_test,
    condition::{Clause, Condition, Fault, Literal, Node, Of, Sign, Word},
    look::{Check, Compared, Fold, Look, Part, Pattern, Spelled, Step, TextTest, number_of},
};
use crate::{Error, Result, format::Format, marc, record::Value};

/// What the records are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Records {
    Documents,
    /// Documents of which every value is a text, as those of a CSV file.
    Texts,
    Marc,
}

impl FromStr for Filter {
    type Err = Error;

    /// The meaning of a [`Condition`] for documents.
    fn from_str(text: &str) -> Result<Filter> {
        text.parse::<Condition>()?.filter()
    }
}

impl Condition {
    /// What it means for documents.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where a path names no field of documents, or a comparison makes no
    /// sense.
    pub fn filter(&self) -> Result<Filter> {
        self.compiled(Records::Documents)
    }

    /// What it means for documents whose values are all texts, as those of a CSV file: a number compares with
    /// texts that are numbers.
    ///
    /// # Errors
    /// As [`filter`](Condition::filter).
    pub fn text_filter(&self) -> Result<Filter> {
        self.compiled(Records::Texts)
    }

    /// What it means for MARC records.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where a path names no part of a MARC record.
    pub fn marc_filter(&self) -> Result<Filter> {
        self.compiled(Records::Marc)
    }

    fn compiled(&self, records: Records) -> Result<Filter> {
        compiled(&self.root, records).map_err(|fault| Condition::error(&self.text, &fault))
    }
}

fn compiled(node: &Node, records: Records) -> Result<Filter, Fault> {
    let each = |nodes: &[Node]| -> Result<Vec<Filter>, Fault> {
        nodes.iter().map(|node| compiled(node, records)).collect()
    };
    Ok(match node {
        Node::All(nodes) => Filter::And(each(nodes)?),
        Node::Any(nodes) => Filter::Or(each(nodes)?),
        Node::Not(node) => match compiled(node, records)? {
            // What stores have a word for.
            Filter::Field(path, Test::Exists(there)) => Filter::Field(path, Test::Exists(!there)),
            Filter::Field(path, Test::Eq(value)) => Filter::Field(path, Test::Ne(value)),
            filter => Filter::Not(Box::new(filter)),
        },
        Node::Test(clause) => test(clause, records)?,
        Node::Json(filter) if records != Records::Marc => filter.clone(),
        Node::Json(_) => {
            let why = "conditions in JSON are for documents; for MARC records write 245a~Scales";
            return Err(Fault { at: 0, why: why.into() });
        }
    })
}

fn test(clause: &Clause, records: Records) -> Result<Filter, Fault> {
    let steps = match (records, steps(clause)) {
        (Records::Marc, Ok(steps)) if steps == [Step::Name(Path::KEY.into())] => steps,
        (Records::Marc, _) => {
            let path = marc::Path::parse(&plain(&clause.path)).map_err(|wrong| Fault {
                at: clause.at + wrong.at,
                why: format!("not a path into a MARC record: {}", wrong.why),
            })?;
            return looked(clause, Part::Marc(path), Records::Texts);
        }
        (_, steps) => steps?,
    };
    let names: Option<Vec<&str>> = steps.iter().map(Step::name).collect();
    let (Some(names), Of::Value) = (names, clause.of) else {
        return looked(clause, Part::Document(steps), records);
    };
    let path = Path::new(names);
    let any_case = |l: &Literal| matches!(l.what, Word::Quoted { any_case: true, .. });
    let number = |l: &Literal| matches!(&l.what, Word::Plain(word) if number_of(word).is_some());
    let loose = records == Records::Texts && !path.is_key() && clause.values.iter().any(number);
    let stays = clause.sign == Sign::Contains
        || clause.values.iter().any(any_case)
        || loose && clause.sign != Sign::Begins;
    if stays {
        return looked(clause, Part::Document(steps), records);
    }
    // Keys are texts, whatever they look like.
    let texts = records == Records::Texts || path.is_key();
    let typed = |literal: &Literal| match texts {
        true => Ok(Value::from(text(literal)?)),
        false => value(literal),
    };
    let test = match (clause.sign, &clause.values[..]) {
        (Sign::There, _) => Test::Exists(true),
        (Sign::In, values) => Test::In(values.iter().map(typed).collect::<Result<_, _>>()?),
        (Sign::Begins, [start]) => Test::Prefix(text(start)?),
        (sign, [with]) => plain_test(sign, typed(with)?),
        _ => unreachable!("a comparison has one value"),
    };
    let at = clause.values.first().map_or(clause.at, |literal| literal.at);
    check_test(&path, &test).map_err(|e| Fault { at, why: e.context().to_owned() })?;
    Ok(Filter::Field(path, test))
}

fn plain_test(sign: Sign, value: Value) -> Test {
    match sign {
        Sign::Less => Test::Lt(value),
        Sign::AtMost => Test::Le(value),
        Sign::Greater => Test::Gt(value),
        Sign::AtLeast => Test::Ge(value),
        _ => Test::Eq(value),
    }
}

/// A test for which a record has to be looked at.
fn looked(clause: &Clause, part: Part, records: Records) -> Result<Filter, Fault> {
    if clause.of != Of::Value {
        let number = |literal: &Literal| match value(literal)? {
            number @ Value::Int(0..) => Ok(number),
            _ => {
                let why = "a count or a length is a whole number, 0 or more";
                Err(Fault { at: literal.at, why: why.into() })
            }
        };
        let test = match (clause.sign, &clause.values[..]) {
            (Sign::In, values) => Test::In(values.iter().map(number).collect::<Result<_, _>>()?),
            (Sign::Contains | Sign::Begins, [with]) => {
                let why = "a count or length is a number; compare it with = != < <= > >= or in";
                return Err(Fault { at: with.at, why: why.into() });
            }
            (sign, [with]) => plain_test(sign, number(with)?),
            _ => unreachable!("a count or length is compared"),
        };
        let check = match clause.of {
            Of::Count => Check::Count(test),
            _ => Check::Length(test),
        };
        return Ok(look(clause, part, check, ""));
    }
    if clause.sign == Sign::There {
        return Ok(look(clause, part, Check::There, ""));
    }
    let marc = matches!(part, Part::Marc(_));
    let spelled = if marc { Spelled::Composed } else { Spelled::AsItIs };
    let fold = |literal: &Literal| fold(literal, spelled);
    let mut any = Vec::with_capacity(clause.values.len());
    for literal in &clause.values {
        let check = match (&literal.what, clause.sign) {
            (Word::Pattern { text, any_case }, _) => {
                let pattern =
                    Pattern::new(text, *any_case).map_err(|why| Fault { at: literal.at, why })?;
                Check::Text(TextTest::Matches(pattern))
            }
            (_, Sign::Contains) => Check::Text(TextTest::Contains(fold(literal)?)),
            (_, Sign::Begins) => Check::Text(TextTest::Begins(fold(literal)?)),
            (Word::Quoted { any_case: true, .. }, Sign::Equal | Sign::In) => {
                Check::Text(TextTest::Equals(fold(literal)?))
            }
            (Word::Quoted { any_case: true, .. }, _) => {
                let why = "only = != ~ !~ ^= !^= and in can ignore case";
                return Err(Fault { at: literal.at, why: why.into() });
            }
            (word, sign) if records == Records::Texts => {
                // A control number is a text: 001=123 is not 000123.
                let as_number = !(marc && matches!(sign, Sign::Equal | Sign::In));
                let compared = match word {
                    Word::Plain(word) if marc && word == "null" => {
                        let why = "MARC records have no null; !245a finds those without a 245a";
                        return Err(Fault { at: literal.at, why: why.into() });
                    }
                    Word::Plain(word) => match number_of(word).filter(|_| as_number) {
                        Some(number) => Compared::Number(number),
                        None => Compared::Text(word.clone()),
                    },
                    _ => Compared::Text(text(literal)?),
                };
                Check::Text(TextTest::Compare(compared.by(sign, spelled)))
            }
            (_, sign) => {
                let test = plain_test(sign, value(literal)?);
                check_test(&Path::new([plain(&clause.path)]), &test)
                    .map_err(|e| Fault { at: literal.at, why: e.context().to_owned() })?;
                Check::Value(test)
            }
        };
        any.push(look(clause, part.clone(), check, &shown(literal)));
    }
    Ok(if any.len() == 1 { any.remove(0) } else { Filter::Or(any) })
}

fn look(clause: &Clause, part: Part, check: Check, value: &str) -> Filter {
    let path = match clause.of {
        Of::Value => clause.path.clone(),
        Of::Count => format!("count({})", clause.path),
        Of::Length => format!("len({})", clause.path),
    };
    let sign = match clause.sign {
        Sign::Contains => "~",
        Sign::Begins => "^=",
        Sign::Less => "<",
        Sign::AtMost => "<=",
        Sign::Greater => ">",
        Sign::AtLeast => ">=",
        Sign::Equal | Sign::In => "=",
        Sign::There => "exists",
    };
    let shown = match &check {
        Check::Count(test) | Check::Length(test) => format!("{path} {test}"),
        _ => format!("{path} {sign} {value}").trim_end().to_owned(),
    };
    Filter::Look(Arc::new(Look { part, check, shown }))
}

fn shown(literal: &Literal) -> String {
    let i = |any_case: bool| if any_case { "i" } else { "" };
    match &literal.what {
        Word::Plain(word) => word.clone(),
        Word::Quoted { text, any_case } => format!("{text:?}{}", i(*any_case)),
        Word::Pattern { text, any_case } => format!("/{text}/{}", i(*any_case)),
        Word::Time(time) => time.to_string(),
    }
}

/// The value that a literal stands for, among documents.
fn value(literal: &Literal) -> Result<Value, Fault> {
    Ok(match &literal.what {
        Word::Plain(word) => match Format::Json.decode::<Value>(word.as_bytes()) {
            Ok(Value::List(_) | Value::Map(_)) => {
                let why = "compare with single values; `in (1, 2)` is one of several";
                return Err(Fault { at: literal.at, why: why.into() });
            }
            Ok(value) => value,
            Err(_) => match almost(word) {
                Some(meant) => {
                    let why = format!(
                        "{word} is not a JSON value; write {meant}, or \"{word}\" for the text"
                    );
                    return Err(Fault { at: literal.at, why });
                }
                None => Value::from(word.as_str()),
            },
        },
        Word::Time(time) => Value::Time(*time),
        _ => Value::from(text(literal)?),
    })
}

/// What somebody who writes this most likely means: `TRUE`, `+2`, `01`, `2.`, `.5`.
fn almost(word: &str) -> Option<String> {
    let known =
        ["true", "false", "null"].into_iter().find(|known| word.eq_ignore_ascii_case(known));
    if let Some(known) = known {
        return Some(known.to_owned());
    }
    let begins = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let number = word.parse::<f64>().ok().filter(|number| begins && number.is_finite())?;
    let digits = word.trim_start_matches('+');
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let digits = digits.trim_start_matches('0').trim_end_matches('.');
    let digits = if digits.starts_with(|c: char| c.is_ascii_digit()) {
        digits.to_owned()
    } else {
        format!("0{digits}")
    };
    let meant = format!("{sign}{digits}");
    Some(if meant.parse() == Ok(number) { meant } else { number.to_string() })
}

/// The text that a literal is.
fn text(literal: &Literal) -> Result<String, Fault> {
    match &literal.what {
        Word::Plain(text) | Word::Quoted { text, .. } => Ok(text.clone()),
        Word::Time(time) => Ok(time.to_string()),
        Word::Pattern { .. } => {
            Err(Fault { at: literal.at, why: "only ~ and !~ take a pattern".into() })
        }
    }
}

fn fold(literal: &Literal, spelled: Spelled) -> Result<Fold, Fault> {
    let any_case = matches!(literal.what, Word::Quoted { any_case: true, .. });
    Ok(Fold::new(&text(literal)?, any_case, spelled))
}

/// The path without its escapes and quotes, for those whose dots mean nothing.
fn plain(path: &str) -> String {
    let mut plain = String::new();
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.extend(chars.next()),
            '"' => {}
            c => plain.push(c),
        }
    }
    plain
}

/// The steps of a path of documents.
fn steps(clause: &Clause) -> Result<Vec<Step>, Fault> {
    let fault = |at: usize, why: &str| Fault { at: clause.at + at, why: why.into() };
    let (path, mut at) = (clause.path.as_str(), 0);
    let mut steps = Vec::new();
    loop {
        let (mut name, mut quoted) = (String::new(), false);
        let from = at;
        while let Some(c) = path[at..].chars().next() {
            match c {
                '.' | '[' => break,
                ']' => return Err(fault(at, "] in a name needs quotes: \"a]\"")),
                '\\' => {
                    let escaped = path[at + 1..].chars().next().unwrap_or_default();
                    name.push(escaped);
                    at += 1 + escaped.len_utf8();
                }
                '"' => {
                    let length = quoted_length(&path[at..]);
                    let text: String = serde_json::from_str(&path[at..at + length])
                        .map_err(|_| fault(at, "an escape that JSON does not have"))?;
                    (name, quoted) = (name + &text, true);
                    at += length;
                }
                c if !is_plain(c) => return Err(fault(at, &in_name(c))),
                c => {
                    name.push(c);
                    at += c.len_utf8();
                }
            }
        }
        if name.is_empty() && !quoted {
            return Err(fault(from, "a name is missing here; a dot in a name is written \\."));
        }
        if name.is_empty() {
            return Err(fault(from, "a name that is empty"));
        }
        steps.push(Step::Name(name));
        while path[at..].starts_with('[') {
            if !path[at..].starts_with("[]") {
                return Err(fault(
                    at,
                    "[] is any element of a list, and there is no index; [ in a name needs quotes: \"a[\"",
                ));
            }
            steps.push(Step::Each);
            at += 2;
        }
        match path[at..].chars().next() {
            None => return Ok(steps),
            Some('.') => at += 1,
            Some(_) => return Err(fault(at, "expected a dot")),
        }
    }
}

/// Whether a name may have this character without quotes: letters and digits of any script, and what stands with
/// them. Anything else is most likely a sign that the language does not have.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_-".contains(c) || is_combining_mark(c)
}

fn in_name(c: char) -> String {
    let meant = match c {
        '≥' => "write >=; ",
        '≤' => "write <=; ",
        '≠' => "write !=; ",
        '＝' | ':' => "write = for equal; ",
        '&' => "write and; ",
        '|' => "write or; ",
        _ => "",
    };
    format!("{meant}{c} in a name needs quotes: \"a{c}b\"")
}

/// How many bytes a text in `"` at the start of `text` has, its quotes included.
fn quoted_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}
