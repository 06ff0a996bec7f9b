//! `steelyard stores`, and what the verbs that talk to stores share.

mod table;

use std::{
    io::Write,
    pin::{Pin, pin},
    time::Duration,
};

use steelyard::{
    Error, Result,
    file::Shown,
    format::{Coder, Wrapped, framing::Glue},
    record::Document,
    store::{self, DRIVERS, OPTIONAL, Place, Row, query::Path},
};
use tokio::runtime::{Builder, Handle, Runtime};
use unicode_width::UnicodeWidthStr;

use self::table::Form;
use super::{Outcome, fold::folded, grammar, print, say};

/// Lists the kinds of store, with their URLs and what each layout changes or refuses
///
/// --table shows what each can do: which values come back equal, which queries and indexes
/// there are, transactions, durability, limits, and whose code speaks to it.
///
/// Every store takes these options in its URL:
///
///   table=NAME                     the table
///   layout=document|columns|blob   how a record lies in it
///   format=FORMAT                  the format of blobs, with wraps: marshal+base64
///   durability=t0|t1|t2|t3         what an acknowledged write survives
///   pool=N                         connections
///   timeout=SECONDS                of an operation [default: 30]
///   connect_timeout=SECONDS        of connecting, with the lookup of the host's name and the
///                                  login [default: as timeout, 5 at most]
///
/// postgres, mysql and redis also take client=own|crate; all that speak TLS take ca=FILE.
///
/// A password need not be in a URL, where `ps` shows it: password_file=FILE names a file that has
/// it. The variable STEELYARD_PASSWORD is used for URLs with a user and no password. If it is not
/// set, postgres looks into ~/.pgpass, mysql into [client] of ~/.my.cnf.
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = EXAMPLES,
    after_long_help = grammar::with(&[&grammar::tiers()], EXAMPLES)
)]
pub struct Args {
    /// Show the table of abilities.
    #[arg(long)]
    table: bool,
    /// How to print the table.
    #[arg(long, value_name = "FORM", default_value = "text", requires = "table")]
    format: Form,
}

const EXAMPLES: &str = "\
Examples:
  steelyard stores
  steelyard stores --table
  steelyard stores --table --format html > stores.html";

pub fn run(args: Args) -> Result<Outcome> {
    let terminal = console::Term::stdout();
    let width = terminal.size_checked().map(|(_, width)| usize::from(width).max(NARROWEST));
    print(if args.table { table::table(args.format, width) } else { list(width) })?;
    Ok(Outcome::Well)
}

/// The narrowest terminal that lines are set for.
const NARROWEST: usize = 40;

/// In lines of the terminal's width, where there is one.
fn list(width: Option<usize>) -> String {
    let mut text = String::new();
    let mut say = |head: &str, what: &str| {
        let line = format!("{head:10} {what}");
        match width {
            // Below the name, and in lines that are filled.
            Some(width) if line.width() > width => {
                if !head.is_empty() {
                    text += &format!("{head}\n");
                }
                text += &folded(what, width, 4);
            }
            _ => text += &format!("{line}\n"),
        }
    };
    for driver in DRIVERS {
        let shapes: Vec<_> = driver.shapes.iter().map(|shape| shape.name()).collect();
        say(driver.name, driver.about);
        say("", &format!("{}  (layouts: {})", driver.example, shapes.join(", ")));
        for (shape, loses) in driver.loses() {
            say("", &format!("{shape}: {loses}"));
        }
    }
    say(
        "shard",
        "places with names, from steelyard.toml or ?config=FILE: shard://NAME is one, shard: all as one",
    );
    say("", "shard://austin?table=people");
    for kind in OPTIONAL.iter().filter(|kind| !kind.built_in) {
        let feature = kind.feature;
        let what =
            format!("not in this build: build it with --features {feature}, or --features full");
        say(feature, &what);
    }
    text
}

/// Where stores work.
pub struct Stores(Option<Runtime>);

/// How long the threads of stores have to end what they do, when nobody waits for it any more.
const LAST: Duration = Duration::from_secs(1);

impl Stores {
    pub fn new() -> Result<Stores> {
        // One thread drives the connections; this one waits.
        Stores::of(Builder::new_multi_thread().worker_threads(1))
    }

    /// For a server, with so many threads that drive connections.
    #[cfg(feature = "serve")]
    pub fn serving(threads: usize) -> Result<Stores> {
        // Who comes meanwhile is noticed after so many parts of long work, not after the default of 61.
        const PARTS: u32 = 4;
        Stores::of(Builder::new_multi_thread().worker_threads(threads).event_interval(PARTS))
    }

    fn of(runtime: &mut Builder) -> Result<Stores> {
        Ok(Stores(Some(runtime.enable_all().build()?)))
    }

    pub fn handle(&self) -> Handle {
        self.runtime().handle().clone()
    }

    /// Opens the store of this URL.
    pub fn open(&self, url: &str) -> Result<Place> {
        let place = self.wait(store::open(url))?;
        for warning in place.warnings() {
            say(format_args!("steelyard: {warning}"));
        }
        Ok(place)
    }

    pub fn wait<T>(&self, done: impl Future<Output = T>) -> T {
        let done: Pin<&mut dyn Future<Output = T>> = pin!(done);
        self.runtime().block_on(done)
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until this is dropped")
    }
}

/// What still waits in a thread (for the address of a name, where no server of names answers) has no time limit of
/// its own, and nobody wants its answer.
impl Drop for Stores {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(LAST);
        }
    }
}

/// Prints records with their keys, in any format, on standard output.
pub struct Printer {
    coder: Coder,
    glue: Glue,
    out: Vec<u8>,
    shown: Shown,
}

impl Printer {
    pub fn new(format: Option<Wrapped>) -> Result<Printer> {
        let format = format.unwrap_or_else(|| steelyard::format::Format::Json.into());
        let glue = Glue::new(&format);
        let shown = Shown::of(&format);
        Ok(Printer { coder: Coder::new(format)?, glue, out: Vec::new(), shown })
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
        let encode = |out: &mut Vec<u8>| self.coder.encode_document(&record, out);
        let done = self.glue.put(&mut self.out, encode);
        done.map_err(|e| {
            Error::new(e.kind(), format!("key {}: {}", row.key.shown(), e.context()))
        })?;
        const ENOUGH: usize = 64 << 10;
        if self.out.len() > ENOUGH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.shown.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    pub fn finish(mut self) -> Result<()> {
        self.glue.finish(&mut self.out);
        self.flush()?;
        Ok(self.shown.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_list_is_set_for_the_terminal() {
        let wide = list(None);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for width in [40, 60, 80, 300] {
            let text = list(Some(width));
            assert_eq!(words(&text), words(&wide), "{width}");
            let most = width.max(6 + words(&text).iter().map(|word| word.width()).max().unwrap());
            assert!(text.lines().all(|line| line.width() <= most), "{width}:\n{text}");
        }
        assert_eq!(list(Some(1000)), wide);
    }

    /// As a name server that does not answer keeps a thread of the runtime.
    #[test]
    fn what_waits_in_a_thread_does_not_keep_the_program() {
        let stores = Stores::new().unwrap();
        let (release, stuck) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        stores.runtime().spawn_blocking(move || {
            begun.send(()).unwrap();
            stuck.recv()
        });
        begins.recv().unwrap();
        let (dropped, ended) = mpsc::channel();
        std::thread::spawn(move || {
            drop(stores);
            dropped.send(()).unwrap();
        });
        let ended = ended.recv_timeout(Duration::from_secs(30));
        drop(release);
        ended.expect("it ends although a thread waits");
    }
}
