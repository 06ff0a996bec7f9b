//! How fast bytes are packed: `cargo run --release -p steelyard-store --example pack PACKING < FILE > PACKED`.

use std::{io, time::Instant};

use steelyard_store::{Result, file::Packer};

fn main() -> Result<()> {
    let packing = std::env::args().nth(1).unwrap_or_else(|| "gzip".into()).parse()?;
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let start = Instant::now();
    let mut packer = Packer::new(packing, io::stdout(), threads)?;
    let bytes = io::copy(&mut io::stdin().lock(), &mut packer)?;
    packer.finish()?;
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{bytes} bytes, {seconds:.3} s, {:.0} MB/s", bytes as f64 / 1e6 / seconds);
    Ok(())
}
