//! Charts as numbers: where bars and lines go in a drawing that a template makes of them.
//!
//! A drawing is 300 wide and 100 high and is stretched to whatever room there is, so it holds no
//! words; those stand around it.

use serde_json::{Value, json};

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 100.0;

/// A number with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A part of a whole in percent, if there is a whole.
pub(super) fn share(part: u64, whole: u64) -> Option<u64> {
    (whole > 0).then(|| (part.min(whole) * 100 + whole / 2) / whole)
}

/// The least round number that is not below `most`, with a round half.
fn top(most: u64) -> u64 {
    let mut unit = 1;
    loop {
        if let Some(top) = [2, 4, 6, 8, 10, 12, 14, 16, 18].into_iter().map(|step| step * unit).find(|top| *top >= most)
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
    let height = |number: u64| as_f64(number) / as_f64(top) * HEIGHT;
    let drawn: Value = pairs
        .iter()
        .enumerate()
        .map(|(place, (outer, inner))| {
            let left = step * as_f64(place as u64);
            json!({
                "left": rounded(left),
                "step": rounded(step),
                "x": rounded(left + step * 0.12),
                "width": rounded(step * 0.76),
                "y": rounded(HEIGHT - height(*outer)),
                "height": rounded(height(*outer)),
                "inner_x": rounded(left + step * 0.3),
                "inner_width": rounded(step * 0.4),
                "inner_y": rounded(HEIGHT - height(*inner)),
                "inner_height": rounded(height(*inner)),
            })
        })
        .collect();
    json!({ "bars": drawn, "scale": [grouped(top), grouped(top / 2), "0"] })
}

/// A line through percentages, with a gap where there is none.
pub(super) fn line(shares: &[Option<u64>]) -> Value {
    let step = WIDTH / as_f64(shares.len() as u64).max(1.0);
    let most = shares.iter().flatten().max().copied().unwrap_or_default();
    let top = if most > 50 { 100 } else { 50 };
    let moves = shares.iter().enumerate().filter_map(|(place, share)| {
        let x = rounded(step * (as_f64(place as u64) + 0.5));
        let y = rounded(HEIGHT - as_f64((*share)?) / as_f64(top) * HEIGHT);
        let goes_on = place > 0 && shares[place - 1].is_some();
        // A line to itself shows as a dot, so that a lonely point is seen.
        Some(if goes_on { format!("L{x} {y}") } else { format!("M{x} {y}h0") })
    });
    let path = moves.collect::<Vec<_>>().concat();
    json!({ "path": path, "scale": [format!("{top} %"), format!("{} %", top / 2), "0 %".to_owned()] })
}

/// Rows with a bar each, as long as its share of the longest.
pub(super) fn rows(rows: &[(String, u64)]) -> Value {
    let most = rows.iter().map(|(_, number)| *number).max().unwrap_or_default().max(1);
    let all = rows.iter().map(|(_, number)| *number).sum();
    rows.iter()
        .map(|(name, number)| {
            json!({
                "name": name,
                "number": grouped(*number),
                "share": share(*number, all).unwrap_or_default(),
                "width": rounded(as_f64(*number) / as_f64(most) * 100.0),
            })
        })
        .collect()
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
        for (most, round) in [(0, 2), (2, 2), (3, 4), (7, 8), (11, 12), (59, 60), (61, 80), (1366, 1400), (1900, 2000)]
        {
            assert_eq!(top(most), round, "{most}");
        }
        let drawn = bars(&[(0, 0), (1330, 665)]);
        assert_eq!(drawn["scale"], json!(["1,400", "700", "0"]));
        assert_eq!((&drawn["bars"][1]["height"], &drawn["bars"][1]["inner_height"]), (&json!(95.0), &json!(47.5)));
        assert_eq!(drawn["bars"][0]["height"], json!(0.0));
    }

    #[test]
    fn a_line_has_a_gap_where_there_is_no_share() {
        let drawn = line(&[Some(25), None, Some(50), Some(0)]);
        assert_eq!(drawn["path"], "M37.5 50h0M187.5 0h0L262.5 100");
        assert_eq!(line(&[])["path"], "");
        assert_eq!(line(&[Some(51)])["scale"][0], "100 %");
    }

    #[test]
    fn numbers_are_told_in_groups_and_shares_as_percent() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((share(1, 3), share(5, 0), share(9, 3)), (Some(33), None, Some(100)));
    }
}
