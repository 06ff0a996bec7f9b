//! MARCXML: the codec lies in [`marc::xml`](crate::marc::xml).

use serde::{Serialize, de::DeserializeSeed};

use super::{By, Code, Framing, Info, Takes};
use crate::{Result, marc::xml, record::Kind};

pub(super) const INFO: Info = Info {
    name: "marcxml",
    extensions: &["xml", "marcxml"],
    framing: Framing::Elements,
    takes: Takes::Marc,
    keeps: &[Kind::Text, Kind::List, Kind::Map],
    loses: "records in other encodings than UTF-8, and control characters, are refused",
    marc: Code::of(By::Own),
    values: Code::of(By::OwnSerde),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    xml::write(super::marc_of(record)?.as_ref(), out)
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    super::decode_through_marc(seed, |record, troubles| xml::read(bytes, record, troubles))
}
