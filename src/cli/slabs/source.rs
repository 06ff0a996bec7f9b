//! Where items are counted: a file of records, or a memcached that runs.

use steelyard::{
    Error, ErrorKind, Result,
    file::Reading,
    format::{Coder, Takes, Wrapped},
    marc::Record,
    memcache::{
        Client, Options, Stats,
        slabs::{Census, Classes, Item, PAGE, Settings},
    },
    record::{self, Document, Value},
    store::{Key, query::Path},
};

use super::{
    super::{
        files,
        progress::{count, grouped},
    },
    Wish,
};

/// The length of a key where a record has none: that of a UUID, as `put` gives them.
const KEY: u64 = 36;

/// Items, and the server they are for.
pub struct Source {
    /// What they are, in a line.
    pub about: String,
    /// The items.
    pub census: Census,
    /// The settings of the server.
    pub settings: Settings,
    /// Its version, where there is one.
    pub version: Option<String>,
    /// Its pages, where there is one.
    pub pages: Option<u64>,
    /// What is to be known besides.
    pub notes: Vec<String>,
}

/// What a file is read as: its format, the format of values, the field of keys.
pub type Asked<'a> = (Option<Wrapped>, Wrapped, Option<&'a str>);

/// Calls `each` with the key (none where a record has none) and the value of every record.
pub fn each_item(
    file: &str,
    (from, format, field): Asked<'_>,
    mut each: impl FnMut(Option<Key>, &[u8]) -> Result<()>,
) -> Result<()> {
    let usual = (file == "-").then(|| steelyard::format::Format::Json.into());
    let reading = Reading { format: from.or(usual), ..Reading::default() };
    let mut frames = files::open(file, &reading)?;
    let (mut reader, mut writer) = (Coder::new(frames.format().clone())?, Coder::new(format)?);
    let marc_in = reader.wrapped().format.info().takes == Takes::Marc;
    let marc_out = writer.wrapped().format.info().takes == Takes::Marc;
    let (mut marc, mut value) = (Record::new(), Vec::new());
    while let Some(frame) = frames.next()? {
        let (number, offset) = (frame.number, frame.offset);
        let at = |e: Error| e.at(offset).at_record(number).in_place(file);
        if let Some(bad) = frame.bad {
            return Err(bad);
        }
        value.clear();
        let document = if marc_in {
            reader.decode_marc(frame.bytes, &mut marc).map_err(at)?;
            writer.encode_marc(marc.as_ref(), &mut value).map_err(at)?;
            match field.map(|_| record::to_value(&marc)).transpose().map_err(at)? {
                Some(Value::Map(document)) => Some(document),
                _ => None,
            }
        } else {
            let mut document: Document = reader.decode_document(frame.bytes).map_err(at)?;
            let key = document.get(Path::KEY).cloned();
            document.remove(Path::KEY);
            if marc_out {
                return Err(at(Error::invalid("values in a format of MARC take MARC records")));
            }
            writer.encode_document(&document, &mut value).map_err(at)?;
            if let Some(key) = key {
                document.push(Path::KEY, key);
            }
            Some(document)
        };
        let key = match (&document, field) {
            (Some(document), field) => {
                let name = field.unwrap_or(Path::KEY);
                match document.get(name) {
                    None => None,
                    Some(_) => Some(Key::of(document, name).map_err(at)?),
                }
            }
            (None, _) => None,
        };
        each(key, &value)?;
    }
    Ok(())
}

/// The items that the records of a file would be.
pub fn file(file: &str, asked: Asked<'_>) -> Result<Source> {
    let (mut census, mut keyless) = (Census::default(), 0);
    let format = asked.1.clone();
    each_item(file, asked, |key, value| {
        keyless += u64::from(key.is_none());
        let key = key.map_or(KEY, |key| key.as_str().len() as u64);
        census.add(Item::new(key, value.len() as u64));
        Ok(())
    })?;
    let mut notes = Vec::new();
    if keyless > 0 {
        notes.push(format!(
            "{} without a key: counted with one of {KEY} bytes; --key names the field",
            count(keyless, "record")
        ));
    }
    Ok(Source {
        about: format!("{}, {} of {format}", file, count(census.len(), "value")),
        census,
        settings: Settings::default(),
        version: None,
        pages: None,
        notes,
    })
}

/// What a server holds, by its list of keys.
pub fn live(url: &str, wish: &Wish) -> Result<Source> {
    let host = url.strip_prefix("memcached://").unwrap_or(url).trim_end_matches('/');
    if host.contains([',', '?', '@']) {
        return Err(Error::invalid(format!(
            "{url}: one server at a time, as memcached://host:port"
        )));
    }
    let options = Options { timeout: std::time::Duration::from_secs(10), ..Options::default() };
    let client = Client::new([host], options)?;
    let one = |mut each: Vec<(String, Result<Stats>)>| each.remove(0).1;
    let stats = one(client.stats("settings"))?;
    let version = client.version().remove(0).1?;
    let of = |name: &str| stats.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    let number = |name: &str| of(name).and_then(|value| value.parse::<u64>().ok());
    let usual = Settings::default();
    let said = Settings {
        factor: of("growth_factor").and_then(|f| f.parse().ok()).unwrap_or(usual.factor),
        chunk: number("chunk_size").unwrap_or(usual.chunk),
        slab_sizes: None,
        item_max: number("item_size_max").unwrap_or(usual.item_max),
        chunk_max: number("slab_chunk_max").filter(|most| *most != PAGE / 2),
        memory: number("maxbytes").map_or(usual.memory, |bytes| bytes >> 20),
        cas: of("cas_enabled") != Some("no"),
    };
    let slabs = one(client.stats("slabs"))?;
    let mut notes = Vec::new();
    let settings = match wish.is_empty() {
        true => fitting(said, &slabs, &mut notes),
        false => wish.over(said),
    };
    let mut census = Census::default();
    let list = |how: &str, census: &mut Census| {
        client.list_keys(0, how, |line| {
            let (key, total) = listed(line).ok_or_else(|| {
                Error::malformed(format!("a listed key: {}", String::from_utf8_lossy(line)))
            })?;
            // What is not known of an item is whether it has flags; its size is.
            let head = Item::new(key, 0).total(&settings);
            census.add(Item::new(key, total.saturating_sub(head)));
            Ok(())
        })
    };
    let done = match list("hash", &mut census) {
        // Older servers list by use only.
        Err(e) if e.kind() == ErrorKind::Unsupported => list("all", &mut census),
        done => done,
    };
    done.map_err(|e| match e.kind() {
        ErrorKind::Unsupported => {
            let what = format!("{}; give the records themselves, in a file", e.context());
            Error::unsupported(what).in_place(host)
        }
        _ => e,
    })?;
    let pages = slabs.iter().filter(|(name, _)| name.ends_with(":total_pages"));
    let pages = pages.filter_map(|(_, value)| value.parse::<u64>().ok()).sum();
    Ok(Source {
        about: format!(
            "{host}, memcached {version}, {} listed; {} pages in use",
            count(census.len(), "item"),
            grouped(pages)
        ),
        census,
        settings,
        version: Some(version),
        pages: Some(pages),
        notes,
    })
}

/// Key length and size of a listed key: `key=a%20b exp=-1 la=… cas=… fetch=no cls=1 size=63`.
fn listed(line: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split(' ').filter_map(|word| word.split_once('='));
    let (_, key) = words.next().filter(|(name, _)| *name == "key")?;
    let escapes = key.matches('%').count();
    let (_, size) = words.find(|(name, _)| *name == "size")?;
    Some(((key.len() - 2 * escapes) as u64, size.trim_end().parse().ok()?))
}

/// The settings under which the classes are those that the server shows: it tells its factor with two
/// decimals only, and not its sizes of slabs.
fn fitting(said: Settings, slabs: &[(String, String)], notes: &mut Vec<String>) -> Settings {
    let shown: Vec<(usize, u64)> = slabs
        .iter()
        .filter_map(|(name, value)| {
            let id = name.strip_suffix(":chunk_size")?;
            Some((id.parse().ok()?, value.parse().ok()?))
        })
        .collect();
    let fits = |settings: &Settings| {
        Classes::new(settings).is_ok_and(|classes| {
            shown.iter().all(|(id, chunk)| {
                classes.all().get(id - 1).is_some_and(|class| class.chunk == *chunk)
            })
        })
    };
    // The roundest first.
    let steps = [(0.005, 1), (0.001, 5), (0.0001, 50)];
    let mut factors = steps.into_iter().flat_map(|(step, most)| {
        (-most..=most).map(move |n| (said.factor + step * f64::from(n), step))
    });
    let round = |(factor, step): (f64, f64)| ((factor / step).round() * step * 1e6).round() / 1e6;
    let with = |factor| Settings { factor, ..said.clone() };
    let tried =
        std::iter::once(said.factor).chain(factors.by_ref().map(round)).map(with).find(fits);
    tried.unwrap_or_else(|| {
        notes.push(
            "the server's classes are not those of its factor: it was started with -o slab_sizes, \
             which it does not tell; name them with --slab-sizes"
                .into(),
        );
        said.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_keys_are_read_by_name() {
        let line = b"key=a%20b exp=-1 la=1 cas=2 fetch=no cls=1 size=63 flags=0 ";
        assert_eq!(listed(line), Some((3, 63)));
        assert_eq!(listed(b"exp=1"), None);
    }
}
