//! Before anything is timed: what a store keeps of the records (rule 1), and what it says of itself.

use std::sync::Arc;

use super::{data::Records, ops, target::Target};
use crate::{
    Result,
    bench::{
        results::{Durability, Kept, Proof},
        workload::Table,
    },
    record::{Document, Kind},
    store::{Place, Shape, Store, difference, in_columns},
};

/// How many records are tried.
const TRIED: u64 = 200;

/// Writes a sample of records into a table of its own, reads it back, compares, and drops the table.
///
/// # Errors
/// Those of the store, but for records it refuses.
pub(super) async fn proof(
    store: &Arc<dyn Store>,
    table: &Table,
    records: &Records,
) -> Result<Proof> {
    let layout = records.layout(&Table { index: Vec::new(), ..table.clone() }, store.shape())?;
    store.prepare(&layout).await?;
    let step = (records.count / TRIED).max(1);
    let mut proof = Proof { declared: store.abilities().loses.to_owned(), ..Proof::default() };
    let mut rows = Vec::new();
    for n in (0..records.count).step_by(step as usize).take(TRIED as usize) {
        let row = records.row(n)?;
        proof.records += 1;
        match store.check(&row) {
            Ok(()) => rows.push(row),
            Err(e) => {
                proof.refused += 1;
                proof.first.get_or_insert_with(|| format!("record {}: {}", n + 1, e.context()));
            }
        }
    }
    store.put(&rows).await?;
    let read = store.get(&ops::keys(&rows)).await?;
    for (row, read) in rows.iter().zip(read) {
        let kept = match store.shape() {
            Shape::Columns => in_columns(&row.record, &layout.columns),
            Shape::Document | Shape::Blob => row.record.clone(),
        };
        match changed(&kept, read) {
            None => proof.equal += 1,
            Some(what) => {
                let key = row.key.shown();
                proof.first.get_or_insert_with(|| format!("record {key}: {what}"));
            }
        }
    }
    store.drop_table().await?;
    Ok(proof)
}

/// What is different from what was written.
fn changed(kept: &Document, read: Option<Document>) -> Option<String> {
    match read {
        None => Some("it did not come back".into()),
        Some(read) => difference(kept, &read, &Kind::ALL),
    }
}

/// What a store says of itself.
///
/// # Errors
/// Those of the store.
pub(super) async fn kept(target: &Target, place: &Place) -> Result<Kept> {
    let said = place.describe().await?;
    let asked = target.tier().or(said.asked);
    let set = said.set;
    let broken = asked.zip(set).is_some_and(|(asked, set)| asked != set);
    let remark = broken.then(|| "its settings give another tier than was asked for".to_owned());
    Ok(Kept {
        // Where a run's own folder, server or database was says nothing to anybody after it.
        url: target.label.clone(),
        product: said.product,
        version: said.version,
        server: target.program().map(|program| program.name.to_owned()),
        connection: target.connection().to_owned(),
        layout: said.shape.to_string(),
        format: said.format,
        durability: Durability {
            asked: asked.map(|tier| tier.to_string()),
            set: set.map(|tier| tier.to_string()),
            syncs: None,
            remark,
            broken,
        },
        settings: said.settings.into_iter().collect(),
        disk: Vec::new(),
    })
}
