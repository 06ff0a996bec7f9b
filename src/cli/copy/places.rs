//! The places a copy is from and to, opened as the command line says.

use std::{path::Path, time::UNIX_EPOCH};

use steelyard::{
    Error, Result,
    copy::{Errand, FromStore, Journal, Source, Target, ToStore},
    file::{Frames, Reading, Sink, Writing},
    store::is_url,
};

use super::{
    Args,
    follow::{Rejects, Report},
};
use crate::cli::stores::Stores;

/// Opens places; stores have a runtime to work on.
pub struct Places {
    stores: Option<Stores>,
}

impl Places {
    pub fn new(args: &Args) -> Result<Places> {
        let stores = [&args.source, &args.target].iter().any(|place| is_url(place));
        if !is_url(&args.target) {
            let given = [
                (args.layout.is_some(), "--layout"),
                (!args.index.is_empty(), "--index"),
                (args.batch.is_some(), "--batch"),
                (args.verify, "--verify"),
                (args.resume, "--resume"),
            ];
            if let Some((_, flag)) = given.iter().find(|(given, _)| *given) {
                let target = &args.target;
                let what = format!("{flag} is for copies into a store, and {target} is a file");
                return Err(Error::invalid(what));
            }
        }
        Ok(Places { stores: stores.then(Stores::new).transpose()? })
    }

    fn stores(&self) -> &Stores {
        self.stores.as_ref().expect("there is a runtime where there is a store")
    }

    pub fn source(&self, args: &Args) -> Result<Source> {
        if !is_url(&args.source) {
            let part = args.part;
            let reading = Reading { format: args.from.clone(), part, ..Reading::default() };
            return Ok(Source::File(Box::new(Frames::open(&args.source, &reading)?)));
        }
        let url = match &args.from {
            Some(format) => with_option(&args.source, "format", format),
            None => args.source.clone(),
        };
        let place = self.stores().open(&url)?;
        Ok(Source::Store(FromStore {
            store: place.store().clone(),
            name: place.url().to_string(),
            part: args.part,
            runtime: self.stores().handle(),
        }))
    }

    pub fn target(&self, args: &Args) -> Result<Target> {
        if !is_url(&args.target) {
            let writing = Writing { format: args.to.clone(), ..Writing::default() };
            return Ok(Target::File(Box::new(Sink::create(&args.target, &writing)?)));
        }
        let mut url = args.target.clone();
        if let Some(format) = &args.to {
            url = with_option(&url, "format", format);
        }
        if let Some(layout) = &args.layout {
            url = with_option(&url, "layout", layout);
        }
        let place = self.stores().open(&url)?;
        Ok(Target::Store(Box::new(ToStore {
            store: place.store().clone(),
            name: place.url().to_string(),
            indexes: args.index.clone(),
            batch: args.batch.map(|n| n as usize),
            verify: args.verify,
            journal: None,
            shared: args.part.is_some(),
            runtime: self.stores().handle(),
        })))
    }

    /// Opens the journal, where one is asked for, and the files of rejected records, which go on
    /// where the journal says.
    pub fn with_journal(&self, args: &Args, target: Target, report: &mut Report) -> Result<Target> {
        let Target::Store(mut to) = target else {
            report.rejects = args.rejects.as_deref().map(Rejects::create).transpose()?;
            return Ok(target);
        };
        if !args.resume {
            report.rejects = args.rejects.as_deref().map(Rejects::create).transpose()?;
            return Ok(Target::Store(to));
        }
        let (path, source) = journal_of(args, self)?;
        let errand = Errand { source, target: to.name.clone(), options: options(args) };
        let journal = Journal::open(Path::new(&path), &errand)?;
        if let Some(rejects) = &args.rejects {
            let rejects =
                Rejects::resume(rejects, journal.rejected_bytes(), journal.rejected_records())?;
            report.rejects = Some(rejects);
        }
        if let Some(read) = journal.resumed() {
            let read = crate::cli::progress::count(read, "record");
            report.note(&format!("going on behind {read}, as {path} says"));
        }
        to.journal = Some(journal);
        Ok(Target::Store(to))
    }
}

/// The journal's file, and what tells that the source is the same.
fn journal_of(args: &Args, places: &Places) -> Result<(String, String)> {
    let part = args.part.map_or(String::new(), |part| {
        let (index, of) = part.numbers();
        format!(".{index}-{of}")
    });
    if is_url(&args.source) {
        let name = places.stores().open(&args.source)?.url().to_string();
        let plain: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = args.journal.clone().unwrap_or(format!("{plain}{part}.copying"));
        return Ok((path, name));
    }
    if args.source == "-" {
        return Err(Error::invalid("standard input cannot be read again, so not be resumed"));
    }
    let meta = std::fs::metadata(&args.source)?;
    let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let source =
        format!("{}, {} bytes, changed at {}", args.source, meta.len(), changed.as_nanos());
    let path = args.journal.clone().unwrap_or(format!("{}{part}.copying", args.source));
    Ok((path, source))
}

/// What is chosen of the source and made of it.
fn options(args: &Args) -> String {
    format!(
        "from {:?}, to {:?}, where {:?}, fields {:?}, part {:?}, key {:?}, care {}{}, encoding {}, nfc {}, layout {:?}, rejects {:?}",
        args.from,
        args.to,
        args.conditions,
        args.fields,
        args.part,
        args.key,
        args.strict,
        args.tolerant,
        args.encoding.map_or(0, |e| e as u8 + 1),
        args.nfc,
        args.layout,
        args.rejects,
    )
}

/// The URL with one option more.
pub fn with_option(url: &str, name: &str, value: &impl ToString) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{name}={}", value.to_string())
}
