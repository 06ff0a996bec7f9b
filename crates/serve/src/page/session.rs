//! Who has signed in: tokens of links, which are good once, and sessions, which end when nobody uses them.
//!
//! A session holds a key and grants nothing by itself: each request has its key checked as those of programs are. Of tokens
//! and ids there are only hashes here, so finding one takes the same time whichever byte of a guess is right.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::http::{HeaderMap, HeaderValue, header};
use moka::{policy::EvictionPolicy, sync::Cache};
use sha2::{Digest, Sha256};
use steelyard_base::Result;

use crate::{catalog::ApiKey, clock::Clock, random};

/// How long a link can be opened.
const TOKEN: Duration = Duration::from_secs(10 * 60);
/// How long a session is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(12 * 60 * 60);
/// Links that can be opened at once; beyond it the oldest cannot.
const TOKENS: usize = 1000;
/// Sessions at once, and those of one key: who has a key cannot end the sessions of others by signing in again and again.
const SESSIONS: u64 = 10_000;
const OF_A_KEY: usize = 32;

/// The cookie with the id of a session, before the port. Cookies know no ports: two gateways on one host would sign one
/// another's users out.
const COOKIE: &str = "steelyard_session";

type Hash = [u8; 32];

struct Token {
    key: ApiKey,
    until: Duration,
}

struct Session {
    key: ApiKey,
    /// When it was used, in nanoseconds of the clock.
    used: AtomicU64,
}

/// All of them, of one gateway.
pub(crate) struct Sessions {
    clock: Clock,
    tokens: Mutex<HashMap<Hash, Token>>,
    open: Cache<Hash, Arc<Session>>,
    /// The port that is listened on; 0 where there is none.
    port: OnceLock<u16>,
    /// The sessions of each key, the oldest first.
    of_keys: Cache<String, Arc<Mutex<VecDeque<Hash>>>>,
}

impl Sessions {
    pub(crate) fn new(clock: Clock) -> Sessions {
        Sessions {
            clock,
            tokens: Mutex::default(),
            port: OnceLock::new(),
            // A new session takes the place of the one that was used least lately, however often that was used.
            open: Cache::builder()
                .max_capacity(SESSIONS)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_idle(IDLE)
                .build(),
            of_keys: Cache::builder().max_capacity(SESSIONS).time_to_idle(IDLE).build(),
        }
    }

    /// Says which port is listened on.
    pub(crate) fn at(&self, port: u16) {
        // What was said first holds.
        let _ = self.port.set(port);
    }

    /// The name of the cookie of this gateway.
    pub(crate) fn cookie(&self) -> String {
        match self.port.get() {
            None | Some(0) => COOKIE.to_owned(),
            Some(port) => format!("{COOKIE}_{port}"),
        }
    }

    /// A token that signs in whoever shows it first.
    pub(crate) fn token(&self, key: &ApiKey) -> Result<String> {
        let text = random::letters::<32>()?;
        let now = self.clock.now();
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|_, token| token.until > now);
        if tokens.len() >= TOKENS {
            let oldest = tokens.iter().min_by_key(|(_, token)| token.until).map(|(hash, _)| *hash);
            oldest.map(|hash| tokens.remove(&hash));
        }
        tokens.insert(hash(&text), Token { key: key.clone(), until: now + TOKEN });
        Ok(text)
    }

    /// The key of a token, which is then used up.
    pub(super) fn redeem(&self, text: &str) -> Option<ApiKey> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let token = tokens.remove(&hash(text))?;
        (self.clock.now() < token.until).then_some(token.key)
    }

    /// Begins a session, and gives its id.
    pub(super) fn begin(&self, key: ApiKey) -> Result<String> {
        let id = random::letters::<32>()?;
        let hash = hash(&id);
        let own = self.of_keys.get_with(key.prefix().to_owned(), Arc::default);
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        own.push_back(hash);
        if own.len() > OF_A_KEY
            && let Some(oldest) = own.pop_front()
        {
            self.open.invalidate(&oldest);
        }
        self.open.insert(hash, Arc::new(Session { key, used: self.now().into() }));
        Ok(id)
    }

    /// The key of the session that a request belongs to.
    pub(super) fn key(&self, headers: &HeaderMap) -> Option<ApiKey> {
        let hash = hash(self.id(headers)?);
        let session = self.open.get(&hash)?;
        let now = self.now();
        let idle = now.saturating_sub(session.used.fetch_max(now, Ordering::Relaxed));
        if u128::from(idle) >= IDLE.as_nanos() {
            self.open.invalidate(&hash);
            return None;
        }
        Some(session.key.clone())
    }

    /// Ends the session that a request belongs to.
    pub(super) fn end(&self, headers: &HeaderMap) {
        if let Some(id) = self.id(headers) {
            self.open.invalidate(&hash(id));
        }
    }

    /// The id in the cookie of a request. Of two cookies of this name one is not ours, so there is none.
    pub(super) fn id<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let own = self.cookie();
        let given = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = given.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
        let mut ours = pairs.filter(|(name, _)| name.trim() == own).map(|(_, id)| id.trim());
        match (ours.next(), ours.next()) {
            (Some(id), None) if !id.is_empty() => Some(id),
            _ => None,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn hash(text: &str) -> Hash {
    Sha256::digest(text).into()
}

/// The cookie of this name, of a session; without an id, what makes the browser forget it. Behind a proxy that speaks TLS it is not known
/// that it is `tls`.
pub(super) fn cookie(name: &str, id: Option<&str>, tls: bool) -> HeaderValue {
    let (id, age) = id.map_or(("", "; Max-Age=0"), |id| (id, ""));
    let secure = if tls { "; Secure" } else { "" };
    let text = format!("{name}={id}; Path=/; HttpOnly; SameSite=Strict{secure}{age}");
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Pepper;

    fn with(cookie: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(cookie).unwrap())])
    }

    #[test]
    fn a_token_is_good_once_and_for_ten_minutes() {
        let (clock, key) = (Clock::by_hand(), ApiKey::fresh(&Pepper::fresh().unwrap()).unwrap());
        let sessions = Sessions::new(clock.clone());
        let (one, two) = (sessions.token(&key).unwrap(), sessions.token(&key).unwrap());
        clock.advance(TOKEN - Duration::from_nanos(1));
        assert_eq!(sessions.redeem(&one).unwrap().reveal(), key.reveal());
        assert!(sessions.redeem(&one).is_none());
        clock.advance(Duration::from_nanos(1));
        assert!(sessions.redeem(&two).is_none());
        for _ in 0..TOKENS + 5 {
            sessions.token(&key).unwrap();
        }
        assert_eq!(sessions.tokens.lock().unwrap().len(), TOKENS);
    }

    #[test]
    fn a_session_ends_when_it_is_not_used_or_ended() {
        let (clock, key) = (Clock::by_hand(), ApiKey::fresh(&Pepper::fresh().unwrap()).unwrap());
        let sessions = Sessions::new(clock.clone());
        let id = sessions.begin(key.clone()).unwrap();
        let headers = with(&format!("a=b; {COOKIE}={id}"));
        for _ in 0..3 {
            clock.advance(IDLE - Duration::from_nanos(1));
            assert!(sessions.key(&headers).is_some());
        }
        clock.advance(IDLE);
        assert!(sessions.key(&headers).is_none());
        let id = sessions.begin(key).unwrap();
        let headers = with(&format!("{COOKIE}={id}"));
        assert!(sessions.key(&headers).is_some());
        assert!(sessions.key(&with(&format!("{COOKIE}={id}; {COOKIE}=x"))).is_none());
        sessions.end(&headers);
        assert!(sessions.key(&headers).is_none());
    }

    #[test]
    fn a_session_is_one_of_its_port() {
        let key = ApiKey::fresh(&Pepper::fresh().unwrap()).unwrap();
        let sessions = Sessions::new(Clock::by_hand());
        sessions.at(8080);
        let id = sessions.begin(key).unwrap();
        let both = with(&format!("steelyard_session_8081=x; steelyard_session_8080={id}"));
        assert!(sessions.key(&both).is_some());
        assert!(sessions.key(&with(&format!("steelyard_session={id}"))).is_none());
    }

    #[test]
    fn over_tls_a_cookie_goes_over_tls_alone() {
        let of = |tls| cookie(COOKIE, Some("x"), tls).to_str().unwrap().to_owned();
        assert!(of(true).contains("; Secure") && !of(false).contains("Secure"));
    }

    #[test]
    fn who_signs_in_again_and_again_ends_only_sessions_of_the_own_key() {
        let sessions = Sessions::new(Clock::by_hand());
        let begin =
            |key: &ApiKey| with(&format!("{COOKIE}={}", sessions.begin(key.clone()).unwrap()));
        let (a, b) = (
            ApiKey::fresh(&Pepper::fresh().unwrap()).unwrap(),
            ApiKey::fresh(&Pepper::fresh().unwrap()).unwrap(),
        );
        let (first, other) = (begin(&a), begin(&b));
        for _ in 0..OF_A_KEY {
            begin(&a);
        }
        assert!(sessions.key(&first).is_none());
        assert!(sessions.key(&other).is_some());
    }
}
