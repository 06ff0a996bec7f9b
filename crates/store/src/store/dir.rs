//! `dir:path` — a file for each blob, in a folder for each table.
//!
//! A file's name is its key, written so that any key has one (`names.rs`), up to the 255 bytes that file systems
//! have; a table's folder has such a name with a `+` after it. A file is written beside its place and moved there, so
//! that nobody sees half of one: t1, and with `?durability=t3` file and folder are synced before a write is
//! acknowledged. Until then it is locked by who writes it; what nobody holds the lock of was left by a process that
//! was killed, and is removed when the table is prepared. A list of the names is held in memory while they are gone
//! through, but no more than some blobs.
//!
//! There are no conditional writes: no file system replaces a file only where it is still the same. No link is followed
//! below the folder that the URL names, nor one above it that another user may have [planted](link): it is an error.

mod files;

use std::{
    collections::BTreeSet,
    fs::{self, TryLockError},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use futures_util::{FutureExt, future::BoxFuture, stream::BoxStream};
use nix::unistd::geteuid;

use self::files::{content, is_no_file, is_none, no_file, opened, permissions, taken};
use super::{
    Abilities, Blob, Blobs, Client, Common, Description, Driver, Encoded, Facts, Key, KeyRange,
    Login, Shape, Store, Url,
    blobs::{CANNOT, fits, named},
    blocking,
    key::padded,
    limits::Limits,
    names,
    pool::{Pool, Turns},
    within,
};
use crate::{Error, ErrorKind, Result, durability::Tier, link};

pub(super) const DRIVER: Driver = Driver {
    name: "dir",
    aliases: &[],
    example: "dir:path?format=json+zstd",
    about: "a folder with one file per record, renamed into place when complete",
    shapes: &[Shape::Blob],
    facts: &[Facts::of(Shape::Blob, Abilities { cannot: CANNOT, ..ABILITIES })],
    limits: "a key that is no plain file name is longer in its spelling",
    tiers: &TIERS,
    clients: &[Client::Own],
    servers: &[],
    login: Login::None,
    databases: None,
    open,
};

const ABILITIES: Abilities = Abilities {
    driver: "dir",
    keeps: &[],
    loses: "",
    cannot: &[],
    joins: false,
    atomic: false,
    conditional: false,
    ordered: true,
    max_key: LONGEST,
    max_record: 1 << 40,
};

/// Bytes in the name of a file.
const LONGEST: usize = 255;
/// Files that are read at once.
const MANY: usize = 1000;
const TIERS: [Tier; 2] = [Tier::T1, Tier::T3];

fn open(url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        url.done()?;
        if url.path.is_empty() || !url.hosts.is_empty() {
            return Err(Error::invalid("dir: expects the path of a folder, as in dir:shop"));
        }
        if let Some(tier) = common.durability.filter(|tier| !TIERS.contains(tier)) {
            return Err(tier.refused("dir", &TIERS));
        }
        let format = common.blob_format();
        let table = common.table.clone();
        let turns = Arc::new(Turns::new(Limits::of(&common), url.path.clone()));
        let place = Place { root: PathBuf::from(url.path), turns, common };
        link::followed(&place.root)?;
        let blobs = Dir::new(Arc::new(place), &table)?;
        Ok(Arc::new(Encoded::new(Arc::new(blobs), format)?) as Arc<dyn Store>)
    }
    .boxed()
}

/// What the tables of a folder share.
struct Place {
    root: PathBuf,
    /// How many threads may wait for the file system.
    turns: Arc<Turns>,
    common: Common,
}

impl Place {
    /// Does something where waiting for the file system is allowed, within the time there is.
    async fn wait<I, T>(
        &self,
        what: &str,
        input: &I,
        act: impl FnOnce(&I) -> Result<T> + Send + 'static,
    ) -> Result<T>
    where
        I: ToOwned<Owned: Send + 'static> + ?Sized,
        T: Send + 'static,
    {
        let work = async {
            let turn = Pool::turn(self.turns.clone()).await?;
            blocking::work(input, move |input| {
                let _turn = turn;
                act(input)
            })
            .await
        };
        within(self.common.timeout, what, work).await.map_err(|e| match e.is_timeout() {
            true => e.in_place(self.turns.place()),
            false => e,
        })
    }
}

/// The names of the tables in a folder, in the order of their bytes.
fn tables(root: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(root).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => no_place(),
        _ => Error::from(e).in_place(root.display().to_string()),
    })?;
    let mut tables = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(names::OTHER));
        // A link is no table: none is followed.
        if let Some(table) = name.and_then(names::decode)
            && entry.file_type()?.is_dir()
        {
            tables.push(table.to_string());
        }
    }
    tables.sort_unstable();
    Ok(tables)
}

/// The error of a place whose folder is not there.
fn no_place() -> Error {
    Error::new(ErrorKind::NotFound, "no such folder; `put` and `copy` create one")
}

/// A table.
struct Dir {
    place: Arc<Place>,
    table: Arc<Folder>,
}

/// The folder of a table.
struct Folder {
    path: PathBuf,
    sync: bool,
}

impl Dir {
    fn new(place: Arc<Place>, table: &str) -> Result<Dir> {
        let name = format!("{}{}", names::encode(table), names::OTHER);
        if name.len() > LONGEST {
            return Err(Error::invalid(format!(
                "table {table:?} would be a folder with a name of {} bytes; the limit of file \
                 systems is {LONGEST}",
                name.len()
            )));
        }
        let sync = place.common.durability == Some(Tier::T3);
        let table = Arc::new(Folder { path: place.root.join(name), sync });
        Ok(Dir { place, table })
    }

    /// Does something with the table where waiting for the file system is allowed, within the time there is.
    async fn wait<I, T>(
        &self,
        what: &str,
        input: &I,
        act: impl FnOnce(&Folder, &I) -> Result<T> + Send + 'static,
    ) -> Result<T>
    where
        I: ToOwned<Owned: Send + 'static> + ?Sized,
        T: Send + 'static,
    {
        let table = self.table.clone();
        self.place
            .wait(what, input, move |input| {
                table.is_no_link()?;
                act(&table, input)
            })
            .await
    }

    async fn names(&self, range: &KeyRange) -> Result<Vec<Key>> {
        self.wait("a list of files", range, Folder::keys).await
    }
}

/// The error of a file, naming its key.
fn of(key: &Key) -> impl Fn(io::Error) -> Error {
    move |e| named(e.into(), key)
}

impl Folder {
    /// Refuses a folder that is a link. That there is none yet is right.
    fn is_no_link(&self) -> Result<()> {
        match fs::symlink_metadata(&self.path) {
            Ok(data) if data.is_symlink() => {
                let what = "the folder of the table is a link, which is not followed; put a folder in its place";
                Err(Error::new(ErrorKind::Denied, what).in_place(self.path.display().to_string()))
            }
            _ => Ok(()),
        }
    }

    /// The error of a place whose folder is not there. That it has no table is right.
    fn is_placed(&self) -> Result<()> {
        match self.path.parent().map(Path::symlink_metadata) {
            Some(Err(e)) if e.kind() == io::ErrorKind::NotFound => Err(no_place()),
            _ => Ok(()),
        }
    }

    /// Whether there is a record; an error where there is something else in its place.
    fn has(&self, key: &Key) -> Result<bool> {
        let path = self.file(key);
        match fs::symlink_metadata(&path) {
            Ok(data) if data.is_file() => Ok(true),
            Ok(_) => Err(no_file(key, &path)),
            Err(e) if is_none(&e) => self.is_placed().map(|()| false),
            Err(e) => Err(of(key)(e)),
        }
    }

    fn file(&self, key: &Key) -> PathBuf {
        self.path.join(names::encode(key))
    }

    /// The keys in a range, in order.
    fn keys(&self, range: &KeyRange) -> Result<Vec<Key>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return self.is_placed().map(|()| Vec::new());
            }
            Err(e) => return Err(Error::from(e).in_place(self.path.display().to_string())),
        };
        let mut keys = Vec::new();
        for entry in entries {
            // What has no name of ours is not ours.
            let entry = entry?;
            let key = entry.file_name().to_str().and_then(names::decode);
            let Some(key) = key.filter(|key| range.contains(key)) else { continue };
            // As the list of names has it.
            if !entry.file_type()?.is_file() {
                return Err(no_file(&key, &entry.path()));
            }
            keys.push(key);
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// Writes files; `new` ones must not be there.
    fn write(&self, blobs: &[Blob], new: bool) -> Result<()> {
        if new {
            let mut seen = BTreeSet::new();
            for Blob { key, .. } in blobs {
                if !seen.insert(key) || self.has(key)? {
                    return Err(taken(key));
                }
            }
        } else {
            // What would be replaced.
            blobs.iter().try_for_each(|blob| self.has(&blob.key).map(drop))?;
        }
        for blob in blobs {
            self.write_one(blob, new).map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => taken(&blob.key),
                io::ErrorKind::NotFound => Error::new(
                    ErrorKind::NotFound,
                    format!("no folder {}; prepare creates it", self.path.display()),
                ),
                _ => of(&blob.key)(e),
            })?;
        }
        if self.sync && !blobs.is_empty() {
            self.sync_folder()?;
        }
        Ok(())
    }

    fn write_one(&self, blob: &Blob, new: bool) -> io::Result<()> {
        // Another process may take a file for a left-over before it is locked.
        const TRIES: usize = 3;
        let mut done = self.try_write_one(blob, new);
        for _ in 1..TRIES {
            match &done {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                _ => break,
            }
            done = self.try_write_one(blob, new);
        }
        done
    }

    fn try_write_one(&self, blob: &Blob, new: bool) -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        let prefix = names::OTHER.to_string();
        let mut file =
            builder.prefix(&prefix).permissions(permissions()).tempfile_in(&self.path)?;
        match file.as_file().try_lock() {
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::NotFound.into()),
            // Without locks nobody takes it for a left-over.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        file.write_all(&blob.bytes)?;
        if self.sync {
            file.as_file().sync_all()?;
        }
        let path = self.file(&blob.key);
        match new {
            true => file.persist_noclobber(path)?,
            false => file.persist(path)?,
        };
        Ok(())
    }

    /// Removes files that processes left behind which were killed while they wrote them.
    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if !name.to_str().is_some_and(|name| name.starts_with(names::OTHER)) {
                continue;
            }
            // That it stays is no harm. Who opens a file that is complete meanwhile finds its name gone.
            let path = self.path.join(name);
            let ours = |data: fs::Metadata| data.is_file() && data.uid() == geteuid().as_raw();
            if let Ok(file) = opened(&path)
                && file.metadata().is_ok_and(ours)
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    fn sync_folder(&self) -> Result<()> {
        fs::File::open(&self.path)?.sync_all()?;
        Ok(())
    }

    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        // A longer name is none that could be there.
        let path = self.file(key);
        let mut file = match opened(&path) {
            Ok(file) => file,
            Err(e) if is_none(&e) => return self.is_placed().map(|()| None),
            Err(e) if is_no_file(&e) => return Err(no_file(key, &path)),
            Err(e) => return Err(of(key)(e)),
        };
        let data = file.metadata().map_err(of(key))?;
        match data.is_file() {
            true => content(&mut file, data.len()).map(Some).map_err(of(key)),
            false => Err(no_file(key, &path)),
        }
    }

    /// The first of these files, up to a batch that is large, and how many keys those were.
    fn read_some(&self, keys: &[Key]) -> Result<(Vec<Blob>, usize)> {
        const MUCH: usize = 4 << 20;
        let (mut batch, mut bytes, mut done) = (Vec::new(), 0, 0);
        for key in keys {
            done += 1;
            // One may have been deleted since.
            if let Some(content) = self.read(key)? {
                bytes += content.len();
                batch.push(Blob { key: key.clone(), bytes: content });
            }
            if bytes >= MUCH {
                break;
            }
        }
        Ok((batch, done))
    }

    fn remove(&self, keys: &[Key]) -> Result<u64> {
        let mut removed = 0;
        for key in keys {
            if !self.has(key)? {
                continue;
            }
            match fs::remove_file(self.file(key)) {
                Ok(()) => removed += 1,
                Err(e) if is_none(&e) => {}
                Err(e) => return Err(of(key)(e)),
            }
        }
        if self.sync && removed > 0 {
            self.sync_folder()?;
        }
        Ok(removed)
    }

    /// Removes all that is ours, and the folder, if nothing else is in it.
    fn clear(&self) -> Result<()> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(Error::from(e).in_place(self.path.display().to_string())),
        };
        for entry in entries {
            let name = entry?.file_name();
            let ours = name.to_str().is_some_and(|name| {
                name.starts_with(names::OTHER) || names::decode(name).is_some()
            });
            if ours {
                match fs::remove_file(self.path.join(&name)) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e.into()),
                    _ => {}
                }
            }
        }
        match fs::remove_dir(&self.path) {
            Err(e)
                if !matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                ) =>
            {
                Err(e.into())
            }
            _ => Ok(()),
        }
    }

    fn size(&self) -> Result<Option<u64>> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Ok(None) };
        let mut bytes = 0;
        for entry in entries {
            // Blocks as they are on disk; one may be gone since.
            bytes += entry?.metadata().map_or(0, |meta| meta.blocks() * 512);
        }
        Ok(Some(bytes))
    }
}

#[async_trait]
impl Blobs for Dir {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(Dir::new(self.place.clone(), name)?))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.place.wait("a list of folders", &*self.place.root, tables).await
    }

    async fn prepare(&self) -> Result<()> {
        self.wait("making a folder", &(), |table, &()| {
            if let Some(root) = table.path.parent() {
                link::followed(root)?;
            }
            fs::create_dir_all(&table.path)
                .and_then(|()| table.sweep())
                .map_err(|e| Error::from(e).in_place(table.path.display().to_string()))?;
            if table.sync {
                // The folder itself is an entry of the one around it.
                fs::File::open(table.path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
            }
            Ok(())
        })
        .await
    }

    fn check(&self, key: &Key, bytes: usize) -> Result<()> {
        let name = names::encode(key).len();
        if name > LONGEST {
            return Err(Error::invalid(format!(
                "key {}: its file would have a name of {name} bytes; the limit of file systems is \
                 {LONGEST}; other stores have longer keys",
                key.shown()
            )));
        }
        fits(&ABILITIES, key, bytes)
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        blobs.iter().try_for_each(|blob| self.check(&blob.key, blob.bytes.len()))?;
        self.wait("a put", blobs, |table, blobs| table.write(blobs, false)).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        blobs.iter().try_for_each(|blob| self.check(&blob.key, blob.bytes.len()))?;
        self.wait("a load", blobs, |table, blobs| table.write(blobs, true)).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        let read = |table: &Folder, keys: &[Key]| keys.iter().map(|key| table.read(key)).collect();
        self.wait("a get", keys, read).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.wait("a remove", keys, Folder::remove).await
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let keys = self.names(range).await?;
        Ok(Box::pin(async_stream::try_stream! {
            let mut left = &keys[..];
            while !left.is_empty() {
                let next = &left[..left.len().min(MANY)];
                let (batch, done) = self.wait("reading files", next, Folder::read_some).await?;
                left = &left[done..];
                if !batch.is_empty() {
                    yield batch;
                }
            }
        }))
    }

    async fn count(&self) -> Result<u64> {
        Ok(self.names(&KeyRange::all()).await?.len() as u64)
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        let keys = self.names(&KeyRange::all()).await?;
        let each = keys.len().div_ceil(parts.max(1) as usize).max(1);
        let borders = keys.into_iter().step_by(each).skip(1).take(parts.saturating_sub(1) as usize);
        Ok(padded(borders.collect(), parts))
    }

    async fn drop_table(&self) -> Result<()> {
        self.wait("removing files", &(), |table, &()| table.clear()).await
    }

    async fn describe(&self) -> Result<Description> {
        let asked = self.place.common.durability;
        Ok(Description {
            client: Client::Own,
            product: "files".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            shape: Shape::Blob,
            format: None,
            asked,
            set: Some(asked.unwrap_or(Tier::T1)),
            bound: None,
            limit: None,
            settings: vec![("folder".into(), self.table.path.display().to_string())],
            disk: self.wait("adding up files", &(), |table, &()| table.size()).await?,
        })
    }
}
