//! `/c/{collection}/export`: records as a file, in any format that can hold them, in steady memory.
//!
//! As `steelyard each` writes them: the id first, under the name by which `steelyard put` and `copy` find it, and without
//! the revision, which is the gateway's own. MARC formats have no place for the id.
//!
//! Formats that cannot hold everything are tried on all the records before the answer begins, so that what they refuse is a
//! page that says so. That costs a second pass. In it the columns of CSV are found: all fields, in the order in which they
//! first come. What changes between the passes and then does not fit breaks the download off, and is logged; a file that
//! ended well has everything.

use axum::{
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, TryStreamExt};
use maud::{Markup, html};
use steelyard_base::Result;
use steelyard_store::{
    format::{Format, Takes, framing::Glue},
    store::{
        Row,
        query::{self, Path, Query},
    },
};

use super::text;
use crate::{
    columns::{Columns, record},
    docs::{Asked, Writer, absent, give_way, streamed},
    http::{Call, Param, Route},
    problem::Problem,
    tenants::{Access, Collection},
};

const fn param(name: &'static str) -> Param {
    Param { name, place: "query", kind: "string", pattern: None, about: "" }
}

pub(super) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/c/{collection}/export",
    name: "page-export",
    about: "Records that fit a condition, as a file.",
    access: Access::Read,
    params: &[param("format"), param("where"), param("sort"), param("fields")],
    sent: None,
    answers: &[],
    call: |call| export(call).boxed(),
};

/// The formats, by the names they have here. `sonic` is another reader and writer of the same JSON.
fn formats() -> impl Iterator<Item = (&'static str, Format)> {
    let all = Format::ALL.iter().copied().filter(|format| *format != Format::Sonic);
    all.map(|format| (if format == Format::Json { "jsonl" } else { format.name() }, format))
}

/// What people call it.
fn label(format: Format) -> &'static str {
    match format {
        Format::Json => "JSON lines",
        Format::Csv => "CSV",
        Format::Msgpack => "MessagePack",
        Format::Cbor => "CBOR",
        Format::Bson => "BSON",
        Format::Pickle => "Python pickle",
        Format::Marshal => "Ruby marshal",
        Format::Marc21 => "MARC 21 (ISO 2709)",
        Format::Marcxml => "MARCXML",
        Format::Line => "MARC, a field a line",
        other => other.name(),
    }
}

/// The form that asks for a file. It offers what can hold the records shown.
pub(super) fn form(collection: &str, asked: &Asked, shown: &[Row]) -> Markup {
    // Enough to see of which kind they are.
    const LOOKED_AT: usize = 20;
    let holds = |format: Format| {
        let mut scratch = Vec::new();
        shown.iter().take(LOOKED_AT).all(|row| {
            scratch.clear();
            let record = record(row.clone(), format);
            record.and_then(|record| format.encode_document(&record, &mut scratch)).is_ok()
        })
    };
    let mut offered: Vec<(&str, Format)> = formats().filter(|(_, format)| holds(*format)).collect();
    // The two that most want, first.
    offered.sort_by_key(|(name, _)| !matches!(*name, "jsonl" | "csv"));
    let hidden = text::parameters(&Asked { limit: None, cursor: None, ..asked.clone() });
    html! {
        section aria-labelledby="export" {
            h2 id="export" { "Download" }
            form class="export" method="get" action=(format!("/c/{collection}/export")) {
                @for (name, value) in &hidden { input type="hidden" name=(name) value=(value); }
                label for="format" class="hidden" { "Format" }
                select id="format" name="format" {
                    @for (name, format) in &offered { option value=(name) { (label(*format)) } }
                }
                button class="plain" type="submit" { "Download" }
                span class="quiet" {
                    @if shown.len() == 1 && asked.condition.starts_with(Path::KEY) { "This record." }
                    @else if asked.condition.is_empty() { "All records of the collection." }
                    @else { "All records that fit the condition." }
                }
            }
        }
    }
}

async fn export(call: Call) -> Result<Response, Problem> {
    let given = |name| call.asked(name).unwrap_or_default().trim().to_owned();
    let collection = call.existing().await?;
    let asked = Asked {
        condition: given("where"),
        sort: given("sort"),
        fields: given("fields"),
        ..Asked::default()
    };
    let wanted = given("format");
    let Some((_, format)) = formats().find(|(name, _)| *name == wanted) else {
        let known: Vec<&str> = formats().map(|(name, _)| name).collect();
        return Err(Problem::invalid(format!(
            "unknown format {wanted:?}; known: {}",
            known.join(", ")
        )));
    };
    let query = match asked.query(&*collection.store).await {
        // A collection that is not there has nothing in it.
        Err(problem) if problem.status() == StatusCode::NOT_FOUND => None,
        query => Some(query?),
    };
    let columns = match &query {
        Some(query) if format.info().takes != Takes::Anything => {
            let columns = held(&collection, query, format).await?;
            call.tenant.confirm(&call.gateway).await?;
            columns
        }
        _ => Columns::default(),
    };
    let extension = match format {
        Format::Json => "jsonl",
        format => format.info().extensions.first().copied().unwrap_or("bin"),
    };
    // Names of collections are plain, so this needs no quoting beyond the quotes.
    let file = format!("attachment; filename=\"{}.{extension}\"", collection.name);
    let file = HeaderValue::from_str(&file)
        .map_err(|_| Problem::internal("a collection whose name fits no header"))?;
    let columns = (format.info().takes == Takes::Rows).then_some(columns);
    let writer = Export { format, glue: Glue::new(&format.into()), columns };
    let body = streamed(call, collection, query, writer);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media(format))),
        (header::CONTENT_DISPOSITION, file),
    ];
    Ok((headers, body).into_response())
}

fn media(format: Format) -> &'static str {
    match format {
        Format::Json => "application/x-ndjson",
        Format::Csv => "text/csv; charset=utf-8; header=present",
        Format::Msgpack => "application/vnd.msgpack",
        Format::Cbor => "application/cbor-seq",
        Format::Bson => "application/bson",
        Format::Marc21 => "application/marc",
        Format::Marcxml => "application/marcxml+xml",
        Format::Line => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Whether the format can hold every record; the fields that there are.
async fn held(collection: &Collection, query: &Query, format: Format) -> Result<Columns, Problem> {
    let mut columns = Columns::default();
    let Some(answer) = absent(query::find(&*collection.store, query).await)? else {
        return Ok(columns);
    };
    let (mut rows, mut scratch) = (answer.rows, Vec::new());
    while let Some(batch) = rows.try_next().await? {
        for row in batch {
            let id = text::short(row.key.as_str(), 60);
            let is_row = format.info().takes == Takes::Rows;
            let tried = record(row, format).and_then(|record| {
                scratch.clear();
                if is_row {
                    columns.add(&record)?;
                }
                format.encode_document(&record, &mut scratch)
            });
            tried.map_err(|e| {
                let what = format!(
                    "{} cannot hold the record {id}: {}. Take another format, or only some of the records or fields",
                    label(format),
                    e.reason()
                );
                Problem::unprocessable(what)
            })?;
        }
        give_way().await;
    }
    Ok(columns)
}

/// Records on their way into a file.
struct Export {
    format: Format,
    glue: Glue,
    /// Of every row.
    columns: Option<Columns>,
}

impl Writer for Export {
    fn row(&mut self, row: Row, out: &mut Vec<u8>) -> Result<()> {
        let mut record = record(row, self.format)?;
        if let Some(columns) = &self.columns {
            record = columns.row(record)?;
        }
        let format = self.format;
        self.glue.put(out, |out| format.encode_document(&record, out))
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.glue.finish(out);
    }
}

#[cfg(test)]
mod tests {
    use steelyard_store::{record::Document, store::Key};

    use super::*;

    /// Between the two passes somebody may write.
    #[test]
    fn what_does_not_fit_the_columns_is_an_error() {
        let mut columns = Columns::default();
        columns.add(&Document::from_iter([(Path::KEY, 1), ("a", 1), ("b", 1)])).unwrap();
        let columns = Some(columns);
        let glue = Glue::new(&Format::Csv.into());
        let mut export = Export { format: Format::Csv, glue, columns };
        let row = |fields: &[(&str, i64)]| Row {
            key: Key::new("k").unwrap(),
            record: Document::from_iter(fields.iter().copied()),
        };
        let mut out = Vec::new();
        export.row(row(&[("b", 2)]), &mut out).unwrap();
        export.row(row(&[("b", 3), ("a", 1)]), &mut out).unwrap();
        assert!(export.row(row(&[("a", 1), ("c", 1)]), &mut out).is_err());
        assert!(export.row(row(&[(Path::KEY, 1)]), &mut out).is_err());
        assert_eq!(String::from_utf8(out).unwrap(), "_key,a,b\nk,,2\nk,1,3\n");
    }
}
