//! Registers many tenants in the catalog of a configuration, and prints a key of each.
//!
//!     cargo run --release -p steelyard-serve --example tenants -- steelyard.toml FIRST COUNT
//!
//! The tenants are called `t` and their number, from FIRST on. `scripts/gateway_tenants.py` uses it: through the command
//! line, each would cost the start of a program.

use std::path::Path;

use futures_util::{StreamExt, TryStreamExt, stream};
use steelyard_serve::{Config, Error, Result, Scope, TenantLimits, TenantName, Tenants};

/// Tenants that are registered at once.
const AT_ONCE: usize = 16;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, first, count] = &args[..] else {
        return Err(Error::invalid("tenants FILE FIRST COUNT"));
    };
    let number = |text: &str| {
        text.parse::<u32>().map_err(|_| Error::invalid(format!("{text:?} is no number")))
    };
    let (first, count) = (number(first)?, number(count)?);
    let tenants = Tenants::open_or_create(Config::from_file(Path::new(file))?).await?;
    let (tenants, adding) = (&tenants, stream::iter(first..first + count));
    let added = adding.map(|number| async move {
        let name = TenantName::new(&format!("t{number}"))?;
        tenants.add(&name, None, TenantLimits::default()).await?;
        let key = tenants.add_key(&name, Scope::Write, "example").await?;
        println!("{number} {}", key.reveal());
        Ok::<_, Error>(())
    });
    added.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await.map(drop)
}
