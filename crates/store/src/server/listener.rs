//! Which processes of this machine answer at an address: the one that listens there, found by its socket
//! in `/proc`, and all that come from it. They are looked at only, never signalled.

use std::{
    fmt, fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    path::{Path, PathBuf},
};

use super::family;
use crate::{Error, Result};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A port.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The numbers of the processes that listen at an address, and of all that come from them.
///
/// # Errors
/// [`Unavailable`](crate::ErrorKind::Unavailable) with the reason, where the address is that of another
/// machine, where nothing listens that can be seen from here, and where the process is hidden from this
/// user.
pub fn listeners(address: &Address) -> Result<Vec<u32>> {
    let sockets = match address {
        Address::Tcp(address) if !is_of_this_machine(address.ip()) => {
            return Err(Error::unavailable(format!("{} is another machine", address.ip())));
        }
        Address::Tcp(address) => tcp_sockets(*address),
        Address::Unix(path) => {
            let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            unix_sockets(&text, &path)
        }
    };
    if sockets.is_empty() {
        let what = format!("no visible process listens on {address} (in a container?)");
        return Err(Error::unavailable(what));
    }
    match family::with_descendants(owners(&sockets)) {
        none if none.is_empty() => Err(Error::unavailable(format!(
            "the process that listens on {address} belongs to another user; only root can \
             identify it"
        ))),
        found => Ok(found),
    }
}

/// Whose socket listens at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Nobody's.
    Nobodys,
    /// A process's of the family, or one's of the user who is nobody else.
    Ours,
    /// Somebody else's.
    Others,
}

/// Whose socket listens at a port of the loopback address: that of a server with this `family` of processes and,
/// where nobody else's processes run as its user, of this `user`.
///
/// # Errors
/// [`Unavailable`](crate::ErrorKind::Unavailable) where the system does not tell.
pub(super) fn whose(port: u16, user: Option<u32>, family: impl Fn() -> Vec<u32>) -> Result<Whose> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if let Err(e) = fs::File::open("/proc/net/tcp") {
        let what = "the process that listens on a port cannot be identified, and a password might \
                    go to another program";
        return Err(Error::unavailable(what).with_source(e).in_place("/proc/net/tcp"));
    }
    // One that ends while it is looked at has no descriptors any more: then its socket is gone, too.
    const LOOKS: usize = 2;
    for _ in 0..LOOKS {
        let mut sockets = listening_at(address);
        if sockets.is_empty() {
            return Ok(Whose::Nobodys);
        }
        sockets.retain(|socket| Some(socket.user) != user);
        let owners = match sockets.is_empty() {
            true => return Ok(Whose::Ours),
            false => family(),
        };
        if sockets.iter().all(|socket| owners.iter().any(|pid| has(*pid, &[socket.inode]))) {
            return Ok(Whose::Ours);
        }
    }
    Ok(Whose::Others)
}

/// Only an address of this machine can be bound.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

/// Inodes of the sockets that listen at an address.
fn tcp_sockets(address: SocketAddr) -> Vec<u64> {
    listening_at(address).iter().map(|socket| socket.inode).collect()
}

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listening {
    at: SocketAddr,
    /// Who made it.
    user: u32,
    inode: u64,
}

/// The sockets that listen at an address: at that very one, or else at all of its port.
fn listening_at(address: SocketAddr) -> Vec<Listening> {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let (four, six) = (read("/proc/net/tcp"), read("/proc/net/tcp6"));
    let all: Vec<Listening> = four.lines().chain(six.lines()).filter_map(tcp).collect();
    let of = |ip: &dyn Fn(IpAddr) -> bool| -> Vec<Listening> {
        let here = |socket: &&Listening| socket.at.port() == address.port() && ip(socket.at.ip());
        all.iter().filter(here).copied().collect()
    };
    let exact = of(&|ip| ip.to_canonical() == address.ip().to_canonical());
    if exact.is_empty() { of(&|ip| ip.is_unspecified()) } else { exact }
}

/// A listening socket of a line of `/proc/net/tcp` or `tcp6`.
/// `0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 …`
fn tcp(line: &str) -> Option<Listening> {
    const LISTENS: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    if fields.get(3) != Some(&LISTENS) {
        return None;
    }
    let (ip, port) = fields[1].split_once(':')?;
    // Words of four bytes, each as this processor keeps it.
    let mut bytes = Vec::new();
    for word in ip.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
    };
    let port = u16::from_str_radix(port, 16).ok()?;
    let (user, inode) = (fields.get(7)?.parse().ok()?, fields.get(9)?.parse().ok()?);
    Some(Listening { at: SocketAddr::new(ip, port), user, inode })
}

/// Inodes of the sockets that listen at a path, of lines of `/proc/net/unix`:
/// `0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/mysqld.sock`
fn unix_sockets(text: &str, path: &Path) -> Vec<u64> {
    const LISTENS: &str = "00010000";
    let of = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (flags, inode) = (*fields.get(3)?, *fields.get(6)?);
        // A name may have spaces in it; the inode before it is the only number so written.
        let (_, name) = line.split_once(&format!(" {inode} "))?;
        (flags == LISTENS && Path::new(name) == path).then(|| inode.parse().ok())?
    };
    text.lines().filter_map(of).collect()
}

/// The processes that have any of these sockets.
fn owners(inodes: &[u64]) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| has(*pid, inodes)).collect()
}

/// Whether a process has any of these sockets.
fn has(pid: u32, inodes: &[u64]) -> bool {
    let names: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut links = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| names.iter().any(|name| link == Path::new(name)))
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, os::unix::net::UnixListener};

    use super::*;

    #[test]
    fn sockets_that_listen_are_read() {
        let four = " 0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000 7 0 4711 1 x";
        let at = |address: &str, user, inode| {
            Some(Listening { at: address.parse().unwrap(), user, inode })
        };
        assert_eq!(tcp(four), at("127.0.0.1:3306", 7, 4711));
        let six = " 1: 00000000000000000000000001000000:1538 00000000000000000000000000000000:0000 0A \
                   00000000:00000000 00:00000000 00000000 0 0 12 1 x";
        assert_eq!(tcp(six), at("[::1]:5432", 0, 12));
        assert_eq!(tcp(&four.replace(" 0A ", " 01 ")), None, "a connection");
        assert_eq!(tcp("  sl  local_address rem_address   st"), None);
        let unix = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01   471 /run/a b.sock\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03   472 /run/a b.sock\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03   473\n";
        assert_eq!(unix_sockets(unix, Path::new("/run/a b.sock")), [471]);
        assert!(unix_sockets(unix, Path::new("/run/a")).is_empty());
    }

    #[test]
    fn a_port_is_ours_or_somebody_elses() {
        let me = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let user = nix::unistd::geteuid().as_raw();
        let nobody = Vec::new;
        assert_eq!(whose(port, None, || vec![me]).unwrap(), Whose::Ours);
        assert_eq!(whose(port, Some(user), nobody).unwrap(), Whose::Ours);
        assert_eq!(whose(port, Some(user + 1), nobody).unwrap(), Whose::Others);
        // A process that is there, and has other sockets.
        assert_eq!(whose(port, None, || vec![1]).unwrap(), Whose::Others);
        drop(listener);
        assert_eq!(whose(port, Some(user), || vec![me]).unwrap(), Whose::Nobodys);
    }

    #[test]
    fn the_process_that_listens_is_found() {
        let me = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        assert!(listeners(&address).unwrap().contains(&me));
        drop(listener);
        let error = listeners(&address).unwrap_err().to_string();
        assert!(error.contains("no visible process"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        assert!(listeners(&Address::Unix(path)).unwrap().contains(&me));
        // Of the range for documentation: nobody has it.
        let error = listeners(&Address::Tcp("192.0.2.1:3306".parse().unwrap())).unwrap_err();
        assert!(error.to_string().contains("another machine"), "{error}");
    }
}
