//! The names of the tables of a place.

use std::sync::Arc;

use steelyard::{ErrorKind, store::Store};

use super::{Outcome, Subject, ensure, of_kind, row, rows};
use crate::stores::places::{self, Fault, Wrap, layout};

/// The drivers whose tables are nothing but their records.
const WITHOUT: [&str; 4] = ["memcached", "redis", "s3", "tyrant"];

/// Whether a store has no list of its tables and may say so: it is one of those drivers, or shares its tables with
/// others by a prefix.
fn may_have_none(subject: &Subject) -> bool {
    let prefixed = match subject.wrap {
        Wrap::Prefix | Wrap::Tenant | Wrap::All => true,
        // The shards of a server are prefixes.
        Wrap::Shards => subject.server().is_some(),
        Wrap::Bare | Wrap::Replicas => false,
    };
    prefixed || WITHOUT.contains(&subject.driver())
}

/// The names there are, of which those with this in them are nobody else's.
async fn listed(subject: &Subject, store: &dyn Store, own: &str) -> Result<Vec<String>, Fault> {
    let mut names = store.tables().await?;
    ensure!(names.is_sorted(), "not in the order of their bytes: {names:?}");
    ensure!(names.windows(2).all(|pair| pair[0] != pair[1]), "one name twice: {names:?}");
    // On a server other tests make and drop tables meanwhile.
    if subject.server().is_some() {
        names.retain(|name| name.contains(own));
    }
    Ok(names)
}

pub async fn tables(subject: &Subject) -> Outcome {
    let fresh = subject.open("").await?;
    let own = format!("{}_", places::name("list"));
    let mut want = match listed(subject, &*fresh.store, &own).await {
        Ok(names) => names,
        Err(fault) => match fresh.store.tables().await {
            Ok(_) => return Err(fault),
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                ensure!(may_have_none(subject), "it should list its tables: {e:?}");
                return Ok(());
            }
            // A file or a folder that is not there yet.
            Err(e) => {
                of_kind(&e, &[ErrorKind::NotFound])?;
                ensure!(subject.server().is_none(), "{e:?}");
                Vec::new()
            }
        },
    };
    let plain = layout(fresh.store.shape(), &rows(1))?;
    // Sorted without regard to case, or by letters first, they would stand in another order; the last ones are spelled
    // differently in some stores.
    let ends = ["b", "C", "_a", "1", "", "größe %", "$24x.+y"];
    let mut made: Vec<(String, Arc<dyn Store>)> = Vec::new();
    for name in ends.map(|end| format!("{own}{end}")) {
        match fresh.store.table(&name) {
            Ok(store) => {
                store.prepare(&plain).await?;
                made.push((name, store));
            }
            Err(e) => of_kind(&e, &[ErrorKind::Invalid])?,
        }
    }
    ensure!(made.len() >= 4, "only {} of the tables {ends:?} can be", made.len());
    // Named, and looked for, but not made.
    let never = fresh.store.table(&format!("{own}never"))?;
    never.count().await.ok();
    want.extend(made.iter().map(|(name, _)| name.clone()));
    want.sort();
    let found = listed(subject, &*fresh.store, &own).await?;
    ensure!(found == want, "{found:?} instead of {want:?}");
    // Records change nothing, be they many or none, nor does who asks.
    made[1].1.put(&rows(3)).await?;
    made[2].1.put(&[row("k", 1)]).await?;
    made[2].1.remove(&[row("k", 1).key]).await?;
    let found = listed(subject, &*never, &own).await?;
    ensure!(found == want, "with records: {found:?} instead of {want:?}");
    for gone in [1, 0] {
        let (name, store) = made.remove(gone);
        store.drop_table().await?;
        want.retain(|other| *other != name);
        for (who, asked) in [("it", &store), ("another", &made[0].1)] {
            let found = listed(subject, &**asked, &own).await?;
            ensure!(found == want, "{name} was dropped; {who} lists {found:?} instead of {want:?}");
        }
    }
    for (_, store) in &made {
        store.drop_table().await?;
    }
    fresh.done().await
}
