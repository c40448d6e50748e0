"""Draws series of samples over time as one SVG: a panel for each quantity, a line for each database."""

import html

WIDTH, PANEL, LEFT, RIGHT, TOP = 960, 130, 90, 20, 30
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600 } .muted { fill: #59636e } .end { text-anchor: end }
    .paper { fill: #fff } .grid { stroke: #d1d9e0 } polyline { fill: none; stroke-width: 1.5 }
    .line0 { stroke: #2b7a4b } .line1 { stroke: #b35900; stroke-dasharray: 5 3 } .text0 { fill: #2b7a4b } .text1 { fill: #b35900 }
    @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3 } .muted { fill: #9198a1 } .paper { fill: #0d1117 } .grid { stroke: #3d444d }
        .line0 { stroke: #4cae78 } .line1 { stroke: #e08a3c } .text0 { fill: #4cae78 } .text1 { fill: #e08a3c }
    }"""


def _text(x, y, kind, content):
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{html.escape(content)}</text>\n'


def _panel(y, title, lines, minutes):
    highest = max((value for _, samples in lines for _, value in samples), default=0) or 1
    bottom, height = y + PANEL - 40, PANEL - 60
    body = _text(16, y, "title", title)
    for part in (0, 1):
        at = bottom - part * height
        body += f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.0f}" y2="{at:.0f}" class="grid"/>\n'
        body += _text(LEFT - 8, at + 4, "muted end", f"{highest * part:,.4g}")
    for number, (_, samples) in enumerate(lines):
        points = " ".join(f"{LEFT + time / 60 / minutes * (WIDTH - LEFT - RIGHT):.1f},{bottom - value / highest * height:.1f}"
                          for time, value in samples)
        body += f'<polyline class="line{number % 2}" points="{points}"/>\n'
    return body


def draw(title, panels, minutes):
    """`panels` are {quantity: [(name of a line, [(seconds, value)])]}."""
    y, body = TOP, ""
    names = list(dict.fromkeys(name for lines in panels.values() for name, _ in lines))
    body += _text(16, y, "title", title)
    for number, name in enumerate(names):
        body += _text(WIDTH - 220 + 100 * number, y, f"text{number % 2}", name)
    y += 36
    for quantity, lines in panels.items():
        body += _panel(y, quantity, lines, minutes)
        y += PANEL
    body += _text(LEFT, y - 20, "muted", "0 minutes") + _text(WIDTH - RIGHT, y - 20, "muted end", f"{minutes:g} minutes")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" aria-label="{html.escape(title)}">\n'
            f'<style>{STYLE}\n</style>\n<rect class="paper" width="{WIDTH}" height="{y}"/>\n{body}</svg>\n')
