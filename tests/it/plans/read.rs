//! What an `EXPLAIN` says, read by the words of each database.

/// What matters of a plan.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Rows are put in order after they were found.
    pub sorts: bool,
    /// All rows of a table are gone through, in no order.
    pub whole: bool,
    /// An index is used, be it that of the key.
    pub indexed: bool,
}

impl Plan {
    /// The plan of a store of this driver.
    pub fn read(driver: &str, text: &str) -> Plan {
        match driver {
            "sqlite" => sqlite(text),
            "postgres" => postgres(text),
            "mongodb" => ferretdb(text),
            "mysql" => mariadb(text),
            other => panic!("no words for plans of {other}"),
        }
    }
}

/// FerretDB shows the plan of the PostgreSQL behind it, with types of nodes for names of fields.
fn ferretdb(text: &str) -> Plan {
    let node = |name: &str| text.contains(&format!("\"Node Type\": \"{name}\""));
    Plan {
        sorts: node("Sort") || node("Incremental Sort"),
        whole: node("Seq Scan"),
        indexed: ["Index Scan", "Index Only Scan", "Bitmap Index Scan"].into_iter().any(node),
    }
}

fn sqlite(text: &str) -> Plan {
    let mut plan = Plan::default();
    for line in text.lines().map(str::trim) {
        plan.sorts |= line.starts_with("USE TEMP B-TREE");
        let by_index = line.contains(" USING INDEX ")
            || line.contains(" USING COVERING INDEX ")
            || line.contains(" USING INTEGER PRIMARY KEY");
        plan.indexed |= by_index;
        plan.whole |= line.starts_with("SCAN ") && !by_index;
    }
    plan
}

fn postgres(text: &str) -> Plan {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    Plan {
        sorts: has(&["Sort  ("]),
        whole: has(&["Seq Scan"]),
        indexed: has(&["Index Scan", "Index Only Scan"]),
    }
}

/// By its words: MariaDB quotes conditions with quotes in them as they are, and what comes out need be
/// no JSON.
fn mariadb(text: &str) -> Plan {
    let has = |words: &str| text.contains(words);
    Plan {
        sorts: has("\"filesort\": ") || has("\"temporary_table\": "),
        whole: has("\"access_type\": \"ALL\""),
        indexed: has("\"key\": \""),
    }
}

#[test]
fn plans_are_read_in_the_words_of_each() {
    for (driver, text, sorts, whole, indexed) in [
        ("sqlite", "SCAN people", false, true, false),
        ("sqlite", "SCAN people USING INDEX people_age_key", false, false, true),
        (
            "sqlite",
            "SEARCH people USING INDEX a (<expr>>?)\nUSE TEMP B-TREE FOR ORDER BY",
            true,
            false,
            true,
        ),
        (
            "postgres",
            "Limit  (cost=0..1)\n  ->  Sort  (cost=0..1)\n        ->  Seq Scan on people",
            true,
            true,
            false,
        ),
        ("postgres", "Limit\n  ->  Index Scan Backward using a on people", false, false, true),
        (
            "mongodb",
            r#"{ "Node Type": "Limit", "Plans": [{ "Node Type": "Sort", "Plans": [{ "Node Type": "Bitmap Index Scan" }] }] }"#,
            true,
            false,
            true,
        ),
        (
            "mysql",
            r#"{"query_block": {"read_sorted_file": {"filesort": {"table": {"access_type": "ALL"}}}}}"#,
            true,
            true,
            false,
        ),
        (
            "mysql",
            r#"{"query_block": {"table": {"access_type": "range", "key": "_number:age"}}}"#,
            false,
            false,
            true,
        ),
    ] {
        assert_eq!(Plan::read(driver, text), Plan { sorts, whole, indexed }, "{driver}: {text}");
    }
}
