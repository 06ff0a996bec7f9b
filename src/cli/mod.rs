//! The command line: one file a verb, and the only room that prints.
//!
//! To add a verb: a file with `Args` (whose doc comment is its help, with examples) and `run`, and a
//! line in [`Verb`] and in [`run`].

mod apart;
mod audit;
mod bench;
mod check;
mod completions;
mod copy;
mod delete;
mod each;
mod files;
mod fold;
mod formats;
mod generate;
mod get;
mod grammar;
mod hidden;
mod interrupt;
mod last;
mod progress;
mod put;
mod report;
mod rows;
#[cfg(feature = "serve")]
mod serve;
mod servers;
mod show;
mod slabs;
mod stores;
#[cfg(feature = "serve")]
mod tenant;

use std::{
    fmt::Display,
    io::{IsTerminal, Write},
    process::ExitCode,
};

use clap::{CommandFactory, Parser, Subcommand};
use steelyard::{
    Error, ErrorKind, Result,
    error::{cut, gives_orders},
    file::{Shown, Staged},
    report::{visible, visible_lines},
    store::is_url,
};

/// Measures formats and stores on your own records, moves the records, keeps them, and serves them.
///
/// Exit status: 0 all is well; 1 done, but something was found (bad records, a difference, a regression); 2 the
/// command line is wrong; 3 it failed; 4 two runs could not be compared (with --fail-on-regression). After a
/// signal, such as Ctrl-C, it ends by that signal.
#[derive(Parser)]
#[command(name = "steelyard", version, arg_required_else_help = true, after_help = EXAMPLES)]
#[command(propagate_version = false, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  steelyard bench                             the tour: formats and stores, in a minute
  steelyard bench formats catalog.mrc         which format, on your own records
  steelyard bench keep --records orders.json --on sqlite --on postgres      which store
  steelyard show catalog.mrc | head           read a catalogue
  steelyard check catalog.mrc                 everything that is wrong with it, and where
  steelyard copy catalog.mrc catalog.xml.gz   convert it
  steelyard copy orders.json sqlite:shop.db --key id
  steelyard each sqlite:shop.db --where 'total>=100'
  steelyard serve sqlite:shop.db              over HTTP
  steelyard help copy                         all about a verb";

#[derive(Subcommand)]
enum Verb {
    Bench(bench::Args),
    Audit(audit::Args),
    Copy(copy::Args),
    Put(put::Args),
    Get(get::Args),
    Each(each::Args),
    Delete(delete::Args),
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    #[cfg(feature = "serve")]
    Tenant(tenant::Args),
    Check(check::Args),
    Show(show::Args),
    Generate(generate::Args),
    Report(report::Args),
    Formats(formats::Args),
    Stores(stores::Args),
    Servers(servers::Args),
    Slabs(slabs::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
}

/// How a verb that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All is well.
    Well,
    /// Done, but something was found that a script should know of.
    Found,
    /// Done, but nothing can be said of what was asked.
    NotComparable,
}

/// Parses the arguments, runs the verb, prints what went wrong.
pub fn run() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|e| wrong(&e));
    interrupt::watch();
    let done = match cli.verb {
        Verb::Bench(args) => bench::run(args),
        Verb::Audit(args) => audit::run(args),
        Verb::Report(args) => report::run(args),
        Verb::Copy(args) => copy::run(args),
        Verb::Put(args) => put::run(args),
        Verb::Get(args) => get::run(args),
        Verb::Each(args) => each::run(args),
        Verb::Delete(args) => delete::run(args),
        #[cfg(feature = "serve")]
        Verb::Serve(args) => serve::run(args),
        #[cfg(feature = "serve")]
        Verb::Tenant(args) => tenant::run(args),
        Verb::Check(args) => check::run(args),
        Verb::Show(args) => show::run(args),
        Verb::Generate(args) => generate::run(args),
        Verb::Formats(args) => formats::run(args),
        Verb::Stores(args) => stores::run(args),
        Verb::Servers(args) => servers::run(args),
        Verb::Slabs(args) => slabs::run(args),
        Verb::Completions(args) => completions::run(args, Cli::command()),
        Verb::Man(args) => completions::man(args, Cli::command()),
    };
    let code = match done {
        Ok(Outcome::Well) => ExitCode::SUCCESS,
        Ok(Outcome::Found) => ExitCode::from(1),
        Ok(Outcome::NotComparable) => ExitCode::from(4),
        // Whoever read our output has enough of it: that is no failure.
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            // What other threads still write to will not become whole.
            Staged::abandon_all();
            say(format_args!("error: {}", e.chain()));
            if let Some(hint) = e.hint() {
                say(format_args!("hint: {hint}"));
            }
            ExitCode::from(if e.kind() == ErrorKind::Invalid { 2 } else { 3 })
        }
    };
    // All was told and removed: what ended it is the status.
    interrupt::pass_on();
    code
}

/// Ends the program where the command line is wrong, or asks for help: as clap does, but without the
/// passwords of URLs that are not understood.
fn wrong(error: &clap::Error) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    let text = error.render();
    let whole = hidden::without_passwords(&text.to_string());
    // Arguments can be long, as they are quoted in one line.
    let plain: String = whole.lines().map(|line| format!("{}\n", cut(line))).collect();
    let seen = visible_lines(&plain);
    // Colours only where nothing else in it gives orders to a terminal; clap takes those out of the plain text.
    let hostile = std::env::args().any(|argument| argument.contains(gives_orders));
    let text = match std::io::stderr().is_terminal() && seen == plain && !hostile {
        true if plain == whole => hidden::without_passwords(&text.ansi().to_string()),
        _ => seen.into_owned(),
    };
    let _ = write!(std::io::stderr().lock(), "{text}");
    std::process::exit(error.exit_code())
}

/// Prints a line on standard error, with control characters as escapes and without passwords. Where that
/// is closed or full, nobody wants it.
fn say(line: impl Display) {
    let line = hidden::without_passwords(&line.to_string());
    let _ = writeln!(std::io::stderr().lock(), "{}", visible_lines(&line));
}

/// That an option names what no record has.
fn missing_fields(names: &[String], option: &str) -> String {
    let what = if names.len() == 1 { "field" } else { "fields" };
    format!("no record has the {what} {}, which {option} names", cut(&names.join(", ")))
}

/// Prints all of `text` on standard output; on a terminal, with control characters as escapes.
fn print(text: impl AsRef<[u8]>) -> Result<()> {
    let mut out = Shown::new(false);
    out.write_all(text.as_ref())?;
    // What is left to the end of the process fails unseen.
    Ok(out.flush()?)
}

/// Prints a text of our own with its colours. What others said in it has been made [visible](visible) where it was put in.
fn print_styled(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn is_broken_pipe(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            return io.kind() == std::io::ErrorKind::BrokenPipe;
        }
        source = cause.source();
    }
    false
}

/// The name of a file to write, for clap: never what may be the URL of a store, as the file's name would have its
/// password.
fn file_to_write<T: From<String>>(text: &str) -> Result<T, String> {
    match is_url(text) {
        false => Ok(text.to_owned().into()),
        true => Err("expected a file, and this is or may be the URL of a store; write a file of \
                     that name as ./NAME"
            .into()),
    }
}

/// Parses a value of a command line by its `FromStr`, for clap.
fn parsed<T: std::str::FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: Error| match e.hint() {
        Some(hint) => format!("{}; {hint}", e.context()),
        None => e.context().to_owned(),
    })
}
