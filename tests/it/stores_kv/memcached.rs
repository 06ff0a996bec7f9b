//! memcached alone: several servers, the size of values, listing by two at once.

use futures_util::future::try_join_all;
use steelyard::{ErrorKind, durability::Tier, record::Document, server::Wish, store::Row};

use super::{all, key, opened, row, started};
use crate::programs::{Need, need};

#[tokio::test]
async fn several_servers_share_the_keys() {
    let servers =
        need!((0..3).map(|_| started("memcached", Wish::default())).collect::<Need<Vec<_>>>());
    let hosts: Vec<_> =
        servers.iter().map(|s| s.url().strip_prefix("memcached://").unwrap()).collect();
    let place = opened(&format!("memcached://{}", hosts.join(","))).await;
    let rows: Vec<_> = (0..3000).map(|n| row(&format!("k{n}"), n)).collect();
    place.load(&rows).await.unwrap();
    let found = all(&**place.store()).await;
    assert_eq!(found.len(), 3000);
    assert!(rows.iter().all(|row| found[&row.key] == row.record));
    // Each has its part.
    for server in &servers {
        let count = opened(server.url()).await.count().await.unwrap();
        assert!((850..1150).contains(&count), "{count} of 3000");
    }
    // The order in which they are named does not matter; without the last, its part is missing.
    let turned = opened(&format!("memcached://{},{},{}", hosts[2], hosts[0], hosts[1])).await;
    let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
    assert!(turned.get(&keys).await.unwrap().iter().all(Option::is_some));
    let fewer = opened(&format!("memcached://{},{}", hosts[0], hosts[1])).await;
    let missing = fewer.get(&keys).await.unwrap().iter().filter(|r| r.is_none()).count() as u64;
    assert_eq!(missing, opened(servers[2].url()).await.count().await.unwrap());
    // Put anew there, they are in two places, and listed once by those who know all servers.
    fewer.put(&rows).await.unwrap();
    assert_eq!(all(&**place.store()).await.len(), 3000);
    assert_eq!(place.count().await.unwrap(), 3000);
    place.drop_table().await.unwrap();
    for server in &servers {
        assert_eq!(opened(server.url()).await.count().await.unwrap(), 0);
    }
    let about = place.describe().await.unwrap();
    assert_eq!((about.product.as_str(), about.set), ("memcached", Some(Tier::T0)));
    assert!(about.settings.contains(&("servers".into(), "3".into())), "{about:?}");
}

#[tokio::test]
async fn values_of_the_greatest_size_are_kept_and_greater_ones_refused() {
    let server = need!(started("memcached", Wish::default()));
    let place = opened(&format!("{}?format=json", server.url())).await;
    let most = place.abilities().max_record;
    assert_eq!(most, (1 << 20) - 512);
    let of = |k: &str, bytes: usize| {
        let frame = r#"{"t":""}"#.len();
        let record = Document::from_iter([("t", "x".repeat(bytes - frame))]);
        Row { key: key(k), record }
    };
    let long = "k".repeat(200);
    let greatest = of(&long, most);
    place.put(std::slice::from_ref(&greatest)).await.unwrap();
    assert_eq!(place.get(&[key(&long)]).await.unwrap(), [Some(greatest.record)]);
    let error = place.put(&[row("small", 1), of("big", most + 1)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(error.to_string().contains("\"big\""), "{error}");
    assert_eq!(place.get(&[key("small")]).await.unwrap(), [None]);
    // Many large ones in one batch, and back.
    let rows: Vec<_> = (0..20).map(|n| of(&format!("k{n}"), 900_000)).collect();
    place.put(&rows).await.unwrap();
    assert_eq!(all(&**place.store()).await.len(), 21);
}

#[tokio::test]
async fn two_may_list_keys_at_once() {
    let server = need!(started("memcached", Wish::default()));
    let place = opened(server.url()).await;
    for part in 0..10 {
        let rows: Vec<_> = (0..5000).map(|n| row(&format!("{part}-{n}"), n)).collect();
        place.load(&rows).await.unwrap();
    }
    let counts = try_join_all((0..4).map(|_| place.count())).await.unwrap();
    assert_eq!(counts, [50_000; 4]);
    assert_eq!(place.table("other").unwrap().count().await.unwrap(), 0);
}
