//! Whatever stands in a results file: no form of a report has a character in it that a terminal or a
//! browser takes for an order.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

/// Colours, a carriage return, a title, one byte that begins a sequence, and text from right to left.
const ORDERS: &str = "\u{1b}[31m\r\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{8}";

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
    let (mut seen, mut tried) = (BTreeSet::new(), BTreeSet::new());
    for results in [samples::stores(), formats, cache(), objects()] {
        let plain = serde_json::to_value(&results).unwrap();
        let mut names = BTreeSet::new();
        fields(&plain, "", &mut names);
        // What every bench has is tried once.
        for field in names.iter().filter(|field| tried.insert(field.to_string())) {
            let mut bent = plain.clone();
            bend(&mut bent, "", field);
            // A word of a list of words is not taken from a file at all.
            let Ok(bent) = serde_json::from_value::<Results>(bent) else { continue };
            for (form, of) in forms {
                let said = of(&bent);
                harmless(form, field, &said);
                if said.contains("\\u{1b}[31m") {
                    seen.insert((form, field.clone()));
                }
            }
            let both = [compare(&bent, &results)];
            harmless("compared text", field, &compared::text(&both));
            harmless("compared html", field, &compared::html(&both));
            harmless("compared csv", field, &compared::csv(&both));
        }
    }
    // It was there to be shown.
    let shown = |form: &str| seen.iter().filter(|seen| seen.0 == form).count();
    assert!(forms.iter().all(|form| shown(form.0) >= 5), "{seen:?}");
    for field in ["name", "version", "remarks", "settings", "refused", "cpu", "statement"] {
        let is_there = seen.iter().any(|seen| seen.1 == field);
        assert!(is_there || ["refused", "statement"].contains(&field), "{field}: {seen:?}");
    }
}
