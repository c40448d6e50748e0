//! The figures of a run: printed as they are measured and, with `--write-docs`, kept in `bench/figures.json`, from which
//! the charts of `docs/performance.md` are made.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::chart::chart;
use crate::curves::curves;
use crate::machine::machine;
use crate::measure::median;

#[derive(Clone, Copy, PartialEq, Deserialize, Serialize)]
pub enum Unit {
    /// Microseconds of CPU time per request.
    CpuMicros,
    PerSecond,
    Milliseconds,
    Seconds,
    Mebibytes,
}

/// Of the ratio to a peer, or of the value itself if there is none.
#[derive(Clone, Copy, Deserialize, Serialize)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

#[derive(Clone, Copy, Deserialize, Serialize)]
pub struct Quantity {
    value: f64,
    unit: Unit,
}

#[derive(Deserialize, Serialize)]
pub struct Figure {
    pub work: String,
    pub ours: Quantity,
    /// What it is compared with: its name and its value.
    pub peer: Option<(String, Quantity)>,
    /// Our value relative to that of the peer.
    ratio: Option<f64>,
    pub goal: Option<Goal>,
    /// The size of the database, of figures that are measured at several.
    people: Option<u64>,
}

/// What `bench/figures.json` contains.
#[derive(Default, Deserialize, Serialize)]
struct Recorded {
    machine: String,
    /// By the name of the benchmark.
    figures: BTreeMap<String, Vec<Figure>>,
}

#[derive(Default)]
pub struct Report {
    benchmark: &'static str,
    figures: BTreeMap<String, Vec<Figure>>,
}

impl Unit {
    pub fn less_is_better(self) -> bool {
        self != Self::PerSecond
    }
}

impl Figure {
    pub fn ratio(&self) -> Option<f64> {
        self.ratio
    }

    /// The size of the database and the value, of a figure that is measured at several sizes.
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
    pub fn at_size(&self) -> Option<(f64, f64)> {
        self.people.map(|people| (people as f64, self.ours.value))
    }

    pub fn unit(&self) -> Unit {
        self.ours.unit
    }
}

impl Report {
    /// The figures that follow are those of this benchmark.
    pub fn begin(&mut self, benchmark: &'static str) {
        println!("\n# {benchmark}");
        self.benchmark = benchmark;
        self.figures.insert(benchmark.to_owned(), Vec::new());
    }

    pub fn record(&mut self, work: impl Into<String>, unit: Unit, ours: f64, goal: Option<Goal>) {
        let ours = Quantity { value: ours, unit };
        self.add(Figure { work: work.into(), ours, peer: None, ratio: None, goal, people: None });
    }

    /// Records a figure that is measured in databases of several sizes.
    pub fn record_at(&mut self, people: u64, work: String, unit: Unit, ours: f64) {
        let ours = Quantity { value: ours, unit };
        self.add(Figure { work, ours, peer: None, ratio: None, goal: None, people: Some(people) });
    }

    /// Records the medians of alternating rounds. The ratio is the median of those of the rounds: two that follow one another
    /// find the machine equally fast, which the first and the last do not.
    pub fn compare(
        &mut self,
        work: impl Into<String>,
        unit: Unit,
        ours: &[f64],
        (peer, theirs): (&str, &[f64]),
        goal: Option<Goal>,
    ) {
        let ratio = Some(median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()));
        let [ours, theirs] = [ours, theirs].map(|values| Quantity { value: median(values.to_vec()), unit });
        let peer = Some((peer.to_owned(), theirs));
        self.add(Figure { work: work.into(), ours, peer, ratio, goal, people: None });
    }

    fn add(&mut self, figure: Figure) {
        let Figure { work, ours, peer, goal, people, .. } = &figure;
        let people = people.map_or_else(String::new, |people| format!(", {people} people"));
        print!("{:<60} {:>14}", format!("{work}{people}"), ours.to_string());
        if let (Some((peer, theirs)), Some(ratio)) = (peer, figure.ratio()) {
            print!("   {peer} {theirs}: {ratio:.2} x");
        }
        println!("{}", goal.map_or_else(String::new, |goal| format!("   (goal {goal})")));
        self.figures.entry(self.benchmark.to_owned()).or_default().push(figure);
    }

    /// Replaces the recorded figures of the benchmarks that ran, and draws the charts anew.
    pub fn write_docs(self, order: &[&str]) {
        let file = in_repository("bench/figures.json");
        let mut recorded: Recorded = std::fs::read_to_string(&file)
            .map(|json| serde_json::from_str(&json).expect("the figures of an earlier run"))
            .unwrap_or_default();
        recorded.machine = machine();
        recorded.figures.extend(self.figures);
        std::fs::write(&file, serde_json::to_string_pretty(&recorded).expect("JSON") + "\n").expect("a file");

        let in_order = || order.iter().filter_map(|name| Some((*name, recorded.figures.get(*name)?.as_slice())));
        std::fs::write(in_repository("docs/performance.svg"), chart(in_order())).expect("a file");
        if let Some(curves) = curves(in_order().flat_map(|(_, figures)| figures)) {
            std::fs::write(in_repository("docs/large-databases.svg"), curves).expect("a file");
        }
        println!("\nWritten: {}, docs/performance.svg, docs/large-databases.svg", file.display());
    }
}

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

impl Display for Quantity {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let value = self.value;
        match self.unit {
            Unit::CpuMicros => write!(f, "{value:.1} µs CPU"),
            Unit::PerSecond => write!(f, "{value:.0}/s"),
            Unit::Milliseconds => write!(f, "{value:.1} ms"),
            Unit::Seconds => write!(f, "{value:.2} s"),
            Unit::Mebibytes => write!(f, "{value:.1} MiB"),
        }
    }
}

impl Display for Goal {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(limit) => write!(f, "≤ {limit}"),
            Self::AtLeast(limit) => write!(f, "≥ {limit}"),
        }
    }
}
