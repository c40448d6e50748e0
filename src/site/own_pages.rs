//! The pages that makers add to the built-in ones: every `pages/NAME.md` of `site_dir`, in folders too.

use super::built_in::built_in;
use super::content::Content;
use super::notes::SiteNote;
use super::page::PageAddress;

const FOLDER: &str = "pages/";
const EXTENSION: &str = ".md";
/// The page of a folder.
const INDEX: &str = "index";
const MAX_PAGE_MEBIBYTES: u64 = 1;

/// The addresses of the pages, sorted, and the files in `pages/` that are no page. `is_taken` tells whether the service itself
/// uses a path.
pub(super) fn own_pages(content: &Content, is_taken: &dyn Fn(&str) -> bool) -> (Vec<PageAddress>, Vec<SiteNote>) {
    let (mut pages, mut unused) = (Vec::<PageAddress>::new(), Vec::new());
    for file in content.own_names(FOLDER).into_iter().filter(|file| built_in(file).is_none()) {
        let address = address(content, &file, is_taken).and_then(|address| {
            match pages.iter().find(|other| other.path == address.path) {
                Some(other) => Err(format!("pages/{}.md has the same address", other.name)),
                None => Ok(address),
            }
        });
        match address {
            Ok(address) => pages.push(address),
            Err(why) => unused.push(SiteNote::unused(file, why)),
        }
    }
    (pages, unused)
}

fn address(content: &Content, file: &str, is_taken: &dyn Fn(&str) -> bool) -> Result<PageAddress, String> {
    let name = file.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(EXTENSION));
    let name = name.ok_or("files in pages/ are Markdown and end in .md")?;
    let is_segment = |segment: &str| {
        !segment.is_empty() && segment.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
    };
    if !name.split('/').all(is_segment) {
        return Err("the name of a page has only the letters a to z, digits, - and _".to_owned());
    }
    if name == INDEX {
        return Err("the home page is pages/home.md".to_owned());
    }
    let path = format!("/{}", name.strip_suffix("/index").unwrap_or(name));
    let markdown_path = format!("/{name}.md");
    if let Some(taken) = [&path, &markdown_path].into_iter().find(|path| is_taken(path)) {
        return Err(format!("the service itself uses the address {taken}"));
    }
    content.check_own(file, MAX_PAGE_MEBIBYTES)?;
    Ok(PageAddress { name: name.to_owned(), path, markdown_path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_markdown_file_is_a_page_and_what_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let pages = folder.path().join("pages");
        std::fs::create_dir_all(pages.join("help")).unwrap();
        std::fs::create_dir_all(pages.join("fr")).unwrap();
        for name in [
            "about.md",
            "faq.md",
            "help/install.md",
            "fr/index.md",
            "fr.md",
            "index.md",
            "mcp.md",
            "Größe.md",
            "a b.md",
            "notes.txt",
        ] {
            std::fs::write(pages.join(name), "page").unwrap();
        }
        std::fs::write(pages.join("long.md"), vec![b'x'; 2 * 1024 * 1024]).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", pages.join("out.md")).unwrap();
        std::os::unix::fs::symlink("faq.md", pages.join("questions.md")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, pages.join("pipe.md"), rustix::fs::Mode::RUSR).unwrap();
        let content = Content::with_folder(folder.path()).unwrap();
        let (pages, unused) = own_pages(&content, &|path| path == "/mcp");
        let pages: Vec<_> = pages.iter().map(|page| [page.path.as_str(), &page.markdown_path]).collect();
        assert_eq!(
            pages,
            [
                ["/faq", "/faq.md"],
                ["/fr", "/fr.md"],
                ["/help/install", "/help/install.md"],
                ["/questions", "/questions.md"]
            ]
        );
        let unused: Vec<_> = unused.iter().map(ToString::to_string).collect();
        assert_eq!(
            unused,
            [
                "pages/Größe.md is not used: the name of a page has only the letters a to z, digits, - and _.",
                "pages/a b.md is not used: the name of a page has only the letters a to z, digits, - and _.",
                "pages/fr/index.md is not used: pages/fr.md has the same address.",
                "pages/index.md is not used: the home page is pages/home.md.",
                "pages/long.md is not used: it is larger than 1 MiB.",
                "pages/mcp.md is not used: the service itself uses the address /mcp.",
                "pages/notes.txt is not used: files in pages/ are Markdown and end in .md.",
                "pages/out.md is not used: it leads out of the site's folder.",
                "pages/pipe.md is not used: it is not a file.",
            ]
        );
    }
}
