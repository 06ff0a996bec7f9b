//! How fast MARC-8 is read and written: `marc8_speed FILE`, a file of ISO 2709 records in MARC-8.
//!
//! Prints records and bytes a second of CPU time of this thread, the best of 9 rounds: reading each
//! record's fields at once, subfield by subfield, with NFC, and writing what was read.
//! Compare with `time yaz-marcdump -f marc8 -t utf8 -o marc FILE > /dev/null`, which also takes the
//! records apart and puts them together again.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use steelyard_marc::marc8::{Decoder, Encoder};

fn cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock of the thread").into()
}

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).expect("usage: marc8_speed FILE");
    let file = std::fs::read(path)?;
    let records: Vec<&[u8]> = file.split_inclusive(|b| *b == 0x1d).collect();
    // The fields: what follows the end of the directory.
    let fields: Vec<&[u8]> = records
        .iter()
        .filter_map(|r| r.iter().position(|b| *b == 0x1e).map(|end| &r[end..]))
        .collect();
    let bytes: usize = records.iter().map(|r| r.len()).sum();
    println!("{} records, {bytes} bytes", records.len());

    let round = |name: &str, work: &mut dyn FnMut()| {
        let times = (0..9).map(|_| {
            let start = cpu();
            work();
            cpu() - start
        });
        let best = times.min().unwrap_or_default().as_secs_f64();
        let (records, megabytes) = (records.len() as f64 / best, bytes as f64 / best / 1e6);
        println!("{name:24} {records:12.0} records/s {megabytes:8.0} MB/s");
    };
    let plain = Decoder::default();
    let nfc = Decoder { nfc: true, ..plain };
    let mut out = Vec::with_capacity(2 * file.len());
    let mut faults = 0;
    for (name, rules) in [("read, fields at once", plain), ("the same, NFC", nfc)] {
        round(name, &mut || {
            out.clear();
            for field in &fields {
                rules.decode(field, &mut out, &mut |_, _| faults += 1);
            }
        });
    }
    let subfields: Vec<&[u8]> =
        fields.iter().flat_map(|f| f.split(|b| (0x1d..=0x1f).contains(b))).collect();
    for (name, rules) in [("read, by subfields", plain), ("the same, NFC", nfc)] {
        round(name, &mut || {
            out.clear();
            for subfield in &subfields {
                rules.decode(subfield, &mut out, &mut |_, _| faults += 1);
            }
        });
    }
    let texts: Vec<String> = fields
        .iter()
        .map(|field| {
            out.clear();
            plain.decode(field, &mut out, &mut |_, _| ());
            String::from_utf8_lossy(&out).into_owned()
        })
        .collect();
    round("write, fields at once", &mut || {
        out.clear();
        for text in &texts {
            Encoder::default().encode(text, &mut out, &mut |_, _| faults += 1);
        }
    });
    round("(copied)", &mut || {
        out.clear();
        fields.iter().for_each(|field| out.extend_from_slice(field));
        std::hint::black_box(&out);
    });
    println!("{faults} faults in all rounds");
    Ok(())
}
