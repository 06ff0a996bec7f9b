//! The demonstration: two tenants with people in them, in a temporary folder, on a port of this machine.
//!
//! `cargo run -p steelyard-serve --example demo -- 8080`

use std::sync::Arc;

use steelyard_serve::{Quick, Result};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "8080".into());
    let folder = tempfile::tempdir()?;
    let Quick { gateway, keys } = Quick::demo(folder.path()).await?;
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let address = listener.local_addr()?;
    for (tenant, key) in &keys {
        println!("{tenant}: http://{address}{}", gateway.page_link(key)?);
        println!("        key {}", key.reveal());
    }
    println!("A link is good once, and for ten minutes. Ctrl-C ends the demonstration.");
    let ended = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    steelyard_serve::run(listener, None, Arc::new(gateway), ended).await
}
