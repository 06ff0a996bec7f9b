//! MARC records as lines for people, `=245  10$aTitle`: the codec lies in
//! [`marc::line`](crate::marc::line).

use serde::{Serialize, de::DeserializeSeed};

use super::{By, Code, Framing, Info, Takes};
use crate::{Result, marc::line, record::Kind};

pub(super) const INFO: Info = Info {
    name: "line",
    extensions: &["mrk"],
    framing: Framing::Paragraphs,
    takes: Takes::Marc,
    keeps: &[Kind::Text, Kind::Bytes, Kind::List, Kind::Map],
    loses: "",
    marc: Code::of(By::Own),
    values: Code::of(By::OwnSerde),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    line::write(super::marc_of(record)?.as_ref(), out);
    Ok(())
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    super::decode_through_marc(seed, |record, troubles| line::read(bytes, record, troubles))
}
