//! Joins: a pipeline in which the server looks up what belongs to each record.

use bson::{Document, RawDocument, doc};

use super::{
    ABILITIES, Documents,
    convert::{malformed, row},
    filter::{name, translated, unaddressable},
};
use crate::{
    Result,
    store::{
        Query,
        join::{Groups, Join, Joined, MOST, too_many},
        query::Path,
    },
};

impl Documents {
    pub(super) async fn joined(&self, join: &Join) -> Result<Vec<Joined>> {
        let query = Query::new(join.filter.clone());
        query.check()?;
        ABILITIES.can(&query)?;
        let pipeline = pipeline(join)?;
        let (mut groups, mut came) = (Groups::default(), 0);
        let pair = |pair: &RawDocument| {
            let part = |name| row(pair.get_document(name).map_err(malformed)?);
            let (own, other) = (part("own")?, part("other")?);
            came += 1;
            // MongoDB looks into lists as well; and what no path can name was not asked for.
            let text = join.on.text_in(&own.key, &own.record);
            let meant = text.is_some()
                && text == join.field.text_in(&other.key, &other.record)
                && query.matches(&own.key, &own.record);
            match meant {
                true => groups.add(own.key, || Ok(own.record), other),
                false => Ok(()),
            }
        };
        self.0.piped(pipeline, pair).await?;
        match came > MOST {
            true => Err(too_many()),
            false => Ok(groups.done()),
        }
    }
}

/// The pipeline of a join.
pub(super) fn pipeline(join: &Join) -> Result<Vec<Document>> {
    let path = |path: &Path| name(path).ok_or_else(|| unaddressable(path, "join by"));
    let (on, field) = (path(&join.on)?, path(&join.field)?);
    let text = doc! {&on: {"$type": "string"}};
    Ok(vec![
        doc! {"$match": {"$and": [translated(&join.filter)?.filter, text]}},
        // Under a name of its own, or it could have a field of the name that the others get.
        doc! {"$project": {"_id": 0, "own": "$$ROOT"}},
        doc! {"$lookup": {
            "from": &join.table,
            "localField": format!("own.{on}"),
            "foreignField": field,
            "as": "other",
        }},
        doc! {"$unwind": "$other"},
        doc! {"$limit": MOST as i64 + 1},
    ])
}
