//! What the catalog says of a key and its tenant, and for how long a process may go by it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use moka::future::Cache;
use steelyard_base::Error;

use crate::{
    catalog::{ApiKey, Catalog, KeyRow, Pepper, Scope, State, TenantRow},
    clock::Clock,
    limits::{Gate, Shares},
    login::Tokens,
    problem::Problem,
};

/// A key and its tenant, as the catalog had them.
#[derive(Debug)]
pub(crate) struct Grant {
    pub prefix: String,
    pub key: KeyRow,
    pub tenant: TenantRow,
    pub shares: Shares,
    /// Until when that holds, by the clock of this process.
    until: Duration,
    /// Somebody is asking the catalog again.
    asked: AtomicBool,
}

impl Grant {
    pub(crate) fn holds(&self, clock: &Clock) -> bool {
        clock.now() < self.until
    }
}

/// Who is asking: made where a key was checked, and nowhere else.
#[derive(Debug, Clone)]
pub(crate) struct Principal(Arc<Grant>);

impl Principal {
    pub(crate) fn grant(&self) -> &Arc<Grant> {
        &self.0
    }

    pub(crate) fn tenant(&self) -> &str {
        &self.0.tenant.name
    }

    /// The part of its key that is no secret.
    pub(crate) fn key(&self) -> &str {
        &self.0.prefix
    }

    pub(crate) fn may_write(&self) -> bool {
        self.0.key.scope == Scope::Write
    }
}

/// Grants by the prefixes of keys, each until its lease runs out.
pub(crate) struct Grants {
    catalog: Arc<Catalog>,
    pepper: Pepper,
    tokens: Arc<Tokens>,
    clock: Clock,
    lease: Duration,
    known: Cache<String, Arc<Grant>>,
    /// Keys that were good.
    seen: moka::sync::Cache<String, ()>,
}

/// So many keys are remembered.
const REMEMBERED: u64 = 10_000;
/// How long a request waits for the catalog.
const PATIENCE: Duration = Duration::from_secs(5);

impl Grants {
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        pepper: Pepper,
        tokens: Arc<Tokens>,
        clock: Clock,
        lease: Duration,
    ) -> Grants {
        Grants {
            catalog,
            pepper,
            tokens,
            clock,
            lease,
            known: Cache::new(REMEMBERED),
            seen: moka::sync::Cache::new(REMEMBERED),
        }
    }

    /// The principal of a key or a token, if it is one and its tenant is there.
    pub(crate) async fn principal(&self, text: &str, gate: &Gate) -> Result<Principal, Problem> {
        let wrong = || Problem::unauthorized("the key is not valid");
        if let Some((user, mark)) = self.tokens.user(text) {
            let grant = self.known(&user, gate).await?;
            // Of this tenant, and of the password that it has now.
            let grant = grant.filter(|grant| self.tokens.mark(&grant.key) == mark);
            return grant.map(Principal).ok_or_else(wrong);
        }
        // A key that was made up costs no lookup.
        let key =
            ApiKey::read(text).filter(|key| key.is_made_by(&self.pepper)).ok_or_else(wrong)?;
        let grant = self.known(key.prefix(), gate).await?.ok_or_else(wrong)?;
        match key.fits(&grant.key, &self.pepper) {
            true => Ok(Principal(grant)),
            false => Err(wrong()),
        }
    }

    /// What holds of a key or a user who is let in, and whose tenant is there.
    pub(crate) async fn known(
        &self,
        prefix: &str,
        gate: &Gate,
    ) -> Result<Option<Arc<Grant>>, Problem> {
        let there = |grant: &Arc<Grant>| grant.tenant.state != State::Removed && !grant.key.revoked;
        Ok(self.grant(prefix, gate).await?.filter(there))
    }

    /// What holds now of a key; none where it is not known.
    pub(super) async fn grant(
        &self,
        prefix: &str,
        gate: &Gate,
    ) -> Result<Option<Arc<Grant>>, Problem> {
        let old = self.known.get(prefix).await;
        match &old {
            Some(grant) if grant.holds(&self.clock) => {
                // For those who come later, while half of the lease is left to those who are here.
                if self.clock.now() + self.lease / 2 >= grant.until
                    && !grant.asked.swap(true, Ordering::Relaxed)
                {
                    self.renew(grant.clone());
                }
                return Ok(old);
            }
            Some(_) => self.known.invalidate(prefix).await,
            // One that was good before is no stranger's, also while the catalog cannot say so.
            None if self.seen.contains_key(prefix) => {}
            None => gate.may_look_up()?,
        }
        // Asked for once, however many requests wait for it.
        let read = async {
            let (key, tenant, until) = self.look_up().of(prefix).await?;
            let shares = gate.shares(&tenant.name, prefix);
            let (prefix, asked) = (prefix.to_owned(), AtomicBool::new(false));
            Ok::<_, Unread>(Arc::new(Grant { prefix, key, tenant, shares, until, asked }))
        };
        let read = self.known.try_get_with(prefix.to_owned(), read);
        match tokio::time::timeout(PATIENCE, read).await {
            Ok(Ok(grant)) => {
                self.seen.insert(prefix.to_owned(), ());
                Ok(Some(grant))
            }
            Ok(Err(unread)) => match &*unread {
                Unread::Absent => Ok(None),
                Unread::Failed(e) => Err(unreadable(e)),
            },
            Err(_) => Err(unreadable(&Error::timeout("the catalog did not answer in time"))),
        }
    }

    /// Asks the catalog again, beside those who still go by what it said. Where it does not answer, that runs out.
    fn renew(&self, old: Arc<Grant>) {
        let (look_up, known) = (self.look_up(), self.known.clone());
        tokio::spawn(async move {
            match look_up.of(&old.prefix).await {
                Ok((key, tenant, until)) => {
                    let (prefix, shares) = (old.prefix.clone(), old.shares.clone());
                    let asked = AtomicBool::new(false);
                    let new = Grant { prefix, key, tenant, shares, until, asked };
                    known.insert(old.prefix.clone(), Arc::new(new)).await;
                }
                Err(Unread::Absent) => known.invalidate(&old.prefix).await,
                Err(Unread::Failed(e)) => {
                    tracing::warn!(target: "gateway", error = e.chain(), "the catalog cannot be read");
                    old.asked.store(false, Ordering::Relaxed);
                }
            }
        });
    }

    fn look_up(&self) -> LookUp {
        let (catalog, clock) = (self.catalog.clone(), self.clock.clone());
        LookUp { catalog, clock, lease: self.lease }
    }
}

/// What the catalog is asked with.
struct LookUp {
    catalog: Arc<Catalog>,
    clock: Clock,
    lease: Duration,
}

impl LookUp {
    /// What the catalog has of a key and its tenant, and until when it holds.
    async fn of(&self, prefix: &str) -> Result<(KeyRow, TenantRow, Duration), Unread> {
        // The lease counts from before the catalog is asked: what it answers was true later than this.
        let until = self.clock.now() + self.lease;
        let key = self.catalog.key(prefix).await?.ok_or(Unread::Absent)?;
        let tenant = self.catalog.tenant(&key.tenant).await?.ok_or(Unread::Absent)?.row;
        Ok((key, tenant, until))
    }
}

fn unreadable(error: &Error) -> Problem {
    Problem::unavailable("the catalog of tenants cannot be read")
        .retry(Duration::from_secs(1))
        .because(error)
}

/// Why there is no grant.
enum Unread {
    Absent,
    Failed(Error),
}

impl From<Error> for Unread {
    fn from(error: Error) -> Unread {
        Unread::Failed(error)
    }
}
