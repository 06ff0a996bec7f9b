//! `steelyard tenant`.

use std::path::PathBuf;

use serde_json::json;
use steelyard::{
    Error, Result,
    serve::{Config, Scope, State, TenantLimits, TenantName, TenantRow, Tenants},
};

use super::{Outcome, parsed, print, say, stores::Stores};

/// Adds, lists, freezes and removes the tenants of a gateway, and makes their keys.
///
/// Gateways that run notice within the lease of the configuration.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The configuration of the gateway.
    #[arg(long, value_name = "FILE", default_value = "steelyard.toml", global = true)]
    config: PathBuf,
    #[command(subcommand)]
    act: Act,
}

const EXAMPLES: &str = "\
Examples:
  steelyard tenant add austin
  steelyard tenant key add austin --scope read --label reports
  steelyard tenant list
  steelyard tenant freeze austin
  steelyard tenant remove austin --yes";

#[derive(clap::Subcommand)]
enum Act {
    /// Adds a tenant with a database of its own, and prints a key that may write.
    Add(Add),
    /// Lists the tenants.
    List(List),
    /// Shows a tenant, as JSON.
    Show(Named),
    /// Makes a tenant one that can only be read.
    Freeze(Named),
    /// Makes a frozen tenant one that can be written again.
    Thaw(Named),
    /// Removes a tenant, its keys, and its database with all in it.
    Remove(Remove),
    /// Makes, lists and revokes keys.
    Key(Keys),
}

#[derive(clap::Args)]
struct Named {
    /// The tenant.
    name: String,
}

#[derive(clap::Args)]
struct Add {
    /// The tenant: letters, digits, _ and -.
    name: String,
    /// The shard of its database [default: by the weights of the shards].
    #[arg(long, value_name = "SHARD")]
    shard: Option<String>,
    /// Requests a second, in place of those of the configuration.
    #[arg(long, value_name = "N")]
    requests_per_second: Option<f64>,
    /// Collections at most, in place of those of the configuration.
    #[arg(long, value_name = "N")]
    collections: Option<u64>,
}

#[derive(clap::Args)]
struct List {
    /// As lines of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Remove {
    /// The tenant.
    name: String,
    /// Yes, drop its database.
    #[arg(long)]
    yes: bool,
}

#[derive(clap::Args)]
struct Keys {
    #[command(subcommand)]
    act: KeyAct,
}

#[derive(clap::Subcommand)]
enum KeyAct {
    /// Makes a key, and prints it once.
    Add(AddKey),
    /// Lists the keys of a tenant, without their secrets.
    List(Named),
    /// Revokes a key.
    Revoke(Revoke),
}

#[derive(clap::Args)]
struct AddKey {
    /// The tenant.
    name: String,
    /// What it may do: read or write.
    #[arg(long, default_value = "write", value_parser = parsed::<Scope>)]
    scope: Scope,
    /// What it is for.
    #[arg(long, default_value = "")]
    label: String,
}

#[derive(clap::Args)]
struct Revoke {
    /// The tenant.
    name: String,
    /// The part of the key before the dot.
    prefix: String,
}

pub fn run(args: Args) -> Result<Outcome> {
    let stores = Stores::new()?;
    let tenants = stores.wait(Tenants::open(Config::from_file(&args.config)?))?;
    match args.act {
        Act::Add(add) => {
            let name = TenantName::new(&add.name)?;
            let mut limits = TenantLimits::default();
            limits.requests_per_second = add.requests_per_second;
            limits.collections = add.collections;
            let row = stores.wait(tenants.add(&name, add.shard.as_deref(), limits))?;
            say(format_args!("tenant {name} is on shard {}; its key, shown once:", row.shard));
            let key = stores.wait(tenants.add_key(&name, Scope::Write, "first"))?;
            print(key.reveal() + "\n")?;
        }
        Act::List(list) => {
            for row in stores.wait(tenants.list())? {
                print(if list.json { shown(&row) } else { line(&row) })?;
            }
        }
        Act::Show(named) => {
            print(shown(&stores.wait(tenants.show(&TenantName::new(&named.name)?))?))?
        }
        Act::Freeze(named) => stores.wait(tenants.freeze(&TenantName::new(&named.name)?))?,
        Act::Thaw(named) => stores.wait(tenants.thaw(&TenantName::new(&named.name)?))?,
        Act::Remove(remove) => {
            if !remove.yes {
                let what =
                    format!("this drops the database of tenant {:?} with all in it", remove.name);
                return Err(Error::invalid(what).with_hint("--yes says that this is meant"));
            }
            let wait = tokio::time::sleep(tenants.lease());
            stores.wait(async { tenants.remove(&TenantName::new(&remove.name)?, wait).await })?;
        }
        Act::Key(keys) => return key(&stores, &tenants, keys.act),
    }
    Ok(Outcome::Well)
}

fn key(stores: &Stores, tenants: &Tenants, act: KeyAct) -> Result<Outcome> {
    match act {
        KeyAct::Add(add) => {
            let key = stores.wait(tenants.add_key(
                &TenantName::new(&add.name)?,
                add.scope,
                &add.label,
            ))?;
            print(key.reveal() + "\n")?;
        }
        KeyAct::List(named) => {
            for (prefix, row) in stores.wait(tenants.keys(&TenantName::new(&named.name)?))? {
                let scope = if row.scope == Scope::Write { "write" } else { "read" };
                let state = if row.revoked { "  revoked" } else { "" };
                print(format!("{prefix}  {scope:5}  {}  {}{state}\n", row.created, row.label))?;
            }
        }
        KeyAct::Revoke(revoke) => {
            stores.wait(tenants.revoke_key(&TenantName::new(&revoke.name)?, &revoke.prefix))?;
        }
    }
    Ok(Outcome::Well)
}

fn state(row: &TenantRow) -> &'static str {
    match row.state {
        State::Active => "active",
        State::Frozen => "frozen",
        State::Moving { .. } => "moving",
        State::Removed => "removed",
        _ => "unknown",
    }
}

fn line(row: &TenantRow) -> String {
    format!("{:24} {:8} {:16} {}\n", row.name, state(row), row.shard, row.created)
}

fn shown(row: &TenantRow) -> String {
    let shown = json!({
        "name": row.name, "state": state(row), "shard": row.shard, "database": row.database.as_str(),
        "epoch": row.epoch, "created": row.created,
        "requests_per_second": row.limits.requests_per_second, "collections": row.limits.collections,
    });
    format!("{shown}\n")
}
