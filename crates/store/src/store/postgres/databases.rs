//! Databases made for a while.

use futures_util::FutureExt;

use super::{error::code, open::connected};
use crate::{
    Result,
    store::{Common, Databases, Shape, Url, databases::in_database, sql::quote},
};

pub(super) const DATABASES: Databases = Databases {
    url: |text, _, name| in_database(text, name, None),
    // Refused where it is there: 42P04.
    make: |url, common, name| {
        async move { define(url, common, &format!("CREATE DATABASE {}", quote(&name))).await }
            .boxed()
    },
    drop: |url, common, name| {
        async move {
            let text = format!("DROP DATABASE {}", quote(&name));
            // Connections to it may still be on their way out; before version 13 it has to wait.
            let forced = format!("{text} WITH (FORCE)");
            match define(url.clone(), common.clone(), &forced).await {
                Err(e) if code(&e) == Some("42601") => define(url, common, &text).await,
                done => done,
            }
        }
        .boxed()
    },
    drop_schema: Some(|url, common, name| {
        async move {
            let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", quote(&name));
            define(url, common, &drop).await
        }
        .boxed()
    }),
};

async fn define(url: Url, common: Common, statement: &str) -> Result<()> {
    let (pool, _) = connected(url, &common, Shape::Document)?;
    pool.get().await?.batch(statement).await
}
