//! Any requests, against a map that does the same.

use std::collections::BTreeMap;

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};

use super::client::Running;

#[derive(Debug, Clone)]
enum Request {
    Put { id: u8, n: i64, on: On, once: Option<u8> },
    Delete { id: u8, on: On },
    Get { id: u8 },
    List { least: i64, limit: u8 },
    Restart,
}

/// The condition of a write.
#[derive(Debug, Clone, Copy)]
enum On {
    Any,
    Absent,
    Present,
    /// The revision it has now, as far as the model knows.
    Current,
    /// The first one it had.
    First,
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let on = prop::sample::select(vec![
        On::Any,
        On::Any,
        On::Absent,
        On::Present,
        On::Current,
        On::First,
    ]);
    let id = 0..4_u8;
    let one = prop_oneof![
        6 => (id.clone(), -5..5_i64, on.clone(), prop::option::weighted(0.3, 0..3_u8))
            .prop_map(|(id, n, on, once)| Request::Put { id, n, on, once }),
        2 => (id.clone(), on).prop_map(|(id, on)| Request::Delete { id, on }),
        3 => id.prop_map(|id| Request::Get { id }),
        2 => (-5..5_i64, 1..5_u8).prop_map(|(least, limit)| Request::List { least, limit }),
        1 => Just(Request::Restart),
    ];
    prop::collection::vec(one, 1..25)
}

#[derive(Default)]
struct Model {
    /// Value and tag of what is there.
    there: BTreeMap<u8, (i64, String)>,
    first: BTreeMap<u8, String>,
    /// What was done with a key: for which request, and the answer.
    once: BTreeMap<u8, (String, u16, String)>,
}

impl Model {
    /// The header of a condition, and whether it holds.
    fn condition(&self, id: u8, on: On) -> (String, bool) {
        let now = self.there.get(&id).map(|(_, tag)| tag.as_str());
        let tagged = |tag: Option<&str>| {
            let tag = tag.unwrap_or("\"none\"");
            (format!("If-Match: {tag}\r\n"), now == Some(tag))
        };
        match on {
            On::Any => (String::new(), true),
            On::Absent => ("If-None-Match: *\r\n".into(), now.is_none()),
            On::Present => ("If-Match: *\r\n".into(), now.is_some()),
            On::Current => tagged(now),
            On::First => tagged(self.first.get(&id).map(String::as_str)),
        }
    }
}

async fn check(gateway: &mut Running, collection: &str, requests: &[Request]) {
    let (key, mut model) = (gateway.a.clone(), Model::default());
    for request in requests {
        match *request {
            Request::Put { id, n, on, once } => {
                let path = format!("/v1/docs/{collection}/{id}");
                let (mut headers, holds) = model.condition(id, on);
                let body = json!({ "n": n }).to_string();
                let asked = format!("{path} {headers} {body}");
                if let Some(once) = once {
                    headers += &format!("Idempotency-Key: {collection}-{once}\r\n");
                }
                let answer = gateway.put(&key, &path, &headers, &body).await;
                match once.and_then(|once| model.once.get(&once)) {
                    Some((before, status, tag)) if *before == asked => {
                        assert_eq!(
                            (answer.status, answer.tag()),
                            (*status, tag.as_str()),
                            "{request:?}"
                        );
                        continue;
                    }
                    Some(_) => {
                        answer.is(422);
                        continue;
                    }
                    None => {}
                }
                if !holds {
                    answer.is(412);
                    continue;
                }
                let answer = answer.is(if model.there.contains_key(&id) { 200 } else { 201 });
                let tag = answer.tag().to_owned();
                model.first.entry(id).or_insert_with(|| tag.clone());
                if let Some(once) = once {
                    model.once.insert(once, (asked, answer.status, tag.clone()));
                }
                model.there.insert(id, (n, tag));
            }
            Request::Delete { on: On::Absent, .. } => {}
            Request::Delete { id, on } => {
                let (headers, holds) = model.condition(id, on);
                let answer = gateway
                    .ask(&key, "DELETE", &format!("/v1/docs/{collection}/{id}"), &headers, "")
                    .await;
                match (model.there.contains_key(&id), holds) {
                    (false, _) => drop(answer.is(404)),
                    (true, false) => drop(answer.is(412)),
                    (true, true) => {
                        answer.is(204);
                        model.there.remove(&id);
                    }
                }
            }
            Request::Get { id } => {
                let answer = gateway.get(&key, &format!("/v1/docs/{collection}/{id}")).await;
                match model.there.get(&id) {
                    None => drop(answer.is(404)),
                    Some((n, tag)) => {
                        let answer = answer.is(200);
                        assert_eq!(
                            (answer.json(), answer.tag()),
                            (json!({ "n": n }), tag.as_str())
                        );
                    }
                }
            }
            Request::List { least, limit } => {
                let path = format!("/v1/docs/{collection}?limit={limit}&where=n%3E%3D{least}");
                let page = gateway.get(&key, &path).await.is(200).json();
                let fitting: Vec<Value> = (model.there.iter())
                    .filter(|(_, (n, _))| *n >= least)
                    .map(|(id, (n, tag))| json!({ "id": id.to_string(), "rev": tag.trim_matches('"'), "doc": { "n": n } }))
                    .collect();
                let shown = fitting.len().min(usize::from(limit));
                assert_eq!(page["items"], json!(fitting[..shown]));
                assert_eq!(page["next"].is_null(), fitting.len() == shown);
            }
            Request::Restart => gateway.restart().await,
        }
    }
}

#[test]
fn any_requests_are_answered_as_by_a_map() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limits = "requests_per_second = 1e6\ncollections = 1000";
    let gateway = std::cell::RefCell::new(runtime.block_on(Running::start(limits)));
    let cases = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let checked = runner.run(&requests(), |requests| {
        cases.set(cases.get() + 1);
        let collection = format!("c{}", cases.get());
        runtime.block_on(check(&mut gateway.borrow_mut(), &collection, &requests));
        Ok(())
    });
    checked.unwrap();
}
