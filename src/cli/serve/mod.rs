//! `steelyard serve`.

mod log;

use std::{
    collections::HashSet,
    fs, io,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
};

use futures_util::future::select;

use nix::sys::{
    resource::{Resource, getrlimit, setrlimit},
    stat::{Mode, umask},
};
use steelyard::{
    Error, ErrorKind, Result,
    copy::KeyRule,
    serve::{self, Config, Gateway, Listen, Quick, Scope, Socket, Tenants},
    store::{self, Layout, Place, Row, is_url},
};
use tokio::{
    net::{TcpListener, UnixListener},
    sync::oneshot,
};

use super::{Outcome, interrupt, parsed, print, rows, say, stores::Stores};
pub use log::Form;

/// Serves the records of a store or file over HTTP, or of many tenants, each with a database of its own.
///
/// `serve PLACE` serves one place on this machine alone, and prints a link for a browser and a key. `serve --config FILE` serves the tenants of a
/// catalog; `steelyard tenant` adds them. It ends at Ctrl-C, when the requests in flight are answered.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The URL of a store, or a file of records, which is read into memory.
    #[arg(required_unless_present_any = ["config", "demo", "print_config", "print_openapi"], conflicts_with_all = ["config", "demo"])]
    place: Option<String>,
    /// Also accept writes to the store.
    #[arg(long, requires = "place", conflicts_with = "config")]
    write: bool,
    /// Of a file: the field with the key of a record [default: _key, or 001 of a MARC record].
    #[arg(long, value_name = "FIELD", requires = "place", value_parser = parsed::<KeyRule>)]
    key: Option<KeyRule>,
    /// The address and port to listen on [default: that of --config, or 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS")]
    address: Option<SocketAddr>,
    /// The configuration, in TOML (--print-config shows one).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration, the catalog and the shards, and serve nothing.
    #[arg(long, requires = "config")]
    check_config: bool,
    /// Serve two tenants with people in them, from SQLite databases in a temporary folder.
    #[arg(long, conflicts_with = "config")]
    demo: bool,
    /// Print a configuration with every setting and its default.
    #[arg(long)]
    print_config: bool,
    /// Print the description of the API, in OpenAPI.
    #[arg(long)]
    print_openapi: bool,
    /// The form of the log, on standard error [default: json with --config, text without].
    #[arg(long, value_name = "FORM")]
    log: Option<Form>,
    /// End when standard input does: when whoever started it has ended, in whatever way.
    #[arg(long, hide = true)]
    end_with_input: bool,
}

const EXAMPLES: &str = "\
Examples:
  steelyard serve sqlite:shop.db
  steelyard serve catalog.mrc
  steelyard serve --demo
  steelyard serve --print-config > steelyard.toml
  steelyard serve --config steelyard.toml --check-config
  steelyard serve --config steelyard.toml";

pub fn run(args: Args) -> Result<Outcome> {
    if args.print_config {
        return print(Config::EXAMPLE).map(|()| Outcome::Well);
    }
    if args.print_openapi {
        return print(Gateway::description() + "\n").map(|()| Outcome::Well);
    }
    only_ours();
    many_files();
    let stores = Stores::serving(std::thread::available_parallelism().map_or(1, usize::from))?;
    if let Some(path) = &args.config {
        let mut config = Config::from_file(path)?;
        config.listen.address = args.address.unwrap_or(config.listen.address);
        if args.check_config {
            return check(&stores, &config);
        }
        log::begin(args.log.unwrap_or(Form::Json));
        let (listen, gateway) = (config.listen.clone(), stores.wait(Gateway::new(config.clone()))?);
        let (socket, address) = stores.wait(socket(&listen))?;
        let operators = match listen.operators {
            Some(address) => Some(stores.wait(bind(address))?),
            None => None,
        };
        say(format_args!("serving on {address}"));
        let tenants = stores.wait(Tenants::open(config))?;
        for what in stores.wait(tenants.misplaced(false))? {
            say(format_args!("warning: {what}"));
        }
        if stores.wait(tenants.is_empty())? {
            say("warning: the catalog has no tenant; `steelyard tenant add NAME` adds one");
        }
        if let Some(operators) = &operators {
            say(format_args!("metrics on http://{}/metrics", local(operators)?));
        }
        let done = until_stopped(&stores, (socket, operators), gateway, args.end_with_input);
        if let Some(path) = &listen.unix {
            let _ = fs::remove_file(path);
        }
        return done;
    }
    log::begin(args.log.unwrap_or(Form::Text));
    let folder = tempfile(args.demo)?;
    // Kept until all is served: what is in memory goes with the last who has it.
    let mut kept: Option<Place> = None;
    let Quick { gateway, keys } = match (&folder, &args.place) {
        (Some(folder), _) => stores.wait(Quick::demo(&folder.0))?,
        (None, Some(place)) if is_url(place) => {
            let scope = if args.write { Scope::Write } else { Scope::Read };
            stores.wait(Quick::place(place, scope))?
        }
        (None, place) => {
            let file = place.as_deref().unwrap_or_default();
            if args.write {
                let hint = format!("steelyard copy {file} sqlite:records.db, and serve that");
                return Err(Error::invalid("a file is read into memory, so writes would be lost")
                    .with_hint(hint));
            }
            let url = format!("memory:{}", store::Key::fresh());
            kept = Some(stores.wait(store::open(&url))?);
            load(&stores, file, args.key.clone().unwrap_or_default(), kept.as_ref())?;
            stores.wait(Quick::place(&url, Scope::Read))?
        }
    };
    let usual = SocketAddr::from(([127, 0, 0, 1], 8080));
    let listener = match (args.address, stores.wait(bind(args.address.unwrap_or(usual)))) {
        // Any port will do where none was asked for.
        (None, Err(_)) => stores.wait(bind(SocketAddr::from(([127, 0, 0, 1], 0))))?,
        (_, listener) => listener?,
    };
    let address = local(&listener)?;
    say(format_args!("serving on http://{address}; Ctrl-C ends it"));
    for (tenant, key) in &keys {
        if keys.len() > 1 {
            say(format_args!("tenant {tenant}:"));
        }
        // The link has the key's rights, once and for some minutes.
        print(format!("http://{address}{}\n", gateway.page_link(key)?))?;
        print(format!(
            "curl -H 'Authorization: Bearer {}' http://{address}/v1/docs\n",
            key.reveal()
        ))?;
    }
    let done = until_stopped(&stores, (listener.into(), None), gateway, args.end_with_input);
    drop(kept);
    done
}

/// Files that are made from now on (catalogs, databases of tenants, backups) can be read by this user alone.
pub fn only_ours() {
    umask(Mode::from_bits_truncate(0o077));
}

/// As many files at once as this user may have: a connection is one, and an open SQLite database several. Where the limit
/// cannot be raised, what it allows is what is served.
fn many_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

fn until_stopped(
    stores: &Stores,
    (socket, operators): (Socket, Option<TcpListener>),
    gateway: Gateway,
    with_input: bool,
) -> Result<Outcome> {
    let stop = interrupt::gracefully();
    let input = with_input.then(input_ends).transpose()?;
    let shutdown = async {
        match input {
            Some(input) => drop(select(pin!(stop.wait()), input).await),
            None => stop.wait().await,
        }
        say("ending when the requests in flight are answered; Ctrl-C again quits");
    };
    stores.wait(serve::run(socket, operators, Arc::new(gateway), shutdown))?;
    Ok(Outcome::Well)
}

/// Waits for the end of standard input, in a thread of its own.
fn input_ends() -> Result<oneshot::Receiver<()>> {
    let (ended, end) = oneshot::channel();
    std::thread::Builder::new().name("input".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = ended.send(());
    })?;
    Ok(end)
}

/// The socket of a configuration, and how it is reached.
async fn socket(listen: &Listen) -> Result<(Socket, String)> {
    if let Some(path) = &listen.unix {
        let listener = UnixListener::bind(path).map_err(|e| {
            let hint = format!("if no gateway runs: rm {}", path.display());
            Error::from(e).in_place(path.display().to_string()).with_hint(hint)
        })?;
        // Who may enter its folder may reach it.
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        return Ok((Socket::Unix(listener), path.display().to_string()));
    }
    let listener = bind(listen.address).await?;
    let address = local(&listener)?;
    match (&listen.certificate, &listen.private_key) {
        (Some(certificate), Some(key)) => {
            Ok((tls(listener, certificate, key)?, format!("https://{address}")))
        }
        _ => Ok((listener.into(), format!("http://{address}"))),
    }
}

#[cfg(feature = "tls")]
fn tls(listener: TcpListener, certificate: &Path, key: &Path) -> Result<Socket> {
    let certificates = serve::Certificates::new(certificate, key)?;
    Ok(Socket::Tls(listener, Arc::new(certificates)))
}

#[cfg(not(feature = "tls"))]
fn tls(_: TcpListener, _: &Path, _: &Path) -> Result<Socket> {
    Err(Error::unsupported("this build has no TLS")
        .with_hint("build it with --features tls, or --features full"))
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|e| {
        let what = format!("cannot listen on {address}: {e}");
        Error::new(Error::from(e).kind(), what)
            .with_hint("--address ADDRESS names another; port 0 is any that is free")
    })
}

fn local(listener: &TcpListener) -> Result<SocketAddr> {
    Ok(listener.local_addr()?)
}

/// Opens all that a configuration names.
fn check(stores: &Stores, config: &Config) -> Result<Outcome> {
    let tenants = match stores.wait(Tenants::open(config.clone())) {
        Ok(tenants) => Some(tenants),
        // Nothing is made here.
        Err(e) if e.kind() == ErrorKind::NotFound && e.to_string().contains("no catalog") => {
            say(format_args!("warning: {}", e.chain()));
            None
        }
        Err(e) => return Err(e),
    };
    if let Some(tenants) = &tenants {
        stores.wait(tenants.check_secret())?;
    }
    #[cfg(feature = "tls")]
    if let (Some(certificate), Some(key)) = (&config.listen.certificate, &config.listen.private_key)
    {
        serve::Certificates::new(certificate, key)?;
    }
    for (name, shard) in config.shards() {
        let opened = stores.wait(store::open(&shard.url));
        match opened {
            Ok(place) => say(format_args!("shard {name}: {}", place.url())),
            // The file beside which those of the tenants are need not be there.
            Err(e) if e.kind() == ErrorKind::NotFound && !e.to_string().contains("folder") => {
                say(format_args!("shard {name}: {}", shard.url))
            }
            Err(e) => return Err(e),
        }
    }
    let misplaced = match &tenants {
        Some(tenants) => stores.wait(tenants.misplaced(true))?,
        None => Vec::new(),
    };
    if !misplaced.is_empty() {
        for what in misplaced {
            say(format_args!("error: {what}"));
        }
        return Ok(Outcome::Found);
    }
    say("the configuration is valid");
    Ok(Outcome::Well)
}

/// Reads a file into a table that is named after it.
fn load(stores: &Stores, file: &str, rule: KeyRule, place: Option<&Place>) -> Result<()> {
    let Some(place) = place else { return Ok(()) };
    let stem = Path::new(file).file_name().map_or("records".into(), |name| name.to_string_lossy());
    let stem = stem.split('.').next().unwrap_or("records");
    let plain: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let name = plain.trim_matches('-');
    let table = place.table(if name.is_empty() { "records" } else { name })?;
    stores.wait(table.prepare(&Layout::plain()))?;
    let (mut waiting, mut count): (Vec<Row>, u64) = (Vec::new(), 0);
    let (mut seen, mut again) = (HashSet::new(), 0);
    const BATCH: usize = 1000;
    rows::each(file, None, &rule, |mut row, is_new| {
        count += 1;
        let is_again = !is_new && !seen.insert(row.key.clone());
        again += u64::from(is_again);
        if is_new || is_again {
            // In the order of the file.
            row.key = store::Key::new(format!("{count:09}"))?;
        }
        waiting.push(row);
        match waiting.len() == BATCH {
            true => stores.wait(table.put(&std::mem::take(&mut waiting))),
            false => Ok(()),
        }
    })?;
    stores.wait(table.put(&waiting))?;
    say(format_args!("{} read from {file}", super::progress::count(count, "record")));
    if again > 0 {
        let what = super::progress::count(again, "record");
        say(format_args!(
            "warning: {what} with a key that came before; their ids are their numbers in the file"
        ));
    }
    Ok(())
}

/// A folder for the demonstration, which goes when it ends.
struct Folder(PathBuf);

fn tempfile(wanted: bool) -> Result<Option<Folder>> {
    if !wanted {
        return Ok(None);
    }
    let path = std::env::temp_dir().join(format!("steelyard-demo-{}", store::Key::fresh()));
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&path).map_err(|e| Error::from(e).in_place(path.display().to_string()))?;
    Ok(Some(Folder(path)))
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
