//! The schema.org description of the app for search engines.

use serde_json::{Value, json};

use super::facts::SiteFacts;
use crate::domain::network::BaseUrl;

/// Nothing is invented: no ratings, no reviews.
pub(super) fn json_ld(facts: &SiteFacts, base_url: &BaseUrl, release: &Value) -> String {
    let (site, maker) = (base_url.to("/"), base_url.to("/#maker"));
    let mut graph = json!({
        "@context": "https://schema.org",
        "@graph": [
            {
                "@type": "WebSite",
                "@id": base_url.to("/#site"),
                "name": facts.name,
                "description": facts.tagline,
                "url": site,
            },
            {
                "@type": "Organization",
                "@id": maker,
                "name": facts.maker,
                "contactPoint": { "@type": "ContactPoint", "contactType": "customer support", "url": base_url.to("/contact") },
            },
            {
                "@type": "SoftwareApplication",
                "name": facts.name,
                "description": facts.summary,
                "operatingSystem": facts.system,
                "applicationCategory": facts.category,
                "offers": facts.price.json_ld(),
                "downloadUrl": base_url.to("/#download"),
                "publisher": { "@id": maker },
            },
        ],
    });
    if let Some(country) = &facts.maker_country {
        graph["@graph"][1]["address"] = json!({ "@type": "PostalAddress", "addressCountry": country });
    }
    let software = &mut graph["@graph"][2];
    if let Some(licence) = &facts.licence_url {
        software["license"] = licence.as_str().into();
    }
    if let Some(url) = &facts.app_store_url {
        software["installUrl"] = url.as_str().into();
    }
    if !release.is_null() {
        software["softwareVersion"] = release["version"].clone();
        software["datePublished"] = release["date"].clone();
        software["fileSize"] = release["size"].clone();
    }
    // A script element ends at the first `</script`, even inside a JSON string.
    graph.to_string().replace('<', "\\u003c")
}
