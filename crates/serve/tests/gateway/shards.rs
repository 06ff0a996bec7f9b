//! The test of the original: ten threads create two hundred documents each, on shards drawn at random; the tallies agree,
//! and nothing else was touched.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use steelyard_serve::{ApiKey, Scope, TenantLimits};
use tokio::runtime::Runtime;

use super::client::{Answer, Running, name};

const THREADS: u64 = 10;
const CREATES: u64 = 200;
/// Tenants that are written, in turn on one shard and the other.
const TENANTS: usize = 6;

/// A number below `most`, that follows from the one before it (splitmix64).
fn draw(state: &mut u64, most: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) % most as u64) as usize
}

/// All that a tenant has, with revisions, as it is told.
async fn whole(gateway: &Running, key: &ApiKey) -> Vec<String> {
    let names = gateway.get(key, "/v1/docs").await.is(200).json();
    let mut all = vec![names.to_string()];
    for collection in names["collections"].as_array().unwrap() {
        let path = format!("/v1/docs/{}:each", collection.as_str().unwrap());
        all.push(gateway.get(key, &path).await.is(200).text());
    }
    all
}

/// The files that are there, without the logs beside databases.
fn databases(gateway: &Running) -> BTreeSet<String> {
    let names = std::fs::read_dir(gateway.folder.path()).unwrap();
    let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm")).collect()
}

#[test]
fn ten_threads_create_on_random_shards_and_the_tallies_agree() {
    let runtime = Runtime::new().unwrap();
    let gateway = runtime.block_on(Running::start("requests_per_second = 1e6"));
    let mut keys: Vec<ApiKey> = Vec::new();
    for n in 0..TENANTS {
        let (tenant, shard) = (name(&format!("t{n}")), ["one", "two"][n % 2]);
        let added = gateway.admin.add(&tenant, Some(shard), TenantLimits::default());
        runtime.block_on(added).unwrap();
        let key = gateway.admin.add_key(&tenant, Scope::Write, "");
        keys.push(runtime.block_on(key).unwrap());
    }
    // Those that nobody writes: one of them with the same collection and the same ids.
    runtime.block_on(async {
        gateway.put(&gateway.a, "/v1/docs/figments/0-0", "", r#"{"of":"a"}"#).await.is(201);
        gateway.put(&gateway.b, "/v1/docs/other/x", "", r#"{"of":"b"}"#).await.is(201);
    });
    let others = async || [whole(&gateway, &gateway.a).await, whole(&gateway, &gateway.b).await];
    let (before, files) = (runtime.block_on(others()), databases(&gateway));
    let tally: Arc<Mutex<BTreeMap<usize, BTreeSet<String>>>> = Arc::default();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (gateway, keys, tally) = (&gateway, &keys, tally.clone());
            scope.spawn(move || {
                let (runtime, mut state) = (Runtime::new().unwrap(), thread);
                for n in 0..CREATES {
                    let tenant = draw(&mut state, TENANTS);
                    let (path, body) =
                        (format!("/v1/docs/figments/{thread}-{n}"), format!("{{\"value\":{n}}}"));
                    // Created, and not written over one that was there.
                    let put = gateway.put(&keys[tenant], &path, "If-None-Match: *\r\n", &body);
                    let answer: Answer = runtime.block_on(put);
                    answer.is(201);
                    let id = format!("{thread}-{n}");
                    assert!(tally.lock().unwrap().entry(tenant).or_default().insert(id));
                }
            });
        }
    });
    let tally = tally.lock().unwrap();
    assert_eq!(tally.values().map(BTreeSet::len).sum::<usize>() as u64, THREADS * CREATES);
    for (tenant, key) in keys.iter().enumerate() {
        let wanted = &tally[&tenant];
        let counted = runtime.block_on(gateway.get(key, "/v1/docs/figments:count")).is(200).json();
        assert_eq!(counted["count"], wanted.len(), "tenant {tenant}");
        let each = runtime.block_on(gateway.get(key, "/v1/docs/figments:each")).is(200).lines();
        let ids: BTreeSet<String> =
            each.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!((&ids, each.len()), (wanted, wanted.len()), "tenant {tenant}");
        for item in &each {
            let (_, n) = item["id"].as_str().unwrap().split_once('-').unwrap();
            assert_eq!(item["doc"].to_string(), format!("{{\"value\":{n}}}"));
        }
        let names = runtime.block_on(gateway.get(key, "/v1/docs")).is(200).json();
        assert_eq!(names["collections"], serde_json::json!(["figments"]), "tenant {tenant}");
    }
    assert_eq!(runtime.block_on(others()), before, "tenants that nobody wrote");
    assert_eq!(databases(&gateway), files);
}
