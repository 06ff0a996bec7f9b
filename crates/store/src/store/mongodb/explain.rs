//! The commands of operations, and the server's `explain` of them.

use bson::{Document, doc};

use super::{
    Documents,
    convert::ID,
    filter::{order, translated},
    join::pipeline,
    projection,
    table::{Table, among, in_range},
};
use crate::{
    Result,
    store::{Explained, Key, Query, Request},
};

impl Documents {
    pub(super) async fn explained(&self, request: Request<'_>) -> Result<Option<Explained>> {
        match request {
            Request::Find(query) => self.0.explained(find(&self.0, query)?).await.map(Some),
            Request::Join(join) => {
                let pipeline = pipeline(join)?;
                let command = doc! {"aggregate": self.0.name(), "pipeline": pipeline, "cursor": {}};
                self.0.explained(command).await.map(Some)
            }
            Request::Delete(filter) => {
                let filter = translated(filter)?.filter;
                let deletes = vec![doc! {"q": filter, "limit": 0}];
                let command = doc! {"delete": self.0.name(), "deletes": deletes};
                self.0.explained(command).await.map(Some)
            }
            request => self.0.explained_by_keys(request).await,
        }
    }
}

/// The command of a query.
fn find(table: &Table, query: &Query) -> Result<Document> {
    query.check()?;
    let asked = translated(&query.filter)?;
    let mut command = doc! {"find": table.name(), "filter": asked.filter};
    let order = order(query)?;
    if !order.is_empty() {
        command.insert("sort", order);
    }
    if let Some(limit) = query.limit.filter(|_| asked.exact) {
        command.insert("limit", i64::try_from(limit).unwrap_or(i64::MAX));
    }
    if let Some(fields) = projection(query).filter(|_| asked.exact) {
        command.insert("projection", fields);
    }
    Ok(command)
}

impl Table {
    /// The command of an operation that needs only keys: the same in both layouts.
    pub(super) async fn explained_by_keys(
        &self,
        request: Request<'_>,
    ) -> Result<Option<Explained>> {
        // What is written stands there by its key alone.
        let written = |key: &Key| doc! {ID: key.as_str(), "...": "..."};
        let command = match request {
            Request::Get(keys) => doc! {"find": self.name(), "filter": among(keys)},
            Request::Scan(range) => {
                let ids = in_range(range);
                let filter = if ids.is_empty() {
                    ids
                } else {
                    doc! {ID: ids}
                };
                doc! {"find": self.name(), "filter": filter, "sort": {ID: 1}}
            }
            Request::Put([row, ..]) => {
                let updates =
                    doc! {"q": {ID: row.key.as_str()}, "u": written(&row.key), "upsert": true};
                let command = doc! {"update": self.name(), "updates": [updates]};
                return Ok(Some(Explained::new(command.to_string())));
            }
            Request::Load([row, ..]) => {
                let command = doc! {"insert": self.name(), "documents": [written(&row.key)]};
                return Ok(Some(Explained::new(command.to_string())));
            }
            _ => return Ok(None),
        };
        self.explained(command).await.map(Some)
    }

    async fn explained(&self, command: Document) -> Result<Explained> {
        let statement = command.to_string();
        let answer = self.ask(doc! {"explain": command, "verbosity": "queryPlanner"}).await;
        // A server that does not explain such a command answers it all the same.
        let plan = answer.ok().map(|answer| {
            let planner = answer.get_document("queryPlanner").ok();
            let plan = planner.and_then(|planner| planner.get_document("winningPlan").ok());
            format!("{:#}", plan.or(planner).unwrap_or(&answer))
        });
        Ok(Explained { plan, ..Explained::new(statement) })
    }
}
