//! MARC 21 (and UNIMARC) in ISO 2709: the codec lies in [`marc::iso2709`].

use serde::{Serialize, de::DeserializeOwned};

use super::{Framing, Info, Takes};
use crate::{
    Result,
    marc::{Record, iso2709},
    record::{self, Kind},
};

pub(super) const INFO: Info = Info {
    name: "marc21",
    extensions: &["mrc", "marc", "marc21", "dat"],
    framing: Framing::Marc,
    takes: Takes::Marc,
    keeps: &[Kind::Text, Kind::Bytes],
    loses: "",
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    iso2709::write(super::marc_of(record)?.as_ref(), out);
    Ok(())
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let mut record = Record::new();
    super::without_trouble(|troubles| iso2709::read(bytes, &mut record, troubles))?;
    record::from_value(record::to_value(&record)?)
}
