//! Small files that mean gigabytes: a directory whose entries all name one long field, lengths that lie, memos
//! and links, entities. Each is copied and checked in bounded memory, and the program says what is wrong.

use std::os::unix::process::ExitStatusExt;

use super::{Desk, STEELYARD};
use crate::children::Command;

/// How much memory the program may have. The largest of these files has a few megabytes.
const MEMORY: usize = 250 << 20;

/// Records of ISO 2709 whose entries all name the same field.
fn overlapping() -> Vec<u8> {
    let field = [&[b'x'; 9998][..], b"\x1e"].concat();
    let entries = "500999900000".repeat(7000);
    let base = 25 + entries.len();
    let leader = format!("{:05}nam a22{base:05} i 4500", base + field.len() + 1);
    [leader.as_bytes(), entries.as_bytes(), b"\x1e", &field, b"\x1d"].concat().repeat(30)
}

/// One record, too long for its counts, whose entries have no good length and all begin at one field.
fn overlapping_without_lengths() -> Vec<u8> {
    let field = [&vec![b'x'; 1 << 20][..], b"\x1e"].concat();
    let entries = "500000000000".repeat(50_000);
    let base = 25 + entries.len();
    let leader = format!("{:05}nam a22{:05} i 4500", 0, if base > 99_999 { 0 } else { base });
    [leader.as_bytes(), entries.as_bytes(), b"\x1e", &field, b"\x1d"].concat()
}

/// A list in which a text is named again and again.
fn memo(head: &[u8], long: &[u8], again: &[u8], end: &[u8]) -> Vec<u8> {
    [head, long, &again.repeat(20_000), end].concat()
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let ones = [1; 1000];
    let text = [b'x'; 60_000];
    let sized =
        |head: &[u8], length: u32, rest: &[u8]| [head, &length.to_le_bytes(), rest].concat();
    let entities: String = ('b'..='j')
        .map(|name| {
            let before = char::from(name as u8 - 1);
            format!("<!ENTITY {name} \"{}\">", format!("&{before};").repeat(10))
        })
        .collect();
    let xml = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE c [<!ENTITY a \"{}\">{entities}]><collection \
         xmlns=\"http://www.loc.gov/MARC21/slim\"><record><leader>00000nam a2200000 i 4500</leader>\
         <controlfield tag=\"001\">&j;</controlfield></record></collection>",
        "x".repeat(1000)
    );
    let pickled = sized(b"X", text.len() as u32, &text);
    let marshalled = [&b"\"\x03"[..], &(text.len() as u32).to_le_bytes()[..3], &text].concat();
    vec![
        ("overlapping.mrc", overlapping()),
        ("lengthless.mrc", overlapping_without_lengths()),
        ("list.msgpack", [&b"\x81\xa1a\xdd\xff\xff\xff\xff"[..], &ones].concat()),
        ("map.msgpack", [&b"\xdf\xff\xff\xff\xff"[..], &b"\xa1a\x01".repeat(1000)].concat()),
        ("bytes.msgpack", [&b"\x81\xa1a\xc6\xff\xff\xff\xff"[..], &ones].concat()),
        ("list.cbor", [&b"\xa1\x61a\x9b\0\0\0\0\xff\xff\xff\xff"[..], &ones].concat()),
        ("bytes.cbor", [&b"\xa1\x61a\x5b\0\0\x0f\xff\xff\xff\xff\xff"[..], &ones].concat()),
        ("text.bson", sized(b"\xff\xff\xff\x7f\x02a\0", 0x7fff_fff0, &ones)),
        ("list.bson", sized(b"\x64\0\0\0\x04a\0", 0x7fff_fff0, &ones)),
        ("bytes.pickle", sized(b"\x80\x04}\x8c\x01aB", 0xffff_fff0, &ones)),
        ("place.pickle", b"\x80\x04}r\xff\xff\xff\xff\x8c\x01aK\x01s.".to_vec()),
        (
            "memo.pickle",
            memo(b"\x80\x04}\x8c\x01a](", &[&pickled[..], b"q\x01"].concat(), b"h\x01", b"es."),
        ),
        ("list.marshal", [&b"\x04\x08[\x04\xff\xff\xff\x3f"[..], &b"i\x06".repeat(1000)].concat()),
        ("links.marshal", memo(b"\x04\x08{\x06\"\x06a[\x02\x21\x4e", &marshalled, b"@\x07", b"")),
        ("entities.xml", xml.into_bytes()),
        ("open.xml", [b"<collection><record><leader>"[..].to_vec(), vec![b'x'; 4 << 20]].concat()),
        ("lists.json", vec![b'['; 4 << 20]),
        ("maps.json", b"{\"a\":".repeat(1 << 20)),
        ("quote.csv", [b"a,b\n\""[..].to_vec(), vec![b'x'; 4 << 20]].concat()),
    ]
}

#[test]
fn small_files_that_mean_gigabytes_are_read_in_bounded_memory() {
    let desk = Desk::new();
    let mut faults = Vec::new();
    for (name, bytes) in files() {
        desk.write(name, &bytes);
        for arguments in [&["copy", name, "out.json"][..], &["check", name]] {
            let limit = format!("ulimit -d {}; exec \"$0\" \"$@\"", MEMORY >> 10);
            let mut program = Command::new("sh");
            program.args(["-c", &limit, STEELYARD]).args(arguments).env("RUST_BACKTRACE", "0");
            let ended = program.current_dir(desk.path()).output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr);
            let out = String::from_utf8_lossy(&ended.stdout);
            let told = said.contains(name) || out.contains(name);
            let (status, signal) = (ended.status.code(), ended.status.signal());
            if signal.is_some() || !matches!(status, Some(1 | 3)) || !told {
                let said: String = said.chars().take(300).collect();
                faults.push(format!("{arguments:?}: {status:?} {signal:?}: {said}"));
            }
            let written =
                std::fs::metadata(desk.path().join("out.json")).map_or(0, |file| file.len());
            if written > 4 * bytes.len() as u64 + 4096 {
                faults.push(format!("{arguments:?}: {} bytes became {written}", bytes.len()));
            }
            let _ = std::fs::remove_file(desk.path().join("out.json"));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
