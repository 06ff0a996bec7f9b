//! What the queries of a workload asked for, and how many records answered.

use super::super::{
    number::{NONE, short, whole},
    page::{Role, Section, Table},
};
use steelyard_results::{Asked, Phase, Results};

pub(super) fn section(results: &Results) -> Option<Section> {
    let mut table =
        Table::new(&["<phase", "<condition", "<sorted by", "limit", "records an answer"]);
    let mut known: Vec<(&str, &Asked)> = Vec::new();
    for phase in &results.phases {
        let Some(asked) = &phase.query else { continue };
        // The points of a curve ask the same.
        let name = phase.of.as_deref().unwrap_or(&phase.name);
        if known.contains(&(name, asked)) {
            continue;
        }
        known.push((name, asked));
        table.rows.push(vec![
            name.to_owned(),
            asked.condition.clone(),
            asked.sort.join(", "),
            asked.limit.map_or(NONE.into(), whole),
            answers(results, phase, asked),
        ]);
    }
    let footnotes = match table.rows.iter().any(|row| row[4].contains('~')) {
        true => vec![
            "~: the mean of what came; an earlier phase had changed records, or each query draws a \
             range of its own"
                .to_owned(),
        ],
        false => Vec::new(),
    };
    (!table.rows.is_empty()).then(|| Section {
        title: "What the queries asked for".into(),
        about:
            "Answers are counted: each has to have as many records as the records themselves say, \
                where that is known."
                .into(),
        table: table.without_empty_columns(),
        footnotes,
        role: Role::Method,
        ..Section::default()
    })
}

/// How many records an answer has: as it must be, or as it was where that is not known.
fn answers(results: &Results, phase: &Phase, asked: &Asked) -> String {
    match asked.records {
        Some(records) if records.fract() == 0.0 && !asked.condition.contains("drawn anew") => {
            whole(records as u64)
        }
        _ => {
            let mut cells = results.cells.iter().filter(|c| c.phase == phase.id && c.units > 0);
            let came = cells.find(|c| results.competitor(&c.competitor).is_some_and(|c| !c.null));
            came.map_or(NONE.into(), |c| format!("~{}", short(c.items as f64 / c.units as f64)))
        }
    }
}
