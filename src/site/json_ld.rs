//! What search engines are told about the app, as schema.org has it. Nothing is invented: no
//! ratings, no reviews.

use serde_json::{Value, json};

use super::Facts;
use crate::domain::base_url::BaseUrl;

pub(super) fn json_ld(facts: &Facts, base_url: &BaseUrl) -> String {
    let (site, maker) = (base_url.to("/"), base_url.to("/#maker"));
    let graph: Value = json!({
        "@context": "https://schema.org",
        "@graph": [
            {
                "@type": "WebSite",
                "@id": base_url.to("/#site"),
                "name": facts.name,
                "description": facts.tagline,
                "url": site,
                "publisher": { "@id": maker },
            },
            {
                "@type": "Organization",
                "@id": maker,
                "name": facts.maker,
                "url": site,
                "contactPoint": { "@type": "ContactPoint", "contactType": "customer support", "url": base_url.to("/contact") },
            },
            {
                "@type": "SoftwareApplication",
                "name": facts.name,
                "description": facts.summary,
                "operatingSystem": facts.system,
                "applicationCategory": facts.category,
                "offers": { "@type": "Offer", "price": facts.price, "priceCurrency": facts.currency },
                "downloadUrl": base_url.to("/#download"),
                "publisher": { "@id": maker },
            },
        ],
    });
    // In HTML a script ends at `</script`, whatever it holds.
    graph.to_string().replace('<', "\\u003c")
}
