//! Databases made for a while.

use bson::doc;
use futures_util::FutureExt;

use super::{
    connect::{DATABASE, client},
    error::ours,
};
use crate::store::{
    Databases,
    databases::{in_database, taken},
    within,
};

/// What is in a database as soon as it is there: without anything there is none. The gateway has a marker in a collection of
/// this name, and what is one of its own is no tenant's.
const FIRST: &str = "_steelyard";

pub(super) const DATABASES: Databases = Databases {
    url: |text, url, name| {
        // Who logs in is known to the database that the URL names, unless it says another.
        let of = match url.path.trim_end_matches('/') {
            "" => DATABASE,
            name => name,
        };
        let said = text.contains("authSource=");
        let login = (url.user.is_some() && !said).then_some(("authSource", of));
        in_database(text, name, login)
    },
    make: |mut url, common, name| {
        async move {
            url.take("ordered");
            let (client, _) = client(&mut url, &common).await?;
            let make = async {
                let named = doc! {"name": &name};
                let there = client.list_database_names().filter(named).await.map_err(ours)?;
                if there.contains(&name) {
                    return Err(taken(&name));
                }
                client.database(&name).create_collection(FIRST).await.map_err(ours)
            };
            within(common.timeout, "a new database", make).await
        }
        .boxed()
    },
    drop: |mut url, common, name| {
        async move {
            url.take("ordered");
            let (client, _) = client(&mut url, &common).await?;
            let drop = async { client.database(&name).drop().await.map_err(ours) };
            within(common.timeout, "a database dropped", drop).await
        }
        .boxed()
    },
    drop_schema: None,
};
