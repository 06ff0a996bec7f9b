//! Conditions that strangers send: those of `each --where`, within limits of what they may cost.

use steelyard_store::{
    record::{Document, Value},
    store::{
        Filter, Store,
        query::{Condition, Order, Path, Query, Test},
    },
};

use crate::{http::Param, problem::Problem};

/// Parameters of whatever finds documents.
pub(super) const WHERE: Param = Param {
    name: "where",
    place: "query",
    kind: "string",
    pattern: None,
    about: "A condition: age>=60 and name~Bob",
};
pub(super) const FIELDS: Param = Param {
    name: "fields",
    place: "query",
    kind: "string",
    pattern: None,
    about: "Only these fields, where a document has them: name,age",
};

/// The longest condition, in bytes.
const LONGEST: usize = 8 << 10;
/// How deep conditions nest, how many tests they have, and how many values are in a list.
const DEPTH: usize = 8;
const TESTS: usize = 64;
const VALUES: usize = 1000;
/// Paths that are sorted by.
const SORTED: usize = 4;
/// Fields that are named of documents.
const NAMED: usize = 256;

/// What a text asks for.
pub(super) async fn filter(text: &str, store: &dyn Store) -> Result<Filter, Problem> {
    if text.len() > LONGEST {
        return Err(Problem::invalid(format!("a condition has {LONGEST} bytes at most")));
    }
    let condition: Condition = text.parse()?;
    if condition.has_patterns() {
        return Err(Problem::invalid(
            "regular expressions are not served; use ~ (contains) and ^= (begins with)",
        ));
    }
    let filter = Condition::for_store(&[condition], store).await?;
    within(&filter)?;
    Ok(filter)
}

fn within(filter: &Filter) -> Result<(), Problem> {
    let (mut tests, mut values) = (0, 0);
    if depth(filter, &mut tests) > DEPTH {
        return Err(Problem::invalid(format!("a condition nests {DEPTH} deep at most")));
    }
    filter.tests(&mut |_, test| {
        if let Test::In(list) = test {
            values = values.max(list.len());
        }
    });
    match (tests <= TESTS, values <= VALUES) {
        (true, true) => Ok(()),
        (false, _) => Err(Problem::invalid(format!("a condition has {TESTS} tests at most"))),
        (_, false) => {
            Err(Problem::invalid(format!("a list in a condition has {VALUES} values at most")))
        }
    }
}

/// How deep it nests; its tests are counted.
fn depth(filter: &Filter, tests: &mut usize) -> usize {
    match filter {
        Filter::All => 0,
        Filter::Field(..) | Filter::Look(_) => {
            *tests += 1;
            1
        }
        Filter::Not(one) => 1 + depth(one, tests),
        Filter::And(all) | Filter::Or(all) => {
            1 + all.iter().map(|one| depth(one, tests)).max().unwrap_or(0)
        }
    }
}

/// The order that a text asks for: paths with commas between them, a minus before those that descend.
pub(super) fn sort(text: &str) -> Result<Vec<(Path, Order)>, Problem> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let sort: Vec<(Path, Order)> = parts
        .map(|part| match part.strip_prefix('-') {
            Some(path) => Ok((path.parse()?, Order::Descending)),
            None => Ok((part.parse()?, Order::Ascending)),
        })
        .collect::<steelyard_base::Result<_>>()?;
    match sort.len() <= SORTED {
        true => Ok(sort),
        false => Err(Problem::invalid(format!("sorted by {SORTED} paths at most"))),
    }
}

/// What a list is to have.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Asked {
    pub condition: String,
    pub sort: String,
    pub fields: String,
    pub limit: Option<u64>,
    pub cursor: Option<String>,
}

impl Asked {
    /// From the body of a query. A condition is text, or a map in the style of document databases.
    pub(super) fn of(body: &Document) -> Result<Asked, Problem> {
        let mut asked = Asked::default();
        for (name, value) in body.iter() {
            let wrong = |what: &str| Problem::invalid(format!("{name:?} must be {what}"));
            let text = || value.as_str().map(str::to_owned).ok_or_else(|| wrong("text"));
            match (name, value) {
                ("where", Value::Map(map)) => {
                    let mut json = Vec::new();
                    steelyard_store::format::Format::Json.encode_document(map, &mut json)?;
                    asked.condition = String::from_utf8(json).map_err(|_| wrong("text"))?;
                }
                ("where", _) => asked.condition = text()?,
                ("sort", _) => asked.sort = text()?,
                ("fields", _) => asked.fields = text()?,
                ("limit", Value::Int(n)) => {
                    asked.limit = Some(u64::try_from(*n).map_err(|_| wrong("1 or more"))?)
                }
                ("limit", _) => return Err(wrong("a whole number")),
                ("cursor", Value::Null) => {}
                ("cursor", _) => asked.cursor = Some(text()?),
                _ => {
                    return Err(Problem::invalid(format!(
                        "unknown name {name:?}; known: where, sort, fields, limit, cursor"
                    )));
                }
            }
        }
        Ok(asked)
    }

    /// As the store is asked, without limit and cursor.
    pub(crate) async fn query(&self, store: &dyn Store) -> Result<Query, Problem> {
        let filter = match self.condition.trim() {
            "" => Filter::All,
            text => filter(text, store).await?,
        };
        let names = self.fields.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        if names.len() > NAMED {
            return Err(Problem::invalid(format!("fields names {NAMED} fields at most")));
        }
        let fields = (!names.is_empty()).then(|| {
            // The revision is shown whatever else is.
            names.into_iter().chain([super::revision::FIELD.to_owned()]).collect()
        });
        Ok(Query { filter, sort: sort(&self.sort)?, limit: None, fields })
    }
}
