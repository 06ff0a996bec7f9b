//! Conditional writes from several places at once: handles that share nothing, each client of a driver, processes.
//!
//! `STEELYARD_INCREMENTS=10000` has every store count so far, and says how long that took.

use std::{sync::Arc, thread};

use steelyard::store::{self, Column, Key, Layout, Shape, Store};

use super::{
    clients::clients,
    contract::conditional::{increment, increments, row},
    places::{self, Fault, Outcome, Subject, Wrap, ensure},
};
use crate::children::Command;

fn total() -> usize {
    let total = std::env::var("STEELYARD_INCREMENTS").ok();
    total.map_or(80, |total| total.parse().expect("STEELYARD_INCREMENTS is a whole number"))
}

fn layout(shape: Shape) -> Layout {
    match shape {
        Shape::Columns => {
            let columns = Column::infer([&row("counter", 0, "first").record]);
            Layout::plain().with_columns(columns.expect("columns"))
        }
        _ => Layout::plain(),
    }
}

/// Eight writers over two handles.
async fn handles(subject: Arc<Subject>) -> Outcome {
    for client in clients(subject.driver()) {
        let (two, folder) = subject.several(2, client).await?;
        if !two[0].abilities().conditional {
            return Ok(());
        }
        two[0].prepare(&layout(subject.shape())).await?;
        let eight: Vec<Arc<dyn Store>> = two.iter().cycle().take(8).cloned().collect();
        let took = increments(&eight, total()).await?;
        println!("{} {client}: {} increments in {took:.1?}", subject.name, total());
        two[0].drop_table().await?;
        drop(folder);
    }
    Ok(())
}

#[test]
fn handles_that_share_nothing_count_together() {
    places::each(Wrap::Bare, handles);
}

/// What names the place to a process that is to count, too.
const PLACE: &str = "STEELYARD_TEST_COUNTER";
/// How often each does.
const EACH: usize = 50;

async fn count(url: &str) -> Outcome {
    let place = store::open(url).await?;
    for _ in 0..EACH {
        increment(&**place.store(), &Key::new("counter")?).await?;
    }
    Ok(())
}

/// Several processes on one file.
async fn processes(url: &str, shape: Shape) -> Outcome {
    const TEST: &str = "stores::conditional::processes_count_together";
    let place = store::open(url).await?;
    place.prepare(&layout(shape)).await?;
    place.put(&[row("counter", 0, "first")]).await?;
    let children: Vec<_> = (0..3)
        .map(|_| {
            let url = url.to_owned();
            thread::spawn(move || {
                let mut child = Command::new(std::env::current_exe().expect("this program"));
                child.args([TEST, "--exact", "--nocapture"]).env(PLACE, url).output()
            })
        })
        .collect();
    for child in children {
        let said = child.join().expect("no panic").map_err(Fault::new)?;
        let text = [said.stdout, said.stderr].concat();
        ensure!(said.status.success(), "{}", String::from_utf8_lossy(&text));
    }
    let found = place.get(&[Key::new("counter")?]).await?.remove(0);
    let n = found.as_ref().and_then(|found| found.get("n").cloned());
    ensure!(n == Some(steelyard::record::Value::Int(3 * EACH as i64)), "{n:?}");
    Ok(())
}

#[test]
fn processes_count_together() {
    if let Ok(url) = std::env::var(PLACE) {
        return places::run(count(&url)).unwrap();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("db");
    for shape in Shape::ALL {
        let url = format!("sqlite:{}?table={shape}&layout={shape}", file.display());
        if let Err(fault) = places::run(processes(&url, shape)) {
            panic!("{shape}: {fault:?}");
        }
    }
}
