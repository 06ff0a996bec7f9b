//! Classes: line for line what `memcached -vv` prints, and refused is what it refuses.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use steelyard::memcache::slabs::{Classes, Settings};

use super::{Random, version};
use crate::{
    children::Command,
    programs::{self, need},
};

/// What a server prints of its classes; none where it refuses the settings.
fn printed(settings: &Settings, version: &str) -> Option<Vec<(usize, u64, u64)>> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("memcached");
    command.args(["-vv", "-s"]).arg(folder.path().join("m")).args(settings.arguments(version));
    if nix_is_root() {
        command.args(["-u", "root"]);
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut classes, mut listening) = (Vec::new(), false);
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(rest) = line.strip_prefix("slab class ") {
            let (id, rest) = rest.split_once(": chunk size ").unwrap();
            let (chunk, per_page) = rest.split_once("perslab").unwrap();
            let number = |text: &str| text.trim().parse::<u64>().unwrap();
            classes.push((number(id) as usize, number(chunk), number(per_page)));
        }
        if line.contains("server listening") {
            listening = true;
            break;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    listening.then_some(classes)
}

fn nix_is_root() -> bool {
    std::fs::metadata("/proc/self")
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

/// Settings of all kinds; some that are refused.
fn random(random: &mut Random) -> Settings {
    let mut settings = Settings { memory: 4096, ..Settings::default() };
    settings.factor = match random.below(10) {
        0 => 1.0,
        1 => 1.0 + random.below(100) as f64 / 1000.0,
        2 => 2.0 + random.below(80) as f64 / 10.0,
        _ => 1.01 + random.below(1500) as f64 / 1000.0,
    };
    let most = [100, 500, 5000][random.below(3) as usize];
    settings.chunk = 1 + random.below(most);
    if random.below(3) == 0 {
        settings.chunk_max = Some(1 << (14 + random.below(7)));
    }
    if random.below(4) == 0 {
        settings.item_max = (1 << 20) * (1 + random.below(8));
    }
    if random.below(20) == 0 {
        settings.chunk_max = Some(1000 * (1 + random.below(600)));
    }
    if random.below(3) == 0 {
        settings.chunk = 1 + random.below(60);
        let count = 1 + random.below(64);
        let mut size = settings.chunk.max(9) + random.below(40);
        let mut sizes = Vec::new();
        for _ in 0..count {
            sizes.push(size);
            let most = [4, 40, 2000][random.below(3) as usize];
            size += 8 + random.below(most);
        }
        settings.slab_sizes = Some(sizes);
    }
    settings
}

#[test]
fn they_are_those_of_the_server_for_any_settings() {
    need!(programs::found("memcached"));
    let version = version();
    let mut seeded = Random(7);
    let (mut same, mut refused) = (0, 0);
    for n in 0..260 {
        let settings = random(&mut seeded);
        let there = printed(&settings, &version);
        let ours = Classes::new(&settings).ok().map(|classes| {
            classes.all().iter().map(|c| (c.id, c.chunk, c.per_page)).collect::<Vec<_>>()
        });
        assert_eq!(ours, there, "number {n}: {settings:?}");
        match ours {
            Some(_) => same += 1,
            None => refused += 1,
        }
    }
    println!("{same} settings with the same classes, {refused} refused by both");
    assert!(same >= 150 && refused >= 20, "{same} {refused}");
}
