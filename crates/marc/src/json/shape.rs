//! The MARC-in-JSON shape, in which records travel through serde.
//!
//! Text is written as text where it is UTF-8. Where it is not, binary formats get bytes; formats
//! for people have no way to say them and answer with an error that names the text.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, DeserializeSeed, Error as _, Visitor},
    ser::{self, SerializeMap, SerializeSeq, SerializeStruct},
};

use crate::{
    Content, FieldRef, Leader, Record, RecordRef, Subfield, Subfields, builder::FieldBuilder,
};

impl Serialize for RecordRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut s = serializer.serialize_struct("Record", 2)?;
        s.serialize_field("leader", &Text(self.leader))?;
        s.serialize_field("fields", &Fields(*self))?;
        s.end()
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_ref().serialize(serializer)
    }
}

/// Bytes that are text if they can be.
struct Text<'a>(&'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) if !serializer.is_human_readable() => serializer.serialize_bytes(self.0),
            Err(e) => Err(<S::Error as ser::Error>::custom(format_args!(
                "{:?} is not UTF-8 from its byte {} on; convert the encoding first",
                String::from_utf8_lossy(self.0),
                e.valid_up_to()
            ))),
        }
    }
}

struct Fields<'a>(RecordRef<'a>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for field in self.0.fields() {
            list.serialize_element(&Field(field))?;
        }
        list.end()
    }
}

struct Field<'a>(FieldRef<'a>);

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.0.content() {
            Content::Plain(text) => map.serialize_entry(&Text(&self.0.tag), &Text(text))?,
            Content::Data(indicators, subfields) => {
                map.serialize_entry(&Text(&self.0.tag), &Data(indicators, subfields))?;
            }
        }
        map.end()
    }
}

struct Data<'a>([u8; 2], Subfields<'a>);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut s = serializer.serialize_struct("Field", 3)?;
        s.serialize_field("ind1", &Text(&self.0[..1]))?;
        s.serialize_field("ind2", &Text(&self.0[1..]))?;
        s.serialize_field("subfields", &Codes(self.1))?;
        s.end()
    }
}

struct Codes<'a>(Subfields<'a>);

impl Serialize for Codes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for subfield in self.0 {
            list.serialize_element(&Code(subfield))?;
        }
        list.end()
    }
}

struct Code<'a>(Subfield<'a>);

impl Serialize for Code<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(&Text(self.0.code), &Text(self.0.value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut record = Record::new();
        RecordSeed(&mut record).deserialize(deserializer)?;
        Ok(record)
    }
}

/// Hands the bytes of a text (or of bytes) to a closure, without a copy where the format can.
struct Bytes<F>(F);

impl<'de, R, F: FnOnce(&[u8]) -> R> DeserializeSeed<'de> for Bytes<F> {
    type Value = R;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<R, D::Error> {
        // Text that is not UTF-8 stands as bytes in binary formats, some of which tell the two
        // apart and have to be asked for whichever is there.
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_str(self),
            false => deserializer.deserialize_any(self),
        }
    }
}

impl<R, F: FnOnce(&[u8]) -> R> Visitor<'_> for Bytes<F> {
    type Value = R;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }
    fn visit_str<E>(self, v: &str) -> Result<R, E> {
        Ok(self.0(v.as_bytes()))
    }
    fn visit_bytes<E>(self, v: &[u8]) -> Result<R, E> {
        Ok(self.0(v))
    }
}

/// Reads a record into one that is there, using its memory again.
pub struct RecordSeed<'a>(pub &'a mut Record);

impl<'de> DeserializeSeed<'de> for RecordSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.clear();
        deserializer.deserialize_struct("Record", &["leader", "fields"], self)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Leader,
    Fields,
    Other,
}

impl<'de> Visitor<'de> for RecordSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a MARC record: a map with \"leader\" and \"fields\"")
    }
    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut leader, mut fields) = (false, false);
        while let Some(part) = map.next_key_seed(Bytes(|key: &[u8]| match key {
            b"leader" => Part::Leader,
            b"fields" => Part::Fields,
            _ => Part::Other,
        }))? {
            match part {
                Part::Leader => {
                    let read =
                        map.next_value_seed(Bytes(|v: &[u8]| v.try_into().map_err(|_| v.len())))?;
                    self.0.set_leader(Leader(read.map_err(|n| {
                        A::Error::custom(format_args!("a MARC leader of {n} bytes instead of 24"))
                    })?));
                    leader = true;
                }
                Part::Fields => {
                    map.next_value_seed(FieldsSeed(self.0))?;
                    fields = true;
                }
                Part::Other => drop(map.next_value::<de::IgnoredAny>()?),
            }
        }
        match (leader, fields) {
            (false, _) => Err(A::Error::missing_field("leader")),
            (_, false) => Err(A::Error::missing_field("fields")),
            _ => self.0.check_fields().map_err(A::Error::custom),
        }
    }
}

struct FieldsSeed<'a>(&'a mut Record);

impl<'de> DeserializeSeed<'de> for FieldsSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for FieldsSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of MARC fields")
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(FieldSeed(self.0))?.is_some() {}
        Ok(())
    }
}

struct FieldSeed<'a>(&'a mut Record);

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a MARC field: a map from its tag to text or to indicators and subfields")
    }
    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // A map with several tags is several fields: some tools write them so.
        while let Some(tag) =
            map.next_key_seed(Bytes(|v: &[u8]| v.try_into().map_err(|_| v.len())))?
        {
            let tag = tag.map_err(|n| {
                A::Error::custom(format_args!("a MARC tag of {n} bytes instead of 3"))
            })?;
            map.next_value_seed(ContentSeed(self.0, tag))?;
        }
        Ok(())
    }
}

struct ContentSeed<'a>(&'a mut Record, [u8; 3]);

impl<'de> DeserializeSeed<'de> for ContentSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // The value tells which of the two kinds of field it is.
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ContentSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, or a map with \"ind1\", \"ind2\" and \"subfields\"")
    }
    fn visit_str<E: de::Error>(self, v: &str) -> Result<(), E> {
        self.visit_bytes(v.as_bytes())
    }
    fn visit_bytes<E: de::Error>(self, v: &[u8]) -> Result<(), E> {
        let mut field = self.0.begin(self.1, None);
        field.text(v);
        field.finish_text().map_err(E::custom)
    }
    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut field = self.0.begin(self.1, Some(*b"  "));
        #[derive(Clone, Copy)]
        enum Key {
            Indicator(usize),
            Subfields,
            Other,
        }
        while let Some(key) = map.next_key_seed(Bytes(|key: &[u8]| match key {
            b"ind1" => Key::Indicator(0),
            b"ind2" => Key::Indicator(1),
            b"subfields" => Key::Subfields,
            _ => Key::Other,
        }))? {
            match key {
                Key::Indicator(i) => {
                    map.next_value_seed(Bytes(|v: &[u8]| field.indicator(i, v)))?
                }
                Key::Subfields => map.next_value_seed(SubfieldsSeed(&mut field))?,
                Key::Other => drop(map.next_value::<de::IgnoredAny>()?),
            }
        }
        field.finish_text().map_err(A::Error::custom)
    }
}

struct SubfieldsSeed<'a, 'r>(&'a mut FieldBuilder<'r>);

impl<'de> DeserializeSeed<'de> for SubfieldsSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for SubfieldsSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of subfields")
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(SubfieldSeed(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

struct SubfieldSeed<'a, 'r>(&'a mut FieldBuilder<'r>);

impl<'de> DeserializeSeed<'de> for SubfieldSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SubfieldSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a subfield: a map from its code to text")
    }
    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(()) = map.next_key_seed(Bytes(|code: &[u8]| self.0.code(code)))? {
            map.next_value_seed(Bytes(|text: &[u8]| self.0.value_text(text)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_repeats_and_odd_fields() {
        let json = concat!(
            r#"{"leader":"00000nam a2200000 i 4500","fields":[{"001":"x\"y"},"#,
            r#"{"245":{"ind1":"1","ind2":" ","subfields":[{"a":"ü"},{"b":""},{"a":"again"},{"":""}]}},"#,
            r#"{"500":{"ind1":" ","ind2":" ","subfields":[]}},{"LKR":"free text"}]}"#
        );
        let record: Record = serde_json::from_str(json).unwrap();
        assert_eq!(record.len(), 4);
        assert_eq!(serde_json::to_string(&record).unwrap(), json);
    }

    #[test]
    fn takes_keys_in_any_order_and_skips_what_it_does_not_know() {
        let json = r#"{"x":[1,{"y":2}],"fields":[{"245":{"subfields":[{"a":"t"}],"ind2":"0","ind1":"1","z":null}}],"leader":"00000nam a2200000 i 4500"}"#;
        let record: Record = serde_json::from_str(json).unwrap();
        assert_eq!(record.as_ref().field(*b"245").unwrap().bytes(), b"10\x1fat");
    }

    #[test]
    fn says_what_is_missing_or_wrong() {
        for (json, want) in [
            (r#"{"fields":[]}"#, "missing field `leader`"),
            (r#"{"leader":"short","fields":[]}"#, "5 bytes instead of 24"),
            (
                r#"{"leader":"00000nam a2200000 i 4500","fields":[{"24":"x"}]}"#,
                "2 bytes instead of 3",
            ),
            (
                r#"{"leader":"00000nam a2200000 i 4500","fields":[{"001":"\u001e"}]}"#,
                "terminator inside",
            ),
            (
                r#"{"leader":"00000nam a2200000 i 4500","fields":[{"245":{"ind1":"10","subfields":[]}}]}"#,
                "indicator",
            ),
        ] {
            let error = serde_json::from_str::<Record>(json).unwrap_err().to_string();
            assert!(error.contains(want), "{json}: {error}");
        }
    }
}
