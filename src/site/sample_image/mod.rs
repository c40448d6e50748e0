//! A small disk image, made here, that a local preview hands out while nothing has been published:
//! a download can be tried from end to end before there is an app.

mod big_endian;
mod hfs_plus;
mod udif;

const FILE: &str = "Read me.txt";

/// A disk image with nothing but a text that says what it is. The same name gives the same bytes.
#[must_use]
pub fn sample_image(app: &str) -> Vec<u8> {
    let name = volume_name(app);
    let text = format!(
        "This is a sample, not {name}.

Nothing has been published yet. Until something is, a local preview of the site
hands out this disk image, so that you can try the download from end to end.
A public site never does.

To publish your app, run:

    porchlight release publish FILE.dmg --version 1.0.0
"
    );
    udif::udif(&hfs_plus::volume(&name, FILE, text.as_bytes()))
}

/// The app's name, as far as a volume can bear it: without what separates folders or cannot be seen,
/// and short enough to be read.
fn volume_name(app: &str) -> String {
    let name: String = app
        .chars()
        .filter(|letter| !letter.is_control())
        .map(|letter| if matches!(letter, '/' | ':') { '-' } else { letter })
        .take(60)
        .collect();
    match name.trim().trim_start_matches('.') {
        "" => "Sample".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;
    use crate::domain::disk_image::{self, NotADiskImage, TRAILER};

    const EXTRACT: &[&str] = &["x"];
    const EXTRACT_WITHOUT_FOLDERS: &[&str] = &["e", "-ir!Read me.txt"];
    const TEST_CHECKSUMS: &[&str] = &["t", "-tdmg"];

    fn check(image: &[u8]) -> Result<(), NotADiskImage> {
        disk_image::check(image.last_chunk::<TRAILER>().unwrap(), image.len() as u64)
    }

    /// Lays the image down in `folder` and lets 7-Zip work on it there. Its warnings are failures too.
    fn seven_zip(task: &[&str], image: &[u8], folder: &Path) -> Result<(), String> {
        let file = folder.join("sample.dmg");
        fs::write(&file, image).unwrap();
        let run = |program| Command::new(program).args(task).arg(&file).current_dir(folder).output();
        let done = run("7zz").or_else(|_| run("7z"));
        let done = done.expect("7-Zip opens the sample here: install Debian's package `7zip`");
        let words = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        if done.status.success() && !words.contains("WARNING") { Ok(()) } else { Err(words) }
    }

    /// The read-me as 7-Zip finds it, and the folder that it makes of the volume.
    fn read_me(app: &str) -> (String, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        seven_zip(EXTRACT, &sample_image(app), folder.path()).unwrap();
        let volume = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
        let volume = volume.expect("a folder named after the volume");
        (fs::read_to_string(volume.join(FILE)).unwrap(), volume.file_name().unwrap().into())
    }

    #[test]
    fn the_sample_is_a_disk_image_whose_read_me_says_what_it_is() {
        assert_eq!(check(&sample_image("Troupe")), Ok(()));
        let (text, volume) = read_me("Troupe");
        assert_eq!(volume, Path::new("Troupe"));
        for words in [
            "a sample, not Troupe",
            "Nothing has been published",
            "porchlight release publish FILE.dmg --version 1.0.0",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn the_checksums_of_a_sample_are_right() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(seven_zip(TEST_CHECKSUMS, &sample_image("Troupe"), folder.path()), Ok(()));
    }

    #[test]
    fn any_app_may_have_a_sample() {
        for (app, volume) in [
            ("Café", "Cafe\u{301}"),
            ("a/b:c", "a-b-c"),
            ("한글 🎭", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} 🎭"),
            ("<&>", "<&>"),
            (" ..\0\n", "Sample"),
        ] {
            assert_eq!(read_me(app).1, Path::new(volume), "{app:?}");
        }
    }

    #[test]
    fn names_without_end_are_cut_where_a_volume_has_no_more_room() {
        // Of the second letter, each takes eight units of a volume's name.
        for app in ["Troupe ".repeat(1000), "\u{1d163}".repeat(1000)] {
            let folder = tempfile::tempdir().unwrap();
            seven_zip(EXTRACT_WITHOUT_FOLDERS, &sample_image(&app), folder.path()).unwrap();
            assert!(fs::read_to_string(folder.path().join(FILE)).unwrap().contains("Nothing has been published"));
        }
    }

    #[test]
    fn a_sample_is_small_and_always_the_same() {
        assert_eq!(sample_image("Troupe"), sample_image("Troupe"));
        assert!(sample_image("Troupe").len() < 10_000);
    }

    #[test]
    fn a_sample_that_was_cut_short_opens_nowhere() {
        let image = sample_image("Troupe");
        let without_end = &image[..image.len() - 1];
        let without_middle = [&image[..500], &image[600..]].concat();
        for cut in [without_end, &without_middle] {
            assert!(check(cut).is_err());
            let folder = tempfile::tempdir().unwrap();
            assert!(seven_zip(EXTRACT, cut, folder.path()).is_err());
        }
    }
}
