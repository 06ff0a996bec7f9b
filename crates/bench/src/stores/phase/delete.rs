//! `do = "delete"`: deletes the records that fit, by one operation.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    super::{
        expected::{Counts, Expected},
        turn::{Done, Turn},
    },
    Info, Kind, fields,
};
use crate::{
    Result,
    store::{Filter, Query, Request, query::Path},
    workload::{Phase, missing},
};

pub(super) const INFO: Info = Info {
    name: "delete",
    about: "deletes all records that fit, by one operation",
    options: &[("where", "which records")],
    example: "where = \"age>=90\"",
    read: |options| {
        let filter = options.filter()?.ok_or_else(|| missing("where"))?;
        Ok(Arc::new(Delete { filter }))
    },
};

#[derive(Debug)]
struct Delete {
    filter: Filter,
}

#[async_trait(?Send)]
impl Kind for Delete {
    fn about(&self) -> String {
        "All that fits deleted, counted before and after".into()
    }

    fn unit(&self) -> &'static str {
        "records"
    }

    fn reads(&self) -> Vec<Path> {
        fields(&self.filter)
    }

    fn deletes(&self) -> Option<&Filter> {
        Some(&self.filter)
    }

    fn expected(&self, counts: &Counts<'_>) -> Expected {
        Expected::Records(counts.fitting(&self.filter).count() as u64)
    }

    fn units(&self, _: u64, expected: &Expected) -> Option<u64> {
        expected.records()
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, expected: &Expected) -> Result<Done> {
        let store = Arc::clone(turn.table(&phase.table)?);
        let count = store.count().await?;
        let statements = turn.explained(&*store, Request::Delete(&self.filter)).await;
        let before = turn.before();
        let deleted = store.delete(&self.filter).await?;
        let mut done = turn.after(before, turn.or_null(deleted, expected));
        done.statements = statements;
        turn.agree("records were deleted", deleted, expected)?;
        let left = store.count().await?;
        turn.same("records are left", left, count.saturating_sub(deleted))?;
        turn.there.insert(phase.table.clone(), left);
        let query = Query::new(self.filter.clone());
        turn.deleted(&phase.table, &query).await?;
        turn.gone.push((phase.table.clone(), query));
        Ok(done)
    }
}
