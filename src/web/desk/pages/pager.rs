//! The pages of a list, and what leads from one to the next: links, or the buttons of a form if the list is of a search, which no
//! address of the desk may contain.

use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::form::Form;
use crate::domain::paging::{Page, PageStart};

/// Where a page begins. A place that cannot be read is the newest page.
pub(super) fn start<P>(fields: &Form, place: impl Fn(&str) -> Option<P>) -> PageStart<P> {
    match (place(fields.text("older")), place(fields.text("newer"))) {
        (Some(place), _) => PageStart::OlderThan(place),
        (None, Some(place)) => PageStart::NewerThan(place),
        (None, None) => PageStart::Newest,
    }
}

/// What the template `pager.html` needs. `fields` are those that choose the list; `place` names an item.
pub(super) fn pager<T>(
    page: &Page<T>,
    (path, fields): (&str, &[(&str, &str)]),
    is_search: bool,
    place: impl Fn(&T) -> String,
) -> Value {
    let beside = |has, name, item: Option<&T>| {
        let place = place(item.filter(|_| has)?);
        Some(if is_search { place } else { link(path, &[fields, &[(name, &place)]].concat()) })
    };
    json!({
        "newer": beside(page.has_newer, "newer", page.items.first()),
        "older": beside(page.has_older, "older", page.items.last()),
        "form": is_search.then(|| json!({ "path": path, "fields": fields })),
    })
}

/// A path with a query, without the fields that are empty.
pub(super) fn link(path: &str, fields: &[(&str, &str)]) -> String {
    let mut query = Serializer::new(String::new());
    query.extend_pairs(fields.iter().filter(|(_, value)| !value.is_empty()));
    format!("{path}?{}", query.finish()).trim_end_matches('?').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_leads_to_those_beside_it_by_links_or_by_a_form() {
        let page = Page { items: vec!["b", "a"], has_newer: true, has_older: true };
        let list = ("/desk/x", &[("filter", "a&b"), ("empty", "")][..]);
        let links = pager(&page, list, false, |item| (*item).to_owned());
        let expected =
            json!({ "newer": "/desk/x?filter=a%26b&newer=b", "older": "/desk/x?filter=a%26b&older=a", "form": null });
        assert_eq!(links, expected);
        let form = pager(&page, list, true, |item| (*item).to_owned());
        assert_eq!((&form["newer"], &form["older"]), (&json!("b"), &json!("a")));
        assert_eq!(form["form"], json!({ "path": "/desk/x", "fields": [["filter", "a&b"], ["empty", ""]] }));
        let only = pager(&Page { has_newer: false, has_older: false, ..page }, list, false, |item| (*item).to_owned());
        assert_eq!(only, json!({ "newer": null, "older": null, "form": null }));
        assert_eq!(link("/desk/x", &[("filter", "")]), "/desk/x");
    }
}
