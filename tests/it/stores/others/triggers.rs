//! Tables with triggers: what is put is what is there, or it is refused and nothing is written.

use std::slice;

use steelyard::{
    record::{Document, Value},
    store::{Expected, Filter, Key, Row, Store},
};

use super::{Desk, Faults, each};
use crate::stores::places::{self, Outcome};

/// Enough rows that a driver which loads files of them does.
const MANY: usize = 70;

/// A table `@`, of which `k` is the key, and what is done there behind the back of whoever writes.
struct Case {
    what: &'static str,
    /// The type of the key.
    key: &'static str,
    /// What follows the columns.
    end: &'static str,
    make: &'static [&'static str],
    is: Is,
}

/// What comes of writing the record of key `a` (or 1) with `v` = 5, for the first time and again.
#[derive(Clone, Copy, PartialEq)]
enum Is {
    /// It is kept.
    Kept,
    /// It is refused, by the name of the field.
    Changed,
    /// It is refused, by its key.
    Lost,
    /// It is refused only in place of another.
    ChangedAgain,
    /// Nothing is written into the table at all.
    OnlyRead,
}

const fn case(
    what: &'static str,
    key: &'static str,
    make: &'static [&'static str],
    is: Is,
) -> Case {
    Case { what, key, end: "", make, is }
}

const SQLITE: &[Case] = &[
    case(
        "after insert",
        "integer",
        &[
            "CREATE TRIGGER @t AFTER INSERT ON @ BEGIN UPDATE @ SET v = v + 100 WHERE k = NEW.k; END",
        ],
        Is::Changed,
    ),
    case(
        "after update",
        "integer",
        &["CREATE TRIGGER @t AFTER UPDATE ON @ BEGIN UPDATE @ SET v = 0 WHERE k = NEW.k; END"],
        Is::ChangedAgain,
    ),
    case(
        "another field",
        "text",
        &["CREATE TRIGGER @t AFTER INSERT ON @ BEGIN UPDATE @ SET w = 'x' WHERE k = NEW.k; END"],
        Is::Changed,
    ),
    case(
        "key",
        "text",
        &[
            "CREATE TRIGGER @t AFTER INSERT ON @ BEGIN UPDATE @ SET k = upper(k) WHERE k = NEW.k; END",
        ],
        Is::Lost,
    ),
    case(
        "ignored",
        "integer",
        &["CREATE TRIGGER @t BEFORE INSERT ON @ WHEN NEW.v = 5 BEGIN SELECT RAISE(IGNORE); END"],
        Is::Lost,
    ),
    case(
        "deleted",
        "text",
        &["CREATE TRIGGER @t AFTER INSERT ON @ BEGIN DELETE FROM @ WHERE v = 5; END"],
        Is::Lost,
    ),
    case(
        "log",
        "text",
        &[
            "CREATE TABLE @log (k, v)",
            "CREATE TRIGGER @t AFTER INSERT ON @ BEGIN INSERT INTO @log VALUES (NEW.k, NEW.v); END",
        ],
        Is::Kept,
    ),
];

const POSTGRES: &[Case] = &[
    case(
        "before insert",
        "int",
        &[
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v + 100; RETURN NEW; END $$",
            "CREATE TRIGGER t BEFORE INSERT ON @ FOR EACH ROW EXECUTE FUNCTION @f()",
        ],
        Is::Changed,
    ),
    case(
        "before update",
        "text COLLATE \"C\"",
        &[
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := 0; RETURN NEW; END $$",
            "CREATE TRIGGER t BEFORE UPDATE ON @ FOR EACH ROW EXECUTE FUNCTION @f()",
        ],
        Is::ChangedAgain,
    ),
    case(
        "key of numbers",
        "int",
        &[
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.k := NEW.k + 1000; RETURN NEW; END $$",
            "CREATE TRIGGER t BEFORE INSERT ON @ FOR EACH ROW EXECUTE FUNCTION @f()",
        ],
        Is::Lost,
    ),
    case(
        "key of text",
        "text",
        &[
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.k := upper(NEW.k); RETURN NEW; END $$",
            "CREATE TRIGGER t BEFORE INSERT ON @ FOR EACH ROW EXECUTE FUNCTION @f()",
        ],
        Is::Lost,
    ),
    case(
        "after insert",
        "int",
        &[
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE @ SET v = 0 WHERE k = NEW.k; RETURN NULL; END $$",
            "CREATE TRIGGER t AFTER INSERT ON @ FOR EACH ROW EXECUTE FUNCTION @f()",
        ],
        Is::Changed,
    ),
    case(
        "deferred",
        "int",
        &[
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE @ SET w = 'x' WHERE k = NEW.k; RETURN NULL; END $$",
            "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON @ DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION @f()",
        ],
        Is::Changed,
    ),
    case(
        "statement",
        "int",
        &[
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM @ WHERE v = 5; RETURN NULL; END $$",
            "CREATE TRIGGER t AFTER INSERT ON @ FOR EACH STATEMENT EXECUTE FUNCTION @f()",
        ],
        Is::Lost,
    ),
    Case {
        what: "partition",
        key: "int",
        end: "PARTITION BY RANGE (k)",
        make: &[
            "CREATE TABLE @p PARTITION OF @ FOR VALUES FROM (0) TO (100000)",
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := 0; RETURN NEW; END $$",
            "CREATE TRIGGER t BEFORE INSERT ON @p FOR EACH ROW EXECUTE FUNCTION @f()",
        ],
        is: Is::Changed,
    },
    case(
        "log",
        "text",
        &[
            "CREATE TABLE @log (k text, v int)",
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO @log VALUES (NEW.k, NEW.v); RETURN NEW; END $$",
            "CREATE TRIGGER t BEFORE INSERT ON @ FOR EACH ROW EXECUTE FUNCTION @f()",
        ],
        Is::Kept,
    ),
];

const MYSQL: &[Case] = &[
    case(
        "before insert",
        "int",
        &["CREATE TRIGGER @t BEFORE INSERT ON @ FOR EACH ROW SET NEW.v = NEW.v + 100"],
        Is::Changed,
    ),
    case(
        "before update",
        "int",
        &["CREATE TRIGGER @t BEFORE UPDATE ON @ FOR EACH ROW SET NEW.v = 0"],
        Is::ChangedAgain,
    ),
    case(
        "another field",
        "int",
        &["CREATE TRIGGER @t BEFORE INSERT ON @ FOR EACH ROW SET NEW.w = 'x'"],
        Is::Changed,
    ),
    case(
        "key of numbers",
        "int",
        &["CREATE TRIGGER @t BEFORE INSERT ON @ FOR EACH ROW SET NEW.k = NEW.k + 1000"],
        Is::Lost,
    ),
    case(
        "key of text",
        "varchar(9) COLLATE utf8mb4_bin",
        &["CREATE TRIGGER @t BEFORE INSERT ON @ FOR EACH ROW SET NEW.k = upper(NEW.k)"],
        Is::Lost,
    ),
    Case {
        what: "without transactions",
        key: "int",
        end: "ENGINE = MyISAM",
        make: &["CREATE TRIGGER @t BEFORE INSERT ON @ FOR EACH ROW SET NEW.v = 1"],
        is: Is::OnlyRead,
    },
    Case {
        what: "without transactions, afterwards",
        key: "int",
        end: "ENGINE = MyISAM",
        make: &["CREATE TRIGGER @t AFTER INSERT ON @ FOR EACH ROW SET @n = 1"],
        is: Is::Kept,
    },
    case(
        "log",
        "varchar(9)",
        &[
            "CREATE TABLE @log (k varchar(9), v int)",
            "CREATE TRIGGER @t BEFORE INSERT ON @ FOR EACH ROW INSERT INTO @log VALUES (NEW.k, NEW.v)",
        ],
        Is::Kept,
    ),
];

/// How a record is written, among so many others that no trigger is for.
#[derive(Debug, Clone, Copy)]
enum How {
    Put(usize),
    PutEach(usize),
    Load(usize),
    /// One that is absent, or that is there with its key as a text.
    PutIf(usize),
}

const HOW: [How; 7] = [
    How::Put(1),
    How::Put(3),
    How::Put(MANY),
    How::PutEach(3),
    How::Load(1),
    How::Load(MANY),
    How::PutIf(1),
];

fn rows(case: &Case, count: usize) -> Vec<Row> {
    let is_text = case.key.contains("text") || case.key.contains("char");
    let row = |n: usize| {
        let key = if is_text { format!("a{n}") } else { (n + 1).to_string() };
        let v = Value::Int(if n == count / 2 { 5 } else { n as i64 + 10 });
        Row { key: Key::new(key).expect("not empty"), record: Document::from_iter([("v", v)]) }
    };
    (0..count).map(row).collect()
}

async fn write(store: &dyn Store, rows: &[Row], how: How) -> steelyard::Result<()> {
    match how {
        How::Put(_) => store.put(rows).await,
        How::PutEach(_) => store.put_each(rows).await,
        How::Load(_) => store.load(rows).await,
        How::PutIf(_) => {
            for row in rows {
                let key = row.key.as_str();
                let written = match store.put_if(row, &Expected::Absent).await? {
                    false if key.starts_with('a') => {
                        store.put_if(row, &Expected::field("k", key)).await?
                    }
                    written => written,
                };
                if !written {
                    store.put(slice::from_ref(row)).await?;
                }
            }
            Ok(())
        }
    }
}

/// Writes once, and tells what is wrong with what came of it. Each row is new.
async fn once(store: &dyn Store, case: &Case, how: How) -> Result<(), String> {
    let (How::Put(count) | How::PutEach(count) | How::Load(count) | How::PutIf(count)) = how;
    let rows = rows(case, count);
    let there = async || store.count().await.map_err(|e| e.to_string());
    let done = write(store, &rows, how).await;
    let is = match case.is {
        Is::ChangedAgain => Is::Kept,
        is => is,
    };
    verdict(is, done, &rows)?;
    let want = if is == Is::Kept { count as u64 } else { 0 };
    match there().await? {
        n if n == want => {}
        n => return Err(format!("{n} there, not {want}")),
    }
    if case.is != Is::ChangedAgain || matches!(how, How::Load(_)) {
        return Ok(());
    }
    let mut again = rows.clone();
    again.iter_mut().for_each(|row| row.record = Document::from_iter([("v", Value::Int(5))]));
    verdict(Is::Changed, write(store, &again, how).await, &again)?;
    let row = &rows[count / 2];
    let got = store.get(slice::from_ref(&row.key)).await.map_err(|e| e.to_string())?.remove(0);
    let v = got.as_ref().and_then(|got| got.get("v"));
    match v == row.record.get("v") {
        true => Ok(()),
        false => Err(format!("{v:?} is there afterwards")),
    }
}

fn verdict(is: Is, done: steelyard::Result<()>, rows: &[Row]) -> Result<(), String> {
    let e = match (is, done) {
        (Is::Kept, done) => return done.map_err(|e| e.to_string()),
        (_, Ok(())) => return Err("it is taken".into()),
        (_, Err(e)) => e.to_string(),
    };
    let names_key = rows.iter().any(|row| e.contains(&format!("key \"{}\"", row.key)));
    let names_field = e.contains("\"v\"") || e.contains("\"w\"");
    let fits = match is {
        Is::Changed => names_key && names_field && e.contains("trigger"),
        Is::Lost => names_key && e.contains("trigger"),
        _ => e.contains("trigger") && e.contains("can be read, not written"),
    };
    if fits { Ok(()) } else { Err(format!("it says {e}")) }
}

async fn triggers(desk: &Desk) -> Outcome {
    let cases = match desk.subject.driver() {
        "sqlite" => SQLITE,
        "postgres" => POSTGRES,
        _ => MYSQL,
    };
    let mut faults = Faults::default();
    for case in cases {
        let table = places::name("triggers");
        let Case { key, end, .. } = case;
        let make = format!("CREATE TABLE @ (k {key} PRIMARY KEY, v int, w varchar(9)) {end}");
        for statement in std::iter::once(&*make).chain(case.make.iter().copied()) {
            // `@n` is a variable of MySQL's.
            let statement = statement.replace("@n", "\0").replace('@', &table).replace('\0', "@n");
            desk.program.run(&statement).await?;
        }
        let more = if end.contains("MyISAM") { "&engine=myisam" } else { "" };
        let store = desk.open(&table, more).await?;
        for how in HOW {
            // Each by a statement of its own, they are one transaction.
            if !more.is_empty() && matches!(how, How::PutEach(_)) {
                continue;
            }
            if let Err(fault) = once(&*store, case, how).await {
                faults.push(format!("{}, {how:?}: {fault}", case.what));
            }
            store.delete(&Filter::All).await?;
        }
        desk.program.run(&format!("DROP TABLE {table}")).await?;
    }
    faults.done()
}

#[test]
fn what_a_trigger_changes_is_refused() {
    each(|desk| async move { triggers(&desk).await });
}

/// Records in one column: whole they are looked at, too.
async fn documents(desk: &Desk) -> Outcome {
    let make: &[&str] = match desk.subject.driver() {
        "sqlite" => &[
            "CREATE TABLE @ (k text PRIMARY KEY, body text)",
            "CREATE TRIGGER @t AFTER INSERT ON @ WHEN NEW.k = 'a' BEGIN UPDATE @ SET body = '{}' WHERE k = 'a'; END",
        ],
        "postgres" => &[
            "CREATE TABLE @ (k text COLLATE \"C\" PRIMARY KEY, body jsonb)",
            "CREATE FUNCTION @f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.body := '{}'; RETURN NEW; END $$",
            "CREATE TRIGGER t BEFORE INSERT ON @ FOR EACH ROW WHEN (NEW.k = 'a') EXECUTE FUNCTION @f()",
        ],
        _ => &[
            "CREATE TABLE @ (k varchar(9) COLLATE utf8mb4_bin PRIMARY KEY, body json)",
            "CREATE TRIGGER @t BEFORE INSERT ON @ FOR EACH ROW SET NEW.body = if(NEW.k = 'a', '{}', NEW.body)",
        ],
    };
    let table = places::name("triggers");
    for statement in make {
        desk.program.run(&statement.replace('@', &table)).await?;
    }
    let url = desk.program.url();
    let and = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{and}layout=document&column=body&table={table}");
    let store = steelyard::store::open(&url).await?.store().clone();
    let row = |key: &str| {
        let list =
            Value::List(vec![Value::Int(1), Value::Float(1.5), Value::Float(2.0), Value::Null]);
        let record = Document::from_iter([("z", list), ("a", Value::from("ä\n"))]);
        Row { key: Key::new(key).expect("not empty"), record }
    };
    let mut faults = Faults::default();
    for how in HOW {
        let (How::Put(count) | How::PutEach(count) | How::Load(count) | How::PutIf(count)) = how;
        let mut rows: Vec<Row> = (1..count).map(|n| row(&format!("b{n}"))).collect();
        rows.push(row("a"));
        match write(&*store, &rows, how).await {
            Err(e) if e.to_string().contains("trigger") && e.to_string().contains("key \"a\"") => {}
            done => faults.push(format!("{how:?}: {done:?}")),
        }
        if store.count().await? != 0 {
            faults.push(format!("{how:?}: something was written"));
        }
        rows.pop();
        if let Err(e) = write(&*store, &rows, how).await {
            faults.push(format!("{how:?} of the others: {e}"));
        }
        store.delete(&Filter::All).await?;
    }
    faults.done()
}

#[test]
fn documents_that_a_trigger_changes_are_refused() {
    each(|desk| async move { documents(&desk).await });
}
