//! Pets as rows of a key/value table: a row for each field, of the pet's key, the field's name and
//! its value. The third shape of the relation in `families.rs`, whose pets these are.

use super::{Info, Make, families::pet};
use crate::record::Document;

/// Fields of a pet, so rows for each.
const EACH: u64 = 3;

pub(super) const INFO: Info = Info {
    name: "pairs",
    about: "pets, a row of id, name and value for each of their fields",
    count: 60_000,
    published: 7_500_000,
    key: None,
    make: Make::Documents(pair),
};

/// Row `number`: of pet `number / 3`, its field `number % 3`.
pub fn pair(seed: u64, number: u64) -> Document {
    let (id, field) = (number / EACH, (number % EACH) as usize);
    let pet = pet(seed, id);
    let mut pair = Document::with_capacity(3);
    pair.push("id", id.to_string());
    if let Some((name, value)) = pet.iter().nth(field) {
        pair.push("name", name);
        pair.push("value", value.clone());
    }
    pair
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_put_together_are_the_pets() {
        assert_eq!(pet(1, 7).len() as u64, EACH);
        for id in 0..20 {
            let rows = (EACH * id..EACH * (id + 1)).map(|n| pair(1, n));
            let text = |row: &Document, name| row.get(name).unwrap().as_str().unwrap().to_owned();
            let made = rows.map(|row| {
                assert_eq!(text(&row, "id"), id.to_string());
                (text(&row, "name"), row.get("value").unwrap().clone())
            });
            assert_eq!(Document::from_iter(made), pet(1, id));
        }
    }
}
