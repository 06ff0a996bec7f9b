//! A load as a program would write it on the MongoDB driver alone, for `scripts/loads.py` to hold ours
//! against: `insert_many URL COLLECTION FILE`, JSON lines, unordered batches of 1,000, `j: true`.

use std::{
    fs::File,
    io::{BufRead, BufReader},
};

use mongodb::{
    Client,
    bson::{Document, doc},
    options::WriteConcern,
};

const BATCH: usize = 1_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, url, collection, file] = &args[..] else { panic!("insert_many URL COLLECTION FILE") };
    let client = Client::with_uri_str(url).await?;
    let collection = client.database("test").collection::<Document>(collection);
    let durable = WriteConcern::builder().w(Some(1.into())).journal(Some(true)).build();
    let mut batch = Vec::with_capacity(BATCH);
    let mut lines = BufReader::new(File::open(file)?).lines();
    loop {
        let line = lines.next().transpose()?;
        if let Some(line) = &line {
            let mut record: Document = serde_json::from_str(line)?;
            let key = record.get_str("key")?.to_owned();
            record.insert("_id", key);
            batch.push(record);
        }
        if batch.len() == BATCH || (line.is_none() && !batch.is_empty()) {
            let insert = collection.insert_many(std::mem::take(&mut batch));
            insert.ordered(false).write_concern(durable.clone()).await?;
        }
        if line.is_none() {
            break;
        }
    }
    let there = collection.count_documents(doc! {}).await?;
    println!("{there} there");
    Ok(())
}
