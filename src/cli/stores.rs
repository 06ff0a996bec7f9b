//! `steelyard stores`, and what the verbs that talk to stores share.

use std::io::Write;

use steelyard::{
    Error, Result,
    format::{Coder, Wrapped, framing::Glue},
    record::Document,
    store::{self, DRIVERS, Place, Row, query::Path},
};
use tokio::runtime::{Builder, Handle, Runtime};

use super::{Outcome, print};

/// Lists the kinds of store there are, with an example of a URL for each.
///
/// Every one understands ?table=NAME, ?layout=document|columns|blob, ?format=FORMAT (of blobs, with
/// wraps: marshal+base64), ?durability=t0|t1|t2|t3, ?pool=N, ?connect_timeout=S and ?timeout=S;
/// postgres, mysql and redis also ?client=own|crate.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

const EXAMPLES: &str = "\
Examples:
  steelyard stores";

pub fn run(_: Args) -> Result<Outcome> {
    let mut text = String::new();
    for driver in DRIVERS {
        let shapes: Vec<_> = driver.shapes.iter().map(|shape| shape.name()).collect();
        text += &format!("{:10} {}\n", driver.name, driver.about);
        text += &format!("{:10} {}  (layouts: {})\n", "", driver.example, shapes.join(", "));
    }
    print(text)?;
    Ok(Outcome::Well)
}

/// Where stores work.
pub struct Stores(Runtime);

impl Stores {
    pub fn new() -> Result<Stores> {
        // One thread drives the connections; this one waits.
        Ok(Stores(Builder::new_multi_thread().worker_threads(1).enable_all().build()?))
    }

    pub fn handle(&self) -> Handle {
        self.0.handle().clone()
    }

    /// Opens the store of this URL.
    pub fn open(&self, url: &str) -> Result<Place> {
        self.wait(store::open(url))
    }

    pub fn wait<T>(&self, done: impl Future<Output = T>) -> T {
        self.0.block_on(done)
    }
}

/// Prints records with their keys, in any format, on standard output.
pub struct Printer {
    coder: Coder,
    glue: Glue,
    out: Vec<u8>,
}

impl Printer {
    pub fn new(format: Option<Wrapped>) -> Result<Printer> {
        let format = format.unwrap_or_else(|| steelyard::format::Format::Json.into());
        let glue = Glue::new(&format);
        Ok(Printer { coder: Coder::new(format)?, glue, out: Vec::new() })
    }

    /// The record, with its key first, under the name that `put` looks for it.
    pub fn add(&mut self, row: Row) -> Result<()> {
        let mut record = Document::with_capacity(row.record.len() + 1);
        let marc = self.coder.wrapped().format.info().takes == steelyard::format::Takes::Marc;
        // A MARC record has no place for it, and needs none.
        if !marc {
            record.push(Path::KEY, row.key.as_str());
        }
        for (name, value) in row.record {
            record.push(name, value);
        }
        let encode = |out: &mut Vec<u8>| self.coder.encode(&record, out);
        let done = self.glue.put(&mut self.out, encode);
        done.map_err(|e| {
            Error::new(e.kind(), format!("key {}: {}", row.key.shown(), e.context()))
        })?;
        const ENOUGH: usize = 64 << 10;
        if self.out.len() > ENOUGH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        std::io::stdout().lock().write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    pub fn finish(mut self) -> Result<()> {
        self.glue.finish(&mut self.out);
        self.flush()?;
        Ok(std::io::stdout().lock().flush()?)
    }
}
