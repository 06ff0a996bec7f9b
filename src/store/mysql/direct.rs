//! Statements over lines: a statement is prepared once on each, and then is one packet there and its
//! answer back.
//!
//! What packets hold is read and written by the client's own crate, `mysql_common`; here is the order
//! they come in: <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_util::FutureExt;
use mysql_async::{Column, Opts, Row, Value};
use mysql_common::{
    constants::CapabilityFlags as Can,
    io::ParseBuf,
    packets::{ComStmtExecuteRequestBuilder, ErrPacket},
    proto::{Binary, MySerialize},
    row::RowDeserializer,
    value::ServerSide,
};

use super::{login, pool::error};
use crate::{
    Error, ErrorKind, Result,
    store::line::{Address, Limits, Line, Lines, Stream, broken},
};

/// How many statements a line keeps prepared before it forgets them all.
const PREPARED: usize = 64;
/// A packet of this length goes on in the next.
const LONG: usize = 0xff_ffff;
/// What is larger than this, in bytes, is for the client to send in pieces.
pub const LARGE: usize = 8 << 20;

/// Lines to one server.
pub struct Direct {
    lines: Lines<Prepared>,
    limits: Limits,
    options: Opts,
    address: Address,
    /// The server wants to be logged in to in a way that only the client knows.
    unfit: AtomicBool,
}

/// The statements a line knows.
type Prepared = Vec<Statement>;

struct Statement {
    text: String,
    id: u32,
    /// The columns of its last answer, as they came and as they were read.
    came: Vec<u8>,
    columns: Arc<[Column]>,
}

/// What a statement did.
#[derive(Debug)]
pub struct Done {
    pub rows: Vec<Row>,
    pub touched: u64,
}

impl Direct {
    /// Lines as the client would make connections. None is made yet.
    pub fn new(options: &Opts, limits: Limits) -> Direct {
        let address = match options.socket() {
            Some(path) => Address::Unix(path.into()),
            None => Address::Tcp(options.ip_or_hostname().to_owned(), options.tcp_port()),
        };
        let (lines, options) = (Lines::new(limits), options.clone());
        Direct { lines, limits, options, address, unfit: AtomicBool::new(false) }
    }

    async fn connect(&self) -> Result<(Line, Prepared)> {
        let stream = Stream::connect(&self.address).await.map_err(broken)?;
        let mut line = Line::new(stream)?;
        let limit = self.limits.connect;
        if let Err(e) = login::login(&mut line, &self.options, limit).await {
            if e.kind() == ErrorKind::Unsupported && e.context() != login::LATER {
                self.unfit.store(true, Ordering::Relaxed);
            }
            return Err(e);
        }
        for statement in self.options.setup() {
            packet(line.out(), 0, |out| {
                out.push(0x03);
                out.extend(statement.as_bytes());
            });
            let mut end = End::new(Kind::One);
            let answer = line.ask("a login", limit, |bytes| end.find(bytes)).await?;
            refused(Packets(answer).next().unwrap_or_default())?;
        }
        Ok((line, Vec::new()))
    }

    /// Does a statement; none where that is for the client to do.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub async fn run(&self, what: &str, statement: &str, values: &[Value]) -> Option<Result<Done>> {
        if self.unfit.load(Ordering::Relaxed) {
            return None;
        }
        let mut lease = match self.lines.lease(async || self.connect().await).await {
            Ok(lease) => lease,
            Err(e) if e.kind() == ErrorKind::Unsupported => return None,
            Err(e) => return Some(Err(e)),
        };
        let (line, prepared) = lease.line();
        let done = self.say(line, prepared, what, statement, values).await;
        let of_server = |e: &Error| match std::error::Error::source(e) {
            // What is prepared is so no longer, or the server hangs up.
            Some(e) => matches!(
                e.downcast_ref(),
                Some(mysql_async::Error::Server(e)) if ![1153, 1243, 1615].contains(&e.code)
            ),
            None => false,
        };
        match &done {
            Ok(_) => lease.give_back(),
            Err(e) if of_server(e) => lease.give_back(),
            // The others may be as broken.
            Err(_) => self.lines.forget(),
        }
        Some(done)
    }

    async fn say(
        &self,
        line: &mut Line,
        prepared: &mut Prepared,
        what: &str,
        text: &str,
        values: &[Value],
    ) -> Result<Done> {
        let limit = self.limits.operation;
        let known = prepared.iter().position(|known| known.text == text);
        let place = match known {
            Some(place) => place,
            // Apart, so that what is usual stays small.
            None => self.prepare(line, prepared, what, text).boxed().await?,
        };
        let known = &mut prepared[place];
        let (request, _) = ComStmtExecuteRequestBuilder::new(known.id).build(values);
        packet(line.out(), 0, |out| request.serialize(out));
        let mut end = End::new(Kind::Rows);
        let answer = line.ask(what, limit, |bytes| end.find(bytes)).await?;
        known.read(answer)
    }

    /// Prepares a statement, and says where it is.
    async fn prepare(
        &self,
        line: &mut Line,
        prepared: &mut Prepared,
        what: &str,
        text: &str,
    ) -> Result<usize> {
        if prepared.len() >= PREPARED {
            for statement in prepared.drain(..) {
                // To this there is no answer.
                packet(line.out(), 0, |out| {
                    out.push(0x19);
                    out.extend(statement.id.to_le_bytes());
                });
            }
        }
        packet(line.out(), 0, |out| {
            out.push(0x16);
            out.extend(text.as_bytes());
        });
        let mut end = End::new(Kind::Prepared);
        let answer = line.ask(what, self.limits.operation, |bytes| end.find(bytes)).await?;
        let first = Packets(answer).next().unwrap_or_default();
        refused(first)?;
        let id = first.get(1..).and_then(<[u8]>::first_chunk).ok_or_else(wrong)?;
        prepared.push(Statement {
            text: text.to_owned(),
            id: u32::from_le_bytes(*id),
            came: Vec::new(),
            columns: Arc::new([]),
        });
        Ok(prepared.len() - 1)
    }
}

impl Statement {
    /// What an answer to it says.
    fn read(&mut self, answer: &[u8]) -> Result<Done> {
        let mut packets = Packets(answer);
        let first = packets.next().unwrap_or_default();
        refused(first)?;
        if let Some((0, rest)) = first.split_first() {
            let touched = ParseBuf(rest).checked_eat_lenenc_int().ok_or_else(wrong)?;
            return Ok(Done { rows: Vec::new(), touched });
        }
        let count = ParseBuf(first).checked_eat_lenenc_int().ok_or_else(wrong)?;
        let before = packets.0;
        let columns = packets.by_ref().take(count as usize).count();
        let came = &before[..before.len() - packets.0.len()];
        if came != self.came || columns != self.columns.len() {
            let read = |column| ParseBuf(column).parse::<Column>(()).map_err(|_| wrong());
            self.columns = Packets(came).map(read).collect::<Result<_>>()?;
            self.came = came.to_vec();
        }
        let mut rows = Vec::new();
        loop {
            let (packet, whole);
            (packet, packets.0) = match long(packets.0) {
                Some((long, rest)) => {
                    whole = long;
                    (&*whole, rest)
                }
                None => {
                    let packet = packets.next().ok_or_else(wrong)?;
                    (packet, packets.0)
                }
            };
            match packet.first() {
                Some(0) => {
                    let row = ParseBuf(packet)
                        .parse::<RowDeserializer<ServerSide, Binary>>(self.columns.clone());
                    rows.push(row.map_err(|_| wrong())?.into());
                }
                _ => {
                    refused(packet)?;
                    return Ok(Done { rows, touched: 0 });
                }
            }
        }
    }
}

/// Appends a packet.
pub fn packet(out: &mut Vec<u8>, number: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend([0, 0, 0, number]);
    body(out);
    let [a, b, c, ..] = (out.len() - at - 4).to_le_bytes();
    out[at..at + 3].copy_from_slice(&[a, b, c]);
}

/// What a server says that refuses, as an error.
pub fn refused(packet: &[u8]) -> Result<()> {
    if packet.first() != Some(&0xff) {
        return Ok(());
    }
    // Before it knows who calls, it says no state.
    let knows = if packet.get(3) == Some(&b'#') { Can::CLIENT_PROTOCOL_41 } else { Can::empty() };
    match ParseBuf(packet).parse::<ErrPacket<'_>>(knows) {
        Ok(ErrPacket::Error(e)) => Err(error(mysql_async::Error::from(e))),
        _ => Err(wrong()),
    }
}

pub fn wrong() -> Error {
    Error::malformed("the server's answer is none of MySQL's")
}

/// The packets of an answer that is whole.
pub struct Packets<'a>(pub &'a [u8]);

impl<'a> Iterator for Packets<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (packet, rest) = first(self.0)?;
        self.0 = rest;
        Some(packet)
    }
}

/// The body of the packet these bytes begin with, and what is behind it.
fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([a, b, c, _], rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes([*a, *b, *c, 0]) as usize)
}

/// Several packets that are one, if these bytes begin so, and what is behind them.
fn long(mut bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut whole: Option<Vec<u8>> = None;
    loop {
        let (part, rest) = first(bytes)?;
        if part.len() < LONG && whole.is_none() {
            return None;
        }
        whole.get_or_insert_default().extend(part);
        bytes = rest;
        if part.len() < LONG {
            return whole.map(|whole| (whole, bytes));
        }
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One packet.
    One,
    /// What a prepared statement is: its number, then its values and columns.
    Prepared,
    /// What a statement did, or columns and rows.
    Rows,
}

/// Finds where an answer ends.
pub struct End {
    kind: Kind,
    at: usize,
    begun: bool,
    /// The last packet goes on.
    goes_on: bool,
    /// Descriptions of columns to come.
    left: u64,
}

impl End {
    pub fn new(kind: Kind) -> End {
        End { kind, at: 0, begun: false, goes_on: false, left: 0 }
    }

    /// The end, if it is there.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed) for what is no answer.
    pub fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        while let Some((packet, _)) = first(&bytes[self.at..]) {
            self.at += packet.len() + 4;
            let continued = std::mem::replace(&mut self.goes_on, packet.len() == LONG);
            if !continued && self.ends(packet)? && !self.goes_on {
                return Ok(Some(self.at));
            }
        }
        Ok(None)
    }

    fn ends(&mut self, packet: &[u8]) -> Result<bool> {
        let tag = packet.first().ok_or_else(wrong)?;
        if *tag == 0xff && self.left == 0 {
            return Ok(true);
        }
        if !std::mem::replace(&mut self.begun, true) {
            self.left = match (self.kind, packet) {
                (Kind::One, _) | (Kind::Rows, [0, ..]) => return Ok(true),
                (Kind::Prepared, [0, _, _, _, _, a, b, c, d, ..]) => {
                    u64::from(u16::from_le_bytes([*a, *b]))
                        + u64::from(u16::from_le_bytes([*c, *d]))
                }
                (Kind::Rows, [1..=0xfa | 0xfc.., ..]) => {
                    ParseBuf(packet).checked_eat_lenenc_int().ok_or_else(wrong)?
                }
                _ => return Err(wrong()),
            };
            return Ok(self.left == 0);
        }
        if self.left > 0 {
            self.left -= 1;
            return Ok(self.left == 0 && self.kind == Kind::Prepared);
        }
        Ok(*tag == 0xfe)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::nonsense::{near, shown};

    fn answer(packets: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        packets.iter().for_each(|body| packet(&mut bytes, 1, |out| out.extend(*body)));
        bytes
    }

    /// A column of bytes.
    const COLUMN: &[u8] = b"\x03def\0\0\0\x01v\x01v\x0c\x3f\0\xff\xff\0\0\xfc\0\0\0\0\0";
    const END: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];

    fn statement() -> Statement {
        Statement { text: String::new(), id: 1, came: Vec::new(), columns: Arc::new([]) }
    }

    #[test]
    fn ends_are_found_wherever_an_answer_is_cut() {
        let refusal = b"\xff\x15\x04#28000no";
        for (kind, packets) in [
            (Kind::One, &[&[0, 0, 0, 2, 0, 0, 0][..]][..]),
            (Kind::One, &[&refusal[..]]),
            (Kind::Prepared, &[&[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], COLUMN, COLUMN]),
            (Kind::Prepared, &[&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]),
            (Kind::Rows, &[&[0, 3, 0, 2, 0, 0, 0]]),
            (Kind::Rows, &[&[1], COLUMN, b"\0\0\x01a", b"\0\0\x01b", END]),
            (Kind::Rows, &[&[1], COLUMN, &refusal[..]]),
        ] {
            let bytes = answer(packets);
            let mut end = End::new(kind);
            for cut in 0..bytes.len() {
                assert_eq!(end.find(&bytes[..cut]).unwrap(), None, "{kind:?} {cut}");
            }
            assert_eq!(end.find(&bytes).unwrap(), Some(bytes.len()), "{kind:?}");
        }
    }

    #[test]
    fn rows_are_read_and_long_ones_are_joined() {
        let mut statement = statement();
        let done = statement.read(&answer(&[&[0, 3, 0, 2, 0, 0, 0]])).unwrap();
        assert_eq!((done.touched, done.rows.len()), (3, 0));
        let mut row = b"\0\0\xfe\0\0\0\x01\0\0\0\0".to_vec();
        row.resize(row.len() + (1 << 24), b'x');
        let bytes = [
            answer(&[&[1], COLUMN, b"\0\0\x01a", &row[..LONG], &row[LONG..]]),
            answer(&[b"\0\x04", END]),
        ]
        .concat();
        for _ in 0..2 {
            assert_eq!(End::new(Kind::Rows).find(&bytes).unwrap(), Some(bytes.len()));
            let done = statement.read(&bytes).unwrap();
            let length = |row: &Row| match row.as_ref(0) {
                Some(Value::Bytes(bytes)) => bytes.len(),
                _ => 0,
            };
            let lengths: Vec<_> = done.rows.iter().map(length).collect();
            assert_eq!(lengths, [1, 1 << 24, 0]);
        }
    }

    #[test]
    fn refusals_are_errors_of_the_server() {
        let refused = |bytes: &[u8]| refused(bytes).unwrap_err();
        let taken = refused(b"\xff\x26\x04#23000Duplicate entry");
        assert_eq!(taken.kind(), ErrorKind::Conflict, "{taken}");
        let full = refused(b"\xff\x10\x04Too many connections");
        assert_eq!(full.kind(), ErrorKind::Unavailable, "{full}");
        let error = statement().read(&answer(&[&[1], COLUMN, b"\xff\x15\x04#28000no"]));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Denied);
    }

    #[test]
    fn what_is_no_answer_is_malformed() {
        for (kind, packets) in [
            (Kind::Rows, &[&b""[..]][..]),
            (Kind::Rows, &[b"\xfbfile"]),
            (Kind::Prepared, &[&[0, 1]]),
            (Kind::Prepared, &[&[3]]),
        ] {
            let error = End::new(kind).find(&answer(packets)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed);
        }
        for packets in [&[&[1][..], b"\x03def"][..], &[&[1], COLUMN, b"\0\0\x09a"], &[&[1]]] {
            let error = statement().read(&answer(packets)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed);
        }
    }

    fn answers() -> Vec<Vec<u8>> {
        vec![
            answer(&[&[0, 3, 0, 2, 0, 0, 0]]),
            answer(&[&[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], COLUMN, COLUMN]),
            answer(&[&[1], COLUMN, b"\0\0\x01a", b"\0\x04", END]),
            answer(&[&[1], COLUMN, b"\xff\x15\x04#28000no"]),
        ]
    }

    proptest! {
        #[test]
        fn nonsense_is_refused_or_read(bytes in near(answers()), cut: prop::sample::Index) {
            for kind in [Kind::One, Kind::Prepared, Kind::Rows] {
                let mut end = End::new(kind);
                let read = |all: &[u8]| match kind {
                    Kind::Rows => drop(statement().read(all)),
                    _ => drop(refused(Packets(all).next().unwrap_or_default())),
                };
                shown(&bytes, cut, |bytes| end.find(bytes), read)?;
            }
        }
    }
}
