//! Draws the ratios to the peers as one SVG. The axis is logarithmic, so that twice and half are equally far from the peer.

use std::fmt::Write;

use crate::report::{Figure, Goal, Unit};

const WIDTH: f64 = 960.0;
const ROW: f64 = 22.0;
const PEER_COLUMN: f64 = 300.0;
const AXIS_START: f64 = 540.0;
const AXIS_END: f64 = 890.0;

/// The units that are drawn, each in a panel of its own.
const PANELS: [(Unit, &str); 2] = [
    (Unit::CpuMicros, "CPU time of a request, relative to the peer: less is better"),
    (Unit::PerSecond, "Requests per second, relative to the peer: more is better"),
];

const STYLE: &str = "
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600 } .muted { fill: #59636e } .end { text-anchor: end } .middle { text-anchor: middle }
    .paper { fill: #fff } .grid { stroke: #d1d9e0 } .peer { stroke: #59636e; stroke-width: 1.5 }
    .better { fill: #2b7a4b } .worse { fill: #b35900 } .goal { stroke: #1f2328; stroke-width: 2 }
    @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3 } .muted { fill: #9198a1 } .paper { fill: #0d1117 } .grid { stroke: #3d444d }
        .peer { stroke: #9198a1 } .better { fill: #4cae78 } .worse { fill: #e08a3c } .goal { stroke: #e6edf3 }
    }";

pub fn chart<'a>(benchmarks: impl Iterator<Item = (&'a str, &'a [Figure])>) -> String {
    let figures: Vec<_> =
        benchmarks.flat_map(|(_, figures)| figures).filter(|figure| figure.ratio().is_some()).collect();
    let panels = PANELS.map(|(unit, title)| (title, of_unit(&figures, unit)));
    let axis = Axis::around(panels.iter().flat_map(|(_, figures)| figures).filter_map(|figure| figure.ratio()));
    let (mut body, mut y) = (String::new(), 0.0);
    for (title, figures) in panels.iter().filter(|(_, figures)| !figures.is_empty()) {
        y += 1.5 * ROW;
        text(&mut body, (16.0, y), "title", title);
        y += 0.5 * ROW;
        let bottom = y + ROW * f64::from(u32::try_from(figures.len()).expect("a number of rows"));
        axis.draw(&mut body, y, bottom);
        for figure in figures {
            axis.draw_row(&mut body, y, figure);
            y += ROW;
        }
        y += ROW;
    }
    y += ROW;
    text(&mut body, (AXIS_START, y), "muted", "The axis is logarithmic. A short line across a bar is the goal.");
    svg((WIDTH, y + ROW), "Porchlight beside its peers", &body)
}

pub fn svg((width, height): (f64, f64), label: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{label}\">\n<style>{STYLE}\n</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{body}</svg>\n"
    )
}

fn of_unit<'a>(figures: &[&'a Figure], unit: Unit) -> Vec<&'a Figure> {
    figures.iter().copied().filter(|figure| figure.unit() == unit).collect()
}

/// From one power of two to another.
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    #[expect(clippy::cast_possible_truncation, reason = "logarithms are small")]
    fn around(ratios: impl Iterator<Item = f64>) -> Self {
        let mut axis = Self { first: -1, last: 1 };
        for logarithm in ratios.map(f64::log2) {
            axis =
                Self { first: axis.first.min(logarithm.floor() as i32), last: axis.last.max(logarithm.ceil() as i32) };
        }
        axis
    }

    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.log2() - f64::from(self.first)) / f64::from(self.last - self.first);
        AXIS_START + share * (AXIS_END - AXIS_START)
    }

    fn draw(&self, body: &mut String, top: f64, bottom: f64) {
        for power in self.first..=self.last {
            let (ratio, class) = (f64::from(power).exp2(), if power == 0 { "peer" } else { "grid" });
            line(body, class, self.x(ratio), (top, bottom));
            let label = if power < 0 { format!("1/{}", 1.0 / ratio) } else { ratio.to_string() };
            text(body, (self.x(ratio), bottom + 0.7 * ROW), "muted middle", &label);
        }
    }

    fn draw_row(&self, body: &mut String, top: f64, figure: &Figure) {
        let (Some(ratio), Some((peer, _))) = (figure.ratio(), &figure.peer) else { return };
        let (from, to) = (self.x(ratio.min(1.0)), self.x(ratio.max(1.0)));
        let class = if (ratio <= 1.0) == figure.unit().less_is_better() { "better" } else { "worse" };
        let baseline = top + 0.7 * ROW;
        text(body, (16.0, baseline), "", &figure.work);
        text(body, (PEER_COLUMN, baseline), "muted", peer);
        let (y, width, height) = (top + 0.2 * ROW, to - from, 0.6 * ROW);
        writeln!(
            body,
            "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        )
        .expect("memory");
        if let Some(Goal::AtMost(goal) | Goal::AtLeast(goal)) = figure.goal {
            line(body, "goal", self.x(goal.max(f64::from(self.first).exp2())), (top + 0.1 * ROW, top + 0.9 * ROW));
        }
        text(body, (WIDTH - 16.0, baseline), "end", &format!("{ratio:.2}"));
    }
}

pub fn line(body: &mut String, class: &str, x: f64, (top, bottom): (f64, f64)) {
    writeln!(body, "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>")
        .expect("memory");
}

pub fn text(body: &mut String, (x, y): (f64, f64), class: &str, text: &str) {
    writeln!(body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>").expect("memory");
}
