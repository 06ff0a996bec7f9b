//! TLS, with a certificate that we trust and without.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use steelyard::{
    ErrorKind,
    memcache::{AsyncClient, Client, Expiry, Options},
};

use crate::{
    children::{Child, Command},
    programs::{self, need},
};

/// A memcached that speaks TLS only, killed with its value.
struct Speaking(Child);

impl Drop for Speaking {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Trusts this certificate and no other.
fn trusting(certificate: &str) -> Options {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Options { tls: Some(Arc::new(config)), ..Options::default() }
}

#[tokio::test]
async fn tls_is_spoken_with_whom_is_trusted_only() {
    need!(programs::found("memcached"));
    let help = Command::new("memcached").arg("-h").output().unwrap();
    if !String::from_utf8_lossy(&help.stdout).contains("enable-ssl") {
        return programs::skip("this memcached was built without TLS");
    }
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = need!(programs::certificate(folder.path()));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let files = format!("ssl_chain_cert={certificate},ssl_key={key}");
    let server = Command::new("memcached")
        .args(["-Z", "-o", &files, "-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0"])
        .args(["-u", "root"])
        .spawn();
    let _server = Speaking(server.unwrap());
    super::until("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());

    let address = format!("tls://localhost:{port}");
    let client = AsyncClient::new([&address], trusting(&certificate)).unwrap();
    // More than a record of TLS holds, and many at once.
    let large = vec![b'x'; 300_000];
    client.set("large", &large, Expiry::Never).await.unwrap();
    assert_eq!(client.get("large").await.unwrap().unwrap().bytes, large);
    let items = (0..2000).map(|n| (format!("key{n}"), n.to_string()));
    assert!(client.set_multi(items, Expiry::Never).await.is_empty());
    let keys: Vec<_> = (0..2000).map(|n| format!("key{n}")).collect();
    for (n, found) in client.get_multi(&keys).await.into_iter().enumerate() {
        assert_eq!(found.unwrap().unwrap().bytes, n.to_string().into_bytes());
    }
    // The roots of the web have not signed it.
    let stranger = AsyncClient::new([&address], Options::default()).unwrap();
    let error = stranger.get("large").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(format!("{error:?}").contains("certificate"), "{error:?}");
    // And the client that blocks says that it does not speak it.
    let error = Client::new([&address], trusting(&certificate)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("AsyncClient"), "{error}");
}
