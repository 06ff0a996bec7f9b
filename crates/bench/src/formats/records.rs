//! The records that formats are weighed with: MARC records, or documents of any shape.

use crate::{
    Result,
    file::Sink,
    format::{Code, Coder, Format},
    marc::Record,
    record::{Document, Value},
};

/// Records in memory.
#[derive(Debug, Clone)]
pub enum Records {
    /// MARC records.
    Marc(Vec<Record>),
    /// Anything else.
    Documents(Vec<Document>),
}

impl Records {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Records::Marc(r) => r.len(),
            Records::Documents(r) => r.len(),
        }
    }

    /// True of none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What they are, for a reader.
    pub fn kind(&self) -> &'static str {
        match self {
            Records::Marc(_) => "MARC records",
            Records::Documents(_) => "documents",
        }
    }
}

/// A kind of record, so that the measured loops are compiled for each and nothing is boxed in them.
pub(super) trait Item: Clone + PartialEq {
    /// An empty one, to be read into.
    fn empty() -> Self;
    /// Appends its bytes.
    fn encode(&self, format: Format, out: &mut Vec<u8>) -> Result<()>;
    /// Reads it from its bytes, into the memory it has where it can.
    fn decode(&mut self, format: Format, bytes: &[u8]) -> Result<()>;
    /// Reads it from its bytes in a file.
    fn read(&mut self, coder: &mut Coder, bytes: &[u8]) -> Result<()>;
    /// Writes it to a file.
    fn put(&self, sink: &mut Sink) -> Result<()>;
    /// Whose code reads and writes such records in a format.
    fn code(format: Format) -> Code;
    /// How many parts it has, to see that it was read in full.
    fn parts(&self) -> u64;
    /// Whether another, which differs, has the same values under names in another order.
    fn is_reordered(&self, other: &Self) -> bool;
    /// Where it first differs from another, for a reader.
    fn difference(&self, other: &Self) -> String;
}

impl Item for Record {
    fn empty() -> Self {
        Record::new()
    }
    #[inline]
    fn encode(&self, format: Format, out: &mut Vec<u8>) -> Result<()> {
        format.encode_marc(self.as_ref(), out)
    }
    #[inline]
    fn decode(&mut self, format: Format, bytes: &[u8]) -> Result<()> {
        format.decode_marc(bytes, self)
    }
    #[inline]
    fn read(&mut self, coder: &mut Coder, bytes: &[u8]) -> Result<()> {
        coder.decode_marc(bytes, self)
    }
    #[inline]
    fn put(&self, sink: &mut Sink) -> Result<()> {
        sink.put_marc(self.as_ref())
    }
    fn code(format: Format) -> Code {
        format.info().marc
    }
    #[inline]
    fn parts(&self) -> u64 {
        self.len() as u64
    }
    /// The order of fields is part of a record.
    fn is_reordered(&self, _: &Self) -> bool {
        false
    }
    fn difference(&self, other: &Self) -> String {
        let (a, b) = (self.as_ref(), other.as_ref());
        if a.leader() != b.leader() {
            return format!("leader {:?} became {:?}", a.leader(), b.leader());
        }
        let differ =
            a.fields().zip(b.fields()).find(|(a, b)| a.tag() != b.tag() || a.bytes() != b.bytes());
        match differ {
            Some((a, b)) => {
                format!("field {} became {} {:?}", a.tag_text(), b.tag_text(), b.to_string())
            }
            None => format!("{} fields became {}", a.len(), b.len()),
        }
    }
}

impl Item for Document {
    fn empty() -> Self {
        Document::new()
    }
    #[inline]
    fn encode(&self, format: Format, out: &mut Vec<u8>) -> Result<()> {
        format.encode(self, out)
    }
    #[inline]
    fn decode(&mut self, format: Format, bytes: &[u8]) -> Result<()> {
        *self = format.decode(bytes)?;
        Ok(())
    }
    #[inline]
    fn read(&mut self, coder: &mut Coder, bytes: &[u8]) -> Result<()> {
        *self = coder.decode(bytes)?;
        Ok(())
    }
    #[inline]
    fn put(&self, sink: &mut Sink) -> Result<()> {
        sink.put(self)
    }
    fn code(format: Format) -> Code {
        format.info().values
    }
    #[inline]
    fn parts(&self) -> u64 {
        self.len() as u64
    }
    fn is_reordered(&self, other: &Self) -> bool {
        self.same_in_any_order(other)
    }
    fn difference(&self, other: &Self) -> String {
        map_difference("", self, other).unwrap_or_else(|| "the order of names".into())
    }
}

fn map_difference(path: &str, a: &Document, b: &Document) -> Option<String> {
    for (name, value) in a.iter() {
        let here = match path {
            "" => name.to_owned(),
            _ => format!("{path}.{name}"),
        };
        match b.get(name) {
            None => return Some(format!("{here} is gone")),
            Some(other) if value != other => return Some(value_difference(&here, value, other)),
            Some(_) => {}
        }
    }
    let more = b.iter().find(|(name, _)| a.get(name).is_none());
    more.map(|(name, _)| format!("{name} was not there before"))
}

fn value_difference(path: &str, a: &Value, b: &Value) -> String {
    match (a, b) {
        (Value::Map(a), Value::Map(b)) => {
            map_difference(path, a, b).unwrap_or_else(|| format!("{path}: the order of names"))
        }
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            let differ = a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b);
            match differ {
                Some((i, (a, b))) => value_difference(&format!("{path}.{i}"), a, b),
                None => format!("{path} differs"),
            }
        }
        _ if a.kind() != b.kind() => {
            format!("{path}: {} became {}", a.kind().name(), b.kind().name())
        }
        _ => format!("{path}: another {}", a.kind().name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_by_their_path() {
        let doc = |v: Value| {
            let inner = Document::from_iter([("n", v)]);
            Document::from_iter([
                ("a", Value::from(1i64)),
                ("list", vec![Value::Map(inner)].into()),
            ])
        };
        let (a, b) = (doc(Value::Bytes(vec![1])), doc(Value::List(vec![])));
        assert_eq!(a.difference(&b), "list.0.n: bytes became list");
        assert_eq!(a.difference(&Document::from_iter([("a", 1i64)])), "list is gone");
        let mut record = Record::new();
        record.push_plain(*b"001", b"42").unwrap();
        let mut other = Record::new();
        other.push_plain(*b"001", b"43").unwrap();
        assert_eq!(record.difference(&other), "field 001 became 001 \"43\"");
        assert_eq!(record.difference(&Record::new()), "1 fields became 0");
    }
}
