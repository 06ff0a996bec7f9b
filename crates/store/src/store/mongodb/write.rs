//! Commands that write: many statements each, within what a server takes.
//!
//! The client's `insert_many` copies every document twice on its way, and its `bulk_write` needs
//! MongoDB 8; the commands behind them, `insert` and `update`, are understood by every server, and
//! their answers say which statement failed.

use bson::{
    Bson, Document, RawDocumentBuf, doc,
    raw::{RawArrayBuf, cstr},
};
use mongodb::{Collection, options::WriteConcern};

use super::error::{DUPLICATE, of_code, ours, said};
use crate::{
    Error, ErrorKind, Result,
    store::{Key, counts},
};

/// How many statements a command has at most. Servers take 100,000 or, FerretDB, 25,000.
const STATEMENTS: usize = 10_000;
/// How many bytes of documents, unless it is one alone: a command is a document itself, of 16 MiB
/// and 16 KiB for what is around them.
const BYTES: usize = 12 << 20;

/// What a command does with its documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    /// Insert them; the keys must be new. In order, the first that fails is the last that is tried.
    Insert { ordered: bool },
    /// Put each in the place of the one with its key, or among the others.
    Replace,
}

/// Writes documents with their keys.
pub(super) async fn write(
    collection: &Collection<RawDocumentBuf>,
    write: Write,
    concern: Option<&WriteConcern>,
    documents: &[(&Key, RawDocumentBuf)],
) -> Result<()> {
    let database = collection.client().database(&collection.namespace().db);
    let mut taken: Option<Error> = None;
    for batch in batches(documents) {
        let command = command(collection.name(), write, concern, batch);
        let answer = database.run_raw_command(command).await.map_err(ours)?;
        match (outcome(&answer, batch), write) {
            (Ok(()), _) => {}
            // The rest is tried too, as the server does within a command.
            (Err(e), Write::Insert { ordered: false }) if e.kind() == ErrorKind::Conflict => {
                taken.get_or_insert(e);
            }
            (Err(e), _) => return Err(e),
        }
    }
    taken.map_or(Ok(()), Err)
}

/// Runs of documents that fit into a command each.
fn batches<'a, 'b>(
    mut left: &'a [(&'b Key, RawDocumentBuf)],
) -> impl Iterator<Item = &'a [(&'b Key, RawDocumentBuf)]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = left.iter().take(STATEMENTS).take_while(|(key, document)| {
            // Around each: the number, the query with the key, the names.
            bytes += document.as_bytes().len() + key.len() + 64;
            bytes <= BYTES
        });
        // One too large for company goes alone.
        let count = fits.count().max(1).min(left.len());
        let (batch, rest) = left.split_at(count);
        left = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

/// A document that a conditional write is about: its key, and what else it must be like.
pub(super) struct Matching<'k> {
    pub key: &'k Key,
    pub condition: Document,
}

/// Replaces a document, or without another deletes it, if there is one that matches; says whether it did.
pub(super) async fn swap(
    collection: &Collection<RawDocumentBuf>,
    concern: Option<&WriteConcern>,
    matching: Matching<'_>,
    document: Option<&RawDocumentBuf>,
) -> Result<bool> {
    let Matching { key, condition } = matching;
    let mut query = doc! {"_id": key.as_str()};
    query.extend(condition);
    let query = RawDocumentBuf::try_from(&query).map_err(|e| Error::invalid(e.to_string()))?;
    let (mut command, mut statement) = (RawDocumentBuf::new(), RawDocumentBuf::new());
    statement.append(cstr!("q"), query);
    let (name, statements) = match document {
        Some(document) => {
            statement.append(cstr!("u"), document);
            statement.append(cstr!("upsert"), false);
            (cstr!("update"), cstr!("updates"))
        }
        None => {
            statement.append(cstr!("limit"), 1);
            (cstr!("delete"), cstr!("deletes"))
        }
    };
    command.append(name, collection.name());
    if let Some(concern) = concern {
        command.append(cstr!("writeConcern"), asked(concern));
    }
    let mut all = RawArrayBuf::new();
    all.push(statement);
    command.append(statements, all);
    let database = collection.client().database(&collection.namespace().db);
    let answer = database.run_raw_command(command).await.map_err(ours)?;
    refused(&answer, |_| Some(key))?;
    counts::yes("a conditional write", number(&answer, "n"))
}

/// A write concern as commands have it.
fn asked(concern: &WriteConcern) -> RawDocumentBuf {
    let mut asked = RawDocumentBuf::new();
    asked.append(cstr!("w"), 1);
    asked.append(cstr!("j"), concern.journal.unwrap_or(false));
    asked
}

fn command(
    collection: &str,
    write: Write,
    concern: Option<&WriteConcern>,
    batch: &[(&Key, RawDocumentBuf)],
) -> RawDocumentBuf {
    let mut command = RawDocumentBuf::new();
    match write {
        Write::Insert { ordered } => {
            command.append(cstr!("insert"), collection);
            command.append(cstr!("ordered"), ordered);
        }
        Write::Replace => {
            command.append(cstr!("update"), collection);
            // In order, the last of several with the same key is the one that stays.
            command.append(cstr!("ordered"), true);
        }
    }
    if let Some(concern) = concern {
        command.append(cstr!("writeConcern"), asked(concern));
    }
    let mut statements = RawArrayBuf::new();
    for (key, document) in batch {
        match write {
            Write::Insert { .. } => statements.push(document),
            Write::Replace => {
                let mut query = RawDocumentBuf::new();
                query.append(cstr!("_id"), key.as_str());
                let mut statement = RawDocumentBuf::new();
                statement.append(cstr!("q"), query);
                statement.append(cstr!("u"), document);
                statement.append(cstr!("upsert"), true);
                statements.push(statement);
            }
        }
    }
    let name = match write {
        Write::Insert { .. } => cstr!("documents"),
        Write::Replace => cstr!("updates"),
    };
    command.append(name, statements);
    command
}

/// A number in an answer; -1 where there is none.
pub(super) fn number(document: &Document, name: &str) -> i64 {
    match document.get(name) {
        Some(Bson::Int32(n)) => i64::from(*n),
        Some(Bson::Int64(n)) => *n,
        Some(Bson::Double(n)) => *n as i64,
        _ => -1,
    }
}

/// What the server says of each statement.
fn outcome(answer: &Document, batch: &[(&Key, RawDocumentBuf)]) -> Result<()> {
    refused(answer, |at| batch.get(at).map(|(key, _)| *key))?;
    // Acknowledged is what the server counts.
    match number(answer, "n") {
        n if n == batch.len() as i64 => Ok(()),
        n => Err(Error::new(
            ErrorKind::Mismatch,
            format!("{} documents were sent, but the server reports {n} written", batch.len()),
        )),
    }
}

/// The error of an answer that has one; `key` is that of the statement of a number.
fn refused<'k>(answer: &Document, key: impl Fn(usize) -> Option<&'k Key>) -> Result<()> {
    let part = |e: &Document| {
        let code = i32::try_from(number(e, "code")).unwrap_or(-1);
        let text = |name| e.get_str(name).unwrap_or_default().to_owned();
        (code, text("codeName"), text("errmsg"))
    };
    if let Ok(errors) = answer.get_array("writeErrors")
        && let Some(first) = errors.iter().find_map(Bson::as_document)
    {
        let (code, name, message) = part(first);
        let key = usize::try_from(number(first, "index")).ok().and_then(key);
        let key = key.map_or_else(|| "a key".into(), |key| format!("key {}", key.shown()));
        let others = match errors.len() {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        let what = match code {
            DUPLICATE => format!("{key} already exists{others}"),
            _ => format!("{key}: {}{others}", said(code, &name, &message)),
        };
        return Err(Error::new(of_code(code), what));
    }
    if let Ok(error) = answer.get_document("writeConcernError") {
        let (code, name, message) = part(error);
        let what =
            format!("it is written, but less durably than asked: {}", said(code, &name, &message));
        return Err(Error::new(ErrorKind::Unavailable, what));
    }
    Ok(())
}

/// The write concern as a driver's document.
pub(super) fn shown(concern: Option<&WriteConcern>) -> String {
    match concern.map(|concern| concern.journal) {
        None => "the server's own".into(),
        Some(journal) => doc! {"w": 1, "j": journal.unwrap_or(false)}.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(sizes: &[usize]) -> Vec<(Key, RawDocumentBuf)> {
        let document = |&size: &usize| {
            let mut document = RawDocumentBuf::new();
            document.append(cstr!("v"), "x".repeat(size).as_str());
            (Key::fresh(), document)
        };
        sizes.iter().map(document).collect()
    }

    fn cut(sizes: &[usize]) -> Vec<usize> {
        let documents = documents(sizes);
        let all: Vec<_> = documents.iter().map(|(key, d)| (key, d.clone())).collect();
        batches(&all).map(<[_]>::len).collect()
    }

    #[test]
    fn commands_stay_within_what_servers_take() {
        assert_eq!(cut(&[]), [0; 0]);
        assert_eq!(cut(&[1; 3]), [3]);
        assert_eq!(cut(&[5 << 20; 5]), [2, 2, 1]);
        assert_eq!(cut(&[1, 16 << 20, 1]), [1, 1, 1]);
        assert_eq!(cut(&vec![1; STATEMENTS + 1]), [STATEMENTS, 1]);
    }

    #[test]
    fn answers_name_the_key() {
        let documents = documents(&[1, 1]);
        let batch: Vec<_> = documents.iter().map(|(key, d)| (key, d.clone())).collect();
        let answer = |answer: Document| outcome(&answer, &batch);
        answer(doc! {"ok": 1.0, "n": 2}).unwrap();
        let taken = doc! {"index": 1, "code": DUPLICATE, "errmsg": "E11000"};
        let error = answer(doc! {"n": 0, "writeErrors": [taken.clone(), taken]}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let want = format!("key {} already exists, and 1 more", batch[1].0.shown());
        assert_eq!(error.to_string(), want);
        let large = doc! {"index": 0, "code": 10334, "errmsg": "too large"};
        let error = answer(doc! {"n": 0, "writeErrors": [large]}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        let late = doc! {"code": 64, "codeName": "WriteConcernFailed", "errmsg": "late"};
        let error = answer(doc! {"n": 2, "writeConcernError": late}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let error = answer(doc! {"n": 1}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
    }
}
