//! Servers behind HTTP that lie: an error, in time, and never an answer that is wrong.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use futures_util::TryStreamExt;
use steelyard::{
    Error, ErrorKind,
    store::{self, Filter, KeyRange, Place, Query, Row, query::Test},
};

use super::key;

/// A server that answers each request as `answer` says: the status line, further headers, and the body.
fn server(answer: impl Fn(&str) -> (String, String) + Send + Sync + 'static) -> (u16, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (asked, answer) = (Asked::default(), Arc::new(answer));
    let all = asked.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (all, answer) = (all.clone(), answer.clone());
            thread::spawn(move || -> std::io::Result<()> {
                let mut input = BufReader::new(stream.try_clone()?);
                let mut output = stream;
                loop {
                    let (mut head, mut line, mut length) = (String::new(), String::new(), 0);
                    while input.read_line(&mut line)? > 2 {
                        if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
                            length = n.trim().parse().unwrap();
                        }
                        head += &std::mem::take(&mut line);
                    }
                    if head.is_empty() {
                        return Ok(());
                    }
                    let mut body = vec![0; length];
                    input.read_exact(&mut body)?;
                    let request = format!("{head}\n{}", String::from_utf8_lossy(&body));
                    all.0.lock().unwrap().push(request.clone());
                    let (head, body) = answer(&request);
                    write!(output, "HTTP/1.1 {head}Content-Length: {}\r\n\r\n{body}", body.len())?;
                }
            });
        }
    });
    (port, asked)
}

/// What a server was asked.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

fn ok(body: impl Into<String>) -> (String, String) {
    let headers = "200 OK\r\nETag: \"a\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
    (headers.into(), body.into())
}

/// A list of these objects of the table `records`, which goes on where there is a token; or says so without one.
fn list(names: &[&str], truncated: bool, token: &str) -> (String, String) {
    let mut xml = "<ListBucketResult><Name>b</Name>".to_owned();
    for name in names {
        xml += &format!(
            "<Contents><Key>records+/{name}</Key><Size>2</Size>\
             <LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>a</ETag></Contents>"
        );
    }
    xml += &format!("<IsTruncated>{truncated}</IsTruncated>");
    if !token.is_empty() {
        xml += &format!("<NextContinuationToken>{token}</NextContinuationToken>");
    }
    ok(xml + "</ListBucketResult>")
}

async fn bucket(port: u16, timeout: &str) -> Place {
    let url = format!(
        "s3://b?endpoint=http://127.0.0.1:{port}&region=us-east-1&access_key_id=known\
         &secret_access_key=hidden-secret&format=json&timeout={timeout}&table=records"
    );
    store::open(&url).await.unwrap()
}

async fn scanned(place: &Place) -> steelyard::Result<Vec<Row>> {
    place.scan(&KeyRange::all()).await?.try_concat().await
}

fn lists(request: &str) -> bool {
    request.contains("list-type=2")
}

#[track_caller]
fn is_refused<T: std::fmt::Debug>(done: steelyard::Result<T>, port: u16, said: &str) -> Error {
    let error = done.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed, "{error:?}");
    assert!(error.to_string().contains(said), "{error}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    error
}

#[tokio::test]
async fn s3_goes_on_to_no_other_origin() {
    let (other, asked) = server(|request| match lists(request) {
        true => list(&[], false, ""),
        false => ok("{}"),
    });
    let (port, _) = server(move |request| match lists(request) {
        true => list(&["a"], false, ""),
        false => {
            let path = request.split(' ').nth(1).unwrap();
            (
                format!("307 Temporary Redirect\r\nLocation: http://127.0.0.1:{other}{path}\r\n"),
                String::new(),
            )
        }
    });
    let place = bucket(port, "20").await;
    let error = place.get(&[key("a")]).await.unwrap_err();
    assert!(error.to_string().contains("another server"), "{error:?}");
    let row = Row { key: key("a"), record: Default::default() };
    let error = place.put(&[row]).await.unwrap_err();
    assert!(error.to_string().contains(&format!("127.0.0.1:{other}")), "{error:?}");
    assert!(place.remove(&[key("a")]).await.is_err());
    assert!(asked.0.lock().unwrap().is_empty(), "{:?}", asked.0.lock().unwrap());
    assert!(!format!("{error:?}").contains("hidden-secret"), "{error:?}");
}

#[tokio::test]
async fn s3_goes_on_within_its_origin() {
    let (port, _) = server(|request| match request {
        _ if lists(request) => list(&["a"], false, ""),
        request if request.contains("again") => ok("{\"a\":1}"),
        request => {
            let path = request.split(' ').nth(1).unwrap();
            (format!("307 Temporary Redirect\r\nLocation: {path}?again\r\n"), String::new())
        }
    });
    let found = bucket(port, "20").await.get(&[key("a")]).await.unwrap();
    assert!(found[0].is_some(), "{found:?}");
}

#[tokio::test]
async fn s3_takes_no_part_of_an_object_for_the_whole() {
    for status in ["206 Partial Content", "203 Non-Authoritative Information"] {
        let (port, _) = server(move |request| match lists(request) {
            true => list(&["a"], false, ""),
            false => (
                format!(
                    "{status}\r\nETag: \"a\"\r\nContent-Range: bytes 0-1/700\r\n\
                     Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n"
                ),
                "{}".into(),
            ),
        });
        let place = bucket(port, "20").await;
        is_refused(place.get(&[key("a")]).await, port, &status[..3]);
        is_refused(scanned(&place).await, port, &status[..3]);
    }
}

#[tokio::test]
async fn s3_lists_that_do_not_end_as_they_say_are_refused() {
    // More to come, and not where; an empty word for where; one place twice, alone and in turns.
    for (tokens, said) in [
        (&[""][..], "NextContinuationToken"),
        (&["x", "x"], "twice"),
        (&["x", "y", "x", "y"], "twice"),
    ] {
        let page = Arc::new(AtomicUsize::new(0));
        let (port, _) = server(move |request| {
            if !lists(request) {
                return ok("{}");
            }
            if !request.contains("continuation-token") {
                page.store(0, Ordering::SeqCst);
            }
            let at = page.fetch_add(1, Ordering::SeqCst);
            list(&[], true, tokens[at % tokens.len()])
        });
        let url = format!("127.0.0.1:{port}");
        // That it opens at all is no promise: it looks at the first page.
        let opened = store::open(&format!(
            "s3://b?endpoint=http://{url}&region=us-east-1&access_key_id=known\
             &secret_access_key=hidden-secret&format=json&timeout=20&table=records"
        ))
        .await;
        let done = match opened {
            Err(e) => Err(e),
            Ok(place) => scanned(&place).await,
        };
        is_refused(done, port, said);
    }
}

#[tokio::test]
async fn s3_lists_without_an_end_that_give_nothing_end_in_time() {
    let page = AtomicUsize::new(0);
    let (port, _) = server(move |request| match lists(request) {
        true if !request.contains("continuation-token") => list(&["a"], true, "first"),
        true => list(&[], true, &format!("t{}", page.fetch_add(1, Ordering::SeqCst))),
        false => ok("{}"),
    });
    let place = bucket(port, "1").await;
    for done in [
        within(scanned(&place)).await.map(drop),
        within(place.count()).await.map(drop),
        within(place.drop_table()).await,
    ] {
        let error = done.unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    }
}

#[tokio::test]
async fn couchdb_pages_without_an_end_that_give_nothing_end_in_time() {
    let page = AtomicUsize::new(0);
    let (port, _) = server(move |request| {
        let n = page.fetch_add(1, Ordering::SeqCst);
        let limit = request.split("\"limit\":").nth(1).map_or(1, |rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<usize>().unwrap()
        });
        let design = |i: usize| format!("_design/{n:09}-{i:05}");
        match request {
            // Documents that hold indexes are none of ours.
            _ if request.contains("/_all_docs") => {
                let row = |i| {
                    let id = design(i);
                    format!(
                        "{{\"id\":\"{id}\",\"key\":\"{id}\",\"value\":{{\"rev\":\"1-a\"}},\
                         \"doc\":{{\"_id\":\"{id}\",\"_rev\":\"1-a\"}}}}"
                    )
                };
                let rows: Vec<_> = (0..limit).map(row).collect();
                ok(format!("{{\"rows\":[{}]}}", rows.join(",")))
            }
            _ if request.contains("/_find") => {
                let doc = |i| format!("{{\"_id\":\"{}\",\"_rev\":\"1-a\"}}", design(i));
                let docs: Vec<_> = (0..limit).map(doc).collect();
                ok(format!("{{\"docs\":[{}],\"bookmark\":\"b{n}\"}}", docs.join(",")))
            }
            _ => ok("{\"couchdb\":\"Welcome\",\"version\":\"3.3.3\",\"doc_count\":1}"),
        }
    });
    let url = format!("couchdb://127.0.0.1:{port}/?table=records&timeout=1");
    let place = store::open(&url).await.unwrap();
    let filter = Filter::field("n", Test::Eq(1i64.into())).unwrap();
    let found = async {
        let rows = place.find(&Query::new(filter)).await?;
        rows.try_concat().await
    };
    for done in [within(scanned(&place)).await, within(found).await] {
        let error = done.unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert!(error.to_string().contains("empty pages"), "{error}");
        assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    }
}

/// What it comes to, if it ends at all.
async fn within<T>(done: impl Future<Output = steelyard::Result<T>>) -> steelyard::Result<T> {
    tokio::time::timeout(Duration::from_secs(60), done).await.expect("it ends")
}
