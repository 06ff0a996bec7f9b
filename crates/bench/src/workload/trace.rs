//! The keys of a trace: what a production server was asked for, in order.
//!
//! Three kinds of files are read, told apart by their first lines: one key a line; what Redis prints
//! after `MONITOR`; what memcached prints after `watch fetchers mutations`.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use crate::{Error, ErrorKind, Result};

/// The longest line that is read: a command of Redis with the value that it writes.
const LONGEST: u64 = 4 << 20;

/// The keys of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// The keys, each once, in the order in which they first occur.
    pub keys: Vec<String>,
    /// The operations in order, as indexes of keys.
    pub operations: Vec<u32>,
    /// Which kind of file it was.
    pub kind: TraceKind,
}

/// The kinds of trace files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TraceKind {
    /// One key a line.
    #[default]
    Keys,
    /// The output of Redis's `MONITOR`.
    Redis,
    /// The output of memcached's `watch fetchers mutations`.
    Memcached,
}

impl TraceKind {
    /// What it is, for a reader.
    pub fn about(self) -> &'static str {
        match self {
            TraceKind::Keys => "one key a line",
            TraceKind::Redis => "Redis MONITOR",
            TraceKind::Memcached => "memcached watch",
        }
    }

    /// The kind of file that has this line.
    fn of(line: &str) -> TraceKind {
        match () {
            () if line.starts_with("ts=") && line.contains(" type=") => TraceKind::Memcached,
            () if command(line).is_some() => TraceKind::Redis,
            () => TraceKind::Keys,
        }
    }
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) and the like, naming the file;
    /// [`Malformed`](crate::ErrorKind::Malformed), naming file and line, for a line that is of another
    /// kind than the first ones; [`Invalid`](crate::ErrorKind::Invalid) where no line names a key.
    pub fn read(path: &Path) -> Result<Trace> {
        let named = |e: Error| e.in_place(path.display().to_string());
        let file = File::open(path).map_err(|e| named(e.into()))?;
        let trace = Trace::of(BufReader::with_capacity(1 << 16, file), path)?;
        match trace.operations.is_empty() {
            true => Err(named(Error::invalid("a trace in which no line names a key"))),
            false => Ok(trace),
        }
    }

    /// The trace of these lines, of a file of this name. At most one line of it is in memory.
    fn of(mut lines: impl BufRead, path: &Path) -> Result<Trace> {
        let mut reading = Reading::default();
        let mut line = Vec::new();
        let mut offset = 0;
        for number in 1u64.. {
            line.clear();
            let bounded = &mut lines.by_ref().take(LONGEST + 1);
            let read = bounded.read_until(b'\n', &mut line);
            let read = read.map_err(|e| Error::from(e).in_place(path.display().to_string()))?;
            if read == 0 {
                break;
            }
            let at =
                |e: Error| e.in_place(format!("{}, line {number}, byte {offset}", path.display()));
            if read as u64 > LONGEST {
                let most = LONGEST >> 20;
                let what = format!("a line of more than {most} MiB: this is no trace of keys");
                return Err(at(Error::new(ErrorKind::TooLarge, what)));
            }
            let text = std::str::from_utf8(&line)
                .map_err(|_| at(Error::malformed("a line that is no UTF-8 text")))?;
            reading.line(text.trim_end_matches(['\n', '\r'])).map_err(at)?;
            offset += read as u64;
        }
        Ok(reading.trace)
    }
}

/// A trace being read.
#[derive(Default)]
struct Reading {
    trace: Trace,
    kind: Option<TraceKind>,
    known: HashMap<String, u32>,
}

impl Reading {
    fn line(&mut self, line: &str) -> Result<()> {
        // What servers answer to `MONITOR` and `watch`, and what a key cannot be.
        if line.is_empty() || (matches!(line, "OK" | "+OK") && self.trace.keys.is_empty()) {
            return Ok(());
        }
        let kind = *self.kind.get_or_insert_with(|| TraceKind::of(line));
        self.trace.kind = kind;
        match kind {
            TraceKind::Keys => self.add(line),
            TraceKind::Redis => {
                let words = command(line).ok_or_else(|| {
                    Error::malformed(
                        "no line of MONITOR; one is 1339518083.107412 [0 127.0.0.1:60866] \"get\" \"key\"",
                    )
                })?;
                keys_of(&words).try_for_each(|key| self.add(key))
            }
            TraceKind::Memcached => self.watched(line),
        }
    }

    fn watched(&mut self, line: &str) -> Result<()> {
        let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name));
        let kind = field("type=").filter(|_| line.starts_with("ts=")).ok_or_else(|| {
            Error::malformed(
                "no line of watch; one is ts=1.5 gid=1 type=item_get key=k status=found",
            )
        })?;
        match (kind, field("key=")) {
            ("item_get" | "item_store", Some(key)) => self.add(&unescaped(key)?),
            ("item_get" | "item_store", None) => Err(Error::malformed("a line without key=")),
            // Evictions, connections and the like were asked for by nobody.
            _ => Ok(()),
        }
    }

    fn add(&mut self, key: &str) -> Result<()> {
        let at = match self.known.get(key) {
            Some(at) => *at,
            None => {
                let at = u32::try_from(self.trace.keys.len())
                    .map_err(|_| Error::invalid("more than 4,294,967,295 different keys"))?;
                self.known.insert(key.to_owned(), at);
                self.trace.keys.push(key.to_owned());
                at
            }
        };
        self.trace.operations.push(at);
        Ok(())
    }
}

/// The words of a command in a line of `MONITOR`: `1339518083.107412 [0 127.0.0.1:60866] "get" "key"`.
fn command(line: &str) -> Option<Vec<String>> {
    let (time, rest) = line.split_once(" [")?;
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (seconds, micros) = time.strip_prefix('+').unwrap_or(time).split_once('.')?;
    if !(number(seconds) && number(micros)) {
        return None;
    }
    let mut rest = rest.split_once("] ")?.1;
    let mut words = Vec::new();
    while !rest.is_empty() {
        let (word, after) = quoted(rest)?;
        words.push(word);
        rest = after.trim_start_matches(' ');
    }
    (!words.is_empty()).then_some(words)
}

/// A word in double quotes, as Redis writes it, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('"')?;
    let (mut word, mut at) = (Vec::new(), 0);
    let bytes = body.as_bytes();
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'"', _) => break,
            (b'\\', Some(b'x')) => {
                word.push(u8::from_str_radix(body.get(at + 2..at + 4)?, 16).ok()?);
                at += 4;
            }
            (b'\\', Some(escaped)) => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    other => *other,
                });
                at += 2;
            }
            (byte, _) => {
                word.push(*byte);
                at += 1;
            }
        }
    }
    Some((String::from_utf8_lossy(&word).into_owned(), &body[at + 1..]))
}

/// The keys that a command of Redis names. A command that is not known has its key where nearly all
/// have it, behind its name.
fn keys_of(words: &[String]) -> impl Iterator<Item = &str> {
    const WITHOUT: [&str; 32] = [
        "auth",
        "bgrewriteaof",
        "bgsave",
        "client",
        "cluster",
        "command",
        "config",
        "dbsize",
        "debug",
        "discard",
        "echo",
        "eval",
        "evalsha",
        "exec",
        "flushall",
        "flushdb",
        "hello",
        "info",
        "keys",
        "latency",
        "monitor",
        "multi",
        "ping",
        "publish",
        "quit",
        "replconf",
        "scan",
        "script",
        "select",
        "slowlog",
        "subscribe",
        "time",
    ];
    let name = words[0].to_ascii_lowercase();
    let (most, step) = match name.as_str() {
        name if WITHOUT.contains(&name) => (0, 1),
        "mget" | "del" | "unlink" | "exists" | "touch" => (usize::MAX, 1),
        "mset" | "msetnx" => (usize::MAX, 2),
        _ => (1, 1),
    };
    words[1..].iter().step_by(step).take(most).map(String::as_str)
}

/// A key as memcached's log writes it: `%20` is a space.
fn unescaped(key: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(
            code.ok_or_else(|| Error::malformed(format!("the key {key}: % and two digits")))?,
        );
        rest = &after[2..];
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Trace::read(file.path())
    }

    fn asked(trace: &Trace) -> Vec<&str> {
        trace.operations.iter().map(|at| trace.keys[*at as usize].as_str()).collect()
    }

    /// A line that does not end; who reads too much of it is told so.
    struct Endless(u64);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += buffer.len() as u64;
            assert!(self.0 < 2 * LONGEST, "{} bytes are read", self.0);
            buffer.fill(b'k');
            Ok(buffer.len())
        }
    }

    #[test]
    fn a_line_without_end_is_refused_at_its_place_and_little_of_it_is_read() {
        let lines = BufReader::new(b"a\nbc\n".chain(Endless(0)));
        let error = Trace::of(lines, Path::new("keys.log")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        let said = error.to_string();
        assert!(said.contains("keys.log, line 3, byte 5") && said.contains("4 MiB"), "{said}");
        // The longest there may be is read.
        let line = "k".repeat(LONGEST as usize - 1) + "\n";
        let trace = Trace::of(line.as_bytes(), Path::new("keys.log")).unwrap();
        assert_eq!(trace.operations.len(), 1);
        // A large file of one line, most of which is not even on the disk.
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 30).unwrap();
        let said = Trace::read(file.path()).unwrap_err().to_string();
        assert!(said.contains("line 1, byte 0"), "{said}");
    }

    #[test]
    fn a_key_a_line() {
        let trace = read("a\nb b\r\n\na\n").unwrap();
        assert_eq!((trace.kind, asked(&trace)), (TraceKind::Keys, vec!["a", "b b", "a"]));
        assert_eq!(trace.keys.len(), 2);
    }

    #[test]
    fn what_redis_prints_after_monitor() {
        let trace = read(
            "OK\n\
             1339518083.107412 [0 127.0.0.1:60866] \"get\" \"user:7\"\n\
             1339518083.107413 [0 unix:/run/redis.sock] \"PING\"\n\
             1339518083.107414 [0 lua] \"MSET\" \"a\" \"1\" \"b\\\"\\x41\" \"2\"\n\
             1339518083.107415 [0 [::1]:60866] \"mget\" \"user:7\" \"a\"\n",
        );
        let trace = trace.unwrap();
        assert_eq!(trace.kind, TraceKind::Redis);
        assert_eq!(asked(&trace), ["user:7", "a", "b\"A", "user:7", "a"]);
    }

    #[test]
    fn what_memcached_prints_after_watch() {
        let trace = read(
            "OK\r\n\
             ts=1615493412.837482 gid=1 type=item_get key=foo%20bar status=not_found clsid=0 cfd=27 size=0\r\n\
             ts=1615493413.1 gid=2 type=eviction key=old fetch=no ttl=-1 la=9 clsid=1 size=60\r\n\
             ts=1615493413.2 gid=3 type=item_store key=foo status=stored cmd=set ttl=0 clsid=1 cfd=27 size=60\r\n",
        );
        let trace = trace.unwrap();
        assert_eq!(trace.kind, TraceKind::Memcached);
        assert_eq!(asked(&trace), ["foo bar", "foo"]);
    }

    #[test]
    fn a_line_that_is_no_such_line_is_named() {
        for (text, line, what) in [
            ("1.5 [0 lua] \"get\" \"a\"\nget a\n", "line 2", "MONITOR"),
            ("ts=1 gid=1 type=item_get key=a\nnonsense\n", "line 2", "no line of watch"),
            ("ts=1 gid=1 type=item_get status=found\n", "line 1", "without key="),
            ("ts=1 gid=1 type=item_get key=a%2\n", "line 1", "two digits"),
            ("\n\n", "", "no line names a key"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(what), "{text}: {error}");
        }
        let missing = Trace::read(Path::new("/nonexistent/trace")).unwrap_err().to_string();
        assert!(missing.contains("/nonexistent/trace"), "{missing}");
    }
}
