//! Passwords: Argon2id under the secret of the installation, some at a time.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordHasher, PasswordVerifier, Version};
use hmac::Mac;
use steelyard_base::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{catalog::Pepper, problem::Problem};

/// The shortest password, in bytes, and the longest.
const LENGTHS: std::ops::RangeInclusive<usize> = 12..=1024;

/// Checks passwords.
pub(crate) struct Passwords {
    secret: Arc<[u8]>,
    pepper: Pepper,
    /// That of no user, once it is needed: whoever names one that is not there waits as long as for one that is.
    nobody: Arc<OnceLock<Option<String>>>,
    /// Each takes 19 MiB and some hundredth of a second of a processor.
    at_once: Arc<Semaphore>,
    /// Places among those who wait for that, in their order: so somebody who asks over and over on some connections delays
    /// others by as many hashes, and does not lock them out.
    line: Semaphore,
}

/// How many wait at most, and how long.
const LINE: usize = 64;
const WAIT: Duration = Duration::from_secs(5);

impl Passwords {
    pub(crate) fn new(pepper: &Pepper) -> Passwords {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Passwords {
            secret: secret(pepper),
            pepper: pepper.clone(),
            nobody: Arc::default(),
            at_once: Arc::new(Semaphore::new(processors.div_ceil(2))),
            line: Semaphore::new(LINE),
        }
    }

    /// Waits for a place among those who are let in. It is taken before anything is looked up, so that names that were made
    /// up cost no more than they may.
    pub(super) async fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let busy = || Problem::unavailable("too many logins at once").retry(Duration::from_secs(1));
        let _line = self.line.try_acquire().map_err(|_| busy())?;
        let place = tokio::time::timeout(WAIT, self.at_once.clone().acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or_else(busy)
    }

    /// Whether a password is that of this hash; of nobody's, where there is none, never. The place goes into the thread: it is
    /// free when the work is done, and not when the client is gone.
    pub(super) async fn fits(
        &self,
        place: OwnedSemaphorePermit,
        password: String,
        hash: Option<String>,
    ) -> Result<bool, Problem> {
        let (secret, pepper) = (self.secret.clone(), self.pepper.clone());
        let nobody = self.nobody.clone();
        let work = tokio::task::spawn_blocking(move || {
            let _place = place;
            // Made the first time, whoever is named.
            let nobody =
                nobody.get_or_init(|| self::hash(&pepper, "nobody has this password").ok());
            let against = hash.as_deref().or(nobody.as_deref());
            let fits = PasswordHash::new(against.unwrap_or_default()).is_ok_and(|against| {
                argon2(&secret).is_ok_and(|argon2| {
                    argon2.verify_password(password.as_bytes(), &against).is_ok()
                })
            });
            fits && hash.is_some()
        });
        work.await.map_err(|_| Problem::internal("the password could not be checked"))
    }
}

/// What the catalog keeps of a password: Argon2id with the parameters of the crate (19 MiB, two passes), in the PHC format.
///
/// # Errors
/// [`Invalid`](steelyard_base::ErrorKind::Invalid) for one that is too short or too long.
pub(crate) fn hashed(pepper: &Pepper, password: &str) -> Result<String> {
    match LENGTHS.contains(&password.len()) {
        true => hash(pepper, password),
        false => Err(Error::invalid(format!(
            "a password of {} bytes; it must have {} to {}",
            password.len(),
            LENGTHS.start(),
            LENGTHS.end()
        ))),
    }
}

fn hash(pepper: &Pepper, password: &str) -> Result<String> {
    let secret = secret(pepper);
    let hash = argon2(&secret)?.hash_password(password.as_bytes());
    Ok(hash.map_err(|e| Error::invalid(format!("the password cannot be hashed: {e}")))?.to_string())
}

fn secret(pepper: &Pepper) -> Arc<[u8]> {
    Arc::from(&*pepper.sign("password", &[]).finalize().into_bytes())
}

fn argon2(secret: &[u8]) -> Result<Argon2<'_>> {
    Argon2::new_with_secret(secret, Algorithm::Argon2id, Version::default(), Params::default())
        .map_err(|e| Error::invalid(e.to_string()))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_password_fits_its_hash_under_its_secret_alone() {
        let (pepper, another) = (Pepper::fresh().unwrap(), Pepper::fresh().unwrap());
        let kept = hashed(&pepper, "correct horse battery").unwrap();
        assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
        let passwords = Passwords::new(&pepper);
        let fits = async |of: &Passwords, text: &str, hash: Option<&str>| {
            let place = of.enter().await.unwrap();
            of.fits(place, text.to_owned(), hash.map(str::to_owned)).await.unwrap()
        };
        assert!(fits(&passwords, "correct horse battery", Some(&kept)).await);
        assert!(!fits(&passwords, "correct horse batterz", Some(&kept)).await);
        assert!(!fits(&passwords, "correct horse battery", Some("")).await);
        assert!(!fits(&passwords, "nobody has this password", None).await);
        let other = Passwords::new(&another);
        assert!(!fits(&other, "correct horse battery", Some(&kept)).await);
        for length in [0, 11, 1025] {
            assert!(hashed(&pepper, &"x".repeat(length)).is_err(), "{length}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_at_once_and_the_others_in_their_order() {
        let passwords = Passwords::new(&Pepper::fresh().unwrap());
        let all = passwords.at_once.available_permits();
        let mut held = Vec::new();
        for _ in 0..all {
            held.push(passwords.enter().await.unwrap());
        }
        // Nobody leaves.
        assert_eq!(passwords.enter().await.unwrap_err().status().as_u16(), 503);
        let mut first = Box::pin(passwords.enter());
        assert!((&mut first).now_or_never().is_none());
        let mut others: Vec<_> = (1..LINE).map(|_| Box::pin(passwords.enter())).collect();
        assert!(others.iter_mut().all(|other| other.now_or_never().is_none()));
        let busy = passwords.enter().now_or_never().unwrap().unwrap_err();
        assert_eq!(busy.status().as_u16(), 503);
        held.pop();
        let place = first.await.unwrap();
        drop((others, held));
        assert_eq!(passwords.at_once.available_permits(), all - 1);
        assert!(!passwords.fits(place, "x".into(), None).await.unwrap());
        assert_eq!(passwords.at_once.available_permits(), all);
    }
}
