//! Bars as a table: a row for each competitor with its figure, its interval and its latency as text, and a
//! bar below the name.

use super::super::{
    chart::{Bar, Bars},
    markup::escaped,
    number::{NONE, UNKNOWN, ranged, short, whole},
    summary::Place,
};

/// `title` and `unit` are those of the chart.
pub(super) fn table(bars: &Bars, title: &str, unit: &str) -> String {
    let most = bars.0.iter().map(Bar::end).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let told = |bar: &Bar| bar.latency.as_ref().is_some_and(|all| all.iter().any(|t| t != NONE));
    let latency = bars.0.iter().any(told);
    let short_unit = unit.split(':').next().unwrap_or(unit);
    let mut out = format!(
        "<table class=\"bars\">\n<caption class=\"hidden\">{title}, {unit}</caption>\n\
         <thead><tr><td></td><th scope=\"col\" class=\"n\">{}</th>{}</tr></thead>\n<tbody>\n",
        escaped(short_unit),
        if latency {
            "<th scope=\"col\" class=\"n\">p50</th><th scope=\"col\" class=\"n\">p99</th>"
        } else {
            ""
        },
        title = escaped(title),
        unit = escaped(unit),
    );
    for bar in &bars.0 {
        out.push_str(&row(bar, most, latency));
    }
    out.push_str("</tbody>\n</table>\n");
    out
}

fn row(bar: &Bar, most: f64, latency: bool) -> String {
    let class = match (bar.standing.marked, bar.standing.place) {
        (true, Place::Best) => " class=\"best\"",
        (true, _) => " class=\"shared\"",
        (false, _) => "",
    };
    // A tier as people write it.
    let note = match bar.note.as_str() {
        "" => String::new(),
        note => format!(" <small>{}</small>", escaped(&note.replacen('t', "T", 1))),
    };
    let word = match bar.standing.place.word() {
        "" => String::new(),
        word => format!(" <span class=\"note\">{word}</span>"),
    };
    let mut out = format!(
        "<tr{class}><th scope=\"row\">{}{note}{word}{}</th><td class=\"n\">{}</td>",
        escaped(&bar.name),
        drawn(bar, most),
        figure(bar)
    );
    if latency {
        for text in bar.latency.as_ref().map_or(["–", "–"], |[a, b]| [a, b]) {
            let text = if text == NONE { "–" } else { text };
            out.push_str(&format!("<td class=\"n\">{}</td>", escaped(text)));
        }
    }
    out + "</tr>\n"
}

/// The bar with what lies on top of it and its interval.
fn drawn(bar: &Bar, most: f64) -> String {
    let share = |v: f64| if most > 0.0 { (100.0 * v / most).clamp(0.0, 100.0) } else { 0.0 };
    let middle = share(bar.value.middle);
    let more = bar.more.map_or(String::new(), |more| {
        let width = share(bar.value.middle + more) - middle;
        format!("<i class=\"pale\" style=\"width:{width:.1}%\"></i>")
    });
    let whisker = bar.value.low.zip(bar.value.high).map_or(String::new(), |(low, high)| {
        let (low, high) = (share(low), share(high));
        format!("<u style=\"left:{low:.1}%;width:{:.1}%\"></u>", high - low)
    });
    format!(
        "<span class=\"bar\" aria-hidden=\"true\"><i style=\"width:{middle:.1}%\"></i>{more}{whisker}</span>"
    )
}

/// The figure, and below it its interval.
fn figure(bar: &Bar) -> String {
    let value = match bar.counted {
        true => whole(bar.value.middle as u64),
        false => short(bar.value.middle),
    };
    let more = bar.more.map_or(String::new(), |more| format!(" + {}", short(more)));
    let ranged = ranged(&bar.value);
    let interval = match ranged.split_once(' ') {
        Some((_, interval)) if bar.value.low.is_some() && interval != UNKNOWN => {
            let interval = interval.trim_matches(['(', ')']).replace(" to ", "–");
            format!(" <small>{}</small>", escaped(&interval))
        }
        _ => String::new(),
    };
    format!(
        "<span class=\"v\">{}{}{}</span>{interval}",
        escaped(&value),
        escaped(&more),
        escaped(&bar.mark)
    )
}
