//! Users and their five pets: the relation that belongs to the published users.
//!
//! - `owners`: a user who names the keys of the pets
//! - `keepers`: the same user, who names nothing
//! - `pets`: a pet that names its owner's key
//! - `families`: a user with the pets inside
//!
//! Pet 5n to 5n + 4 are those of owner n; a record's key is its number.

use super::{Info, Make, users::PETS};
use crate::record::{Document, Value};

const EACH: u64 = PETS.len() as u64;

pub(super) const OWNERS: Info = Info {
    name: "owners",
    about: "users, each with the keys of five pets",
    count: 4_000,
    published: 500_000,
    key: None,
    make: Make::Documents(owner),
};

pub(super) const KEEPERS: Info = Info {
    name: "keepers",
    about: "users, and pets that refer to them",
    count: 4_000,
    published: 500_000,
    key: None,
    make: Make::Documents(keeper),
};

pub(super) const HOLDINGS: Info = Info {
    name: "pets",
    about: "pets, each with the key of its owner",
    count: 20_000,
    published: 2_500_000,
    key: None,
    make: Make::Documents(pet),
};

pub(super) const FAMILIES: Info = Info {
    name: "families",
    about: "users, each with five pets inside",
    count: 4_000,
    published: 500_000,
    key: None,
    make: Make::Documents(family),
};

fn user(number: u64) -> Document {
    let mut user = Document::with_capacity(4);
    user.push("number", number as i64);
    user.push("name", "Jason Mooberry");
    user.push("email", "a@b.com");
    user
}

/// User `number`, who names the pets' keys.
pub fn owner(_seed: u64, number: u64) -> Document {
    let mut owner = user(number);
    let keys = (0..EACH).map(|i| Value::from((EACH * number + i).to_string()));
    owner.push("pets", Value::List(keys.collect()));
    owner
}

/// User `number`, who names nothing.
pub fn keeper(_seed: u64, number: u64) -> Document {
    user(number)
}

/// Pet `number`, which names its owner's key.
pub fn pet(_seed: u64, number: u64) -> Document {
    let mut pet = Document::with_capacity(3);
    pet.push("owner", (number / EACH).to_string());
    pet.push("pet", PETS[(number % EACH) as usize]);
    pet.push("name", format!("pet {number}"));
    pet
}

/// User `number` with the pets inside.
pub fn family(seed: u64, number: u64) -> Document {
    let mut family = user(number);
    let pets = (0..EACH).map(|i| Value::from(pet(seed, EACH * number + i)));
    family.push("pets", Value::List(pets.collect()));
    family
}
