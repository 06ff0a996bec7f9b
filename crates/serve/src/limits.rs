//! Limits of requests: how many a second (by the generic cell rate algorithm), and how many at once.
//!
//! All of it is keyed on the tenant and key that were authenticated, never on what a client says of itself, and the maps
//! are bounded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use moka::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{clock::Clock, config::Limits, problem::Problem};

/// In nanoseconds: no rate is slower than one request a day.
const DAY: u64 = 86_400_000_000_000;

/// A rate, by GCRA (ATM Forum, Traffic Management 4.0, section 4.4.2): exact, in one word of memory.
#[derive(Debug)]
pub(crate) struct Rate {
    /// The theoretical arrival time of the next request, in nanoseconds of the clock.
    next: AtomicU64,
}

impl Rate {
    pub(crate) fn new() -> Rate {
        Rate { next: AtomicU64::new(0) }
    }

    /// Takes one of `per_second` requests, of which `burst` may come at once; else says how long to wait.
    pub(crate) fn take(&self, now: Duration, per_second: f64, burst: u32) -> Result<(), Duration> {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        // The rate is checked to be at least one request a day.
        let each = ((1e9 / per_second) as u64).min(DAY);
        let tolerance = each.saturating_mul(u64::from(burst.max(1)) - 1);
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let from = next.max(now);
            if from - now > tolerance {
                return Err(Duration::from_nanos(from - now - tolerance));
            }
            match self.next.compare_exchange_weak(
                next,
                from.saturating_add(each),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(other) => next = other,
            }
        }
    }
}

/// What one tenant, or one key, takes of the whole.
#[derive(Debug)]
struct Share {
    rate: Rate,
    at_once: Arc<Semaphore>,
}

/// What a tenant and one of its keys share among their requests; kept with what the catalog says of them, so that a request
/// looks for it once.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    key: Arc<Rate>,
    tenant: Arc<Share>,
}

/// What is counted while a request is answered, until the end of its body.
#[derive(Debug)]
pub(crate) struct Permit {
    _whole: OwnedSemaphorePermit,
    _tenant: Option<OwnedSemaphorePermit>,
}

/// The limits of all requests.
pub(crate) struct Gate {
    clock: Clock,
    limits: Limits,
    whole: Arc<Semaphore>,
    tenants: Cache<String, Arc<Share>>,
    keys: Cache<String, Arc<Rate>>,
    /// Requests whose key is not known: each costs a lookup in the catalog.
    strangers: Rate,
}

/// Of so many tenants and keys the rates are remembered; of others a burst may come again.
const REMEMBERED: u64 = 100_000;
/// Unknown keys a second that are looked up.
const STRANGERS: f64 = 100.0;

impl Gate {
    pub(crate) fn new(clock: Clock, limits: Limits) -> Gate {
        Gate {
            clock,
            whole: Arc::new(Semaphore::new(limits.requests_at_once)),
            tenants: Cache::new(REMEMBERED),
            keys: Cache::new(REMEMBERED),
            strangers: Rate::new(),
            limits,
        }
    }

    /// A place among all requests.
    pub(crate) fn enter(&self) -> Result<Permit, Problem> {
        match self.whole.clone().try_acquire_owned() {
            Ok(whole) => Ok(Permit { _whole: whole, _tenant: None }),
            Err(_) => Err(Problem::unavailable("the gateway is at its limit of requests at once")
                .retry(Duration::from_secs(1))),
        }
    }

    /// What a tenant and one of its keys share among their requests.
    pub(crate) fn shares(&self, tenant: &str, key: &str) -> Shares {
        let new = || {
            Arc::new(Share {
                rate: Rate::new(),
                at_once: Arc::new(Semaphore::new(self.limits.tenant_at_once)),
            })
        };
        Shares {
            key: self.keys.get_with(format!("{tenant}/{key}"), || Arc::new(Rate::new())),
            tenant: self.tenants.get_with(tenant.to_owned(), new),
        }
    }

    /// A place among those of a tenant, and one of the requests that tenant and key have in a second.
    pub(crate) fn admit(
        &self,
        permit: &mut Permit,
        shares: &Shares,
        rate: f64,
    ) -> Result<(), Problem> {
        let now = self.clock.now();
        let wait = |after: Duration, whose: &str| {
            Problem::too_many(format!("more than {rate} requests a second of this {whose}"))
                .retry(after)
        };
        let burst = self.burst(rate);
        // A key takes its share first, so that one that floods does not use up what its tenant's other keys have.
        shares.key.take(now, rate, burst).map_err(|after| wait(after, "key"))?;
        shares.tenant.rate.take(now, rate, burst).map_err(|after| wait(after, "tenant"))?;
        let at_once = shares.tenant.at_once.clone().try_acquire_owned();
        permit._tenant = Some(at_once.map_err(|_| {
            Problem::too_many(format!(
                "more than {} requests of this tenant at once",
                self.limits.tenant_at_once
            ))
            .retry(Duration::from_secs(1))
        })?);
        Ok(())
    }

    /// Whether a key that is not known may be looked up.
    pub(crate) fn may_look_up(&self) -> Result<(), Problem> {
        self.strangers
            .take(self.clock.now(), STRANGERS, STRANGERS as u32)
            .map_err(|after| Problem::too_many("too many requests with unknown keys").retry(after))
    }

    /// A second's worth may come at once.
    fn burst(&self, rate: f64) -> u32 {
        rate.ceil().clamp(1.0, f64::from(u32::MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_exactly_its_requests_whatever_the_burst() {
        for (rate, burst) in [(10.0, 1), (10.0, 10), (1000.0, 100), (0.5, 1)] {
            let (limit, mut taken) = (Rate::new(), 0_u32);
            let seconds = 20;
            // Somebody who asks every millisecond.
            for ms in 0..seconds * 1000 {
                let now = Duration::from_secs(5) + Duration::from_millis(ms);
                taken += u32::from(limit.take(now, rate, burst).is_ok());
            }
            let fair = (f64::from(u32::try_from(seconds).unwrap()) * rate) as u32;
            assert!(
                (fair..=fair + burst).contains(&taken),
                "{taken} for {rate} a second, {burst} at once"
            );
        }
    }

    #[test]
    fn what_is_told_to_wait_is_enough_and_not_too_much() {
        let limit = Rate::new();
        let now = Duration::from_secs(9);
        for _ in 0..5 {
            limit.take(now, 10.0, 5).unwrap();
        }
        let wait = limit.take(now, 10.0, 5).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert!(limit.take(now + wait - Duration::from_nanos(1), 10.0, 5).is_err());
        assert!(limit.take(now + wait, 10.0, 5).is_ok());
    }
}
