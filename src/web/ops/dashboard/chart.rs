//! The geometry of charts, which the template draws as SVG.
//!
//! A chart is 300 units wide and 100 high and is stretched to the available width, so it contains no
//! text. Every value above 0 is visible.

use serde::Serialize;

use super::format::grouped;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 100.0;
const MIN_BAR_HEIGHT: f64 = 1.5;
const MIN_ROW_LENGTH: f64 = 1.0;

/// One bar per period, with a narrower bar in front of it.
#[derive(Serialize)]
pub(super) struct BarChart {
    bars: Vec<Bar>,
    scale: [String; 3],
}

#[derive(Serialize)]
struct Bar {
    left: f64,
    step: f64,
    x: f64,
    width: f64,
    y: f64,
    height: f64,
    inner_x: f64,
    inner_width: f64,
    inner_y: f64,
    inner_height: f64,
}

/// A line through percentages, as SVG path data.
#[derive(Serialize)]
pub(super) struct LineChart {
    path: String,
    /// The segment to the last point, whose period is not over yet.
    open_segment: String,
    /// The last point, and those that no segment reaches.
    dots: String,
    scale: [String; 3],
}

/// Returns the smallest round number that is at least `max` and has a round half.
fn round_up(max: u64) -> u64 {
    let mut unit = 1;
    loop {
        if let Some(top) =
            [2, 4, 6, 8, 10, 12, 14, 16, 18, 24, 30].into_iter().map(|step| step * unit).find(|top| *top >= max)
        {
            return top;
        }
        unit *= 10;
    }
}

impl BarChart {
    /// Each pair is the value of a bar and that of the narrower bar in front of it.
    pub(super) fn new(pairs: &[(u64, u64)]) -> Self {
        let top = round_up(pairs.iter().map(|(outer, inner)| *outer.max(inner)).max().unwrap_or_default());
        let step = WIDTH / as_f64(pairs.len() as u64).max(1.0);
        let bars = pairs.iter().enumerate().map(|(index, (outer, inner))| {
            let left = step * as_f64(index as u64);
            let [outer, inner] = [outer, inner].map(|number| scaled(*number, top, HEIGHT, MIN_BAR_HEIGHT));
            Bar {
                left: rounded(left),
                step: rounded(step),
                x: rounded(left + step * 0.12),
                width: rounded(step * 0.76),
                y: rounded(HEIGHT - outer),
                height: rounded(outer),
                inner_x: rounded(left + step * 0.3),
                inner_width: rounded(step * 0.4),
                inner_y: rounded(HEIGHT - inner),
                inner_height: rounded(inner),
            }
        });
        Self { bars: bars.collect(), scale: [top, top / 2, 0].map(grouped) }
    }
}

impl LineChart {
    /// The line has a gap where a share is `None`.
    pub(super) fn new(shares: &[Option<u64>]) -> Self {
        let step = WIDTH / as_f64(shares.len() as u64).max(1.0);
        let max = shares.iter().flatten().max().copied().unwrap_or_default();
        let top = if max > 50 { 100 } else { 50 };
        let point = |index: usize| {
            let share = (*shares.get(index)?)?;
            let x = rounded(step * (as_f64(index as u64) + 0.5));
            Some(format!("{x} {}", rounded(HEIGHT - as_f64(share) / as_f64(top) * HEIGHT)))
        };
        let previous = |index: usize| index.checked_sub(1).and_then(point);
        let last = shares.len().saturating_sub(1);
        let is_dot = |index: usize| index == last || (previous(index).is_none() && point(index + 1).is_none());
        let command = |index: usize| {
            let letter = if previous(index).is_some() { 'L' } else { 'M' };
            Some(format!("{letter}{}", point(index)?))
        };
        let dots = (0..shares.len()).filter(|index| is_dot(*index));
        let open_segment = previous(last).zip(point(last)).map(|(from, to)| format!("M{from}L{to}"));
        Self {
            path: (0..last).filter_map(command).collect(),
            open_segment: open_segment.unwrap_or_default(),
            dots: dots.filter_map(|index| Some(format!("M{}h0", point(index)?))).collect(),
            scale: [top, top / 2, 0].map(|share| format!("{share} %")),
        }
    }
}

/// Returns the length of a row's bar, out of 100.
pub(super) fn row_length(number: u64, max: u64) -> f64 {
    rounded(scaled(number, max.max(1), 100.0, MIN_ROW_LENGTH))
}

/// Scales `number` so that `whole` fills `extent`. Anything above 0 takes up at least `min`.
fn scaled(number: u64, whole: u64, extent: f64, min: f64) -> f64 {
    if number == 0 { 0.0 } else { (as_f64(number) / as_f64(whole) * extent).max(min) }
}

#[expect(clippy::cast_precision_loss, reason = "a chart does not need that precision")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heights(chart: &BarChart, index: usize) -> [f64; 2] {
        [chart.bars[index].height, chart.bars[index].inner_height]
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "rounded to hundredths")]
    fn the_scale_is_round_and_covers_every_value() {
        for (max, round) in [(0, 2), (2, 2), (3, 4), (7, 8), (11, 12), (59, 60), (61, 80), (1366, 1400), (1900, 2400)] {
            assert_eq!(round_up(max), round, "{max}");
        }
        let chart = BarChart::new(&[(0, 0), (1330, 665)]);
        assert_eq!(chart.scale, ["1,400", "700", "0"]);
        assert_eq!(heights(&chart, 1), [95.0, 47.5]);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "rounded to hundredths")]
    fn bars_and_rows_never_vanish_beside_a_million() {
        let chart = BarChart::new(&[(1_000_000, 900_000), (2, 1), (0, 0)]);
        assert_eq!((heights(&chart, 1), heights(&chart, 2)), ([1.5, 1.5], [0.0, 0.0]));
        assert_eq!([1, 0, 500_000].map(|number| row_length(number, 1_000_000)), [1.0, 0.0, 50.0]);
    }

    #[test]
    fn a_line_has_a_gap_where_there_is_no_share_and_its_last_segment_is_separate() {
        let chart = LineChart::new(&[Some(25), None, Some(50), Some(0)]);
        assert_eq!((chart.path.as_str(), chart.open_segment.as_str()), ("M37.5 50M187.5 0", "M187.5 0L262.5 100"));
        assert_eq!(chart.dots, "M37.5 50h0M262.5 100h0");
        let chart = LineChart::new(&[Some(50), Some(25), None]);
        assert_eq!((chart.path.as_str(), chart.open_segment.as_str()), ("M50 0L150 50", ""));
        assert_eq!(LineChart::new(&[]).path, "");
        assert_eq!(LineChart::new(&[Some(51)]).scale[0], "100 %");
    }
}
