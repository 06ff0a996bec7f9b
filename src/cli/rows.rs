//! Records of files as rows of a store, for the verbs that put them into one.

use steelyard::{
    Error, Result,
    copy::KeyRule,
    file::Reading,
    format::{Coder, Format, Takes, Wrapped},
    marc::Record,
    record::{self, Document, Value},
    store::{Key, Row},
};

use super::files;

/// Reads all records of a file, and hands over each with its key: the one that the rule finds in it, or a new one, which
/// is said.
pub fn each(
    file: &str,
    format: Option<&Wrapped>,
    rule: &KeyRule,
    mut take: impl FnMut(Row, bool) -> Result<()>,
) -> Result<()> {
    // What standard input holds is read as it comes, not guessed from its first bytes.
    let usual = (file == "-").then(|| Format::Json.into());
    let reading = Reading { format: format.cloned().or(usual), ..Reading::default() };
    let mut frames = files::open(file, &reading)?;
    let mut coder = Coder::new(frames.format().clone())?;
    while let Some(frame) = frames.next()? {
        let (number, offset) = (frame.number, frame.offset);
        let at = |e: Error| e.at(offset).at_record(number).in_place(file);
        if let Some(bad) = frame.bad {
            return Err(bad);
        }
        let mut record = document(&mut coder, frame.bytes).map_err(at)?;
        let found = rule.take(&mut record).map_err(at)?;
        let is_new = found.is_none();
        take(Row { key: found.unwrap_or_else(Key::fresh), record }, is_new)?;
    }
    Ok(())
}

fn document(coder: &mut Coder, bytes: &[u8]) -> Result<Document> {
    if coder.wrapped().format.info().takes != Takes::Marc {
        return coder.decode_document(bytes);
    }
    let mut marc = Record::new();
    coder.decode_marc(bytes, &mut marc)?;
    match record::to_value(&marc)? {
        Value::Map(record) => Ok(record),
        _ => unreachable!("a MARC record is a map"),
    }
}
