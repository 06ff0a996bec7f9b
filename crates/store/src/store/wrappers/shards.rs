//! One store of several: each key has one of them that keeps it.
//!
//! Which one, is rendezvous hashing ([`rendezvous`](crate::store::rendezvous())): with a store more, only the keys that go
//! to it move.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use async_stream::try_stream;
use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, future::join_all, stream};

use super::{
    cut,
    spread::{NOTES, Spread},
};
use crate::{
    Error, ErrorKind, Result,
    format::Wrapped,
    record::Document,
    store::{
        Abilities, Blobs, Description, Expected, Explained, Filter, Join, Joined, Key, KeyRange,
        Layout, Part, Query, Request, Row, Rows, Shape, Store, blobs,
        blocking::side_by_side,
        no,
        rendezvous::{Seat, seat_of},
    },
};

/// Several stores as one.
///
/// A batch is written to all of them at the same time, and not as a whole: some may have it and
/// others not when it fails. Records come sorted where each store sorts them; between values of
/// different kinds the stores' own orders have to be those of [`Query::order`], or the merged order
/// is no better.
///
/// The stores have to be different places, or different prefixes of one: [`table`](Store::table)
/// asks each for the table of that name, which has to be another one in each.
pub struct Shards {
    stores: Vec<Arc<dyn Store>>,
    seats: Arc<[Seat]>,
    abilities: Abilities,
    /// What is noted of the table, where its shards have names.
    spread: Option<Spread>,
}

impl Shards {
    /// These stores as one. Their order matters: it says which keys are whose.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) where there is none, or where they are too different to be
    /// one: in other layouts, or keeping other kinds of value.
    pub fn new(stores: Vec<Arc<dyn Store>>) -> Result<Shards> {
        let seats = (0..stores.len()).map(Seat::numbered).collect();
        Shards::seated(stores, seats)
    }

    /// These stores as one, by their names and weights: the names say which keys are whose, in any order.
    ///
    /// # Errors
    /// As [`new`](Shards::new); also where a name is there twice, or no weight is more than 0.
    pub fn named(stores: Vec<(String, f64, Arc<dyn Store>)>) -> Result<Shards> {
        let names: BTreeSet<&str> = stores.iter().map(|(name, ..)| name.as_str()).collect();
        if names.len() < stores.len() {
            return Err(Error::invalid("two shards of one name"));
        }
        if !stores.is_empty() && !stores.iter().any(|(_, weight, _)| *weight > 0.0) {
            return Err(Error::invalid("no shard has a weight of more than 0"));
        }
        let seats = stores.iter().map(|(name, weight, _)| Seat::named(name, *weight)).collect();
        Shards::seated(stores.into_iter().map(|(.., store)| store).collect(), seats)
    }

    /// The same of these tables, one in each shard, beside which it is noted over which shards they are spread. Where it was
    /// noted that they are spread over others, every operation fails.
    ///
    /// # Errors
    /// As [`named`](Shards::named).
    pub(crate) fn noted(
        stores: Vec<(String, f64, Arc<dyn Store>)>,
        tables: Vec<String>,
    ) -> Result<Shards> {
        let shards = stores.iter().map(|(name, weight, _)| (name.as_str(), *weight));
        let spread = Some(Spread::new(shards, tables));
        Ok(Shards { spread, ..Shards::named(stores)? })
    }

    /// Looks whether the records are where these shards have them.
    async fn look(&self) -> Result<()> {
        match &self.spread {
            Some(spread) => spread.look(&self.stores).await,
            None => Ok(()),
        }
    }

    fn seated(stores: Vec<Arc<dyn Store>>, seats: Arc<[Seat]>) -> Result<Shards> {
        let Some(first) = stores.first() else {
            return Err(Error::invalid("shards of no store"));
        };
        if let Some(other) = stores.iter().find(|store| store.shape() != first.shape()) {
            return Err(Error::invalid(format!(
                "shards have layouts {} and {}; give all of them the same layout",
                first.shape(),
                other.shape()
            )));
        }
        let all = || stores.iter().map(|store| store.abilities());
        // What one of them keeps and all others too; what one of them cannot, and more than any.
        let keeps =
            all().find(|a| all().all(|b| a.keeps.iter().all(|kind| b.keeps.contains(kind))));
        let cannot =
            all().find(|a| all().all(|b| b.cannot.iter().all(|need| a.cannot.contains(need))));
        let (Some(keeps), Some(cannot)) = (keeps, cannot) else {
            return Err(Error::invalid(
                "shards in stores of which each can or keeps something that another does not",
            ));
        };
        let same = all().all(|a| a.driver == first.abilities().driver);
        let abilities = Abilities {
            driver: if same { first.abilities().driver } else { "shards" },
            keeps: keeps.keeps,
            loses: keeps.loses,
            cannot: cannot.cannot,
            joins: false,
            atomic: false,
            conditional: all().all(|a| a.conditional),
            ordered: all().all(|a| a.ordered),
            max_key: all().map(|a| a.max_key).min().unwrap_or(0),
            max_record: all().map(|a| a.max_record).min().unwrap_or(0),
        };
        Ok(Shards { stores, seats, abilities, spread: None })
    }

    /// Which store has this key, from 0.
    pub fn shard(&self, key: &Key) -> usize {
        seat_of(&self.seats, key)
    }

    /// Where things with these keys are: for each store, their places in the list.
    fn places<'k>(&self, keys: impl Iterator<Item = &'k Key>) -> Vec<Vec<usize>> {
        let mut places = vec![Vec::new(); self.stores.len()];
        for (at, key) in keys.enumerate() {
            places[self.shard(key)].push(at);
        }
        places
    }

    /// The rows of each store that has any. All are checked before any is written.
    fn by_shard(&self, rows: &[Row]) -> Result<Vec<(&dyn Store, Vec<Row>)>> {
        rows.iter().try_for_each(|row| self.check(row))?;
        let places = self.places(rows.iter().map(|row| &row.key));
        let parts = self.stores.iter().zip(places).filter(|(_, places)| !places.is_empty());
        Ok(parts
            .map(|(store, places)| (&**store, places.iter().map(|&i| rows[i].clone()).collect()))
            .collect())
    }

    /// Asks all at the same time.
    async fn all<'a, T, F: Future<Output = Result<T>> + Send>(
        &'a self,
        ask: impl Fn(&'a dyn Store) -> F,
    ) -> Result<Vec<T>> {
        together(self.stores.iter().map(|store| ask(&**store))).await
    }
}

/// Waits for all of them, also where one fails: nothing may be on its way to a store any more when
/// an error is answered.
async fn together<T>(all: impl Iterator<Item = impl Future<Output = Result<T>>>) -> Result<Vec<T>> {
    side_by_side(join_all(all)).await.into_iter().collect()
}

/// Streams in an order, as one in that order.
fn merged<'a>(
    streams: Vec<Rows<'a>>,
    order: impl Fn(&Row, &Row) -> Ordering + Send + 'a,
) -> Rows<'a> {
    const BATCH: usize = 1000;
    Box::pin(try_stream! {
        // What is fetched of each, and the stream itself until it is at its end.
        let mut parts: Vec<(VecDeque<Row>, Option<Rows<'a>>)> =
            streams.into_iter().map(|rows| (VecDeque::new(), Some(rows))).collect();
        let mut batch = Vec::new();
        loop {
            for (fetched, rest) in &mut parts {
                while fetched.is_empty() && let Some(rows) = rest {
                    match rows.try_next().await? {
                        Some(rows) => fetched.extend(rows),
                        None => *rest = None,
                    }
                }
            }
            let first = parts
                .iter_mut()
                .map(|(fetched, _)| fetched)
                .filter(|fetched| !fetched.is_empty())
                .min_by(|a, b| order(&a[0], &b[0]));
            match first.and_then(VecDeque::pop_front) {
                Some(row) => batch.push(row),
                None => break,
            }
            if batch.len() == BATCH {
                yield std::mem::take(&mut batch);
            }
        }
        if !batch.is_empty() {
            yield batch;
        }
    })
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Store for Shards {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn shape(&self) -> Shape {
        self.stores[0].shape()
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        let stores = self.stores.iter().map(|store| store.table(name)).collect::<Result<_>>()?;
        let (seats, abilities) = (self.seats.clone(), self.abilities.clone());
        let spread = self.spread.as_ref().map(|spread| spread.of_table(name));
        Ok(Arc::new(Shards { stores, seats, abilities, spread }))
    }

    /// Each of its stores is on a server of its own: they are opened one by one.
    fn part(&self, _part: Part<'_>) -> Result<Option<Arc<dyn Store>>> {
        Ok(None)
    }

    /// Those that any of the stores has.
    async fn tables(&self) -> Result<Vec<String>> {
        let all = self.all(|store| store.tables()).await?;
        let all: BTreeSet<String> = all.into_iter().flatten().collect();
        Ok(all.into_iter().filter(|name| name != NOTES).collect())
    }

    fn blobs(&self) -> Option<(&dyn Blobs, &Wrapped)> {
        None
    }

    fn check(&self, row: &Row) -> Result<()> {
        blobs::fits(&self.abilities, &row.key, 0)?;
        self.stores[self.shard(&row.key)].check(row)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        self.look().await?;
        self.all(|store| store.prepare(layout)).await?;
        match &self.spread {
            Some(spread) => spread.note(&self.stores).await,
            None => Ok(()),
        }
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.look().await?;
        let parts = self.by_shard(rows)?;
        together(parts.iter().map(|(store, rows)| store.put(rows))).await.map(drop)
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.look().await?;
        let parts = self.by_shard(rows)?;
        together(parts.iter().map(|(store, rows)| store.load(rows))).await.map(drop)
    }

    async fn put_each(&self, _: &[Row]) -> Result<()> {
        Err(no(&self.abilities, "write to several databases in one transaction"))
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        self.abilities.can_conditional()?;
        self.check(row)?;
        self.look().await?;
        self.stores[self.shard(&row.key)].put_if(row, expected).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        self.abilities.can_conditional()?;
        self.look().await?;
        self.stores[self.shard(key)].remove_if(key, expected).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        self.look().await?;
        let places = self.places(keys.iter());
        let parts = self.stores.iter().zip(&places).filter(|(_, places)| !places.is_empty());
        let found = together(parts.map(|(store, places)| async move {
            let keys: Vec<_> = places.iter().map(|&i| keys[i].clone()).collect();
            Ok::<_, Error>((places, store.get(&keys).await?))
        }));
        let mut all = vec![None; keys.len()];
        for (places, found) in found.await? {
            for (&at, record) in places.iter().zip(found) {
                all[at] = record;
            }
        }
        Ok(all)
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        self.look().await?;
        if query.sort.is_empty() {
            // One after another: often the first has as many as are wanted.
            query.check()?;
            let wanted = query.clone();
            let mut first = Vec::new();
            // Whether it can be done at all, is told at once and not when rows are fetched.
            first.push(self.stores[0].find(query).await?);
            let rest = stream::iter(&self.stores[1..]).then(move |store| {
                let wanted = wanted.clone();
                async move { store.find(&wanted).await }
            });
            let rows = stream::iter(first).map(Ok).chain(rest).try_flatten().boxed();
            return Ok(cut(rows, query));
        }
        // To be merged, rows need the fields they are sorted by.
        let whole = Query { fields: None, ..query.clone() };
        let streams = self.all(|store| store.find(&whole)).await?;
        Ok(cut(merged(streams, move |a, b| whole.order(a, b)), query))
    }

    /// What belongs together may lie in different stores.
    async fn join(&self, _: &Join) -> Result<Vec<Joined>> {
        Err(no(&self.abilities, "join tables whose records are in several stores"))
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        self.look().await?;
        Ok(self.all(|store| store.delete(filter)).await?.into_iter().sum())
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.look().await?;
        let places = self.places(keys.iter());
        let removed = self.stores.iter().zip(&places).map(|(store, places)| async move {
            let keys: Vec<_> = places.iter().map(|&i| keys[i].clone()).collect();
            match keys.is_empty() {
                true => Ok(0),
                false => store.remove(&keys).await,
            }
        });
        Ok(together(removed).await?.into_iter().sum())
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        self.look().await?;
        if self.abilities.ordered {
            let streams = self.all(|store| store.scan(range)).await?;
            return Ok(merged(streams, |a, b| a.key.cmp(&b.key)));
        }
        let first = self.stores[0].scan(range).await?;
        let range = range.clone();
        let rest = stream::iter(&self.stores[1..]).then(move |store| {
            let range = range.clone();
            async move { store.scan(&range).await }
        });
        Ok(stream::iter([Ok(first)]).chain(rest).try_flatten().boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.look().await?;
        Ok(self.all(|store| store.count()).await?.into_iter().sum())
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        if !self.abilities.ordered {
            return blobs::one_part(&self.abilities, parts.max(1));
        }
        // Keys are spread by hash: where one store's are cut, about the same is cut of the others.
        // The fullest tells best.
        let counts = self.all(|store| store.count()).await?;
        let fullest = (0..counts.len()).max_by_key(|&i| counts[i]).unwrap_or(0);
        self.stores[fullest].split(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.look().await?;
        self.all(|store| store.drop_table()).await?;
        match &self.spread {
            Some(spread) => spread.forget(&self.stores).await,
            None => Ok(()),
        }
    }

    async fn settle(&self) -> Result<bool> {
        Ok(self.all(|store| store.settle()).await?.contains(&true))
    }

    async fn analyze(&self) -> Result<()> {
        self.all(|store| store.analyze()).await.map(drop)
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        Ok(self.all(|store| store.index_bytes()).await?.into_iter().sum())
    }

    async fn database_bytes(&self) -> Result<Option<u64>> {
        Ok(self.all(|store| store.database_bytes()).await?.into_iter().sum())
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        // Each is asked the same.
        self.stores[0].explain(request).await
    }

    async fn describe(&self) -> Result<Description> {
        let mut all = self.all(|store| store.describe()).await?.into_iter();
        let none = || Error::new(ErrorKind::NotFound, "shards of no store");
        let mut whole = all.next().ok_or_else(none)?;
        for one in all {
            for (whole, one) in
                [(&mut whole.product, one.product), (&mut whole.version, one.version)]
            {
                if !whole.split(", ").any(|part| part == one) {
                    *whole = format!("{whole}, {one}");
                }
            }
            // Together they promise what the weakest does; what one does not tell, nobody knows.
            whole.set = whole.set.zip(one.set).map(|(a, b)| a.min(b));
            whole.asked = whole.asked.zip(one.asked).map(|(a, b)| a.min(b));
            whole.disk = whole.disk.zip(one.disk).map(|(a, b)| a + b);
        }
        whole.settings.push(("shards".into(), self.stores.len().to_string()));
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{
        one_by_one, open,
        query::{Order, Path},
    };

    async fn shards(n: usize) -> Shards {
        let place = open("memory:").await.unwrap();
        let table = |i| place.table(&format!("shard{i}")).unwrap();
        Shards::new((0..n).map(table).collect()).unwrap()
    }

    fn row(i: i64) -> Row {
        let fields = [("a", i % 7), ("b", -i)];
        Row { key: Key::new(format!("k{i:05}")).unwrap(), record: Document::from_iter(fields) }
    }

    #[tokio::test]
    async fn keys_are_spread_and_stay_where_they_are() {
        let (three, four) = (shards(3).await, shards(4).await);
        let mut counts = [0; 3];
        let mut moved = 0;
        for i in 0..3000 {
            let key = row(i).key;
            counts[three.shard(&key)] += 1;
            if three.shard(&key) != four.shard(&key) {
                assert_eq!(four.shard(&key), 3, "only to the new one");
                moved += 1;
            }
        }
        assert!(counts.iter().all(|n| (900..1100).contains(n)), "{counts:?}");
        assert!((650..850).contains(&moved), "{moved}");
        // Pinned: what is kept hangs on it.
        let pinned =
            ["a", "b", "c", "k00000", "ü", "0"].map(|k| three.shard(&Key::new(k).unwrap()));
        assert_eq!(pinned, [2, 0, 0, 2, 0, 2]);
    }

    #[tokio::test]
    async fn sorted_rows_are_merged_and_cut() {
        let three = shards(3).await;
        let rows: Vec<_> = (0..2500).map(row).collect();
        three.put(&rows).await.unwrap();
        for store in &three.stores {
            assert!(store.count().await.unwrap() > 700);
        }
        let path = |name: &str| name.parse::<Path>().unwrap();
        let mut query = Query::default()
            .sorted(path("a"), Order::Descending)
            .sorted(path("b"), Order::Ascending)
            .limited(1800);
        query.fields = Some(vec!["b".into()]);
        let found = one_by_one(three.find(&query).await.unwrap());
        let found: Vec<Row> = found.try_collect().await.unwrap();
        let mut want = rows.clone();
        want.sort_by(|a, b| query.order(a, b));
        want.truncate(1800);
        for row in &mut want {
            row.record = query.project(std::mem::take(&mut row.record));
        }
        assert_eq!(found, want);
        let scanned = one_by_one(three.scan(&KeyRange::all()).await.unwrap());
        assert_eq!(scanned.try_collect::<Vec<Row>>().await.unwrap(), rows);
    }

    #[tokio::test]
    async fn tables_are_those_of_any_store() {
        let places = ["memory:", "memory:"].map(open);
        let places = futures_util::future::try_join_all(places).await.unwrap();
        let stores = places.iter().map(|place| place.store().clone()).collect();
        let shards = Shards::new(stores).unwrap();
        for (place, names) in places.iter().zip([["b", "A"], ["b", "_"]]) {
            for name in names {
                place.table(name).unwrap().prepare(&Layout::plain()).await.unwrap();
            }
        }
        assert_eq!(shards.tables().await.unwrap(), ["A", "_", "b"]);
    }

    #[tokio::test]
    async fn what_cannot_be_one_store_is_refused() {
        assert!(Shards::new(Vec::new()).is_err());
        let document = open("memory:").await.unwrap();
        let blob = open("memory:?format=json").await.unwrap();
        let other = open("memory:?format=cbor").await.unwrap();
        let of = |places: [&crate::store::Place; 2]| {
            Shards::new(places.map(|place| place.store().clone()).into())
        };
        let error = of([&document, &blob]).err().unwrap();
        assert!(error.to_string().contains("layouts document and blob"), "{error}");
        // The weaker of the two decides.
        let mixed = of([&blob, &other]).unwrap();
        assert_eq!(mixed.abilities().keeps, blob.abilities().keeps);
        assert!(!mixed.abilities().atomic);
    }
}
