//! The model against a memcached: the records are stored in a private one, and its classes and pages
//! compared.

use std::collections::BTreeMap;

use steelyard::{
    Error, Result,
    memcache::{Client, Expiry, Options, slabs::Load},
    server::{self, Wish},
};

use super::super::{Outcome, print, progress::count};
use super::{Args, source, source::Source};

pub fn run(source: &Source, load: &Load, args: &Args) -> Result<Outcome> {
    let program = server::named("memcached")?;
    // It says "memcached 1.6.18".
    let says = program.find().and_then(|binary| program.version_of(&binary)).unwrap_or_default();
    let version = says.split(' ').next_back().unwrap_or_default();
    // All must find room: what is thrown out is counted nowhere.
    let room = load.pages() + load.classes.len() as u64 + 8;
    let named = source.settings.named(version).into_iter();
    let wish = Wish {
        memory: Some(source.settings.memory.max(room)),
        settings: named.map(|(name, value)| (name.to_owned(), value)).collect(),
        ..Wish::default()
    };
    let server = program.start(&wish)?;
    let host = server.url().trim_start_matches("memcached://");
    let client = Client::new([host], Options::default())?;
    let records = args.records.as_deref().unwrap_or("-");
    if records == "-" {
        return Err(Error::invalid("--verify reads the records twice: give a file"));
    }
    let asked = (args.from.clone(), args.format.clone(), args.key.as_deref());
    let (mut writes, mut number) = (client.noblock(), 0u64);
    let mut lost = 0;
    source::each_item(records, asked, |key, value| {
        number += 1;
        match key {
            Some(key) => writes.set(key.as_str(), value, Expiry::Never)?,
            None => writes.set(format!("{number:036}"), value, Expiry::Never)?,
        }
        if number.is_multiple_of(10_000) {
            lost += writes.barrier().len() as u64;
        }
        Ok(())
    })?;
    lost += writes.barrier().len() as u64;
    drop(writes);
    let there = shown(&client)?;
    let mut text = String::new();
    for usage in load.classes.iter().filter(|usage| usage.pages > 0) {
        let (chunks, pages) = there.get(&usage.class.id).copied().unwrap_or_default();
        if (chunks, pages) != (usage.chunks, usage.pages) {
            text += &format!(
                "class {}: {chunks} chunks on {pages} pages there, {} on {} in the model\n",
                usage.class.id, usage.chunks, usage.pages
            );
        }
    }
    let pages: u64 = there.values().map(|(_, pages)| pages).sum();
    if lost != load.refused {
        text += &format!("{lost} refused there, {} in the model\n", load.refused);
    }
    if pages != load.pages() {
        text += &format!("{pages} pages there, {} in the model\n", load.pages());
    }
    if text.is_empty() {
        print(format!(
            "verified on memcached {version}: {} stored, {}, every class and page as in the model\n",
            count(load.held, "item"),
            count(pages, "page")
        ))?;
        return Ok(Outcome::Well);
    }
    text += "they differ; duplicate keys are one item, and the second record replaces the first\n";
    print(text)?;
    Ok(Outcome::Found)
}

/// Chunks in use and pages of each class, as the server shows them.
fn shown(client: &Client) -> Result<BTreeMap<usize, (u64, u64)>> {
    let mut classes: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for (name, value) in client.stats("slabs").remove(0).1? {
        let Some((id, what)) = name.split_once(':') else { continue };
        let (Ok(id), Ok(value)) = (id.parse(), value.parse::<u64>()) else { continue };
        match what {
            "used_chunks" => classes.entry(id).or_default().0 = value,
            "total_pages" => classes.entry(id).or_default().1 = value,
            _ => {}
        }
    }
    Ok(classes)
}
