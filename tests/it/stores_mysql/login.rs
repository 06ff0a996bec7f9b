//! What a server that is not the one it seems to be is told at the login.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use steelyard::{ErrorKind, store::open};

use crate::stores::places::run;

const PASSWORD: &str = "sekretpw9";

/// A greeting of the protocol, version 10, whose login is this one.
fn greeting(login: &str) -> Vec<u8> {
    // Protocol 4.1, secure connections, logins by name, no ends of columns.
    let can: u32 = 0x0000_0200 | 0x0000_8000 | 0x0008_0000 | 0x0100_0000;
    let [a, b, c, d] = can.to_le_bytes();
    let mut body = b"\x0a8.0.99\0\x01\0\0\0abcdefgh\0".to_vec();
    body.extend([a, b, 45, 2, 0, c, d, 21]);
    body.extend([0; 10]);
    body.extend(b"ijklmnopqrst\0");
    body.extend(login.as_bytes());
    body.push(0);
    body
}

fn send(line: &mut TcpStream, number: u8, body: &[u8]) {
    let [a, b, c, _] = u32::try_from(body.len()).unwrap().to_le_bytes();
    let packet = [&[a, b, c, number][..], body].concat();
    // It may have hung up.
    let _ = line.write_all(&packet);
}

/// Greets, and answers the login with this; gives all it is sent.
fn told(login: &'static str, answers: Vec<&'static [u8]>) -> (u16, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let mut all = Vec::new();
        let (mut line, _) = listener.accept().unwrap();
        send(&mut line, 0, &greeting(login));
        for (i, answer) in answers.iter().enumerate() {
            let mut head = [0; 4];
            if line.read_exact(&mut head).is_err() {
                return all;
            }
            let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
            line.read_exact(&mut body).unwrap();
            all.extend(body);
            send(&mut line, 2 * u8::try_from(i).unwrap() + 2, answer);
        }
        let _ = line.read_to_end(&mut all);
        all
    });
    (port, server)
}

/// A key of its own would show it the password; a login that only the crate knows would have the crate asked for it.
#[test]
fn nobody_is_told_the_password_without_tls() {
    const KEY: &[u8] = b"\x01-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
    const ASKS: &[u8] = b"\x01\x04";
    let (sha2, native) = ("caching_sha2_password", "mysql_native_password");
    for (login, answers) in [
        (sha2, vec![ASKS]),
        (native, vec![b"\xfemysql_clear_password\0\0"]),
        (native, vec![b"\xfedialog\0\0"]),
        (native, vec![b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0", ASKS]),
        (sha2, vec![KEY]),
    ] {
        let (port, server) = told(login, answers);
        let url = format!("mysql://u:{PASSWORD}@127.0.0.1:{port}/d?timeout=5");
        let error = run(async move { open(&url).await.map(drop) }).unwrap_err();
        let all = server.join().unwrap();
        let holds = |text: &[u8]| all.windows(text.len()).any(|part| part == text);
        assert!(!holds(PASSWORD.as_bytes()), "{login}: {error}");
        // Asking for a key is a packet of one byte, 2: what was sent ends with a name or a hash.
        assert!(all.len() > 30 && all.last() != Some(&2), "{login}: {all:?}");
        let kinds = [ErrorKind::Denied, ErrorKind::Unsupported, ErrorKind::Malformed];
        assert!(kinds.contains(&error.kind()), "{login}: {error:?}");
        assert!(!error.chain().contains(PASSWORD));
    }
}
