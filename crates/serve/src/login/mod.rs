//! People who sign in with a name and a password, and get a token that is good for a quarter of an hour.
//!
//! A user is a row beside the API keys, with a hash of the password in place of the MAC of a secret, and is revoked as they
//! are: a token names the user, and what the catalog says of the user decides, as of a key.

mod password;
mod route;
mod token;

use std::sync::Arc;

use moka::sync::Cache;
use steelyard_base::{Error, Result};

pub(crate) use password::{Passwords, hashed as password_hash};
pub(crate) use route::{ABOUT, OPEN, PATH, operation};
pub(crate) use token::Tokens;

use crate::{catalog::Pepper, limits::Rate};

/// What the names of users begin with, among the prefixes of keys; none of those has a colon.
const START: &str = "user:";

/// The name of somebody who signs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserName(String);

impl UserName {
    /// # Errors
    /// [`Invalid`](steelyard_base::ErrorKind::Invalid) unless it is 1 to 128 letters, digits, and `.`, `_`, `-`, `+`, `@`.
    pub fn new(text: &str) -> Result<UserName> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_+@".contains(&b);
        match (1..=128).contains(&text.len()) && text.bytes().all(plain) {
            true => Ok(UserName(text.to_owned())),
            false => Err(Error::invalid(format!(
                "{text:?} is not a valid name of a user: 1 to 128 letters, digits, and . _ - + @"
            ))),
        }
    }

    /// Whether this stands in the place of a key's prefix.
    pub(crate) fn is_of(prefix: &str) -> bool {
        prefix.starts_with(START)
    }

    /// What stands in the place of a key's prefix.
    pub(crate) fn prefix(&self) -> String {
        format!("{START}{}", self.0)
    }
}

impl std::str::FromStr for UserName {
    type Err = Error;
    fn from_str(text: &str) -> Result<UserName> {
        UserName::new(text)
    }
}

/// What it takes to let somebody in.
pub(crate) struct Logins {
    pub passwords: Passwords,
    pub tokens: Arc<Tokens>,
    /// How often each name was tried, whether there is such a user or not.
    tries: Cache<String, Arc<Rate>>,
}

impl Logins {
    pub(crate) fn new(pepper: &Pepper, tokens: Arc<Tokens>) -> Logins {
        /// Of so many names.
        const REMEMBERED: u64 = 10_000;
        Logins { passwords: Passwords::new(pepper), tokens, tries: Cache::new(REMEMBERED) }
    }

    fn tries(&self, user: &UserName) -> Arc<Rate> {
        self.tries.get_with_by_ref(user.0.as_str(), || Arc::new(Rate::new()))
    }
}
