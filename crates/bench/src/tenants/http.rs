//! A client of HTTP/1.1 that keeps its connection: as much as the gateway takes, and no more.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::{Error, Result};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// No answer has more bytes.
const LARGEST: usize = 64 << 20;

/// A connection to a gateway.
pub(super) struct Client {
    address: String,
    stream: Option<BufReader<TcpStream>>,
    /// Memory that is used again.
    out: Vec<u8>,
    line: Vec<u8>,
    body: Vec<u8>,
}

impl Client {
    /// To `host:port`; it is connected when it is used.
    pub(super) fn new(address: impl Into<String>) -> Client {
        let (out, line, body) = (Vec::new(), Vec::new(), Vec::new());
        Client { address: address.into(), stream: None, out, line, body }
    }

    /// Connects anew: a gateway closes a connection that rests for long.
    ///
    /// # Errors
    /// Where nobody listens there.
    pub(super) fn connect(&mut self) -> Result<()> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        self.stream = Some(BufReader::with_capacity(16 << 10, stream));
        Ok(())
    }

    /// The body of the last answer.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Sends a request and reads its answer: status and body.
    ///
    /// # Errors
    /// Of the connection; where the answer is none.
    pub(super) fn send(
        &mut self,
        (method, path): (&str, &str),
        key: &str,
        body: Option<&[u8]>,
    ) -> Result<(u16, &[u8])> {
        if self.stream.is_none() {
            self.connect()?;
        }
        self.out.clear();
        let address = &self.address;
        write!(
            self.out,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n"
        )?;
        if let Some(body) = body {
            let length = body.len();
            write!(self.out, "Content-Type: application/json\r\nContent-Length: {length}\r\n")?;
        }
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(body.unwrap_or_default());
        let answered = self.answer();
        if answered.is_err() {
            self.stream = None;
        }
        Ok((answered?, &self.body))
    }

    fn answer(&mut self) -> Result<u16> {
        let Some(stream) = &mut self.stream else { return Err(none("there is no connection")) };
        stream.get_mut().write_all(&self.out)?;
        let status = line(stream, &mut self.line)?.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status: u16 = status.ok_or_else(|| none("its first line has no status"))?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let head = line(stream, &mut self.line)?;
            let Some((name, value)) = head.split_once(':') else { break };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().map_err(|_| none("its length is no number"))?;
            }
            chunked |= name.eq_ignore_ascii_case("transfer-encoding")
                && value.eq_ignore_ascii_case("chunked");
        }
        self.body.clear();
        if !chunked {
            read(stream, &mut self.body, length)?;
            return Ok(status);
        }
        loop {
            let size = line(stream, &mut self.line)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| none("a chunk has no size"))?;
            if size == 0 {
                while !line(stream, &mut self.line)?.is_empty() {}
                return Ok(status);
            }
            read(stream, &mut self.body, size)?;
            line(stream, &mut self.line)?;
        }
    }
}

fn none(why: &str) -> Error {
    Error::unavailable(format!("what the gateway sent is no answer: {why}"))
}

/// A line without its end.
fn line<'l>(stream: &mut BufReader<TcpStream>, into: &'l mut Vec<u8>) -> Result<&'l str> {
    into.clear();
    if stream.by_ref().take(64 << 10).read_until(b'\n', into)? == 0 {
        return Err(none("it has closed the connection"));
    }
    let text = std::str::from_utf8(into).map_err(|_| none("its head is no text"))?;
    Ok(text.trim_end_matches(['\r', '\n']))
}

fn read(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>, more: usize) -> Result<()> {
    if body.len().saturating_add(more) > LARGEST {
        return Err(none("it is too large"));
    }
    let begin = body.len();
    body.resize(begin + more, 0);
    Ok(stream.read_exact(&mut body[begin..])?)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// Answers each request of one connection with the next of these.
    fn server(answers: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            for answer in answers {
                let (mut head, mut length) = (String::new(), 0);
                while !head.ends_with("\r\n\r\n") {
                    let from = head.len();
                    stream.read_line(&mut head).unwrap();
                    if let Some(n) = head[from..].strip_prefix("Content-Length: ") {
                        length = n.trim().parse().unwrap();
                    }
                }
                stream.read_exact(&mut vec![0; length]).unwrap();
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn a_connection_is_kept_and_bodies_come_in_both_ways() {
        let address = server(&[
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: y\r\n\r\nhello",
            "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            "nonsense\r\n\r\n",
        ]);
        let mut client = Client::new(address);
        assert_eq!(client.send(("GET", "/a"), "k", None).unwrap(), (200, &b"hello"[..]));
        assert_eq!(client.send(("PUT", "/a"), "k", Some(b"{}")).unwrap(), (201, &b""[..]));
        assert_eq!(client.send(("GET", "/b"), "k", None).unwrap(), (200, &b"abcde"[..]));
        assert!(client.send(("GET", "/b"), "k", None).is_err());
        // Nobody answers any more.
        assert!(client.send(("GET", "/b"), "k", None).is_err());
    }
}
