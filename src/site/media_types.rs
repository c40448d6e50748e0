//! The media types of assets, by the extension of their names.

/// The media type of a file with this extension. What is unknown is only downloaded.
pub(super) fn media_type(extension: &str) -> &'static str {
    match extension.to_ascii_lowercase().as_str() {
        "css" => "text/css; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "ics" => "text/calendar; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "md" => "text/markdown; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "vtt" => "text/vtt; charset=utf-8",

        "apng" => "image/apng",
        "avif" => "image/avif",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "ico" => "image/x-icon",
        "jpg" | "jpeg" => "image/jpeg",
        "jxl" => "image/jxl",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "tif" | "tiff" => "image/tiff",
        "webp" => "image/webp",

        "m4v" | "mp4" => "video/mp4",
        "mov" => "video/quicktime",
        "ogv" => "video/ogg",
        "webm" => "video/webm",

        "aac" => "audio/aac",
        "aif" | "aiff" => "audio/aiff",
        "flac" => "audio/flac",
        "m4a" => "audio/mp4",
        "mp3" => "audio/mpeg",
        "oga" | "ogg" | "opus" => "audio/ogg",
        "wav" => "audio/wav",

        "otf" => "font/otf",
        "ttc" => "font/collection",
        "ttf" => "font/ttf",
        "woff" => "font/woff",
        "woff2" => "font/woff2",

        "bz2" => "application/x-bzip2",
        "dmg" => "application/x-apple-diskimage",
        "epub" => "application/epub+zip",
        "gz" | "tgz" => "application/gzip",
        "json" | "map" => "application/json",
        "pdf" => "application/pdf",
        "rtf" => "application/rtf",
        "tar" => "application/x-tar",
        "wasm" => "application/wasm",
        "webmanifest" => "application/manifest+json",
        "xml" => "application/xml",
        "xz" => "application/x-xz",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}
