//! MARC-in-JSON: our reader agrees with serde_json about what is a record, and what is in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steelyard::{
    format::Format,
    marc::{Record, json},
};

fuzz_target!(|data: &[u8]| {
    let mut ours = Record::new();
    let read = json::read(data, &mut ours, &mut Vec::new());
    let theirs = Format::Json.decode::<Record>(data);
    if let (Ok(()), Ok(theirs)) = (&read, &theirs) {
        assert_eq!(&ours, theirs);
    }
    if read.is_ok() {
        let mut out = Vec::new();
        json::write(ours.as_ref(), &mut out).expect("what came from JSON is UTF-8");
        let mut again = Record::new();
        json::read(&out, &mut again, &mut Vec::new()).expect("our own JSON");
        assert_eq!(again, ours);
    }
});
