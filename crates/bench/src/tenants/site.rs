//! The data of so many tenants, kept apart in one way: a server (or a folder of SQLite) of its own, which is made once,
//! lies still between turns, and is started anew for each of them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    TABLE,
    gateway::{Gateway, Wanted},
    people::People,
    reach::{Spec, Way},
    shared,
};
use crate::{
    Error, ErrorKind, Result,
    cleanup::{Due, stays},
    server::Server,
    stop::Stop,
    store::{Databases, Description, Place, Pools, Store, blocking},
    stores::{Target, watch},
};

/// Folders of the databases of SQLite, and of the gateway's configuration and catalog, which are no tenant's.
const DATA: &str = "data";
const GATEWAY: &str = "gateway";
/// How long a server may take to end in good order: a thousand databases are some hundred thousand files to sync.
const GRACE: Duration = Duration::from_secs(600);

/// What a site is to have.
pub(super) struct Order<'a> {
    pub target: &'a Target,
    pub way: Way,
    pub people: &'a People,
    /// How many databases are open at once, at most.
    pub open: u64,
    /// This program, where the databases are made by the gateway's own catalog.
    pub program: Option<&'a Path>,
    /// An empty folder of its own.
    pub folder: &'a Path,
    /// What the names of databases begin with.
    pub stem: &'a str,
    /// How long making it may take.
    pub patience: Duration,
    pub stop: &'a Stop,
}

/// The data of so many tenants.
pub(super) struct Site {
    pub way: Way,
    pub spec: Spec,
    /// The private server, if there is one.
    pub server: Option<Server>,
    /// The gateway that the databases belong to.
    pub gateway: Option<Gateway>,
    /// Nanoseconds that making it took.
    pub making_ns: u64,
    /// Bytes on disk when it lay still, less what was there before.
    pub disk: Option<u64>,
    /// What the store says of itself.
    pub described: Option<Description>,
    /// Databases in a server of the user's own, by the URL they were made by.
    made: Made,
}

/// Databases that are dropped at the end.
#[derive(Default)]
struct Made {
    url: String,
    names: Vec<String>,
    left: Option<Due>,
}

impl Site {
    /// Makes it: databases, tables, records, statistics; and has it lie still. `told` hears how many tenants there are.
    ///
    /// # Errors
    /// Of the store and its server; [`Unavailable`](ErrorKind::Unavailable) where it takes too long, saying how far it
    /// came.
    pub(super) async fn make(order: &Order<'_>, told: &mut dyn FnMut(u64)) -> Result<Site> {
        for part in [DATA, GATEWAY] {
            fs::create_dir(order.folder.join(part))?;
        }
        let wanted = order.target.clone();
        let server = order.stop.apart(move || wanted.start()).await?;
        let data = data(order, server.as_ref());
        let before = data.as_ref().map(|folder| watch::allocated(folder).total());
        let url = order.target.url(server.as_ref(), &order.folder.join(DATA));
        let spec = Spec {
            way: order.way,
            url,
            names: (1..=order.people.tenants).map(|n| format!("{}_{n}", order.stem)).collect(),
            open: usize::try_from(order.open).unwrap_or(usize::MAX),
        };
        let mut site = Site {
            way: order.way,
            spec,
            server,
            gateway: None,
            making_ns: 0,
            disk: None,
            described: None,
            made: Made::default(),
        };
        let begin = Instant::now();
        let filled = blocking(site.fill(order, begin, told)).await;
        site.making_ns = begin.elapsed().as_nanos() as u64;
        if let Err(e) = filled {
            // Its own error says more than one of dropping.
            let _ = site.drop_made().await;
            return Err(e);
        }
        if let Some(server) = &mut site.server {
            server.rest_within(GRACE);
        }
        let after = data.map(|folder| watch::allocated(&folder).total());
        site.disk = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        Ok(site)
    }

    async fn fill(
        &mut self,
        order: &Order<'_>,
        begin: Instant,
        told: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let until = begin + order.patience;
        if order.target.is_own() {
            self.made.url.clone_from(&self.spec.url);
            self.made.left = Some(stays(format!(
                "{}: databases {}_* of this run could not be dropped any more",
                order.target.label, order.stem
            )));
            if self.way != Way::Databases {
                // In a database of the run's own.
                let name = order.stem.to_owned();
                Databases::create(&self.spec.url, &name).await?;
                let own = Databases::own_url(&self.spec.url, &name)?;
                self.made.names.push(name);
                self.spec.url = own.unwrap_or_default();
            }
        }
        if let (Way::Databases, Some(program)) = (self.way, order.program) {
            let wanted = Wanted {
                program,
                folder: &order.folder.join(GATEWAY),
                shard: &self.spec.url,
                open: order.open,
                tenants: order.people.tenants,
                until,
            };
            let (gateway, names) = Gateway::install(&wanted, order.stop, told)?;
            self.gateway = Some(gateway);
            self.spec.names = names;
            if order.target.is_own() {
                self.made.names.clone_from(&self.spec.names);
            }
        }
        let mut table: Option<Arc<dyn Store>> = None;
        let pools = Pools::default();
        let count = self.spec.names.len();
        for tenant in 0..count {
            let at = |e: Error| match order.stop.is_set() {
                true => e,
                false => e.in_place(format!("after {tenant} of {count} tenants")),
            };
            order.stop.check()?;
            if Instant::now() > until {
                let seconds = order.patience.as_secs();
                let what = format!("making them took longer than {seconds} s");
                return Err(at(Error::unavailable(what)).with_hint("--patience gives them longer"));
            }
            self.add(order, tenant, (&mut table, &pools)).await.map_err(at)?;
            told(tenant as u64 + 1);
        }
        if let Some(table) = table {
            table.analyze().await?;
        }
        Ok(())
    }

    /// Makes one tenant's table or part of one, and loads its records.
    async fn add(
        &mut self,
        order: &Order<'_>,
        tenant: usize,
        (all, pools): (&mut Option<Arc<dyn Store>>, &Pools),
    ) -> Result<()> {
        let rows = order.people.rows(tenant)?;
        if self.way == Way::Shared {
            if all.is_none() {
                let place = self.spec.place(&Pools::default(), tenant).await?;
                self.describe(&place).await?;
                let table = place.table(TABLE)?;
                table.prepare(&shared::layout()).await?;
                *all = Some(table);
            }
            let Some(table) = all else { return Ok(()) };
            return shared::part(table, &self.spec.names[tenant])?.load(&rows).await;
        }
        if self.way == Way::Databases && self.gateway.is_none() {
            let name = self.spec.names[tenant].clone();
            Databases::create(&self.spec.url, &name).await?;
            if order.target.is_own() {
                self.made.names.push(name);
            }
        }
        let place = self.spec.place(pools, tenant).await?;
        if tenant == 0 {
            self.describe(&place).await?;
            if place.is_part() {
                self.spec.open = self.spec.open.saturating_mul(Pools::PARTS as usize);
            }
        }
        let table = place.table(TABLE)?;
        table.prepare(&shared::own_layout()).await?;
        table.load(&rows).await?;
        table.analyze().await
    }

    async fn describe(&mut self, place: &Place) -> Result<()> {
        self.described = Some(place.describe().await?);
        Ok(())
    }

    /// Whether it is SQLite, in the process of whoever uses it.
    pub(super) fn is_embedded(&self) -> bool {
        self.spec.url.starts_with("sqlite:")
    }

    /// Starts the server again, if there is one.
    ///
    /// # Errors
    /// As [`Server::restart`].
    pub(super) fn start(&mut self) -> Result<()> {
        self.server.as_mut().map_or(Ok(()), Server::restart)
    }

    /// Shuts the server down in good order, if there is one.
    pub(super) fn rest(&mut self) {
        if let Some(server) = &mut self.server {
            server.rest_within(GRACE);
        }
    }

    /// Drops what was made in a server of the user's own.
    ///
    /// # Errors
    /// The first of what could not be dropped; the others are, all the same.
    pub(super) async fn drop_made(&mut self) -> Result<()> {
        let mut done = Ok(());
        for name in self.made.names.drain(..) {
            let dropped = Databases::remove(&self.made.url, &name).await.map_err(|e| {
                let what = format!("{name}, made for this run, is still there: {}", e.context());
                Error::new(e.kind(), what).with_source(e)
            });
            done = done.and(dropped);
        }
        self.made.left = None;
        done
    }
}

/// The folder of its data; none in a server that is not ours.
fn data(order: &Order<'_>, server: Option<&Server>) -> Option<PathBuf> {
    match server {
        Some(server) => Some(server.data().to_owned()),
        None => (!order.target.is_own()).then(|| order.folder.join(DATA)),
    }
}

/// The kind of a store's databases: the scheme of its URLs.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) for a store that gives no tenant a database of its own, or that the user has in a
/// file.
pub(super) fn scheme(target: &Target) -> Result<&'static str> {
    const KNOWN: [(&str, &str); 6] = [
        ("sqlite", "sqlite"),
        ("postgres", "postgres"),
        ("mariadb", "mysql"),
        ("mysql", "mysql"),
        ("mongodb", "mongodb"),
        ("ferretdb", "mongodb"),
    ];
    let url = target.url(None, Path::new("/"));
    let name = target.program().map_or_else(
        || url.split(':').next().unwrap_or_default().to_ascii_lowercase(),
        |program| program.name.to_owned(),
    );
    let name = if name == "postgresql" { "postgres".to_owned() } else { name };
    if target.is_own() && target.is_embedded() {
        let what = format!("{}: files of your own are not used; name sqlite", target.label);
        return Err(Error::invalid(what));
    }
    if target.delay().is_some() {
        return Err(Error::invalid(format!("{}: tenants cannot be delayed", target.label)));
    }
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    known.map(|(_, scheme)| *scheme).ok_or_else(|| {
        let all = "sqlite, postgres, mariadb, ferretdb, mongodb, or the URL of such a server";
        let what =
            format!("{} gives no tenant a database of its own; those that do: {all}", target.label);
        Error::new(ErrorKind::Invalid, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_with_databases_take_part() {
        let of = |text: &str| scheme(&Target::parse(text).unwrap());
        for (text, want) in [
            ("sqlite?durability=t1", "sqlite"),
            #[cfg(feature = "postgres")]
            ("a=postgres", "postgres"),
            #[cfg(feature = "postgres")]
            ("postgresql://u:p@h/db", "postgres"),
            #[cfg(feature = "mysql")]
            ("mariadb", "mysql"),
            #[cfg(feature = "mongodb")]
            ("ferretdb", "mongodb"),
        ] {
            assert_eq!(of(text).unwrap(), want, "{text}");
        }
        for text in ["memory", "dir", "memcached", "sqlite:/x/a.db", "sqlite?delay=10%"] {
            assert_eq!(of(text).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
        }
    }
}
