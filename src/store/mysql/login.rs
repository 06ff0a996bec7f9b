//! Logging in over a line, in the ways that need no more than a password's hash. What else a server
//! may want (its public key, another way) is for the client to give.

use std::time::Duration;

use mysql_async::Opts;
use mysql_common::{
    constants::CapabilityFlags as Can,
    io::ParseBuf,
    packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse},
    proto::MySerialize,
};

use super::direct::{End, Kind, Packets, packet, refused, wrong};
use crate::{Error, Result, store::line::Line};

/// What is said where the server does not know the password yet: it will, once the client has
/// logged in.
pub const LATER: &str = "a login for the client, this time";

/// Packets as large as the protocol knows.
const MOST: u32 = 1 << 30;

const NEEDED: Can = Can::CLIENT_PROTOCOL_41
    .union(Can::CLIENT_SECURE_CONNECTION)
    .union(Can::CLIENT_PLUGIN_AUTH)
    .union(Can::CLIENT_DEPRECATE_EOF);

const WANTED: Can = NEEDED
    .union(Can::CLIENT_LONG_PASSWORD)
    .union(Can::CLIENT_TRANSACTIONS)
    .union(Can::CLIENT_MULTI_RESULTS)
    .union(Can::CLIENT_PS_MULTI_RESULTS);

/// Logs in.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) where it is for the client; else of the connection
/// and the server.
pub async fn login(line: &mut Line, options: &Opts, limit: Duration) -> Result<()> {
    let (number, greeting) = heard(line, limit).await?;
    refused(&greeting)?;
    let greeting = ParseBuf(&greeting).parse::<HandshakePacket<'_>>(()).map_err(|_| wrong())?;
    let can = WANTED & (greeting.capabilities() | Can::CLIENT_LONG_PASSWORD);
    if !can.contains(NEEDED) {
        return Err(Error::unsupported("a server that speaks an older protocol"));
    }
    let mut nonce = greeting.scramble_1_ref().to_vec();
    nonce.extend(greeting.scramble_2_ref().unwrap_or_default());
    // Without the zero at its end.
    nonce.resize(20, 0);
    let way = match greeting.auth_plugin() {
        Some(AuthPlugin::CachingSha2Password) => AuthPlugin::CachingSha2Password,
        _ => AuthPlugin::MysqlNativePassword,
    };
    let answer = way.gen_data(options.pass(), &nonce);
    let version = greeting
        .maria_db_server_version_parsed()
        .or_else(|| greeting.server_version_parsed())
        .unwrap_or_default();
    let response = HandshakeResponse::new(
        answer.as_deref(),
        version,
        options.user().map(str::as_bytes),
        options.db_name().map(str::as_bytes),
        Some(way),
        can,
        None,
        MOST,
    );
    packet(line.out(), number.wrapping_add(1), |out| response.serialize(out));
    loop {
        let (number, told) = heard(line, limit).await?;
        refused(&told)?;
        match told[..] {
            [0, ..] => return Ok(()),
            // It knows the password's hash already; what it says next is whether it is right.
            [1, 3] => {}
            [1, 4] => return Err(Error::unsupported(LATER)),
            [0xfe, ..] => {
                let other = || Error::unsupported("another way to log in");
                let asked =
                    ParseBuf(&told).parse::<AuthSwitchRequest<'_>>(()).map_err(|_| other())?;
                let way = asked.auth_plugin();
                if !matches!(way, AuthPlugin::CachingSha2Password | AuthPlugin::MysqlNativePassword)
                {
                    return Err(other());
                }
                let nonce = asked.plugin_data();
                let nonce = nonce.strip_suffix(&[0]).unwrap_or(nonce);
                let answer = way.gen_data(options.pass(), nonce);
                let answer = answer.as_deref().unwrap_or_default();
                packet(line.out(), number.wrapping_add(1), |out| out.extend(answer));
            }
            _ => return Err(wrong()),
        }
    }
}

/// The next packet, and its number.
async fn heard(line: &mut Line, limit: Duration) -> Result<(u8, Vec<u8>)> {
    let mut end = End::new(Kind::One);
    let answer = line.ask("a login", limit, |bytes| end.find(bytes)).await?;
    let number = answer.get(3).copied().unwrap_or_default();
    Ok((number, Packets(answer).next().unwrap_or_default().to_vec()))
}
