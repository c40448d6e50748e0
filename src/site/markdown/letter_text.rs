//! A letter as plain text, without the marks of Markdown. Paragraphs are single lines, which mail programs wrap.

use comrak::Node;
use comrak::nodes::{ListType, NodeList, NodeValue};

/// A table that is wider is written row by row.
const MAX_TABLE_WIDTH: usize = 72;

/// The blocks in a node, with an empty line between them.
pub(super) fn blocks(parent: Node) -> String {
    join_blocks(parent, "\n\n")
}

fn join_blocks(parent: Node, separator: &str) -> String {
    let blocks = parent.children().map(|node| block(node, separator)).filter(|block| !block.is_empty());
    blocks.collect::<Vec<_>>().join(separator)
}

/// `separator` comes between the blocks in a list or an item.
fn block(node: Node, separator: &str) -> String {
    let data = node.data();
    match &data.value {
        NodeValue::Paragraph => inline(node),
        NodeValue::Heading(heading) => match heading.level {
            1 => underlined(&inline(node), "="),
            2 => underlined(&inline(node), "-"),
            _ => inline(node),
        },
        NodeValue::List(list) => items(node, list),
        NodeValue::BlockQuote => prefixed(&blocks(node), "> ", "> "),
        NodeValue::CodeBlock(code) => prefixed(code.literal.trim_end_matches('\n'), "    ", "    "),
        NodeValue::ThematicBreak => "-".repeat(20),
        NodeValue::Table(_) => table(node),
        NodeValue::FootnoteDefinition(_) => {
            let is_footnote = |node: &Node| matches!(node.data().value, NodeValue::FootnoteDefinition(_));
            let number = node.preceding_siblings().filter(is_footnote).count();
            prefixed(&blocks(node), &format!("[{number}] "), "    ")
        }
        _ => join_blocks(node, separator),
    }
}

fn items(node: Node, list: &NodeList) -> String {
    let separator = if list.tight { "\n" } else { "\n\n" };
    let items = (list.start..).zip(node.children()).map(|(number, item)| {
        let marker = match list.list_type {
            ListType::Bullet => "- ".to_owned(),
            ListType::Ordered => format!("{number}. "),
        };
        prefixed(&join_blocks(item, separator), &marker, &" ".repeat(marker.len()))
    });
    items.collect::<Vec<_>>().join(separator)
}

fn underlined(title: &str, line: &str) -> String {
    let width = title.lines().map(width).max().unwrap_or_default();
    format!("{title}\n{}", line.repeat(width))
}

/// Puts `first` before the first line, and `next` before the others.
fn prefixed(text: &str, first: &str, next: &str) -> String {
    let lines = text.split('\n').enumerate();
    let lines =
        lines.map(|(index, line)| format!("{}{line}", if index == 0 { first } else { next }).trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Columns of equal width, or a line for each cell if they do not fit.
fn table(node: Node) -> String {
    let cells = |row: Node| row.children().map(|cell| inline(cell).replace('\n', " ")).collect::<Vec<_>>();
    let rows: Vec<_> = node.children().map(cells).collect();
    let Some((header, body)) = rows.split_first() else { return String::new() };
    let column_width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    let widths: Vec<_> = (0..header.len()).filter_map(column_width).collect();
    if widths.iter().map(|width| width + 2).sum::<usize>() > MAX_TABLE_WIDTH {
        let row = |row: &Vec<String>| {
            let cells = header.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            cells.map(|(title, cell)| format!("{title}: {cell}")).collect::<Vec<_>>().join("\n")
        };
        return body.iter().map(row).collect::<Vec<_>>().join("\n\n");
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, full)| cell.clone() + &" ".repeat(full - width(cell)));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rule = widths.iter().map(|width| "-".repeat(*width)).collect();
    [line(header), line(&rule)].into_iter().chain(body.iter().map(line)).collect::<Vec<_>>().join("\n")
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// The text of the nodes in a block.
pub(super) fn inline(parent: Node) -> String {
    let text = parent.children().map(piece).collect::<String>();
    // What was left out leaves two spaces.
    text.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n").replace("  ", " ")
}

fn piece(node: Node) -> String {
    match &node.data().value {
        NodeValue::Text(literal) => literal.clone().into_owned(),
        NodeValue::Code(code) => code.literal.clone(),
        NodeValue::SoftBreak => " ".to_owned(),
        NodeValue::LineBreak => "\n".to_owned(),
        NodeValue::Image(_) => format!("[{}]", node.collect_text().trim()),
        NodeValue::FootnoteReference(footnote) => format!("[{}]", footnote.ix),
        NodeValue::Link(link) => {
            let words = inline(node);
            let address = link.url.strip_prefix("mailto:").unwrap_or(&link.url);
            // The URL alone, or one that starts with `www.`
            let is_address = words == address || address.strip_prefix("http://") == Some(&words);
            if is_address { words } else { format!("{words} <{address}>").trim_start().to_owned() }
        }
        _ => node.children().map(piece).collect(),
    }
}
