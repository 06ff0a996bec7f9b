//! What cannot be held is refused, by name, before anything is written.

use std::slice;

use steelyard::{
    Error, ErrorKind,
    record::{Document, Value},
    store::Store,
};

use super::{
    Fault, Outcome, Row, Subject, Wrap, ensure, expect_error, get_one, has, key, of_kind, row, rows,
};

/// Beyond this, limits are not tried: it would take memory and time for little.
const TRIED: usize = 20 << 20;
/// What a refusal may be.
pub const REFUSED: [ErrorKind; 3] =
    [ErrorKind::Invalid, ErrorKind::TooLarge, ErrorKind::Unsupported];

fn of_size(text: &str, bytes: usize) -> Row {
    let fields = [("n", Value::Int(1)), ("text", Value::Text("x".repeat(bytes)))];
    Row { key: key(text), record: Document::from_iter(fields) }
}

/// Rows that no such store can hold.
pub fn refused(store: &dyn Store) -> Vec<Row> {
    let abilities = store.abilities();
    let mut found = Vec::new();
    if abilities.max_key < TRIED {
        found.push(row("k".repeat(abilities.max_key + 1), 1));
    }
    if abilities.max_record < TRIED {
        found.push(of_size("large", abilities.max_record + 1));
    }
    found
}

pub async fn refused_batches(subject: &Subject) -> Outcome {
    let fresh = subject.ready(&rows(1)).await?;
    let store = &*fresh.store;
    let before = row("before", 7);
    store.put(slice::from_ref(&before)).await?;
    for bad in refused(store) {
        let batch = [rows(2), vec![bad.clone()], rows(4)[2..].to_vec()].concat();
        for load in [false, true] {
            let done = match load {
                true => store.load(&batch).await,
                false => store.put(&batch).await,
            };
            let error = expect_error(done, "a batch with a row that cannot be held")?;
            of_kind(&error, &REFUSED)?;
            // Checked before anything is written, and so whether the store is atomic or not.
            has(store, slice::from_ref(&before)).await?;
        }
    }
    fresh.done().await
}

pub async fn limits(subject: &Subject) -> Outcome {
    let fresh = subject.ready(&rows(1)).await?;
    let store = &*fresh.store;
    for bad in refused(store) {
        let asked = expect_error(store.check(&bad), "check of what is beyond the limits")?;
        let put = expect_error(store.put(slice::from_ref(&bad)).await, "put of it")?;
        for error in [&asked, &put] {
            match bad.key.len() > store.abilities().max_key {
                true => of_kind(error, &[ErrorKind::Invalid, ErrorKind::TooLarge])?,
                false => of_kind(error, &[ErrorKind::TooLarge])?,
            }
            names(error, &bad)?;
        }
    }
    // Up to the limits all is well; what a record takes beyond its text is the store's business.
    let max_key = store.abilities().max_key;
    if max_key < TRIED {
        let longest = row("k".repeat(max_key), 1);
        match store.check(&longest) {
            // What a wrapper adds to a key may take more than its length.
            Err(e) if subject.wrap != Wrap::Bare => of_kind(&e, &[ErrorKind::Invalid])?,
            _ => {
                store.put(slice::from_ref(&longest)).await?;
                has(store, slice::from_ref(&longest)).await?;
                store.remove(&[longest.key]).await?;
            }
        }
    }
    let size = store.abilities().max_record.min(TRIED) / 5 * 2;
    let large = of_size("large", size);
    store.put(slice::from_ref(&large)).await?;
    let found = get_one(store, &large.key).await?;
    let length = |record: &Document| record.get("text").and_then(Value::as_str).map(str::len);
    let found = found.ok_or_else(|| Fault::new("a large record is not there"))?;
    ensure!(found == large.record, "{:?} bytes of {size}", length(&found));
    fresh.done().await
}

fn names(error: &Error, row: &Row) -> Outcome {
    let named = row.key.get(..20.min(row.key.len())).unwrap_or(&row.key);
    ensure!(error.to_string().contains(named), "it does not name the key: {error:?}");
    Ok(())
}
