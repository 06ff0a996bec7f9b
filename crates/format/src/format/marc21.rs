//! MARC 21 (and UNIMARC) in ISO 2709: the codec lies in [`marc::iso2709`].

use serde::{Serialize, de::DeserializeSeed};

use super::{By, Code, Framing, Info, Takes};
use crate::{Result, marc::iso2709, record::Kind};

pub(super) const INFO: Info = Info {
    name: "marc21",
    extensions: &["mrc", "marc", "marc21", "dat"],
    framing: Framing::Marc,
    takes: Takes::Marc,
    keeps: &[Kind::Text, Kind::Bytes],
    loses: "",
    marc: Code::of(By::Own),
    values: Code::of(By::OwnSerde),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    iso2709::write(super::marc_of(record)?.as_ref(), out);
    Ok(())
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    super::decode_through_marc(seed, |record, troubles| iso2709::read(bytes, record, troubles))
}
