//! Logging in over a connection, by the password's hash or, where the server does not know that yet, by
//! the password itself, over TLS or a socket of this machine. Servers that want another way need the crate.
//!
//! Without TLS a server can have the password sent encrypted by a key of its own. Nobody says whose key that is, so
//! whoever answers in its place would have the password: that is refused, as by MySQL's own client.

use std::{sync::Arc, time::Duration};

use mysql_async::Opts;
use mysql_common::{
    constants::CapabilityFlags as Can,
    io::ParseBuf,
    packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest},
    proto::MySerialize,
};
use rustls::ClientConfig;

use super::client::{End, Kind, Packets, number, packet, refused, wrong};
use crate::{
    Error, ErrorKind, Result,
    store::net::{Connection, SAID, tls},
};

/// How the server is reached.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    /// TCP.
    Plain,
    /// TCP, encrypted, with the name the server has to prove.
    Tls(&'a Arc<ClientConfig>, &'a str),
    /// A socket of this machine.
    Socket,
}

/// The server wants to be logged in to in a way that only the crate knows.
const OTHER: &str = "the server wants a login method that steelyard's own client does not have; \
                     try ?client=crate";

/// The same without TLS, where the crate would tell the password to whoever asks.
const OTHER_UNSAFE: &str = "the server wants a login method that steelyard's own client does not \
                            have, and without TLS no other is tried; use ?tls=true, or \
                            ?client=crate if the server and the network are trusted";
const ASKS: &str = "the server wants the password in clear text, which is not sent without TLS; \
                    use ?tls=true, ?socket=, or ?client=crate if the server and the network are \
                    trusted";

/// Whether an error says that another client is needed.
pub(super) fn needs_crate(e: &Error) -> bool {
    e.kind() == ErrorKind::Unsupported && e.context() == OTHER
}

/// Packets as large as the protocol knows.
const MOST: u32 = 1 << 30;
/// The collation utf8mb4_general_ci.
const UTF8: u8 = 45;

const NEEDED: Can = Can::CLIENT_PROTOCOL_41
    .union(Can::CLIENT_SECURE_CONNECTION)
    .union(Can::CLIENT_PLUGIN_AUTH)
    .union(Can::CLIENT_DEPRECATE_EOF);

const WANTED: Can = NEEDED
    .union(Can::CLIENT_LONG_PASSWORD)
    // A row counts that was found, also where it is the same as before.
    .union(Can::CLIENT_FOUND_ROWS)
    .union(Can::CLIENT_LOCAL_FILES)
    .union(Can::CLIENT_TRANSACTIONS)
    .union(Can::CLIENT_MULTI_RESULTS)
    .union(Can::CLIENT_PS_MULTI_RESULTS);

/// Logs in.
///
/// # Errors
/// One that [`needs_crate`] where the crate has to do it; else of the connection and the server.
pub(super) async fn login(
    connection: &mut Connection,
    options: &Opts,
    way: Way<'_>,
    limit: Duration,
) -> Result<()> {
    let (mut number, greeting) = heard(connection, limit).await?;
    refused(&greeting)?;
    let greeting = ParseBuf(&greeting).parse::<HandshakePacket<'_>>(()).map_err(|_| wrong())?;
    let mut can = WANTED & (greeting.capabilities() | Can::CLIENT_LONG_PASSWORD);
    let other = || match way {
        Way::Plain => Error::unsupported(OTHER_UNSAFE),
        Way::Tls(..) | Way::Socket => Error::unsupported(OTHER),
    };
    if !can.contains(NEEDED) {
        return Err(other());
    }
    let mut nonce = greeting.scramble_1_ref().to_vec();
    nonce.extend(greeting.scramble_2_ref().unwrap_or_default());
    // Without the zero at its end.
    nonce.resize(20, 0);
    if let Way::Tls(config, host) = way {
        if !greeting.capabilities().contains(Can::CLIENT_SSL) {
            let what = "the server does not support TLS, which ?tls=true requires";
            return Err(Error::unsupported(what));
        }
        can.insert(Can::CLIENT_SSL);
        number = number.wrapping_add(1);
        let request = SslRequest::new(can, MOST, UTF8);
        packet(connection.out(), number, |out| request.serialize(out));
        connection.upgrade(async |stream| tls::over(stream, host, config.clone()).await).await?;
    }
    let by = match greeting.auth_plugin() {
        Some(AuthPlugin::CachingSha2Password) => AuthPlugin::CachingSha2Password,
        _ => AuthPlugin::MysqlNativePassword,
    };
    let answer = by.gen_data(options.pass(), &nonce);
    let version = greeting
        .maria_db_server_version_parsed()
        .or_else(|| greeting.server_version_parsed())
        .unwrap_or_default();
    let response = HandshakeResponse::new(
        answer.as_deref(),
        version,
        options.user().map(str::as_bytes),
        options.db_name().map(str::as_bytes),
        Some(by),
        can,
        None,
        MOST,
    );
    packet(connection.out(), number.wrapping_add(1), |out| response.serialize(out));
    loop {
        let (number, told) = heard(connection, limit).await?;
        let next = number.wrapping_add(1);
        refused(&told)?;
        match told[..] {
            [0, ..] => return Ok(()),
            // It knows the password's hash already; what it says next is whether it is right.
            [1, 3] => {}
            // It wants the password itself.
            [1, 4] => match way {
                Way::Tls(..) | Way::Socket => {
                    packet(connection.out(), next, |out| out.extend(with_zero(options)));
                }
                Way::Plain => return Err(Error::new(ErrorKind::Denied, ASKS)),
            },
            [0xfe, ..] => {
                let asked =
                    ParseBuf(&told).parse::<AuthSwitchRequest<'_>>(()).map_err(|_| other())?;
                let by = asked.auth_plugin();
                if !matches!(by, AuthPlugin::CachingSha2Password | AuthPlugin::MysqlNativePassword)
                {
                    return Err(other());
                }
                let given = asked.plugin_data();
                nonce = given.strip_suffix(&[0]).unwrap_or(given).to_vec();
                let answer = by.gen_data(options.pass(), &nonce);
                let answer = answer.as_deref().unwrap_or_default();
                packet(connection.out(), next, |out| out.extend(answer));
            }
            _ => return Err(wrong()),
        }
    }
}

/// The password as it is sent by itself.
fn with_zero(options: &Opts) -> Vec<u8> {
    let mut password = options.pass().unwrap_or_default().as_bytes().to_vec();
    password.push(0);
    password
}

/// The next packet, and its number.
async fn heard(connection: &mut Connection, limit: Duration) -> Result<(u8, Vec<u8>)> {
    let mut end = End::new(Kind::One);
    let answer = connection.ask("a login", limit, SAID, |bytes| end.find(bytes)).await?;
    Ok((number(answer), Packets(answer).next().unwrap_or_default().to_vec()))
}
