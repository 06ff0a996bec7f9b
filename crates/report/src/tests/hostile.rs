//! Tests of results files with hostile text: no form of a report contains a character that a terminal or a browser
//! would interpret.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

/// Colours, a carriage return, a title, one byte that begins a sequence, and text from right to left.
const ORDERS: &str = "\u{1b}[31m\r\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{8}";

/// Fields by which cells find their phases and competitors, and pages their kind.
const PARTS: [&str; 8] = ["bench", "kind", "id", "name", "competitor", "phase", "of", "baseline"];

/// The names of all fields that hold text somewhere; those of maps that anything can be a key of
/// stand for their keys, too.
fn fields(value: &Value, under: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::String(_) => drop(found.insert(under.to_owned())),
        Value::Array(all) => all.iter().for_each(|one| fields(one, under, found)),
        Value::Object(map) => map.iter().for_each(|(name, one)| {
            let under = match under {
                "software" | "settings" | "sizes" => under,
                _ => name.as_str(),
            };
            fields(one, under, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Puts orders behind every text of fields of this name.
fn bend(value: &mut Value, under: &str, field: &str) {
    match value {
        Value::String(text) if under == field => text.push_str(ORDERS),
        Value::Array(all) => all.iter_mut().for_each(|one| bend(one, under, field)),
        Value::Object(map) => {
            let keyed = matches!(under, "software" | "settings") && under == field;
            for (name, mut one) in std::mem::take(map) {
                bend(&mut one, if keyed { field } else { &name }, field);
                map.insert(if keyed { name + ORDERS } else { name }, one);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn harmless(form: &str, field: &str, said: &str) {
    let order = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if let Some(at) = said.find(|c| order(&c)) {
        let around = said.get(at.saturating_sub(40)..).unwrap_or(said);
        panic!("{form}, {field}: {:?}", around.chars().take(90).collect::<String>());
    }
}

#[test]
fn no_form_of_a_report_gives_orders_to_a_terminal() {
    type Form = fn(&Results) -> String;
    let forms: [(&str, Form); 5] =
        [("text", text), ("markdown", markdown), ("csv", csv), ("svg", svg), ("html", html)];
    let mut formats = formats();
    derive(&mut formats);
    for results in [samples::stores(), formats, cache(), objects(), tenants(&["postgres"])] {
        let plain = serde_json::to_value(&results).unwrap();
        let mut names = BTreeSet::new();
        fields(&plain, "", &mut names);
        let bent = |fields: &[&String]| {
            let mut bent = plain.clone();
            fields.iter().for_each(|field| bend(&mut bent, "", field));
            serde_json::from_value::<Results>(bent).ok()
        };
        // A word of a list of words is not taken from a file at all.
        names.retain(|field| bent(&[field]).is_some());
        assert!(names.len() >= 8, "{names:?}");
        // Those by which a page is put together are bent one by one, the others all at once.
        let (apart, together): (Vec<_>, Vec<_>) =
            names.iter().partition(|field| PARTS.contains(&field.as_str()));
        for group in apart.into_iter().map(|field| vec![field]).chain([together]) {
            let bent = bent(&group).expect("each was taken by itself");
            for (form, of) in forms {
                let said = of(&bent);
                harmless(form, &format!("{group:?}"), &said);
                let shown = said.matches("u{1b}").count();
                let told = matches!(form, "text" | "markdown" | "html");
                assert!(group.len() == 1 || !told || shown >= 3, "{form}: {shown}");
            }
            let both = [compare(&bent, &results)];
            harmless("compared text", &format!("{group:?}"), &compared::text(&both));
            harmless("compared html", &format!("{group:?}"), &compared::html(&both));
            harmless("compared csv", &format!("{group:?}"), &compared::csv(&both));
        }
    }
}
