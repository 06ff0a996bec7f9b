//! Databases made for a while.

use futures_util::FutureExt;

use super::{dialect::quote, options, pool::Pool};
use crate::{
    Result,
    store::{
        Common, Databases, Url,
        databases::{Doing, in_database},
    },
};

pub(super) const DATABASES: Databases = Databases {
    url: |text, _, name| in_database(text, name, None),
    // Refused where it is there: error 1007.
    make: |url, common, name| define(url, common, format!("CREATE DATABASE {}", quote(&name))),
    drop: |url, common, name| define(url, common, format!("DROP DATABASE {}", quote(&name))),
    drop_schema: None,
};

fn define(url: Url, common: Common, statement: String) -> Doing {
    async move {
        let (_, _, connect) = options(url, &common)?;
        let done: Result<()> = Pool::open(connect, &common).await?.define(&statement).await;
        done
    }
    .boxed()
}
