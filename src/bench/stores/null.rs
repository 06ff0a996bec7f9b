//! The competitor that keeps nothing: what the harness itself costs (rule 11).

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use crate::{
    Result,
    record::{Document, Kind},
    store::{
        Abilities, Description, Filter, Key, KeyRange, Layout, Query, Row, Rows, Shape, Store,
    },
};

/// A store that says yes to everything.
#[derive(Debug, Clone, Copy)]
pub(super) struct Null;

const ABILITIES: Abilities = Abilities {
    driver: "null",
    keeps: &Kind::ALL,
    loses: "",
    cannot: &[],
    joins: true,
    atomic: true,
    ordered: true,
    max_key: usize::MAX,
    max_record: usize::MAX,
};

#[async_trait]
impl Store for Null {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn table(&self, _: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Null))
    }

    fn check(&self, _: &Row) -> Result<()> {
        Ok(())
    }

    async fn prepare(&self, _: &Layout) -> Result<()> {
        Ok(())
    }

    async fn put(&self, _: &[Row]) -> Result<()> {
        Ok(())
    }

    async fn put_each(&self, _: &[Row]) -> Result<()> {
        Ok(())
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        Ok(keys.iter().map(|_| Some(Document::new())).collect())
    }

    async fn find(&self, _: &Query) -> Result<Rows<'_>> {
        Ok(stream::empty().boxed())
    }

    async fn delete(&self, _: &Filter) -> Result<u64> {
        Ok(0)
    }

    async fn remove(&self, _: &[Key]) -> Result<u64> {
        Ok(0)
    }

    async fn scan(&self, _: &KeyRange) -> Result<Rows<'_>> {
        Ok(stream::empty().boxed())
    }

    async fn count(&self) -> Result<u64> {
        Ok(0)
    }

    async fn split(&self, _: u32) -> Result<Vec<KeyRange>> {
        Ok(vec![KeyRange::all()])
    }

    async fn drop_table(&self) -> Result<()> {
        Ok(())
    }

    async fn describe(&self) -> Result<Description> {
        Ok(Description {
            product: "null".into(),
            version: String::new(),
            shape: Shape::Document,
            format: None,
            asked: None,
            set: None,
            settings: Vec::new(),
            disk: None,
        })
    }
}
