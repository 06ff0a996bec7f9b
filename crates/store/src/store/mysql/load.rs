//! Many new rows at once, as a file that is nowhere but in memory (`LOAD DATA LOCAL`).
//!
//! The server makes warnings of what would be errors otherwise: a key that is taken, a value that
//! does not fit. So everything is counted, and what does not add up is undone.

use std::sync::atomic::Ordering;

use mysql_async::{Row as Cells, Value as Cell};

use super::{
    MySql,
    pool::{code, kind_of},
    schema::{Schema, Writes},
    write::{Taken, begin, commit, undo},
};
use crate::{Error, ErrorKind, Result, store::Shape};

/// With fewer rows an ordinary statement is quicker, as it asks the server once, not four times.
const FEW: usize = 64;
/// How much is sent in one packet, in bytes.
const PACKET: usize = 256 << 10;
/// What a server says that does not take files of clients: MySQL 5, MySQL 8, MariaDB.
const FORBIDDEN: [u16; 3] = [1148, 3948, 4166];

impl MySql {
    /// Writes rows whose keys are new. `cells` makes one of them after the other.
    pub(super) async fn load_cells(
        &self,
        known: &Schema,
        count: usize,
        cells: impl Fn(usize) -> Result<Vec<Cell>>,
    ) -> Result<()> {
        if self.loads_by_file(known, count) {
            let size = PACKET.min(self.pool.server.packet / 2);
            let mut packets = Packets { full: Vec::new(), last: Vec::new(), size };
            // Checked as a whole before anything is sent.
            for i in 0..count {
                packets.row(&cells(i)?);
            }
            match self.load_file(known, count, packets).await {
                Err(e) if is_forbidden(&e) => {
                    self.pool.server.takes_files.store(false, Ordering::Relaxed);
                }
                // Statements of rows tell whose it is.
                Err(e) if is_of_row(&e) && self.table.facts.engine.atomic => {}
                Err(e) => return Err(self.half_done(e)),
                Ok(()) => return Ok(()),
            }
        }
        self.write(known, Taken::Refuse, || (0..count).map(&cells).collect()).await
    }

    /// Whether so many rows are sent as a file.
    pub(super) fn loads_by_file(&self, known: &Schema, count: usize) -> bool {
        // What cannot be written is refused elsewhere.
        let can_write = !matches!(known.writes, Writes::Never(_));
        count >= FEW && known.by_file && can_write && self.pool.takes_files()
    }

    async fn load_file(&self, known: &Schema, count: usize, packets: Packets) -> Result<()> {
        let statement = statement(known);
        let packets = packets.finish();
        self.pool
            .within("a load", async {
                let mut session = self.pool.session().await?;
                begin(&mut session).await?;
                let (kept, warnings) = match session.load(&statement, packets).await {
                    Ok(loaded) => loaded,
                    Err(e) => return Err(undo(session, e).await),
                };
                if kept == count as u64 && warnings == 0 {
                    return commit(session).await;
                }
                let warnings = session.query("SHOW WARNINGS").await?;
                let wrong = warnings.into_iter().find_map(trouble);
                if wrong.is_none() && kept == count as u64 {
                    return commit(session).await;
                }
                let undone = session.query("ROLLBACK").await;
                session.settle(undone)?;
                let (code, message) = wrong.unwrap_or((0, "no reason given".into()));
                let kind = match kind_of(code) {
                    ErrorKind::Io => ErrorKind::Mismatch,
                    kind => kind,
                };
                let what = format!("only {kept} of {count} records would be stored: {message}");
                Err(Error::new(kind, what))
            })
            .await
    }
}

/// The statement that takes a file of rows.
pub(super) fn statement(known: &Schema) -> String {
    // Without a character set the server takes bytes as they are. MySQL's JSON wants one.
    let json = known.fields.shape == Shape::Document && !known.dialect.maria;
    let characters = if json { "utf8mb4" } else { "binary" };
    format!(
        "LOAD DATA LOCAL INFILE 'steelyard' INTO TABLE {} CHARACTER SET {characters} FIELDS \
         TERMINATED BY '\\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' ({})",
        known.name(),
        known.written()
    )
}

/// A warning that says that something is not as it was sent.
fn trouble(warning: Cells) -> Option<(u16, String)> {
    /// Something was cut, which a note says of decimals and dates.
    const CUT: u16 = 1265;
    let (level, code, message): (String, u16, String) = mysql_async::from_row_opt(warning).ok()?;
    (level != "Note" || code == CUT).then_some((code, message))
}

/// Whether it is about a row, by its values or its key; it was undone then.
fn is_of_row(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Invalid | ErrorKind::TooLarge | ErrorKind::Conflict)
}

fn is_forbidden(e: &Error) -> bool {
    code(e).is_some_and(|code| FORBIDDEN.contains(&code))
}

/// Lines of a file, in packets of about a size.
struct Packets {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    size: usize,
}

impl Packets {
    fn row(&mut self, cells: &[Cell]) {
        if self.last.len() >= self.size {
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(self.size + 4096)));
        }
        for (i, cell) in cells.iter().enumerate() {
            if i > 0 {
                self.last.push(b'\t');
            }
            field(cell, &mut self.last);
        }
        self.last.push(b'\n');
    }

    /// The packets; none is larger than it may be, though a row may be.
    fn finish(mut self) -> Vec<Vec<u8>> {
        self.full.push(self.last);
        let size = self.size * 2;
        if self.full.iter().any(|packet| packet.len() > size) {
            self.full = self.full.iter().flat_map(|p| p.chunks(size).map(<[u8]>::to_vec)).collect();
        }
        self.full
    }
}

/// Appends a cell as a field of a line.
fn field(cell: &Cell, out: &mut Vec<u8>) {
    match cell {
        Cell::NULL => out.extend_from_slice(b"\\N"),
        Cell::Bytes(bytes) => escape(bytes, out),
        Cell::Int(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Cell::UInt(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Cell::Float(v) => out.extend_from_slice(format!("{v:e}").as_bytes()),
        Cell::Double(v) => out.extend_from_slice(format!("{v:e}").as_bytes()),
        Cell::Date(year, month, day, hour, minute, second, micros) => out.extend_from_slice(
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
                .as_bytes(),
        ),
        // No value of ours becomes this.
        Cell::Time(..) => out.extend_from_slice(b"\\N"),
    }
}

/// Appends bytes so that none of them ends a field or a line.
fn escape(mut bytes: &[u8], out: &mut Vec<u8>) {
    // Of these few only, which are rare: the rest is copied as a whole.
    while let Some(at) = memchr::memchr3(b'\\', b'\t', b'\n', bytes) {
        nuls(&bytes[..at], out);
        out.extend_from_slice(match bytes[at] {
            b'\\' => b"\\\\",
            b'\t' => b"\\t",
            _ => b"\\n",
        });
        bytes = &bytes[at + 1..];
    }
    nuls(bytes, out);
}

fn nuls(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr::memchr(0, bytes) {
        out.extend_from_slice(&bytes[..at]);
        out.extend_from_slice(b"\\0");
        bytes = &bytes[at + 1..];
    }
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_any_bytes() {
        let mut packets = Packets { full: Vec::new(), last: Vec::new(), size: 20 };
        let bytes = |text: &[u8]| Cell::Bytes(text.to_vec());
        packets.row(&[bytes(b"a\tb"), Cell::NULL, Cell::Int(-5), Cell::Double(1e300)]);
        packets.row(&[bytes(b"\\N\n\0\0"), Cell::Date(1000, 1, 2, 3, 4, 5, 6), bytes(b"")]);
        let packets = packets.finish();
        assert_eq!(packets.len(), 2);
        let text = String::from_utf8(packets.concat()).unwrap();
        assert_eq!(text, "a\\tb\t\\N\t-5\t1e300\n\\\\N\\n\\0\\0\t1000-01-02 03:04:05.000006\t\n");
    }

    #[test]
    fn packets_have_their_size() {
        let mut packets = Packets { full: Vec::new(), last: Vec::new(), size: 10 };
        packets.row(&[Cell::Bytes(vec![b'x'; 95])]);
        packets.row(&[Cell::Bytes(vec![b'y'; 3])]);
        let packets = packets.finish();
        assert!(packets.iter().all(|packet| packet.len() <= 20), "{packets:?}");
        assert_eq!(packets.concat().len(), 95 + 3 + 2);
    }
}
