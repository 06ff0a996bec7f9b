//! Pages: those of the server, to the page, for distributions of all kinds.

use steelyard::memcache::{
    Expiry,
    slabs::{Census, Classes, Item, Load, Settings},
};

use super::{Random, shown, started};
use crate::programs::need;

/// The length of a value, by the name of a distribution.
fn length(name: &str, random: &mut Random) -> u64 {
    match name {
        "same" => 700,
        "even" => random.below(4000),
        "two" => [60, 2500][usize::from(random.below(10) == 0)],
        // Many small, few large.
        "long tail" => (30.0 / (1.0 - random.share()).powf(0.9)).min(900_000.0) as u64,
        "large" => 20_000 + random.below(700_000),
        other => unreachable!("{other}"),
    }
}

#[test]
fn pages_are_those_of_the_server() {
    let plain = Settings { memory: 1500, ..Settings::default() };
    let mut seeded = Random(5);
    let mut compared = 0;
    for settings in [
        plain.clone(),
        Settings { factor: 1.08, ..plain.clone() },
        Settings { factor: 2.0, chunk: 24, ..plain.clone() },
        Settings { slab_sizes: Some(vec![120, 800, 1600, 3000, 9000, 100_000]), ..plain.clone() },
        Settings { chunk_max: Some(32 << 10), cas: false, ..plain.clone() },
    ] {
        for name in ["same", "even", "two", "long tail", "large"] {
            let (_server, client) = need!(started(&settings));
            let classes = Classes::new(&settings).unwrap();
            let items = if name == "large" { 400 } else { 20_000 };
            let mut census = Census::default();
            let mut writes = client.noblock();
            for n in 0..items {
                let value = vec![b'v'; length(name, &mut seeded) as usize];
                let key = format!("key{n}");
                census.add(Item::new(key.len() as u64, value.len() as u64));
                writes.set(&key, &value, Expiry::Never).unwrap();
            }
            assert!(writes.barrier().is_empty());
            let load = Load::new(&classes, &census);
            let of = |what: fn(&steelyard::memcache::slabs::Usage) -> u64| {
                let all = load.classes.iter().map(|usage| (usage.class.id, what(usage)));
                all.filter(|(_, n)| *n > 0).collect::<Vec<_>>()
            };
            assert_eq!(shown(&client, "used_chunks"), of(|u| u.chunks), "{name} {settings:?}");
            assert_eq!(shown(&client, "total_pages"), of(|u| u.pages), "{name} {settings:?}");
            compared += 1;
        }
    }
    println!("{compared} loads, each to the page");
    assert_eq!(compared, 25);
}
