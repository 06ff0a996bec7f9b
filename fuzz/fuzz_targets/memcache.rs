//! Any bytes as what a memcached answers: to single calls, to batches, to quiet ones.
#![no_main]

use steelyard::memcache::{
    Dialect, Keys,
    protocol::{
        Call, Exchange, GetMany, How, Input, Many, One, Op, Quiet, Sent,
        reply::{Marks, Parsed, parse},
    },
};

/// Hands the bytes to an exchange in pieces, until it has enough or they are used up.
fn feed(mut exchange: impl Exchange, mut bytes: &[u8], piece: usize) {
    let mut out = Vec::new();
    while !exchange.written() {
        out.clear();
        exchange.write(&mut out);
    }
    let mut input = Input::default();
    while !bytes.is_empty() {
        let room = input.room();
        let n = bytes.len().min(piece).min(room.len());
        room[..n].copy_from_slice(&bytes[..n]);
        input.filled(n);
        bytes = &bytes[n..];
        // Limits come before allocations.
        assert!(input.capacity() < 2 << 20);
        if !matches!(exchange.read(&mut input), Ok(false)) {
            return;
        }
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let piece = if first & 1 == 0 { 1 << 20 } else { usize::from(first >> 1) + 1 };
    if let Ok(Parsed::Whole(_, used)) = parse(bytes, 1 << 16) {
        assert!(used <= bytes.len());
    }
    let keys = Keys::new(b"n:", true).expect("a namespace");
    let names: [&[u8]; 4] = [b"a", b"b", &[b'x'; 300], b"c d"];
    let forms = names.map(|name| keys.form(name).expect("a key"));
    let ops = [
        Op::Get { cas: true },
        Op::Fetch { lease: 1, recache: 1 },
        Op::Store { how: How::Add, value: b"v", flags: 1, expiry: 1, cas: Some(1) },
        Op::Count { up: true, by: 1, initial: None },
        Op::Delete { cas: None, stale: None },
        Op::Debug,
    ];
    for dialect in [Dialect::Meta, Dialect::Classic] {
        let sent = Sent { dialect, keys: &keys, max_value: 1 << 16 };
        for op in ops {
            let call = Call { key: names[0], op };
            feed(One::new(&call, forms[0], sent), bytes, piece);
        }
        let numbers: Vec<_> = forms.iter().copied().enumerate().collect();
        let numbers = &numbers[..if dialect == Dialect::Meta { 4 } else { 3 }];
        let mut seen = [0; 4];
        let found = |n: usize, value: &[u8], _: Marks| {
            assert!(value.len() <= 1 << 16);
            seen[n] += 1;
            assert!(seen[n] == 1, "a key has two values");
        };
        feed(GetMany::new(sent, numbers, |n| names[n], found), bytes, piece);
        let call = |n: usize| Call { key: names[n], op: ops[2] };
        let mut answers = 0;
        feed(Many::new(sent, numbers, call, |_, _| answers += 1), bytes, piece);
        assert!(answers <= numbers.len());
        let mut quiet = Quiet::default();
        numbers.iter().for_each(|(n, form)| quiet.add(&call(*n), *form, &sent));
        quiet.finish();
        feed(quiet, bytes, piece);
    }
});
