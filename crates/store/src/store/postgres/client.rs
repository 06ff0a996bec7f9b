//! Statements over connections: a statement is prepared once on each, and then is one message there and
//! one back, read where it lies.
//!
//! The crate `tokio-postgres` logs in; what is said after that is this much of the protocol:
//! <https://www.postgresql.org/docs/current/protocol-flow.html>.

use std::{cell::Cell, pin::pin, sync::Arc};

use bytes::BufMut;
use futures_util::{
    FutureExt,
    future::{Either, select},
};
use tokio_postgres::{Client, NoTls, tls::TlsStream, types::Type};

use super::{
    BLOB,
    encrypt::Encrypt,
    error::{self, Told},
    pool::Connect,
    rows::Cells,
    setting::Setting,
    watch::Watch,
    wire::Bound,
};
use crate::{
    Error, ErrorKind, Result,
    store::{
        net::{
            Address, Connection, Connections, Lease, Opened, SAID, Stream, broken, lent::Lent,
            too_long,
        },
        pool::Share,
    },
};

/// How many bytes an answer may have: a row as large as there are any, and what is around it. A message
/// counts for somewhat more than its bytes, as a row does when it is read.
pub(super) const LONGEST: usize = BLOB.max_record + (16 << 20);
/// What a message counts for beside its bytes.
const MESSAGE: usize = 32;
/// How many bytes an answer may have that has no rows.
const SHORT: usize = 4 * SAID;

/// How many statements a connection keeps prepared before it forgets them all.
const PREPARED: usize = 64;

/// Connections to one database.
pub(super) struct OwnClient {
    connections: Connections<Prepared>,
    pub(super) connect: Connect,
}

/// The statements a connection knows, and what it is set to.
struct Prepared {
    known: Vec<Known>,
    /// How many there ever were.
    count: u64,
    setting: Arc<Setting>,
}

/// A statement, and what it was prepared for. Under another setting the same text would mean other tables.
struct Known {
    id: u64,
    text: String,
    types: Vec<Type>,
    setting: Arc<Setting>,
    age: u64,
}

impl OwnClient {
    /// Connections that begin with the statements of `set_up`. None is made yet.
    pub(super) fn new(connect: Connect) -> OwnClient {
        OwnClient {
            connections: Connections::new(connect.limits, connect.address.to_string()),
            connect,
        }
    }

    /// What one of those who share the connections may have of them at once.
    pub(super) fn share(&self) -> Share {
        Share::of(&self.connections)
    }

    async fn connect(&self, setting: &Arc<Setting>) -> Result<Opened<Prepared>> {
        let Connect { config, address, tls, .. } = &self.connect;
        let watch = Watch::new(tls.is_some(), Some(SAID));
        let (lent, own) = Lent::new(Stream::connect(address).await?, watch.sees());
        match (tls, address) {
            (Some(tls), Address::Tcp(host, _)) => {
                let encrypt = Encrypt { tls: tls.clone(), host: host.clone() };
                let login = config.connect_raw(lent, encrypt).await.map_err(error::error)?;
                self.begin(login, setting).await?;
            }
            _ => {
                let login = config.connect_raw(lent, NoTls).await.map_err(error::error)?;
                self.begin(login, setting).await?;
            }
        }
        let connection = Connection::new(own.take().map_err(broken)?)?;
        Ok(Box::new((connection, Prepared::new(setting.clone()))))
    }

    /// What a connection begins with, while the crate still has it.
    async fn begin<T: TlsStream + Unpin>(
        &self,
        (client, connection): (Client, tokio_postgres::Connection<Lent, T>),
        setting: &Setting,
    ) -> Result<()> {
        let set_up = format!("{}{}", self.connect.set_up, setting.text);
        match select(pin!(client.batch_execute(&set_up)), pin!(connection)).await {
            Either::Left((done, _)) => done.map_err(error::error),
            Either::Right((ended, _)) => {
                ended.map_err(error::error)?;
                Err(broken(std::io::ErrorKind::UnexpectedEof.into()))
            }
        }
    }

    /// A connection that is set to this.
    async fn lease(&self, setting: &Arc<Setting>) -> Result<Lease<'_, Prepared>> {
        let suits = |opened: &Opened<Prepared>| opened.1.setting.is_as(setting);
        let connect = async || self.connect(setting).await;
        let mut lease = self.connections.lease_of(setting.share.as_ref(), suits, connect).await?;
        if !Arc::ptr_eq(&lease.1.setting, setting) {
            if !lease.1.setting.is_as(setting) {
                // Apart, so that what is usual stays small. Closed unless it is done.
                self.simple(&mut lease.0, "a setting", &setting.text, &mut End::default())
                    .boxed()
                    .await?
                    .end()?;
            }
            lease.1.setting = setting.clone();
        }
        Ok(lease)
    }

    /// Asks in the simple way, which prepares nothing.
    async fn simple(
        &self,
        connection: &mut Connection,
        what: &str,
        text: &str,
        end: &mut End,
    ) -> Result<Answer> {
        message(connection.out(), b'Q', |out| {
            out.put_slice(text.as_bytes());
            out.put_u8(0);
        })?;
        let limit = self.connect.limits.operation;
        match connection.ask(what, limit, SHORT, |bytes| end.find(bytes)).await {
            Ok(bytes) => Ok(Answer::read(bytes, |_| Ok(()))),
            Err(e) => Err(self.broken(e)),
        }
    }

    /// Does a statement, shows `row` each row it gives, at most so many ([`ALL`] for all), and answers how
    /// many rows it touched. The server plans as if all rows were wanted, as it does for a cursor; `LIMIT`
    /// would make it choose another plan.
    ///
    /// # Errors
    /// Of the connection, of the server, and those of `row`.
    pub(super) async fn run(
        &self,
        setting: &Arc<Setting>,
        most: u32,
        what: &str,
        text: &str,
        values: &[(Type, Bound)],
        row: impl FnMut(&dyn Cells) -> Result<()>,
    ) -> Result<u64> {
        let mut lease = self.lease(setting).await?;
        let (connection, prepared) = &mut **lease;
        let new = prepared.ask(connection.out(), text, values, most)?;
        let mut end = End::default();
        let limit = self.connect.limits.operation;
        let answer = match connection.ask(what, limit, LONGEST, |bytes| end.find(bytes)).await {
            Ok(bytes) => Answer::read(bytes, row),
            Err(e) => return Err(self.broken(e)),
        };
        prepared.note(new, &answer, text, values);
        if answer.leaves_sound(&end) {
            lease.give_back();
        }
        answer.end()
    }

    /// The error of a connection without an answer. The others may be as broken.
    #[cold]
    fn broken(&self, e: Error) -> Error {
        self.connections.forget();
        e.in_place(self.connections.place())
    }

    /// A connection for several statements.
    ///
    /// # Errors
    /// Of the connection.
    pub(super) async fn session(&self, setting: &Arc<Setting>) -> Result<Session<'_>> {
        let lease = self.lease(setting).await?;
        Ok(Session { direct: self, lease: Some(lease), begun: false, sound: true })
    }
}

/// A connection on loan for several statements; closed unless all that was begun on it ended well.
pub(super) struct Session<'d> {
    direct: &'d OwnClient,
    lease: Option<Lease<'d, Prepared>>,
    begun: bool,
    sound: bool,
}

impl Session<'_> {
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn end(&mut self) {
        self.begun = false;
    }

    fn connection(&mut self) -> (&mut Connection, &mut Prepared) {
        // Until an answer was read to its end.
        self.sound = false;
        let (connection, prepared) =
            &mut ***self.lease.as_mut().expect("there until it is dropped");
        (connection, prepared)
    }

    /// As [`OwnClient::run`].
    pub(super) async fn run(
        &mut self,
        what: &str,
        text: &str,
        values: &[(Type, Bound)],
        row: impl FnMut(&dyn Cells) -> Result<()>,
    ) -> Result<u64> {
        let direct = self.direct;
        let (connection, prepared) = self.connection();
        let new = prepared.ask(connection.out(), text, values, ALL)?;
        let mut end = End::default();
        let limit = direct.connect.limits.operation;
        let answer = match connection.ask(what, limit, LONGEST, |bytes| end.find(bytes)).await {
            Ok(bytes) => Answer::read(bytes, row),
            Err(e) => return Err(direct.broken(e)),
        };
        prepared.note(new, &answer, text, values);
        self.sound = answer.leaves_sound(&end);
        answer.end()
    }

    /// Does statements without values, together or not at all.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub(super) async fn batch(&mut self, text: &str) -> Result<()> {
        self.simple("a statement", text, End::default()).await?.end().map(drop)
    }

    /// Asks in the simple way, which prepares nothing.
    async fn simple(&mut self, what: &str, text: &str, mut end: End) -> Result<Answer> {
        let direct = self.direct;
        let answer = direct.simple(self.connection().0, what, text, &mut end).await?;
        self.sound = answer.leaves_sound(&end);
        Ok(answer)
    }

    /// Sends the bytes of a `COPY`, and says how many rows those were.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub(super) async fn copy_in(&mut self, copy: &str, bytes: &[u8]) -> Result<u64> {
        /// How much is in one message.
        const PART: usize = 1 << 20;
        let ready = End { copies: true, ..End::default() };
        self.simple("a COPY", copy, ready).boxed().await?.end()?;
        let direct = self.direct;
        let (connection, _) = self.connection();
        connection.out().reserve(bytes.len() + bytes.len() / PART * 5 + 16);
        for part in bytes.chunks(PART) {
            message(connection.out(), b'd', |out| out.put_slice(part))?;
        }
        message(connection.out(), b'c', |_| {})?;
        let mut end = End::default();
        let limit = direct.connect.limits.operation;
        let answer = match connection.ask("a COPY", limit, SHORT, |bytes| end.find(bytes)).await {
            Ok(bytes) => Answer::read(bytes, |_| Ok(())),
            Err(e) => return Err(direct.broken(e)),
        };
        // The server refuses in the middle, with half a message of ours still to be sent.
        self.sound = answer.refused.is_none();
        answer.end()
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let (Some(lease), true, false) = (self.lease.take(), self.sound, self.begun) {
            lease.give_back();
        }
    }
}

fn types(values: &[(Type, Bound)]) -> impl Iterator<Item = &Type> + Clone {
    values.iter().map(|(kind, _)| kind)
}

impl Prepared {
    fn new(setting: Arc<Setting>) -> Prepared {
        Prepared { known: Vec::new(), count: 0, setting }
    }

    /// A statement is prepared from now on, if the answer says so.
    fn note(&mut self, new: Option<u64>, answer: &Answer, text: &str, values: &[(Type, Bound)]) {
        if let (Some(id), true) = (new, answer.prepared) {
            let (text, types) = (text.to_owned(), types(values).cloned().collect());
            let (setting, age) = (self.setting.clone(), self.setting.age());
            self.known.push(Known { id, text, types, setting, age });
        }
    }

    /// Writes what asks for a statement to be done, and says under which number it is prepared by
    /// that, if it is.
    fn ask(
        &mut self,
        out: &mut Vec<u8>,
        text: &str,
        values: &[(Type, Bound)],
        most: u32,
    ) -> Result<Option<u64>> {
        let age = self.setting.age();
        let known = self.known.iter().find(|known| {
            known.text == text
                && Arc::ptr_eq(&known.setting, &self.setting)
                && known.age == age
                && known.types.iter().eq(types(values))
        });
        let (id, new) = match known {
            Some(known) => (known.id, false),
            None => {
                if self.known.len() >= PREPARED {
                    for known in self.known.drain(..) {
                        message(out, b'C', |out| {
                            out.push(b'S');
                            name(out, known.id);
                        })?;
                    }
                }
                self.count += 1;
                message(out, b'P', |out| {
                    name(out, self.count);
                    out.put_slice(text.as_bytes());
                    out.put_u8(0);
                    out.put_u16(values.len() as u16);
                    types(values).for_each(|kind| out.put_u32(kind.oid()));
                })?;
                (self.count, true)
            }
        };
        message(out, b'B', |out| {
            // The portal without a name; all values and columns in binary.
            out.put_u8(0);
            name(out, id);
            out.put_slice(&[0, 1, 0, 1]);
            out.put_u16(values.len() as u16);
            values.iter().for_each(|(_, value)| value.write(out));
            out.put_slice(&[0, 1, 0, 1]);
        })?;
        // That portal, so many rows; and the end.
        out.put_slice(b"E\0\0\0\x09\0");
        out.put_u32(most);
        out.put_slice(b"S\0\0\0\x04");
        Ok(new.then_some(id))
    }
}

/// What stands for all rows where so many are wanted at most.
pub(super) const ALL: u32 = 0;

/// The name of a prepared statement.
fn name(out: &mut Vec<u8>, id: u64) {
    out.put_slice(b"s");
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), id);
    while left > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    out.put_slice(&digits[at..]);
    out.put_u8(0);
}

/// Appends a message.
fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
    out.push(tag);
    let at = out.len();
    out.extend([0; 4]);
    body(out);
    let Ok(length) = i32::try_from(out.len() - at) else {
        out.clear();
        let what = "a statement of more than 2 GB, the limit of PostgreSQL";
        return Err(Error::new(ErrorKind::TooLarge, what));
    };
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// The message at the begin of these bytes: its tag, its body, and what is behind; none where it is
/// not whole.
fn first(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<5>()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let (body, rest) = rest.split_at_checked(length.checked_sub(4)?)?;
    Some((head[0], body, rest))
}

/// Finds where an answer ends: the server is ready for more, or never again.
#[derive(Default)]
struct End {
    at: usize,
    messages: usize,
    fatal: bool,
    /// It also ends where the server waits for the bytes of a `COPY`.
    copies: bool,
}

impl End {
    fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        while let Some((tag, body, _)) = first(&bytes[self.at..]) {
            self.at += body.len() + 5;
            self.messages += 1;
            self.fatal = tag == b'E' && Told::read(body).fatal;
            if tag == b'Z' || self.fatal || (self.copies && tag == b'G') {
                return Ok(Some(self.at));
            }
        }
        let (wrong, length) = match &bytes[self.at..] {
            [tag, length @ ..] => {
                let length = length.first_chunk().map_or(4, |n| i32::from_be_bytes(*n));
                let known = b"12345AEINSTCDtnsZ".contains(tag) || self.copies && *tag == b'G';
                (!known || length < 4, length)
            }
            [] => (false, 0),
        };
        let length = self.at + self.messages * MESSAGE + usize::try_from(length).unwrap_or(0);
        match wrong {
            true => {
                Err(Error::malformed("the server's answer does not follow PostgreSQL's protocol"))
            }
            // Before anything is kept for it.
            false if length > LONGEST => Err(too_long("a statement", LONGEST)),
            false => Ok(None),
        }
    }
}

/// What an answer said.
struct Answer {
    prepared: bool,
    count: u64,
    /// Boxed, as it is large and rare: an answer is handed about.
    refused: Option<Box<Told>>,
    read: Result<()>,
}

impl Answer {
    /// Whether the connection can be used again.
    fn leaves_sound(&self, end: &End) -> bool {
        match &self.refused {
            None => true,
            // What it has prepared may fit its tables no more.
            Some(told) => !end.fatal && !["0A000", "26000"].contains(&&*told.code),
        }
    }

    /// How many rows it touched.
    ///
    /// # Errors
    /// Of the server, and of what the rows were shown to.
    fn end(self) -> Result<u64> {
        match self.refused {
            Some(told) => Err(told.into_error()),
            None => self.read.map(|()| self.count),
        }
    }

    fn read(mut bytes: &[u8], mut row: impl FnMut(&dyn Cells) -> Result<()>) -> Answer {
        let mut answer = Answer { prepared: false, count: 0, refused: None, read: Ok(()) };
        while let Some((tag, body, rest)) = first(bytes) {
            match tag {
                b'1' => answer.prepared = true,
                b'D' if answer.read.is_ok() => answer.read = row(&DataRow::new(body)),
                b'E' => answer.refused = Some(Box::new(Told::read(body))),
                b'C' => answer.count = touched(body),
                _ => {}
            }
            bytes = rest;
        }
        answer
    }
}

/// The number at the end of what a statement says it did: `INSERT 0 5`.
fn touched(tag: &[u8]) -> u64 {
    // Most touch one row, or a few.
    if let [.., b' ', digit @ b'0'..=b'9', 0] = tag {
        return u64::from(digit - b'0');
    }
    let digits = tag.iter().rev().skip(1).take_while(|byte| byte.is_ascii_digit());
    let (count, _) = digits.fold((0u64, 1u64), |(count, place), digit| {
        // A number that is too long is the largest, which no count is.
        let more = place.saturating_mul(u64::from(digit - b'0'));
        (count.saturating_add(more), place.saturating_mul(10))
    });
    count
}

/// A row as it lies in an answer.
struct DataRow<'a> {
    width: usize,
    cells: &'a [u8],
    /// A cell that was found, and where it begins: they are mostly asked for in their order.
    found: Cell<(usize, usize)>,
}

impl<'a> DataRow<'a> {
    fn new(body: &'a [u8]) -> DataRow<'a> {
        let width = body.first_chunk().map_or(0, |count| u16::from_be_bytes(*count).into());
        let cells = body.get(2..).unwrap_or_default();
        DataRow { width, cells, found: Cell::new((0, 0)) }
    }
}

impl Cells for DataRow<'_> {
    fn width(&self) -> usize {
        self.width
    }

    fn cell(&self, i: usize) -> Result<Option<&[u8]>> {
        let wrong = || Error::malformed("a row with fewer columns than requested");
        let (mut n, mut at) = match self.found.get() {
            (n, at) if n <= i => (n, at),
            _ => (0, 0),
        };
        loop {
            let (length, rest) =
                self.cells.get(at..).and_then(<[u8]>::split_first_chunk).ok_or_else(wrong)?;
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            if n == i {
                self.found.set((n, at));
                return length.map(|n| rest.get(..n).ok_or_else(wrong)).transpose();
            }
            (n, at) = (n + 1, at + 4 + length.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests;
