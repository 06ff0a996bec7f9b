//! TLS of stores whose servers have none here: a front that encrypts stands before each. `?ca=` names the authority,
//! and no other is trusted.

use std::{net::Ipv4Addr, sync::Arc};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use steelyard::{
    record::dataset::Dataset,
    server::{Server, Wish},
    store::{self, Key, Layout, Row},
};
use tokio::net::{TcpListener, TcpStream};

use crate::programs::{self, need};

/// A port that speaks TLS with this certificate and passes on what comes to another.
async fn front(certificate: &str, key: &str, to: u16) -> u16 {
    let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Who does not trust the certificate hangs up.
                // Not a skip.
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut inner = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut inner).await;
            });
        }
    });
    port
}

/// The port of a server's URL.
fn port(server: &Server) -> u16 {
    let (_, rest) = server.url().split_once("127.0.0.1:").unwrap();
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// Writes a record, and reads it.
async fn kept(url: &str) -> steelyard::Result<()> {
    let place = store::open(url).await?;
    place.prepare(&Layout::plain()).await?;
    let key = Key::new("encrypted")?;
    let record = Dataset::Users.document(1, 1).expect("a record");
    place.put(&[Row { key: key.clone(), record }]).await?;
    assert!(place.get(&[key]).await?[0].is_some());
    Ok(())
}

#[tokio::test]
async fn an_authority_is_named_and_no_other_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = need!(programs::certificate(folder.path()));
    let others = tempfile::tempdir().unwrap();
    let (other, _) = programs::certificate(others.path()).unwrap();
    let empty = folder.path().join("empty").display().to_string();
    std::fs::write(&empty, "no certificate").unwrap();
    for (name, plain, secure) in [
        ("couchdb", "couchdb://", "couchdbs://"),
        ("s3", "endpoint=http://", "endpoint=https://"),
        ("memcached", "memcached://", "memcacheds://"),
        ("redis", "redis://", "rediss://"),
    ] {
        let server = need!(programs::server(name, &Wish::default()), continue);
        let port = (port(&server), front(&certificate, &key, port(&server)).await);
        let url = server.url().replace(plain, secure);
        let url = url.replace(&format!(":{}", port.0), &format!(":{}", port.1));
        assert_ne!(url, server.url());
        let sign = if url.contains('?') { '&' } else { '?' };
        let with = |ca: &str| format!("{url}{sign}ca={ca}");
        kept(&with(&certificate)).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert!(kept(&url).await.is_err(), "{name}: nobody knows this authority");
        assert!(kept(&with(&other)).await.is_err(), "{name}: another authority");
        for wrong in [&empty, "/nonexistent"] {
            let error = kept(&with(wrong)).await.unwrap_err().to_string();
            assert!(error.contains(&format!("?ca={wrong}")), "{name}: {error}");
        }
        // Where nothing is encrypted, an authority is a slip.
        let sign = if server.url().contains('?') { '&' } else { '?' };
        let error = kept(&format!("{}{sign}ca={certificate}", server.url())).await.unwrap_err();
        assert!(error.to_string().contains("?ca= needs"), "{name}: {error}");
    }
}
