//! The colours of site and mails: `[look]` in site.toml, and what is derived from its three colours.
//!
//! Every text can be read: a derived surface or text goes only as far from the chosen colours as the contrast allows.

use std::fmt::Write;

use serde::Serialize;
use toml::Spanned;

use super::content::SiteFailure;
use super::facts::{LookFacts, SiteFacts};
use crate::domain::colour::Colour;

/// What WCAG 2 asks of text, and of the edges of fields.
const TEXT_CONTRAST: f64 = 4.5;
const EDGE_CONTRAST: f64 = 3.0;
/// Of an accent that nobody chose: it can also be read on surfaces that differ from the background.
const CLEAR_CONTRAST: f64 = 6.0;

/// The colours of a scheme that mails have too.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Palette {
    background: Colour,
    text: Colour,
    /// Of links, and of other text that stands out.
    accent: Colour,
    /// Of text on the accent.
    on_accent: Colour,
    /// Of what stands out and is no text.
    mark: Colour,
    /// Behind code.
    tint: Colour,
    line: Colour,
    soft: Colour,
}

const LIGHT: Palette = Palette {
    background: Colour([0xfb, 0xf9, 0xf4]),
    text: Colour([0x22, 0x1f, 0x2b]),
    accent: Colour([0x8a, 0x4b, 0x00]),
    on_accent: Colour::WHITE,
    mark: Colour([0xd9, 0x8a, 0x1b]),
    tint: Colour([0xef, 0xeb, 0xe2]),
    line: Colour([0xd9, 0xd3, 0xc6]),
    soft: Colour([0x5d, 0x57, 0x66]),
};

const DARK: Palette = Palette {
    background: Colour([0x13, 0x11, 0x19]),
    text: Colour([0xef, 0xec, 0xe4]),
    accent: Colour([0xf2, 0xb4, 0x57]),
    on_accent: Colour([0x13, 0x11, 0x19]),
    mark: Colour([0xd9, 0x8a, 0x1b]),
    tint: Colour([0x22, 0x1f, 0x2b]),
    line: Colour([0x37, 0x32, 0x3f]),
    soft: Colour([0xb3, 0xad, 0xba]),
};

/// Of errors, and in the dark scheme of code.
const LIGHT_ALARM: Colour = Colour([0xa6, 0x1b, 0x12]);
const DARK_ALARM: Colour = Colour([0xff, 0x9c, 0x8d]);
const CODE_WORDS: Colour = Colour([0xbd, 0xb4, 0xf5]);

/// The colours of both schemes, also the variable `look` of the templates.
#[derive(Debug, Serialize)]
pub(super) struct Look {
    light: Palette,
    dark: Palette,
    /// What is added to the style sheet, if the makers chose any colour.
    #[serde(skip)]
    pub style: String,
}

impl Look {
    pub(super) fn new(facts: &SiteFacts) -> Result<Self, SiteFailure> {
        let LookFacts { accent, background, text, dark } = &facts.look;
        let light = [accent, background, text];
        let dark = [&dark.accent, &dark.background, &dark.text];
        if light.iter().chain(&dark).all(|colour| colour.is_none()) {
            return Ok(Self { light: LIGHT, dark: DARK, style: String::new() });
        }
        let light = Scheme::new(facts, light, None, LIGHT, LIGHT_ALARM)?;
        // An accent that is chosen for the light scheme alone is lightened for the dark one.
        let dark = Scheme::new(facts, dark, accent.as_ref().map(value), DARK, DARK_ALARM)?;
        Ok(Self { light: light.palette, dark: dark.palette, style: style(&light, &dark) })
    }
}

/// All colours of the style sheet in a light or dark scheme.
struct Scheme {
    palette: Palette,
    on_mark: Colour,
    raised: Colour,
    sunk: Colour,
    edge: Colour,
    wash: Colour,
    alarm: Colour,
    alarm_wash: Colour,
}

impl Scheme {
    /// `chosen` are accent, background and text. Those that are not are as in `default`, and the accent rather as `preferred`.
    fn new(
        facts: &SiteFacts,
        chosen: [&Option<Spanned<Colour>>; 3],
        preferred: Option<Colour>,
        default: Palette,
        alarm: Colour,
    ) -> Result<Self, SiteFailure> {
        let [accent, background, text] = chosen.map(Option::as_ref);
        let place = background.or(text).map_or(0, |chosen| chosen.span().start);
        let background = background.map_or(default.background, value);
        let text = text.map_or(default.text, value);
        let is_dark = |background: Colour, text: Colour| background.luminance() < text.luminance();
        if is_dark(background, text) != is_dark(default.background, default.text) {
            let why = "the background is lighter than the text in [look], and darker in [look.dark]";
            return Err(facts.fault_at(place, why));
        }
        if let Some(why) = unreadable(text, "text", background, None) {
            return Err(facts.fault_at(place, &why));
        }
        let readable = |colour, least| furthest(text, colour, 100, |ink| ink.contrast(background) >= least);
        if let Some(accent) = accent {
            let instead = readable(value(accent), TEXT_CONTRAST);
            if let Some(why) = unreadable(value(accent), "accent", background, Some(instead)) {
                return Err(facts.fault_at(accent.span().start, &why));
            }
        }
        let preferred = accent.map(value).or(preferred);
        let accent = accent.map_or_else(|| readable(preferred.unwrap_or(default.accent), CLEAR_CONTRAST), value);
        let mark = preferred.map_or(default.mark, |_| accent);

        let carries_text = |surface: Colour| [text, accent].iter().all(|ink| ink.contrast(surface) >= TEXT_CONTRAST);
        let surface = |toward, percent| furthest(background, toward, percent, carries_text);
        let (lighter, share) = if is_dark(background, text) { (text, 5) } else { (Colour::WHITE, 70) };
        let (raised, sunk) = (surface(lighter, share), surface(text, 3));
        let (wash, tint) = (surface(accent, 8), surface(text, 7));
        let surfaces = [background, raised, sunk, wash, tint];
        let on_surfaces = |least| move |ink: Colour| surfaces.iter().all(|surface| ink.contrast(*surface) >= least);
        let alarm = furthest(text, alarm, 100, on_surfaces(TEXT_CONTRAST));
        let is_alarmed = |surface: Colour| carries_text(surface) && alarm.contrast(surface) >= TEXT_CONTRAST;
        let clearer = |one: Colour, two: Colour| if mark.contrast(one) >= mark.contrast(two) { one } else { two };
        Ok(Self {
            on_mark: clearer(background, text),
            edge: furthest(text, background, 50, on_surfaces(EDGE_CONTRAST)),
            alarm_wash: furthest(background, alarm, 6, is_alarmed),
            palette: Palette {
                on_accent: background,
                line: background.mix(text, 14),
                soft: furthest(text, background, 28, on_surfaces(TEXT_CONTRAST)),
                background,
                text,
                accent,
                mark,
                tint,
            },
            raised,
            sunk,
            wash,
            alarm,
        })
    }
}

fn value(chosen: &Spanned<Colour>) -> Colour {
    *chosen.get_ref()
}

/// The mixture with the largest share of `to`, up to a percentage, that is fine; `from` if none is.
fn furthest(from: Colour, to: Colour, percent: u8, is_fine: impl Fn(Colour) -> bool) -> Colour {
    (1..=percent).rev().map(|share| from.mix(to, share)).find(|mixture| is_fine(*mixture)).unwrap_or(from)
}

/// Says why a colour cannot be read on the background, if it cannot, and which one could.
fn unreadable(colour: Colour, name: &str, background: Colour, instead: Option<Colour>) -> Option<String> {
    let contrast = colour.contrast(background);
    (contrast < TEXT_CONTRAST).then(|| {
        // Not rounded up, so that 4.499 is not shown as 4.5.
        let shown = (contrast * 100.0).floor() / 100.0;
        let instead = instead.map(|instead| format!("; {instead} would do")).unwrap_or_default();
        format!(
            "the {name} {colour} on the background {background} has a contrast of {shown}, and 4.5 is needed{instead}"
        )
    })
}

/// The custom properties of the style sheet in the chosen colours.
fn style(light: &Scheme, dark: &Scheme) -> String {
    let of = |part: fn(&Scheme) -> Colour| [part(light), part(dark)];
    let tokens = [
        ("paper", of(|scheme| scheme.palette.background)),
        ("raised", of(|scheme| scheme.raised)),
        ("sunk", of(|scheme| scheme.sunk)),
        ("tint", of(|scheme| scheme.palette.tint)),
        ("ink", of(|scheme| scheme.palette.text)),
        ("soft", of(|scheme| scheme.palette.soft)),
        ("line", of(|scheme| scheme.palette.line)),
        ("edge", of(|scheme| scheme.edge)),
        ("lamp", of(|scheme| scheme.palette.mark)),
        ("lamp-ink", of(|scheme| scheme.palette.accent)),
        ("lamp-wash", of(|scheme| scheme.wash)),
        ("on-lamp", of(|scheme| scheme.on_mark)),
        ("alarm", of(|scheme| scheme.alarm)),
        ("alarm-wash", of(|scheme| scheme.alarm_wash)),
        ("glow", of(|scheme| scheme.palette.background.mix(scheme.palette.mark, 42))),
        ("bulb", of(|scheme| Colour::WHITE.mix(scheme.palette.mark, 30))),
    ];
    let mut style = "\n/* [look] in site.toml */\n@layer tokens {\n  :root {\n".to_owned();
    for (name, [light, dark]) in tokens {
        let _ = writeln!(style, "    --{name}: light-dark({light}, {dark});");
    }
    // Code and stages are dark in both schemes.
    let inks = [dark.palette.text, dark.palette.soft, dark.palette.accent, CODE_WORDS];
    let carries_code = |surface: Colour| inks.iter().all(|ink| ink.contrast(surface) >= TEXT_CONTRAST);
    let code = furthest(Colour::BLACK, dark.raised, 100, carries_code);
    let _ = writeln!(style, "    --code: {code}; --copy: {code}; --stage: {code};\n  }}");
    style + "  @media (prefers-contrast: more) { :root { --soft: var(--ink); --line: var(--edge); } }\n}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::content::Content;

    fn look(lines: &str) -> Result<Look, SiteFailure> {
        let folder = tempfile::tempdir().unwrap();
        let facts = Content::default().text("site.toml").unwrap();
        std::fs::write(folder.path().join("site.toml"), format!("{facts}\n{lines}\n")).unwrap();
        Look::new(&SiteFacts::read(&Content::with_folder(folder.path()).unwrap())?)
    }

    /// The light and the dark value of a custom property.
    fn token(look: &Look, name: &str) -> [Colour; 2] {
        let (_, rest) = look.style.split_once(&format!("--{name}: light-dark(")).unwrap();
        let (light, dark) = rest.split_once(')').unwrap().0.split_once(", ").unwrap();
        [light, dark].map(|colour| Colour::parse(colour).unwrap())
    }

    #[test]
    fn all_text_can_be_read_in_any_colours_that_are_accepted() {
        for lines in [
            "[look]\naccent = \"#0066cc\"",
            "[look]\naccent = \"#767676\"\nbackground = \"#fff\"\ntext = \"#767676\"",
            "[look]\nbackground = \"#ccc\"\n[look.dark]\nbackground = \"#555\"\ntext = \"#fff\"",
            "[look.dark]\naccent = \"#0f0\"\nbackground = \"#000\"\ntext = \"#757575\"",
        ] {
            let look = look(lines).unwrap();
            for scheme in 0..2 {
                let colour = |name| token(&look, name)[scheme];
                for surface in ["paper", "raised", "sunk", "tint", "lamp-wash"].map(colour) {
                    for ink in ["ink", "soft", "lamp-ink", "alarm"].map(colour) {
                        assert!(ink.contrast(surface) >= TEXT_CONTRAST, "{lines}: {ink} on {surface}");
                    }
                    assert!(colour("edge").contrast(surface) >= EDGE_CONTRAST, "{lines}: {surface}");
                }
                assert!(colour("alarm").contrast(colour("alarm-wash")) >= TEXT_CONTRAST, "{lines}");
            }
        }
    }

    #[test]
    fn what_is_not_chosen_stays_and_the_dark_accent_is_made_from_the_light_one() {
        let built_in = look("").unwrap();
        assert_eq!((built_in.style.as_str(), built_in.light.text, built_in.dark.text), ("", LIGHT.text, DARK.text));
        let look = look("[look]\naccent = \"#00308f\"").unwrap();
        assert_eq!([look.light.background, look.dark.background], [LIGHT.background, DARK.background]);
        assert_eq!(token(&look, "lamp-ink"), [look.light.accent, look.dark.accent]);
        assert_eq!(look.light.accent.to_string(), "#00308f");
        assert!(look.dark.accent.contrast(DARK.background) >= TEXT_CONTRAST);
    }
}
