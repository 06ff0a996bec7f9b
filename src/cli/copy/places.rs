//! The places a copy is from and to, opened as the command line says.

use std::{path::Path, time::UNIX_EPOCH};

use clap::ValueEnum;
use steelyard::{
    Error, Result,
    copy::{Errand, FromStore, Journal, Source, Target, ToStore},
    file::{Reading, Writing},
    store::{self, is_url},
};

use super::{
    Args,
    follow::{Rejects, Report},
};
use crate::cli::{files, hidden::without_passwords, say, stores::Stores};

/// Whether a store ends with the process that opened it.
fn is_of_this_process(url: &store::Url) -> bool {
    match &*url.scheme {
        "memory" => true,
        "sqlite" => url.file_path().is_empty(),
        _ => false,
    }
}

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
                (args.on_duplicate.is_some(), "--on-duplicate"),
                (args.verify, "--verify"),
                (args.resume, "--resume"),
            ];
            if let Some((_, flag)) = given.iter().find(|(given, _)| *given) {
                let target = &args.target;
                let what = format!("{flag} is for copies into a store, and {target} is a file");
                return Err(Error::invalid(what));
            }
        }
        if args.no_keys && (!is_url(&args.source) || is_url(&args.target)) {
            let what = "--no-keys is for copies from a store into a file";
            return Err(Error::invalid(what));
        }
        if args.key.is_some() && !stores {
            let what = "--key is for copies into a store or out of one, and both places are files";
            return Err(Error::invalid(what));
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
            return Ok(Source::File(Box::new(files::open(&args.source, &reading)?)));
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
            return Ok(Target::File(Box::new(files::create(&args.target, &writing)?)));
        }
        let mut url = args.target.clone();
        if let Some(format) = &args.to {
            url = with_option(&url, "format", format);
        }
        if let Some(layout) = &args.layout {
            url = with_option(&url, "layout", layout);
        }
        let place = self.stores().open(&url)?;
        if is_of_this_process(place.url()) {
            say("warning: the target is in the memory of this command, and lost when it ends");
        }
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
        let [source, target, options] =
            [&*source, &*to.name, &*options(args)].map(without_passwords);
        let errand = Errand { source, target, options };
        let journal = Journal::open(Path::new(&path), &errand)?;
        if let Some(rejects) = &args.rejects {
            let rejects =
                Rejects::resume(rejects, journal.rejected_bytes(), journal.rejected_records())?;
            report.rejects = Some(rejects);
        }
        if let Some(counts) = journal.resumed() {
            report.resume(counts);
            let read = crate::cli::progress::count(counts.read, "record");
            report.note(&format!("resuming after {read} (journal {path})"));
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
        return Err(Error::invalid("standard input cannot be read again, so it cannot be resumed"));
    }
    let meta = std::fs::metadata(&args.source)?;
    let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let source =
        format!("{}, {} bytes, changed at {}", args.source, meta.len(), changed.as_nanos());
    let path = args.journal.clone().unwrap_or(format!("{}{part}.copying", args.source));
    Ok((path, source))
}

/// What is chosen of the source and made of it, as it is asked for on a command line.
fn options(args: &Args) -> String {
    let mut all = Vec::new();
    let mut add = |flag: &str, value: String| {
        let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"'\\".contains(c);
        all.push(match value.chars().all(plain) {
            true => format!("{flag} {value}"),
            false => format!("{flag} {value:?}"),
        });
    };
    let Args { from, to, conditions, fields, part, key, on_duplicate, layout, rejects, .. } = args;
    from.iter().for_each(|from| add("--from", from.to_string()));
    to.iter().for_each(|to| add("--to", to.to_string()));
    conditions.iter().for_each(|condition| add("--where", condition.to_string()));
    fields.iter().for_each(|fields| add("--fields", fields.to_string()));
    part.iter().for_each(|part| add("--part", part.to_string()));
    key.iter().for_each(|key| add("--key", key.to_string()));
    on_duplicate.iter().for_each(|rule| add("--on-duplicate", rule.to_string()));
    layout.iter().for_each(|layout| add("--layout", layout.to_string()));
    rejects.iter().for_each(|file| add("--rejects", file.clone()));
    if let Some(encoding) = args.encoding.as_ref().and_then(ValueEnum::to_possible_value) {
        add("--encoding", encoding.get_name().to_owned());
    }
    for (given, flag) in
        [(args.strict, "--strict"), (args.tolerant, "--tolerant"), (args.nfc, "--nfc")]
    {
        all.extend(given.then(|| flag.to_owned()));
    }
    all.join(" ")
}

/// The URL with one option more.
pub fn with_option(url: &str, name: &str, value: &impl ToString) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{name}={}", value.to_string())
}
