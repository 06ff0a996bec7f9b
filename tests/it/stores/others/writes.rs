//! Values that are put into columns of any type: each is kept as it is, or refused by name.

use std::{slice, sync::Arc};

use steelyard::{
    record::{Document, Time, Value},
    store::{self, Blob, Filter, Key, Row, Store, query::compare},
};

use super::{Desk, Faults, each, scanned, types};
use crate::stores::{
    copies::copied_rows,
    places::{self, Outcome, ensure},
};

/// Enough rows that a driver which loads files of them does.
const MANY: i64 = 70;

/// Types that nothing is written into, whatever it is.
const NOTHING: [&str; 3] = ["json", "point", "geometry"];

fn texts(literals: &[&str]) -> Vec<String> {
    const USUAL: [&str; 39] = [
        "",
        " ",
        "a",
        "A",
        "a ",
        "ä",
        "漢",
        "abcdef",
        "1",
        "07",
        "1.005",
        "1e3",
        "0x10",
        "x",
        "a,b",
        "b,a",
        "B",
        "true",
        "2020-01-01",
        "2020-01-01 10:00:00",
        "2020-1-1",
        "10:00:00",
        "10:00:00.5",
        "24 hours",
        "10.0.0.1",
        "C0FFEE00-0000-4000-8000-000000000001",
        "[1, 2]",
        "{\"b\": 1, \"a\": 1.0}",
        "infinity",
        "NULL",
        "7\0abc",
        "\0 7",
        "5\u{b}",
        "\u{c}5",
        "5\r",
        ".5",
        "5.",
        "inf",
        "5e400",
    ];
    let mut all: Vec<String> = USUAL.map(str::to_owned).into();
    for literal in literals {
        let text = literal.trim_start_matches('b').trim_matches('\'').to_owned();
        all.extend([
            text.to_uppercase(),
            text.to_lowercase(),
            format!("{text} "),
            format!(" {text}"),
            format!("{text}.5"),
            format!("{text}0"),
            text,
        ]);
    }
    all.sort();
    all.dedup();
    all
}

/// What is put: values of every kind, in the forms that some type takes for the same or cuts.
fn values(literals: &[&str]) -> Vec<Value> {
    let time = |seconds, nanos| Value::Time(Time::from_unix(seconds, nanos).expect("a time"));
    let mut all = vec![
        Value::Null,
        Value::Bool(true),
        Value::Bool(false),
        Value::BigInt("18446744073709551615".into()),
        Value::BigInt("99999999999999999999".into()),
        Value::Bytes(b"abc".to_vec()),
        Value::Bytes(b"a\0".to_vec()),
        Value::Bytes(b"a ".to_vec()),
        Value::Bytes(vec![0xff]),
        Value::Bytes(Vec::new()),
        Value::List(vec![Value::Int(1)]),
        Value::Map(Document::from_iter([("a", Value::Int(1))])),
        time(1_577_872_800, 0),
        time(1_577_872_800, 500_000_000),
        time(1_577_872_800, 123_456_000),
        time(1_577_872_800, 123_456_789),
        time(-1, 999_999_000),
        time(-62_135_596_800, 0),
        time(253_402_207_199, 0),
    ];
    let ints = [0, 1, -1, 5, 99, 128, 1970, 40_000, 16_777_217, 1 << 40, (1 << 53) + 1, i64::MAX];
    all.extend(ints.map(Value::Int));
    let floats = [0.0, -0.0, 1.0, 1.5, 0.1, 1.005, 1e10, 1e300, f64::INFINITY, f64::NAN];
    all.extend(floats.map(Value::Float));
    let decimals = ["1", "1.5", "1.50", "1.005", "12345678.91", "123456789012.5", "1e3", "0.1"];
    all.extend(decimals.map(|text| Value::Decimal(text.into())));
    all.extend(texts(literals).into_iter().map(Value::from));
    all
}

/// Whether this was read of a column into which that was put: numbers may be of another kind, where they are the
/// same number, and a null is not there.
fn is_kept(put: &Value, got: Option<&Value>) -> bool {
    match (put, got) {
        (Value::Null, got) => got.is_none(),
        (_, None) => false,
        (Value::Float(_) | Value::Int(_) | Value::BigInt(_) | Value::Decimal(_), Some(got)) => {
            put == got || compare(put, got).is_some_and(std::cmp::Ordering::is_eq)
        }
        (put, Some(got)) => put == got,
    }
}

fn key(n: i64) -> Key {
    Key::new(n.to_string()).expect("not empty")
}

fn row(n: i64, value: &Value) -> Row {
    Row { key: key(n), record: Document::from_iter([("v", value.clone())]) }
}

/// How a value is written: among so many without one, at this place.
#[derive(Debug, Clone, Copy)]
enum How {
    Put(i64),
    PutEach(i64),
    Load(i64),
}

/// The ways in their turn: a write is a sync.
const HOW: [How; 4] = [How::Put(3), How::PutEach(2), How::Load(1), How::Load(MANY)];

/// Writes a value. Whether it was taken.
async fn written(store: &dyn Store, value: &Value, how: How) -> Result<bool, String> {
    let text = |e: steelyard::Error| e.to_string();
    let (How::Put(count) | How::PutEach(count) | How::Load(count)) = how;
    let at = count / 2;
    let rows: Vec<Row> =
        (0..count).map(|n| row(n, if n == at { value } else { &Value::Null })).collect();
    let done = match how {
        How::Put(_) => store.put(&rows).await,
        How::PutEach(_) => store.put_each(&rows).await,
        How::Load(_) => store.load(&rows).await,
    };
    let got = store.get(&[key(at)]).await.map_err(text)?.remove(0);
    let there = store.count().await.map_err(text)?;
    match &done {
        Ok(()) if there != count as u64 => return Err(format!("{there} of {count} there")),
        Ok(()) => {
            let got = got.unwrap_or_default();
            if !is_kept(value, got.get("v")) {
                return Err(format!("became {:?}", got.get("v")));
            }
        }
        Err(e) if there > 0 => return Err(format!("{there} there, and {e}")),
        Err(e) => {
            let e = e.to_string();
            // MariaDB's own rule of a column of JSON is called `table.v`.
            if !["\"v\"", "'v'", "`v`", ".v`"].iter().any(|name| e.contains(name)) {
                return Err(format!("refused without the column's name: {e}"));
            }
            if !e.contains(&format!("\"{at}\"")) {
                return Err(format!("refused without the key: {e}"));
            }
        }
    }
    store.delete(&Filter::All).await.map_err(text)?;
    Ok(done.is_ok())
}

/// Those that are taken, each by itself; what is wrong goes to `faults`.
async fn taken(
    store: &dyn Store,
    declared: &str,
    values: Vec<Value>,
    faults: &mut Faults,
) -> Result<Vec<Value>, places::Fault> {
    let mut kept = Vec::new();
    'values: for (turn, value) in values.into_iter().enumerate() {
        // What is refused before anything is sent is so however it is sent.
        let how = match store.check(&row(0, &value)) {
            Ok(()) => &[How::Put(1), HOW[turn % HOW.len()]][..],
            Err(_) => &[How::Put(1)],
        };
        let mut is_taken = None;
        for how in how {
            let done = written(store, &value, *how).await;
            let fault = match done {
                Ok(done) if *is_taken.get_or_insert(done) == done => continue,
                Ok(done) => format!("taken: {done}, otherwise not so"),
                Err(fault) => fault,
            };
            faults.push(format!("{declared}: {how:?} {value:?}: {fault}"));
            store.delete(&Filter::All).await?;
            continue 'values;
        }
        if is_taken == Some(true) {
            kept.push(value);
        }
    }
    Ok(kept)
}

/// Copies values of one kind at a time, with those that are refused among them.
async fn copies(
    store: &Arc<dyn Store>,
    declared: &str,
    values: &[Value],
    kept: &[Value],
    faults: &mut Faults,
) -> Outcome {
    let mut kinds: Vec<_> = kept.iter().map(Value::kind).collect();
    kinds.dedup();
    for kind in kinds {
        let of_kind: Vec<_> = values.iter().filter(|value| value.kind() == kind).collect();
        let rows: Vec<Row> = (0..).zip(&of_kind).map(|(n, value)| row(n, value)).collect();
        let want: Vec<_> = rows
            .iter()
            .filter(|row| kept.iter().any(|kept| row.record.get("v") == Some(kept)))
            .collect();
        match copied_rows(&rows, store, false).await {
            Err(e) => faults.push(format!("{declared}: copy of {}: {e}", kind.name())),
            Ok((copied, _)) => {
                let mut there = scanned(&**store).await?;
                there.sort_by_key(|row| row.key.parse::<i64>().expect("a number"));
                let is_same = there.len() == want.len()
                    && want.iter().zip(&there).all(|(want, got)| {
                        let put = want.record.get("v").unwrap_or(&Value::Null);
                        want.key == got.key && is_kept(put, got.record.get("v"))
                    });
                if !is_same || copied.counts.written != want.len() as u64 {
                    let there: Vec<_> = there.iter().map(|row| row.record.get("v")).collect();
                    faults.push(format!("{declared}: copy of {want:?} left {there:?}"));
                }
            }
        }
        store.delete(&Filter::All).await?;
    }
    Ok(())
}

/// Records that do not fit the table, among those that do: only they are refused.
async fn misfits(desk: Arc<Desk>) -> Outcome {
    let table = places::name("misfits");
    desk.program.run(&format!("CREATE TABLE {table} (k int PRIMARY KEY, v int)")).await?;
    let store = desk.open(&table, "").await?;
    let mut rows: Vec<Row> = (0..20).map(|n| row(n, &Value::Int(n))).collect();
    rows[3].record.push("w", 1i64);
    rows[5].record.push("w", Value::List(vec![Value::Int(1)]));
    rows[7] = row(7, &Value::from("seven"));
    rows[9] = row(9, &Value::Map(Document::new()));
    let (copied, _) = copied_rows(&rows, &store, false).await?;
    ensure!((copied.counts.written, copied.counts.rejected) == (16, 4), "{copied:?}");
    let there = scanned(&*store).await?.len();
    ensure!(there == 16, "{there} are there");
    Ok(())
}

#[test]
fn a_record_that_does_not_fit_a_table_keeps_no_other_out_of_it() {
    each(misfits);
}

/// What other programs put into a column, as it is read.
async fn read(desk: &Desk, table: &str, literals: &[&str]) -> Result<Vec<Value>, places::Fault> {
    let rows: Vec<_> = (0..).zip(literals).map(|(i, l): (i64, _)| format!("({i}, {l})")).collect();
    desk.program.run(&format!("INSERT INTO {table} VALUES {}", rows.join(", "))).await?;
    let store = desk.open(table, "").await?;
    let rows = scanned(&*store).await?;
    store.delete(&Filter::All).await?;
    Ok(rows.iter().filter_map(|row| row.record.get("v").cloned()).collect())
}

async fn writes(desk: &Desk) -> Outcome {
    let (types, first) = types::of(desk.subject.driver());
    desk.program.once(first).await?;
    let mut faults = Faults::default();
    let mut count = 0;
    for (declared, literals) in types {
        let table = places::name("others");
        let make = format!("CREATE TABLE {table} (k int PRIMARY KEY, v {declared})");
        desk.program.run(&make).await?;
        let mut all = read(desk, &table, literals).await?;
        all.extend(values(literals));
        let store = desk.open(&table, "").await?;
        let kept = taken(&*store, declared, all.clone(), &mut faults).await?;
        count += kept.len();
        if kept.len() < 2 && !NOTHING.contains(declared) {
            faults.push(format!("{declared}: only {kept:?} of all is taken"));
        }
        // Together they are what each is alone.
        let rows: Vec<Row> = (0..MANY.max(kept.len() as i64))
            .zip(kept.iter().cycle())
            .map(|(n, v)| row(n, v))
            .collect();
        if let Err(e) = store.load(&rows).await {
            faults.push(format!("{declared}: load of all: {e}"));
        }
        for row in &rows {
            let got = store.get(slice::from_ref(&row.key)).await?.remove(0).unwrap_or_default();
            let put = row.record.get("v").unwrap_or(&Value::Null);
            if !is_kept(put, got.get("v")) {
                faults.push(format!("{declared}: {put:?} of many became {:?}", got.get("v")));
            }
        }
        store.delete(&Filter::All).await?;
        copies(&store, declared, &all, &kept, &mut faults).await?;
        desk.program.run(&format!("DROP TABLE {table}")).await?;
    }
    println!("{}: {count} values of {} types are taken", desk.subject.name, types.len());
    faults.done()
}

#[test]
fn what_is_put_is_what_is_got_or_is_refused() {
    each(|desk| async move { writes(&desk).await });
}

/// What has no transactions cannot undo what a column changed: it takes only what such a column keeps for sure.
async fn without_transactions(desk: &Desk) -> Outcome {
    if desk.subject.driver() != "mysql" {
        return Ok(());
    }
    let table = places::name("others");
    let make = format!("CREATE TABLE {table} (k int PRIMARY KEY, v date, n int) ENGINE = MyISAM");
    desk.program.run(&make).await?;
    let store = desk.open(&table, "&engine=myisam").await?;
    let dated = row(1, &Value::from("2020-1-1"));
    for rows in [slice::from_ref(&dated), &[row(2, &Value::Null), dated.clone()]] {
        let e = store.put(rows).await.expect_err("a date may be changed").to_string();
        ensure!(e.contains("\"v\"") && e.contains("\"1\""), "{e}");
    }
    ensure!(store.count().await? == 0, "something was written");
    let sure = [row(1, &Value::from("2020-02-29")), row(2, &Value::Null)];
    store.put(&sure).await?;
    let got = store.get(&[key(1), key(2)]).await?;
    let date = got[0].as_ref().and_then(|record| record.get("v"));
    ensure!(date == Some(&"2020-02-29".into()), "{got:?}");
    ensure!(store.count().await? == 2, "what has no date is written");
    for no_date in ["2021-02-29", "0000-00-00", "2020-02-29 10:00:00", "0999-01-01", "20200101"] {
        let done = store.put(&[row(3, &Value::from(no_date))]).await;
        ensure!(done.is_err(), "{no_date} is taken");
    }
    Ok(())
}

#[test]
fn what_cannot_be_undone_is_not_written() {
    each(|desk| async move { without_transactions(&desk).await });
}

/// Bytes are the record in layout `blob`, whatever the column is.
async fn blobs(desk: &Desk) -> Outcome {
    let mut faults = Faults::default();
    for declared in ["char(9)", "varchar(9)"] {
        let table = places::name("others");
        let make = format!("CREATE TABLE {table} (k int PRIMARY KEY, v {declared})");
        desk.program.run(&make).await?;
        let url = desk.program.url();
        let and = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{and}layout=blob&format=json&column=v&table={table}");
        let store = store::open(&url).await?.store().clone();
        let (blobs, _) = store.blobs().expect("a store of bytes");
        for bytes in ["{}", "{} ", "  ", "{}        "] {
            let blob = |n| Blob { key: key(n), bytes: bytes.into() };
            for all in [vec![blob(1)], vec![blob(1), blob(2)]] {
                let done = blobs.put(&all).await;
                let got = blobs.get(&[key(1)]).await?.remove(0);
                let is_kept = match &done {
                    Ok(()) => got.as_deref() == Some(bytes.as_bytes()),
                    Err(e) => got.is_none() && e.to_string().contains("\"v\""),
                };
                if !is_kept {
                    faults.push(format!("{declared}: {bytes:?} ({done:?}) became {got:?}"));
                }
                blobs.remove(&[key(1), key(2)]).await?;
            }
        }
        desk.program.run(&format!("DROP TABLE {table}")).await?;
    }
    faults.done()
}

#[test]
fn bytes_are_kept_or_refused() {
    each(|desk| async move { blobs(&desk).await });
}
