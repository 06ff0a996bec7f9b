//! `steelyard tenant`.

use std::{
    io::{BufRead, IsTerminal, Read},
    path::PathBuf,
    str::FromStr,
};

use serde_json::json;
use steelyard::{
    Error, ErrorKind, Result,
    format::Wrapped,
    serve::{Config, Course, Scope, State, TenantLimits, TenantName, TenantRow, Tenants, UserName},
};

use super::{Outcome, interrupt, parsed, print, progress::count, say, serve, stores::Stores};

/// Adds, lists, freezes, moves, backs up and removes the tenants of a gateway, and makes their keys.
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
  steelyard tenant user set austin ann < password
  steelyard tenant list
  steelyard tenant limit austin --bytes 1000000000
  steelyard tenant freeze austin
  steelyard tenant move austin --to second
  steelyard tenant backup austin austin.cbor.zst
  steelyard tenant restore austin2 austin.cbor.zst
  steelyard tenant export austin exported --to csv
  steelyard tenant remove austin --yes";

#[derive(clap::Subcommand)]
enum Act {
    /// Adds a tenant with a database of its own, and prints a key that may write.
    #[command(
        after_help = "Examples:\n  steelyard tenant add austin\n  steelyard tenant add dallas --shard second --requests-per-second 100"
    )]
    Add(Add),
    /// Lists the tenants.
    #[command(after_help = "Examples:\n  steelyard tenant list\n  steelyard tenant list --json")]
    List(List),
    /// Shows a tenant, as JSON.
    #[command(after_help = "Examples:\n  steelyard tenant show austin")]
    Show(Named),
    /// Changes the limits of a tenant. What is not named stays.
    #[command(
        after_help = "Examples:\n  steelyard tenant limit austin --bytes 1000000000\n  steelyard tenant limit austin --requests-per-second default"
    )]
    Limit(Limit),
    /// Makes a tenant one that can only be read.
    #[command(after_help = "Examples:\n  steelyard tenant freeze austin")]
    Freeze(Named),
    /// Makes a frozen tenant one that can be written again.
    #[command(after_help = "Examples:\n  steelyard tenant thaw austin")]
    Thaw(Named),
    /// Removes a tenant, its keys, and its database with all in it.
    #[command(after_help = "Examples:\n  steelyard tenant remove austin --yes")]
    Remove(Remove),
    /// Makes, lists and revokes keys.
    #[command(
        after_help = "Examples:\n  steelyard tenant key add austin --scope read --label reports\n  steelyard tenant key list austin\n  steelyard tenant key revoke austin 4Jx2p9_fRk1Q"
    )]
    Key(Keys),
    /// Adds people who sign in with a name and a password.
    #[command(
        after_help = "Examples:\n  steelyard tenant user set austin ann < password\n  steelyard tenant user set austin bob --scope read < password"
    )]
    User(Users),
    /// Moves a tenant to another shard; it is not served meanwhile.
    #[command(
        after_help = "Examples:\n  steelyard tenant move austin --to second\n  steelyard tenant move austin --to second --resume"
    )]
    Move(Move),
    /// Writes all records of a tenant to a file. The tenant can only be read meanwhile.
    #[command(
        after_help = "Examples:\n  steelyard tenant backup austin austin.cbor.zst\n  steelyard tenant backup austin austin.json.gz --online"
    )]
    Backup(Backup),
    /// Makes a new tenant of a backup, with its limits and without its keys.
    #[command(
        after_help = "Examples:\n  steelyard tenant restore austin2 austin.cbor.zst\n  steelyard tenant restore austin2 austin.cbor.zst --shard second"
    )]
    Restore(Restore),
    /// Makes the indexes of the configuration in the databases of all tenants.
    ///
    /// What is there stays, so it can be repeated. The exit status is 1 if it failed for a tenant; the others are done.
    #[command(
        after_help = "Examples:\n  steelyard tenant apply\n  steelyard tenant apply --at-once 16"
    )]
    Apply(Apply),
    /// Writes each collection of a tenant to a file of a folder.
    #[command(
        after_help = "Examples:\n  steelyard tenant export austin exported\n  steelyard tenant export austin exported --to csv"
    )]
    Export(Export),
}

#[derive(clap::Args)]
struct Move {
    /// The tenant.
    name: String,
    /// The shard it goes to.
    #[arg(long, value_name = "SHARD", required_unless_present_any = ["resume", "back"])]
    to: Option<String>,
    /// Go on with a move that was ended before it was done.
    #[arg(long)]
    resume: bool,
    /// Give such a move up: the tenant is served where it was.
    #[arg(long, conflicts_with = "resume")]
    back: bool,
}

#[derive(clap::Args)]
struct Backup {
    /// The tenant.
    name: String,
    /// The file; its name tells the format: austin.cbor.zst keeps every kind of value.
    file: String,
    /// Do not freeze the tenant: what is written meanwhile may or may not be in the file.
    #[arg(long)]
    online: bool,
}

#[derive(clap::Args)]
struct Restore {
    /// The name of the new tenant.
    name: String,
    /// The file.
    file: String,
    /// The shard of its database [default: by the weights of the shards].
    #[arg(long, value_name = "SHARD")]
    shard: Option<String>,
}

#[derive(clap::Args)]
struct Apply {
    /// How many tenants at once.
    #[arg(long, value_name = "N", default_value_t = 4)]
    at_once: usize,
}

#[derive(clap::Args)]
struct Export {
    /// The tenant.
    name: String,
    /// The folder; it is created if it does not exist.
    folder: PathBuf,
    /// The format of the files.
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = parsed::<Wrapped>)]
    to: Wrapped,
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
    /// Collections at most, in place of those of the configuration; 0 for no new one.
    #[arg(long, value_name = "N")]
    collections: Option<u64>,
    /// Bytes of its database at most, in place of those of the configuration; 0 for no limit.
    #[arg(long, value_name = "N")]
    bytes: Option<u64>,
}

#[derive(clap::Args)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("limits").required(true).multiple(true)))]
struct Limit {
    /// The tenant.
    name: String,
    /// Requests a second; `default` for those of the configuration.
    #[arg(long, value_name = "N", value_parser = parsed::<Own<f64>>, group = "limits")]
    requests_per_second: Option<Own<f64>>,
    /// Collections at most; 0 for no new one, `default` for those of the configuration.
    #[arg(long, value_name = "N", value_parser = parsed::<Own<u64>>, group = "limits")]
    collections: Option<Own<u64>>,
    /// Bytes of its database at most; 0 for no limit, `default` for those of the configuration.
    #[arg(long, value_name = "N", value_parser = parsed::<Own<u64>>, group = "limits")]
    bytes: Option<Own<u64>>,
}

/// A limit of a tenant's own, or none.
#[derive(Clone, Copy)]
struct Own<T>(Option<T>);

impl<T: FromStr> FromStr for Own<T> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Own<T>> {
        match (text, text.parse()) {
            ("default", _) => Ok(Own(None)),
            (_, Ok(own)) => Ok(Own(Some(own))),
            _ => Err(Error::invalid(format!("{text:?} is neither a number nor `default`"))),
        }
    }
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
    #[command(
        after_help = "Examples:\n  steelyard tenant key add austin --scope read --label reports"
    )]
    Add(AddKey),
    /// Lists the keys of a tenant, without their secrets.
    #[command(after_help = "Examples:\n  steelyard tenant key list austin")]
    List(Named),
    /// Revokes a key.
    #[command(after_help = "Examples:\n  steelyard tenant key revoke austin 4Jx2p9_fRk1Q")]
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

#[derive(clap::Args)]
struct Users {
    #[command(subcommand)]
    act: UserAct,
}

#[derive(clap::Subcommand)]
enum UserAct {
    /// Adds a user, or gives one another password and scope.
    ///
    /// The password is the first line of standard input, of 12 bytes at least. `POST /v1/auth/login` gives a token for it
    /// that is good for 15 minutes. Users are among the keys of a tenant, as user:NAME, and are revoked as they are.
    #[command(
        after_help = "Examples:\n  steelyard tenant user set austin ann < password\n  steelyard tenant user set austin bob --scope read < password"
    )]
    Set(SetUser),
}

#[derive(clap::Args)]
struct SetUser {
    /// The tenant.
    name: String,
    /// The name to sign in with, which is one of all tenants: letters, digits, and . _ - + @.
    user: String,
    /// What the user may do: read or write.
    #[arg(long, default_value = "write", value_parser = parsed::<Scope>)]
    scope: Scope,
}

pub fn run(args: Args) -> Result<Outcome> {
    serve::only_ours();
    let stores = Stores::new()?;
    let config = Config::from_file(&args.config).map_err(|e| match e.kind() {
        ErrorKind::NotFound => e.with_hint("steelyard serve --print-config > steelyard.toml"),
        _ => e,
    })?;
    let tenants = match args.act {
        Act::Add(_) | Act::Restore(_) => stores.wait(Tenants::open_or_create(config))?,
        _ => stores.wait(Tenants::open(config))?,
    };
    if let Act::Key(Keys { act: KeyAct::Add(_) }) = &args.act {
        stores.wait(tenants.check_secret())?;
    }
    match args.act {
        Act::Add(add) => {
            let name = TenantName::new(&add.name)?;
            let mut limits = TenantLimits::default();
            limits.requests_per_second = add.requests_per_second;
            limits.collections = add.collections;
            limits.bytes = add.bytes;
            let row = stores.wait(tenants.add(&name, add.shard.as_deref(), limits))?;
            say(format_args!("tenant {name} is on shard {}; its key, shown once:", row.shard));
            let key = stores.wait(tenants.add_key(&name, Scope::Write, "first"))?;
            print(key.reveal() + "\n")?;
        }
        Act::List(list) => {
            for row in stores.wait(tenants.list())? {
                print(if list.json { shown(&row, None) } else { line(&row) })?;
            }
        }
        Act::Show(named) => {
            let name = TenantName::new(&named.name)?;
            let row = stores.wait(tenants.show(&name))?;
            let bytes = stores.wait(tenants.bytes(&name));
            // The rest is worth showing where the database cannot be asked.
            if let Err(e) = &bytes {
                say(format_args!("warning: the size of its database is not known: {}", e.chain()));
            }
            print(shown(&row, bytes.unwrap_or_default()))?
        }
        Act::Limit(limit) => {
            let name = TenantName::new(&limit.name)?;
            let change = |limits: &mut TenantLimits| {
                limits.requests_per_second =
                    limit.requests_per_second.map_or(limits.requests_per_second, |own| own.0);
                limits.collections = limit.collections.map_or(limits.collections, |own| own.0);
                limits.bytes = limit.bytes.map_or(limits.bytes, |own| own.0);
            };
            print(shown(&stores.wait(tenants.limit(&name, change))?, None))?
        }
        Act::Freeze(named) => stores.wait(tenants.freeze(&TenantName::new(&named.name)?))?,
        Act::Thaw(named) => stores.wait(tenants.thaw(&TenantName::new(&named.name)?))?,
        Act::Remove(remove) => {
            if !remove.yes {
                let what =
                    format!("this drops the database of tenant {:?} with all in it", remove.name);
                return Err(Error::invalid(what).with_hint("--yes says that this is meant"));
            }
            let name = TenantName::new(&remove.name)?;
            stores
                .wait(tenants.remove(&name, async { tokio::time::sleep(tenants.lease()).await }))?;
        }
        Act::Key(keys) => return key(&stores, &tenants, keys.act),
        Act::User(users) => {
            let UserAct::Set(SetUser { name, user, scope }) = users.act;
            let (name, user) = (TenantName::new(&name)?, UserName::new(&user)?);
            if std::io::stdin().is_terminal() {
                return Err(Error::invalid(
                    "the password is read from standard input, which is a terminal",
                )
                .with_hint("steelyard tenant user set NAME USER < FILE"));
            }
            let mut line = String::new();
            // Nothing of a password is longer.
            std::io::stdin().lock().take(4096).read_line(&mut line)?;
            let password = line.trim_end_matches(['\r', '\n']);
            stores.wait(tenants.set_user(&name, &user, password, scope))?;
        }
        Act::Move(go) => return moved(&stores, &tenants, &go),
        Act::Backup(backup) => {
            let name = TenantName::new(&backup.name)?;
            // One that an operator froze stays so.
            let was = stores.wait(tenants.show(&name))?.state;
            let freezes = !backup.online && was == State::Active;
            let work = tenants.backup(&name, &backup.file, !backup.online, tokio::time::sleep);
            let Some(records) = stopped(&stores, work)? else {
                if freezes {
                    stores.wait(tenants.thaw(&name))?;
                }
                say("ended; nothing was written, and the tenant is as it was");
                return Ok(Outcome::Found);
            };
            say(format_args!("{} in {}", count(records, "record"), backup.file));
            if was == State::Frozen {
                say(format_args!(
                    "hint: it was frozen before, and stays so: steelyard tenant thaw {name}"
                ));
            }
        }
        Act::Restore(restore) => {
            let name = TenantName::new(&restore.name)?;
            let stop = interrupt::gracefully();
            let (on, file) = (restore.shard.as_deref(), restore.file.as_str());
            let restored = tenants.restore(&name, on, file, async { stop.wait().await });
            let Some(records) = stores.wait(restored)? else {
                say("ended; there is no such tenant");
                return Ok(Outcome::Found);
            };
            say(format_args!("{} in tenant {name}", count(records, "record")));
            say(format_args!("hint: it has no key yet: steelyard tenant key add {name}"));
        }
        Act::Apply(apply) => {
            let applied = stores.wait(tenants.apply(apply.at_once))?;
            for (tenant, e) in &applied.failed {
                say(format_args!("error: tenant {tenant}: {}", e.chain()));
            }
            say(format_args!(
                "{} done, {} failed",
                count(applied.done, "tenant"),
                applied.failed.len()
            ));
            return Ok(if applied.failed.is_empty() { Outcome::Well } else { Outcome::Found });
        }
        Act::Export(export) => {
            let name = TenantName::new(&export.name)?;
            let records = stores.wait(tenants.export(&name, &export.folder, &export.to))?;
            say(format_args!("{} in {}", count(records, "record"), export.folder.display()));
        }
    }
    Ok(Outcome::Well)
}

/// Does the work, or gives none where a signal ends it before.
fn stopped<T>(stores: &Stores, work: impl Future<Output = Result<T>>) -> Result<Option<T>> {
    let stop = interrupt::gracefully();
    stores.wait(async {
        tokio::select! {
            biased;
            done = work => done.map(Some),
            () = stop.wait() => Ok(None),
        }
    })
}

fn moved(stores: &Stores, tenants: &Tenants, go: &Move) -> Result<Outcome> {
    let name = TenantName::new(&go.name)?;
    let course = match (go.resume, go.back) {
        (true, _) => Course::Resume,
        (_, true) => Course::Back,
        _ => Course::Begin,
    };
    let work = tenants.move_to(&name, go.to.as_deref(), course, tokio::time::sleep);
    let Some(moved) = stopped(stores, work)? else {
        say(format_args!("ended; tenant {name} may still be on its way, and is then not served"));
        say(format_args!("hint: steelyard tenant move {name} --resume, or --back"));
        return Ok(Outcome::Found);
    };
    match course {
        Course::Back => say(format_args!("tenant {name} is served where it was")),
        _ => say(format_args!("tenant {name} is moved, with {}", count(moved.records, "record"))),
    }
    for left in &moved.left {
        say(format_args!("warning: not dropped: {left}"));
    }
    Ok(if moved.left.is_empty() { Outcome::Well } else { Outcome::Found })
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

fn line(row: &TenantRow) -> String {
    format!("{:24} {:8} {:16} {}\n", row.name, row.state.name(), row.shard, row.created)
}

/// A tenant as JSON, with what its database takes, where that was asked.
fn shown(row: &TenantRow, bytes: Option<u64>) -> String {
    let mut shown = json!({
        "name": row.name, "state": row.state.name(), "shard": row.shard, "database": row.database.as_str(),
        "epoch": row.epoch, "created": row.created,
        "requests_per_second": row.limits.requests_per_second, "collections": row.limits.collections,
        "bytes": row.limits.bytes,
    });
    if let Some(bytes) = bytes {
        shown["database_bytes"] = bytes.into();
    }
    format!("{shown}\n")
}
