//! A network between client and server (`--network 0.5ms`): loopback hides what round trips cost.
//!
//! Between the client and a server on this machine stands a relay, which holds back what either side
//! sends for half of the round trip (`relay.rs`). It is a process of its own, so that its processor
//! time is not the client's; it ends when its standard input does, so with us. Its own cost is measured
//! before the run, and stands in the results. Setting up a TCP connection is not delayed.

mod relay;

use std::{
    fmt,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    str::FromStr,
    thread,
    time::{Duration, Instant},
};

pub use relay::serve;

use super::results;
use crate::{Error, Result, store::Url};

/// How long a round trip takes, beyond what it takes on loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip(pub Duration);

impl RoundTrip {
    /// Longer ones are a mistake.
    const LONGEST: Duration = Duration::from_secs(10);
}

impl fmt::Display for RoundTrip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0.as_secs_f64() * 1e3)
    }
}

impl FromStr for RoundTrip {
    type Err = Error;
    fn from_str(text: &str) -> Result<RoundTrip> {
        let wrong = || {
            let longest = RoundTrip::LONGEST.as_secs();
            Error::invalid(format!(
                "{text:?} is no time of a round trip: write 0.5ms, 500us or 1s, at most {longest}s"
            ))
        };
        let (number, unit) =
            text.split_at(text.find(|c: char| c.is_alphabetic()).ok_or_else(wrong)?);
        let scale = match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            _ => return Err(wrong()),
        };
        let seconds = number.trim().parse::<f64>().map_err(|_| wrong())? * scale;
        let time = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
        match time.is_zero() || time > RoundTrip::LONGEST {
            true => Err(wrong()),
            false => Ok(RoundTrip(time)),
        }
    }
}

/// A network to measure through.
#[derive(Debug, Clone)]
pub struct Network {
    /// How long its round trips take.
    pub round_trip: RoundTrip,
    /// This program, which relays as `PROGRAM bench network-relay`.
    pub program: PathBuf,
}

/// A relay to one server. It ends with its value.
#[derive(Debug)]
pub struct Relay {
    child: Child,
    port: u16,
}

impl Relay {
    /// A relay to `host:port` whose round trips take so long.
    ///
    /// # Errors
    /// Where the program cannot be started, or does not say where it listens.
    pub fn start(program: &Path, to: (&str, u16), round_trip: Duration) -> Result<Relay> {
        use std::os::unix::process::CommandExt;
        let told = |e: std::io::Error| Error::from(e).in_place(program.display().to_string());
        let mut child = Command::new(program)
            .args(["bench", "network-relay", "--host", to.0, "--port", &to.1.to_string()])
            .args(["--round-trip-ns", &round_trip.as_nanos().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C ends the run after its round, and needs the relay until then.
            .process_group(0)
            .spawn()
            .map_err(told)?;
        let mut line = String::new();
        let said = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let relay = Relay { child, port: line.trim().parse().unwrap_or(0) };
        match (relay.port, said) {
            (1.., _) => Ok(relay),
            (0, Some(Err(e))) => Err(told(e)),
            (0, _) => Err(Error::unavailable("the relay that delays the network did not start")),
        }
    }

    /// Its port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Network {
    /// The same store through relays; none are needed for one in this process.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a unix socket, TLS (a certificate is for the server's
    /// own address) and names that are looked up by SRV; of the relays.
    pub fn between(&self, url: &str) -> Result<(String, Vec<Relay>)> {
        let mut relays = Vec::new();
        let through = through(url, |host, port| {
            let relay = Relay::start(&self.program, (host, port), self.round_trip.0)?;
            let port = relay.port();
            relays.push(relay);
            Ok(port)
        })?;
        Ok((through, relays))
    }

    /// What a round trip takes, and what of that is the relay's own cost: the medians of many, to a
    /// server here that answers at once.
    ///
    /// # Errors
    /// Of the relays.
    pub fn measure(&self) -> Result<results::Network> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || {
            for socket in listener.incoming().take(3).flatten() {
                thread::spawn(move || echo(socket));
            }
        });
        let through = |round_trip| {
            let relay = Relay::start(&self.program, ("127.0.0.1", port), round_trip)?;
            exchanges(relay.port())
        };
        let direct = exchanges(port)?;
        let relayed = through(Duration::ZERO)?;
        let measured = through(self.round_trip.0)?;
        let ns = |time: Duration| time.as_nanos() as u64;
        Ok(results::Network {
            round_trip_ns: ns(self.round_trip.0),
            relay_ns: ns(relayed.saturating_sub(direct)),
            measured_ns: ns(measured.saturating_sub(direct)),
        })
    }
}

/// A question of the null exchange, and its answer.
const NULL: [u8; 16] = [0; 16];

fn echo(mut socket: TcpStream) {
    let mut bytes = NULL;
    let _ = socket.set_nodelay(true);
    while socket.read_exact(&mut bytes).and_then(|()| socket.write_all(&bytes)).is_ok() {}
}

/// How long a null exchange takes: the median of many.
fn exchanges(port: u16) -> Result<Duration> {
    /// How many at most, and for how long.
    const MOST: (usize, Duration) = (2000, Duration::from_secs(1));
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_nodelay(true)?;
    let (mut times, begin) = (Vec::new(), Instant::now());
    while times.len() < 3 || (times.len() < MOST.0 && begin.elapsed() < MOST.1) {
        let (mut bytes, at) = (NULL, Instant::now());
        socket.write_all(&bytes)?;
        socket.read_exact(&mut bytes)?;
        times.push(at.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// The URL of the same store at the ports that `relay` gives for its hosts.
fn through(url: &str, mut relay: impl FnMut(&str, u16) -> Result<u16>) -> Result<String> {
    let mut parsed = Url::parse(url)?;
    if !url.contains("://") {
        return Ok(url.to_owned());
    }
    let refused =
        |what: &str| Err(Error::invalid(format!("a delay of the network cannot stand {what}")));
    if parsed.take("socket").is_some() {
        return refused("before a unix socket, which has no network; leave ?socket= out");
    }
    let tls = parsed.take_flag("tls")?.unwrap_or(false);
    if tls || ["rediss", "couchdbs", "memcacheds"].contains(&parsed.scheme.as_str()) {
        return refused("before TLS: the server's certificate is for its own address");
    }
    if parsed.scheme == "mongodb+srv" {
        return refused("before hosts that are looked up by SRV; name them");
    }
    if parsed.scheme == "s3" {
        let endpoint = parsed.take("endpoint").unwrap_or_default();
        let Some(authority) = endpoint.strip_prefix("http://") else {
            return refused("before S3 but with ?endpoint=http://host:port");
        };
        let at = Url::parse(&format!("http://{}", authority.trim_end_matches('/')))?;
        let (host, port) = at.one_host(80)?;
        let port = relay(&host, port)?;
        let (before, after) = match url.split_once("endpoint=") {
            Some((before, value)) => (before, value.find('&').map_or("", |end| &value[end..])),
            None => return refused("before S3 but with ?endpoint=http://host:port"),
        };
        return Ok(format!("{before}endpoint=http://127.0.0.1:{port}{after}"));
    }
    let usual = usual_port(&parsed.scheme)?;
    let mut hosts = parsed.hosts.clone();
    if hosts.is_empty() {
        hosts.push(("127.0.0.1".into(), None));
    }
    let relayed = |(host, port): &(String, Option<u16>)| {
        Ok(format!("127.0.0.1:{}", relay(host, port.unwrap_or(usual))?))
    };
    let relayed = hosts.iter().map(relayed).collect::<Result<Vec<_>>>()?.join(",");
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let login = rest[..end].rfind('@').map_or(0, |at| at + 1);
    Ok(format!("{scheme}://{}{relayed}{}", &rest[..login], &rest[end..]))
}

/// The port of servers whose URL names none.
fn usual_port(scheme: &str) -> Result<u16> {
    Ok(match scheme {
        "postgres" | "postgresql" => 5432,
        "mysql" | "mariadb" => 3306,
        "mongodb" => 27017,
        "couchdb" => 5984,
        "redis" => 6379,
        "memcached" => 11211,
        "tyrant" => 1978,
        other => {
            let what = format!("a delay of the network cannot stand before servers of {other:?}");
            return Err(Error::invalid(what));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, micros) in [("0.5ms", 500), ("500us", 500), ("2ms", 2000), ("1s", 1_000_000)] {
            let RoundTrip(time) = text.parse().unwrap();
            assert_eq!(time, Duration::from_micros(micros), "{text}");
        }
        assert_eq!("500us".parse::<RoundTrip>().unwrap().to_string(), "0.5 ms");
        for wrong in ["", "5", "ms", "0ms", "-1ms", "1m", "11s", "NaNms", "1e999s"] {
            let error = wrong.parse::<RoundTrip>().unwrap_err().to_string();
            assert!(error.contains("write 0.5ms"), "{wrong}: {error}");
        }
    }

    #[test]
    fn hosts_are_replaced_wherever_they_stand() {
        let mut asked = Vec::new();
        let mut through = |url: &str| {
            through(url, |host, port| {
                asked.push(format!("{host}:{port}"));
                Ok(asked.len() as u16)
            })
        };
        for (url, want) in [
            ("postgres://u:p%40@db:1/x?table=t", "postgres://u:p%40@127.0.0.1:1/x?table=t"),
            ("redis://[::1]:7", "redis://127.0.0.1:2"),
            ("mongodb://a,b:9/shop", "mongodb://127.0.0.1:3,127.0.0.1:4/shop"),
            ("tyrant://h?table=t", "tyrant://127.0.0.1:5?table=t"),
            (
                "s3://b?endpoint=http://h:8&server_tier=t1",
                "s3://b?endpoint=http://127.0.0.1:6&server_tier=t1",
            ),
            ("sqlite:a.db", "sqlite:a.db"),
        ] {
            assert_eq!(through(url).unwrap(), want);
        }
        for (url, want) in [
            ("redis://h?socket=/run/s", "unix socket"),
            ("rediss://h", "certificate"),
            ("mysql://h/x?tls=true", "certificate"),
            ("s3://b", "endpoint"),
        ] {
            let error = through(url).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
        assert_eq!(asked, ["db:1", "::1:7", "a:27017", "b:9", "h:1978", "h:8"]);
    }
}
