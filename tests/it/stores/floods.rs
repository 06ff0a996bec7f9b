//! What servers send that send without end: a head, and a unit that is sent over and over.

use std::{io::Write, net::TcpStream};

/// What is sent instead of an answer.
#[derive(Debug, Clone)]
pub struct Flood {
    pub name: &'static str,
    head: Vec<u8>,
    unit: Vec<u8>,
    /// There is no answer in it that is whole, so that it has to be an error.
    pub endless: bool,
    /// It takes long, maybe until the time is over, so that it is tried at one answer.
    pub slow: bool,
}

impl Default for Flood {
    fn default() -> Self {
        any("zeros", b"\0")
    }
}

impl Flood {
    /// Sends it until nobody listens.
    pub fn pour(&self, mut to: TcpStream) {
        const PIECE: usize = 256 << 10;
        let piece = self.unit.repeat(PIECE.div_ceil(self.unit.len()));
        let _ = to.write_all(&self.head);
        while to.write_all(&piece).is_ok() {}
        let _ = to.shutdown(std::net::Shutdown::Both);
    }
}

/// One that may be an answer to some who ask.
fn any(name: &'static str, unit: &[u8]) -> Flood {
    Flood { name, head: Vec::new(), unit: unit.to_vec(), endless: false, slow: false }
}

fn endless(name: &'static str, head: &[u8], unit: &[u8]) -> Flood {
    Flood { name, head: head.to_vec(), unit: unit.to_vec(), endless: true, slow: false }
}

/// The floods for a driver: of any bytes, and of what its protocol has that can be long.
pub fn floods(driver: &str) -> Vec<Flood> {
    let mut floods = vec![any("zeros", b"\0"), any("ones", b"\xff"), any("a line", b"x")];
    floods.extend(match driver {
        "redis" => redis(),
        "postgres" => postgres(),
        "mysql" => mysql(),
        "memcached" => memcached(),
        "tyrant" => tyrant(),
        "mongodb" => mongodb(),
        "couchdb" => http(&[
            (
                "rows",
                b"{\"total_rows\":9,\"offset\":0,\"rows\":[",
                b"{\"id\":\"a\",\"key\":\"a\",\"value\":{\"rev\":\"1-a\"}},",
            ),
            ("lists in lists", b"", b"["),
        ]),
        "s3" => http(&[
            ("a list", b"<ListBucketResult><Name>b</Name>", b"<Contents><Key>a</Key></Contents>"),
            ("elements in elements", b"", b"<a>"),
        ]),
        _ => Vec::new(),
    });
    floods
}

fn redis() -> Vec<Flood> {
    vec![
        endless("a refusal", b"-ERR ", b"x"),
        endless("a value of a tebibyte", b"$1099511627776\r\n", b"x"),
        endless("a list of values", b"*1099511627776\r\n", b"$1\r\na\r\n"),
        endless("a list of numbers", b"*16\r\n*1099511627776\r\n", b":1\r\n"),
        endless("lists in lists", b"", b"*1\r\n"),
        endless("large values", b"*1099511627776\r\n", &sized(b"$65536\r\n", b"\r\n")),
    ]
}

/// 64 KiB between these.
fn sized(before: &[u8], after: &[u8]) -> Vec<u8> {
    [before, &[b'x'; 64 << 10], after].concat()
}

fn postgres() -> Vec<Flood> {
    let of = |tag: u8, body: &[u8]| {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[tag], &length[..], body].concat()
    };
    let long = |tag: u8| [&[tag][..], &i32::MAX.to_be_bytes()].concat();
    let notice = [&b"SWARNING\0C00000\0M"[..], &[b'x'; 8 << 10], b"\0\0"].concat();
    let begun = [of(b'1', b""), of(b'2', b"")].concat();
    vec![
        endless("a long refusal", &long(b'E'), b"x"),
        endless("a long login", &long(b'R'), b"\0"),
        endless("a long row", &long(b'D'), b"\0"),
        endless("a long description", &long(b'T'), b"\0"),
        endless("notices", b"", &of(b'N', &notice)),
        Flood { slow: true, ..endless("parameters", b"", &of(b'S', b"name\0value\0")) },
        endless(
            "large rows",
            &begun,
            &of(b'D', &[&b"\0\x01\0\0\xff\xff"[..], &[b'x'; 0xffff]].concat()),
        ),
        Flood { slow: true, ..endless("rows", &begun, &of(b'D', b"\0\x01\0\0\0\x02k1")) },
    ]
}

fn mysql() -> Vec<Flood> {
    const COLUMN: &[u8] =
        b"\x1c\0\0\x01\x03def\0\0\0\x01v\x01v\x0c\x3f\0\xff\xff\0\0\xfc\0\0\0\0\0";
    let column = [&[COLUMN.len() as u8 - 4][..], &COLUMN[1..]].concat();
    let part = [&b"\xff\xff\xff\0"[..], &vec![b'\n'; 0xff_ffff]].concat();
    vec![
        endless("a packet that goes on", b"", &part),
        endless("columns", b"\x09\0\0\x01\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", &column),
        endless("rows", &[b"\x01\0\0\x01\x01", &column[..]].concat(), b"\x04\0\0\x03\0\0\x01a"),
    ]
}

fn memcached() -> Vec<Flood> {
    vec![
        endless("statistics", b"", b"STAT a b\r\n"),
        endless("a value of a tebibyte", b"VALUE k1 0 1099511627776\r\n", b"x"),
        endless("a meta value of a tebibyte", b"VA 1099511627776\r\n", b"x"),
        endless("values", b"", b"VALUE k1 0 1\r\na\r\n"),
        endless("a line of metadata", b"", b"key=k1 exp=-1 la=1 cas=1 fetch=no cls=1 size=60"),
    ]
}

fn tyrant() -> Vec<Flood> {
    vec![
        endless("a long value", b"\0\x7f\xff\xff\xff", b"x"),
        endless("the longest value", b"\0\xff\xff\xff\xff\xff\xff\xff\xff", b"x"),
        endless("values", b"\0\xff\xff\xff\xff", b"\0\0\0\x01a"),
        endless("pairs", b"\0\0\0\0\x03", b"\x0f\xff\xff\xff"),
    ]
}

fn mongodb() -> Vec<Flood> {
    let reply = |length: i32| {
        let head = [length, 1, 1, 2013].map(i32::to_le_bytes).concat();
        [&head[..], &[0; 5]].concat()
    };
    vec![
        endless("a message of 2 GiB", &reply(i32::MAX), b"x"),
        endless("a message of 48 MB", &reply(48_000_000), b"x"),
        endless(
            "a document of 2 GiB",
            &[&reply(4096)[..], &i32::MAX.to_le_bytes()].concat(),
            b"\0",
        ),
        endless("a message of less than nothing", &reply(-1), b"x"),
    ]
}

/// Answers over HTTP, whose bodies begin and go on like these.
fn http(bodies: &[(&'static str, &[u8], &[u8])]) -> Vec<Flood> {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"a\"\r\n\
                      Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
    let long = |length: u64| format!("{OK}Content-Length: {length}\r\n\r\n");
    let mut floods = vec![
        endless("a body of an exbibyte", long(1 << 60).as_bytes(), b" "),
        endless("a body of two gibibytes", long(2 << 30).as_bytes(), b" "),
        endless("headers", b"HTTP/1.1 200 OK\r\n", b"X-More: a\r\n"),
        endless("a header", b"HTTP/1.1 200 OK\r\nX-More: ", b"x"),
        Flood { slow: true, ..endless("more to come", b"", b"HTTP/1.1 100 Continue\r\n\r\n") },
        endless(
            "a refusal",
            b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n",
            &sized(b"10000\r\n", b"\r\n"),
        ),
    ];
    for (name, head, unit) in bodies {
        let chunk = |bytes: &[u8]| {
            let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
            chunk.extend(bytes);
            chunk.extend(b"\r\n");
            chunk
        };
        let mut begin = format!("{OK}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        if !head.is_empty() {
            begin.extend(chunk(head));
        }
        floods.push(endless(name, &begin, &chunk(&unit.repeat(1000))));
    }
    floods
}
