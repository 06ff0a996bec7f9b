//! Tokens: JSON Web Tokens (RFC 7519) with HMAC-SHA-256 and nothing else, for this installation, for a quarter of an hour.

use std::sync::Once;

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    decode, encode, get_current_timestamp,
    signature::{Error as Bad, Signer, Verifier},
};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use steelyard_base::{Error, Result};

use super::UserName;
use crate::{
    catalog::{KeyRow, Pepper},
    random,
};

/// How long a token is good, in seconds.
pub(super) const SECONDS: u64 = 900;
const ISSUER: &str = "steelyard";

/// What a token says.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    /// The user, as the prefix of a key.
    sub: String,
    /// The mark of the password it was given for ([`Tokens::mark`]).
    pwd: String,
    iss: String,
    /// The installation.
    aud: String,
    exp: u64,
    iat: u64,
}

/// Makes and reads tokens.
pub(crate) struct Tokens {
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
    audience: String,
    pepper: Pepper,
}

impl Tokens {
    pub(crate) fn new(pepper: &Pepper) -> Tokens {
        static PROVIDER: CryptoProvider = CryptoProvider {
            signer_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, key.as_bytes())?)),
            verifier_factory: |algorithm, key| {
                Ok(Box::new(Hs256::new(*algorithm, key.try_get_as_bytes()?)?))
            },
            key_utils: KeyUtils::new_unimplemented(),
        };
        static INSTALLED: Once = Once::new();
        // One of the program's own does as well.
        INSTALLED.call_once(|| {
            let _ = PROVIDER.install_default();
        });
        let secret = pepper.sign("token", &[]).finalize().into_bytes();
        let audience = random::as_hex(&pepper.sign("audience", &[]).finalize().into_bytes()[..8]);
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        validation.set_audience(&[&audience]);
        validation.set_issuer(&[ISSUER]);
        validation.leeway = 0;
        Tokens {
            encoding: EncodingKey::from_secret(&secret),
            decoding: DecodingKey::from_secret(&secret),
            validation,
            audience,
            pepper: pepper.clone(),
        }
    }

    /// The mark of a user's password and tenant: another one once the password is set anew, whether it is the same or not, and
    /// of a user of the same name in another tenant.
    pub(crate) fn mark(&self, user: &KeyRow) -> String {
        // The hash of a password has a salt of its own.
        let mac = self.pepper.sign("token of", &[user.tenant.as_bytes(), user.mac.as_bytes()]);
        random::as_hex(&mac.finalize().into_bytes()[..16])
    }

    /// A token of a user, as the catalog has it.
    pub(super) fn fresh(&self, user: &UserName, row: &KeyRow) -> Result<String> {
        self.until(user.prefix(), self.mark(row), get_current_timestamp() + SECONDS)
    }

    fn until(&self, sub: String, pwd: String, exp: u64) -> Result<String> {
        let iat = get_current_timestamp();
        let claims = Claims { sub, pwd, iss: ISSUER.into(), aud: self.audience.clone(), exp, iat };
        encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)
            .map_err(|e| Error::invalid(format!("no token can be made: {e}")))
    }

    /// Whose token this is, as the prefix of a key, and the mark it was given for; none where it is not a good one.
    pub(crate) fn user(&self, text: &str) -> Option<(String, String)> {
        /// Ours have some 300 bytes.
        const LONGEST: usize = 1024;
        if text.len() > LONGEST || text.bytes().filter(|b| *b == b'.').count() != 2 {
            return None;
        }
        let token = decode::<Claims>(text, &self.decoding, &self.validation).ok()?;
        let Claims { sub, pwd, .. } = token.claims;
        UserName::is_of(&sub).then_some((sub, pwd))
    }
}

/// HMAC-SHA-256, which the gateway has anyway; the crate's own providers bring all other algorithms with them.
struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, secret: &[u8]) -> jsonwebtoken::errors::Result<Hs256> {
        use jsonwebtoken::errors::ErrorKind;
        match algorithm {
            Algorithm::HS256 => {
                let mac = Hmac::new_from_slice(secret);
                Ok(Hs256(mac.map_err(|_| ErrorKind::InvalidKeyFormat)?))
            }
            _ => Err(ErrorKind::InvalidAlgorithm.into()),
        }
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, Bad> {
        Ok(self.0.clone().chain_update(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Bad> {
        // In the same time whichever byte differs.
        self.0.clone().chain_update(message).verify_slice(signature).map_err(|_| Bad::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

    use super::*;
    use crate::catalog::Scope;

    #[test]
    fn a_token_is_good_for_its_installation_and_its_time() {
        let pepper = Pepper::fresh().unwrap();
        let (tokens, other) = (Tokens::new(&pepper), Tokens::new(&Pepper::fresh().unwrap()));
        let user = UserName::new("ann@example.com").unwrap();
        let row = row("austin", "$argon2id$one");
        let token = tokens.fresh(&user, &row).unwrap();
        let is = Some(("user:ann@example.com".to_owned(), tokens.mark(&row)));
        assert_eq!(tokens.user(&token), is);
        assert_eq!(Tokens::new(&pepper).user(&token), is);
        assert_eq!(other.user(&token), None);
        let past = tokens.until(user.prefix(), String::new(), get_current_timestamp() - 1).unwrap();
        assert_eq!(tokens.user(&past), None);
        // Not the prefix of an API key.
        let soon = get_current_timestamp() + 9;
        let key = tokens.until("abcdefghijklmnop".into(), String::new(), soon).unwrap();
        assert_eq!(tokens.user(&key), None);
    }

    fn row(tenant: &str, mac: &str) -> KeyRow {
        KeyRow {
            tenant: tenant.into(),
            mac: mac.into(),
            scope: Scope::Read,
            label: "user".into(),
            created: "2026-01-01T00:00:00Z".into(),
            revoked: false,
        }
    }

    #[test]
    fn another_password_and_another_tenant_have_another_mark() {
        let tokens = Tokens::new(&Pepper::fresh().unwrap());
        let marks = [("a", "$one"), ("b", "$one"), ("a", "$two"), ("a$", "one")]
            .map(|(tenant, mac)| tokens.mark(&row(tenant, mac)));
        for (n, mark) in marks.iter().enumerate() {
            assert!(mark.len() == 32 && !marks[..n].contains(mark), "{marks:?}");
        }
    }

    /// Every byte of it matters, and so does every claim and the algorithm.
    #[test]
    fn nothing_but_what_was_signed_is_a_token() {
        let pepper = Pepper::fresh().unwrap();
        let tokens = Tokens::new(&pepper);
        let token = tokens.fresh(&UserName::new("ann").unwrap(), &row("a", "$one")).unwrap();
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            // The last letter of base64 has bits that no byte has.
            let same = |text: &str| {
                text.split('.').map(|p| URL_SAFE_NO_PAD.decode(p).ok()).collect::<Vec<_>>()
            };
            if same(&changed) != same(&token) {
                assert_eq!(tokens.user(&changed), None, "{at}");
            }
        }
        let body = token.split('.').nth(1).unwrap();
        for head in [r#"{"alg":"none"}"#, r#"{"alg":"HS512"}"#, r#"{"alg":"RS256"}"#, "{}", ""] {
            let head = URL_SAFE_NO_PAD.encode(head);
            for end in ["", token.split('.').nth(2).unwrap()] {
                assert_eq!(tokens.user(&format!("{head}.{body}.{end}")), None);
            }
        }
        let good = serde_json::json!({
            "sub": "user:ann", "pwd": "", "iss": ISSUER, "aud": tokens.audience, "iat": 1,
            "exp": get_current_timestamp() + 9,
        });
        let signed = |claims: &serde_json::Value| {
            encode(&Header::new(Algorithm::HS256), claims, &tokens.encoding).unwrap()
        };
        assert!(tokens.user(&signed(&good)).is_some());
        for name in ["sub", "iss", "aud", "exp"] {
            for other in [None, Some(serde_json::json!("x"))] {
                let mut claims = good.clone();
                match other {
                    None => drop(claims.as_object_mut().unwrap().remove(name)),
                    Some(other) => claims[name] = other,
                }
                assert_eq!(tokens.user(&signed(&claims)), None, "{name}");
            }
        }
        assert_eq!(tokens.user(&"a.".repeat(100_000)), None);
    }
}
