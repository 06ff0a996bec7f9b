//! Records from files and to files, as a program does it that takes them one by one.

use std::{
    fs::File,
    io::{BufReader, Read, Write},
    path::Path,
};

use super::records::Item;
use crate::{
    Error, Result,
    bench::run::Counts,
    format::{
        Format, Wrapped,
        framing::{Framer, Glue, Next},
    },
};

/// Bytes read or written at a time.
const BLOCK: usize = 256 << 10;
/// The levels of the tools of these names.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// What is around a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pack {
    Plain,
    Gzip,
    Zstd,
}

impl Pack {
    pub(super) const ALL: [Pack; 3] = [Pack::Plain, Pack::Gzip, Pack::Zstd];

    /// The name of the wrap; nothing for none.
    pub(super) fn name(self) -> &'static str {
        match self {
            Pack::Plain => "",
            Pack::Gzip => "gzip",
            Pack::Zstd => "zstd",
        }
    }
}

/// Reads the first `limit` records of a file, each into `record`.
pub(super) fn read<I: Item>(
    path: &Path,
    pack: Pack,
    format: Format,
    limit: u64,
    record: &mut I,
    mut each: impl FnMut(&I),
) -> Result<Counts> {
    let file = File::open(path)?;
    let mut source: Box<dyn Read> = match pack {
        Pack::Plain => Box::new(file),
        Pack::Gzip => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BLOCK, file)))
        }
        Pack::Zstd => Box::new(zstd::Decoder::with_buffer(BufReader::with_capacity(BLOCK, file))?),
    };
    let mut framer = Framer::new(&Wrapped::from(format))?;
    let mut counts = Counts::default();
    let (mut buffer, mut at, mut eof) = (Vec::with_capacity(2 * BLOCK), 0, false);
    let mut whole = Vec::new();
    while counts.done < limit {
        match framer.next(&buffer[at..], eof) {
            Next::Record { range, next } => {
                let bytes = &buffer[at + range.start..at + range.end];
                counts.bytes += range.len() as u64;
                match framer.head() {
                    [] => record.decode(format, bytes)?,
                    head => {
                        whole.clear();
                        whole.extend_from_slice(head);
                        whole.extend_from_slice(bytes);
                        record.decode(format, &whole)?;
                    }
                }
                each(record);
                counts.done += 1;
                counts.items += record.parts();
                at += next;
            }
            Next::Skip(n) => at += n,
            Next::Bad { error, .. } => return Err(error),
            Next::More if eof => return Err(Error::malformed("the file ends inside a record")),
            Next::More => {
                buffer.drain(..at);
                at = 0;
                eof = source.by_ref().take(BLOCK as u64).read_to_end(&mut buffer)? == 0;
            }
            Next::End => break,
        }
    }
    Ok(counts)
}

/// Writes the records to a new file and closes it, unsynced. The bytes counted are those before
/// compression.
pub(super) fn write<'a, I: Item + 'a>(
    path: &Path,
    pack: Pack,
    format: Format,
    records: impl Iterator<Item = &'a I>,
) -> Result<Counts> {
    let file = File::create(path)?;
    match pack {
        Pack::Plain => write_to(file, format, records).map(|(counts, _)| counts),
        Pack::Gzip => {
            let level = flate2::Compression::new(GZIP_LEVEL);
            let packed = flate2::write::GzEncoder::new(file, level);
            let (counts, packed) = write_to(packed, format, records)?;
            packed.finish()?;
            Ok(counts)
        }
        Pack::Zstd => {
            let packed = zstd::Encoder::new(file, ZSTD_LEVEL)?;
            let (counts, packed) = write_to(packed, format, records)?;
            packed.finish()?;
            Ok(counts)
        }
    }
}

fn write_to<'a, I: Item + 'a, W: Write>(
    mut sink: W,
    format: Format,
    records: impl Iterator<Item = &'a I>,
) -> Result<(Counts, W)> {
    let mut glue = Glue::new(&Wrapped::from(format));
    let mut counts = Counts::default();
    let mut out = Vec::with_capacity(BLOCK + BLOCK / 4);
    for record in records {
        glue.put(&mut out, |out| record.encode(format, out))?;
        counts.done += 1;
        counts.items += record.parts();
        if out.len() >= BLOCK {
            counts.bytes += out.len() as u64;
            sink.write_all(&out)?;
            out.clear();
        }
    }
    glue.finish(&mut out);
    counts.bytes += out.len() as u64;
    sink.write_all(&out)?;
    Ok((counts, sink))
}
