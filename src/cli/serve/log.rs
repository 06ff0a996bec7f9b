//! The log of the gateway, on standard error.

use std::io;

/// The form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// An object of JSON a line.
    Json,
    /// A line for people.
    Text,
    /// None.
    Off,
}

/// Writes what there is to tell from now on.
pub fn begin(form: Form) {
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_max_level(tracing::Level::INFO);
    match form {
        Form::Json => log.json().flatten_event(true).init(),
        Form::Text => log.compact().with_level(false).init(),
        Form::Off => {}
    }
}
