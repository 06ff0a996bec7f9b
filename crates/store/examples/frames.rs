//! How fast a file's records are found: `cargo run --release -p steelyard-store --example frames FILE [FORMAT]`.

use std::time::Instant;

use steelyard_store::{
    Result,
    file::{Frames, Reading},
};

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "-".into());
    let format = std::env::args().nth(2).map(|f| f.parse()).transpose()?;
    let start = Instant::now();
    let mut frames = Frames::open(&name, &Reading { format, ..Default::default() })?;
    let (mut records, mut bytes, mut bad) = (0u64, 0, 0);
    while let Some(frame) = frames.next()? {
        records += 1;
        bytes += frame.bytes.len();
        bad += u64::from(frame.bad.is_some());
    }
    let seconds = start.elapsed().as_secs_f64();
    let speed = bytes as f64 / 1e6 / seconds;
    println!("{records} records ({bad} bad), {bytes} bytes, {seconds:.3} s, {speed:.0} MB/s");
    Ok(())
}
