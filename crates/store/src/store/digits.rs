//! Numbers of any length in stores of bytes: kept as numbers, or refused.
//!
//! Some formats write a decimal, or a whole number beyond 64 bits, as text. In a file that is what the format
//! can do. In a store it would change what a condition means: `n>7000` finds no texts.

use crate::{
    Error, Result,
    format::{Format, Wrapped},
    record::{Document, Kind, Value, number},
};

/// Sees that a format keeps the numbers of a record as numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digits(Option<Format>);

impl Digits {
    pub(crate) fn of(format: &Wrapped) -> Digits {
        let keeps = format.format.info().keeps;
        let all = [Kind::BigInt, Kind::Decimal].iter().all(|kind| keeps.contains(kind));
        // Where every value becomes a text, numbers do not stand out.
        Digits((!all && keeps.contains(&Kind::Int)).then_some(format.format))
    }

    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported), with the path of the number and formats that keep it.
    pub(crate) fn check(self, record: &Document) -> Result<()> {
        let Some(format) = self.0 else { return Ok(()) };
        record.iter().try_for_each(|(name, value)| check(format, value, &|| name.to_owned()))
    }
}

fn check(format: Format, value: &Value, path: &dyn Fn() -> String) -> Result<()> {
    match value {
        Value::BigInt(_) | Value::Decimal(_) if !comes_back(format, value) => {
            Err(Error::unsupported(format!(
                "field {:?} is a number that {} would turn into text; use ?format=cbor or \
                 ?format=json",
                path(),
                format.name()
            )))
        }
        Value::List(list) => list
            .iter()
            .enumerate()
            .try_for_each(|(i, value)| check(format, value, &|| format!("{}[{i}]", path()))),
        Value::Map(map) => map
            .iter()
            .try_for_each(|(name, value)| check(format, value, &|| format!("{}.{name}", path()))),
        _ => Ok(()),
    }
}

/// Whether a number is the same one after it was written and read. Such numbers are rare.
fn comes_back(format: Format, value: &Value) -> bool {
    let record = Document::from_iter([("n", value.clone())]);
    let mut bytes = Vec::new();
    let back =
        format.encode_document(&record, &mut bytes).and_then(|()| format.decode_document(&bytes));
    let back = back.ok().and_then(|back| back.get("n").cloned());
    back.is_some_and(|back| number::compare(&back, value).is_some_and(std::cmp::Ordering::is_eq))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_numbers_or_are_refused() {
        let long = ["18446744073709551615", "12345678901234567890123"];
        let numbers = long.map(|text| Value::BigInt(text.into())).into_iter();
        let numbers = numbers.chain(
            ["0.10000000000000000001", "7703.19869784923198", "1e400"]
                .map(|text| Value::Decimal(text.into())),
        );
        for number in numbers {
            for format in Format::ALL.iter().filter(|f| f.info().keeps.contains(&Kind::Int)) {
                let record = Document::from_iter([("a", Value::List(vec![number.clone()]))]);
                let checked = Digits::of(&(*format).into()).check(&record);
                let mut bytes = Vec::new();
                let written = format.encode(&record, &mut bytes);
                match checked {
                    Ok(()) if written.is_ok() => {
                        let back: Document = format.decode(&bytes).unwrap();
                        let Some(Value::List(back)) = back.get("a") else { panic!("{back:?}") };
                        assert_eq!(
                            number::compare(&back[0], &number),
                            Some(std::cmp::Ordering::Equal),
                            "{format:?}: {number:?} became {back:?}"
                        );
                    }
                    Ok(()) => (),
                    Err(e) => assert!(e.to_string().contains("field \"a[0]\""), "{e}"),
                }
            }
        }
        let record = Document::from_iter([("n", Value::Decimal("7703.19869784923198".into()))]);
        let error = Digits::of(&Format::Msgpack.into()).check(&record).unwrap_err();
        assert!(error.to_string().contains("use ?format=cbor"), "{error}");
        assert!(Digits::of(&Format::Cbor.into()).check(&record).is_ok());
        assert!(Digits::of(&Format::Json.into()).check(&record).is_ok());
    }
}
