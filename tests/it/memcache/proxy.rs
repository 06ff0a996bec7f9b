//! A wire to a server, in whole or in part: it can hold back, cut, and send what a server does not.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// A server that answers every request by a script, and ends with its value.
pub struct Scripted {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Whether it answers as a memcached that is well.
    well: Arc<AtomicBool>,
}

impl Scripted {
    /// `ill` is given each connection after its first request came in.
    pub fn new(ill: impl Fn(TcpStream) + Send + Sync + 'static) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, well) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stopped, is_well) = (stop.clone(), well.clone());
        let ill = Arc::new(ill);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), ill, well) = (stream, ill.clone(), is_well.clone()) else {
                    return;
                };
                thread::spawn(move || serve(stream, &*ill, &well));
            }
        });
        Scripted { address, stop, well }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// From now on it answers as it should.
    pub fn mend(&self) {
        self.well.store(true, Ordering::SeqCst);
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, ill: &dyn Fn(TcpStream), well: &AtomicBool) {
    let mut bytes = [0; 4096];
    loop {
        let Ok(n @ 1..) = stream.read(&mut bytes) else { return };
        if bytes[..n].starts_with(b"version") {
            // Only who is well is found alive by a probe.
            if !well.load(Ordering::SeqCst) {
                return ill(stream);
            }
            let _ = stream.write_all(b"VERSION 1.6.18\r\n");
        } else if well.load(Ordering::SeqCst) {
            let _ = stream.write_all(b"VA 4 f0\r\nwell\r\n");
        } else {
            return ill(stream);
        }
    }
}

/// Sends a byte at a time, and long pauses between.
pub fn drip(mut stream: TcpStream, text: &[u8], pause: Duration) {
    for byte in text {
        thread::sleep(pause);
        if stream.write_all(&[*byte]).is_err() {
            return;
        }
    }
}

/// Keeps a connection open until the other side closes it.
pub fn hold(mut stream: TcpStream) {
    let mut bytes = [0; 64];
    while let Ok(1..) = stream.read(&mut bytes) {}
}
