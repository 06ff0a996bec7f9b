//! `/c/{collection}`: records in a table, a page at a time.

use std::collections::HashMap;

use axum::{
    http::{Method, StatusCode},
    response::Response,
};
use futures_util::FutureExt;
use maud::{Markup, html};
use steelyard_store::store::{Row, query::Path};

use super::{export, guard, html, text};
use crate::{
    docs::{Asked, Listed, listed, revision_taken},
    http::{Call, Param, Route},
    problem::Problem,
    tenants::Access,
};

const fn param(name: &'static str) -> Param {
    Param { name, place: "query", kind: "string", pattern: None, about: "" }
}

pub(super) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/c/{collection}",
    name: "page-records",
    about: "Records that fit a condition, as a page.",
    access: Access::Read,
    params: &[param("where"), param("sort"), param("fields"), param("limit"), param("cursor")],
    sent: None,
    answers: &[],
    call: |call| show(call).boxed(),
};

/// Records of a page, where nothing is said.
const USUAL: u64 = 50;
/// Columns of the table.
const COLUMNS: usize = 8;

async fn show(call: Call) -> Result<Response, Problem> {
    let name = call.collection()?;
    let given = |name| call.asked(name).map(str::trim).filter(|text| !text.is_empty());
    let text = |name| given(name).unwrap_or_default().to_owned();
    let most = call.gateway.config.limits.page_documents;
    let limit = given("limit").map_or(Ok(USUAL.min(most)), str::parse);
    let asked = Asked {
        condition: text("where"),
        sort: text("sort"),
        fields: text("fields"),
        // What is no number is refused like a number that is too large.
        limit: Some(limit.unwrap_or(0)),
        cursor: given("cursor").map(str::to_owned),
    };
    let (found, wrong) = match listed(&call, &asked).await {
        Ok(found) => (Some(found), None),
        // What can be mended in the form is told beside it.
        Err(problem) if problem.status() == StatusCode::BAD_REQUEST => (None, Some(problem)),
        Err(problem) => return Err(problem),
    };
    let view = View {
        collection: name.as_str(),
        path: format!("/c/{name}"),
        limit: given("limit").map_or_else(|| USUAL.min(most).to_string(), str::to_owned),
        asked: &asked,
    };
    let main = html! {
        (html::trail(&[("/".into(), "Collections".into())], name.as_str()))
        h1 { (name.as_str()) }
        (view.form(wrong.as_ref()))
        @if let Some(found) = found { (view.found(found, guard::origin(&call.headers, call.reached).as_deref())) }
    };
    let mut page = html::page(name.as_str(), Some(call.tenant.principal().tenant()), main);
    if let Some(problem) = wrong {
        *page.status_mut() = problem.status();
    }
    Ok(page)
}

/// What is shown of a collection.
struct View<'a> {
    collection: &'a str,
    path: String,
    asked: &'a Asked,
    /// As it was typed.
    limit: String,
}

/// A column: a top-level field.
struct Column {
    name: String,
    /// Every value of it is a number.
    numbers: bool,
}

impl View<'_> {
    fn form(&self, wrong: Option<&Problem>) -> Markup {
        let Asked { condition, sort, fields, .. } = self.asked;
        let invalid = wrong.map(|_| "true");
        html! {
            form class="sheet ask" method="get" action=(self.path) role="search" aria-label="Records to show" {
                div class="field wide" {
                    label for="where" { "Where" }
                    input id="where" name="where" value=(condition) placeholder="age>=60 and name~Bob"
                        autocapitalize="off" autocomplete="off" spellcheck="false"
                        aria-invalid=[invalid] aria-describedby=[wrong.map(|_| "wrong")];
                }
                div class="field" {
                    label for="sort" { "Sort" }
                    input id="sort" name="sort" value=(sort) placeholder="-age,name"
                        autocapitalize="off" autocomplete="off" spellcheck="false";
                }
                div class="field" {
                    label for="fields" { "Fields" }
                    input id="fields" name="fields" value=(fields) placeholder="name,age"
                        autocapitalize="off" autocomplete="off" spellcheck="false";
                }
                div class="field narrow" {
                    label for="limit" { "Limit" }
                    input id="limit" name="limit" value=(self.limit) inputmode="numeric" autocomplete="off";
                }
                div class="deeds" {
                    button type="submit" { "Show" }
                    a href=(self.path) { "Clear" }
                }
            }
            @if let Some(wrong) = wrong { (html::wrong(&text::sentence(wrong.detail()))) }
        }
    }

    /// The address of the same list with another part of it.
    fn url(&self, sort: &str, cursor: Option<String>) -> String {
        let asked = Asked { sort: sort.to_owned(), cursor, ..self.asked.clone() };
        text::url(&self.path, &text::parameters(&asked))
    }

    fn found(&self, found: Listed, origin: Option<&str>) -> Markup {
        let Listed { mut rows, next, memory: _memory } = found;
        for row in &mut rows {
            revision_taken(&mut row.record);
        }
        let asked = self.asked;
        let (columns, fields) = columns(&rows, &asked.fields);
        let first = asked.cursor.is_none();
        let command =
            text::curl(origin, &format!("/v1/docs/{}", self.collection), &text::parameters(asked));
        html! {
            @if rows.is_empty() {
                p class="none" {
                    @if asked.condition.is_empty() && first { "There are no records here." }
                    @else if first { "No record fits this condition." }
                    @else { "There are no more records." }
                }
            } @else {
                p class="quiet" {
                    (text::grouped(rows.len() as u64))
                    (if rows.len() == 1 { " record" } else { " records" })
                    @if first && next.is_some() { ", the first of more" }
                    @if fields > columns.len() {
                        ". " (columns.len()) " of " (fields) " fields; the page of a record has all of them"
                    }
                    "."
                }
                (self.table(&rows, &columns))
            }
            @if !first || next.is_some() {
                nav class="pages" aria-label="Pages" {
                    @if !first { a href=(self.url(&asked.sort, None)) { "First page" } }
                    @if let Some(next) = next {
                        a class="next" rel="next" href=(self.url(&asked.sort, Some(next))) { "Next page →" }
                    }
                }
            }
            @if !rows.is_empty() { (export::form(self.collection, asked, &rows)) }
            (html::command(&command))
        }
    }

    fn table(&self, rows: &[Row], columns: &[Column]) -> Markup {
        // As blocks, on a narrow screen, these are a table to assistive programs only by their roles.
        html! {
            div class="scroll" role="region" aria-label="Records" tabindex="0" {
                table role="table" {
                    caption class="hidden" { "Records of " (self.collection) }
                    thead role="rowgroup" {
                        tr role="row" {
                            (self.heading(Path::KEY, "Id", false))
                            @for column in columns {
                                (self.heading(&column.name, &text::short(&column.name, 40), column.numbers))
                            }
                        }
                    }
                    tbody role="rowgroup" {
                        @for row in rows { (self.row(row, columns)) }
                    }
                }
            }
        }
    }

    fn heading(&self, field: &str, shown: &str, numbers: bool) -> Markup {
        let sort = text::sort_of(field);
        let asked = self.asked.sort.trim();
        // From none to ascending to descending to none.
        let (now, then) = match &sort {
            Some(sort) if asked == sort => (Some("ascending"), format!("-{sort}")),
            Some(sort) if asked.strip_prefix('-') == Some(sort) => {
                (Some("descending"), String::new())
            }
            Some(sort) => (None, sort.clone()),
            None => (None, String::new()),
        };
        html! {
            th role="columnheader" scope="col" class=[numbers.then_some("number")] aria-sort=[now] {
                @if sort.is_some() {
                    a href=(self.url(&then, None)) {
                        (shown)
                        @match now {
                            Some("ascending") => span aria-hidden="true" { " ↑" },
                            Some(_) => span aria-hidden="true" { " ↓" },
                            None => {}
                        }
                    }
                } @else { (shown) }
            }
        }
    }

    fn row(&self, row: &Row, columns: &[Column]) -> Markup {
        let id = row.key.as_str();
        html! {
            tr role="row" {
                th role="rowheader" scope="row" {
                    @match text::record_url(self.collection, id) {
                        Some(url) => a href=(url) { (text::short(id, 60)) },
                        None => (text::short(id, 60)),
                    }
                }
                @for column in columns {
                    @match row.record.get(&column.name).map(text::cell) {
                        Some((kind, shown)) => td role="cell" class=(kind) data-label=(text::short(&column.name, 40)) {
                            span { (shown) }
                        },
                        None => td role="cell" class="absent" {},
                    }
                }
            }
        }
    }
}

/// The fields that most of the records have, in the order that was asked for or in which they come, and how many fields
/// there are. One that only repeats the id is left out.
fn columns(rows: &[Row], asked: &str) -> (Vec<Column>, usize) {
    struct Seen {
        times: usize,
        numbers: bool,
        is_id: bool,
    }
    let (mut names, mut seen) = (Vec::<&str>::new(), HashMap::<&str, Seen>::new());
    for row in rows {
        for (name, value) in row.record.iter() {
            let seen = seen.entry(name).or_insert_with(|| {
                names.push(name);
                Seen { times: 0, numbers: true, is_id: true }
            });
            seen.times += 1;
            seen.numbers &= text::cell(value).0 == "number";
            seen.is_id &= value.as_str() == Some(row.key.as_str());
        }
    }
    names.retain(|name| !seen[name].is_id);
    // Those that were not asked for by name stay in their order.
    names.sort_by_key(|name| asked.split(',').position(|asked| asked.trim() == *name));
    let fields = names.len();
    let mut often: Vec<&str> = names.clone();
    often.sort_by_key(|name| std::cmp::Reverse(seen[name].times));
    often.truncate(COLUMNS);
    let shown = names.into_iter().filter(|name| often.contains(name));
    let column = |name: &str| Column { name: name.to_owned(), numbers: seen[name].numbers };
    (shown.map(column).collect(), fields)
}
