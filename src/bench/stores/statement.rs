//! What a store was sent in a phase, for the page: one operation of each kind, explained and not
//! timed. A store that does not explain itself has nothing to show, which is no error.

use futures_util::future::join_all;

use super::drive::{Op, Stores};
use crate::{
    bench::{results::Statement, workload::Way},
    store::{Explained, Request, Row, Store},
};

/// Of one operation.
pub(super) async fn of(store: &dyn Store, request: Request<'_>) -> Vec<Statement> {
    let explained = store.explain(request).await.ok().flatten();
    explained.map(statement).into_iter().collect()
}

/// Of records that are written in this way, so many at a time.
pub(super) async fn of_load(
    store: &dyn Store,
    way: Way,
    batch: usize,
    rows: &[Row],
) -> Vec<Statement> {
    let first = |n: usize| &rows[..n.min(rows.len())];
    match way {
        Way::Bulk => of(store, Request::Load(first(batch))).await,
        Way::Batches => of(store, Request::Put(first(batch))).await,
        Way::Rows | Way::Transaction => of(store, Request::Put(first(1))).await,
    }
}

/// Of the operations of a phase.
pub(super) async fn of_ops(stores: &Stores, ops: &[Op]) -> Vec<Statement> {
    let mut kinds: Vec<&Op> = Vec::new();
    for op in ops {
        let same = |other: &&Op| std::mem::discriminant(*other) == std::mem::discriminant(op);
        if !kinds.iter().any(same) {
            kinds.push(op);
        }
    }
    let of_kinds = join_all(kinds.into_iter().map(|op| of_op(stores, op))).await;
    let mut all: Vec<Statement> = Vec::new();
    for one in of_kinds.into_iter().flatten() {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

async fn of_op(stores: &Stores, op: &Op) -> Vec<Statement> {
    let table = &*stores.table;
    match op {
        Op::Get(keys) => of(table, Request::Get(keys)).await,
        Op::Find(query, _) => of(table, Request::Find(query)).await,
        Op::Put(row) => of(table, Request::Put(std::slice::from_ref(row))).await,
        Op::Change(key, fields) => {
            let row = Row { key: key.clone(), record: (**fields).clone() };
            let mut both = of(table, Request::Get(std::slice::from_ref(key))).await;
            both.extend(of(table, Request::Put(&[row])).await);
            both
        }
        Op::Relate(relate) => relate.statements(stores).await,
    }
}

fn statement(explained: Explained) -> Statement {
    Statement { text: explained.to_string(), plan: explained.plan }
}
