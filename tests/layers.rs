//! Checks the architecture: a layer may use the layers below it, never those above or beside it, and no modules use each other.

#![expect(clippy::expect_used, clippy::panic, reason = "this is how tests fail and say where")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use fancy_regex::Regex;

/// The modules of the crate by layer, as `ARCHITECTURE.md` lists them.
const LAYERS: [(&str, u8); 17] = [
    ("cli", 5),
    ("serve", 4),
    ("web", 3),
    ("actions", 2),
    ("store", 1),
    ("mail", 1),
    ("site", 1),
    ("bucket", 1),
    ("probe", 1),
    ("tls", 1),
    ("acme", 1),
    ("logging", 1),
    ("domain", 0),
    ("config", 0),
    ("blocking", 0),
    ("clock", 0),
    ("http_client", 0),
];

/// Arrows within a layer: settings and the clock use types of the domain, and tests set the clock by a variable.
const WITHIN_A_LAYER: [(&str, &str); 3] = [("config", "domain"), ("clock", "domain"), ("clock", "config")];

/// The files of a module from the lowest to the highest. `x::*` stands for `x` and all below it, and `""` for the module's own
/// file. A file may use those beside it and below it.
const ORDERS: [(&str, &[&[&str]]); 5] = [
    (
        "store",
        &[
            // Pools, hosts, TLS, statements and migrations
            &["connection::*"],
            // Tables that belong to one subject
            &["app", "backup::*", "certificate", "health", "releases", "revisions", "statistics", "tasks", "tokens"],
            &["maker_mails", "outbox"],
            &["desk"],
            &["contact::*", "letters::*"],
            // Rows of several subjects
            &["people::*", "signups"],
            // Batches of writes
            &["writer::*"],
            // The public names of the module
            &[""],
        ],
    ),
    (
        "actions",
        &[
            &["failure", "random", "revision_cache"],
            &["certificate", "desk", "letter_archive", "releases::*", "statistics", "tokens"],
            // The state that actions share
            &["service"],
            // Use cases
            &["backup::*", "contact", "expiry", "health::*", "letters::*", "outbox::*", "people::*", "signups", "site"],
            &[""],
        ],
    ),
    (
        "web",
        &[
            // Parts of requests and responses
            &[
                "allowed_methods",
                "body",
                "endpoints",
                "fields",
                "desk::api::problem",
                "headers",
                "initiator",
                "json",
                "limits::*",
                "log",
                "mcp::message",
                "metrics",
                "negotiate",
                "problem",
                "ranges",
                "refusal",
                "representation",
                "response",
                "shape",
                "wrong_tokens",
            ],
            // One ready-made response
            &["served"],
            // What is built once
            &[
                "discovery::*",
                "letters",
                "mcp::results",
                "mcp::server_info",
                "mcp::tools",
                "reference",
                "releases::feeds",
            ],
            // All of it together
            &["built_site"],
            // What the command `check` and the desk look at
            &["checks::*"],
            // State
            &["app"],
            // Handlers
            &[
                "api",
                "dashboard::*",
                "desk",
                "desk::access",
                "desk::activity",
                "desk::api",
                "desk::api::parameters",
                "desk::api::releases",
                "desk::api::requests",
                "desk::pages::*",
                "desk::releases",
                "forms",
                "mcp",
                "mcp::calls",
                "mcp::endpoint",
                "fallback",
                "ops::*",
                "redirect",
                "releases",
                "releases::downloads",
                "shell",
                "tokens",
            ],
            &["routes"],
            &["pipeline"],
            // The public names of the module
            &[""],
        ],
    ),
    (
        "serve",
        &[
            &["background", "connection_timeouts", "failure", "task_supervisor"],
            &["certificate_reload", "client_stream", "context", "read_body"],
            &["http1", "http2", "mailing"],
            &["accept"],
            &["listeners"],
            // Starts all of it
            &["running"],
            &[""],
        ],
    ),
    (
        "config",
        &[
            &["secret", "text"],
            &["https", "images", "mail", "ops_and_clients", "setting_names"],
            // Flags, environment and file
            &["file_and_environment"],
            // The parsed settings
            &["settings"],
            &[""],
        ],
    ),
];

/// The code of every module by its path, such as `web::mcp::tools`. Comments and unit tests are left out.
fn modules() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut pending = vec![root.clone()];
    let mut modules = BTreeMap::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = path.strip_prefix(&root).expect("a file below src").with_extension("");
            let module = file.to_str().expect("UTF-8").replace('/', "::");
            let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
            let text = std::fs::read_to_string(&path).expect("a source file");
            let code = text.split("#[cfg(test)]").next().expect("a first part");
            let code: Vec<_> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            if !["main", "lib"].contains(&module.as_str()) {
                modules.insert(module, code.join("\n"));
            }
        }
    }
    assert!(modules.len() > 40, "the sources were not found");
    modules
}

/// `pub(in crate::store)` uses nothing.
static VISIBILITY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bpub\([\w\s:]+\)").expect("a pattern"));
static USE_DECLARATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\s*(?:pub\s+)?use\s+([\w\s:{},*]+);").expect("a pattern"));
static PATH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[a-z_]\w*(?:::\w+)+").expect("a pattern"));

/// The modules that `code`, which is the code of `module`, names: in `use` declarations and in paths.
fn used_modules(module: &str, code: &str, known: &BTreeSet<&str>) -> BTreeSet<String> {
    let code = &*VISIBILITY.replace_all(code, "pub");
    let mut paths = Vec::new();
    for found in USE_DECLARATION.captures_iter(code) {
        expand("", &found.expect("a match")[1], &mut paths);
    }
    let rest = USE_DECLARATION.replace_all(code, "");
    paths.extend(PATH.find_iter(&*rest).map(|found| found.expect("a match").as_str().to_owned()));
    paths.iter().filter_map(|path| resolve(module, path, known)).filter(|used| used != module).collect()
}

/// Turns `a::{b, c::{self, d}}` into `a::b`, `a::c` and `a::c::d`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, list)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().expect("a first part").trim();
        paths.push(format!("{prefix}{name}").trim_end_matches("::self").to_owned());
        return;
    };
    let list = list.strip_suffix('}').expect("a closing brace");
    let (mut depth, mut start) = (0, 0);
    for (place, character) in list.char_indices().chain([(list.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !list[start..place].trim().is_empty() {
                    expand(&format!("{prefix}{}", head.trim()), &list[start..place], paths);
                }
                start = place + 1;
            }
            _ => {}
        }
    }
}

/// The module that a path in `module` leads to; `None` for a path into another crate.
fn resolve(module: &str, path: &str, known: &BTreeSet<&str>) -> Option<String> {
    let mut place: Vec<_> = module.split("::").collect();
    let mut names = path.split("::").peekable();
    match names.peek() {
        Some(&"crate") => {
            names.next();
            place.clear();
        }
        Some(&"self") => drop(names.next()),
        Some(&"super") => {
            while names.next_if_eq(&"super").is_some() {
                place.pop();
            }
        }
        // A path may start with a module that is declared here.
        Some(name) if known.contains(format!("{module}::{name}").as_str()) => {}
        _ => return None,
    }
    for name in names {
        place.push(name);
        if !known.contains(place.join("::").as_str()) {
            place.pop();
            break;
        }
    }
    Some(place.join("::")).filter(|module| !module.is_empty())
}

/// Every module with those that it uses.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let modules = modules();
    let known: BTreeSet<_> = modules.keys().map(String::as_str).collect();
    modules.iter().map(|(module, code)| (module.clone(), used_modules(module, code, &known))).collect()
}

fn may_use(module: &str, used: &str) -> bool {
    let layer = |name: &str| {
        let found = LAYERS.iter().find(|(module, _)| *module == name);
        found.unwrap_or_else(|| panic!("`{name}` is in no layer: add it to LAYERS")).1
    };
    let [module, used] = [module, used].map(|path| path.split("::").next().expect("a first name"));
    module == used || layer(used) < layer(module) || WITHIN_A_LAYER.contains(&(module, used))
}

fn is_listed(entry: &str, module: &str) -> bool {
    match entry.strip_suffix("::*") {
        Some(folder) => module.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")),
        None => module == entry,
    }
}

/// The place of a module in one of [`ORDERS`].
fn place(order: &[&[&str]], within: &str) -> Option<usize> {
    order.iter().position(|files| files.iter().any(|entry| is_listed(entry, within)))
}

/// The path of a module below its first name.
fn within<'a>(first: &str, module: &'a str) -> Option<&'a str> {
    let rest = module.strip_prefix(first)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix("::") }
}

/// Whether `used` is in a higher place of its module's order than `module`, or in none.
fn is_above(module: &str, used: &str) -> bool {
    ORDERS.iter().any(|(first, order)| match (within(first, module), within(first, used)) {
        (Some(module), Some(used)) => place(order, used).is_none_or(|used| Some(used) > place(order, module)),
        _ => false,
    })
}

/// The arrows that are part of a cycle, or lie between two cycles.
fn cycles(mut arrows: BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    loop {
        let using: BTreeSet<_> = arrows.iter().map(|(module, _)| module.clone()).collect();
        let used: BTreeSet<_> = arrows.iter().map(|(_, used)| used.clone()).collect();
        let before = arrows.len();
        arrows.retain(|(module, other)| used.contains(module) && using.contains(other));
        if arrows.len() == before {
            return arrows;
        }
    }
}

#[test]
fn no_module_uses_a_higher_layer_or_a_neighbour() {
    let mut count = 0;
    for (module, used) in arrows() {
        for used in used {
            assert!(may_use(&module, &used), "`{module}` uses `{used}`");
            count += 1;
        }
    }
    assert!(count > 400, "only {count} uses were found");
}

#[test]
fn no_file_uses_one_above_it_in_its_module() {
    for (module, used) in arrows() {
        for used in used {
            assert!(!is_above(&module, &used), "`{module}` uses `{used}`, which is above it");
        }
    }
}

#[test]
fn no_modules_use_each_other() {
    let arrows: BTreeSet<_> = arrows()
        .into_iter()
        .flat_map(|(module, used)| used.into_iter().map(move |used| (module.clone(), used)))
        .collect();
    assert_eq!(cycles(arrows), BTreeSet::new(), "these modules use each other");
}

#[test]
fn the_orders_name_every_file_once_and_nothing_else() {
    let modules = modules();
    for (first, order) in ORDERS {
        let files: Vec<_> = modules.keys().filter_map(|module| within(first, module)).collect();
        for entry in order.concat() {
            assert!(files.iter().any(|file| is_listed(entry, file)), "there is no `{first}::{entry}`");
        }
        for file in files {
            let entries = order.concat().into_iter().filter(|entry| is_listed(entry, file)).count();
            assert_eq!(entries, 1, "`{first}::{file}` has to be in one place of ORDERS");
        }
    }
}

#[test]
fn a_use_of_a_higher_layer_or_a_neighbour_is_found() {
    let modules = modules();
    let known: BTreeSet<_> = modules.keys().map(String::as_str).collect();
    for (module, code) in [
        ("store::people", "use crate::actions::Failure;"),
        ("store", "fn f() { crate::site::Site::build() }"),
        ("domain::text", "use crate::{config::Settings, clock::Clock};"),
        ("web::app", "use crate::serve::{self, RunningService};"),
    ] {
        let used = used_modules(module, code, &known);
        assert!(used.iter().any(|used| !may_use(module, used)), "{code}: {used:?}");
    }
    for (module, code) in [
        ("web::served", "use super::app::App;"),
        ("web::problem", "pub use crate::web::App;"),
        ("web::app", "fn f() -> Router { super::routes::router() }"),
        ("web::built_site", "use super::{\n    discovery, forms::{self as f},\n};"),
        ("web::mcp::server_info", "use crate::web::{json, mcp::endpoint};"),
        ("web::mcp::tools", "use super::super::pipeline;"),
        ("web::releases::feeds", "use super::downloads;"),
        ("store::connection::statement", "use crate::store::tasks::Task;"),
        ("store::letters::confirmations", "use crate::store::{Store, StoreFailure};"),
        ("store::signups", "pub(in crate::store) use super::writer::Writer;"),
        ("actions::releases::publish", "use crate::actions::Service;"),
        ("serve::http1", "use super::accept;"),
        ("config::secret", "use super::file_and_environment::Origin;"),
    ] {
        let used = used_modules(module, code, &known);
        assert!(used.iter().any(|used| is_above(module, used)), "{code}: {used:?}");
    }
    let downward = "use crate::web::{json, problem::{self, Problem}};\nuse super::shape::Field as F;\npub(in crate::web) fn f() {}";
    let used = used_modules("web::fields", downward, &known);
    assert!(used.iter().eq(["web::json", "web::problem", "web::shape"]), "{used:?}");
    assert!(used.iter().all(|used| !is_above("web::fields", used)));
    assert!(is_above("web::fields", "web::unlisted"));
    let face = used_modules("web", "use app::App;\nfn f() { pipeline::handle() }", &known);
    assert!(face.iter().eq(["web::app", "web::pipeline"]), "{face:?}");
}

#[test]
fn a_cycle_is_found() {
    let arrow = |(from, to): (&str, &str)| (from.to_owned(), to.to_owned());
    let cycle = [("a", "b"), ("b", "c"), ("c", "a")].map(arrow);
    let all = cycle.iter().cloned().chain([("x", "a"), ("c", "y"), ("x", "y")].map(arrow));
    assert_eq!(cycles(all.collect()), cycle.into_iter().collect());
}

#[test]
fn only_the_store_contains_sql() {
    let sql = Regex::new(r"(?i)\bsqlx\b|\b(?:SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b");
    let sql = sql.expect("a pattern");
    let modules = modules();
    let with_sql = modules.iter().filter(|(_, code)| code.lines().any(|line| sql.is_match(line).expect("a match")));
    let with_sql: BTreeSet<_> = with_sql.map(|(module, _)| module.split("::").next().expect("a first name")).collect();
    assert_eq!(with_sql, BTreeSet::from(["store"]));
}

#[test]
fn only_the_settings_read_the_environment() {
    let environment = Regex::new(r"\benv::(?:var|vars|var_os|vars_os)\b|\bdotenv").expect("a pattern");
    let modules = modules();
    let readers = modules.iter().filter(|(_, code)| environment.is_match(code).expect("a match"));
    assert_eq!(readers.map(|(module, _)| module.as_str()).collect::<Vec<_>>(), ["config::file_and_environment"]);
}
