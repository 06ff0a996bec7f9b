//! ISO 2709 under attack: whatever the bytes, nothing panics and nothing vanishes.

mod junk;

use proptest::prelude::*;
use steelyard::marc::{
    Frame, Record, Severity, TroubleKind,
    iso2709::{self, Reader, Records},
};

/// Two sound records: a plain one, and one with subfields and non-ASCII text.
fn sample() -> Vec<u8> {
    let mut record = Record::new();
    record.push_plain(*b"001", b"42").unwrap();
    record.push_plain(*b"008", b"851231s1985    xx            000 0 eng d").unwrap();
    let mut out = Vec::new();
    iso2709::write(record.as_ref(), &mut out);
    let title: &[(u8, &[u8])] =
        &[(b'a', "Gewichte und Maße /".as_bytes()), (b'c', b"A. Steelyard.")];
    record.push_data(*b"245", *b"10", title).unwrap();
    record.push_data(*b"650", *b" 0", &[(b'a', b"Scales"), (b'x', b"")]).unwrap();
    iso2709::write(record.as_ref(), &mut out);
    out
}

/// True for what may stand between records without a word.
fn is_between(byte: &u8) -> bool {
    b"\r\n\0\x1a".contains(byte)
}

/// What was read: raw bytes, whether there was a record, troubles as text.
fn read_all(data: &[u8]) -> Vec<(Vec<u8>, Option<Record>, Vec<String>)> {
    let mut records = Records::new(data);
    let mut all = Vec::new();
    while let Some(item) = records.next() {
        let troubles = item.troubles.iter().map(|t| t.to_string()).collect();
        all.push((item.raw.to_vec(), item.record.map(|r| r.to_record()), troubles));
    }
    all
}

/// A reader that gives a few bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl std::io::Read for Drip<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.len().min(buf.len()).min(self.1);
        buf[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

proptest! {
    /// Damaged anywhere, every byte is still in exactly one record or between records, what is
    /// called sound is written back as it stood, and a stream gives what a slice gives.
    #[test]
    fn damage_loses_nothing(
        changes in prop::collection::vec((0usize..400, prop_oneof![any::<u8>(), 0x1du8..0x20, b'0'..=b'9']), 0..8),
        cut in prop::option::of(0usize..400),
        drip in 1usize..300,
    ) {
        let mut data = sample();
        for (at, byte) in changes {
            let at = at % data.len();
            data[at] = byte;
        }
        if let Some(cut) = cut {
            data.truncate(cut % data.len());
        }
        let mut covered = 0;
        let mut records = Records::new(&data);
        while let Some(item) = records.next() {
            let at = item.offset as usize;
            let junk = item.troubles.iter().find(|t| t.kind == TroubleKind::Junk);
            let told = junk.map_or(at, |t| t.offset as usize);
            prop_assert!(data[covered..told].iter().all(is_between));
            prop_assert_eq!(item.raw, &data[at..at + item.raw.len()]);
            covered = at + item.raw.len();
            match item.record {
                None => prop_assert_eq!(item.severity(), Some(Severity::Lost)),
                Some(record) if record.raw().is_some() => {
                    let mut again = Vec::new();
                    iso2709::write(record.to_record().as_ref(), &mut again);
                    // The layout in the leader is written as it is, or as the standard one.
                    if &item.raw[20..23] == b"450" || !item.raw[20..23].iter().all(u8::is_ascii_digit) {
                        prop_assert_eq!(&again[..], item.raw);
                    }
                }
                Some(_) => prop_assert!(item.severity() >= Some(Severity::Repaired)),
            }
            for t in item.troubles {
                prop_assert!(t.offset <= data.len() as u64);
            }
        }
        prop_assert!(data[covered..].iter().all(is_between));

        let mut reader = Reader::new(Drip(&data, drip));
        let mut streamed = Vec::new();
        while let Some(item) = reader.next().unwrap() {
            let troubles = item.troubles.iter().map(|t| t.to_string()).collect();
            streamed.push((item.raw.to_vec(), item.record.map(|r| r.to_record()), troubles));
        }
        prop_assert_eq!(streamed, read_all(&data));
    }

    /// One record by itself is read as it is among others.
    #[test]
    fn one_is_as_many(changes in prop::collection::vec((0usize..400, any::<u8>()), 0..4)) {
        let mut data = sample();
        for (at, byte) in changes {
            let at = at % data.len();
            data[at] = byte;
        }
        for (raw, record, _) in read_all(&data) {
            let (mut own, mut troubles) = (Record::new(), Vec::new());
            let read = iso2709::read(&raw, &mut own, &mut troubles);
            prop_assert_eq!(read.is_ok(), record.is_some());
            if let Some(record) = record {
                prop_assert_eq!(own, record);
            }
        }
    }

    /// Directories of any lengths and places, over fields that have or lack their terminators: the
    /// fields of a record have at most its own bytes, and what is left out is told.
    #[test]
    fn fields_have_no_more_bytes_than_their_record(
        fields in prop::collection::vec(1usize..60, 1..6),
        entries in prop::collection::vec((0usize..6, 0usize..6, any::<bool>()), 1..60),
        widths in prop_oneof![4 => Just((4, 5)), 1 => Just((9, 9))],
    ) {
        let mut starts = vec![0];
        for length in &fields {
            starts.push(starts.last().unwrap() + length + 1);
        }
        let data: Vec<u8> = fields.iter().flat_map(|&n| [&vec![b'x'; n][..], b"\x1e"].concat()).collect();
        let mut directory = String::new();
        let mut named = 0;
        for (from, to, wrong) in entries {
            let (a, b) = (starts[from % starts.len()], starts[to % starts.len()]);
            let length = a.max(b) - a.min(b) + usize::from(wrong);
            named += length;
            directory += &format!("500{length:0w$}{:0v$}", a.min(b), w = widths.0, v = widths.1);
        }
        let base = 25 + directory.len();
        let length = base + data.len() + 1;
        let leader = format!("{length:05}nam a22{base:05} i {}{}00", widths.0, widths.1);
        let raw = [leader.as_bytes(), directory.as_bytes(), b"\x1e", &data, b"\x1d"].concat();
        let mut records = Records::new(&raw);
        while let Some(item) = records.next() {
            let Some(record) = item.record else { continue };
            let sum: usize = record.fields().map(|f| f.bytes().len() + 1).sum();
            prop_assert!(sum <= item.raw.len(), "{} bytes of fields in {}", sum, item.raw.len());
            if record.len() * (3 + widths.0 + widths.1) < directory.len() && named > item.raw.len() {
                prop_assert_eq!(item.severity(), Some(Severity::Lost), "{:?}", item.troubles);
            }
        }
    }

    #[test]
    fn no_bytes_panic(data in prop::collection::vec(prop_oneof![any::<u8>(), 0x1cu8..0x20, b'0'..=b'9'], 0..300)) {
        read_all(&data);
    }
}

#[test]
fn a_record_over_99_999_bytes_is_written_and_read() {
    let mut record = Record::new();
    record.push_plain(*b"001", b"big").unwrap();
    record.push_data(*b"520", *b"  ", &[(b'a', &[b'x'; 12_000])]).unwrap();
    for _ in 0..40 {
        record.push_data(*b"500", *b"  ", &[(b'a', &[b'y'; 3_000])]).unwrap();
    }
    assert!(iso2709::fits(record.as_ref()).is_err());
    let mut data = sample();
    iso2709::write(record.as_ref(), &mut data);
    data.extend(sample());
    let all = read_all(&data);
    assert_eq!(all.len(), 5);
    let (_, big, troubles) = &all[2];
    assert_eq!(big.as_ref().unwrap().as_ref().len(), 42);
    assert!(big.as_ref().unwrap().as_ref().fields().eq_by_bytes(record.as_ref().fields()));
    assert!(troubles.iter().all(|t| t.contains("oversized")), "{troubles:?}");
}

/// Fields compared by tag and bytes.
trait EqByBytes {
    fn eq_by_bytes(self, other: Self) -> bool;
}

impl<'a, I: Iterator<Item = steelyard::marc::FieldRef<'a>>> EqByBytes for I {
    fn eq_by_bytes(self, other: Self) -> bool {
        self.map(|f| (f.tag(), f.bytes())).eq(other.map(|f| (f.tag(), f.bytes())))
    }
}

#[test]
fn a_claim_of_99_999_bytes_reserves_nothing() {
    let data = b"99999nam a2200025 i 4500";
    assert_eq!(iso2709::frame(data, false), Frame::More(0));
    let all = read_all(data);
    assert_eq!(all.len(), 1);
    assert!(all[0].1.is_none());
    assert!(all[0].2[0].contains("truncated"), "{:?}", all[0].2);
}

#[test]
fn one_bad_record_does_not_end_the_file_and_says_where() {
    let (first, second) = (sample(), sample());
    let mut data = first.clone();
    data.extend(b"\r\n00100this is no record at all\x1d");
    data.extend(&second);
    let all = read_all(&data);
    assert_eq!(all.len(), 5);
    assert!(all[2].1.is_none());
    let offset = first.len() + 2;
    assert!(
        all[2].2.iter().any(|t| t.starts_with(&format!("record 3, byte {offset}"))),
        "{:?}",
        all[2].2
    );
    assert!(all[3].1.is_some() && all[4].1.is_some());
}

#[test]
fn a_wrong_length_in_the_leader_is_mended_by_the_terminator() {
    for wrong in ["00030", "00999", "abcde", "     "] {
        let mut data = sample();
        data[..5].copy_from_slice(wrong.as_bytes());
        let all = read_all(&data);
        assert_eq!(all.len(), 2, "{wrong}: {all:?}");
        assert_eq!(all[0].1.as_ref().unwrap().len(), 2, "{wrong}");
        let name = TroubleKind::RecordLength.name();
        assert!(all[0].2[0].contains(name), "{wrong}: {:?}", all[0].2);
    }
}

#[test]
fn a_length_that_spans_two_records_is_found_out() {
    let mut data = sample();
    let both = format!("{:05}", data.len());
    data[..5].copy_from_slice(both.as_bytes());
    let all = read_all(&data);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0].1.as_ref().unwrap().len(), 2);
    assert_eq!(all[1].1.as_ref().unwrap().len(), 4);
}

#[test]
fn fields_that_share_their_bytes_are_written_as_json() {
    // Twenty entries for one field full of quotes.
    let field = [&[b'"'; 11][..], b"\x1e"].concat();
    let entries = "500001200000".repeat(20);
    let base = 25 + entries.len();
    let leader = format!("{:05}nam a22{base:05} i 4500", base + field.len() + 1);
    let data = [leader.as_bytes(), entries.as_bytes(), b"\x1e", &field, b"\x1d"].concat();
    let mut records = Records::new(&data);
    let record = records.next().unwrap().record.unwrap();
    let mut json = Vec::new();
    steelyard::marc::json::write(record, &mut json).unwrap();
    assert_eq!(json.iter().filter(|&&b| b == b'\\').count(), 20 * 11);
}

#[test]
fn fields_beyond_the_bytes_of_their_record_are_left_out_and_told() {
    let field = [&[b'x'; 9998][..], b"\x1e"].concat();
    let entries = "500999900000".repeat(7000);
    let base = 25 + entries.len();
    let leader = format!("{:05}nam a22{base:05} i 4500", base + field.len() + 1);
    let data = [leader.as_bytes(), entries.as_bytes(), b"\x1e", &field, b"\x1d"].concat();
    let mut all = sample();
    let offset = all.len();
    all.extend(&data);
    all.extend(sample());
    let read = read_all(&all);
    assert_eq!(read.len(), 5);
    let (_, record, troubles) = &read[2];
    assert_eq!(record.as_ref().unwrap().len(), data.len() / field.len());
    let place = offset + 24 + 12 * (data.len() / field.len());
    let told = format!(
        "record 3, byte {place}: overlapping-fields: 500: with it the fields have more bytes than \
         the record's {}; {} more entries are left out",
        data.len(),
        7000 - 1 - data.len() / field.len(),
    );
    assert_eq!(troubles[0], told, "{troubles:?}");
    assert!(read[3].1.is_some() && read[4].1.is_some());
}
