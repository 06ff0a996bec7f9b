//! Queries that are typed behind `bench WORKLOAD`: they become phases of the workload, as if they stood
//! in its file.

use std::fmt::Write;

use steelyard::{Error, Result, bench::workload::Workload};

/// A query of your own, beside what the workload does.
#[derive(clap::Args)]
pub struct Queries {
    /// The field that is the key [default: the position in the file].
    #[arg(long, value_name = "FIELD")]
    key: Option<String>,
    /// Create an index on these fields after the load, and measure its cost; may be repeated.
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    index: Vec<String>,
    /// Query: 'status=open', 'age>=90', or in JSON; may be repeated.
    #[arg(long = "where", value_name = "QUERY")]
    filters: Vec<String>,
    /// Order of the query; a minus means descending: --sort=-created_at,name.
    #[arg(long, value_name = "PATHS", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Limit of the query.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// Writes that show what an index costs a write.
const WRITES: u64 = 1_000;

impl Queries {
    /// The field that is the key.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The workload with the phases for these.
    ///
    /// # Errors
    /// [`Invalid`](steelyard::ErrorKind::Invalid), naming the option, for what is no query.
    pub fn added(&self, mut workload: Workload) -> Result<Workload> {
        let asks = !(self.filters.is_empty() && self.sort.is_empty());
        if self.limit.is_some() && !asks {
            return Err(Error::invalid(
                "--limit is how many records a query asks for, and goes with --where or --sort; to \
                 use N of the records: --sample N",
            ));
        }
        let mut phases = String::new();
        if !self.index.is_empty() {
            let name = free(&workload, "index");
            let _ = write!(
                phases,
                "[[phase]]\nname = {}\ndo = \"index\"\nindex = {}\nwrites = {WRITES}\n{}\n",
                quoted(&name),
                list(&self.index),
                table(&workload)
            );
        }
        if asks {
            let name = free(&workload, "find");
            let _ = write!(
                phases,
                "[[phase]]\nname = {}\ndo = \"find\"\n{}",
                quoted(&name),
                table(&workload)
            );
            match &self.filters[..] {
                [] => {}
                [one] => {
                    let _ = writeln!(phases, "where = {}", quoted(one));
                }
                several => {
                    let _ = writeln!(phases, "where = {}", list(several));
                }
            }
            if !self.sort.is_empty() {
                let _ = writeln!(phases, "sort = {}", list(&self.sort));
            }
            if let Some(limit) = self.limit {
                let _ = writeln!(phases, "limit = {limit}");
            }
            phases.push('\n');
        }
        if !phases.is_empty() {
            workload = with(&workload, &phases)?;
        }
        if let (Some(key), Some(first)) = (&self.key, workload.tables.first_mut()) {
            first.key = Some(key.clone());
        }
        Ok(workload)
    }
}

/// The workload with more phases at its end, but before it changes records (what their answers must hold would no
/// longer be known) and settles.
fn with(workload: &Workload, phases: &str) -> Result<Workload> {
    let text = &workload.text;
    let later = workload.phases.iter().rev();
    let later = later.take_while(|phase| phase.word() == "settle" || phase.changes());
    let mut later: Vec<&str> = later.map(|p| p.of.as_deref().unwrap_or(&p.name)).collect();
    // Of a curve over concurrency, each point is a phase.
    later.dedup();
    let written: Vec<usize> = text.match_indices("[[phase]]").map(|(at, _)| at).collect();
    let first = written.len().checked_sub(later.len()).and_then(|i| written.get(i));
    let at = first.copied().unwrap_or(text.len());
    let (before, after) = text.split_at(at);
    let gap = if before.ends_with('\n') { "" } else { "\n" };
    let told = |e: Error| Error::new(e.kind(), format!("the query: {}", e.context()));
    Workload::parse(&format!("{before}{gap}{phases}{after}")).map_err(told)
}

/// The first table, as phases name theirs.
fn table(workload: &Workload) -> String {
    workload
        .tables
        .first()
        .map_or(String::new(), |table| format!("table = {}\n", quoted(&table.name)))
}

/// A name that no phase has.
fn free(workload: &Workload, name: &str) -> String {
    let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name} {n}")));
    let taken = |name: &String| workload.phases.iter().any(|phase| phase.name == *name);
    names.into_iter().find(|name| !taken(name)).unwrap_or_default()
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queries(key: Option<&str>, index: &[&str], filters: &[&str], sort: &[&str]) -> Queries {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Queries {
            key: key.map(str::to_owned),
            index: owned(index),
            filters: owned(filters),
            sort: owned(sort),
            limit: None,
        }
    }

    #[test]
    fn a_query_becomes_phases_before_records_change_and_the_store_settles() {
        let keep = Workload::named("keep").unwrap();
        let asked = queries(Some("id"), &["created_at"], &["status=\"open\"", "n>1"], &["-n"]);
        let asked = Queries { limit: Some(20), ..asked };
        let workload = asked.added(keep.clone()).unwrap();
        let names: Vec<&str> = workload.phases.iter().map(|p| p.name.as_str()).collect();
        let end = ["scan", "index", "find", "writes x1", "writes x16", "settle"];
        assert_eq!(names[names.len() - end.len()..], end, "{}", workload.text);
        let find = &workload.phases[names.len() - 4];
        assert!(find.about().contains("sorted by n descending, the first 20"), "{find:?}");
        assert_eq!(workload.tables[0].key.as_deref(), Some("id"));
        let again = Workload::parse(&workload.text).unwrap();
        assert_eq!(format!("{:?}", again.phases), format!("{:?}", workload.phases));
        // A second one has another name.
        let again = queries(None, &[], &["n=1"], &[]).added(workload).unwrap();
        assert!(again.phases.iter().any(|p| p.name == "find 2"));
    }

    #[test]
    fn what_is_no_query_is_refused() {
        let keep = || Workload::named("keep").unwrap();
        let limit = Queries { limit: Some(5), ..queries(None, &[], &[], &[]) };
        let error = limit.added(keep()).unwrap_err().to_string();
        assert!(error.contains("--sample N"), "{error}");
        let error = queries(None, &[], &["{\"a\": {\"$x\": 1}}"], &[]).added(keep()).unwrap_err();
        assert!(error.to_string().contains("unknown operator"), "{error}");
    }
}
