//! TLS for the stores: the cryptography library, the trusted certificate authorities, and an encrypted stream.
//! Certificates are always verified.

#[cfg(any(
    feature = "postgres",
    feature = "mysql",
    feature = "redis",
    feature = "memcache-tls"
))]
#[allow(unused_imports)]
pub(crate) use self::client::{Roots, config, over};

/// Makes ring the library for cryptography, unless the program that uses us has chosen one: rustls
/// wants one for the whole process. To be called before a client is made that speaks TLS through it.
pub(crate) fn ready() {
    // An error says that one is chosen already, be it by us.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The file of `?ca=`, which has certificates in it.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where it has none.
pub(crate) fn pem(file: &str) -> crate::Result<Vec<u8>> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let wrong = |e: String| crate::Error::invalid(format!("?ca={file}: {e}"));
    let text = std::fs::read(file).map_err(|e| wrong(e.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found.map_err(|e| wrong(e.to_string()))?.is_empty() {
        true => Err(wrong("no certificate in it".into())),
        false => Ok(text),
    }
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis", feature = "memcache-tls"))]
mod client {
    use std::sync::Arc;

    use rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    };
    use tokio_rustls::TlsConnector;

    use crate::{Error, Result, store::net::Stream};

    /// Whose certificates are trusted.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum Roots<'a> {
        /// The authorities in this file, and no others.
        File(&'a str),
        /// The authorities that browsers trust.
        Web,
        /// The authorities that this machine trusts.
        System,
    }

    /// What TLS connections are made with.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the file holds no certificates.
    pub(crate) fn config(roots: Roots<'_>) -> Result<ClientConfig> {
        let roots = match roots {
            Roots::Web => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
            Roots::System => system(),
            Roots::File(file) => of_file(file)?,
        };
        // Named, so that it does not matter what else the program has for cryptography.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Ok(ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::unsupported(e.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth())
    }

    fn of_file(file: &str) -> Result<RootCertStore> {
        let wrong = |e: String| Error::invalid(format!("?ca={file}: {e}"));
        let mut roots = RootCertStore::empty();
        let found = CertificateDer::pem_file_iter(file).map_err(|e| wrong(e.to_string()))?;
        for certificate in found {
            let certificate = certificate.map_err(|e| wrong(e.to_string()))?;
            roots.add(certificate).map_err(|e| wrong(e.to_string()))?;
        }
        match roots.is_empty() {
            true => Err(wrong("no certificate in it".into())),
            false => Ok(roots),
        }
    }

    #[cfg(feature = "redis")]
    fn system() -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    }

    #[cfg(not(feature = "redis"))]
    fn system() -> RootCertStore {
        webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
    }

    /// The same stream, encrypted, to a server that can prove to be `host`.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a name no certificate can have,
    /// [`Unavailable`](crate::ErrorKind::Unavailable) where the server's is not trusted.
    pub(crate) async fn over(
        stream: Stream,
        host: &str,
        config: Arc<ClientConfig>,
    ) -> Result<Stream> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|e| Error::invalid(format!("{host:?} as the name of a TLS server: {e}")))?;
        let encrypted = TlsConnector::from(config).connect(name, stream).await;
        let encrypted =
            encrypted.map_err(|e| Error::unavailable(format!("TLS failed: {e}")).with_source(e))?;
        Ok(Stream::Tls(Box::new(encrypted)))
    }
}
