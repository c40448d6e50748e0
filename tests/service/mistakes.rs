//! Mistakes that makers make in the files of their site, in settings and on the command line. Each message leads to the place: the
//! file and the line, what is wrong there, and the nearest name that is known.

use std::fs;
use std::path::Path;

use crate::harness::Program;

const FACTS: &str = include_str!("../../content/site.toml");

fn page(more: &str, body: &str) -> String {
    format!("---\ntitle: T\ndescription: D\nlast_updated: 2026-11-01\n{more}---\n# T\n\n{body}\n")
}

/// Runs `check` on a site in which one file has this text. Returns its exit code and what it prints.
fn check(file: &str, text: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("site").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    run(folder.path(), &["check", "--site-dir", "site"], &[])
}

fn run(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String) {
    let mut command = Program::command(folder, arguments);
    command.envs(environment.iter().copied());
    Program::run(command)
}

#[track_caller]
fn assert_says(output: &str, sentence: &str) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(output).contains(sentence), "{sentence}\n{output}");
}

#[test]
fn a_mistake_in_the_facts_names_the_line_and_the_nearest_name() {
    let last = FACTS.lines().count();
    for (place, text, sentence) in [
        (1, "taglin = \"x\"", "unknown name `taglin`. Did you mean `tagline`?"),
        (1, "tagline = ", "string values must be quoted, expected literal string"),
        (1, "name = \"Twice\"", "duplicate key"),
        (1, "works_with = \"Xcode\"\nx = 1", "invalid type: string \"Xcode\", expected a sequence"),
        (
            1,
            "signature = \"notarized\"",
            "unknown variant `notarized`, expected one of `unsigned`, `signed`, `notarised`",
        ),
        (1, "language = \"klingon\"", "write a language as de, fr or pt-BR"),
        (1, "source_url = \"example.com\"", "it is not an http or https URL"),
        (1, "security_txt_expires = \"soon\"", "write a day as 2026-11-15"),
        (1, "notice = \"a\\nb\"", "the notice is one line"),
        (1, "price = \"0\"", "at the end of the file write [price], and below it lines such as amount = \"19.00\""),
        (last + 2, "\n[lok]\naccent = \"#000\"", "unknown name `lok`. Did you mean `look`?"),
        (last + 3, "\n[look]\nacent = \"#000\"", "unknown name `acent`. Did you mean `accent`?"),
        (last + 3, "\n[look]\naccent = \"bluish\"", "write a colour as #0a84ff"),
        (last + 3, "\n[look]\naccent = \"#eeeeee\"", "has a contrast of"),
        (last + 4, "\n[price]\namount = \"9\"\ncurency = \"EUR\"", "unknown name `curency`. Did you mean `currency`?"),
        (
            last + 3,
            "\n[nav]\nhide = [\"abuot\"]",
            "[nav] hides `abuot`, and there is no such page. Did you mean `about`?",
        ),
        (last + 3, "\n[redirects]\nold = \"/about\"", "a redirect starts at a path such as /old, not at `old`"),
        (last + 3, "\n[redirects]\n\"/about\" = \"/\"", "/about is in use, so it cannot lead elsewhere"),
        (
            last + 3,
            "\n[redirects]\n\"/old\" = \"about\"",
            "/old leads to `about`, which is neither a path such as /new",
        ),
    ] {
        let facts = if place == 1 { format!("{text}\n{FACTS}") } else { format!("{FACTS}{text}\n") };
        let (code, output) = check("site.toml", &facts);
        assert_eq!(code, 1, "{output}");
        assert_says(&output, sentence);
        if text != "name = \"Twice\"" {
            assert_says(&output, &format!("site.toml has a fault in line {place}: "));
        }
    }
}

#[test]
fn a_mistake_on_a_page_or_in_a_template_names_the_line_as_in_the_file() {
    for (file, text, sentence) in [
        ("pages/x.md", "# X\n", "pages/x.md has a fault in line 1: it has to start with front matter"),
        ("pages/x.md", "---\ntitle: T\nthis is it\n---\n", "line 3: front matter has lines of the form name: value"),
        ("pages/x.md", "---\ntitle: T\nlast_updated: 2026-11-01\n---\n", "pages/x.md has a fault in line 1: "),
        (
            "pages/x.md",
            &page("template: pge.html\n", ""),
            "line 5: there is no template `pge.html` in templates/. Did you mean `page.html`?",
        ),
        ("pages/x.md", &page("nav: first\n", ""), "line 5: write `nav: 2` for the second place"),
        ("pages/x.md", &page("noindex: yes\n", ""), "line 5: write `noindex: true` or `noindex: false`"),
        ("pages/x.md", &page("language: french\n", ""), "line 5: write a language as de, fr or pt-BR"),
        (
            "pages/x.md",
            &page("language: fr\ntranslation_of: /abuot\n", ""),
            "line 6: there is no page /abuot that it could translate. Did you mean `/about`?",
        ),
        ("pages/x.md", &page("", "{{ app.nme }}"), "line 8: `app.nme` is undefined. Did you mean `app.name`?"),
        ("pages/x.md", &page("", "\n{{ polices }}"), "line 9: `polices` is undefined. Did you mean `policies`?"),
        (
            "pages/x.md",
            &page("", "{{ asset(\"icn.svg\") }}"),
            "line 8: invalid operation: there is no asset icn.svg. Did you mean `icon.svg`?",
        ),
        ("pages/x.md", &page("", "{% if app.name %}"), "pages/x.md has a fault in line "),
        ("pages/x.md", &page("", "{{ app.name|uper }}"), "line 8: unknown filter: filter uper is unknown"),
        (
            "templates/page.html",
            "<p>\n{% include \"parts/fcts.html\" %}",
            "templates/page.html has a fault in line 2: tried to include non-existing template 'parts/fcts.html'. Did you mean \
             `parts/facts.html`?",
        ),
        (
            "templates/page.html",
            "<p>\n{{ pge }}",
            "page.html has a fault in line 2: `pge` is undefined. Did you mean `page`?",
        ),
        ("templates/page.html", "<p>\n\n{% endif %}", "page.html has a fault in line 3: syntax error"),
        (
            "assets/style.css",
            "\na { background: url(asset:icn.svg) }",
            "assets/style.css has a fault in line 2: there is no asset icn.svg. Did you mean `icon.svg`?",
        ),
        (
            "words.toml",
            "[en.form]\nemial = \"x\"\n",
            "words.toml has a fault in line 2: `form` has no such word `emial`. Did you mean `email`?",
        ),
        (
            "words.toml",
            "[en.from]\nemail = \"x\"\n",
            "words.toml has a fault in line 1: there is no group of words `from`. Did you mean `form`?",
        ),
    ] {
        let (code, output) = check(file, text);
        assert_eq!(code, 1, "{sentence}: {output}");
        assert_says(&output, sentence);
    }
}

#[test]
fn what_a_site_can_be_served_with_is_named_and_not_refused() {
    for (file, text, sentence) in [
        (
            "pages/x.md",
            &*page("", "[Privacy](/privcy)"),
            "pages/x.md, line 8, links to /privcy, where nothing is. Did you mean `/privacy`?",
        ),
        (
            "pages/x.md",
            &page("", "[Install](help/install)"),
            "pages/x.md, line 8, links to help/install, where nothing is.",
        ),
        (
            "pages/x.md",
            &page("", "## Why it is free {#why}\n\n[Why](#wy)"),
            "pages/x.md, line 10, links to #wy, and /x has no such anchor. Did you mean `why`?",
        ),
        (
            "pages/x.md",
            &page("", "[About](/about#nowhere)"),
            "line 8, links to /about#nowhere, and /about has no such anchor.",
        ),
        (
            "pages/x.md",
            &page("", "![A shot](https://images.example/shot.png)"),
            "line 8, loads https://images.example/shot.png, and browsers load nothing from other hosts here",
        ),
        ("pages/x.md", &page("", "![A shot](/assets/shto.png)"), "line 8, shows /assets/shto.png, which is not there."),
        (
            "assets/custom.css",
            "\n@import \"https://fonts.example/serif.css\";\n",
            "assets/custom.css, line 2, loads https://fonts.example/serif.css",
        ),
        (
            "pages/Größe.md",
            "",
            "pages/Größe.md is not used: the name of a page has only the letters a to z, digits, - and _.",
        ),
        ("pages/api.md", "", "pages/api.md is not used: the service itself uses the address /api."),
        ("page/x.md", "", "page/ is not used: a site has no such folder. Did you mean `pages`?"),
        ("word.toml", "", "word.toml is not used: a site has no such file. Did you mean `words.toml`?"),
        ("templates/offer.html", "", "templates/offer.html is not used: no page and no other template names it."),
    ] {
        let (code, output) = check(file, text);
        assert_eq!(code, 0, "{sentence}: {output}");
        assert_says(&output, sentence);
    }
    let (_, output) = check("README.md", "# The site\n");
    assert!(!output.contains("site files"), "{output}");
}

#[test]
fn mistakes_in_settings_name_the_setting_and_the_nearest_one() {
    let folder = tempfile::tempdir().unwrap();
    for (text, sentence) in [
        ("\nbase_ulr = 'https://a.example'\n", "unknown setting `base_ulr` in line 2. Did you mean `base_url`?"),
        ("listen = '127.0.0.1:0'\n\nlisten = '127.0.0.1:1'", "line 3 sets `listen` again"),
        ("# the address\nlisten = 8080x\n", "porchlight.toml is not TOML: line 2"),
        ("site_dir = 'nowhere'", "The setting `site_dir` cannot be used: "),
        ("base_url = 'troupe.example'", "`base_url`"),
        ("confirm_updates = 'maybe'", "`confirm_updates`"),
    ] {
        fs::write(folder.path().join("porchlight.toml"), text).unwrap();
        let (code, output) = run(folder.path(), &["check"], &[]);
        assert_eq!(code, 1, "{output}");
        assert_says(&output, sentence);
    }
    fs::remove_file(folder.path().join("porchlight.toml")).unwrap();
    let misspelt = [("PORCHLIGHT_BSE_URL", "https://a.example")];
    let (code, output) = run(folder.path(), &["check"], &misspelt);
    assert_eq!(code, 0, "{output}");
    assert_says(&output, "PORCHLIGHT_BSE_URL in the environment is not a setting, and is ignored. Did you mean");
    for (arguments, sentence) in [
        ("check --site-dri .", "'--site-dir'"),
        ("release publsh a.dmg", "'publish'"),
        ("site copy pages/abuot.md --site-dir .", "Did you mean `pages/about.md`?"),
    ] {
        let (code, output) = run(folder.path(), &arguments.split(' ').collect::<Vec<_>>(), &[]);
        assert_ne!(code, 0, "{output}");
        assert_says(&output, sentence);
    }
}
