//! Draws how long commands take in databases of several sizes, as one SVG with a panel per database. Both axes are
//! logarithmic, so a straight line that rises by one step for each step to the right is work in proportion to the size.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::chart::{line, svg, text};
use crate::report::{Figure, Unit};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 380.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 320.0;
const PANEL: f64 = 320.0;
/// Where the panels begin, and the names of the lines.
const LEFT: [f64; 3] = [64.0, 448.0, 796.0];
const COLORS: [&str; 6] = ["#2b7a4b", "#b35900", "#0969da", "#8250df", "#bf3989", "#6e7781"];

/// Seconds by the number of people, for each command of a database.
type Curves<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<(f64, f64)>>>;

/// Returns `None` if no figure is measured at several sizes.
pub fn curves<'a>(figures: impl Iterator<Item = &'a Figure>) -> Option<String> {
    let mut databases = Curves::new();
    for figure in figures.filter(|figure| figure.unit() == Unit::Seconds) {
        let (Some(point), Some((command, database))) = (figure.at_size(), figure.work.rsplit_once(", ")) else {
            continue;
        };
        databases.entry(database).or_default().entry(command).or_default().push(point);
    }
    let points = || databases.values().flat_map(BTreeMap::values).flatten();
    let sizes = Axis::around(points().map(|(people, _)| *people))?;
    let seconds = Axis::around(points().map(|(_, seconds)| *seconds))?;
    let mut body = String::new();
    for ((database, commands), left) in databases.iter().zip(LEFT) {
        let x = |people: f64| left + sizes.share(people) * PANEL;
        let y = |duration: f64| BOTTOM - seconds.share(duration) * (BOTTOM - TOP);
        text(&mut body, (left, TOP - 20.0), "title", &format!("{database}: seconds by people"));
        for people in sizes.powers() {
            line(&mut body, "grid", x(people), (TOP, BOTTOM));
            text(&mut body, (x(people), BOTTOM + 18.0), "muted middle", &people.to_string());
        }
        for duration in seconds.powers() {
            let y = y(duration);
            writeln!(body, "<path class=\"grid\" d=\"M{left:.1} {y:.1}h{PANEL:.1}\"/>").expect("memory");
            text(&mut body, (left - 8.0, y + 4.0), "muted end", &duration.to_string());
        }
        for (points, color) in commands.values().zip(COLORS) {
            let path: Vec<_> =
                points.iter().map(|(people, seconds)| format!("{:.1} {:.1}", x(*people), y(*seconds))).collect();
            writeln!(body, "<path fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" d=\"M{}\"/>", path.join("L"))
                .expect("memory");
        }
    }
    let names = databases.values().next().into_iter().flat_map(BTreeMap::keys);
    for ((name, color), row) in names.zip(COLORS).zip(0u32..) {
        let y = TOP + 22.0 * f64::from(row);
        writeln!(body, "<rect fill=\"{color}\" x=\"{}\" y=\"{y:.1}\" width=\"14\" height=\"4\"/>", LEFT[2])
            .expect("memory");
        text(&mut body, (LEFT[2] + 20.0, y + 6.0), "", name);
    }
    text(&mut body, (LEFT[0], HEIGHT - 16.0), "muted", "Both axes are logarithmic.");
    Some(svg((WIDTH, HEIGHT), "Time of commands by the number of people", &body))
}

/// From one power of ten to another.
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    #[expect(clippy::cast_possible_truncation, reason = "logarithms are small")]
    fn around(values: impl Iterator<Item = f64>) -> Option<Self> {
        let logarithms: Vec<_> = values.map(f64::log10).collect();
        let first = logarithms.iter().map(|logarithm| logarithm.floor() as i32).min()?;
        let last = logarithms.iter().map(|logarithm| logarithm.ceil() as i32).max()?;
        (first < last).then_some(Self { first, last })
    }

    fn share(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    fn powers(&self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|power| 10f64.powi(power))
    }
}
