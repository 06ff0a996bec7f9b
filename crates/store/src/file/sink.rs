//! Writing records to a file.

use std::{
    io::{self, Write},
    path::Path,
};

use serde::Serialize;

use super::{Packer, Packing, Shown, Staged, kind::format_by_name, pack::write_all, usual_threads};
use crate::{
    Error, Result,
    format::{Coder, Format, Wrapped, framing::Glue},
    marc::RecordRef,
};

/// How to write a file; what is not said, its name tells.
#[derive(Debug, Clone)]
pub struct Writing {
    /// The format of its records.
    pub format: Option<Wrapped>,
    /// What to pack the whole file with.
    pub packing: Option<Packing>,
    /// Wait at the end until all of it is on the disk.
    pub sync: bool,
    /// With how many threads to pack it.
    pub threads: usize,
}

impl Default for Writing {
    fn default() -> Self {
        Writing { format: None, packing: None, sync: false, threads: usual_threads() }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// How many records.
    pub records: u64,
    /// How many bytes, before packing.
    pub bytes: u64,
}

/// Writes records to a file, which has its name only once it is [finished](Sink::finish).
pub struct Sink {
    coder: Coder,
    glue: Glue,
    /// What is to be written next.
    out: Vec<u8>,
    output: Packer<Target>,
    name: String,
    written: Written,
    /// What was there before stays until this is finished.
    staged: bool,
}

/// How much is written at once.
const BLOCK: usize = 256 << 10;

enum Target {
    Stdout(Shown),
    File(Staged),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Stdout(out) => out.write(bytes),
            Target::File(file) => file.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stdout(out) => out.flush(),
            Target::File(file) => file.flush(),
        }
    }
}

impl Sink {
    /// Begins the file of this name; `-` is the standard output.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where nothing tells its format; else where it cannot
    /// be written.
    pub fn create(name: &str, writing: &Writing) -> Result<Sink> {
        let create = || -> Result<Sink> {
            let wrapped = writing.format.clone().or_else(|| format_by_name(name));
            let wrapped = wrapped.ok_or_else(|| {
                let known: Vec<_> = Format::ALL.iter().map(|f| f.name()).collect();
                Error::invalid(format!(
                    "unknown format: its name has no known extension; choose one: {}",
                    known.join(", ")
                ))
            })?;
            let packing = writing.packing.or(Packing::by_name(name).0).unwrap_or_default();
            let target = match name {
                "-" => Target::Stdout(Shown::of(&wrapped)),
                _ => Target::File(Staged::create(Path::new(name), writing.sync)?),
            };
            let staged = matches!(&target, Target::File(file) if file.is_staged());
            Ok(Sink {
                staged,
                glue: Glue::new(&wrapped),
                coder: Coder::new(wrapped)?,
                out: Vec::with_capacity(BLOCK * 2),
                output: Packer::new(packing, target, writing.threads)?,
                name: name.to_owned(),
                written: Written::default(),
            })
        };
        create().map_err(|e| e.in_place(name))
    }

    /// The format of the records.
    pub fn format(&self) -> &Wrapped {
        self.coder.wrapped()
    }

    /// Whether what was there before stays if this is dropped: not so on standard output, nor for a
    /// device or a pipe.
    pub fn is_staged(&self) -> bool {
        self.staged
    }

    /// What was written so far.
    pub fn written(&self) -> Written {
        self.written
    }

    /// Writes one record.
    ///
    /// # Errors
    /// As [`Coder::encode`]: the record is then left out, and more can be written. An error of
    /// kind [`Io`](crate::ErrorKind::Io) or [`Full`](crate::ErrorKind::Full) is one of the file, which cannot become whole
    /// any more.
    pub fn put<T: Serialize>(&mut self, record: &T) -> Result<()> {
        self.put_with(|coder, out| coder.encode(record, out))
    }

    /// Writes one MARC record.
    ///
    /// # Errors
    /// As [`put`](Sink::put).
    pub fn put_marc(&mut self, record: RecordRef<'_>) -> Result<()> {
        self.put_with(|coder, out| coder.encode_marc(record, out))
    }

    /// Writes one record, whose bytes `encode` appends.
    ///
    /// # Errors
    /// As [`put`](Sink::put).
    pub fn put_with(
        &mut self,
        encode: impl FnOnce(&mut Coder, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let coder = &mut self.coder;
        self.glue.put(&mut self.out, |out| encode(coder, out))?;
        self.written.records += 1;
        match self.out.len() >= BLOCK {
            true => self.write_out(),
            false => Ok(()),
        }
    }

    /// Writes `records` records that other glue has put together already, as it stands
    /// [inside](Glue::inside) a file.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) or [`Full`](crate::ErrorKind::Full) of the file.
    pub fn put_glued(&mut self, bytes: &[u8], records: u64) -> Result<()> {
        self.glue.open(&mut self.out);
        self.write_out()?;
        self.written.bytes += bytes.len() as u64;
        self.written.records += records;
        write_all(&mut self.output, bytes).map_err(|e| e.in_place(&*self.name))
    }

    fn write_out(&mut self) -> Result<()> {
        self.written.bytes += self.out.len() as u64;
        let done = write_all(&mut self.output, &self.out);
        self.out.clear();
        done.map_err(|e| e.in_place(&*self.name))
    }

    /// Leaves what was there before. When it returns, nothing is left of this, whatever threads pack it.
    ///
    /// # Errors
    /// Where it cannot be written: it is then removed later, at the end of the process at the latest.
    pub fn leave(self) -> Result<()> {
        self.output.finish().map(drop).map_err(|e| e.in_place(&*self.name))
    }

    /// Ends the file, and gives it its name.
    ///
    /// # Errors
    /// Where not all of it could be written; there is then no such file, or still the old one.
    pub fn finish(mut self) -> Result<Written> {
        self.glue.finish(&mut self.out);
        self.write_out()?;
        let commit = |output: Packer<Target>| match output.finish()? {
            Target::Stdout(_) => Ok(()),
            Target::File(file) => file.commit(),
        };
        commit(self.output).map_err(|e| e.in_place(&*self.name))?;
        Ok(self.written)
    }
}
