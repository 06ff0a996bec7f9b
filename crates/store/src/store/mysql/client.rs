//! Statements over connections: a statement is prepared once on each, and then is one packet there and its
//! answer back.
//!
//! What packets hold is read and written by the client's own crate, `mysql_common`; here is the order
//! they come in: <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

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
    pool::{address, error},
    session::{Own, is_of_server},
};
use crate::{
    Error, Result,
    store::{
        limits::Limits,
        net::{Address, Connection, Connections, Lease, Opened, SAID, SEVERAL, Stream, too_long},
        pool::Share,
    },
};

/// How many statements a connection keeps prepared before it forgets them all.
const PREPARED: usize = 64;
/// A packet of this length goes on in the next.
const LONG: usize = 0xff_ffff;
/// The largest packet there is, whatever a server says.
const LARGEST: usize = 1 << 30;
/// How much an answer to preparing a statement may have: each of its values and columns is described.
const DESCRIBED: usize = 32 << 20;
/// How many columns a table has at most.
const COLUMNS: u64 = 4096;
/// What a row takes beside its bytes.
const ROW: usize = 64;
/// How much of a value is sent at once, where a statement is too long for a packet.
const PIECE: usize = 4 << 20;

/// Connections to one server.
pub(super) struct OwnClient {
    pub connections: Connections<Prepared>,
    limits: Limits,
    options: Opts,
    address: Address,
    /// How it is encrypted.
    tls: Option<Arc<ClientConfig>>,
    /// How many bytes an answer with rows may have.
    most: AtomicUsize,
}

/// The statements a connection knows, and the database they are asked in.
pub(super) struct Prepared {
    known: Vec<Statement>,
    database: Arc<str>,
}

/// Whose database a connection is asked in.
pub(super) struct Within {
    pub database: Arc<str>,
    /// How many connections it may have at once, where it shares them.
    pub share: Option<Share>,
}

#[derive(Default)]
pub(super) struct Statement {
    text: String,
    /// What it was prepared in. Elsewhere the same text means other tables, to which the server does not change it.
    database: Arc<str>,
    id: u32,
    /// The columns of its last answer, as they came and as they were read.
    came: Vec<u8>,
    columns: Arc<[Column]>,
}

/// What a statement did.
#[derive(Debug)]
pub(super) struct Done {
    pub rows: Vec<Row>,
    pub touched: u64,
    pub warnings: u16,
}

impl OwnClient {
    /// Connections as the crate would make them. None is made yet.
    pub(super) fn new(options: &Opts, tls: Option<Arc<ClientConfig>>, limits: Limits) -> OwnClient {
        let address = address(options);
        let connections = Connections::new(limits, address.to_string());
        let most = AtomicUsize::new(SEVERAL);
        OwnClient { connections, limits, options: options.clone(), address, tls, most }
    }

    /// What one of those who share the connections may have of them at once.
    pub(super) fn share(&self) -> Share {
        Share::of(&self.connections)
    }

    /// Lets answers have as much as the largest packet that the server takes, where that is more than
    /// they may have anyway.
    pub(super) fn expect(&self, packet: usize) {
        let most = SEVERAL.max(packet.min(LARGEST) + (16 << 20));
        self.most.store(most, Ordering::Relaxed);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    async fn connect(&self) -> Result<Opened<Prepared>> {
        let mut connection = Connection::new(Stream::connect(&self.address).await?)?;
        let limit = self.limits.connect;
        let way = match (&self.tls, &self.address) {
            (Some(config), Address::Tcp(host, _)) => Way::Tls(config, host),
            (_, Address::Unix(_)) => Way::Socket,
            (None, Address::Tcp(..)) => Way::Plain,
        };
        login::login(&mut connection, &self.options, way, limit).await?;
        for statement in self.options.setup() {
            packet(connection.out(), 0, |out| {
                out.push(0x03);
                out.extend(statement.as_bytes());
            });
            let mut end = End::new(Kind::One);
            let answer = connection.ask("a login", limit, SAID, |bytes| end.find(bytes)).await?;
            refused(Packets(answer).next().unwrap_or_default())?;
        }
        let database = self.options.db_name().unwrap_or_default().into();
        Ok(Box::new((connection, Prepared { known: Vec::new(), database })))
    }

    /// A connection that is asked in this database.
    async fn lease(&self, within: &Within) -> Result<Lease<'_, Prepared>> {
        let suits = |opened: &Opened<Prepared>| opened.1.database == within.database;
        let connect = async || self.connect().await;
        let mut lease = self.connections.lease_of(within.share.as_ref(), suits, connect).await?;
        if lease.1.database != within.database {
            // Apart, so that what is usual stays small. Closed unless it is done.
            self.change(&mut lease, &within.database).boxed().await?;
        }
        Ok(lease)
    }

    async fn change(&self, lease: &mut Lease<'_, Prepared>, database: &Arc<str>) -> Result<()> {
        let (connection, prepared) = &mut ***lease;
        packet(connection.out(), 0, |out| {
            out.push(0x02);
            out.extend(database.as_bytes());
        });
        let mut end = End::new(Kind::One);
        let limit = self.limits.operation;
        let asked =
            connection.ask("a change of the database", limit, SAID, |bytes| end.find(bytes));
        match asked.await {
            Ok(answer) => refused(Packets(answer).next().unwrap_or_default())?,
            Err(e) => return Err(self.broken(e)),
        }
        prepared.database = database.clone();
        Ok(())
    }

    /// The error of a connection without an answer. The others may be as broken.
    fn broken(&self, e: Error) -> Error {
        self.connections.forget();
        e.in_place(self.connections.place())
    }

    /// A connection for several statements.
    ///
    /// # Errors
    /// Of the connection.
    pub(super) async fn session(&self, within: &Within) -> Result<Own<'_>> {
        Ok(Own::new(self, self.lease(within).await?))
    }

    /// Does a statement.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn run(
        &self,
        within: &Within,
        what: &str,
        statement: &str,
        values: &[Value],
    ) -> Result<Done> {
        let mut lease = self.lease(within).await?;
        let (connection, prepared) = &mut **lease;
        match self.say(connection, prepared, what, statement, values).await {
            Err(e) if !is_of_server(&e) => Err(self.broken(e)),
            done => {
                lease.give_back();
                done
            }
        }
    }

    /// Does a statement that is not prepared.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn ask(&self, connection: &mut Connection, text: &str) -> Result<Done> {
        query(connection, text);
        let most = self.most();
        let mut end = End { most, ..End::new(Kind::Rows) };
        let limit = self.limits.operation;
        let answer = connection.ask("a statement", limit, most, |bytes| end.find(bytes)).await?;
        Statement::default().read::<RowDeserializer<ServerSide, Text>>(answer)
    }

    /// Does a `LOAD DATA LOCAL` whose file is these bytes.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn load(
        &self,
        connection: &mut Connection,
        text: &str,
        file: &[Vec<u8>],
    ) -> Result<Done> {
        query(connection, text);
        let limit = self.limits.operation;
        let mut end = End::new(Kind::One);
        let answer = connection.ask("a load", limit, SAID, |bytes| end.find(bytes)).await?;
        let (mut number, asked) = (number(answer), Packets(answer).next().unwrap_or_default());
        refused(asked)?;
        if asked.first() != Some(&0xfb) {
            return Err(wrong());
        }
        // The file, and its end.
        for part in file.iter().map(Vec::as_slice).filter(|part| !part.is_empty()).chain([&[][..]])
        {
            number = number.wrapping_add(1);
            packet(connection.out(), number, |out| out.extend(part));
        }
        let mut end = End::new(Kind::One);
        let answer = connection.ask("a load", limit, SAID, |bytes| end.find(bytes)).await?;
        Statement::default().read::<RowDeserializer<ServerSide, Text>>(answer)
    }

    /// Does a statement on a connection, where it is prepared if it was not yet.
    pub(super) async fn say(
        &self,
        connection: &mut Connection,
        prepared: &mut Prepared,
        what: &str,
        text: &str,
        values: &[Value],
    ) -> Result<Done> {
        let limit = self.limits.operation;
        let is_it = |known: &Statement| known.text == text && known.database == prepared.database;
        let known = prepared.known.iter().position(is_it);
        let place = match known {
            Some(place) => place,
            // Apart, so that what is usual stays small.
            None => self.prepare(connection, prepared, what, text).boxed().await?,
        };
        let known = &mut prepared.known[place];
        let (request, in_pieces) = ComStmtExecuteRequestBuilder::new(known.id).build(values);
        if in_pieces {
            pieces(connection.out(), known.id, values);
        }
        packet(connection.out(), 0, |out| request.serialize(out));
        let most = self.most();
        let mut end = End { most, ..End::new(Kind::Rows) };
        let answer = connection.ask(what, limit, most, |bytes| end.find(bytes)).await?;
        known.read::<RowDeserializer<ServerSide, Binary>>(answer)
    }

    /// Prepares a statement, and says where it is.
    async fn prepare(
        &self,
        connection: &mut Connection,
        prepared: &mut Prepared,
        what: &str,
        text: &str,
    ) -> Result<usize> {
        if prepared.known.len() >= PREPARED {
            for statement in prepared.known.drain(..) {
                // To this there is no answer.
                packet(connection.out(), 0, |out| {
                    out.push(0x19);
                    out.extend(statement.id.to_le_bytes());
                });
            }
        }
        packet(connection.out(), 0, |out| {
            out.push(0x16);
            out.extend(text.as_bytes());
        });
        let mut end = End::new(Kind::Prepared);
        let limit = self.limits.operation;
        let answer = connection.ask(what, limit, DESCRIBED, |bytes| end.find(bytes)).await?;
        let first = Packets(answer).next().unwrap_or_default();
        refused(first)?;
        let id = first.get(1..).and_then(<[u8]>::first_chunk).ok_or_else(wrong)?;
        let id = u32::from_le_bytes(*id);
        let (text, database) = (text.to_owned(), prepared.database.clone());
        prepared.known.push(Statement { text, database, id, ..Statement::default() });
        Ok(prepared.known.len() - 1)
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
pub(super) fn packet(out: &mut Vec<u8>, number: u8, body: impl FnOnce(&mut Vec<u8>)) {
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
fn query(connection: &mut Connection, text: &str) {
    packet(connection.out(), 0, |out| {
        out.push(0x03);
        out.extend(text.as_bytes());
    });
}

/// The number of the first packet of an answer.
pub(super) fn number(answer: &[u8]) -> u8 {
    answer.get(3).copied().unwrap_or_default()
}

/// What a server says that refuses, as an error.
pub(super) fn refused(packet: &[u8]) -> Result<()> {
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

pub(super) fn wrong() -> Error {
    Error::malformed("the server's answer does not follow MySQL's protocol")
}

/// The packets of an answer that is whole.
pub(super) struct Packets<'a>(pub &'a [u8]);

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
pub(super) enum Kind {
    /// One packet.
    One,
    /// What a prepared statement is: its number, then its values and columns.
    Prepared,
    /// What a statement did, or columns and rows.
    Rows,
}

/// Finds where an answer ends.
pub(super) struct End {
    kind: Kind,
    at: usize,
    begun: bool,
    /// The last packet goes on.
    goes_on: bool,
    /// Descriptions of columns to come.
    left: u64,
    /// How much it takes to read what there is so far, and how much that may be.
    weight: usize,
    most: usize,
}

impl End {
    pub(super) fn new(kind: Kind) -> End {
        End { kind, at: 0, begun: false, goes_on: false, left: 0, weight: 0, most: usize::MAX }
    }

    /// The end, if it is there.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed) for what is no answer.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        while let Some((packet, _)) = first(&bytes[self.at..]) {
            self.at += packet.len() + 4;
            self.weight += packet.len() + ROW;
            if self.weight > self.most {
                return Err(too_long("a statement", self.most));
            }
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
                    let columns = ParseBuf(packet).checked_eat_lenenc_int();
                    columns.filter(|columns| *columns <= COLUMNS).ok_or_else(wrong)?
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
mod tests;
