//! TLS to PostgreSQL: certificates are always checked.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Error, Result};

/// What makes TLS connections. It trusts the authorities whose certificates are in the file, or
/// those that browsers trust.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where the file holds no certificates.
pub fn connector(file: Option<&str>) -> Result<MakeRustlsConnect> {
    let roots = match file {
        None => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
        Some(file) => {
            let wrong = |e: String| Error::invalid(format!("?ca={file}: {e}"));
            let mut roots = RootCertStore::empty();
            let found = CertificateDer::pem_file_iter(file).map_err(|e| wrong(e.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|e| wrong(e.to_string()))?;
                roots.add(certificate).map_err(|e| wrong(e.to_string()))?;
            }
            match roots.is_empty() {
                true => return Err(wrong("no certificate in it".into())),
                false => roots,
            }
        }
    };
    // Named, so that it does not matter what else the program has for cryptography.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::unsupported(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
