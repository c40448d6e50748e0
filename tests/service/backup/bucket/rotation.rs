//! What is kept in the bucket, and what is deleted.

use porchlight::actions::BucketBackupStep;

use super::{DAY, MADE, Offsite};
use crate::harness::{Service, each_migrated_database};
use crate::releases::live;

#[tokio::test]
async fn the_newest_seven_backups_and_one_of_each_week_before_are_kept_with_their_images_and_nothing_else() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        service.publish("1.5.0");
        let offsite = Offsite::new();
        let instance = offsite.instance(&service, service.clock.clone());
        // A Monday.
        service.clock.advance(DAY);
        assert_eq!((instance.step().await, offsite.images().len()), (MADE, 2));
        // Later backups do not have this image.
        let (code, output) = service.release(&["withdraw", "1.4.0", "--yes"]);
        assert_eq!(code, 0, "{output}");
        std::fs::remove_file(service.releases_dir().join("Troupe-1.4.0.dmg")).expect("an image");
        for day in 17..=31 {
            service.clock.advance(DAY);
            assert_eq!(instance.step().await, MADE);
            let first_is_kept = day < 24;
            assert_eq!(offsite.days().contains(&"2026-11-16".to_owned()), first_is_kept, "{day}");
            assert_eq!(offsite.images().len(), if first_is_kept { 2 } else { 1 }, "{day}");
        }
        let days = ["11-22", "11-24", "11-25", "11-26", "11-27", "11-28", "11-29", "11-30", "12-01"];
        assert_eq!(offsite.days(), days.map(|day| format!("2026-{day}")));
        let days = offsite.days();
        let other = |key: &String| !days.iter().any(|day| key.contains(day)) && !key.contains("/images/");
        assert_eq!(offsite.bucket.objects().into_iter().filter(other).collect::<Vec<_>>(), Vec::<String>::new());
        service.stop().await;
    }
}

#[tokio::test]
async fn what_the_service_has_not_written_stays_and_a_key_that_may_not_delete_is_said() {
    let [sqlite, _] = each_migrated_database().await;
    let service = Service::start(live(), sqlite).await;
    let offsite = Offsite::new();
    for key in ["site/notes.txt", "site/images/logo.png", "other/2020-01-01/contents", "site/2020-01-01.tar"] {
        offsite.bucket.command(&format!("put:{key}"));
    }
    let instance = offsite.instance(&service, service.clock.clone());
    for _ in 0..9 {
        assert_eq!(instance.step().await, MADE);
        service.clock.advance(DAY);
    }
    let objects = offsite.bucket.objects();
    let foreign = objects.iter().filter(|key| !key.starts_with("site/2026-"));
    assert_eq!(foreign.count(), 4, "{objects:?}");
    assert_eq!(offsite.days().len(), 9);

    offsite.bucket.command("keep");
    let mut problems = Vec::new();
    for _ in 0..3 {
        problems.push(instance.step().await);
        service.clock.advance(DAY);
    }
    let problem = problems.iter().any(|step| match step {
        BucketBackupStep::Made(Some(problem)) => {
            problem.starts_with("old backups could not be deleted: the bucket refused")
        }
        _ => false,
    });
    assert!(problem, "{problems:?}");
    offsite.bucket.command("work");
    assert_eq!(instance.step().await, MADE);
    service.stop().await;
}
