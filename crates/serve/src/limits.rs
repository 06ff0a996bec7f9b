//! Limits of requests: how many a second (by the generic cell rate algorithm), how many at once, and how many bytes.
//!
//! What is shared by all is never one tenant's: of places and of bytes a tenant may have as many as are free, so that what is
//! left to others halves at worst, whoever asks how much (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on
//! Networking 6, 1998). Whoever is refused again and again is answered late, as refusing takes processor time as well.
//!
//! All of it is keyed on the tenant and key that were authenticated, never on what a client says of itself, and the maps
//! are bounded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use moka::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    clock::Clock,
    config::Limits,
    problem::Problem,
    tally::{Counts, Tally},
};

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

    /// Takes one however many were taken, and says how long it is until its turn: `most` at most.
    fn turn(&self, now: Duration, per_second: f64, burst: u32, most: Duration) -> Duration {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        let each = ((1e9 / per_second) as u64).min(DAY);
        let tolerance = each.saturating_mul(u64::from(burst.max(1)) - 1);
        let end = now.saturating_add(tolerance).saturating_add(most);
        let next = |next: u64| Some(next.max(now).saturating_add(each).min(end));
        // It is never `None`, so this is what was there before.
        let before = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let from = before.unwrap_or_else(|same| same).max(now);
        Duration::from_nanos((from - now).saturating_sub(tolerance).min(most))
    }
}

/// What one tenant, or one key, takes of the whole.
#[derive(Debug)]
struct Share {
    rate: Rate,
    at_once: Arc<Semaphore>,
    /// Requests that were refused.
    refused: Rate,
    /// Bytes of bodies that are in memory.
    bytes: AtomicUsize,
    tally: Tally,
    /// Parts of streams that are being made.
    making: Arc<Semaphore>,
    /// Work on stores that are in this process: all processors but one, where there are several, are one tenant's at most.
    work: Arc<Semaphore>,
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
    processors: usize,
    /// Whose request was the last, as an address, and until when (in nanoseconds of the clock) several tenants are asking.
    last: AtomicUsize,
    mixed: AtomicU64,
    tenants: Cache<String, Arc<Share>>,
    keys: Cache<String, Arc<Rate>>,
    /// Requests whose key is not known: each costs a lookup in the catalog.
    strangers: Rate,
    /// Requests without a valid key.
    refused: Rate,
    /// Bytes of bodies that are in memory.
    bytes: Arc<AtomicUsize>,
}

/// Of so many tenants and keys the rates are remembered; of others a burst may come again.
const REMEMBERED: u64 = 100_000;
/// Unknown keys a second that are looked up. Most that were made up are known for that without (`ApiKey::is_made_by`), so
/// these are good ones: after a start, those of all who ask.
const STRANGERS: f64 = 5000.0;
/// Refusals a second that are answered at once: to one tenant, and to all who have no valid key.
const REFUSALS: f64 = 100.0;
const REFUSALS_OF_STRANGERS: f64 = 1000.0;
/// Parts of a tenant's streams that are made at once: until it is known how many bytes they have, nothing else bounds them.
const MAKING: usize = 2;
/// After so many nanoseconds without a request of another, a tenant is alone.
const ALONE: u64 = 1_000_000_000;
/// How long one is held back at most.
const HELD: Duration = Duration::from_secs(1);

impl Gate {
    pub(crate) fn new(clock: Clock, limits: Limits) -> Gate {
        Gate {
            clock,
            whole: Arc::new(Semaphore::new(limits.requests_at_once)),
            processors: thread::available_parallelism().map_or(1, |all| (all.get() - 1).max(1)),
            last: AtomicUsize::new(0),
            mixed: AtomicU64::new(0),
            tenants: Cache::new(REMEMBERED),
            keys: Cache::new(REMEMBERED),
            strangers: Rate::new(),
            refused: Rate::new(),
            bytes: Arc::default(),
            limits,
        }
    }

    /// Waits until work of a tenant may use a processor of this process: others of its requests wait behind it, and those of
    /// other tenants do not. Where no other tenant is asking, nobody waits.
    pub(crate) async fn turn(&self, shares: &Shares) -> Option<OwnedSemaphorePermit> {
        match self.nanos() < self.mixed.load(Ordering::Relaxed) {
            // It is never closed.
            true => shares.tenant.work.clone().acquire_owned().await.ok(),
            false => None,
        }
    }

    /// Waits until a tenant may make one more part of a stream; it ends when its bytes are counted.
    pub(crate) async fn making(&self, shares: &Shares) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        shares.tenant.making.clone().acquire_owned().await.ok()
    }

    /// Notes that a tenant is asking: whether others are.
    fn heard(&self, shares: &Shares) {
        let own = Arc::as_ptr(&shares.tenant) as usize;
        let before = self.last.swap(own, Ordering::Relaxed);
        if before != own && before != 0 {
            self.mixed.store(self.nanos() + ALONE, Ordering::Relaxed);
        }
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX / 2)
    }

    /// Requests, and bytes of bodies, at this moment.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        let requests = self.limits.requests_at_once - self.whole.available_permits();
        (requests, self.bytes.load(Ordering::Relaxed))
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
                refused: Rate::new(),
                bytes: AtomicUsize::new(0),
                tally: Tally::default(),
                making: Arc::new(Semaphore::new(MAKING)),
                work: Arc::new(Semaphore::new(self.processors)),
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
        self.let_pass(permit, shares, rate).map_err(|problem| {
            let refused = &shares.tenant.refused;
            problem.held(refused.turn(self.clock.now(), REFUSALS, REFUSALS as u32, HELD))
        })
    }

    /// The problem of somebody who has no valid key.
    pub(crate) fn stranger(&self, problem: Problem) -> Problem {
        let (now, rate) = (self.clock.now(), REFUSALS_OF_STRANGERS);
        problem.held(self.refused.turn(now, rate, rate as u32, HELD))
    }

    fn let_pass(&self, permit: &mut Permit, shares: &Shares, rate: f64) -> Result<(), Problem> {
        let now = self.clock.now();
        let wait = |after: Duration, whose: &str| {
            Problem::too_many(format!("more than {rate} requests a second of this {whose}"))
                .retry(after)
        };
        let burst = self.burst(rate);
        // A key takes its share first, so that one that floods does not use up what its tenant's other keys have.
        shares.key.take(now, rate, burst).map_err(|after| wait(after, "key"))?;
        shares.tenant.rate.take(now, rate, burst).map_err(|after| wait(after, "tenant"))?;
        let at_once = shares.tenant.at_once.clone();
        let used = self.limits.tenant_at_once.saturating_sub(at_once.available_permits());
        // Its own place is taken already.
        if used > self.whole.available_permits() {
            let what =
                "the gateway is busy, and this tenant has its fair share of the requests at once";
            return Err(Problem::too_many(what).retry(Duration::from_secs(1)));
        }
        self.heard(shares);
        let at_once = at_once.try_acquire_owned();
        permit._tenant = Some(at_once.map_err(|_| {
            Problem::too_many(format!(
                "more than {} requests of this tenant at once",
                self.limits.tenant_at_once
            ))
            .retry(Duration::from_secs(1))
        })?);
        Ok(())
    }

    /// What a request of a tenant has in memory of bodies: nothing yet.
    pub(crate) fn weight(&self, shares: &Shares) -> Weight {
        let most = self.limits.bodies_bytes;
        Weight { all: self.bytes.clone(), tenant: shares.tenant.clone(), own: 0, most }
    }

    /// Notes how a request was answered.
    pub(crate) fn answered(&self, shares: &Shares, status: u16) {
        shares.tenant.tally.answered(status, self.clock.now());
    }

    /// What a tenant asked since the start of the process.
    pub(crate) fn counts(&self, tenant: &str) -> Counts {
        let share = self.tenants.get(tenant);
        share.map_or_else(Counts::default, |share| share.tally.counts(self.clock.now()))
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

/// Bytes of bodies that a request has in memory. They are given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Weight {
    all: Arc<AtomicUsize>,
    tenant: Arc<Share>,
    own: usize,
    most: usize,
}

impl Weight {
    /// So many bytes more.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Problem> {
        let all = self.all.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let of_tenant = self.tenant.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.own += bytes;
        match of_tenant <= self.most.saturating_sub(all) {
            true => Ok(()),
            false => {
                let what = "too many large requests at once; this one was not done";
                Err(Problem::unavailable(what).retry(Duration::from_secs(1)))
            }
        }
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
        self.tenant.bytes.fetch_sub(self.own, Ordering::Relaxed);
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

    fn gate(limits: Limits) -> (Gate, Clock) {
        let clock = Clock::by_hand();
        (Gate::new(clock.clone(), limits), clock)
    }

    /// So many tenants that each ask for all they can get.
    #[test]
    fn however_many_flood_there_is_a_place_for_one_more() {
        for floods in 1..40 {
            let (gate, _) = gate(Limits { requests_per_second: 1e6, ..Limits::default() });
            let mut held: Vec<Vec<Permit>> = (0..floods).map(|_| Vec::new()).collect();
            // In turns, until nobody gets any more.
            for _ in 0..100 {
                for (tenant, held) in held.iter_mut().enumerate() {
                    let shares = gate.shares(&format!("flood-{tenant}"), "k");
                    let Ok(mut permit) = gate.enter() else { continue };
                    if gate.admit(&mut permit, &shares, 1e6).is_ok() {
                        held.push(permit);
                    }
                }
            }
            let shares = gate.shares("quiet", "k");
            let mut permit = gate.enter().unwrap();
            assert!(gate.admit(&mut permit, &shares, 1e6).is_ok(), "beside {floods}");
            let counts: Vec<usize> = held.iter().map(Vec::len).collect();
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{floods} unlike shares: {counts:?}");
            // All it may have where there is room.
            assert!(floods > 2 || *least == 64, "{counts:?}");
        }
    }

    #[test]
    fn whoever_is_refused_again_and_again_waits_and_nobody_else_does() {
        let (gate, clock) = gate(Limits { requests_per_second: 1.0, ..Limits::default() });
        let (flood, quiet) = (gate.shares("flood", "k"), gate.shares("quiet", "k"));
        let refused = |shares: &Shares| {
            let mut permit = gate.enter().unwrap();
            gate.admit(&mut permit, shares, 1.0).unwrap_err().hold
        };
        for shares in [&flood, &quiet] {
            gate.admit(&mut gate.enter().unwrap(), shares, 1.0).unwrap();
        }
        let holds: Vec<Duration> = (0..1000).map(|_| refused(&flood)).collect();
        assert!(holds[..100].iter().all(Duration::is_zero), "{:?}", holds[99]);
        assert_eq!(holds[109], Duration::from_millis(100));
        assert_eq!((holds[250], holds[999]), (HELD, HELD));
        assert_eq!(refused(&quiet), Duration::ZERO);
        // Those that were held back do not count for ever.
        clock.advance(Duration::from_secs(3));
        gate.admit(&mut gate.enter().unwrap(), &flood, 1.0).unwrap();
        assert_eq!(refused(&flood), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_tenant_has_all_processors_while_it_is_alone() {
        let (gate, clock) = gate(Limits { requests_per_second: 1e6, ..Limits::default() });
        let (flood, quiet) = (gate.shares("flood", "k"), gate.shares("quiet", "k"));
        let ask = |shares: &Shares| gate.admit(&mut gate.enter().unwrap(), shares, 1e6).unwrap();
        ask(&flood);
        ask(&flood);
        assert!(gate.turn(&flood).await.is_none(), "nobody else is asking");
        ask(&quiet);
        ask(&flood);
        let mut turns = Vec::new();
        for _ in 0..gate.processors {
            turns.push(gate.turn(&flood).await.expect("a turn"));
        }
        let more = gate.turn(&flood);
        assert!(tokio::time::timeout(Duration::ZERO, more).await.is_err(), "more than its turns");
        assert!(gate.turn(&quiet).await.is_some());
        clock.advance(Duration::from_nanos(ALONE));
        assert!(gate.turn(&flood).await.is_none(), "alone again");
    }

    #[test]
    fn bytes_are_shared_as_places_are_and_given_back() {
        let (gate, _) = gate(Limits { bodies_bytes: 1000, ..Limits::default() });
        let (a, b) = (gate.shares("a", "k"), gate.shares("b", "k"));
        let mut first = gate.weight(&a);
        first.add(500).unwrap();
        let mut second = gate.weight(&a);
        assert!(second.add(1).is_err());
        drop(second);
        let mut other = gate.weight(&b);
        other.add(250).unwrap();
        assert!(other.add(1).is_err());
        drop((first, other));
        assert_eq!(gate.bytes.load(Ordering::Relaxed), 0);
        gate.weight(&a).add(500).unwrap();
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
