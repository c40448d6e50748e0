//! What the settings promise to visitors. The texts of the site are made from it, so that they stay true.

use serde_json::{Value, json};

use crate::config::Settings;
use crate::domain::retention::Retention;

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each one stands for a setting")]
pub struct Policies {
    /// Whether AI may be trained on the site.
    pub ai_train: bool,
    /// Whether an opt-in counts only after the person has confirmed it by mail.
    pub confirm_updates: bool,
    /// How long a contact message is kept after it was forwarded. `None`: until the person asks for erasure.
    pub keep_messages: Option<Retention>,
    /// Whether contact messages are forwarded by mail.
    pub forwards_messages: bool,
    /// Whether letters that come back are recorded.
    pub records_bounces: bool,
    /// The host that downloads are redirected to, if images are in a bucket.
    pub bucket_host: Option<String>,
}

impl Policies {
    pub fn from_settings(settings: &Settings) -> Self {
        Self {
            ai_train: settings.ai_train,
            confirm_updates: settings.confirm_updates,
            keep_messages: settings.keep_messages,
            forwards_messages: settings.mail.is_some(),
            records_bounces: match &settings.mail {
                Some(mail) => mail.bounce_address.is_some(),
                None => false,
            },
            bucket_host: settings.images.redirect_host(),
        }
    }

    /// The variable `policies` of the templates.
    pub(super) fn template_variable(&self) -> Value {
        json!({
            "ai_train": self.ai_train,
            "confirm_updates": self.confirm_updates,
            // What is never forwarded is never deleted.
            "keep_messages": self.keep_messages.filter(|_| self.forwards_messages).map(|keep| keep.to_string()),
            "forwards_messages": self.forwards_messages,
            "records_bounces": self.records_bounces,
        })
    }
}
