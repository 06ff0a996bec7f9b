//! `do = "prepare"`: makes the table and its indexes.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    super::{
        expected::Expected,
        turn::{Done, Turn},
    },
    Info, Kind,
};
use crate::{ErrorKind, Result, store::Layout, workload::Phase};

pub(super) const INFO: Info = Info {
    name: "prepare",
    about: "makes the table and its indexes; `load` does it untimed where no phase does",
    options: &[],
    example: "",
    read: |_| Ok(Arc::new(Prepare)),
};

#[derive(Debug)]
struct Prepare;

#[async_trait(?Send)]
impl Kind for Prepare {
    fn about(&self) -> String {
        "The table and its indexes".into()
    }

    fn unit(&self) -> &'static str {
        "tables"
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    fn needs<'a>(&'a self, _: &'a str) -> Vec<&'a str> {
        Vec::new()
    }

    fn units(&self, _: u64, _: &Expected) -> Option<u64> {
        Some(1)
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, _: &Expected) -> Result<Done> {
        turn.make(phase).await
    }
}

impl Turn<'_> {
    /// Makes the table of a phase, without the indexes that its store cannot have.
    pub(in crate::stores) async fn make(&mut self, phase: &Phase) -> Result<Done> {
        let (table, records) = (self.declared(&phase.table)?, self.records(&phase.table)?);
        let store = Arc::clone(self.table(&phase.table)?);
        let layout = records.layout(table, store.shape()).inspect_err(|e| {
            if e.kind() == ErrorKind::Unsupported {
                self.unmade.insert(phase.table.clone(), e.context().to_owned());
            }
        })?;
        let before = self.before();
        let made = store.prepare(&layout).await;
        let done = self.after(before, 1);
        self.prepared.insert(phase.table.clone());
        match made {
            Err(e) if e.kind() == ErrorKind::Unsupported && !layout.indexes.is_empty() => {
                let plain = Layout { indexes: Vec::new(), ..layout };
                store.prepare(&plain).await?;
                self.unindexed.insert(phase.table.clone(), e.context().to_owned());
                Err(e)
            }
            made => made.map(|()| done),
        }
    }
}
