//! Queries and URLs of stores, as strangers type them: an error or an answer, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steelyard::{
    marc::Record,
    record::{Document, Value},
    store::{Filter, Key, Query, Row, Url, query::{Condition, Order, Path}},
};

fuzz_target!(|text: &str| {
    if let Ok(path) = text.parse::<Path>() {
        assert_eq!(path.to_string().parse::<Path>().unwrap(), path);
    }
    if let Ok(url) = Url::parse(text) {
        let shown = url.to_string();
        if let Some(password) = &url.password
            && password.reveal().len() > 8
            // What stands in its place could be a part of it.
            && !password.reveal().contains("***")
        {
            // It may stand elsewhere in the URL by itself.
            assert!(text.matches(password.reveal()).count() > 1 || !shown.contains(password.reveal()));
        }
    }
    if let Ok(condition) = text.parse::<Condition>() {
        // What it shows is what was read, and means the same.
        assert_eq!(condition.to_string().parse::<Condition>().unwrap(), condition);
        let mut record = Record::new();
        record.push_plain(*b"001", b"42").unwrap();
        record.push_data(*b"245", *b"10", &[(b'a', b"Weights"), (b'c', b"me")]).unwrap();
        if let Ok(filter) = condition.marc_filter() {
            let not = Filter::Not(Box::new(filter.clone()));
            assert_ne!(filter.fits_marc(None, record.as_ref()), not.fits_marc(None, record.as_ref()));
        }
        let row = Document::from_iter([("a", "1"), ("b", "text")]);
        if let Ok(filter) = condition.text_filter() {
            filter.fits_document(None, &row);
        }
    }
    let Ok(filter) = text.parse::<Filter>() else { return };
    let query = Query::new(filter).sorted("a.b".parse().unwrap(), Order::Descending);
    let _ = query.needs();
    if query.check().is_err() {
        return;
    }
    let inner = Document::from_iter([("b", Value::Int(1))]);
    let row = Row {
        key: Key::new("k").unwrap(),
        record: Document::from_iter([("a", Value::Map(inner)), ("c", Value::from("text"))]),
    };
    let fits = query.matches(&row.key, &row.record);
    let not = Query::new(Filter::Not(Box::new(query.filter.clone())));
    assert_ne!(fits, not.matches(&row.key, &row.record));
});
