//! Rows on their way to the server: statements of many rows, with bound values.

use futures_util::FutureExt;
use mysql_async::Value as Cell;

use super::{
    MySql,
    known::{Known, size},
    pool::is_deadlock,
    session::{Session, is_of_server},
};
use crate::{Error, ErrorKind, Result};

/// How many rows a statement has at most. More are hardly quicker, and the server keeps each
/// statement that it prepared.
const ROWS: usize = 256;
/// How many values a prepared statement may have.
const VALUES: usize = 65_535;
/// Bytes of a packet that are kept free for what is not values.
pub const FREE: usize = 8192;
/// How often something is tried that others were in the way of.
const TRIES: usize = 8;

/// What becomes of a row whose key is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Replace,
    Refuse,
}

impl MySql {
    /// Writes rows, all of them or (where the engine can) none. `cells` makes them: what is written
    /// is bound and gone, and may have to be made again.
    pub async fn write(
        &self,
        known: &Known,
        taken: Taken,
        cells: impl Fn() -> Result<Vec<Vec<Cell>>>,
    ) -> Result<()> {
        let mut tries = 0;
        loop {
            let mut rows = cells()?;
            let written = match (rows.len(), taken) {
                (0, _) => return Ok(()),
                (1, Taken::Replace) => {
                    self.pool.run(&known.put_one, rows.swap_remove(0)).await.map(drop)
                }
                // Apart, so that what is usual stays small.
                _ => self.write_many(known, taken, rows).boxed().await,
            };
            tries += 1;
            match written {
                // It was undone as a whole.
                Err(e) if is_deadlock(&e) && tries < TRIES => {}
                Err(e) => return Err(self.half_done(e)),
                Ok(()) => return Ok(()),
            }
        }
    }

    async fn write_many(
        &self,
        known: &Known,
        taken: Taken,
        mut rows: Vec<Vec<Cell>>,
    ) -> Result<()> {
        // In the order of keys, so that two who write the same rows wait for one another in a line,
        // not in a circle. Of rows with the same key the last stays the last.
        rows.sort_by(|a, b| order(&a[0], &b[0]));
        let most = self.pool.server.packet.saturating_sub(FREE);
        let mut statements = Vec::new();
        let mut rows = rows.into_iter();
        while !rows.as_slice().is_empty() {
            let chunk = chunk(rows.as_slice(), known.width(), most);
            let values: Vec<Cell> = rows.by_ref().take(chunk).flatten().collect();
            statements.push((insert(known, chunk, taken), values));
        }
        if statements.len() == 1
            && let Some((statement, values)) = statements.pop()
        {
            return self.pool.run(&statement, values).await.map(drop);
        }
        let in_one = self.pool.within("a write", async {
            let mut session = self.pool.session().await?;
            begin(&mut session).await?;
            for (statement, values) in statements {
                if let Err(e) = session.exec(&statement, values).await {
                    return Err(undo(session, e).await);
                }
            }
            commit(session).await
        });
        in_one.await
    }

    /// Writes rows by a statement each, all in one transaction.
    pub async fn write_each(&self, known: &Known, rows: Vec<Vec<Cell>>) -> Result<()> {
        let mut session = self.pool.session().await?;
        begin(&mut session).await?;
        for row in rows {
            let written = self.pool.within("a write", session.exec(&known.put_one, row)).await;
            if let Err(e) = written {
                return Err(undo(session, e).await);
            }
        }
        self.pool.within("a commit", commit(session)).await
    }

    /// The error of a write, saying so where it may have been half done.
    pub fn half_done(&self, e: Error) -> Error {
        let engine = &self.table.facts.engine;
        if engine.atomic || !matches!(e.kind(), ErrorKind::Conflict | ErrorKind::Mismatch) {
            return e;
        }
        let what = format!(
            "{}; engine {} has no transactions, so part of the batch is written",
            e.context(),
            engine.name
        );
        Error::new(e.kind(), what).with_source(e)
    }
}

/// The order of keys, as far as it matters here.
fn order(a: &Cell, b: &Cell) -> std::cmp::Ordering {
    match (a, b) {
        (Cell::Bytes(a), Cell::Bytes(b)) => a.cmp(b),
        (Cell::Int(a), Cell::Int(b)) => a.cmp(b),
        (Cell::UInt(a), Cell::UInt(b)) => a.cmp(b),
        (Cell::Int(_), _) => std::cmp::Ordering::Less,
        (_, Cell::Int(_)) => std::cmp::Ordering::Greater,
        _ => std::cmp::Ordering::Equal,
    }
}

/// How many of these rows one statement takes: a power of two, so that there are few statements.
fn chunk(rows: &[Vec<Cell>], width: usize, most: usize) -> usize {
    let limit = rows.len().min(ROWS).min(VALUES / width).max(1);
    let mut bytes = 0;
    let fit = rows.iter().take(limit).take_while(|row| {
        bytes += row.iter().map(size).sum::<usize>();
        bytes <= most
    });
    1 << fit.count().max(1).ilog2()
}

/// The statement for so many rows.
pub fn insert(known: &Known, rows: usize, taken: Taken) -> String {
    let one = format!("({})", vec!["?"; known.width()].join(","));
    let update = match taken {
        Taken::Replace => known.update(),
        Taken::Refuse => String::new(),
    };
    let (name, columns) = (known.name(), known.written());
    format!("INSERT INTO {name} ({columns}) VALUES {}{update}", vec![one; rows].join(","))
}

/// Begins a transaction.
pub async fn begin(session: &mut Session<'_>) -> Result<()> {
    session.query("START TRANSACTION").await.map(drop)
}

/// Ends a transaction well.
pub async fn commit(mut session: Session<'_>) -> Result<()> {
    let done = session.query("COMMIT").await;
    session.settle(done).map(drop)
}

/// Ends a transaction in which there was an error.
pub async fn undo(mut session: Session<'_>, e: Error) -> Error {
    // Where this cannot be said either, the connection is closed, which undoes it, too.
    if is_of_server(&e) && session.query("ROLLBACK").await.is_ok() {
        session.done();
    }
    e
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_few_sizes_and_fit_into_a_packet() {
        let row = |len: usize| vec![Cell::Bytes(vec![0; len]); 2];
        let rows: Vec<_> = (0..1000).map(|_| row(10)).collect();
        assert_eq!(chunk(&rows, 2, 1 << 20), 256);
        assert_eq!(chunk(&rows[..255], 2, 1 << 20), 128);
        assert_eq!(chunk(&rows[..1], 2, 1 << 20), 1);
        assert_eq!(chunk(&rows, 1000, 1 << 20), 64, "65,535 values");
        assert_eq!(chunk(&rows, 2, 400), 8, "38 bytes each");
        assert_eq!(chunk(&[row(500), row(500)], 2, 400), 1);
    }

    #[test]
    fn keys_are_ordered() {
        let text = |text: &str| Cell::Bytes(text.into());
        let mut keys = [text("b"), Cell::Int(2), text("a"), Cell::Int(-1)];
        keys.sort_by(order);
        assert_eq!(keys, [Cell::Int(-1), Cell::Int(2), text("a"), text("b")]);
    }
}
