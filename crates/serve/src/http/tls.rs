//! TLS with a certificate from files, which are read again when they change.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use rustls::{
    ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use steelyard_base::{Error, Result};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::socket::Io;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// A certificate and its private key, from two files in PEM.
pub struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
}

struct Current {
    acceptor: TlsAcceptor,
    changed: [Option<SystemTime>; 2],
    looked: Instant,
}

impl Certificates {
    /// Reads the files: a chain of certificates, that of the server first, and its private key.
    ///
    /// # Errors
    /// [`Invalid`](steelyard_base::ErrorKind::Invalid), naming the file, where they are not that, or do not belong together.
    pub fn new(certificate: &Path, key: &Path) -> Result<Certificates> {
        let changed = [changed(certificate), changed(key)];
        let current =
            Current { acceptor: read(certificate, key)?, changed, looked: Instant::now() };
        Ok(Certificates {
            certificate: certificate.into(),
            key: key.into(),
            current: Mutex::new(current),
        })
    }

    /// Looks at the files, and reads them if they changed. Where that fails, what was read before stays.
    fn refresh(&self) -> TlsAcceptor {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.looked.elapsed() >= LOOK {
            current.looked = Instant::now();
            self.reload(&mut current);
        }
        current.acceptor.clone()
    }

    fn reload(&self, current: &mut Current) {
        let changed = [changed(&self.certificate), changed(&self.key)];
        if changed == current.changed {
            return;
        }
        // Both files are written one after the other: a pair that does not fit is tried again at the next look.
        match read(&self.certificate, &self.key) {
            Ok(acceptor) => {
                tracing::info!(target: "gateway", "the certificate was read again");
                (current.acceptor, current.changed) = (acceptor, changed);
            }
            Err(e) => {
                tracing::warn!(target: "gateway", error = e.chain(), "the old certificate stays")
            }
        }
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<Box<dyn Io>> {
        Ok(Box::new(self.refresh().accept(stream).await?))
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

fn read(certificate: &Path, key: &Path) -> Result<TlsAcceptor> {
    let wrong = |path: &Path, e: String| Error::invalid(e).in_place(path.display().to_string());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    let chain = chain.map_err(|e| wrong(certificate, e.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "no certificate in it".into()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(key, e.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::unsupported(e.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|e| {
            wrong(certificate, format!("not a certificate of the key in {}: {e}", key.display()))
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
