//! Items: size and class of each as `me` tells them, chunks of each class as `stats slabs` does.

use std::collections::BTreeMap;

use steelyard::{
    ErrorKind,
    memcache::{
        Expiry,
        protocol::How,
        slabs::{Classes, Item, Settings},
    },
};

use super::{Random, shown, started};
use crate::programs::need;

/// Items of all sizes at which something changes, and some between.
fn edges(classes: &Classes, random: &mut Random) -> Vec<Item> {
    let settings = classes.settings();
    let mut items = Vec::new();
    let mut at = |total: u64, random: &mut Random| {
        let any = 6 + random.below(245);
        let key = [6, 20, 250, any][random.below(4) as usize];
        let flags = random.below(2) == 0;
        let head = Item { key, value: 0, flags }.total(settings);
        if let Some(value) = total.checked_sub(head) {
            items.push(Item { key, value, flags });
        }
    };
    for class in classes.all() {
        for total in class.chunk - 1..=class.chunk + 1 {
            for _ in 0..3 {
                at(total, random);
            }
        }
    }
    for total in settings.item_max - 2..=settings.item_max {
        (0..4).for_each(|_| at(total, random));
    }
    for _ in 0..600 {
        let total = 70 + (random.share().powi(6) * (settings.item_max - 70) as f64) as u64;
        at(total, random);
    }
    // Around the ends of pieces.
    let largest = settings.largest();
    let most = settings.item_max / largest;
    for pieces in (1..most).step_by((most as usize / 16).max(1)) {
        for more in [0, 1, 2, 40, 47, 48, 49, 96] {
            at(largest + pieces * (largest - 48) + more, random);
        }
    }
    items
}

#[test]
fn size_class_and_chunks_are_those_of_the_server() {
    let plain = Settings { memory: 1024, ..Settings::default() };
    let mut seeded = Random(11);
    let mut placed_in_all = 0;
    for settings in [
        plain.clone(),
        Settings { factor: 1.08, ..plain.clone() },
        Settings { factor: 2.0, chunk: 100, ..plain.clone() },
        Settings { cas: false, ..plain.clone() },
        Settings { chunk_max: Some(16 << 10), ..plain.clone() },
        Settings { item_max: 4 << 20, ..plain.clone() },
        Settings { item_max: 4 << 20, chunk_max: Some(64 << 10), factor: 1.5, ..plain.clone() },
        Settings { slab_sizes: Some(vec![100, 200, 333, 1000, 5000, 70_000]), ..plain.clone() },
        Settings { slab_sizes: Some(vec![64, 800, 9000]), cas: false, ..plain.clone() },
    ] {
        let (_server, client) = need!(started(&settings));
        let classes = Classes::new(&settings).unwrap();
        let mut chunks: BTreeMap<usize, u64> = BTreeMap::new();
        for (n, item) in edges(&classes, &mut seeded).into_iter().enumerate() {
            let key = format!("{n:0width$}", width = item.key as usize);
            let value = vec![b'v'; item.value as usize];
            let flags = u32::from(item.flags);
            let stored = steelyard::memcache::Item { bytes: &value, flags, expiry: Expiry::Never };
            let done = client.store(How::Set, &key, stored);
            let Some(placement) = item.placed(&classes) else {
                assert_eq!(done.unwrap_err().kind(), ErrorKind::TooLarge, "{item:?} {settings:?}");
                continue;
            };
            done.unwrap_or_else(|e| panic!("{item:?} {settings:?}: {e}"));
            let says = client.debug(&key).unwrap().expect("it was stored");
            let number = |name: &str| {
                let word = says.split(' ').find_map(|word| word.strip_prefix(name));
                word.and_then(|number| number.parse::<u64>().ok()).unwrap()
            };
            let there = (number("size="), number("cls=") as usize);
            assert_eq!(there, (placement.total, placement.counted), "{item:?} {settings:?}");
            for (class, count) in placement.chunks {
                *chunks.entry(class).or_default() += count;
            }
            placed_in_all += 1;
        }
        let there = shown(&client, "used_chunks");
        assert_eq!(there, chunks.into_iter().collect::<Vec<_>>(), "{settings:?}");
        // One byte more than the most is refused.
        let head = Item::new(6, 0).total(&settings);
        let over = Item::new(6, settings.item_max - head + 1);
        assert_eq!(over.placed(&classes), None);
        let value = vec![0; over.value as usize];
        assert!(client.set("sixsix", value, Expiry::Never).is_err());
    }
    println!("{placed_in_all} items");
    assert!(placed_in_all > 7000, "{placed_in_all}");
}
