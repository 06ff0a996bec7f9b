//! `/c/{collection}/{id}`: one record.

use axum::{http::Method, response::Response};
use futures_util::FutureExt;
use maud::html;
use steelyard_store::store::{Row, query::Path};

use super::{export, guard, html, text};
use crate::{
    docs::{Asked, found, revision_taken},
    http::{Call, Route},
    problem::Problem,
    tenants::Access,
};

pub(super) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/c/{collection}/{id}",
    name: "page-record",
    about: "A record, as a page.",
    access: Access::Read,
    params: &[],
    sent: None,
    answers: &[],
    call: |call| show(call).boxed(),
};

async fn show(call: Call) -> Result<Response, Problem> {
    let (collection, id) = (call.existing().await?, call.id()?);
    let mut record = found(&call, &collection, &id).await?;
    let revision = revision_taken(&mut record);
    let (pieces, cut) = text::indented(&record)?;
    let fields = record.len();
    let name = collection.name.as_str();
    let path = format!("/v1/docs/{name}/{}", text::encoded(id.as_str()));
    let command = text::curl(guard::origin(&call.headers, call.reached).as_deref(), &path, &[]);
    // This record, as a condition has it.
    let this = serde_json::Value::from(id.as_str());
    let asked = Asked { condition: format!("{}={this}", Path::KEY), ..Asked::default() };
    let shown = text::short(id.as_str(), 200);
    let above =
        [("/".to_owned(), "Collections".to_owned()), (format!("/c/{name}"), name.to_owned())];
    let main = html! {
        (html::trail(&above, &text::short(id.as_str(), 60)))
        h1 class="id" { (shown) }
        dl class="facts" {
            div { dt { "Id" } dd { code { (text::visible(id.as_str())) } } }
            div {
                dt { "Revision" }
                dd {
                    @match &revision {
                        Some(revision) => code { (text::visible(revision)) },
                        None => "none yet: another program wrote this record",
                    }
                }
            }
            div { dt { "Fields" } dd { (text::grouped(fields as u64)) } }
        }
        pre class="json flow" role="region" aria-label="The record as JSON" tabindex="0" {
            code {
                @for piece in &pieces {
                    @match piece {
                        text::Piece::Name(name) => span class="name" { (name) },
                        text::Piece::Other(text) => (text),
                    }
                }
            }
        }
        @if cut {
            (html::wrong("This is the beginning: indented, the record is too long for a page. The command below has all of it."))
        }
        (export::form(name, &asked, &[Row { key: id, record }]))
        (html::command(&command))
    };
    Ok(html::page(&shown, Some(call.tenant.principal().tenant()), main))
}
