//! Moves a tenant to another shard while gateways serve it. The protocol, and what it was checked against, is in
//! docs/moving.md; each step here is one of it.

use std::time::Duration;

use steelyard_base::{Error, ErrorKind, Result};

use super::{Tenants, database::Database, transfer};
use crate::{
    catalog::{Abandoned, DatabaseId, Kept, State, TenantRow},
    config::TenantLayout,
    gateway::shard,
    names::TenantName,
    random,
};

/// What to do about a tenant that is, or is not, being moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Course {
    /// Begin.
    Begin,
    /// Go on with a move whose mover ended before it was done.
    Resume,
    /// Give such a move up: the tenant is served where it was.
    Back,
}

/// What a move did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// Records that were copied, those of the gateway's own tables among them.
    pub records: u64,
    /// Databases that could not be dropped; the next move of this tenant tries again.
    pub left: Vec<String>,
}

impl Tenants {
    /// Moves a tenant to another shard; the one that was named before, where none is named. It is neither read nor written meanwhile: for a lease and for the copy. `wait` is
    /// called for the lease.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where the tenant is not in the state that the course begins from, or somebody else
    /// takes the move over; of the stores. Unless it is a conflict, the move can be resumed or given up.
    pub async fn move_to(
        &self,
        name: &TenantName,
        to: Option<&str>,
        course: Course,
        wait: impl AsyncFn(Duration),
    ) -> Result<Moved> {
        let old = self.catalog.known(name).await?;
        // A move that was begun says where it goes.
        let to = match (to, &old.row.state) {
            (Some(to), _) => to.to_owned(),
            (None, State::Moving { shard, .. }) => shard.clone(),
            (None, _) => old.row.shard.clone(),
        };
        let moved = match course {
            Course::Back => self.back(&old).await?,
            Course::Begin | Course::Resume => {
                let row = self.claim(&old, &to, course).await?;
                // Every lease on the old place that there is now has then run out.
                wait(self.config.lease() + self.config.lease() / 50 + Duration::from_millis(10))
                    .await;
                match self.carry(name, &row).await {
                    // Somebody else has it now.
                    Err(e) if e.kind() == ErrorKind::Conflict => return Err(e),
                    Err(e) => return Err(self.given_up(name, &row, e).await),
                    Ok(records) => records,
                }
            }
        };
        let left = self.drop_abandoned(name).await?;
        Ok(Moved { records: moved, left })
    }

    /// Step 1: the row says that the tenant is being moved, by this run, to a database of this run alone.
    async fn claim(&self, old: &Kept<TenantRow>, to: &str, course: Course) -> Result<TenantRow> {
        let target = shard(&self.config, to)?;
        let row = &old.row;
        let conflict = |what: String| Error::new(ErrorKind::Conflict, what);
        let mut abandoned = row.abandoned.clone();
        match (&row.state, course) {
            (State::Active, Course::Begin) if row.shard == to => {
                return Err(Error::invalid(format!(
                    "tenant {:?} is on shard {to:?} already",
                    row.name
                )));
            }
            (State::Active, Course::Begin) => {}
            (State::Moving { shard, database, .. }, Course::Resume) if shard == to => {
                abandoned.push(Abandoned { shard: shard.clone(), database: database.clone() });
            }
            (State::Moving { shard, .. }, Course::Resume) => {
                return Err(conflict(format!(
                    "tenant {:?} is on its way to shard {shard:?}",
                    row.name
                )));
            }
            (State::Moving { shard, .. }, _) => {
                let what = format!("tenant {:?} is on its way to shard {shard:?}", row.name);
                return Err(conflict(what)
                    .with_hint("if nobody is moving it any more: --resume, or --back"));
            }
            (State::Active, _) => {
                return Err(conflict(format!("tenant {:?} is not being moved", row.name)));
            }
            (State::Frozen, _) => {
                return Err(conflict(format!("tenant {:?} is frozen; thaw it first", row.name)));
            }
            (State::Removed, _) => {
                return Err(conflict(format!("tenant {:?} was removed", row.name)));
            }
        }
        if target.layout == TenantLayout::Whole
            || shard(&self.config, &row.shard)?.layout == TenantLayout::Whole
        {
            return Err(Error::unsupported(
                "a shard of layout \"whole\" is one tenant's place: copy it with `copy`",
            ));
        }
        if target.layout == TenantLayout::Shared && row.limits.bytes.is_some_and(|most| most > 0) {
            let what = format!(
                "tenant {:?} has a limit of bytes, which cannot be told in the layout \"shared\"",
                row.name
            );
            let hint = format!("steelyard tenant limit {} --bytes default", row.name);
            return Err(Error::unsupported(what).with_hint(hint));
        }
        let state = State::Moving {
            mover: random::hex::<16>()?,
            shard: to.to_owned(),
            database: DatabaseId::fresh()?,
        };
        let new = TenantRow { state, abandoned, epoch: row.epoch + 1, ..row.clone() };
        self.catalog.change(old, &new).await?;
        Ok(new)
    }

    /// Steps 3 to 5: copies and compares, and makes the copy the tenant's database if the move is still this run's.
    async fn carry(&self, name: &TenantName, claimed: &TenantRow) -> Result<u64> {
        let State::Moving { shard: to, database, .. } = &claimed.state else {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("tenant {:?} is not being moved", claimed.name),
            ));
        };
        let (source, target) = (shard(&self.config, &claimed.shard)?, shard(&self.config, to)?);
        Database::create(&self.pools, target, database).await?;
        let source = Database::open(&self.pools, source, &claimed.database).await?;
        let target = Database::open(&self.pools, target, database).await?;
        let tally = transfer::copy(&source, &target, &self.config.layouts()?).await?;
        let now = self.catalog.known(name).await?;
        if now.row.state != claimed.state {
            let what = format!("somebody else took over the move of tenant {:?}", claimed.name);
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        let mut abandoned = now.row.abandoned.clone();
        abandoned
            .push(Abandoned { shard: claimed.shard.clone(), database: claimed.database.clone() });
        let new = TenantRow {
            shard: to.clone(),
            database: database.clone(),
            state: State::Active,
            epoch: now.row.epoch + 1,
            abandoned,
            ..now.row.clone()
        };
        self.catalog.change(&now, &new).await?;
        Ok(tally.records)
    }

    /// Gives up a move that cannot be finished: the tenant is served where it was. Gives the error to tell.
    async fn given_up(&self, name: &TenantName, claimed: &TenantRow, error: Error) -> Error {
        // The last swap may have been done, though its answer did not come: then it is not this run's to take back.
        let back = async {
            let now = self.catalog.known(name).await?;
            if now.row.state != claimed.state {
                return Ok(now.row.shard);
            }
            self.back(&now).await?;
            self.drop_abandoned(name).await?;
            Ok::<_, Error>(now.row.shard)
        };
        let (what, hint) = match back.await {
            Ok(on) if on == claimed.shard => {
                ("was not moved, and is served where it was".to_owned(), None)
            }
            Ok(on) => (format!("is on shard {on:?}, though the move failed"), None),
            Err(e) => {
                let hint = format!(
                    "{}; then: steelyard tenant move {name} --resume, or --back",
                    e.reason()
                );
                ("is still being moved".to_owned(), Some(hint))
            }
        };
        let told = Error::new(
            error.kind(),
            format!("tenant {:?} {what}: {}", claimed.name, error.reason()),
        );
        let told = told.with_source(error);
        match hint {
            Some(hint) => told.with_hint(hint),
            None => told,
        }
    }

    /// Gives a move up.
    async fn back(&self, old: &Kept<TenantRow>) -> Result<u64> {
        let State::Moving { shard, database, .. } = &old.row.state else {
            let what = format!("tenant {:?} is not being moved", old.row.name);
            return Err(Error::new(ErrorKind::Conflict, what));
        };
        let mut abandoned = old.row.abandoned.clone();
        abandoned.push(Abandoned { shard: shard.clone(), database: database.clone() });
        let new = TenantRow {
            state: State::Active,
            epoch: old.row.epoch + 1,
            abandoned,
            ..old.row.clone()
        };
        self.catalog.change(old, &new).await?;
        Ok(0)
    }

    /// Step 6: drops the databases that are the tenant's no more, and says which are still there.
    async fn drop_abandoned(&self, name: &TenantName) -> Result<Vec<String>> {
        let old = self.catalog.known(name).await?;
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        for gone in &old.row.abandoned {
            let dropped = match shard(&self.config, &gone.shard) {
                Ok(shard) => Database::remove(&self.pools, shard, &gone.database).await,
                Err(e) => Err(e),
            };
            match dropped {
                Ok(()) => {}
                // Dropped before, or never made.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => {
                    left.push(format!("{} on shard {}: {}", gone.database, gone.shard, e.chain()));
                    kept.push(gone.clone());
                }
            }
        }
        if kept.len() < old.row.abandoned.len() {
            let new = TenantRow { abandoned: kept, ..old.row.clone() };
            match self.catalog.change(&old, &new).await {
                // Somebody moves it again, and drops them too.
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                done => done?,
            }
        }
        Ok(left)
    }
}
