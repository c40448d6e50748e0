//! The look of a site: colours, an own style sheet, and copies of built-in files.

use std::fs;

use porchlight::config::RawSettings;

use crate::harness::{Program, Service, on_one_database, on_one_database_with};

const LOOK: &str = "[look]\naccent = \"#0066cc\"\nbackground = \"#ffffff\"\ntext = \"#101418\"\n\n[look.dark]\nbackground = \"#0b1118\"";

fn site(more: &str) -> (tempfile::TempDir, RawSettings) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("assets")).unwrap();
    let facts = include_str!("../../content/site.toml");
    fs::write(folder.path().join("site.toml"), format!("{facts}\n{more}\n")).unwrap();
    let site_dir = Some(folder.path().display().to_string());
    (folder, RawSettings { site_dir, ..RawSettings::default() })
}

/// The style sheets of a page, in their order.
async fn styles(service: &Service, page: &str) -> Vec<String> {
    let html = service.get(page).await.text();
    let links = html.split("<link rel=\"stylesheet\" href=\"").skip(1);
    links.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn three_colours_change_site_and_mails() {
    let (folder, written) = site(LOOK);
    on_one_database_with(written, async |service| {
        let [style] = styles(service, "/about").await.try_into().unwrap();
        let style = service.get(&style).await.text();
        let (_, look) = style.split_once("/* [look] in site.toml */").expect("the colours");
        for token in
            ["--paper: light-dark(#fff, #0b1118);", "--lamp-ink: light-dark(#06c, #", "--ink: light-dark(#101418, "]
        {
            assert!(look.contains(token), "{token}: {look}");
        }
        let html = service.get("/").await.text();
        assert!(html.contains("name=\"theme-color\" content=\"#fff\" media=\"(prefers-color-scheme: light)\""));
        assert!(html.contains("name=\"theme-color\" content=\"#0b1118\" media=\"(prefers-color-scheme: dark)\""));
    })
    .await;

    fs::write(folder.path().join("letter.md"), "# News\n\nHello.\n").unwrap();
    let site_dir = folder.path().display().to_string();
    let preview = Program::command(folder.path(), &["letter", "preview", "letter.md", "--site-dir", &site_dir]);
    let (code, output) = Program::run(preview);
    assert_eq!(code, 0, "{output}");
    let mail = fs::read_to_string(folder.path().join("letter.preview.html")).unwrap();
    assert!(
        mail.contains("a { color: #06c; }") && mail.contains(".page { background-color: #0b1118 !important;"),
        "{mail}"
    );
}

#[tokio::test]
async fn without_colours_of_ones_own_nothing_is_added() {
    on_one_database(async |service| {
        let [style] = styles(service, "/").await.try_into().unwrap();
        let style = service.get(&style).await.text();
        assert_eq!(style.lines().count(), include_str!("../../content/assets/style.css").lines().count());
        assert!(service.get("/").await.text().contains("name=\"theme-color\" content=\"#fbf9f4\""));
    })
    .await;
}

#[test]
fn colours_that_cannot_be_read_are_refused_with_the_figure_and_the_line() {
    for (look, line, sentence) in [
        (
            "[look]\n\naccent = \"#0a84ff\"",
            3,
            "the accent #0a84ff on the background #fbf9f4 has a contrast of 3.46, and 4.5 is needed; #",
        ),
        (
            "[look]\nbackground = \"#fff\"\ntext = \"#777\"",
            2,
            "the text #777 on the background #fff has a contrast of 4.47, and 4.5 is needed.",
        ),
        (
            "[look.dark]\naccent = \"#333\"\nbackground = \"#000\"",
            2,
            "the accent #333 on the background #000 has a contrast of 1.66, and 4.5 is needed; #",
        ),
        (
            "[look]\nbackground = \"#000\"\ntext = \"#fff\"",
            2,
            "the background is lighter than the text in [look], and darker in [look.dark].",
        ),
        ("[look]\naccent = \"blue\"", 2, "write a colour as #0a84ff."),
        ("[look]\nacent = \"#000\"", 2, "unknown name `acent`. Did you mean `accent`?"),
    ] {
        let (folder, written) = site(look);
        let site_dir = written.site_dir.unwrap();
        let (code, output) = Program::run(Program::command(folder.path(), &["check", "--site-dir", &site_dir]));
        let line = include_str!("../../content/site.toml").lines().count() + 1 + line;
        let place = format!("site.toml has a fault in line {line}: {sentence}");
        assert!(code == 1 && output.contains(&place), "{place}\n{output}");
    }
}

#[tokio::test]
async fn a_style_sheet_of_ones_own_comes_last_on_every_page() {
    let (folder, written) = site("");
    fs::write(folder.path().join("assets/custom.css"), "body { background: url(asset:icon.svg) }").unwrap();
    on_one_database_with(written, async |service| {
        for page in ["/", "/about", "/developers", "/contact", "/nothing-here"] {
            let styles = styles(service, page).await;
            assert!(styles.len() == 2 && styles[0].starts_with("/assets/style."), "{page}: {styles:?}");
            assert!(service.get(&styles[1]).await.text().starts_with("body { background: url(/assets/icon."), "{page}");
        }
    })
    .await;
}

#[test]
fn built_in_files_are_copied_to_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        |arguments: &[&str]| Program::run(Program::command(folder.path(), &[&["site", "copy"], arguments].concat()));
    let (code, names) = run(&["--list"]);
    assert_eq!(code, 0, "{names}");
    for name in
        ["pages/contact.md", "templates/pictures/window.html", "assets/style.css", "agents/llms.txt", "site.toml"]
    {
        assert!(names.lines().any(|line| line == name), "{name}: {names}");
    }
    let (code, output) = run(&["pages/contact.md"]);
    assert!(code == 1 && output.starts_with("Set `site_dir` to the folder of your site, or"), "{output}");

    fs::create_dir(folder.path().join("site")).unwrap();
    let copy = |names: &[&str]| run(&[names, &["--site-dir", "site"]].concat());
    let page = folder.path().join("site/pages/contact.md");
    for (name, meant) in [
        ("pages/contcat.md", "Did you mean `pages/contact.md`? `--list` lists them."),
        ("letter.html", "Did you mean `templates/letter.html`?"),
        ("../site.toml", "there is no built-in file ../site.toml. "),
    ] {
        let (code, output) = copy(&["pages/contact.md", name]);
        assert!(code == 1 && output.starts_with("Nothing was written: ") && output.contains(meant), "{output}");
        assert!(!page.exists());
    }
    let (code, output) = copy(&["pages/contact.md", "templates/pictures/lamp.html"]);
    assert_eq!(
        (code, output.as_str()),
        (0, "Wrote site/pages/contact.md.\nWrote site/templates/pictures/lamp.html.\n")
    );
    assert_eq!(fs::read(&page).unwrap(), include_bytes!("../../content/pages/contact.md"));

    fs::write(&page, "mine").unwrap();
    let (code, output) = copy(&["pages/about.md", "pages/contact.md"]);
    assert!(code == 1 && output.contains("site/pages/contact.md exists already. Add `--force`"), "{output}");
    assert_eq!(
        (fs::read_to_string(&page).unwrap().as_str(), page.with_file_name("about.md").exists()),
        ("mine", false)
    );
    assert_eq!(copy(&["--force", "pages/contact.md"]).0, 0);
    assert_ne!(fs::read_to_string(&page).unwrap(), "mine");
}
