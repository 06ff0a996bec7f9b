//! Opening: the URL's options, and what the server has to be.

use std::{path::Path, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Config, config::SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    DRIVER, PostgreSql,
    pool::{Connect, Pool},
    setting::Setting,
    table::Lazy,
};
use crate::{
    Error, Result,
    durability::Tier,
    store::{
        Client, Common, Encoded, Shape, Store, Url,
        limits::Limits,
        net::{
            Address,
            tls::{self, Roots},
        },
        sql::{Names, Others},
    },
};

/// The oldest version whose catalogues are understood.
const OLDEST: i32 = 120_000;

pub(super) fn open(url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let shape = common.shape("postgres", DRIVER.shapes)?;
        let (pool, table) = connected(url, &common, shape)?;
        look_at(&pool, common.durability).await?;
        let store = PostgreSql { pool, table, others: Others::default() };
        Ok(match shape {
            Shape::Blob => {
                Arc::new(Encoded::new(Arc::new(store), common.blob_format())?) as Arc<dyn Store>
            }
            _ => Arc::new(store),
        })
    }
    .boxed()
}

/// Connections, of which none is made yet, and the table.
pub(super) fn connected(mut url: Url, common: &Common, shape: Shape) -> Result<(Arc<Pool>, Lazy)> {
    let names = Names { schema: url.take("schema"), ..Names::take(&mut url) };
    let (socket, tenant) = (url.take("socket"), url.take("tenant"));
    let client = url.take_client("tokio-postgres")?.unwrap_or(Client::Own);
    let (tls, ca) = (url.take_flag("tls")?, url.take("ca"));
    url.done()?;
    let tls = match (tls, &socket) {
        (Some(true), Some(_)) => {
            return Err(Error::invalid("?tls=true is not possible on a Unix socket (?socket=)"));
        }
        (Some(true), None) => {
            let roots = ca.as_deref().map_or(Roots::Web, Roots::File);
            Some(MakeRustlsConnect::new(tls::config(roots)?))
        }
        _ if ca.is_some() => return Err(Error::invalid("?ca= needs ?tls=true")),
        _ => None,
    };
    let table = Lazy::new(shape, &common.table, names, common.durability)?;
    let mut config = configured(&url)?;
    config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
    let connect = Connect {
        config,
        address: address(&url, socket.as_deref())?,
        tls,
        set_up: set_up(common),
        limits: Limits::of(common),
    };
    let setting = Setting::new(&table, tenant.as_deref())?;
    Ok((Arc::new(Pool::new(client, connect, setting)), table))
}

fn address(url: &Url, socket: Option<&str>) -> Result<Address> {
    let (host, port) = url.one_host(5432)?;
    Ok(match socket {
        Some(folder) => Address::Unix(Path::new(folder).join(format!(".s.PGSQL.{port}"))),
        None => Address::Tcp(host, port),
    })
}

fn configured(url: &Url) -> Result<Config> {
    let mut config = Config::new();
    for (what, text) in [("user", url.user.as_deref()), ("database", Some(&*url.path))] {
        if text.is_some_and(|text| text.contains('\0')) {
            return Err(Error::invalid(format!("a {what} with a NUL in its name")));
        }
    }
    if let Some(user) = &url.user {
        config.user(user);
    }
    if let Some(password) = &url.password {
        config.password(password.reveal());
    }
    if !url.path.is_empty() {
        config.dbname(&url.path);
    }
    config.application_name("steelyard");
    Ok(config)
}

/// What every connection begins with.
fn set_up(common: &Common) -> String {
    // The server stops, too, when nobody waits any more.
    let limit = common.timeout.as_millis().clamp(1, i32::MAX as u128);
    let mut text = format!(
        "SET statement_timeout = {limit}; SET idle_in_transaction_session_timeout = 0; \
         SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET standard_conforming_strings = on; \
         SET client_min_messages = warning;"
    );
    match common.durability {
        Some(Tier::T3 | Tier::T1) => text += "SET synchronous_commit = on;",
        Some(Tier::T2 | Tier::T0) => text += "SET synchronous_commit = off;",
        None => {}
    }
    text
}

/// Asks the server what it is, and whether it can promise what is wanted.
async fn look_at(pool: &Pool, tier: Option<Tier>) -> Result<()> {
    let text = "SELECT current_setting('server_encoding'), current_setting('fsync'), \
                CAST(current_setting('server_version_num') AS integer), \
                current_setting('server_version'), current_setting('full_page_writes')";
    let rows = pool.get().await?.query(text, &[]).await?;
    let told = |i: usize| rows[0].try_get::<String>(i);
    let (encoding, fsync, version, full_pages) = (told(0)?, told(1)?, told(3)?, told(4)?);
    if rows[0].try_get::<i32>(2)? < OLDEST {
        return Err(Error::unsupported(format!(
            "PostgreSQL {version} is too old; 12 or later is needed"
        )));
    }
    if encoding != "UTF8" {
        let what = format!("the database has encoding {encoding}; UTF8 is needed");
        return Err(Error::unsupported(what));
    }
    match tier {
        // It is the server that syncs or does not; a connection chooses when.
        Some(Tier::T1) if fsync == "on" => {
            let can = [Tier::T3, Tier::T2, Tier::T0];
            Err(Tier::T1.refused("PostgreSQL with fsync=on", &can))
        }
        Some(tier @ (Tier::T2 | Tier::T3)) if fsync != "on" => {
            Err(tier.refused("PostgreSQL with fsync=off", &[Tier::T1, Tier::T0]))
        }
        Some(tier @ (Tier::T2 | Tier::T3)) if full_pages != "on" => {
            let store = "PostgreSQL with full_page_writes=off, where a crash may tear a page,";
            Err(tier.refused(store, &[Tier::T0]))
        }
        _ => Ok(()),
    }
}
