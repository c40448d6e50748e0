//! Charts as numbers: where bars and lines go in a drawing that a template makes of them.
//!
//! A drawing is 300 wide and 100 high and is stretched to whatever room there is, so it holds no
//! words; those stand around it. What happened at all is seen.

use serde_json::{Value, json};

use super::words::grouped;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 100.0;
/// The least that a bar is high, of a hundred.
const LEAST_HEIGHT: f64 = 1.5;
/// The least that a row is long, of a hundred.
const LEAST_LENGTH: f64 = 1.0;

/// The least round number that is not below `most`, with a round half.
fn top(most: u64) -> u64 {
    let mut unit = 1;
    loop {
        if let Some(top) =
            [2, 4, 6, 8, 10, 12, 14, 16, 18, 24, 30].into_iter().map(|step| step * unit).find(|top| *top >= most)
        {
            return top;
        }
        unit *= 10;
    }
}

/// One bar a pair: the first number, and before it the second, narrower.
pub(super) fn bars(pairs: &[(u64, u64)]) -> Value {
    let top = top(pairs.iter().map(|(outer, inner)| *outer.max(inner)).max().unwrap_or_default());
    let step = WIDTH / as_f64(pairs.len() as u64).max(1.0);
    let drawn: Value = pairs
        .iter()
        .enumerate()
        .map(|(place, (outer, inner))| {
            let left = step * as_f64(place as u64);
            let [outer, inner] = [outer, inner].map(|number| part(*number, top, HEIGHT, LEAST_HEIGHT));
            json!({
                "left": rounded(left),
                "step": rounded(step),
                "x": rounded(left + step * 0.12),
                "width": rounded(step * 0.76),
                "y": rounded(HEIGHT - outer),
                "height": rounded(outer),
                "inner_x": rounded(left + step * 0.3),
                "inner_width": rounded(step * 0.4),
                "inner_y": rounded(HEIGHT - inner),
                "inner_height": rounded(inner),
            })
        })
        .collect();
    json!({ "bars": drawn, "scale": [grouped(top), grouped(top / 2), "0"] })
}

/// A line through percentages, with a gap where there is none. The way to the last, which still
/// moves, is apart; a point that no line reaches is a dot, and so is the last.
pub(super) fn line(shares: &[Option<u64>]) -> Value {
    let step = WIDTH / as_f64(shares.len() as u64).max(1.0);
    let most = shares.iter().flatten().max().copied().unwrap_or_default();
    let top = if most > 50 { 100 } else { 50 };
    let point = |place: usize| {
        let share = (*shares.get(place)?)?;
        let x = rounded(step * (as_f64(place as u64) + 0.5));
        Some(format!("{x} {}", rounded(HEIGHT - as_f64(share) / as_f64(top) * HEIGHT)))
    };
    let before = |place: usize| place.checked_sub(1).and_then(point);
    let last = shares.len().saturating_sub(1);
    let lonely = |place: usize| place == last || !(before(place).is_some() || point(place + 1).is_some());
    let step_to = |place: usize| Some(format!("{}{}", if before(place).is_some() { 'L' } else { 'M' }, point(place)?));
    let path: String = (0..last).filter_map(step_to).collect();
    let dots: String = (0..shares.len())
        .filter(|place| lonely(*place))
        .filter_map(|place| Some(format!("M{}h0", point(place)?)))
        .collect();
    let to_last = before(last).zip(point(last)).map(|(from, to)| format!("M{from}L{to}"));
    let scale = [top, top / 2, 0].map(|share| format!("{share} %"));
    json!({ "path": path, "to_last": to_last.unwrap_or_default(), "dots": dots, "scale": scale })
}

/// How long the row of a number is, of a hundred.
pub(super) fn length(number: u64, most: u64) -> f64 {
    rounded(part(number, most.max(1), 100.0, LEAST_LENGTH))
}

fn part(number: u64, whole: u64, room: f64, least: f64) -> f64 {
    if number == 0 { 0.0 } else { (as_f64(number) / as_f64(whole) * room).max(least) }
}

/// Exact for all that anybody counts here.
#[expect(clippy::cast_precision_loss, reason = "a drawing is not that precise")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_round_and_holds_everything() {
        for (most, round) in [(0, 2), (2, 2), (3, 4), (7, 8), (11, 12), (59, 60), (61, 80), (1366, 1400), (1900, 2400)]
        {
            assert_eq!(top(most), round, "{most}");
        }
        let drawn = bars(&[(0, 0), (1330, 665)]);
        assert_eq!(drawn["scale"], json!(["1,400", "700", "0"]));
        assert_eq!((&drawn["bars"][1]["height"], &drawn["bars"][1]["inner_height"]), (&json!(95.0), &json!(47.5)));
    }

    #[test]
    fn bars_and_rows_never_vanish_beside_a_million() {
        let drawn = bars(&[(1_000_000, 900_000), (2, 1), (0, 0)]);
        assert_eq!((&drawn["bars"][1]["height"], &drawn["bars"][1]["inner_height"]), (&json!(1.5), &json!(1.5)));
        assert_eq!((&drawn["bars"][2]["height"], &drawn["bars"][2]["inner_height"]), (&json!(0.0), &json!(0.0)));
        assert_eq!(json!([1, 0, 500_000].map(|number| length(number, 1_000_000))), json!([1.0, 0.0, 50.0]));
    }

    #[test]
    fn a_line_has_a_gap_where_there_is_no_share_and_the_last_way_is_apart() {
        let drawn = line(&[Some(25), None, Some(50), Some(0)]);
        assert_eq!((&drawn["path"], &drawn["to_last"]), (&json!("M37.5 50M187.5 0"), &json!("M187.5 0L262.5 100")));
        assert_eq!(drawn["dots"], "M37.5 50h0M262.5 100h0");
        let drawn = line(&[Some(50), Some(25), None]);
        assert_eq!((&drawn["path"], &drawn["to_last"]), (&json!("M50 0L150 50"), &json!("")));
        assert_eq!(line(&[])["path"], "");
        assert_eq!(line(&[Some(51)])["scale"][0], "100 %");
    }
}
