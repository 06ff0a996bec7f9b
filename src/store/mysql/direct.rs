//! Statements over lines: a statement is prepared once on each, and then is one packet there and its
//! answer back.
//!
//! What packets hold is read and written by the client's own crate, `mysql_common`; here is the order
//! they come in: <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>.

use std::sync::Arc;

use futures_util::FutureExt;
use mysql_async::{Column, Opts, Row, Value};
use mysql_common::{
    constants::CapabilityFlags as Can,
    io::ParseBuf,
    packets::{ComStmtExecuteRequestBuilder, ComStmtSendLongData, ErrPacket},
    proto::{Binary, MyDeserialize, MySerialize, Text},
    row::RowDeserializer,
    value::ServerSide,
};
use rustls::ClientConfig;

use super::{
    login::{self, Way},
    pool::error,
    session::{Own, is_of_server},
};
use crate::{
    Error, Result,
    store::line::{Address, Lease, Limits, Line, Lines, Stream, broken},
};

/// How many statements a line keeps prepared before it forgets them all.
const PREPARED: usize = 64;
/// A packet of this length goes on in the next.
const LONG: usize = 0xff_ffff;
/// How much of a value is sent at once, where a statement is too long for a packet.
const PIECE: usize = 4 << 20;

/// Lines to one server.
pub struct Direct {
    lines: Lines<Prepared>,
    limits: Limits,
    options: Opts,
    address: Address,
    /// How it is encrypted.
    tls: Option<Arc<ClientConfig>>,
}

/// The statements a line knows.
pub type Prepared = Vec<Statement>;

#[derive(Default)]
pub struct Statement {
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
    pub warnings: u16,
}

impl Direct {
    /// Lines as the crate would make connections. None is made yet.
    pub fn new(options: &Opts, tls: Option<Arc<ClientConfig>>, limits: Limits) -> Direct {
        let address = match options.socket() {
            Some(path) => Address::Unix(path.into()),
            None => Address::Tcp(options.ip_or_hostname().to_owned(), options.tcp_port()),
        };
        Direct { lines: Lines::new(limits), limits, options: options.clone(), address, tls }
    }

    async fn connect(&self) -> Result<(Line, Prepared)> {
        let stream = Stream::connect(&self.address).await.map_err(broken)?;
        let mut line = Line::new(stream)?;
        let limit = self.limits.connect;
        let way = match (&self.tls, &self.address) {
            (Some(config), Address::Tcp(host, _)) => Way::Tls(config, host),
            (_, Address::Unix(_)) => Way::Socket,
            (None, Address::Tcp(..)) => Way::Plain,
        };
        login::login(&mut line, &self.options, way, limit).await?;
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

    async fn lease(&self) -> Result<Lease<'_, Prepared>> {
        self.lines.lease(async || self.connect().await).await
    }

    /// A line for several statements.
    ///
    /// # Errors
    /// Of the connection.
    pub async fn session(&self) -> Result<Own<'_>> {
        Ok(Own::new(self, self.lease().await?))
    }

    /// Does a statement.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub async fn run(&self, what: &str, statement: &str, values: &[Value]) -> Result<Done> {
        let mut lease = self.lease().await?;
        let (line, prepared) = lease.line();
        let done = self.say(line, prepared, what, statement, values).await;
        match &done {
            Ok(_) => lease.give_back(),
            Err(e) if is_of_server(e) => lease.give_back(),
            // The others may be as broken.
            Err(_) => self.lines.forget(),
        }
        done
    }

    /// Does a statement that is not prepared.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub async fn ask(&self, line: &mut Line, text: &str) -> Result<Done> {
        query(line, text);
        let mut end = End::new(Kind::Rows);
        let limit = self.limits.operation;
        let answer = line.ask("a statement", limit, |bytes| end.find(bytes)).await?;
        Statement::default().read::<RowDeserializer<ServerSide, Text>>(answer)
    }

    /// Does a `LOAD DATA LOCAL` whose file is these bytes.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub async fn load(&self, line: &mut Line, text: &str, file: &[Vec<u8>]) -> Result<Done> {
        query(line, text);
        let limit = self.limits.operation;
        let mut end = End::new(Kind::One);
        let answer = line.ask("a load", limit, |bytes| end.find(bytes)).await?;
        let (mut number, asked) = (number(answer), Packets(answer).next().unwrap_or_default());
        refused(asked)?;
        if asked.first() != Some(&0xfb) {
            return Err(wrong());
        }
        // The file, and its end.
        for part in file.iter().map(Vec::as_slice).filter(|part| !part.is_empty()).chain([&[][..]])
        {
            number = number.wrapping_add(1);
            packet(line.out(), number, |out| out.extend(part));
        }
        let mut end = End::new(Kind::One);
        let answer = line.ask("a load", limit, |bytes| end.find(bytes)).await?;
        Statement::default().read::<RowDeserializer<ServerSide, Text>>(answer)
    }

    /// Does a statement on a line, where it is prepared if it was not yet.
    pub async fn say(
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
        let (request, in_pieces) = ComStmtExecuteRequestBuilder::new(known.id).build(values);
        if in_pieces {
            pieces(line.out(), known.id, values);
        }
        packet(line.out(), 0, |out| request.serialize(out));
        let mut end = End::new(Kind::Rows);
        let answer = line.ask(what, limit, |bytes| end.find(bytes)).await?;
        known.read::<RowDeserializer<ServerSide, Binary>>(answer)
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
        let id = u32::from_le_bytes(*id);
        prepared.push(Statement { text: text.to_owned(), id, ..Statement::default() });
        Ok(prepared.len() - 1)
    }
}

impl Statement {
    /// What an answer to it says, whose rows are of the binary protocol or of the text one.
    fn read<R>(&mut self, answer: &[u8]) -> Result<Done>
    where
        R: for<'a> MyDeserialize<'a, Ctx = Arc<[Column]>> + Into<Row>,
    {
        let mut packets = Packets(answer);
        let first = packets.next().unwrap_or_default();
        refused(first)?;
        if let Some((0, rest)) = first.split_first() {
            let mut rest = ParseBuf(rest);
            let touched = rest.checked_eat_lenenc_int().ok_or_else(wrong)?;
            // The last key that was made, and the server's state.
            rest.checked_eat_lenenc_int();
            rest.checked_eat_u16_le();
            let warnings = rest.checked_eat_u16_le().unwrap_or_default();
            return Ok(Done { rows: Vec::new(), touched, warnings });
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
            refused(packet)?;
            match packet.first() {
                Some(0xfe) if packet.len() < LONG => {
                    return Ok(Done { rows, touched: 0, warnings: 0 });
                }
                _ => {
                    let row = ParseBuf(packet).parse::<R>(self.columns.clone());
                    rows.push(row.map_err(|_| wrong())?.into());
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
    let length = out.len() - at - 4;
    if length >= LONG {
        return packets(out, at, number);
    }
    let [a, b, c, ..] = length.to_le_bytes();
    out[at..at + 3].copy_from_slice(&[a, b, c]);
}

/// Makes several packets of one that is too long; the last of them is shorter than the others.
fn packets(out: &mut Vec<u8>, at: usize, number: u8) {
    let body = out.split_off(at + 4);
    out.truncate(at);
    let last = body.len().is_multiple_of(LONG).then_some(&[][..]);
    for (i, part) in body.chunks(LONG).chain(last).enumerate() {
        let [a, b, c, ..] = part.len().to_le_bytes();
        out.extend([a, b, c, number.wrapping_add(i as u8)]);
        out.extend(part);
    }
}

/// Appends the values of a statement that is too long with them; to this there is no answer.
fn pieces(out: &mut Vec<u8>, id: u32, values: &[Value]) {
    for (i, value) in values.iter().enumerate() {
        let Value::Bytes(bytes) = value else { continue };
        let nothing = bytes.is_empty().then_some(&[][..]);
        for piece in bytes.chunks(PIECE).chain(nothing) {
            let piece = ComStmtSendLongData::new(id, i as u16, piece);
            packet(out, 0, |out| piece.serialize(out));
        }
    }
}

/// Appends a statement as text.
fn query(line: &mut Line, text: &str) {
    packet(line.out(), 0, |out| {
        out.push(0x03);
        out.extend(text.as_bytes());
    });
}

/// The number of the first packet of an answer.
pub fn number(answer: &[u8]) -> u8 {
    answer.get(3).copied().unwrap_or_default()
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
    use crate::{
        ErrorKind,
        store::nonsense::{near, shown},
    };

    fn answer(packets: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        packets.iter().for_each(|body| packet(&mut bytes, 1, |out| out.extend(*body)));
        bytes
    }

    /// A column of bytes.
    const COLUMN: &[u8] = b"\x03def\0\0\0\x01v\x01v\x0c\x3f\0\xff\xff\0\0\xfc\0\0\0\0\0";
    const END: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];

    fn read(statement: &mut Statement, answer: &[u8]) -> Result<Done> {
        statement.read::<RowDeserializer<ServerSide, Binary>>(answer)
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
        let mut statement = Statement::default();
        let done = read(&mut statement, &answer(&[&[0, 3, 0, 2, 0, 0, 0]])).unwrap();
        assert_eq!((done.touched, done.rows.len()), (3, 0));
        let mut row = b"\0\0\xfe\0\0\0\x01\0\0\0\0".to_vec();
        row.resize(row.len() + (1 << 24), b'x');
        let bytes =
            [answer(&[&[1], COLUMN, b"\0\0\x01a", &row]), answer(&[b"\0\x04", END])].concat();
        for _ in 0..2 {
            assert_eq!(End::new(Kind::Rows).find(&bytes).unwrap(), Some(bytes.len()));
            let done = read(&mut statement, &bytes).unwrap();
            let length = |row: &Row| match row.as_ref(0) {
                Some(Value::Bytes(bytes)) => bytes.len(),
                _ => 0,
            };
            let lengths: Vec<_> = done.rows.iter().map(length).collect();
            assert_eq!(lengths, [1, 1 << 24, 0]);
        }
    }

    #[test]
    fn long_packets_are_cut_and_joined_again() {
        for length in [LONG - 1, LONG, LONG + 1, 2 * LONG] {
            let body = vec![7; length];
            let mut bytes = b"before".to_vec();
            packet(&mut bytes, 3, |out| out.extend(&body));
            let (whole, rest) = match long(&bytes[6..]) {
                Some(joined) => joined,
                None => {
                    let (one, rest) = first(&bytes[6..]).unwrap();
                    (one.to_vec(), rest)
                }
            };
            assert!(whole == body && rest.is_empty(), "{length}");
            assert_eq!(bytes[9], 3);
        }
    }

    #[test]
    fn rows_of_text_are_read() {
        let warnings = [1, 0xfe, 0, 0, 2, 0, 9, 0];
        let answer = answer(&[&[1], COLUMN, b"\x01a", b"\x00", b"\xfb", &warnings[1..]]);
        let done = Statement::default().read::<RowDeserializer<ServerSide, Text>>(&answer);
        let rows: Vec<_> = done.unwrap().rows.into_iter().map(Row::unwrap).collect();
        let bytes = |bytes: &[u8]| vec![Value::Bytes(bytes.to_vec())];
        assert_eq!(rows, [bytes(b"a"), bytes(b""), vec![Value::NULL]]);
    }

    #[test]
    fn refusals_are_errors_of_the_server() {
        let refused = |bytes: &[u8]| refused(bytes).unwrap_err();
        let taken = refused(b"\xff\x26\x04#23000Duplicate entry");
        assert_eq!(taken.kind(), ErrorKind::Conflict, "{taken}");
        let full = refused(b"\xff\x10\x04Too many connections");
        assert_eq!(full.kind(), ErrorKind::Unavailable, "{full}");
        let error =
            read(&mut Statement::default(), &answer(&[&[1], COLUMN, b"\xff\x15\x04#28000no"]));
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
            let error = read(&mut Statement::default(), &answer(packets)).unwrap_err();
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
                    Kind::Rows => drop(read(&mut Statement::default(), all)),
                    _ => drop(refused(Packets(all).next().unwrap_or_default())),
                };
                shown(&bytes, cut, |bytes| end.find(bytes), read)?;
            }
        }
    }
}
