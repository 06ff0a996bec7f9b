//! API keys: `prefix.secret`. The catalog has the prefix, and a MAC of the secret.

use std::{fmt, path::Path};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use steelyard_base::{Error, Result};

use crate::random;

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scope {
    /// Read.
    Read,
    /// Read and write.
    Write,
}

impl std::str::FromStr for Scope {
    type Err = Error;
    fn from_str(text: &str) -> Result<Scope> {
        match text {
            "read" => Ok(Scope::Read),
            "write" => Ok(Scope::Write),
            _ => Err(Error::invalid(format!("unknown scope {text:?}; known: read, write"))),
        }
    }
}

/// A key with its secret. It is shown once.
#[derive(Clone)]
pub struct ApiKey {
    prefix: Box<str>,
    secret: Box<str>,
}

/// Letters of a prefix: of 72 random bits, and of a MAC of them, so that a key that was made up is known without a lookup.
const PREFIX: usize = RANDOM + 4;
const RANDOM: usize = 12;
/// Letters of a secret, of 256 random bits.
const SECRET: usize = 43;

impl ApiKey {
    /// A new key under the secret of an installation, of 256 random bits.
    ///
    /// # Errors
    /// Where the system has no random bytes.
    pub fn fresh(pepper: &Pepper) -> Result<ApiKey> {
        let random = random::letters::<9>()?;
        let prefix = format!("{random}{}", check(&random, pepper));
        Ok(ApiKey { prefix: prefix.into(), secret: random::letters::<32>()?.into() })
    }

    /// Whether its prefix was made under this secret.
    pub(crate) fn is_made_by(&self, pepper: &Pepper) -> bool {
        is_made_by(&self.prefix, pepper)
    }

    /// The key of this text; none where it cannot be one.
    pub fn read(text: &str) -> Option<ApiKey> {
        let (prefix, secret) = text.split_once('.')?;
        let plain = |part: &str, long| {
            part.len() == long
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        (plain(prefix, PREFIX) && plain(secret, SECRET))
            .then(|| ApiKey { prefix: prefix.into(), secret: secret.into() })
    }

    /// The part that is no secret.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The whole of it.
    pub fn reveal(&self) -> String {
        format!("{}.{}", self.prefix, self.secret)
    }

    /// What the catalog keeps of the secret.
    pub(super) fn mac(&self, pepper: &Pepper) -> String {
        random::as_hex(&self.hashed(pepper).finalize().into_bytes())
    }

    fn hashed(&self, pepper: &Pepper) -> Hmac<Sha256> {
        let mut mac = pepper.keyed.clone();
        mac.update(self.prefix.as_bytes());
        mac.update(b".");
        mac.update(self.secret.as_bytes());
        mac
    }

    /// Whether this is the key of the row, in the same time whichever byte differs.
    pub(crate) fn fits(&self, row: &KeyRow, pepper: &Pepper) -> bool {
        let mut expected = [0; 32];
        let digits = row.mac.as_bytes();
        if digits.len() != 64 {
            return false;
        }
        for (byte, pair) in expected.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16);
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return false };
            *byte = (high << 4 | low) as u8;
        }
        self.hashed(pepper).verify_slice(&expected).is_ok()
    }
}

/// Whether a prefix was made under this secret.
pub(super) fn is_made_by(prefix: &str, pepper: &Pepper) -> bool {
    let parts = prefix.split_at_checked(RANDOM);
    parts.is_some_and(|(random, given)| given == check(random, pepper))
}

/// What stands behind the random letters of a prefix.
fn check(random: &str, pepper: &Pepper) -> String {
    let mac = pepper.sign("key", &[random.as_bytes()]).finalize().into_bytes();
    URL_SAFE_NO_PAD.encode(&mac[..3])
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}.…)", self.prefix)
    }
}

/// A key, as the catalog has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeyRow {
    /// Whose it is.
    pub tenant: String,
    /// HMAC-SHA-256 of prefix and secret under the pepper, in hexadecimal digits; of a user, Argon2id of the password.
    pub mac: String,
    /// What it may do.
    pub scope: Scope,
    /// What an operator says it is for.
    pub label: String,
    /// When it was made, in RFC 3339.
    pub created: String,
    /// It is not accepted any more.
    pub revoked: bool,
}

/// The secret of an installation. Without it, what a stolen catalog has of keys is of no use.
#[derive(Clone)]
pub struct Pepper {
    /// A MAC of nothing yet: each MAC is a copy of it, as to begin one anew would take half of its time.
    keyed: Hmac<Sha256>,
}

impl Pepper {
    /// A new one, of 256 random bits.
    ///
    /// # Errors
    /// Where the system has no random bytes.
    pub fn fresh() -> Result<Pepper> {
        Ok(Pepper::of(&random::bytes::<32>()?))
    }

    /// From a file, which only its owner may read.
    ///
    /// # Errors
    /// [`Invalid`](steelyard_base::ErrorKind::Invalid) where it has fewer than 32 bytes, or others may read it; of the file.
    pub fn from_file(path: &Path) -> Result<Pepper> {
        let named = |e: Error| e.in_place(path.display().to_string());
        let make =
            format!("head -c 32 /dev/urandom | base64 > {0} && chmod 600 {0}", path.display());
        let metadata = std::fs::metadata(path).map_err(|e| named(e.into()).with_hint(&*make))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, PermissionsExt};
            let user = nix::unistd::geteuid().as_raw();
            if ![user, 0].contains(&metadata.uid()) {
                let hint = format!("chown {user} {}", path.display());
                return Err(named(Error::invalid("another user owns this secret")).with_hint(hint));
            }
            if metadata.permissions().mode() & 0o077 != 0 {
                let hint = format!("chmod 600 {}", path.display());
                return Err(
                    named(Error::invalid("other users may read this secret")).with_hint(hint)
                );
            }
        }
        let text = match metadata.len() {
            ..=65_536 => std::fs::read(path).map_err(|e| named(e.into()))?,
            _ => return Err(named(Error::invalid("a secret of more than 64 KiB"))),
        };
        let secret = text.trim_ascii();
        match secret.len() {
            32.. => Ok(Pepper::of(secret)),
            short => Err(named(Error::invalid(format!(
                "a secret of {short} bytes; it must have at least 32"
            )))
            .with_hint(make)),
        }
    }

    fn of(secret: &[u8]) -> Pepper {
        let keyed = Hmac::new_from_slice(secret).expect("a MAC takes keys of any length");
        Pepper { keyed }
    }

    /// A MAC of something under this secret, for what must come back unchanged. `purpose` keeps one use apart from another.
    pub(crate) fn sign(&self, purpose: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        for part in [purpose.as_bytes()].iter().chain(parts) {
            // Lengths first, so that no two lists of parts are the same bytes.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pepper(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_fits_its_row_under_its_pepper_alone() {
        let (pepper, another) = (Pepper::fresh().unwrap(), Pepper::fresh().unwrap());
        let (key, other) = (ApiKey::fresh(&pepper).unwrap(), ApiKey::fresh(&pepper).unwrap());
        assert!(key.is_made_by(&pepper) && !key.is_made_by(&another));
        let mut row = KeyRow {
            tenant: "a".into(),
            mac: key.mac(&pepper),
            scope: Scope::Read,
            label: String::new(),
            created: String::new(),
            revoked: false,
        };
        let again = ApiKey::read(&key.reveal()).unwrap();
        assert!(again.fits(&row, &pepper));
        assert!(!again.fits(&row, &another) && !other.fits(&row, &pepper));
        for mac in ["", "00", &"g".repeat(64), &"é".repeat(32)] {
            row.mac = mac.into();
            assert!(!again.fits(&row, &pepper));
        }
        assert!(!format!("{key:?}{pepper:?}").contains(&*key.secret));
    }

    #[test]
    fn what_is_no_key_is_not_looked_up() {
        let key = ApiKey::fresh(&Pepper::fresh().unwrap()).unwrap().reveal();
        assert!(ApiKey::read(&key).is_some());
        for text in
            ["", ".", &key[1..], &key.replace('.', ""), &format!("{key}x"), &key.replace('.', "é")]
        {
            assert!(ApiKey::read(text).is_none(), "{text:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let of = |text: &str, mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Pepper::from_file(&path)
        };
        let long = "x".repeat(32);
        assert!(of(&long, 0o600).is_ok());
        assert!(of(&long, 0o640).unwrap_err().to_string().contains("other users"));
        assert!(of(" short \n", 0o600).unwrap_err().to_string().contains("5 bytes"));
    }
}
