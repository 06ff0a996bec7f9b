//! The statements that a store was sent in a phase, for the page: of one operation of each sort, explained
//! and not timed. A store that explains nothing has no statements to show, which is no error.

use futures_util::future::join_all;

use super::operation::{Operation, Stores};
use crate::{
    results::Statement,
    store::{Explained, Request, Store},
};

/// Of one operation.
pub(super) async fn of(store: &dyn Store, request: Request<'_>) -> Vec<Statement> {
    let explained = store.explain(request).await.ok().flatten();
    explained.map(statement).into_iter().collect()
}

/// Of the operations of a phase: of one of each sort.
pub(super) async fn of_ops<O: Operation>(stores: &Stores, ops: &[O]) -> Vec<Statement> {
    let mut sorts: Vec<&O> = Vec::new();
    for op in ops {
        if !sorts.iter().any(|other| op.is_like(other)) {
            sorts.push(op);
        }
    }
    let of_sorts = join_all(sorts.into_iter().map(|op| op.statements(stores))).await;
    let mut all: Vec<Statement> = Vec::new();
    for one in of_sorts.into_iter().flatten() {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

fn statement(explained: Explained) -> Statement {
    Statement { text: explained.to_string(), plan: explained.plan }
}
