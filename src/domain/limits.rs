//! Limits on what visitors, clients and the makers may send, and numbers that the documentation promises.
//!
//! Each is defined here and used by name elsewhere. `CHARS` counts Unicode code points.

use std::time::Duration;

use super::rate_limit::{Period, RateLimit};

/// Longest email address, as typed.
pub const MAX_EMAIL_CHARS: usize = 254;
/// Longest local part of an email address.
pub const MAX_LOCAL_PART_BYTES: usize = 64;
/// Longest `source` of a signup.
pub const MAX_SOURCE_CHARS: usize = 32;
/// Longest sender name of a contact message.
pub const MAX_NAME_CHARS: usize = 100;
/// Shortest contact message, not counting surrounding whitespace.
pub const MIN_MESSAGE_CHARS: usize = 2;
/// Longest contact message.
pub const MAX_MESSAGE_CHARS: usize = 4000;

/// Largest request body that is accepted.
pub const MAX_BODY_BYTES: usize = 64 * 1024;
/// How much of a body that is too large is read and discarded, so that the client can read the response.
pub const MAX_DISCARDED_BODY_BYTES: usize = 1024 * 1024;
/// Deepest nesting of a JSON body.
pub const MAX_JSON_DEPTH: usize = 127;
/// Largest request line and headers together.
pub const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Most requests in flight on one HTTP/2 connection.
pub const MAX_STREAMS: u32 = 64;
/// Most requests in flight of one client over HTTP/2, on all its connections.
pub const MAX_REQUESTS_IN_FLIGHT_PER_CLIENT: usize = 256;
/// Largest list of headers of one request over HTTP/2.
pub const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;
/// How much of a request's path an error response repeats.
pub const MAX_INSTANCE_CHARS: usize = 200;
/// How many unknown members of a request an error response names, how much of each name, and how many bytes these entries
/// have at most.
pub const MAX_NAMED_MEMBERS: usize = 8;
pub const MAX_NAMED_MEMBER_CHARS: usize = 64;
pub const MAX_NAMED_MEMBERS_BYTES: usize = 1500;
/// How much of an unsupported protocol version an error response repeats.
pub const MAX_ECHOED_VERSION_CHARS: usize = 64;
/// Most connections that are open at once, if the process may open as many files.
pub const MAX_CONNECTIONS: usize = 16 * 1024;
/// Most connections to the ops listener that are open at once.
pub const MAX_OPS_CONNECTIONS: usize = 64;
/// After this many requests a connection is closed.
pub const MAX_REQUESTS_PER_CONNECTION: u32 = 10_000;
/// A request on a connection that is older than this is the last one.
pub const MAX_CONNECTION_AGE: Duration = Duration::from_hours(1);
/// How fast a client has to read a response.
pub const MIN_READ_BYTES_PER_SECOND: u64 = 1024;
/// How long a client may read more slowly than that before its connection is closed.
pub const SLOW_READ_PERIOD: Duration = Duration::from_secs(30);

/// How long the signed URL of an image in a bucket can be used. A download that has begun may take longer.
pub const SIGNED_URL_LIFE: Duration = Duration::from_mins(15);

/// Most connections that one client has open at once.
pub const MAX_CONNECTIONS_PER_CLIENT: usize = 256;
/// Downloads and joins of one client.
pub const CLIENT_SIGNUPS: RateLimit = RateLimit::new(100, 10, Period::Second);
pub const CLIENT_SIGNUPS_PER_DAY: u32 = 5000;
/// Opt-ins of one client that have to be confirmed by mail.
pub const CLIENT_OPT_INS: RateLimit = RateLimit::new(20, 10, Period::Hour);
/// Contact messages of one client.
pub const CLIENT_MESSAGES: RateLimit = RateLimit::new(12, 6, Period::Minute);
pub const CLIENT_MESSAGES_PER_DAY: u32 = 100;
/// Unsubscribe requests of one client with an unknown token.
pub const CLIENT_UNKNOWN_TOKENS: RateLimit = RateLimit::new(50, 5, Period::Second);
/// Requests of one client to `/mcp`, joins aside.
pub const CLIENT_MCP_REQUESTS: RateLimit = RateLimit::new(200, 50, Period::Second);
/// Longest name of a header in the setting `client_ip_header`. Real ones are far shorter.
pub const MAX_HEADER_NAME_BYTES: usize = 64;
/// Most buckets that are kept for the limits above, a few megabytes. Beyond that, the fullest ones are forgotten.
pub const MAX_CLIENT_BUCKETS: usize = 64 * 1024;
/// How many tokens of links may be looked up in the database at once, of all clients together.
pub const MAX_TOKEN_LOOKUPS: usize = 2;

/// Sources of one day that are kept. Anyone can invent sources, so once a day the smaller ones are added up.
pub const MAX_KEPT_SOURCES_PER_DAY: i64 = 500;
/// Sources that `stats` lists. The others are one row.
pub const MAX_LISTED_SOURCES: i64 = 50;

/// Most downloads of one person in a list to import: each becomes a row.
pub const MAX_IMPORTED_DOWNLOADS: u32 = 10_000_000;

/// How many of the addresses with one beginning `people list --search` looks at, to find the newest.
pub const MAX_SEARCHED_PEOPLE: i64 = 10_000;
/// After so many people in a row who are not in the state that `people list` looks for, it gives up.
pub const MAX_SKIPPED_PEOPLE: usize = 100_000;

/// How old the counts of rows in `/metrics` may be.
pub const MAX_SUMMARY_AGE: Duration = Duration::from_secs(15);
/// How old the numbers of people on the desk may be.
pub const MAX_TOTALS_AGE: Duration = Duration::from_mins(1);

/// Most rows that a command or a background task changes in one transaction, so that no request waits for long.
pub const MAX_ROWS_PER_STEP: i64 = 250;

/// For how long an identical contact message from the same sender counts as a repeated request.
pub const DUPLICATE_MESSAGE_WINDOW: Duration = Duration::from_hours(24);
/// If more messages than this wait together, they are forwarded as a digest instead of one by one.
pub const DIGEST_THRESHOLD: usize = 5;
/// Most messages in one digest: about five megabytes of mail if each is as long as possible.
pub const MAX_DIGEST_MESSAGES: usize = 250;
/// The period over which mail to the makers is limited.
pub const MAKER_MAIL_PERIOD: Duration = Duration::from_hours(1);
/// Most emails to the makers in any period, summaries included.
pub const MAX_MAKER_MAILS: u32 = 60;
/// Most bytes of mail to the makers in any period.
pub const MAX_MAKER_MAIL_BYTES: u64 = 20 * 1024 * 1024;
/// Room that is kept for the summary of a period.
pub const SUMMARY_MAIL_BYTES: u64 = 4 * 1024;
/// How much of a sender's name, and of a message, is in the subject of a mail to the makers.
pub const MAX_SUBJECT_NAME_CHARS: usize = 40;
pub const MAX_SUBJECT_WORDS_CHARS: usize = 60;
/// Longest link that answers a message: some mail programs take no more.
pub const MAX_ANSWER_LINK_BYTES: usize = 1800;
/// How many of the newest messages a search looks at.
pub const MAX_SEARCHED_MESSAGES: i64 = 10_000;
/// How much is kept of what a mail server replied.
pub const MAX_SMTP_FAILURE_CHARS: usize = 1000;
/// How many mails that wait, or failed, and how many messages without an answer are counted for the dashboard, the desk and the
/// metrics.
pub const MAX_COUNTED_MAILS: i64 = 10_000;
/// For how long forwarding a message is retried before it is marked as failed.
pub const FORWARD_RETRY_PERIOD: Duration = Duration::from_hours(7 * 24);

/// How long an opt-in waits for its confirmation, and how long an address is not asked again.
pub const CONFIRMATION_PERIOD: Duration = Duration::from_hours(30 * 24);
/// Most confirmation mails in [`CONFIRMATION_MAIL_PERIOD`], all instances together.
pub const MAX_CONFIRMATION_MAILS: i64 = 300;
pub const CONFIRMATION_MAIL_PERIOD: Duration = Duration::from_hours(1);
/// Less free space on a disk than this is reported.
pub const LOW_DISK_BYTES: u64 = 1_000_000_000;
/// What an upload leaves free, or a tenth of a smaller disk, so that signups and messages are stored meanwhile.
pub const RESERVED_DISK_BYTES: u64 = 256_000_000;
/// A backup is overdue if the last one is older: a weekly one may be a day late.
pub const MAX_BACKUP_AGE: Duration = Duration::from_hours(8 * 24);
/// A backup in a bucket is overdue if the last one is older: there is one every day, and it may take hours.
pub const MAX_BUCKET_BACKUP_AGE: Duration = Duration::from_hours(36);
/// The makers are told by mail of a backup in a bucket that fails if the last one is older. One that fails once is only tried again.
pub const BUCKET_BACKUP_NOTICE: Duration = Duration::from_hours(25);
/// A backup in a bucket is in pieces of this size. S3 takes up to 5 GB in one request; of a smaller piece, less is sent again.
pub const BACKUP_PIECE_BYTES: u64 = 256 * 1024 * 1024;
/// The makers are told of a certificate that expires sooner than this.
pub const CERTIFICATE_NOTICE: Duration = Duration::from_hours(10 * 24);

/// Longest subject of the monthly letter.
pub const MAX_LETTER_SUBJECT_CHARS: usize = 150;
/// Largest Markdown file of the monthly letter.
pub const MAX_LETTER_BYTES: usize = 64 * 1024;
/// The Markdown of a letter and its images together.
pub const MAX_LETTER_WITH_IMAGES_BYTES: usize = 1024 * 1024;
pub const MAX_LETTER_IMAGES: usize = 20;
/// Of the name that an image gets that is uploaded for a letter.
pub const MAX_UPLOADED_IMAGE_NAME_CHARS: usize = 100;
/// Gmail cuts off what follows 102 KB of HTML.
pub const MAX_LETTER_HTML_BYTES: usize = 102_000;
/// As many permanent rejections of letters may be about the sender and not about the recipients.
pub const MAX_CONSECUTIVE_REFUSALS: usize = 5;
/// How much of a returned mail is read. What it reports comes before the copy of the letter.
pub const MAX_RETURNED_MAIL_BYTES: usize = 1024 * 1024;
/// Highest value of the setting `letter_rate`, in letters per second.
pub const MAX_LETTER_RATE: u32 = 1000;
/// Bits of an RSA key that `mail key` generates: the smallest that receivers trust, and the largest that every DNS
/// provider accepts.
pub const DKIM_RSA_BITS: usize = 2048;

/// Longest file name of a disk image, which is what file systems allow.
pub const MAX_IMAGE_NAME_BYTES: usize = 255;
/// Longest build number of a release.
pub const MAX_BUILD_CHARS: usize = 32;
/// Longest name of a channel.
pub const MAX_CHANNEL_CHARS: usize = 64;
/// Longest phased rollout.
pub const MAX_ROLLOUT_DAYS: u16 = 365;
/// Longest reason of a withdrawal.
pub const MAX_REASON_CHARS: usize = 500;
/// Largest release notes.
pub const MAX_RELEASE_NOTES_BYTES: usize = 64 * 1024;
/// The fields of a form of the desk, which browsers send with longer line breaks.
pub const MAX_FORM_BYTES: u64 = 256 * 1024;

/// Longest name of a token, or of a session of the desk.
pub const MAX_CREDENTIAL_NAME_BYTES: usize = 64;

/// How long a link works that signs a maker in to the desk.
pub const SIGN_IN_LINK_LIFE: Duration = Duration::from_mins(10);
/// How long a session of the desk lasts, used or not.
pub const SESSION_LIFE: Duration = Duration::from_hours(30 * 24);
/// Most links to sign in that are mailed in [`SIGN_IN_MAIL_PERIOD`], all instances together.
pub const MAX_SIGN_IN_MAILS: i64 = 30;
pub const SIGN_IN_MAIL_PERIOD: Duration = Duration::from_hours(1);
/// Links to sign in that one client has mailed.
pub const CLIENT_SIGN_IN_MAILS: RateLimit = RateLimit::new(1, 6, Period::Hour);
/// Requests to the desk at the public URL: each looks a session or a link up.
pub const CLIENT_DESK_REQUESTS: RateLimit = RateLimit::new(10, 100, Period::Second);
/// How long it is known what the makers did.
pub const ACTIVITY_LIFE: Duration = Duration::from_hours(400 * 24);
/// Rows of a list on one page of the desk.
pub const DESK_PAGE_ROWS: usize = 50;

/// Most connections of one peer to the ops listener, loopback and trusted proxies aside.
pub const MAX_OPS_CONNECTIONS_PER_PEER: usize = 16;
/// Wrong tokens that the ops listener answers at once, of all peers together: 10 a minute, 10 at once.
pub const WRONG_OPS_TOKENS: RateLimit = RateLimit::new(10, 10, Period::Minute);
/// How late any further wrong token is answered.
pub const WRONG_OPS_TOKEN_DELAY: Duration = Duration::from_secs(1);
/// How many wrong tokens may wait for their answer at once: half of the connections.
pub const MAX_LATE_OPS_ANSWERS: usize = MAX_OPS_CONNECTIONS / 2;
/// Shortest value of the setting `ops_token`.
pub const MIN_OPS_TOKEN_CHARS: usize = 16;
