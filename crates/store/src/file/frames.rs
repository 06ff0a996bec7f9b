//! The records of a file, one after another.

use std::{
    fs::File,
    io::{self, Cursor, Read, Seek, SeekFrom},
};

use super::{
    Packing, Part, Unpacker, kind::format_of, part::Border, unpack::into_error, usual_threads,
};
use crate::{
    Error, Result,
    format::{
        Framing, Wrapped,
        framing::{Framer, MAX_RECORD, Next},
    },
    marc::{Trouble, TroubleKind, xml},
};

/// How to read a file; what is not said, its name and its bytes tell.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The format of its records.
    pub format: Option<Wrapped>,
    /// What the whole file is packed with.
    pub packing: Option<Packing>,
    /// Only a part of its records.
    pub part: Option<Part>,
    /// The size of the largest record to be read, in bytes; larger ones are bad.
    pub max_record: usize,
    /// With how many threads to unpack it, where it has parts for several.
    pub threads: usize,
}

impl Default for Reading {
    fn default() -> Self {
        Reading {
            format: None,
            packing: None,
            part: None,
            max_record: MAX_RECORD,
            threads: usual_threads(),
        }
    }
}

/// One record's bytes, where they lie, and what is wrong with them.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The bytes, as their format has them, still wrapped.
    pub bytes: &'a [u8],
    /// Where they begin in the file, unpacked.
    pub offset: u64,
    /// The record's number, from 1; bad ones count. In a part that is a range of the file, from
    /// the beginning of the part.
    pub number: u64,
    /// Set where these bytes are no record, or too large a one; reading can go on.
    pub bad: Option<Error>,
}

/// Reads records from a file, with one buffer that is used again and again.
///
/// ```no_run
/// use steelyard_store::{file::{Frames, Reading}, format::Coder, marc::Record};
/// let mut frames = Frames::open("catalog.mrc.gz", &Reading::default())?;
/// let (mut coder, mut record) = (Coder::new(frames.format().clone())?, Record::new());
/// while let Some(frame) = frames.next()? {
///     coder.decode_marc(frame.bytes, &mut record)?;
/// }
/// # Ok::<(), steelyard_store::Error>(())
/// ```
pub struct Frames {
    input: Box<dyn Read + Send>,
    name: String,
    wrapped: Wrapped,
    packing: Packing,
    framer: Framer,
    /// Where every n-th record is taken.
    part: Option<Part>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
    /// Where `bytes` begins in the file.
    base: u64,
    number: u64,
    /// A record with what makes it whole before it: a CSV row under its header.
    whole: Vec<u8>,
    notes: Vec<Trouble>,
    size: Option<u64>,
}

/// How much is read at once.
const BLOCK: usize = 512 << 10;
/// How many bytes are looked at to tell what a file is.
const HEAD: usize = 256;

impl Frames {
    /// Opens the file of this name; `-` is the standard input.
    ///
    /// # Errors
    /// Where it cannot be opened or its format cannot be told.
    pub fn open(name: &str, reading: &Reading) -> Result<Frames> {
        let open = || -> Result<Frames> {
            if name == "-" {
                return Frames::begin(Box::new(io::stdin()), name, None, reading);
            }
            let file = File::open(name)?;
            let meta = file.metadata()?;
            if meta.is_dir() {
                return Err(Error::invalid("a folder, not a file of records"));
            }
            let size = meta.is_file().then_some(meta.len());
            Frames::begin(Box::new(file), name, size, reading)
        };
        open().map_err(|e| e.in_place(name))
    }

    /// Reads records from anything. Its name is used in errors, and to tell what it is.
    ///
    /// # Errors
    /// As [`open`](Frames::open).
    pub fn new(input: impl Read + Send + 'static, name: &str, reading: &Reading) -> Result<Frames> {
        Frames::begin(Box::new(input), name, None, reading).map_err(|e| e.in_place(name))
    }

    /// `size` is set where `name` is that of an ordinary file.
    fn begin(
        mut input: Box<dyn Read + Send>,
        name: &str,
        size: Option<u64>,
        reading: &Reading,
    ) -> Result<Frames> {
        let mut head = Vec::new();
        input.by_ref().take(4).read_to_end(&mut head)?;
        let packing = match reading.packing {
            Some(packing) => packing,
            None => Packing::by_content(&head),
        };
        let input = Cursor::new(head).chain(input);
        let input: Box<dyn Read + Send> = match packing {
            Packing::Plain => Box::new(input),
            packing => Box::new(Unpacker::new(packing, input, reading.threads)?),
        };
        let wrapped = match &reading.format {
            Some(wrapped) => wrapped.clone(),
            // Told by the first bytes, below.
            None => Wrapped::from(crate::format::Format::Json),
        };
        let mut frames = Frames {
            input,
            name: name.to_owned(),
            framer: Framer::new(&wrapped)?,
            wrapped,
            packing,
            part: reading.part,
            bytes: vec![0; BLOCK],
            start: 0,
            end: 0,
            eof: false,
            base: 0,
            number: 0,
            whole: Vec::new(),
            notes: Vec::new(),
            size: size.filter(|_| packing == Packing::Plain),
        };
        if reading.format.is_none() || frames.is_xml() {
            while frames.end < HEAD && !frames.eof {
                frames.fill()?;
            }
        }
        if reading.format.is_none() {
            frames.wrapped = match frames.end {
                // An empty file has no records, whatever their format.
                0 => super::kind::format_by_name(name).unwrap_or(frames.wrapped),
                end => format_of(name, &frames.bytes[..end.min(HEAD)])?,
            };
        }
        frames.framer = Framer::new(&frames.wrapped)?.with_limit(reading.max_record);
        let utf8 = frames.transcode()?;
        if let (Some(part), Some(size), Packing::Plain, true) = (reading.part, size, packing, utf8)
        {
            frames.narrow(part, size, reading.max_record)?;
        }
        Ok(frames)
    }

    fn is_xml(&self) -> bool {
        self.wrapped.wraps.is_empty() && self.wrapped.framing() == Framing::Elements
    }

    /// Makes XML in another encoding UTF-8; says whether it was that before.
    fn transcode(&mut self) -> Result<bool> {
        if !self.is_xml() {
            return Ok(true);
        }
        let head = &self.bytes[..self.end.min(HEAD)];
        match xml::encoding(head, &mut self.notes)? {
            xml::Encoding::Utf8 => Ok(true),
            xml::Encoding::Latin1 => {
                let head = self.bytes[..self.end].to_vec();
                let rest = std::mem::replace(&mut self.input, Box::new(io::empty()));
                self.input = Box::new(Latin1::new(Cursor::new(head).chain(rest)));
                (self.start, self.end, self.eof) = (0, 0, false);
                Ok(false)
            }
        }
    }

    /// Reads only the range of the file that is this part of it, where there are such ranges.
    fn narrow(&mut self, part: Part, size: u64, limit: usize) -> Result<()> {
        let mut file = File::open(&self.name)?;
        let lines = self.has_lines()?;
        let Some(border) = Border::of(&self.wrapped, lines) else { return Ok(()) };
        let range = part.range(&mut file, size, border)?;
        file.seek(SeekFrom::Start(range.start))?;
        self.input = Box::new(file.take(range.end - range.start));
        // The end of the element around records belongs to the whole of it only.
        if range.start > 0 || (self.is_xml() && range.end < size) {
            self.framer = Framer::within(&self.wrapped)?.with_limit(limit);
        }
        (self.start, self.end, self.eof) = (0, 0, false);
        self.base = range.start;
        self.part = None;
        Ok(())
    }

    /// True where the file is known to have one record a line, which its first record shows.
    fn has_lines(&mut self) -> Result<bool> {
        if self.wrapped.framing() != Framing::Lines {
            return Ok(false);
        }
        let mut framer = Framer::new(&self.wrapped)?;
        let mut at = self.start;
        loop {
            match framer.next(&self.bytes[at..self.end], self.eof) {
                Next::Skip(n) => at += n,
                // What does not show within what was read at once is taken for what it is not.
                Next::More if self.eof || self.end == self.bytes.len() => return Ok(false),
                Next::More => self.fill()?,
                _ => return Ok(framer.is_lines()),
            }
        }
    }

    /// The format of the records.
    pub fn format(&self) -> &Wrapped {
        &self.wrapped
    }

    /// What the whole file is packed with.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// The name the file was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's size in bytes, where it is known and is also how many will be read.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// How many bytes were read so far, unpacked.
    pub fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// What was odd about the file as a whole.
    pub fn notes(&self) -> &[Trouble] {
        &self.notes
    }

    /// The next record; `None` after the last. A bad one is no error, see [`Frame::bad`].
    ///
    /// # Errors
    /// Where the file cannot be read any further: the disk, or damage to its packing.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>> {
        loop {
            let offset = self.offset();
            match self.framer.next(&self.bytes[self.start..self.end], self.eof) {
                Next::Record { range, next } => {
                    let start = self.start + range.start;
                    let end = self.start + range.end;
                    self.start += next;
                    self.number += 1;
                    if self.part.is_some_and(|part| !part.has(self.number)) {
                        continue;
                    }
                    let offset = offset + range.start as u64;
                    let mut bytes = &self.bytes[start..end];
                    let head = self.framer.head();
                    if !head.is_empty() {
                        self.whole.clear();
                        self.whole.extend_from_slice(head);
                        self.whole.extend_from_slice(bytes);
                        bytes = &self.whole;
                    }
                    return Ok(Some(Frame { bytes, offset, number: self.number, bad: None }));
                }
                Next::Skip(len) => self.start += len,
                Next::Bad { len, before, error } => {
                    let offset = offset - before;
                    let start = self.start;
                    self.start += len;
                    self.number += 1;
                    if self.part.is_some_and(|part| !part.has(self.number)) {
                        continue;
                    }
                    let error = error.at(offset).at_record(self.number).in_place(&*self.name);
                    return Ok(Some(Frame {
                        bytes: &self.bytes[start..start + len],
                        offset,
                        number: self.number,
                        bad: Some(error),
                    }));
                }
                Next::More => self.fill().map_err(|e| e.at(offset).in_place(&*self.name))?,
                Next::End => {
                    self.note_padding();
                    return Ok(None);
                }
            }
        }
    }

    /// Notes zeros at the end, once.
    fn note_padding(&mut self) {
        if let Some(run) = self.framer.padding()
            && !self.notes.iter().any(|note| note.kind == TroubleKind::Padding)
        {
            let at = self.offset() - run;
            let mut note = Trouble::new(TroubleKind::Padding, 0, format!("{run} bytes"));
            note.offset = at;
            self.notes.push(note);
        }
    }

    /// Reads on behind what is there.
    fn fill(&mut self) -> Result<()> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.bytes[self.end..]) {
                Ok(n) => {
                    self.end += n;
                    self.eof = n == 0;
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(into_error(e)),
            }
        }
    }
}

/// Bytes in ISO 8859-1, read as UTF-8.
struct Latin1<R> {
    input: R,
    block: Vec<u8>,
    utf8: Vec<u8>,
    at: usize,
}

impl<R: Read> Latin1<R> {
    fn new(input: R) -> Self {
        Latin1 { input, block: vec![0; 64 << 10], utf8: Vec::new(), at: 0 }
    }
}

impl<R: Read> Read for Latin1<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.utf8.len() {
            let n = self.input.read(&mut self.block)?;
            (self.at, self.utf8) = (0, std::mem::take(&mut self.utf8));
            self.utf8.clear();
            xml::latin1_to_utf8(&self.block[..n], &mut self.utf8);
        }
        let n = out.len().min(self.utf8.len() - self.at);
        out[..n].copy_from_slice(&self.utf8[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
